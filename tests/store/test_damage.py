"""Damaged, cut off and foreign files: refused in one sentence, or read as they were; never anything between.

`python benchmarks/run_file.py --damage` does to every byte what is done here to some of them.
"""

from __future__ import annotations

import itertools
import random
import sqlite3
import zlib
from contextlib import closing

import pytest
from benchmarks.run_file import (
    FRAME_HEADER,
    PAGE,
    SMALL,
    WAL_HEADER,
    Damage,
    commits,
    content,
    cuts,
    finished_file,
    flips,
    forget,
    moments,
    objective_with_everything,
    open_file,
    verdict,
)

from mixcma import Float, Outcome, Space, minimize, resume
from mixcma.store import DamagedRunFile, read
from mixcma.store.schema import APPLICATION_ID, OLDEST, TABLES, VERSION, checksum

PLANE = Space({"x": Float(-5, 5), "y": Float(-5, 5)})


def sphere(p):
    return sum(value**2 for value in p.values())


def calls(path):
    """Every way to open a run file."""
    return [
        lambda: read(path),
        lambda: minimize(sphere, PLANE, budget=20, seed=1, run_file=path),
        lambda: resume(path, sphere),
        lambda: minimize(sphere, PLANE, budget=20, seed=1, history=path),
    ]


def refused_everywhere(path, match):
    """Refused in a sentence by all that opens it, with nothing changed and nothing left behind."""
    before = path.read_bytes()
    for call in calls(path):
        with pytest.raises(DamagedRunFile, match=match) as caught:
            call()
        text = str(caught.value)
        assert text.startswith(("run_file: ", "history: "))
        assert str(path) in text
        assert "\n" not in text
        assert path.read_bytes() == before
        assert not path.with_name("run.db.lock").exists()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.db"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A finished run file: its bytes and its content."""
    path = tmp_path_factory.mktemp("whole") / "run.db"
    return finished_file(path), content(read(path))


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """A run file in the middle of a search: its bytes, those of its WAL, and its contents until then."""
    path = tmp_path_factory.mktemp("opened") / "run.db"
    database, wal = open_file(path)
    return database, wal, moments(path, database, wal)


def sampled(size, count, *regions):
    """Positions in a file: `count` of all, and those of the regions."""
    chosen = set(random.Random(1).sample(range(size), count))
    return sorted(chosen.union(*regions))


def judged(path, damages, database, wal, allowed):
    """The verdicts that break the law, with the damage; and how many were refused or intact."""
    counts, broken = {"refused": 0, "intact": 0}, []
    for damage in damages:
        found = verdict(path, *damage.done_to(database, wal), allowed)
        if found in counts:
            counts[found] += 1
        else:
            broken.append((damage, found))
    return counts, broken


# Flipped bytes


def test_a_flipped_byte_is_noticed_or_does_not_matter(path, whole):
    database, expected = whole
    heads = [range(page, page + 24) for page in range(0, len(database), PAGE)]
    positions = sampled(len(database), 800, range(100), *heads)
    counts, broken = judged(path, flips(False, positions), database, None, {expected})
    assert broken == []
    assert min(counts.values()) > 100


def test_a_flipped_bit_in_a_row_is_noticed(path, whole):
    """Every bit where the last row of every table begins, behind the empty part of its page."""
    database, expected = whole
    damages = []
    for page in range(PAGE, len(database), PAGE):
        begin = page + int.from_bytes(database[page + 5 : page + 7], "big")
        damages += flips(False, range(begin, min(begin + 20, page + PAGE)), every_bit=True)
    counts, broken = judged(path, damages, database, None, {expected})
    assert broken == []
    assert counts["intact"] < 0.02 * counts["refused"]  # the place of a key that stands elsewhere


def test_what_a_search_makes_of_a_flipped_byte(path, whole):
    """It refuses, or finds what it would have found."""
    database, _ = whole
    forget(path)
    path.write_bytes(database)
    expected = resume(path, objective_with_everything, budget=30)
    held = [row[:7] for row in read(path).rows]
    times = 0
    for damage in flips(False, sampled(len(database), 60, range(16, 100))):
        forget(path)
        path.write_bytes(damage.done_to(database, None)[0])
        try:
            result = resume(path, objective_with_everything, budget=30)
        except ValueError as error:
            assert str(error).startswith("run_file: ")  # noqa: PT017
            assert not path.with_name("run.db.lock").exists()
        else:
            times += 1
            assert result == expected
            assert [row[:7] for row in read(path).rows] == held, damage
    assert times > 30


@pytest.mark.parametrize(
    ("one", "other"),
    [(0, b""), (zlib.crc32(b"abc"), b"abc"), (0, None), (0, 0.0), (1, "1"), ("", b""), (None, "None"), (0.0, "0.0")],
    ids=repr,
)
def test_values_of_different_types_have_different_checksums(one, other):
    assert checksum((1, one, 2)) != checksum((1, other, 2))


# Cut off


def test_a_file_that_is_cut_off_is_refused(path, whole):
    database, expected = whole
    counts, broken = judged(path, cuts(False, len(database)), database, None, {expected})
    assert broken == []
    assert counts["intact"] == 0


