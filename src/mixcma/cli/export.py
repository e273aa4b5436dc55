"""``mixcma export``: writes a run for other tools."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import IO, Any

import click

from mixcma.cli.common import fail, record_of, run_file_argument, sentences
from mixcma.report.export import write_csv, write_json
from mixcma.search.progress import printable


@click.command()
@run_file_argument
@click.option("--csv", "csv_path", type=click.Path(allow_dash=True), help="One row per evaluation; - is stdout.")
@click.option("--json", "json_path", type=click.Path(allow_dash=True), help="Settings and evaluations; - is stdout.")
@click.option("--optuna", "storage", metavar="STORAGE_URL", help="An Optuna storage, for its dashboard and plots.")
@click.option("--study", "study", help="The name of the study in the storage. Default: that of the run file.")
def export(run_file: Path, csv_path: str | None, json_path: str | None, storage: str | None, study: str | None) -> None:
    """Export the run in RUN_FILE."""
    if csv_path is None and json_path is None and storage is None:
        fail("expected --csv FILE, --json FILE or --optuna STORAGE_URL, but got none of them; choose one or more")
    record = record_of(run_file)
    with sentences():
        if csv_path is not None:
            with _opened(csv_path) as out:
                write_csv(record, out)
        if json_path is not None:
            with _opened(json_path) as out:
                write_json(record, out)
    if storage is not None:
        try:
            from mixcma.integrations.optuna import export_to_optuna
        except ImportError as error:
            fail(f'--optuna needs {error.name}, which is not installed; install it with: pip install "optuna>=5"')
        with sentences():
            count = export_to_optuna(record, storage, study or run_file.stem)
        said = f"{count} trials are in the study {study or run_file.stem} of {storage}"
        click.echo(printable(said), file=sys.stderr)


def _opened(path: str) -> IO[Any]:
    if path == "-" and sys.stdout is None:
        fail("-: standard output is closed; name a file")
    return click.open_file(path, "w", encoding="utf-8")
