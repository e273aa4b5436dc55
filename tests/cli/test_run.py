"""The commands as a user types them: init, check, run, resume, show, export, report."""

from __future__ import annotations

import csv
import io
import json
import os
import select
import signal
import subprocess
import sys

import optuna
import pytest

from mixcma import Space, minimize
from mixcma.cli import main
from mixcma.store import read

PYTHON_PROBLEM = """
[objective]
python = "{module}:cost"

[run]
budget = {budget}
seed = 1
{more}

[space.x]
type = "float"
low = -5
high = 5

[space.n]
type = "int"
low = 0
high = 9
"""


@pytest.fixture(autouse=True)
def environment(tmp_path_factory, monkeypatch):
    """A wide terminal, and no traces in the home of who runs the tests."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))


@pytest.fixture
def python_problem(tmp_path, request):
    """Writes a problem whose objective is a Python function of a module of its own."""

    def write(budget=60, more="", body="    return p['x'] ** 2 + (p['n'] - 3) ** 2"):
        module = f"objective_{abs(hash(request.node.nodeid))}"
        (tmp_path / f"{module}.py").write_text(f"def cost(p):\n{body}\n")
        path = tmp_path / "problem.toml"
        path.write_text(PYTHON_PROBLEM.format(module=module, budget=budget, more=more))
        return path

    return write


def mixcma(*arguments, cwd=None, **options):
    """The command in a process of its own."""
    command = [sys.executable, "-c", "from mixcma.cli import main; main()", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False, **options)


def test_what_init_writes_can_be_checked_run_shown_resumed_and_reported(tmp_path):
    assert mixcma("init", cwd=tmp_path).returncode == 0
    checked = mixcma("check", "problem.toml", cwd=tmp_path)
    assert checked.returncode == 0, checked.stderr
    assert "feasible" in checked.stdout
    run = mixcma("run", "problem.toml", "--budget", 30, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    for words in ("best value", "radius", "30 evaluations", "budget", "mixcma resume problem.db", "mixcma report"):
        assert words in run.stdout
    shown = mixcma("show", "problem.db", cwd=tmp_path)
    assert "30 of 30 evaluations" in shown.stdout
    resumed = mixcma("resume", "problem.db", "--budget", 40, cwd=tmp_path)
    assert "40 evaluations" in resumed.stdout
    assert sum(row.evaluated for row in read(tmp_path / "problem.db").rows) == 40
    reported = mixcma("report", "problem.db", "-o", "page.html", cwd=tmp_path)
    assert reported.returncode == 0, reported.stderr
    assert (tmp_path / "page.html").read_text().startswith("<!DOCTYPE html>")


BRANCHES = """\
[objective]
command = ["{python}", "-c", "import sys; print(max(sys.argv[1:3]))", "{{a|-}}", "{{b|-}}", "{{kind}}"]

[run]
budget = 25
seed = 1

[space.kind]
type = "categorical"
choices = ["left", "right"]

[space.a]
type = "int"
low = 3
high = 9
when = {{ kind = "left" }}

