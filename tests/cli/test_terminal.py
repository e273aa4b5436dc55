"""What a user's texts do to the terminal: nothing. Names, choices, messages and paths come out as they are."""

from __future__ import annotations

import csv
import io
import logging

import pytest
from rich.console import Console

from mixcma import Categorical, Float, Progress, Space, minimize
from mixcma.cli import main
from mixcma.cli.common import cell, plain
from mixcma.run.optimizer import Best
from mixcma.run.outcome import failure
from mixcma.search.progress import printable, printable_lines, progress_display

NASTY = ["[/]", "[bold]x[/bold]", ":smile:", "\x1b[2J", "\x9b31m", "a\rb", "\x07", "\ud800", "\u202eabc", "[link=x]"]
NAMES = ["x[i]", "[/]", "\x1b[31mred", ":bomb:"]
PROBLEM = """
[objective]
python = "{module}:cost"
[run]
budget = 20
seed = 1
[space."x[i]"]
type = "float"
low = -5
high = 5
[space."[/]"]
type = "categorical"
choices = ["[/]", "[red]", "\\u001b[2J"]
"""


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture
def problem(tmp_path, request):
    def write(body="    return p['x[i]'] ** 2"):
        module = f"terminal_{abs(hash(request.node.nodeid))}"
        (tmp_path / f"{module}.py").write_text(f"def cost(p):\n{body}\n")
        path = tmp_path / "[b]problem.toml"
        path.write_text(PROBLEM.format(module=module))
        return path

    return write


def harmless(text):
    return all(letter.isprintable() or letter == "\n" for letter in text)


@pytest.mark.parametrize("text", NASTY, ids=ascii)
def test_a_text_is_printed_as_it_is(text):
    for made in (cell(text), plain(text)):
        console = Console(file=io.StringIO(), force_terminal=False, width=80)
        console.print(made)
        printed = console.file.getvalue().rstrip("\n")
        assert printed == text if text.isprintable() else harmless(printed)
        assert printed.encode()


def test_what_acts_on_a_terminal_is_written_as_an_escape_sequence():
    assert printable("\x1b[2J") == "\\x1b[2J"
    assert printable("größe [/] \N{SNOWMAN}") == "größe [/] \N{SNOWMAN}"
    assert printable("a\nb") == "a\\nb"
    assert printable_lines("a\n\tb\x00") == "a\n    b\\x00"


@pytest.mark.parametrize("terminal", [True, False])
def test_the_live_display(terminal):
    console = Console(file=io.StringIO(), force_terminal=terminal, width=200, color_system=None)
    params = dict.fromkeys(NAMES, "[/]\x1b[2J")
    with progress_display(10, console) as show:
        show(Progress(1, 10, 0, 1, 6, 1.0, 0, Best(params, 1.0, 0.0, 1)))
    written = console.file.getvalue()
    assert "\x1b[2J" not in written
    assert "\x1b[31mred" not in written
    if terminal:
        assert "x[i]=[/]\\x1b[2J" in written
        assert ":bomb:=" in written


def test_run_and_show_and_resume(problem, run_command):
    path = problem()
    for command in (["run", path], ["show", path.with_suffix(".db")], ["resume", path.with_suffix(".db")]):
        result = run_command(main, [*map(str, command)])
        assert result.exit_code == 0, result.stderr
        assert "x[i]" in result.stdout
        assert "[/]" in result.stdout
        assert "[b]problem.db" in result.stdout
        assert harmless(result.stdout)


def test_errors_of_the_objective(problem, run_command):
    path = problem(body="    raise ValueError('[/] \\x1b[2J [red]')")
    result = run_command(main, ["run", str(path)])
    assert result.exit_code == 1
    assert "[/] \\x1b[2J [red]" in result.stdout
    assert harmless(result.stdout + result.stderr)
    shown = run_command(main, ["show", str(path.with_suffix(".db"))])
    assert "[/] \\x1b[2J [red]" in shown.stdout
    assert harmless(shown.stdout)


def test_check(problem, run_command):
    result = run_command(main, ["check", str(problem())])
    assert result.exit_code == 0, result.stderr
    assert all(text in result.stdout for text in ("x[i]", "[/]", "[b]problem.toml"))
    assert harmless(result.stdout)


def test_a_check_that_fails(problem, run_command):
    failing = run_command(main, ["check", str(problem(body="    raise ValueError('[/] \\x1b[2J [red]')"))])
    assert "[/] \\x1b[2J [red]" in failing.stdout
    assert harmless(failing.stdout)


def test_warnings_of_the_library(problem, run_command, monkeypatch):
    """Each command in a process of its own has a handler of its own."""
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    path = problem(body="    if p['[/]'] != '[/]':\n        raise ValueError('[/] \\x1b[2J')\n    return 1.0")
    result = run_command(main, ["run", str(path), "--quiet"])
    assert "[/] \\x1b[2J" in result.stderr
    assert harmless(result.stderr)


@pytest.mark.parametrize("command", ["show", "resume", "report", "salvage"])
def test_paths_in_messages(tmp_path, run_command, command):
    path = tmp_path / "[/]\x1b[2J.db"
    result = run_command(main, [command, str(path), *([str(tmp_path / "new.db")] if command == "salvage" else [])])
    assert result.exit_code == 2
    assert "[/]\\x1b[2J.db" in result.stderr
    assert harmless(result.stderr)


def test_init_in_a_folder_with_brackets(tmp_path, run_command):
    result = run_command(main, ["init", str(tmp_path / "[/]")])
    assert result.exit_code == 0
    assert "[/]" in result.stdout
    assert "[objective] command" in result.stdout


def test_cells_of_a_csv_file_are_no_formulas(tmp_path, run_command):
    path = tmp_path / "run.db"
    choices = ["=1+1", "+1", "-1", "@SUM(A1)", "plain", "1-2"]
    space = Space({"=x": Float(-5, 5), "c": Categorical(choices)})

    def cost(p):
        return failure("=cmd|' /C calc'!A0") if p["=x"] < 0 else -p["=x"]

    minimize(cost, space, budget=60, seed=1, run_file=path)
    table = list(csv.DictReader(io.StringIO(run_command(main, ["export", str(path), "--csv", "-"]).stdout)))
    assert {row["c"] for row in table} <= {"'=1+1", "'+1", "'-1", "'@SUM(A1)", "plain", "1-2"}
    assert {row["error"] for row in table} == {"", "'=cmd|' /C calc'!A0"}
    assert all(float(row["'=x"]) or True for row in table)
    assert min(float(row["value"]) for row in table if row["value"]) < 0  # numbers are left as they are
