"""``mixcma report``: a page to look at."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import click

from mixcma.cli.common import fail, run_file_argument, sentences


@click.command()
@run_file_argument
@click.option("-o", "--out", type=click.Path(path_type=Path, dir_okay=False), help="Default: RUN_FILE with .html.")
@click.option("--open", "show", is_flag=True, help="Open it in the browser.")
def report(run_file: Path, out: Path | None, show: bool) -> None:
    """Make one self-contained HTML page of the run in RUN_FILE."""
    try:
        from mixcma.report import write_report
    except ImportError as error:
        fail(f'the report needs {error.name}; pip install "mixcma[report]"')
    out = out or run_file.with_suffix(".html")
    with sentences():
        write_report(run_file, out)
    click.echo(f"{out} is ready; open it in a browser")
    if show:
        webbrowser.open(out.resolve().as_uri())
