"""External programs: whatever they do wrong is a failed evaluation with its reason, and the run goes on."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path

import pytest

from mixcma import Bool, Float, Int, Space, minimize
from mixcma.evaluation.command import Command, read_value
from mixcma.store import read

PYTHON = sys.executable
PARAMS = {"x": 0.1, "n": 3, "on": True}


def script(text, *more, **options):
    """A program of Python; braces in its text are not placeholders."""
    return Command((PYTHON, "-c", text.replace("{", "{{").replace("}", "}}"), *more), **options)


def called(text, *more, **options):
    return script(text, *more, **options)(PARAMS, 7)


def test_parameters_reach_the_program_in_full_precision():
    outcome = called("import sys; print(sys.argv[1:]); print(float(sys.argv[1]))", "{x}", "{n}", "{on}")
    assert outcome.value == 0.1
    text = "import sys; assert sys.argv[1:] == ['a0.10', '003', 'true', '7', '{}'], sys.argv; print(1)"
    assert called(text, "a{x:.2f}", "{n:03d}", "{on}", "{id}", "{{}}").value == 1.0


def test_there_is_no_shell(tmp_path):
    outcome = called("import sys; print(len(sys.argv[1]))", "; touch {id} $HOME *", folder=str(tmp_path))
    assert outcome.value == len("; touch 7 $HOME *")
    assert list(tmp_path.iterdir()) == []


def test_the_parameters_as_a_file():
    outcome = called("import json, sys; print(sum(json.load(open(sys.argv[1])).values()))", "{params}")
    assert outcome.value == 4.1


@pytest.mark.parametrize(
    ("printed", "rule", "value"),
    [
        ("chatter\n1.5e3\n\n", "stdout", 1500.0),
        ('{"cost": 2.5}', "json:cost", 2.5),
        ('warming up\n{"a": {"b": [1, 4]}}', "json:a.b.1", 4.0),
        ("cost=3\ncost=4\n", "regex:cost=(.*)", 4.0),
        ("inf", "stdout", float("inf")),
        ("+Infinity", "stdout", float("inf")),
        ("-.5E-1", "stdout", -0.05),
        ('{"cost": "2.5"}', "json:cost", 2.5),
    ],
)
def test_where_the_value_stands(printed, rule, value):
    assert called(f"print({printed!r})", value=rule).value == value


def test_values_and_constraints_from_files(tmp_path):
    text = "open('out.txt', 'w').write('hello\\n5.5\\n'); open('g.txt', 'w').write('-1, 2')"
    outcome = called(text, value="file:out.txt", constraints="file:g.txt", folder=str(tmp_path))
    assert (outcome.value, list(outcome.constraints)) == (5.5, [-1.0, 2.0])


@pytest.mark.parametrize(
    ("rule", "expected"), [("json:g", [-1.0, 0.5]), (r"regex:(-?\d+\.\d+)", [-1.0, 0.5]), ("json:one", [3.0])]
)
def test_constraints(rule, expected):
    outcome = called("""print('{"v": 1, "g": [-1.0, 0.5], "one": 3}')""", value="json:v", constraints=rule)
    assert list(outcome.constraints) == expected


def test_parameters_come_before_other_placeholders():
    params = {"id": 175.5, "params": 2, "here": True, "x.y": 3, "x[0]": 4, "0": 5}
    text = "import sys; assert sys.argv[1:] == ['175.5', '2', 'true', '3', '4', '5'], sys.argv; print(1)"
    command = script(text, "{id}", "{params}", "{here}", "{x.y}", "{x[0]}", "{0}")
    assert command(params, 7).value == 1.0


# Files from earlier evaluations

FILES = ["value", "constraints"]


def reading_a_file(rule, text, path="out.txt", **options):
    rules = {"value": "stdout", rule: f"file:{path}"}
    return script(text, **rules, **options)


@pytest.mark.parametrize("rule", FILES)
@pytest.mark.parametrize("workdir", [None, "runs", "runs/{id}"])
def test_a_file_of_an_earlier_evaluation_never_counts(rule, workdir, tmp_path):
    options = {"folder": str(tmp_path), "workdir": workdir}
    assert not reading_a_file(rule, "print(open('out.txt', 'w').write('5'))", **options)(PARAMS, 7).failed
    outcome = reading_a_file(rule, "print(1)", **options)(PARAMS, 7)
    assert outcome.error == "expected the file out.txt, but the program did not write it"


def test_of_a_symbolic_link_the_link_is_removed_and_not_the_file(tmp_path):
    kept = tmp_path / "kept.txt"
    kept.write_text("5")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "out.txt").symlink_to(kept)
    assert reading_a_file("value", "pass", folder=str(folder))(PARAMS, 7).failed
    assert kept.read_text() == "5"
    assert not (folder / "out.txt").is_symlink()


@pytest.mark.parametrize("path", ["link/out.txt", "../elsewhere/out.txt", "{elsewhere}/out.txt"])
def test_outside_of_the_folder_nothing_is_removed_and_yet_an_old_file_does_not_count(path, tmp_path):
    elsewhere, folder = tmp_path / "elsewhere", tmp_path / "folder"
    elsewhere.mkdir()
    folder.mkdir()
    (folder / "link").symlink_to(elsewhere)
    (elsewhere / "out.txt").write_text("5")
    path = path.format(elsewhere=elsewhere)
    outcome = reading_a_file("value", "pass", path, folder=str(folder))(PARAMS, 7)
    assert "the program did not write it" in outcome.error
    assert (elsewhere / "out.txt").read_text() == "5"
    written = reading_a_file("value", f"open({path!r}, 'w').write('12.5')", path, folder=str(folder))(PARAMS, 7)
    assert written.value == 12.5


@pytest.mark.parametrize("rule", FILES)
@pytest.mark.parametrize("workers", [2, "dask:tcp://host:8786"])
@pytest.mark.parametrize(("workdir", "path"), [(None, "out.txt"), ("runs", "out.txt"), ("runs/{id}", "../out.txt")])
def test_evaluations_that_would_share_a_file_are_refused(rule, workers, workdir, path, tmp_path):
    command = reading_a_file(rule, "print(1)", path, workdir=workdir, folder=str(tmp_path))
    with pytest.raises(ValueError, match=r"^objective: with more than one worker, .*out.txt; add workdir = "):
        minimize(command, Space({"x": Float(-5, 5)}), budget=12, workers=workers)


def test_evaluations_in_folders_of_their_own_run_side_by_side(tmp_path):
    text = "import sys; open('out.txt', 'w').write(sys.argv[1])"
    command = script(text, "{x}", value="file:out.txt", workdir="runs/{id}", folder=str(tmp_path))
    space, path = Space({"x": Float(-5, 5)}), tmp_path / "run.db"
    minimize(command, space, budget=12, seed=1, workers=2, run_file=path)
    rows = [row for row in read(path).rows if row.evaluated]
    assert [row.outcome.value for row in rows] == [row.params["x"] for row in rows]


# Processes that a program leaves behind


def test_a_program_that_has_exited_is_finished_whoever_holds_its_streams(tmp_path):
    """The process in the background ends only after the evaluation, when somebody opens the pipe."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    child = "import sys; open(sys.argv[1]).read()"
    text = """
import subprocess, sys
subprocess.Popen([sys.executable, "-c", *sys.argv[1:]])
print("x" * 9999, 7, sep="\\n")
"""
    outcome = script(text, child, str(pipe))(PARAMS, 7)
    with open(pipe, "w"):
        assert outcome.value == 7.0


