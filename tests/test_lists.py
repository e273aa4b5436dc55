"""Lists in the README, the documentation, the help and the report are those of the code, no more and no less."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import tomllib
from dataclasses import fields
from pathlib import Path

import click
import pytest

import mixcma
from mixcma.cli import main
from mixcma.cli.init import PROBLEM
from mixcma.core.methods import METHODS
from mixcma.core.stopping import REASONS
from mixcma.problem_file.reading import OBJECTIVE_KEYS, RULES, RUN_KEYS
from mixcma.report.page import SETTINGS_SHOWN
from mixcma.run.optimizer import DEFAULT_METHOD
from mixcma.search.settings import KINDS as METHOD_CLASSES
from mixcma.search.settings import Settings
from mixcma.space import space as space_module

ROOT = Path(__file__).parents[1]
KINDS = space_module.KINDS
PAGES = ["README.md", *sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("docs/*.md"))]
# Options of `minimize` that a problem file has elsewhere, or that only a program can give.
ONLY_IN_PYTHON = {"objective", "space", "timeout", "notes", "callback", "progress", "on_error", "stopping"}


def text_of(page):
    return (ROOT / page).read_text()


def section(page, heading):
    """The text below a heading, up to the next heading of its level."""
    level = heading.split()[0]
    found = re.search(rf"^{re.escape(heading)}\n(.*?)(?=^{level} |\Z)", text_of(page), re.DOTALL | re.MULTILINE)
    assert found, f"{page} has no heading {heading!r}"
    return found[1]


def rows(text):
    """The rows of the tables in a text, without their heads, as lists of cells."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    rules = [i for i, line in enumerate(lines) if set(line) <= set("|- ")]
    heads = {i - 1 for i in rules} | set(rules)
    return [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for i, line in enumerate(lines) if i not in heads
    ]


def codes(cell):
    return re.findall(r"`([^`]+)`", cell)


def quoted(text):
    return set(re.findall(r'"([a-z][a-z-]*)"', text))


def help_of(*command):
    found, context = main, click.Context(main, info_name="mixcma")
    for name in command:
        found = found.commands[name]
        context = click.Context(found, info_name=name, parent=context)
    return " ".join(found.get_help(context).split())


def options_of(command):
    """The long options of a command."""
    options = [option for option in main.commands[command].params if isinstance(option, click.Option)]
    return {name for option in options for name in option.opts if name.startswith("--")}


# Methods


def test_the_readme_lists_the_methods():
    listed = [name for row in rows(section("README.md", "## Methods")) for name in quoted(row[0])]
    assert sorted(listed) == sorted(METHODS)


def test_the_page_of_the_problem_file_lists_the_methods():
    (row,) = [row for row in rows(section("docs/problem_file.md", "## [run]")) if row[0] == "`method`"]
    able = {name for name, method in METHODS.items() if method.takes_categories}
    everything, _, only = row[1].partition("; only ")
    assert quoted(everything) == set(METHODS)
    assert quoted(only) == able
    assert row[2] == f'`"{DEFAULT_METHOD}"`'


@pytest.mark.parametrize("page", ["README.md", "docs/spaces.md"])
def test_the_methods_that_search_categories_are_named(page):
    (sentence,) = re.findall(r"Only [^.;]*can search categories of three or more choices", text_of(page))
    assert quoted(sentence) == {name for name, method in METHODS.items() if method.takes_categories}


def test_the_page_of_the_methods_says_when_to_take_each():
    assert quoted(section("docs/methods.md", "## Which method when")) == set(METHODS)


def test_the_help_names_the_methods_and_the_default():
    (help_text,) = [option.help for option in main.commands["run"].params if option.name == "method"]
    assert set(re.findall(r"[a-z][a-z-]*", help_text.replace("(the default)", ""))) - {"or"} == set(METHODS)
    assert f"{DEFAULT_METHOD} (the default)" in help_text


def test_the_docstring_of_the_optimizer_names_the_methods():
    about = re.search(
        r"\n    method\n(.*?)\n    seed\n", inspect.getdoc(mixcma.Optimizer).replace("\n", "\n    "), re.S
    )
    assert quoted(about[1]) == set(METHODS)


def test_the_report_can_name_every_method():
    assert {type(method).__name__ for method in METHODS.values()} == set(METHOD_CLASSES)


