"""Reading problem.toml: all mistakes in it are found at once, each with its line and a remedy."""

from __future__ import annotations

import difflib
import importlib
import re
import string
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mixcma.core.methods import METHODS
from mixcma.evaluation import Objective, checked_workers
from mixcma.evaluation.command import OWN_PLACEHOLDERS, Command, fill, placeholders, split_field
from mixcma.problem_file.lines import key_lines, line_of
from mixcma.space import Categorical, Space


@dataclass(frozen=True)
class Mistake:
    """One thing that is wrong in a problem file."""

    line: int
    key: str
    text: str

    def __str__(self) -> str:
        return f"line {self.line}, {self.key}: {self.text}"


class WrongProblem(ValueError):
    """A problem file has mistakes; `mistakes` lists them all, in the order of their lines."""

    def __init__(self, path: object, mistakes: Iterable[Mistake]) -> None:
        self.path = path
        self.mistakes = sorted(mistakes, key=lambda mistake: mistake.line)
        super().__init__(f"{path}: " + "; ".join(map(str, self.mistakes)))


@dataclass(frozen=True)
class Problem:
    """What a problem file describes: an objective, a space, and how to run."""

    text: str  # the text of the file, which is stored with the run
    folder: Path  # where its relative paths start
    objective: Objective
    space: Space
    timeout: float | None
    run: dict[str, Any] = field(default_factory=dict)  # arguments of `minimize`


# The keys of each table, and the kinds of rules that say where a program writes its results.
OBJECTIVE_KEYS = ("command", "python", "value", "constraints", "timeout", "workdir")
RUN_KEYS = (
    "budget", "target", "method", "seed", "popsize", "restarts", "workers", "asynchronous", "run_file", "x0",
    "history", "cache",
)  # fmt: skip
TABLES = ("objective", "run", "space")
RULES = {"value": ("stdout", "json", "regex", "file"), "constraints": ("json", "regex", "file")}


