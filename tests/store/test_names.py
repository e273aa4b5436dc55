"""Files that are not mixcma's: never removed, never overwritten, never followed."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing

import pytest

from mixcma import Float, Space, minimize, resume
from mixcma.store import read
from mixcma.store.names import draft_prefix

SPACE = Space({"x": Float(-5, 5)})


def search(path, budget=20):
    return minimize(lambda p: p["x"] ** 2, SPACE, budget=budget, seed=1, run_file=path)


def never(params):
    raise AssertionError("called")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.db"


def test_files_that_look_like_drafts_are_left(tmp_path):
    names = ["Cargo.new", "Cargo.new-wal", "Cargo.new-shm", "Cargo.lock.old"]
    for name in names:
        (tmp_path / name).write_text("precious")
    search(tmp_path / "Cargo")
    assert [(tmp_path / name).read_text() for name in names] == ["precious"] * 4
    assert sorted(os.listdir(tmp_path)) == sorted(["Cargo", *names])


def test_the_draft_of_a_killed_process_is_removed_and_anything_else_is_not(path):
    mine, other = (path.with_name(draft_prefix(path) + end) for end in ("abc", "def"))
    for folder in (mine, other):
        folder.mkdir()
        (folder / "draft.db").write_text("x")
    (other / "precious").touch()
    search(path)
    assert not mine.exists()
    assert (other / "draft.db").exists()


@pytest.mark.parametrize("ending", ["-wal", "-shm", "-journal"])
@pytest.mark.parametrize("there", [False, True], ids=["new", "existing"])
def test_a_file_where_sqlite_wants_to_write_is_refused_and_left(path, ending, there):
    if there:
        search(path)
    before = path.read_bytes() if there else None
    other = path.with_name(path.name + ending)
    other.write_text("precious")
    with pytest.raises(ValueError, match=rf"run_file: .* needs the name run\.db{ending} .* move that away"):
        minimize(never, SPACE, budget=40, seed=1, run_file=path, on_error="raise")
    assert other.read_text() == "precious"
    assert (path.read_bytes() if there else None) == before
    assert not path.with_name("run.db.lock").exists()


@pytest.mark.parametrize("ending", ["-wal", "-shm", "-journal"])
def test_a_link_where_sqlite_wants_to_write_is_not_followed(path, tmp_path, ending):
    (tmp_path / "target").touch()
    path.with_name(path.name + ending).symlink_to(tmp_path / "target")
    with pytest.raises(ValueError, match="move that away"):
        search(path)
    assert (tmp_path / "target").read_bytes() == b""


def test_the_wal_of_another_programs_database_is_left(path):
    """Its database was moved away, and the WAL holds what it had not written there yet."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = wal")
        connection.execute("CREATE TABLE precious (id INTEGER PRIMARY KEY)")
        wal = path.with_name("run.db-wal").read_bytes()
    path.unlink()
    path.with_name("run.db-wal").write_bytes(wal)
    with pytest.raises(ValueError, match=r"needs the name run\.db-wal"):
        search(path)
    assert path.with_name("run.db-wal").read_bytes() == wal


def test_a_file_that_appears_while_the_run_file_is_made_is_left(path, monkeypatch):
    connect = sqlite3.connect

    def watched(*arguments, **options):
        path.write_text("precious")
        return connect(*arguments, **options)

    monkeypatch.setattr("mixcma.store.writer.sqlite3.connect", watched)
    with pytest.raises(ValueError, match="appeared in the meantime"):
        search(path)
    assert path.read_text() == "precious"


@pytest.mark.parametrize("name", [":memory:", "file:run.db", "file::memory:?cache=shared", "", "a\0b", "x" * 248])
def test_a_name_that_is_none_is_refused_before_anything_is_evaluated(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    for call in (
        lambda: minimize(never, SPACE, budget=10, run_file=name, on_error="raise"),
        lambda: resume(name, never, on_error="raise"),
    ):
        with pytest.raises(ValueError, match=r"run_file: .*; "):
            call()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["./:memory:", "./file:run.db", "x" * 247, "?mode=memory", "%41"])
def test_an_odd_name_is_a_name(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    search(f"{tmp_path}/{name}")
    assert os.listdir(tmp_path) == [name.removeprefix("./")]
    assert len(read(f"{tmp_path}/{name}").rows) >= 20