# Kinds of variables


def test_the_pages_list_the_kinds_of_variables():
    in_toml = {kind for row in rows(text_of("docs/spaces.md")) for kind in re.findall(r'type = "(\w+)"', row[2])}
    in_python = {name for row in rows(text_of("docs/spaces.md")) for name in re.findall(r"`(\w+)\(", row[1])}
    in_readme = set(
        re.findall(r"`([A-Z]\w+)\(", section("README.md", "## Use it from Python").split("| what you have")[1])
    )
    classes = {kind.__name__ for kind in KINDS.values()}
    assert in_toml == set(KINDS)
    assert in_python == in_readme == classes


def test_the_keys_of_a_variable_are_listed():
    listed = {row[0].strip('`"'): codes(row[1]) for row in rows(section("docs/problem_file.md", "## [space.NAME]"))}
    known = {kind: [field.name for field in fields(variable)] for kind, variable in KINDS.items()}
    known["categorical"].remove("mean")  # a Categorical refuses them: choices have no order
    known["categorical"].remove("std")
    assert {kind: sorted(keys) for kind, keys in listed.items()} == {kind: sorted(keys) for kind, keys in known.items()}


def test_a_new_problem_file_knows_every_kind():
    assert {kind for kind in KINDS if f'"{kind}"' in PROBLEM} == set(KINDS)


@pytest.mark.parametrize("where", ["README.md", "docs/index.md", "help", "pyproject.toml", "docstring"])
def test_the_first_sentence_names_all_that_can_be_searched(where):
    texts = {"help": help_of(), "docstring": mixcma.__doc__}
    text = " ".join((texts.get(where) or text_of(where)).replace("**", "").split())
    assert "a black box over floats, integers, booleans, number sets and categories, all at once" in text


# Settings


def test_every_argument_of_minimize_is_described():
    documented = re.findall(r"^(\w[\w, ]*)$", inspect.getdoc(mixcma.minimize).split("Parameters")[1], re.MULTILINE)
    names = [name for line in documented for name in line.split(", ")]
    assert sorted(set(names) - {"Examples"}) == sorted(inspect.signature(mixcma.minimize).parameters)


@pytest.mark.parametrize(("table", "keys"), [("objective", OBJECTIVE_KEYS), ("run", RUN_KEYS)])
def test_every_key_of_a_problem_file_is_described(table, keys):
    listed = [row[0].strip("`") for row in rows(section("docs/problem_file.md", f"## [{table}]"))]
    assert sorted(listed) == sorted(keys)


def test_a_problem_file_can_say_what_minimize_takes():
    assert set(RUN_KEYS) == set(inspect.signature(mixcma.minimize).parameters) - ONLY_IN_PYTHON


@pytest.mark.parametrize("key", RULES)
def test_the_ways_to_find_a_result_are_described(key):
    (row,) = [row for row in rows(section("docs/problem_file.md", "## [objective]")) if row[0] == f"`{key}`"]
    assert re.findall(r'`"(\w+)[:"]', row[1]) == list(RULES[key])


def test_the_report_shows_every_setting():
    shown_elsewhere = {"space", "method", "stopping"}
    assert set(SETTINGS_SHOWN) | shown_elsewhere == {field.name for field in fields(Settings)}


# Commands


def test_the_commands_are_listed():
    listed = [re.match(r"`mixcma (\w+)", row[0])[1] for row in rows(section("docs/problem_file.md", "## The commands"))]
    assert sorted(listed) == sorted(main.commands)


@pytest.mark.parametrize("command", ["run", "resume", "show", "report", "export"])
def test_the_options_of_a_command_are_listed(command):
    listed = section("docs/problem_file.md", "## The commands")
    (row,) = [row for row in rows(listed) if row[0].startswith(f"`mixcma {command}")]
    assert set(re.findall(r"--[a-z-]+", row[1])) | {"--out"} & options_of(command) == options_of(command)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_calls_only_commands_and_options_that_exist(page):
    parts = re.split(r"^```.*$", text_of(page), flags=re.MULTILINE)  # prose and blocks in turn
    lines = [line.split("#")[0] for block in parts[1::2] for line in block.splitlines()]
    codes_in_prose = [code for prose in parts[::2] for code in codes(prose)]
    called = [line for line in [*lines, *codes_in_prose] if line.startswith("mixcma ")]
    for line in called:
        words = line.split()
        command = main.commands.get(words[1])
        if command is None:
            assert words[1] in ("--help", "--version", "COMMAND"), line
            continue
        if isinstance(command, click.Group) and len(words) > 2 and not words[2].startswith("-"):
            command = command.commands[words[2]]
        known = {name for option in command.params for name in option.opts} | {"--help"}
        assert {word for word in words if re.fullmatch(r"--?[a-z][a-z-]*", word)} <= known, line