[space.b]
type = "int"
low = 1
high = 9
when = {{ kind = "right" }}
"""


def test_a_program_receives_what_exists(tmp_path, run_command):
    path = tmp_path / "problem.toml"
    path.write_text(BRANCHES.format(python=sys.executable))
    checked = run_command(main, ["check", str(path)])
    assert checked.exit_code == 0, checked.output
    assert "exists only where kind is" in checked.stdout
    assert run_command(main, ["run", str(path), "--quiet"]).exit_code == 0
    record = read(tmp_path / "problem.db")
    assert not any(row.outcome.failed for row in record.rows)
    assert min(row.outcome.value for row in record.rows) == 1.0
    assert {tuple(row.params) for row in record.rows} == {("kind", "a"), ("kind", "b")}
    shown = run_command(main, ["show", str(tmp_path / "problem.db")]).stdout
    assert "right" in shown
    exported = tmp_path / "points.csv"
    assert run_command(main, ["export", str(tmp_path / "problem.db"), "--csv", str(exported)]).exit_code == 0
    head, *lines = [line.split(",") for line in exported.read_text().splitlines()]
    assert head[-3:] == ["kind", "a", "b"]
    assert all((line[-2] == "") == (line[-3] == "right") for line in lines)


def test_what_to_type_next_depends_on_why_it_stopped(python_problem, run_command):
    path = python_problem(budget=20)
    spent = run_command(main, ["run", str(path)]).stdout
    assert f"mixcma resume {path.with_suffix('.db')} --budget 40" in spent
    reached = run_command(main, ["run", str(path), "--target", "1e9"]).stdout
    assert "--budget" not in reached


def test_an_edited_objective_is_warned_of(python_problem, run_command, tmp_path):
    path = python_problem(budget=20)
    run_command(main, ["run", str(path), "--quiet"])
    assert "has changed" not in run_command(main, ["run", str(path)]).stderr
    path.write_text(path.read_text().replace("[run]", "timeout = 100\n[run]"))
    assert "The objective has changed" in run_command(main, ["run", str(path), "--budget", "30"]).stderr
    resumed = run_command(main, ["resume", str(path.with_suffix(".db")), "--budget", "40"])
    assert "has changed since the run was begun, and is not read here" in " ".join(resumed.stderr.split())


def test_a_budget_below_what_was_spent_is_not_kept(python_problem, run_command):
    path = python_problem(budget=40)
    run_command(main, ["run", str(path), "--quiet"])
    run_command(main, ["run", str(path), "--quiet", "--budget", "10"])
    assert "40 of 40 evaluations" in " ".join(run_command(main, ["show", str(path.with_suffix(".db"))]).stdout.split())


def test_workers_that_are_no_workers_are_refused(python_problem, run_command):
    result = run_command(main, ["run", str(python_problem()), "--workers", "many"])
    assert result.exit_code == 2
    assert "dask:tcp://host:8786" in result.stderr


def test_init_overwrites_nothing(tmp_path, run_command):
    (tmp_path / "problem.toml").write_text("mine")
    result = run_command(main, ["init", str(tmp_path)])
    assert result.exit_code == 2
    assert "left as it is" in result.stderr
    assert (tmp_path / "problem.toml").read_text() == "mine"
    assert not (tmp_path / "simulate.py").exists()


def test_a_run_equals_minimize(python_problem, run_command):
    path = python_problem()
    result = run_command(main, ["run", str(path), "--quiet"])
    assert result.exit_code == 0, result.output
    record = read(path.with_suffix(".db"))
    space = Space.from_dict(record.settings["space"])
    expected = minimize(lambda p: p["x"] ** 2 + (p["n"] - 3) ** 2, space, budget=60, seed=1)
    assert min(row.outcome.value for row in record.rows if row.evaluated) == expected.value


def test_options_override_the_file(python_problem, run_command, tmp_path):
    path = python_problem()
    options = [
        "--budget",
        "20",
        "--seed",
        "5",
        "--popsize",
        "5",
        "--method",
        "cma",
        "--run-file",
        str(tmp_path / "o.db"),
    ]
    assert run_command(main, ["run", str(path), "--quiet", *options]).exit_code == 0
    settings = read(tmp_path / "o.db").settings
    assert (settings["budget"], settings["seed"], settings["popsize"]) == (20, 5, 5)
    assert settings["method"]["type"] == "Cma"
    assert not path.with_suffix(".db").exists()


def test_another_seed_on_the_same_run_file_is_refused_with_a_sentence(python_problem, run_command):
    path = python_problem()
    assert run_command(main, ["run", str(path), "--quiet"]).exit_code == 0
    result = run_command(main, ["run", str(path), "--seed", "2"])
    assert result.exit_code == 2
    assert "seed was 1 and is now 2" in result.stderr


@pytest.mark.parametrize("method", ["mix", "mix-without-model"])
def test_json_for_machines(python_problem, run_command, method):
    path = python_problem(more=f'method = "{method}"')
    result = run_command(main, ["run", str(path), "--json"])
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    generations = len(lines) - 1
    assert [line["event"] for line in lines] == ["generation"] * generations + ["result"]
    assert generations == 10 if method != "mix" else generations > 10
    assert lines[-1]["evaluations"] == 60
    assert lines[-2]["evaluations"] == 60 or method == "mix"  # the last generation may not be whole
    assert lines[-1]["stop"] == "budget"
    assert lines[-1]["params"]["n"] in range(10)


def test_quiet_prints_only_the_result(python_problem, run_command):
    shown = run_command(main, ["run", str(python_problem()), "--quiet"]).stdout
    assert shown.lstrip().startswith("best value")


def test_a_run_in_which_everything_fails_says_so(python_problem, run_command):
    path = python_problem(body="    raise RuntimeError('no licence')")
    result = run_command(main, ["run", str(path), "--quiet"])
    assert result.exit_code == 1
    assert "No evaluation succeeded" in result.stdout
    assert "no licence" in result.stdout
    checked = run_command(main, ["check", str(path)])
    assert checked.exit_code == 1
    assert "no licence" in checked.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_run_stopped_and_resumed_ends_like_the_unbroken_one(python_problem, tmp_path, number, workers):
    calls, pipe = tmp_path / "calls", tmp_path / "pipe"
    body = f"""
    import os, threading
    with open({str(calls)!r}, "a+") as file:
        file.write("called\\n")
        file.seek(0)
        last = len(file.readlines()) >= 20
    if last and os.path.exists({str(pipe)!r}):  # says that it has begun, and never returns
        with open({str(pipe)!r}, "w") as file:
            file.write(".")
        threading.Event().wait()
    return p["x"] ** 2 + (p["n"] - 3) ** 2