@pytest.mark.parametrize("tail", [b"\0", b"x" * 100, b"\0" * PAGE, b"x" * PAGE, b"x" * 3 * PAGE], ids=len)
def test_what_stands_behind_the_end_is_noticed_or_does_not_matter(path, whole, tail):
    database, expected = whole
    assert verdict(path, database + tail, None, {expected}) in ("refused", "intact")


def pages(database):
    """Where the pages of a file begin."""
    return range(0, len(database), PAGE)


def replaced(database, page, by):
    return database[:page] + by + database[page + PAGE :]


@pytest.mark.parametrize("filling", [b"\0", b"\xff", None], ids=repr)
def test_a_page_that_was_lost_is_noticed(path, whole, filling):
    """Zeroes, ones, or another page in its place."""
    database, expected = whole
    for page in pages(database):
        other = (page + PAGE) % len(database)
        lost = database[other : other + PAGE] if filling is None else filling * PAGE
        assert verdict(path, replaced(database, page, lost), None, {expected}) == "refused", page


def test_a_page_that_was_written_and_then_lost_is_noticed(path, tmp_path):
    """The disk still has what the page was earlier: its rows are well formed, but the others have gone on."""
    versions = []
    for budget in (6, 14, 22):
        minimize(objective_with_everything, SMALL, budget=budget, seed=3, popsize=4, run_file=path)
        versions.append(path.read_bytes())
    early, middle, late = versions
    now = content(read(path))
    for old, page in itertools.product((early, middle), pages(late)):
        changed = replaced(late, page, old[page : page + PAGE])
        assert verdict(tmp_path / "other.db", changed, None, {now}) in ("refused", "intact"), page // PAGE + 1


# Rows that are well formed but do not belong together


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM evaluation WHERE id = 3",
        "DELETE FROM generation WHERE id = 1",
        "DELETE FROM run",
        "DELETE FROM snapshot",
        "DELETE FROM setting WHERE name = 'space'",
        "DELETE FROM setting WHERE name = 'method'",
        "DELETE FROM setting WHERE name = 'stop'",
        "UPDATE evaluation SET value = value + 1e-9 WHERE id = 2",
        "UPDATE evaluation SET value = -1.0 WHERE id = 2",
        "UPDATE evaluation SET status = 'pending' WHERE id = 2",
        "UPDATE evaluation SET params = '[1.0, 2, true]' WHERE id = 2",
        "UPDATE evaluation SET id = 1000 WHERE id = 2",
        "UPDATE setting SET value = '7' WHERE name = 'seed'",
        "UPDATE setting SET name = 'sead' WHERE name = 'seed'",
        "UPDATE snapshot SET arrays = zeroblob(length(arrays))",
        "UPDATE snapshot SET numbers = '{}'",
        "UPDATE run SET popsize = 5",
        "DROP TABLE generation",
        "ALTER TABLE evaluation RENAME COLUMN value TO worth",
    ],
)
def test_a_file_that_was_edited_is_refused(path, whole, statement):
    path.write_bytes(whole[0])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
        connection.commit()
    with pytest.raises(DamagedRunFile, match=r"run_file: .* is damaged"):
        read(path)
    with pytest.raises(DamagedRunFile, match=r"run_file: .* is damaged"):
        resume(path, objective_with_everything)


# With a WAL beside it


def test_a_file_with_its_wal_holds_every_commit(opened):
    _, wal, held = opened
    assert len(held) == len(commits(wal)) + 1
    assert len(set(held)) > 10


def test_a_flipped_byte_of_the_wal_costs_at_most_what_came_later(path, opened):
    database, wal, held = opened
    frames = range(WAL_HEADER, len(wal), FRAME_HEADER + PAGE)
    positions = sampled(len(wal), 200, range(WAL_HEADER), *(range(at, at + FRAME_HEADER) for at in frames))
    counts, broken = judged(path, flips(True, positions), database, wal, set(held))
    assert broken == []
    assert counts["intact"] > 0
    for at, frame in enumerate(frames):  # what was committed before the flip is there
        last = sum(end <= frame for end in commits(wal))
        assert verdict(path, *Damage(True, frame + 30, 0xFF).done_to(database, wal), {held[last]}) == "intact", at


def test_a_wal_that_is_cut_off_costs_at_most_what_came_later(path, opened):
    database, wal, held = opened
    for damage in cuts(True, len(wal)):
        last = sum(end <= damage.position for end in commits(wal))
        assert verdict(path, *damage.done_to(database, wal), {held[last]}) == "intact"


def test_a_flipped_byte_of_a_file_with_a_wal_is_noticed_or_does_not_matter(path, opened):
    database, wal, held = opened
    counts, broken = judged(path, flips(False, sampled(len(database), 300, range(100))), database, wal, {held[-1]})
    assert broken == []
    assert min(counts.values()) > 10


