"""The command ``mixcma``: one file per subcommand."""

from __future__ import annotations

import sys
from typing import Any

import click

from mixcma.cli.check import check
from mixcma.cli.common import fail_to_write
from mixcma.cli.export import export
from mixcma.cli.init import init
from mixcma.cli.race import race
from mixcma.cli.report import report
from mixcma.cli.reproduce import reproduce
from mixcma.cli.run import resume, run
from mixcma.cli.salvage import salvage
from mixcma.cli.show import show


class Commands(click.Group):
    """A group whose commands end with a sentence where standard output cannot be written."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            returned = super().invoke(ctx)
            if sys.stdout is not None and not sys.stdout.closed:
                sys.stdout.flush()  # not when Python ends, where an error could no longer be said in a sentence
            return returned
        except OSError as error:
            if isinstance(error, BrokenPipeError) or error.filename is not None:  # click knows the first
                raise
            fail_to_write(error)


@click.group(cls=Commands)
@click.version_option(package_name="mixcma")
def main() -> None:
    """Minimise a black box over floats, integers, booleans, number sets and categories, all at once."""


for command in (init, check, run, resume, show, report, export, salvage, reproduce, race):
    main.add_command(command)