def load_problem(path: str | Path) -> Problem:
    """Read a problem file; raises a `WrongProblem` with all the mistakes in it."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise WrongProblem(
            path, [Mistake(1, "file", "it does not exist; check the path, or write one to start from: mixcma init")]
        ) from None
    except UnicodeDecodeError:
        is_run = path.read_bytes().startswith(b"SQLite format 3")
        text = f"it is a run file; continue it: mixcma resume {path}" if is_run else "it is not UTF-8; save it as UTF-8"
        raise WrongProblem(path, [Mistake(1, "file", text)]) from None
    except OSError as error:
        raise WrongProblem(path, [Mistake(1, "file", f"it cannot be read ({error}); check the path")]) from None
    return problem_from(text, path.resolve().parent, path)


def problem_from(text: str, folder: Path, path: object) -> Problem:
    """The problem that `text` describes; `path` is for error messages."""
    try:
        given = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        where = re.search(r"\(at line (\d+)", str(error))
        line = int(where[1]) if where else len(text.splitlines())
        raise WrongProblem(path, [Mistake(line, "TOML", f"{error}; correct the syntax")]) from None
    return _Reader(text, given, folder).problem(path)


class _Reader:
    """Reads the tables of one file and collects the mistakes."""

    def __init__(self, text: str, given: dict[str, Any], folder: Path) -> None:
        self._text, self._given, self._folder = text, given, folder
        self._lines = key_lines(text)
        self._mistakes: list[Mistake] = []

    def problem(self, path: object) -> Problem:
        self._unknown((), self._given, TABLES)
        tables = {name: self._table(name) for name in TABLES}
        space = self._space(tables["space"])
        objective = self._objective(tables["objective"], space)
        run = self._run(tables["run"], space)
        timeout = self._timeout(tables["objective"])
        if self._mistakes or space is None or objective is None:
            raise WrongProblem(path, self._mistakes)
        return Problem(self._text, self._folder, objective, space, timeout, run)

    def _wrong(self, path: tuple[str, ...], text: str) -> None:
        key = f"[{path[0]}] {'.'.join(path[1:])}".strip() if path else "file"
        self._mistakes.append(Mistake(line_of(self._lines, path), key, text))

    def _unknown(self, table: tuple[str, ...], given: Mapping[str, Any], known: Iterable[str]) -> None:
        known = list(known)
        for key in given:
            if key not in known:
                close = difflib.get_close_matches(key, known, n=1)
                remedy = f"did you mean {close[0]}?" if close else f"known here: {', '.join(known)}"
                self._wrong((*table, key), f"unknown {'key' if table else 'table'}; {remedy}")

    def _table(self, name: str) -> dict[str, Any]:
        table = self._given.get(name)
        if table is None:
            examples = {"objective": 'command = ["./program", "{x}"]', "run": "budget = 1000", "space": "[space.x]"}
            self._wrong((name,), f"the table [{name}] is missing; add it, for instance with {examples[name]}")
            return {}
        if not isinstance(table, dict):
            self._wrong((name,), f"expected a table, but got {table!r}; write [{name}]")
            return {}
        return table

    # [space]

    def _space(self, tables: dict[str, Any]) -> Space | None:
        good: dict[str, Any] = {}
        for name, table in tables.items():
            try:
                # on their own variables have no parents: their conditions are for the whole space
                alone = {key: v for key, v in table.items() if key != "when"} if isinstance(table, dict) else table
                Space.from_dict({name: alone})
                good[name] = table
            except ValueError as error:
                blamed = self._blamed(table, str(error))
                self._wrong(("space", name, *blamed), _without_name(str(error), name))
                self._other_keys(name, table, blamed)
        if not tables:
            if isinstance(self._given.get("space"), dict):
                self._wrong(("space",), "it is empty; add a variable, for instance [space.x] with type, low and high")
            return None
        if len(good) < len(tables):
            return None
        space = self._whole_space(good)
        if space is not None and not space.free:
            self._wrong(("space",), "every variable has a single value; widen the bounds of one")
            return None
        return space

    def _whole_space(self, tables: dict[str, Any]) -> Space | None:
        try:
            return Space.from_dict(tables)
        except ValueError as error:  # in a condition
            name = next((name for name in tables if str(error).startswith(f"variable {name!r}: ")), "")
            self._wrong(("space", name, "when"), _without_name(str(error), name))
            return None

    def _blamed(self, table: object, error: str) -> tuple[str, ...]:
        """The key of a variable's table that an error is about, as far as its text says."""
        what, _, remedy = error.partition(": ")[2].partition("; ")
        if isinstance(table, dict) and not remedy.startswith("add "):  # else a key is missing
            for key in table:
                if re.search(rf"\b{re.escape(key)}\b", what):
                    return (key,)
        return ()

    def _other_keys(self, name: str, table: object, blamed: tuple[str, ...]) -> None:
        """Report the keys whose values have the wrong type, besides the one that is blamed already."""
        for key, value in table.items() if isinstance(table, dict) else ():
            check = _VARIABLE_CHECKS.get(key)
            if check is not None and key not in blamed and not check[0](value):
                self._wrong(("space", name, key), f"expected {check[1]}, but got {value!r:.80}; {check[2]}")

    # [objective]

    def _objective(self, table: dict[str, Any], space: Space | None) -> Objective | None:
        self._unknown(("objective",), table, OBJECTIVE_KEYS)
        if "command" in table or "python" not in table:
            self._results(table)
        if ("command" in table) == ("python" in table):
            if table or isinstance(self._given.get("objective"), dict):
                what = "both command and python are" if "command" in table else "neither command nor python is"
                remedy = 'keep one: command = ["./program", "{x}"] or python = "module:function"'
                self._wrong(("objective",), f"{what} given; {remedy}")
            return None
        if "python" in table:
            for key in ("value", "constraints", "workdir"):
                if key in table:
                    self._wrong(
                        ("objective", key), "it is for commands; a Python function returns its value, so remove it"
                    )
            return self._python(table["python"])
        return self._command(table, space)

    def _python(self, name: object) -> Objective | None:
        if not isinstance(name, str) or not re.fullmatch(r"[\w.]+:\w+", name):
            self._wrong(("objective", "python"), f'expected "module:function", but got {name!r}; write it in this form')
            return None
        module, _, function = name.partition(":")
        if str(self._folder) not in sys.path:
            sys.path.insert(0, str(self._folder))
        try:
            found: Objective = getattr(importlib.import_module(module), function)
        except Exception as error:  # importing runs the user's code
            reason = f"{type(error).__name__}: {error}"
            self._wrong(
                ("objective", "python"), f"{name} cannot be imported ({reason}); correct the name or the module"
            )
            return None
        if not callable(found):
            self._wrong(("objective", "python"), f"expected a function, but {name} is {found!r:.80}; name a function")
            return None
        return found

    def _command(self, table: dict[str, Any], space: Space | None) -> Command | None:
        command = table["command"]
        if not isinstance(command, list) or not command or not all(isinstance(part, str) for part in command):
            remedy = 'write ["./program", "--radius", "{radius}"]; there is no shell'
            self._wrong(("objective", "command"), f"expected a list of strings, but got {command!r:.80}; {remedy}")
            return None
        self._placeholders(command, space)
        value = table.get("value", "stdout")
        return Command(tuple(command), value, table.get("constraints"), table.get("workdir"), str(self._folder))

    def _results(self, table: dict[str, Any]) -> None:
        """Check where the results of a program are found."""
        for key in ("value", "constraints"):
            if key in table:
                self._rule(key, table[key])
        workdir = table.get("workdir")
        if workdir is not None and not _is_workdir(workdir):
            self._wrong(("objective", "workdir"), f'expected a path, with at most {{id}} in it, but got {workdir!r}; '
                                                  'write "runs/{id}"')  # fmt: skip

    def _placeholders(self, command: list[str], space: Space | None) -> None:
        parts = [part for part in command if self._is_well_formed(part)]
        if space is None:
            return
        self._clashes(space)
        known = {*OWN_PLACEHOLDERS, *space}
        fields = {field: split_field(field, known) for part in parts for field in placeholders(part)}
        used = {name for name, _ in fields.values()}
        for name in sorted(used - known):
            self._wrong(("objective", "command"), f"{{{name}}} is not a variable; {_instead_of(name, space)}")
        unsaid = {field for field, (name, instead) in fields.items() if instead is None and name in space.conditions}
        for name in sorted(unsaid):
            text = f"{name} exists only where {space.where(name)}; say what stands there elsewhere: {{{name}|none}}"
            self._wrong(("objective", "command"), text)
        wrong = unsaid | {field for field, (name, _) in fields.items() if name not in known}
        good = [part for part in parts if not placeholders(part) & wrong]
        self._formats(good, space)
        if "params" not in used and len(parts) == len(command):  # else the others may have been meant to hold them
            for name in space.free:
                if name not in used:
                    remedy = f'add "{{{name}}}", or "{{params}}" for a JSON file with all of them'
                    self._wrong(("objective", "command"), f"the program does not receive {name}; {remedy}")

    def _is_well_formed(self, part: str) -> bool:
        """Whether the braces of an argument match and hold no conversions; if not, that is reported."""
        try:
            conversions = [conversion for _, _, _, conversion in string.Formatter().parse(part) if conversion]
        except ValueError as error:
            text = f"{part!r} is not well formed ({error}); write {{{{ for a literal brace"
        else:
            if not conversions:
                return True
            text = f"{part!r} is not well formed (!{conversions[0]} is not allowed); write for instance {_plain(part)}"
        self._wrong(("objective", "command"), text)
        return False

    def _clashes(self, space: Space) -> None:
        """Variables must not have the names of other placeholders."""
        for name in OWN_PLACEHOLDERS:
            if name in space:
                text = f"in a command, {{{name}}} does not stand for a variable; rename the variable"
                self._wrong(("space", name), text)

    def _formats(self, command: list[str], space: Space) -> None:
        """Check that the placeholders of every argument can be replaced by values of their variables."""
        samples: dict[str, Any] = {"float": 0.5, "int": 1, "bool": True, "discrete": 0.5}
        params = {
            name: next(iter(variable.choices)) if isinstance(variable, Categorical) else samples[variable.kind]
            for name, variable in space.items()
        }
        for part in command:
            try:
                for tried in (params, {name: params[name] for name in space if name not in space.conditions}):
                    fill(part, tried, id=1, params_file=Path("params.json"), here=".")
            except ValueError as error:
                text = f"{part!r} is not well formed ({error}); write for instance {_plain(part)}"
                self._wrong(("objective", "command"), text)

    def _rule(self, key: str, rule: object) -> None:
        kinds = RULES[key]
        kind, _, argument = rule.partition(":") if isinstance(rule, str) else ("", "", "")
        shown = ", ".join(f'"{known}"' if known == "stdout" else f'"{known}:..."' for known in kinds)
        if kind not in kinds or (kind == "stdout") == bool(argument):
            self._wrong(("objective", key), f"expected one of {shown}, but got {rule!r}; choose one of them")
        elif kind == "regex":
            try:
                re.compile(argument)
            except re.error as error:
                self._wrong(("objective", key), f"{argument!r} is not a regular expression ({error}); correct it")

    def _timeout(self, table: dict[str, Any]) -> float | None:
        timeout = table.get("timeout")
        if timeout is not None and (not _is_number(timeout) or not timeout > 0):
            text = f"expected a number of seconds above 0, but got {timeout!r}; leave it out for no limit"
            self._wrong(("objective", "timeout"), text)
        return timeout

    # [run]

    def _run(self, table: dict[str, Any], space: Space | None) -> dict[str, Any]:
        self._unknown(("run",), table, RUN_KEYS)
        if "budget" not in table and isinstance(self._given.get("run"), dict):
            self._wrong(
                ("run", "budget"), "it is missing; add the largest number of evaluations, for instance budget = 1000"
            )
        for key, value in table.items():
            check = _RUN_CHECKS.get(key)
            if check is not None and not check[0](value):
                self._wrong(("run", key), f"expected {check[1]}, but got {value!r:.80}; {check[2]}")
        if space is not None and "x0" in table:
            self._points(table["x0"], space)
        history = table.get("history")
        if _is_text(history) and not (self._folder / str(history)).exists():
            self._wrong(("run", "history"), f"there is no {history} in {self._folder}; correct the path")
        return {key: value for key, value in table.items() if key in RUN_KEYS}

    def _points(self, x0: Any, space: Space) -> None:
        for point in x0 if isinstance(x0, list) else [x0]:
            if not isinstance(point, dict):
                self._wrong(
                    ("run", "x0"), f"expected a table of values, but got {point!r:.80}; write x0 = {{ x = 1.0 }}"
                )
                continue
            self._unknown(("run", "x0"), point, space)
            given = {name: value for name, value in point.items() if name in space}
            errors = [_error_in(space, name, given) for name in space if name not in space.conditions]
            if not any(errors):  # the conditions of the others are known
                errors = [_error_of(space.check_params, given)]
            for error in filter(None, errors):
                self._wrong(("run", "x0"), error)


