"""One process at a time on a run file: a lock file beside it, which a killed process leaves unlocked."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import sys
import threading
import time
from pathlib import Path

# The lock is the process's: it does not pass to forked workers, which may outlive a killed process. So one
# process could take it twice; these are the paths it holds.
_held: set[Path] = set()
# Somebody who only asks who holds it has it for a moment (`holder`): that is waited for.
TRIES, TRY_AGAIN = 5, 0.01  # seconds
_holding = threading.Lock()


class Lock:
    """Held from creation to `release`. The lock file says who holds it."""

    def __init__(self, run_file: Path) -> None:
        self._path = lock_path(run_file)
        with _holding:
            if self._path in _held:
                raise _in_use(run_file, "another search of this process")
            self._file = _locked(run_file, self._path)
            try:
                _sign(self._file)
            except BaseException:
                os.close(self._file)
                raise
            _held.add(self._path)

    def release(self) -> None:
        with _holding:
            self._path.unlink(missing_ok=True)
            os.close(self._file)
            _held.discard(self._path)


def lock_path(run_file: Path) -> Path:
    """Beside the file itself, whatever name it is called by."""
    file = run_file.resolve()
    return file.with_name(file.name + ".lock")


def _sign(file: int) -> None:
    holder = {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "program": sys.argv[0] or "python",
        "since": time.strftime("%Y-%m-%d %H:%M:%S"),
    }
    os.ftruncate(file, 0)
    os.write(file, json.dumps(holder).encode())


def _locked(run_file: Path, path: Path) -> int:
    tries_left = TRIES
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder, tries_left = _holder(file), tries_left - 1
            os.close(file)
            if error.errno not in (errno.EACCES, errno.EAGAIN):
                raise
            if not tries_left:
                raise _in_use(run_file, holder) from None
            time.sleep(TRY_AGAIN)
            continue
        if _same(file, path):
            return file
        os.close(file)  # its last holder removed it in between


def _in_use(run_file: Path, holder: str) -> ValueError:
    return ValueError(f"run_file: {run_file} is in use by {holder}; wait until it has ended, or use another file")


def holder(run_file: Path) -> str | None:
    """Who uses a run file now; None if nobody does."""
    path = lock_path(run_file)
    with _holding:
        if path in _held:  # closing another handle of it would give the lock away
            return "this process"
        try:
            file = os.open(path, os.O_RDWR)
        except OSError:
            return None
        try:
            fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return _holder(file)
        finally:
            os.close(file)
    return None


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
