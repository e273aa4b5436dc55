"""Run files that somebody made by hand, with all checksums right: a sentence, never a traceback."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest

from mixcma import Categorical, Float, Space, minimize, resume
from mixcma.cli import main
from mixcma.store import DamagedRunFile, read
from mixcma.store.schema import TABLES, checksum, columns, row_checksum

SPACE = Space({"x": Float(-5, 5), "c": Categorical(["a", "b"])})
DEEP = "[" * 100_000 + "]" * 100_000


@pytest.fixture
def path(tmp_path):
    made = tmp_path / "run.db"
    minimize(lambda p: p["x"] ** 2, SPACE, budget=20, seed=1, run_file=made)
    return made


def forge(path, statement, *values):
    """Change rows, and make all checksums and the total right again."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(statement, values)
        sums = []
        for table in TABLES.keys() - {"total"}:
            key = next(iter(TABLES[table]))
            for row in connection.execute(f"SELECT {', '.join(columns(table))} FROM {table}").fetchall():
                sums.append(row_checksum(table, row[:-1]))
                connection.execute(f"UPDATE {table} SET checksum = ? WHERE {key} = ?", (sums[-1], row[0]))
        total = (1, len(sums), sum(sums))
        connection.execute("UPDATE total SET rows = ?, sum = ?, checksum = ?", (*total[1:], checksum(total)))


def refused(path):
    for call in (lambda: read(path), lambda: resume(path, lambda p: 0.0)):
        with pytest.raises(DamagedRunFile, match=r"run_file: .* is damaged \(.*\); restore") as caught:
            call()
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 1000


def test_a_file_that_is_made_right_again_is_read(path):
    forge(path, "UPDATE setting SET value = '7' WHERE name = 'seed'")
    assert read(path).settings["seed"] == 7


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, "text") for name in ("space", "method", "seed", "popsize", "budget", "target", "restarts", "cache")),
        *((name, "text") for name in ("asynchronous", "stopping", "versions", "created", "notes")),
        *((name, ["list"]) for name in ("space", "method", "budget", "stop", "notes", "versions")),
        *((name, True) for name in ("seed", "budget", "popsize", "stop", "created")),
        ("method", {}),
        ("method", {"type": 3}),
        ("space", {"x": 3}),
        ("notes", {"problem": "text"}),
        ("notes", {"problem": {"text": 3, "folder": "/", "path": "/"}}),
        ("notes", {"problem": {"text": "x"}}),
        *(("history", value) for value in ("text", {}, [3], [[]], [[1.0]], [["x", 1.0, 2.0]], [[1.0, 1.0, "x"]])),
    ],
    ids=repr,
)
def test_a_setting_of_the_wrong_type_is_said_in_a_sentence(path, name, value):
    forge(path, "UPDATE setting SET value = ? WHERE name = ?", json.dumps(value), name)
    refused(path)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("value", "text"),
        ("value", b"bytes"),
        ("params", "{}"),
        ("params", "[1.0]"),
        ("params", "[[], {}]"),
        ("params", "text"),
        ("params", None),
        ("constraints", '["a"]'),
        ("constraints", "3"),
        ("error", b"bytes"),
        ("traceback", b"bytes"),
        ("started", "text"),
        ("seconds", "text"),
        ("run", None),
        ("slot", "text"),
        ("latent", b"123"),
        ("status", "unheard of"),
    ],
    ids=repr,
)
def test_a_row_of_the_wrong_type_is_said_in_a_sentence(path, column, value):
    forge(path, f"UPDATE evaluation SET {column} = ? WHERE id = 3", value)
    refused(path)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE setting SET value = ? WHERE name = 'notes'",
        "UPDATE setting SET value = ? WHERE name = 'space'",
        "UPDATE evaluation SET params = ? WHERE id = 3",
        "UPDATE evaluation SET constraints = ? WHERE id = 3",
        "UPDATE snapshot SET numbers = ?",
        "UPDATE snapshot SET layout = ?",
    ],
)
def test_json_without_end_is_said_in_a_sentence(path, statement):
    forge(path, statement, DEEP)
    refused(path)


@pytest.mark.parametrize("command", ["show", "report", "export", "resume"])
@pytest.mark.parametrize("value", ['"text"', DEEP], ids=["text", "deep"])
def test_every_command_says_it_in_a_sentence(path, run_command, command, value):
    forge(path, "UPDATE setting SET value = ? WHERE name = 'notes'", value)
    result = run_command(main, [command, str(path), *(["--csv", "-"] if command == "export" else [])])
    assert result.exit_code == 2
    assert "is damaged" in result.stderr


def test_an_unknown_reason_to_stop_is_shown_as_it_is(path, run_command):
    forge(path, "UPDATE setting SET value = '\"whatever\"' WHERE name = 'stop'")
    assert "whatever" in run_command(main, ["show", str(path)]).stdout