def _error_in(space: Space, name: str, point: Mapping[str, Any]) -> str | None:
    """What is wrong with the value of a variable that exists everywhere."""
    return _error_of(space[name].check_value, name, point[name]) if name in point else f"{name} is missing; add it"


def _error_of(check: Callable[..., object], *arguments: object) -> str | None:
    try:
        check(*arguments)
    except ValueError as error:
        return str(error)
    return None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value


def _is_count(least: int) -> Callable[[object], bool]:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= least


def _is_bool(value: object) -> bool:
    return isinstance(value, bool)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _are_workers(value: object) -> bool:
    try:
        checked_workers(value)
    except ValueError:
        return False
    return True


# key -> whether a value is valid, what is expected, the remedy
_RUN_CHECKS: dict[str, tuple[Callable[[Any], bool], str, str]] = {
    "budget": (_is_count(1), "an integer of at least 1", "write budget = 1000"),
    "target": (_is_number, "a number", "leave it out to use the whole budget"),
    "method": (lambda name: name in METHODS, f"one of {', '.join(METHODS)}", "leave it out for the default"),
    "seed": (_is_count(0), "an integer of at least 0", "write seed = 1"),
    "popsize": (_is_count(4), "an integer of at least 4", "leave it out"),
    "restarts": (lambda n: _is_bool(n) or _is_count(0)(n), "true, false or a number of restarts", "leave it out"),
    "workers": (_are_workers, 'a number of processes or "dask:tcp://host:8786"', "write workers = 4"),
    "asynchronous": (_is_bool, "true or false", "leave it out"),
    "run_file": (_is_text, "a path", 'write run_file = "run.db"'),
    "history": (_is_text, "the path of a run file", 'write history = "earlier.db"'),
    "cache": (_is_bool, "true or false", "leave it out"),
}