def test_what_a_program_wrote_is_read_to_the_end_though_others_hold_its_streams(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    shell = f"cat {pipe} & head -c 5000000 /dev/zero; echo; echo 7"
    outcome = Command(("sh", "-c", shell))(PARAMS, 7)
    with open(pipe, "w"):
        assert outcome.value == 7.0


def test_json_that_is_nested_too_deeply_is_a_failed_evaluation():
    outcome = called("print('[' * 100_000 + ']' * 100_000)", value="json:cost")
    assert outcome.error.startswith("expected JSON in its stdout, but got '[[[")
    assert len(outcome.error) < 200


FAILING = {
    "prints nothing": (script("pass"), "empty"),
    "prints no number": (script("print('done')"), "'done'"),
    "prints NaN": (script("print('nan')"), "nan"),
    "prints a date": (script("print('2024_01_01')"), "'2024_01_01'"),
    "prints the digits of another script": (script("print(ascii(12)); print('\u0661\u0662')"), "expected a number"),
    "prints a date in JSON": (script("""print('{"cost": "2024_01_01"}')""", value="json:cost"), "'2024_01_01'"),
    "exits 3": (script("import sys; print(1); print('out of licences', file=sys.stderr); sys.exit(3)"), "status 3"),
    "says why": (script("import sys; print('out of licences', file=sys.stderr); sys.exit(3)"), "out of licences"),
    "is killed": (script("import os; os.kill(os.getpid(), 9)"), "signal 9"),
    "writes 100 MB": (script("import sys\nfor _ in range(100): sys.stdout.write('x' * 2**20)"), "more than 10 MB"),
    "writes 100 MB of errors": (
        script("import sys\nfor _ in range(100): sys.stderr.write('x' * 2**20)"),
        "more than 10 MB",
    ),
    "is not there": (Command(("./no-such-program", "{x}")), "no-such-program"),
    "prints no JSON": (script("print('{')", value="json:cost"), "expected JSON"),
    "prints other JSON": (script("print('{}')", value="json:cost"), "no cost"),
    "prints JSON without a number": (script("""print('{"cost": [1]}')""", value="json:cost"), "expected a number"),
    "does not match": (script("print(1)", value="regex:cost=(.*)"), "matches 'cost=(.*)' in its stdout, but got '1"),
    "writes no file": (script("print(1)", value="file:out.txt"), "did not write it"),
    "constraint is no number": (
        script("""print('{"v": 1, "g": ["x"]}')""", value="json:v", constraints="json:g"),
        "'x'",
    ),
    "binary rubbish": (script("import sys; sys.stdout.buffer.write(bytes(range(256)))"), "expected a number"),
}


@pytest.mark.parametrize("name", FAILING)
def test_what_goes_wrong_is_a_failed_evaluation_with_the_reason(name):
    command, words = FAILING[name]
    outcome = command(PARAMS, 7)
    assert outcome.failed
    assert words in outcome.error
    assert len(outcome.error) < 600


@pytest.mark.parametrize(
    ("program", "words"),
    [("program", "write ./program"), ("./program", "chmod +x"), ("./program --x", "a separate string")],
)
def test_a_program_that_cannot_be_started_comes_with_a_remedy(program, words, tmp_path):
    (tmp_path / "program").write_text("#!/bin/sh\necho 1\n")
    assert words in Command((program,), folder=str(tmp_path))(PARAMS, 1).error


def test_a_relative_program_and_here_are_beside_the_problem_file(tmp_path):
    path = tmp_path / "program"
    path.write_text("#!/bin/sh\ncat $1\n")
    path.chmod(0o755)
    (tmp_path / "data.txt").write_text("42")
    command = Command(("./program", "{here}/data.txt"), workdir="runs/{id}", folder=str(tmp_path))
    assert command(PARAMS, 1).value == 42.0


def test_a_program_that_may_not_be_executed(tmp_path):
    path = tmp_path / "program"
    path.write_text("#!/bin/sh\necho 1\n")
    outcome = Command((str(path),))(PARAMS, 1)
    assert outcome.failed
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    assert Command((str(path),))(PARAMS, 1).value == 1.0


def test_each_evaluation_in_its_folder_with_its_output_kept_on_failure(tmp_path):
    text = "import sys; print('hello'); print('trouble', file=sys.stderr); sys.exit(int(sys.argv[1]) % 2)"
    command = script(text, "{id}", workdir="runs/{id}", folder=str(tmp_path))
    command(PARAMS, 1)
    command(PARAMS, 2)  # prints no number
    good = script("print(3)", workdir="runs/{id}", folder=str(tmp_path))
    assert good(PARAMS, 3).value == 3.0
    for id in (1, 2):
        folder = tmp_path / "runs" / str(id)
        assert (folder / "stdout.txt").read_text() == "hello\n"
        assert (folder / "stderr.txt").read_text() == "trouble\n"
        assert json.loads((folder / "params.json").read_text()) == PARAMS
    assert not (tmp_path / "runs" / "3" / "stdout.txt").exists()


LEFT = {
    "a link": "os.symlink('../../precious', name)",
    "a link to nothing": "os.symlink('../../nothing', name)",
    "a hard link": "os.link('../../precious', name)",
    "a pipe": "os.mkfifo(name)",
}


@pytest.mark.parametrize("left", LEFT)
def test_what_a_failed_program_leaves_where_its_output_is_kept_is_replaced_and_not_followed(left, tmp_path):
    (tmp_path / "precious").write_text("kept")
    text = f"""
import os, sys
print("hello"); print("trouble", file=sys.stderr)
for name in ("stdout.txt", "stderr.txt"): {LEFT[left]}
sys.exit(1)
"""
    outcome = script(text, workdir="runs/{id}", folder=str(tmp_path))(PARAMS, 1)
    assert outcome.error.startswith("the program ended with exit status 1")
    assert (tmp_path / "precious").read_text() == "kept"
    assert not (tmp_path / "nothing").exists()
    assert (tmp_path / "runs" / "1" / "stdout.txt").read_text() == "hello\n"
    assert (tmp_path / "runs" / "1" / "stderr.txt").read_text() == "trouble\n"


@pytest.mark.parametrize("text", ["os.mkdir('stdout.txt')", "shutil.rmtree(os.getcwd())"])
def test_where_its_output_cannot_be_kept_the_error_is_still_that_of_the_program(text, tmp_path):
    command = script(f"import os, shutil, sys; {text}; sys.exit(3)", workdir="runs/{id}", folder=str(tmp_path))
    assert command(PARAMS, 1).error == "the program ended with exit status 3"


@pytest.mark.parametrize("left", LEFT)
def test_the_file_of_parameters_replaces_what_is_in_its_place(left, tmp_path):
    (tmp_path / "precious").write_text("kept")
    where = {"workdir": "runs/{id}", "folder": str(tmp_path)}
    leaving = script(f"import os; name = 'params.json'; os.remove(name); {LEFT[left]}; print(1)", **where)
    assert leaving(PARAMS, 1).value == 1.0
    reading = script("import json, sys; print(json.load(open(sys.argv[1]))['x'])", "{params}", **where)
    assert reading(PARAMS, 1).value == 0.1
    assert (tmp_path / "precious").read_text() == "kept"


def test_evaluations_that_share_a_folder_do_not_share_the_file_of_their_parameters(tmp_path):
    text = "import sys; print(sys.argv[1]); sys.exit(1)"
    command = script(text, "{params}", workdir="runs", folder=str(tmp_path))
    paths = {command(PARAMS, id).error.rpartition(" ")[2] for id in (1, 2)}
    assert len(paths) == 2


@pytest.mark.parametrize("made", ["os.mkfifo('out.txt')", "os.mkdir('out.txt')", "os.symlink('/dev/zero', 'out.txt')"])
def test_a_result_file_that_is_none_is_a_failed_evaluation(made, tmp_path):
    command = script(f"import os; {made}", value="file:out.txt", workdir="runs/{id}", folder=str(tmp_path))
    assert command(PARAMS, 1).error == "expected the file out.txt, but the program did not write it"


def test_a_pipe_that_takes_the_place_of_the_result_file_while_it_is_read_does_not_block(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "is_file", lambda path: True)
    os.mkfifo(tmp_path / "out.txt")
    with pytest.raises(ValueError, match=r"expected a number in out\.txt, but it is empty"):
        read_value("file:out.txt", b"", tmp_path)


TEXT = """
import sys, time
x, n = float(sys.argv[1]), int(sys.argv[2])
if n == 1: sys.exit(3)
if n == 2: print("nothing")
elif n == 3: print("nan")
elif n == 4: time.sleep(600)
else: print(x * x + n)
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_a_run_over_a_program_that_fails_in_every_way_goes_on(workers, tmp_path):
    space = Space({"x": Float(-5, 5), "n": Int(0, 5), "on": Bool()})
    command = script(TEXT, "{x}", "{n}", "{on}")
    result = minimize(
        command, space, budget=40, seed=1, workers=workers, timeout=1.0, run_file=tmp_path / "run.db", popsize=8
    )
    assert result.evaluations == 40
    assert 0 < result.failures < 40
    rows = [row for row in read(tmp_path / "run.db").rows if row.evaluated]
    reasons = {1: "exit status 3", 2: "'nothing'", 3: "nan", 4: "timed out after 1 s"}
    assert {row.params["n"] for row in rows} >= set(reasons)
    for row in rows:
        if row.params["n"] in reasons:
            assert reasons[row.params["n"]] in row.outcome.error
            assert row.status == ("timed out" if row.params["n"] == 4 else "failed")
        else:
            assert row.status == "done"