def test_the_readme_names_every_command():
    assert {name for name in main.commands if f"mixcma {name}" in text_of("README.md")} == set(main.commands)


# Ends of a run


def test_every_reason_to_stop_is_listed():
    listed = [row[0].strip("`") for row in rows(text_of("docs/stopping.md"))]
    assert sorted(listed) == sorted(REASONS)


# Packages


def project():
    return tomllib.loads(text_of("pyproject.toml"))["project"]


def package(requirement):
    return re.match(r"[\w-]+", requirement)[0].lower()


def test_the_readme_lists_the_extras():
    sentence = re.search(r"The extras are (.*?); combine", text_of("README.md"), re.DOTALL)[1]
    extras = project()["optional-dependencies"]
    assert {code for code in codes(sentence) if not code.startswith("mixcma ")} == set(extras)
    of_report = re.search(r"`report` \(([^)]*)\)", sentence)[1].split(", ")
    assert sorted(of_report) == sorted(map(package, extras["report"]))


def test_the_readme_lists_what_is_always_needed():
    sentence = " ".join(re.search(r"Without extras mixcma needs (.*?)\.", text_of("README.md"), re.DOTALL)[1].split())
    assert re.split(r", | and ", sentence.lower()) == sorted(map(package, project()["dependencies"]))


@pytest.mark.parametrize("page", PAGES)
def test_a_page_installs_only_extras_that_exist(page):
    asked = re.findall(r'pip install "[^"\[]*\[([^\]]*)\]', text_of(page))
    assert {extra for listed in asked for extra in listed.split(",")} <= set(project()["optional-dependencies"])


WITHOUT = """
import sys
sys.modules.update({name: None for name in sys.argv[1].split(",")})
from mixcma.cli import main
main(sys.argv[2:])
"""


def without(packages, *command):
    return subprocess.run(
        [sys.executable, "-c", WITHOUT, packages, *map(str, command)], capture_output=True, text=True, check=False
    )


def test_without_extras_the_commands_work_and_say_what_to_install(tmp_path):
    mixcma.minimize(lambda p: p["x"], mixcma.Space({"x": mixcma.Float(0, 1)}), budget=6, run_file=tmp_path / "run.db")
    extras = "plotly,jinja2,matplotlib,optuna,distributed,jax"
    exported = without(extras, "export", tmp_path / "run.db", "--csv", tmp_path / "run.csv")
    assert exported.returncode == 0, exported.stderr
    report = without("jinja2", "report", tmp_path / "run.db")
    assert report.returncode == 2
    assert (
        report.stderr == "the report needs jinja2, which is not installed; install it with: pip install jinja2 plotly\n"
    )
    optuna = without("optuna", "export", tmp_path / "run.db", "--optuna", f"sqlite:///{tmp_path}/study.db")
    assert 'pip install "optuna>=5"' in optuna.stderr


# Pages, names and files


def test_the_readme_lists_the_pages():
    listed = text_of("README.md").split("Its pages are")[1].split("##")[0]
    assert set(re.findall(r"\]\((docs/\w+\.md)\)", listed)) == set(PAGES) - {"README.md"}


def test_the_page_of_the_interface_lists_what_can_be_imported():
    listed = re.findall(r"^::: mixcma\.(\w+)$", text_of("docs/api.md"), re.MULTILINE)
    assert sorted(listed) == sorted(set(mixcma.__all__) - {"Method", "__version__"})


@pytest.mark.parametrize("page", PAGES)
def test_the_files_that_a_page_names_exist(page):
    roots = (ROOT, ROOT / "src" / "mixcma")
    named = re.findall(r"\b(?:python )?((?:core|tests|benchmarks|examples|problems)/[\w/.]*\w)", text_of(page))
    missing = [name for name in named if not any((root / name).exists() for root in roots)]
    assert missing == []