"""
    path = python_problem(budget=60, more=f"workers = {workers}", body=body)
    assert mixcma("run", path, "--run-file", tmp_path / "unbroken.db", "--quiet").returncode == 0
    calls.unlink()
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDWR)
    command = [sys.executable, "-X", "faulthandler", "-c", "from mixcma.cli import main; main()", "run", str(path)]
    # where the tests run in a shell's background, SIGINT is ignored, and children would inherit that
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    signal.signal(signal.SIGINT, before)
    assert select.select([reading], [], [], 60)[0]
    process.send_signal(number)
    try:
        shown, errors = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)  # where it hangs, in the message of the assertion
        shown, errors = process.communicate(timeout=60)
    os.close(reading)
    pipe.unlink()
    assert process.returncode == 130, errors
    assert "interrupted" in shown
    assert f"mixcma run {path}" in shown
    run_file = path.with_suffix(".db")
    resumed = mixcma("resume", run_file, "--json")
    assert resumed.returncode == 0, resumed.stderr
    assert json.loads(resumed.stdout.splitlines()[-1])["evaluations"] == 60
    unbroken, broken = (
        [(row.id, row.run, row.generation, row.slot, row.params, row.status, row.outcome) for row in read(file).rows]
        for file in (tmp_path / "unbroken.db", run_file)
    )
    assert broken == unbroken


def test_show_watch_ends_with_the_run(python_problem, run_command):
    path = python_problem()
    run_command(main, ["run", str(path), "--quiet"])
    result = run_command(main, ["show", str(path.with_suffix(".db")), "--watch"])
    assert result.exit_code == 0
    assert "60 of 60 evaluations" in " ".join(result.stdout.split())


@pytest.mark.parametrize("command", ["show", "resume", "report", "export"])
def test_a_file_that_is_no_run_file_is_refused_with_a_sentence(command, tmp_path, run_command):
    path = tmp_path / "text.db"
    path.write_text("hello")
    more = ["--csv", "-"] if command == "export" else []
    result = run_command(main, [command, str(path), *more])
    assert result.exit_code == 2
    assert "expected a run file of mixcma" in result.stderr
    missing = run_command(main, [command, str(tmp_path / "none.db"), *more])
    assert missing.exit_code == 2
    assert "there is none" in missing.stderr


def test_resume_of_a_run_begun_in_python_says_how(tmp_path, run_command):
    space = Space.from_json('{"x": {"type": "float", "low": 0, "high": 1}}')
    minimize(lambda p: p["x"], space, budget=10, seed=1, run_file=tmp_path / "run.db")
    result = run_command(main, ["resume", str(tmp_path / "run.db")])
    assert result.exit_code == 2
    assert "mixcma.resume(" in result.stderr


def test_export_as_csv_and_json(python_problem, run_command):
    path = python_problem(body="    if p['n'] == 4:\n        raise RuntimeError('four, \"4\"')\n    return p['x']")
    run_command(main, ["run", str(path), "--quiet"])
    run_file = path.with_suffix(".db")
    rows = read(run_file).rows
    table = list(csv.DictReader(io.StringIO(run_command(main, ["export", str(run_file), "--csv", "-"]).stdout)))
    assert [float(line["x"]) for line in table] == [row.params["x"] for row in rows]
    done = [row for row in rows if row.status == "done"]
    assert [line["value"] for line in table if line["status"] == "done"] == [repr(row.outcome.value) for row in done]
    assert {line["error"] for line in table} == {"", 'RuntimeError: four, "4"'}
    whole = json.loads(run_command(main, ["export", str(run_file), "--json", "-"]).stdout)
    assert [entry["params"] for entry in whole["evaluations"]] == [row.params for row in rows]
    assert whole["settings"]["seed"] == 1


def test_export_to_optuna(python_problem, run_command, tmp_path):
    path = python_problem(body="    if p['n'] == 4:\n        raise RuntimeError('four')\n    return p['x']")
    run_command(main, ["run", str(path), "--quiet"])
    run_file, storage = path.with_suffix(".db"), f"sqlite:///{tmp_path}/optuna.db"
    assert run_command(main, ["export", str(run_file), "--optuna", storage]).exit_code == 0
    study = optuna.load_study(study_name="problem", storage=storage)
    rows = [row for row in read(run_file).rows if row.evaluated]
    assert [trial.params for trial in study.trials] == [row.params for row in rows]
    assert study.best_value == min(row.outcome.value for row in rows)
    states = [trial.state.name for trial in study.trials]
    assert states == ["FAIL" if row.outcome.failed else "COMPLETE" for row in rows]
    again = run_command(main, ["export", str(run_file), "--optuna", storage])
    assert again.exit_code == 2
    assert "--study" in again.stderr


def test_export_wants_to_know_what(python_problem, run_command):
    path = python_problem()
    run_command(main, ["run", str(path), "--quiet"])
    assert run_command(main, ["export", str(path.with_suffix(".db"))]).exit_code == 2
