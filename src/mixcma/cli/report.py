"""``mixcma report``: an HTML page of a run."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import click

from mixcma.cli.common import fail, run_file_argument, sentences
from mixcma.search.progress import printable


@click.command()
@run_file_argument
@click.option("-o", "--out", type=click.Path(path_type=Path, dir_okay=False), help="Default: RUN_FILE with .html.")
@click.option("--open", "show", is_flag=True, help="Open the page in the browser.")
def report(run_file: Path, out: Path | None, show: bool) -> None:
    """Write a self-contained HTML page about the run in RUN_FILE."""
    try:
        from mixcma.report import write_report
    except ImportError as error:
        fail(f"the report needs {error.name}, which is not installed; install it with: pip install jinja2 plotly")
    out = out or run_file.with_suffix(".html")
    with sentences():
        write_report(run_file, out)
    click.echo(printable(f"{out} is ready; open it in a browser"))
    if show:
        webbrowser.open(out.resolve().as_uri())
