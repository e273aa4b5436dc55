"""The command ``mixcma``, one file a command."""

from __future__ import annotations

import click

from mixcma.cli.reproduce import reproduce


@click.group()
@click.version_option(package_name="mixcma")
def main() -> None:
    """Minimise a black box over floats, integers, booleans and number sets, all at once."""


main.add_command(reproduce)
