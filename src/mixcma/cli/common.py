"""What several commands share: reading files and lists, drawing, and failing with a sentence."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

import click
from rich.console import Console
from rich.text import Text

from mixcma.problem_file import Problem, WrongProblem, load_problem
from mixcma.search.progress import printable, printable_lines
from mixcma.store import Record, read

# Exit statuses: the input is wrong; the evaluations failed; Ctrl-C or SIGTERM.
WRONG, FAILED, INTERRUPTED = 2, 1, 130

errors = Console(stderr=True, highlight=False, markup=False, emoji=False)

run_file_argument: Callable[..., Any] = click.argument("run_file", type=click.Path(path_type=Path, dir_okay=False))


@contextmanager
def sentences() -> Iterator[None]:
    """Turns an error of the user into a sentence and an exit status, instead of a traceback."""
    try:
        yield
    except ValueError as error:
        fail(str(error))
    except OSError as error:
        fail_to_write(error)


def fail_to_write(error: OSError) -> NoReturn:
    """Say what could not be written, and drop what is left in the buffer: Python would fail to write it at its end."""
    if error.filename is None and sys.stdout is not None:
        with suppress(OSError, ValueError), open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
    fail(unwritable(error))


def unwritable(error: OSError) -> str:
    """What a file or, if the error names none, standard output refused."""
    if error.filename is None:
        return f"standard output cannot be written ({error.strerror}); send it somewhere else"
    return f"{error.filename}: {error.strerror}; choose another path"


def fail(text: str) -> NoReturn:
    errors.print(plain(text, "red"), soft_wrap=True)
    sys.exit(WRONG)


def terminal() -> Console:
    """Standard output, where every text is printed as it is: never as markup, emoji codes or escape sequences."""
    return Console(highlight=False, markup=False, emoji=False)


def cell(text: object) -> Text:
    """A name, a choice or another short text of the user, to be printed in a table or in a line."""
    return Text(printable(str(text)))


def plain(text: str, style: str = "") -> Text:
    """A message of several lines that may contain texts of the user."""
    return Text(printable_lines(text), style=style)


def problem_of(path: Path) -> Problem:
    """The problem in a file; if the file has mistakes, they are all printed."""
    try:
        return load_problem(path)
    except WrongProblem as wrong:
        print_mistakes(wrong)
        sys.exit(WRONG)


def print_mistakes(wrong: WrongProblem) -> None:
    for mistake in wrong.mistakes:
        text = f"{wrong.path}:{mistake.line}: {mistake.key}: {mistake.text}"
        errors.print(plain(text, "red"), soft_wrap=True)


def record_of(path: Path) -> Record:
    try:
        return read(path)
    except ValueError as error:
        fail(str(error))


def words(known: Sequence[str]) -> Callable[[click.Context, click.Parameter, str | None], tuple[str, ...] | None]:
    """Reads a comma-separated list of known words; repeated words are dropped."""

    def parse(context: click.Context, parameter: click.Parameter, text: str | None) -> tuple[str, ...] | None:
        if text is None:
            return None
        listed = tuple(dict.fromkeys(word.strip() for word in text.split(",")))
        for word in listed:
            if word not in known:
                raise click.BadParameter(f"{word!r} is not one of {', '.join(known)}")
        return listed

    return parse


def drawing(module: str) -> Any:
    """Import a module that draws; called before any work is done, so that a missing package is noticed early."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        message = "drawing needs matplotlib, which is not installed; install it with: pip install matplotlib"
        raise click.ClickException(message) from error