_VARIABLE_CHECKS: dict[str, tuple[Callable[[Any], bool], str, str]] = {
    **dict.fromkeys(("low", "high", "step", "mean", "std"), (_is_number, "a number", "correct it")),
    "log": (_is_bool, "true or false", "leave it out"),
}


def _is_workdir(value: object) -> bool:
    if not isinstance(value, str):
        return False
    try:
        value.format(id=1)
        return placeholders(value) <= {"id"}
    except (ValueError, LookupError, AttributeError, TypeError):  # its braces do not match, or hold something else
        return False


def _plain(part: str) -> str:
    """The placeholders of an argument without formats and conversions."""
    return ", ".join(f"{{{name}}}" for name in sorted(placeholders(part)))


def _instead_of(name: str, space: Space) -> str:
    """What to write instead of a placeholder that is not a variable."""
    variable = re.split(r"[.\[]", name)[0]
    if variable in space and variable != name:
        return f"placeholders have no parts: write {{{variable}}}"
    if not name or name.isdigit():
        return f"placeholders have the names of variables: write {{{next(iter(space))}}}"
    close = difflib.get_close_matches(name, list(space), n=1)
    return f"did you mean {{{close[0]}}}?" if close else f"the space has {', '.join(space)}"


def _without_name(error: str, name: str) -> str:
    """The error of a variable without its name, which the key says already."""
    return error.removeprefix(f"variable {name!r}: ")
