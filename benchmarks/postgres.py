"""A PostgreSQL server of one's own: on loopback, in a temporary folder, gone afterwards."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

DEBIANS_FOLDER = Path("/usr/lib/postgresql")
USER = "mixcma"


def find(program: str) -> str | None:
    """A program of the server, which Debian keeps off the path."""
    found = sorted(DEBIANS_FOLDER.glob(f"*/bin/{program}"))
    return shutil.which(program) or (str(found[-1]) if found else None)


@contextmanager
def private_postgres() -> Iterator[str]:
    """The URL of a fresh, empty database for `optuna.storages.RDBStorage`."""
    initdb, pg_ctl = find("initdb"), find("pg_ctl")
    if initdb is None or pg_ctl is None:
        raise RuntimeError("initdb, pg_ctl: expected PostgreSQL, but found none; apt-get install postgresql")
    with tempfile.TemporaryDirectory() as folder:
        if os.geteuid() == 0:  # the server refuses to run as root; Debian's package brings a user for it
            shutil.chown(folder, "postgres", "postgres")
        data, port = f"{folder}/data", _free_port()
        _run([initdb, "-D", data, "-U", USER, "--auth=trust", "--encoding=UTF8", "--no-sync"])
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off"
        _run([pg_ctl, "-D", data, "-l", f"{folder}/log", "-o", options, "-w", "start"])
        try:
            yield f"postgresql+psycopg://{USER}@127.0.0.1:{port}/postgres"
        finally:
            _run([pg_ctl, "-D", data, "-m", "immediate", "-w", "stop"])


def _run(command: Sequence[str]) -> None:
    as_postgres = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.geteuid() == 0 else []
    with tempfile.TemporaryFile("w+") as said:  # not a pipe: the server would inherit it, and keep it open
        if subprocess.run([*as_postgres, *command], stdout=said, stderr=said, cwd="/").returncode:
            said.seek(0)
            raise RuntimeError(f"{command[0]}: {said.read()}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
