"""A run file that is removed, renamed, cut off, replaced or overwritten in mid-run: all of it is written elsewhere."""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
import tempfile
from contextlib import closing
from dataclasses import replace

import pytest

from mixcma import Float, Int, Space, minimize, resume
from mixcma.store import read, watch, writer

SPACE = Space({"x": Float(-5, 5), "n": Int(0, 9)})
OPTIONS = {"budget": 240, "seed": 1, "popsize": 8}


def cost(p):
    return p["x"] ** 2 + (p["n"] - 3) ** 2


def rows(path):
    return [(r.id, r.run, r.generation, r.slot, r.params, r.status, r.outcome) for r in read(path).rows]


def other_run(path):
    """Another run file, as bytes."""
    other = path.with_name("other.db")
    minimize(cost, SPACE, budget=50, seed=2, run_file=other)
    content = other.read_bytes()
    other.unlink()
    return content


def rename(path):
    path.rename(path.with_name("renamed.db"))


def cut_off(path):
    os.truncate(path, path.stat().st_size // 2)


def empty(path):
    os.truncate(path, 0)


def overwrite(path):
    path.write_text("precious " * 5000)


def overwrite_with_another_run(path):
    path.write_bytes(other_run(path))


def replace_by_a_copy(path):
    shutil.copy(path, path.with_name("copy.db"))
    os.replace(path.with_name("copy.db"), path)


def replace_by_another(path):
    path.with_name("new.db").write_text("precious")
    os.replace(path.with_name("new.db"), path)


def remove(path):
    path.unlink()


def remove_all(path):
    for name in ("", "-wal", "-shm", ".lock"):
        path.with_name(path.name + name).unlink()


def remove_the_wal(path):
    path.with_name("run.db-wal").unlink()


DEEDS = [remove, remove_all, remove_the_wal, rename, cut_off, empty, overwrite, overwrite_with_another_run]
DEEDS += [replace_by_a_copy, replace_by_another]


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "folder"
    made.mkdir()
    return made


@pytest.fixture
def said(caplog):
    caplog.set_level(logging.WARNING, logger="mixcma")
    return lambda: [record.getMessage() for record in caplog.records if record.name == "mixcma"]


def disturbed(path, deed, generation=10, **options):
    """A search with whose file something happens; what is beside it then, too."""

    def callback(progress):
        if (progress.run, progress.generation) == (0, generation):
            deed(path)

    return minimize(cost, SPACE, run_file=path, callback=callback, **{**OPTIONS, **options})


@pytest.fixture
def whole(tmp_path):
    path = tmp_path / "whole.db"
    return minimize(cost, SPACE, run_file=path, **OPTIONS), path


@pytest.mark.parametrize("deed", DEEDS, ids=lambda deed: deed.__name__)
def test_everything_is_in_a_new_file_which_can_be_resumed(folder, whole, said, deed):
    expected, complete = whole
    result = disturbed(folder / "run.db", deed)
    new = folder / "run-2.db"
    assert result == replace(expected, run_file=new)
    assert rows(new) == rows(complete)
    (warning,) = said()
    assert str(folder / "run.db") in warning
    assert str(new) in warning
    again, unbroken = (resume(path, cost, budget=300) for path in (new, complete))
    assert replace(again, run_file=None) == replace(unbroken, run_file=None)
    assert rows(new) == rows(complete)


@pytest.mark.parametrize("deed", [overwrite, replace_by_another], ids=lambda deed: deed.__name__)
def test_what_stands_in_its_place_is_left_as_it_is(folder, deed):
    disturbed(folder / "run.db", deed)
    assert set((folder / "run.db").read_text().split()) == {"precious"}
    assert sorted(path.name for path in folder.iterdir()) == ["run-2.db", "run.db"]


def test_another_run_in_its_place_is_left_as_it_is(folder):
    disturbed(folder / "run.db", overwrite_with_another_run)
    assert len(read(folder / "run.db").rows) >= 50
    assert read(folder / "run.db").settings["seed"] == 2


def test_the_wal_of_another_file_in_its_place_is_left(folder):
    def deed(path):
        for name in ("", "-wal"):
            os.replace(path.with_name(path.name + name), path.with_name("moved" + name))
            path.with_name(path.name + name).write_text("precious")

    disturbed(folder / "run.db", deed)
    assert [(folder / name).read_text() for name in ("run.db", "run.db-wal")] == ["precious"] * 2


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_search_that_went_on_from_a_file_has_all_of_it(folder, said, asynchronous):
    path = folder / "run.db"
    minimize(cost, SPACE, run_file=path, asynchronous=asynchronous, **{**OPTIONS, "budget": 100})

    def objective(p):
        path.unlink(missing_ok=True)
        return cost(p)

    result = resume(path, objective, budget=150)
    assert result.run_file == folder / "run-2.db"
    assert sum(row.evaluated for row in read(result.run_file).rows) == 150
    assert len(said()) == 1


def test_if_the_folder_is_gone_the_file_is_in_the_nearest_that_is_left(tmp_path, whole, said):
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    result = disturbed(deep / "run.db", lambda path: shutil.rmtree(tmp_path / "a"))
    assert result.run_file == tmp_path / "run-2.db"
    assert rows(result.run_file) == rows(whole[1])
    assert str(result.run_file) in said()[0]
    assert not (tmp_path / "a").exists()


def test_if_no_folder_can_be_written_it_is_among_the_temporary_files(folder, tmp_path, monkeypatch, whole):
    made = tmp_path / "temporary"
    made.mkdir()

    def deed(path):
        path.unlink()
        mkdir = os.mkdir

        def refused(name, *arguments, **options):
            if str(name).startswith(str(folder)):
                raise PermissionError(13, "Permission denied")
            mkdir(name, *arguments, **options)

        monkeypatch.setattr(tempfile, "tempdir", str(made))
        monkeypatch.setattr(os, "mkdir", refused)

    result = disturbed(folder / "run.db", deed)
    assert result.run_file == made / "run-2.db"
    assert rows(result.run_file) == rows(whole[1])


def test_names_that_are_taken_are_left_as_they_are(folder, whole):
    (folder / "run-2.db").write_text("precious")
    (folder / "run-3.db.lock").write_text("precious")
    (folder / "run-4.db-wal").write_text("precious")
    result = disturbed(folder / "run.db", remove)
    assert result.run_file == folder / "run-5.db"
    assert rows(result.run_file) == rows(whole[1])
    for name in ("run-2.db", "run-3.db.lock", "run-4.db-wal"):
        assert (folder / name).read_text() == "precious"


def test_it_may_happen_twice(folder, whole, said):
    def callback(progress):
        if progress.run == 0 and progress.generation in (5, 9):
            (folder / ("run.db" if progress.generation == 5 else "run-2.db")).unlink()

    result = minimize(cost, SPACE, run_file=folder / "run.db", callback=callback, **OPTIONS)
    assert rows(result.run_file) == rows(whole[1])
    assert len(said()) == 2


def test_it_may_happen_at_the_very_end(folder, whole, said):
    """After the last generation, when only why the search ended is still to be written."""

    def callback(progress):
        if progress.evaluations == OPTIONS["budget"]:
            (folder / "run.db").unlink()

    result = minimize(cost, SPACE, run_file=folder / "run.db", callback=callback, **OPTIONS)
    assert rows(result.run_file) == rows(whole[1])
    assert read(result.run_file).settings["stop"] == "budget"


def test_a_program_that_only_moves_the_wal_into_the_file_is_no_trouble(folder, whole, said):
    def deed(path):
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    result = disturbed(folder / "run.db", deed)
    assert result.run_file == folder / "run.db"
    assert rows(result.run_file) == rows(whole[1])
    assert said() == []


def test_nothing_but_the_file_system_is_asked_while_nothing_happens(folder, monkeypatch):
    monkeypatch.setattr(watch, "read", None)
    assert minimize(cost, SPACE, run_file=folder / "run.db", **OPTIONS).evaluations == 240


def test_the_wal_is_moved_into_the_file_now_and_then_and_that_is_no_trouble(folder, monkeypatch):
    monkeypatch.setattr(watch, "read", None)
    monkeypatch.setattr(writer, "WAL_BYTES", 100_000)
    sizes = []

    def callback(progress):
        sizes.append([(folder / name).stat().st_size for name in ("run.db", "run.db-wal")])

    result = minimize(cost, SPACE, run_file=folder / "run.db", callback=callback, **OPTIONS)
    files, wals = zip(*sizes)
    assert len(set(files)) > 2
    assert max(wals) < 1_000_000
    assert result.run_file == folder / "run.db"
