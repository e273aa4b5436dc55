"""Everything wrong in a problem file is reported at once: the line, the key and the remedy."""

from __future__ import annotations

import pytest

from mixcma.cli import main
from mixcma.problem_file import WrongProblem, load_problem

GOOD = """\
[objective]
command = ["./program", "{radius}", "{ribs}"]
value = "stdout"
timeout = 10

[run]
budget = 100
seed = 1

[space.radius]
type = "float"
low = 10
high = 200

[space.ribs]
type = "int"
low = 1
high = 12
"""


def swapped(old, new):
    assert old in GOOD
    return GOOD.replace(old, new)


COMMAND = 'command = ["./program", "{radius}", "{ribs}"]'

# text of the file, line, key, words of the message
WRONG = {
    "syntax": (swapped("budget = 100", "budget = "), 7, "TOML", "correct the syntax"),
    "unclosed text": (swapped('value = "stdout"', 'value = "stdout'), 3, "TOML", "correct the syntax"),
    "key twice": (swapped("seed = 1", "seed = 1\nseed = 2"), 9, "TOML", "correct the syntax"),
    "empty file": ("", 1, "[objective]", "is missing"),
    "no objective": (GOOD[GOOD.index("[run]") :], 1, "[objective]", "is missing"),
    "no run": (swapped("[run]\nbudget = 100\nseed = 1\n", ""), 1, "[run]", "is missing"),
    "no space": (GOOD[: GOOD.index("[space.radius]")], 1, "[space]", "is missing"),
    "unknown table": (GOOD + "[runs]\nbudget = 1\n", 19, "[runs]", "did you mean run?"),
    "unknown key": (swapped("budget = 100", "budget = 100\nbugdet = 1"), 8, "[run] bugdet", "did you mean budget?"),
    "unknown objective key": (swapped("timeout = 10", "timout = 10"), 4, "[objective] timout", "did you mean timeout?"),
    "no budget": (swapped("budget = 100\n", ""), 6, "[run] budget", "budget = 1000"),
    "budget of zero": (swapped("budget = 100", "budget = 0"), 7, "[run] budget", "at least 1"),
    "budget as text": (swapped("budget = 100", 'budget = "100"'), 7, "[run] budget", "an integer"),
    "negative seed": (swapped("seed = 1", "seed = -1"), 8, "[run] seed", "at least 0"),
    "target as text": (swapped("seed = 1", 'target = "low"'), 8, "[run] target", "a number"),
    "unknown method": (swapped("seed = 1", 'method = "nelder"'), 8, "[run] method", "margin"),
    "small popsize": (swapped("seed = 1", "popsize = 2"), 8, "[run] popsize", "at least 4"),
    "no workers": (swapped("seed = 1", "workers = 0"), 8, "[run] workers", "workers = 4"),
    "wrong workers": (swapped("seed = 1", 'workers = "many"'), 8, "[run] workers", "dask:tcp://host:8786"),
    "restarts as text": (swapped("seed = 1", 'restarts = "yes"'), 8, "[run] restarts", "true, false"),
    "asynchronous as number": (swapped("seed = 1", "asynchronous = 1"), 8, "[run] asynchronous", "true or false"),
    "x0 outside": (swapped("seed = 1", "x0 = {radius = 5, ribs = 2}"), 8, "[run] x0", "radius"),
    "x0 incomplete": (swapped("seed = 1", "x0 = {radius = 50}"), 8, "[run] x0", "ribs"),
    "x0 with an unknown name": (
        swapped("seed = 1", "x0 = {radius = 50, ribs = 2, rib = 1}"), 8, "[run] x0.rib", "did you mean ribs?",
    ),
    "history not there": (swapped("seed = 1", 'history = "no.db"'), 8, "[run] history", "correct the path"),
    "wrong format": (swapped("{radius}", "{radius:zz}"), 2, "[objective] command", "write for instance {radius}"),
    "command and python": (swapped("timeout = 10", 'python = "a:b"'), 1, "[objective]", "keep one"),
    "neither": (swapped(COMMAND + "\n", ""), 1, "[objective]", "neither command nor python"),
    "command as text": (swapped(COMMAND, 'command = "./program {radius}"'), 2, "[objective] command", "no shell"),
    "empty command": (swapped(COMMAND, "command = []"), 2, "[objective] command", "a list of strings"),
    "unknown placeholder": (swapped("{radius}", "{raduis}"), 2, "[objective] command", "did you mean {radius}?"),
    "attribute of a variable": (swapped("{radius}", "{radius.real}"), 2, "[objective] command", "write {radius}"),
    "part of a variable": (swapped("{ribs}", "{ribs[0]}"), 2, "[objective] command", "write {ribs}"),
    "numbered placeholder": (swapped("{radius}", "{0}"), 2, "[objective] command", "write {radius}"),
    "empty placeholder": (swapped("{ribs}", "{}"), 2, "[objective] command", "write {radius}"),
    "wrong conversion": (swapped("{ribs}", "{ribs!z}"), 2, "[objective] command", "write for instance {ribs}"),
    "conversion": (swapped("{ribs}", "{ribs!r}"), 2, "[objective] command", "write for instance {ribs}"),
    "conversion and format": (swapped("{radius}", "{radius!s:>9}"), 2, "[objective] command", "write for instance {r"),
    "unknown rule without command": (
        swapped(COMMAND, "").replace("stdout", "jsn:cost"), 3, "[objective] value", '"json:..."',
    ),
    "unknown rule with a wrong command": (
        swapped(COMMAND, 'command = "ls"').replace("stdout", "jsn:cost"), 3, "[objective] value", '"json:..."',
    ),
    "log behind a wrong low": (
        swapped("low = 10", 'low = "ten"\nlog = "yes"'), 13, "[space] radius.log", "true or false",
    ),
    "variable called id": (
        swapped("[space.ribs]", "[space.id]").replace("{ribs}", "{id}"), 15, "[space] id", "rename the variable",
    ),
    "variable called params": (
        swapped("[space.ribs]", "[space.params]").replace("{ribs}", "{params}"), 15, "[space] params", "rename",
    ),
    "variable called here": (
        swapped("[space.ribs]", "[space.here]").replace("{ribs}", "{here}"), 15, "[space] here", "rename",
    ),
    "workdir with an open brace": (
        swapped("timeout = 10", 'workdir = "runs/{"'), 4, "[objective] workdir", "runs/{id}",
    ),
    "workdir with a wrong format": (
        swapped("timeout = 10", 'workdir = "runs/{id:zz}"'), 4, "[objective] workdir", "runs/{id}",
    ),
    "condition on an unknown variable": (
        GOOD + 'when = { radios = 50 }\n', 19, "[space] ribs.when", "did you mean 'radius'?",
    ),
    "condition on a float": (GOOD + "when = { radius = 50 }\n", 19, "[space] ribs.when", "add a Bool"),
    "condition that is no table": (GOOD + 'when = "radius"\n', 19, "[space] ribs.when", "a dict from names"),
    "placeholder of what does not always exist": (
        GOOD + 'when = { on = true }\n[space.on]\ntype = "bool"\n', 2, "[objective] command", "{ribs|none}",
    ),
    "variable left out": (swapped(', "{ribs}"', ""), 2, "[objective] command", "does not receive ribs"),
    "brace left open": (swapped("{radius}", "{radius"), 2, "[objective] command", "not well formed"),
    "unknown rule": (swapped('"stdout"', '"stderr"'), 3, "[objective] value", '"json:..."'),
    "rule without key": (swapped('"stdout"', '"json:"'), 3, "[objective] value", "choose one"),
    "wrong regex": (swapped('"stdout"', '"regex:(["'), 3, "[objective] value", "not a regular expression"),
    "constraints on stdout": (
        swapped("timeout = 10", 'constraints = "stdout"'), 4, "[objective] constraints", '"regex:..."',
    ),
    "negative timeout": (swapped("timeout = 10", "timeout = -1"), 4, "[objective] timeout", "above 0"),
    "workdir of a variable": (swapped("timeout = 10", 'workdir = "{ribs}"'), 4, "[objective] workdir", "runs/{id}"),
    "python without function": (swapped(COMMAND, 'python = "module"'), 2, "[objective] python", "module:function"),
    "python not there": (swapped(COMMAND, 'python = "no_such:f"'), 2, "[objective] python", "cannot be imported"),
    "python not a function": (swapped(COMMAND, 'python = "math:pi"'), 2, "[objective] python", "name a function"),
    "unknown type": (swapped('type = "float"', 'type = "flaot"'), 11, "[space] radius.type", "float"),
    "no type": (swapped('type = "int"\n', ""), 15, "[space] ribs", "type"),
    "low above high": (swapped("low = 10", "low = 300"), 12, "[space] radius.low", "low"),
    "no high": (swapped("high = 12", ""), 15, "[space] ribs", "high"),
    "text as bound": (swapped("low = 1\n", 'low = "one"\n'), 17, "[space] ribs.low", "integer"),
    "unknown key of a variable": (swapped("high = 200", "hihg = 200"), 13, "[space] radius.hihg", "high"),
    "log over zero": (swapped("low = 10\nhigh = 200", "low = 0\nhigh = 9\nlog = true"), 12, "[space] radius", "low"),
    "variable without table": (swapped("[space.radius]", "[space]\nx = 3\n[space.radius]"), 11, "[space] x", "table"),
    "only constants": (swapped("high = 200", "high = 10").replace("high = 12", "high = 1"), 10, "[space]", "widen"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_has_its_line_its_key_and_a_remedy(name, tmp_path):
    text, line, key, words = WRONG[name]
    path = tmp_path / "problem.toml"
    path.write_text(text)
    with pytest.raises(WrongProblem) as caught:
        load_problem(path)
    found = [(m.line, m.key) for m in caught.value.mistakes]
    assert any(m.line == line and m.key.startswith(key) and words in m.text for m in caught.value.mistakes), found
    assert all(";" in m.text for m in caught.value.mistakes)


@pytest.mark.parametrize("command", ["run", "check"])
@pytest.mark.parametrize("name", ["syntax", "unknown key", "unknown placeholder", "low above high", "empty file"])
def test_the_commands_print_mistakes_and_exit_with_2(name, command, tmp_path, run_command):
    path = tmp_path / "problem.toml"
    path.write_text(WRONG[name][0])
    result = run_command(main, [command, str(path)])
    assert result.exit_code == 2
    assert f"{path}:{WRONG[name][1]}: {WRONG[name][2]}" in result.stderr
    assert "Traceback" not in result.stderr
    assert not list(tmp_path.glob("*.db"))


def test_all_mistakes_are_found_at_once(tmp_path):
    path = tmp_path / "problem.toml"
    path.write_text(
        GOOD.replace("budget = 100", "budget = 0")
        .replace('"stdout"', '"json:"')
        .replace("low = 10", "low = 300")
        .replace("[run]", "[run]\nworker = 2")
    )
    with pytest.raises(WrongProblem) as caught:
        load_problem(path)
    mistakes = [(m.line, m.key) for m in caught.value.mistakes]
    assert mistakes == [
        (3, "[objective] value"), (7, "[run] worker"), (8, "[run] budget"), (13, "[space] radius.low"),
    ]  # fmt: skip


def test_every_wrong_argument_of_a_command_is_found_at_once(tmp_path):
    path = tmp_path / "problem.toml"
    wrong = '"{0}", "{}", "{ribs.y}", "{ribs[0]}", "{nope}", "{ribs", "ribs}", "{ribs!r}", "{radius:zz}"'
    path.write_text(swapped('"{radius}", "{ribs}"', wrong))
    with pytest.raises(WrongProblem) as caught:
        load_problem(path)
    texts = [mistake.text for mistake in caught.value.mistakes]
    begins = (
        "'{ribs' is", "'ribs}' is", "'{ribs!r}' is", "{} is", "{0} is", "{nope} is", "{ribs.y} is", "{ribs[0]} is",
        "'{radius:zz}' is",
    )  # fmt: skip
    assert len(texts) == len(begins)
    assert all(text.startswith(begin) for text, begin in zip(texts, begins))


def test_a_file_that_is_not_there_or_not_text(tmp_path):
    with pytest.raises(WrongProblem, match="mixcma init"):
        load_problem(tmp_path / "none.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(WrongProblem, match="UTF-8"):
        load_problem(tmp_path / "binary.toml")
    (tmp_path / "run.db").write_bytes(b"SQLite format 3\x00\xff")
    with pytest.raises(WrongProblem, match="mixcma resume"):
        load_problem(tmp_path / "run.db")


def test_the_good_file_is_good(tmp_path):
    path = tmp_path / "problem.toml"
    path.write_text(GOOD)
    problem = load_problem(path)
    assert problem.run == {"budget": 100, "seed": 1}
    assert list(problem.space) == ["radius", "ribs"]
    assert problem.timeout == 10


def test_a_python_function_may_have_variables_called_as_the_placeholders_of_commands(tmp_path):
    path = tmp_path / "problem.toml"
    path.write_text(swapped(COMMAND + '\nvalue = "stdout"', 'python = "math:fsum"').replace("space.ribs", "space.id"))
    assert list(load_problem(path).space) == ["radius", "id"]


SHARING = {
    "value": swapped('"stdout"', '"file:out.txt"'),
    "constraints": swapped("timeout = 10", 'constraints = "file:g.txt"'),
}


@pytest.mark.parametrize("rule", SHARING)
@pytest.mark.parametrize("where", ["file", "option"])
def test_more_workers_are_refused_where_evaluations_would_share_a_file(where, rule, tmp_path, run_command):
    path = tmp_path / "problem.toml"
    path.write_text(SHARING[rule].replace("seed = 1", "workers = 2" if where == "file" else "seed = 1"))
    result = run_command(main, ["run", str(path), *(["--workers", "2"] if where == "option" else [])])
    assert result.exit_code == 2
    assert 'add workdir = "runs/{id}"' in " ".join(result.stderr.split())
    assert not list(tmp_path.glob("*.db"))


@pytest.mark.parametrize("rule", SHARING)
def test_check_refuses_more_workers_where_evaluations_would_share_a_file(rule, tmp_path, run_command):
    path = tmp_path / "problem.toml"
    path.write_text(SHARING[rule].replace("seed = 1", "workers = 2"))
    result = run_command(main, ["check", str(path)])
    assert result.exit_code == 2
    assert 'add workdir = "runs/{id}"' in " ".join(result.stderr.split())
    assert "trial" not in result.stdout


def test_the_option_of_one_worker_overrides_the_file_where_evaluations_would_share_a_file(tmp_path, run_command):
    path = tmp_path / "problem.toml"
    command = COMMAND.replace("./program", "sh', '-c', 'echo 1 > out.txt").replace('"', "'")
    path.write_text(SHARING["value"].replace("seed = 1", "workers = 2").replace(COMMAND, command))
    result = run_command(main, ["run", str(path), "--workers", "1", "--budget", "4", "--quiet"])
    assert result.exit_code == 0, result.stderr
    assert "4 evaluations" in result.stdout


def test_there_are_at_least_thirty_wrong_files():
    assert len(WRONG) >= 30
