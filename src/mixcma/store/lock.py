"""One process at a time on a run file: a lock file beside it, which a killed process leaves unlocked."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import sys
import time
from pathlib import Path

# The lock is the process's: it does not pass to forked workers, which may outlive a killed process. So one
# process could take it twice; these are the paths it holds.
_held: set[Path] = set()


class Lock:
    """Held from creation to `release`. The lock file says who holds it."""

    def __init__(self, run_file: Path) -> None:
        self._path = run_file.resolve().with_name(run_file.name + ".lock")
        if self._path in _held:
            raise _in_use(run_file, "another search of this process")
        self._file = _locked(run_file, self._path)
        _held.add(self._path)
        holder = {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "program": sys.argv[0] or "python",
            "since": time.strftime("%Y-%m-%d %H:%M:%S"),
        }
        os.ftruncate(self._file, 0)
        os.write(self._file, json.dumps(holder).encode())

    def release(self) -> None:
        self._path.unlink(missing_ok=True)
        os.close(self._file)
        _held.discard(self._path)


def _locked(run_file: Path, path: Path) -> int:
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = _holder(file)
            os.close(file)
            if error.errno not in (errno.EACCES, errno.EAGAIN):
                raise
            raise _in_use(run_file, holder) from None
        if _same(file, path):
            return file
        os.close(file)  # its last holder removed it in between


def _in_use(run_file: Path, holder: str) -> ValueError:
    return ValueError(f"run_file: {run_file} is in use by {holder}; wait until it has ended, or use another file")


def _holder(file: int) -> str:
    try:
        entry = json.loads(os.pread(file, 4096, 0))
        return f"process {entry['pid']} ({entry['program']}) on {entry['host']} since {entry['since']}"
    except (ValueError, KeyError, TypeError):  # it has just taken the lock and not written yet
        return "another process"


def _same(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False