@pytest.mark.parametrize("kept", [0.0, 0.3, 0.7, 1.0])
def test_a_search_goes_on_from_what_a_damaged_wal_still_has(path, tmp_path, opened, kept):
    database, wal, _ = opened
    whole = tmp_path / "whole.db"
    options = {"budget": 40, "seed": 3, "popsize": 4}
    expected = minimize(objective_with_everything, SMALL, run_file=whole, **options)
    path.write_bytes(database)
    flipped = bytearray(wal)
    if kept < 1:
        flipped[WAL_HEADER + 50 + int(kept * (len(wal) - WAL_HEADER))] ^= 1
    path.with_name("run.db-wal").write_bytes(flipped)
    result = minimize(objective_with_everything, SMALL, run_file=path, **options)
    assert (result.params, result.value, result.evaluations) == (expected.params, expected.value, 40)
    assert [row[:7] for row in read(path).rows] == [row[:7] for row in read(whole).rows]


@pytest.mark.parametrize("wal", [b"", b"x", b"text" * 5000, b"\0" * 50_000], ids=len)
def test_something_else_in_the_place_of_the_wal_does_not_matter(path, whole, wal):
    database, expected = whole
    assert verdict(path, database, wal, {expected}) == "intact"


def test_the_wal_of_another_run_is_noticed_or_does_not_matter(path, whole, opened):
    """Such as one that was left behind when a run file was replaced by a copy."""
    database, expected = whole
    assert verdict(path, database, opened[1], {expected, *opened[2]}) in ("refused", "intact")


# Files that are something else


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"budget = 100\n",
        b"S",
        b"SQLite format 3",
        b"\x89PNG\r\n\x1a\n" + bytes(1000),
        bytes(10_000),
        b"SQLite format 3\0",
        b"SQLite format 3\0" + bytes(84),
        b"SQLite format 3\0" + b"x" * 10_000,
    ],
    ids=["empty", "text", "S", "begin", "picture", "zeroes", "magic", "header", "magic and text"],
)
def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(path, data):
    path.write_bytes(data)
    refused_everywhere(path, "is empty" if not data else "is something else|another program's|is damaged")


def test_a_text_is_not_called_a_damaged_run_file(path):
    path.write_text("budget = 100\n" * 100)
    refused_everywhere(path, "expected a run file of mixcma, but .* is something else")


def test_a_file_that_has_lost_its_header_may_be_salvaged_and_that_is_said(path, whole):
    path.write_bytes(bytes(100) + whole[0][100:])
    refused_everywhere(path, "is something else; choose another path; if it was a run file, .*mixcma salvage FILE NEW")


@pytest.mark.parametrize("mode", ["delete", "wal"])
@pytest.mark.parametrize("kind", [0, 0x42424242, APPLICATION_ID ^ 1], ids=hex)
def test_another_programs_database_is_refused_and_left_as_it_is(path, mode, kind):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA journal_mode = {mode}")
        connection.execute(f"PRAGMA application_id = {kind}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("CREATE TABLE evaluation (id INTEGER PRIMARY KEY, thing TEXT)")
        connection.execute("INSERT INTO evaluation VALUES (1, 'precious')")
        connection.commit()
    refused_everywhere(path, "is another program's database")
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT * FROM evaluation").fetchall() == [(1, "precious")]


def test_another_programs_database_that_is_in_use_is_left_as_it_is(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = wal")
        connection.execute("CREATE TABLE precious (id INTEGER PRIMARY KEY)")
        connection.execute("INSERT INTO precious VALUES (1)")
        connection.commit()
        wal = path.with_name("run.db-wal").read_bytes()
        refused_everywhere(path, "is another program's database")
        assert path.with_name("run.db-wal").read_bytes() == wal
        connection.execute("INSERT INTO precious VALUES (2)")
        connection.commit()
        assert connection.execute("SELECT count(*) FROM precious").fetchone() == (2,)


def test_an_empty_database_with_the_right_number_is_refused(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.commit()
    refused_everywhere(path, "is damaged")


@pytest.mark.parametrize("table", TABLES)
def test_an_empty_table_is_refused(path, whole, table):
    path.write_bytes(whole[0])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"DELETE FROM {table}")
        connection.commit()
    with pytest.raises(DamagedRunFile, match="is damaged"):
        read(path)


@pytest.mark.parametrize("version", [VERSION + 1, OLDEST - 1, 2**31 - 1, -1])
def test_another_version_of_the_format_is_refused_by_its_number(path, whole, version):
    path.write_bytes(whole[0])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    refused_everywhere(path, f"expected version {OLDEST} to {VERSION} of the format, but .* has version {version}")


# Sizes


def test_a_file_of_several_levels_is_checked_too(path):
    """Enough rows that the tables have inner pages."""
    options = {"budget": 2000, "seed": 1, "restarts": False, "popsize": 40, "method": "mix-without-model"}
    minimize(lambda p: Outcome(sphere(p)), PLANE, run_file=path, **options)
    database, expected = path.read_bytes(), content(read(path))
    assert len(database) > 40 * PAGE
    heads = sampled(len(database) // PAGE, 20)
    positions = sampled(len(database), 60, *([page * PAGE + 3, page * PAGE + 9] for page in heads))
    _, broken = judged(path, flips(False, positions), database, None, {expected})
    assert broken == []
