"""One process at a time per run file: a lock file beside it. A process that is killed leaves it unlocked."""

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

# The lock belongs to the process: forked workers, which may outlive a killed process, do not inherit it. But one
# process could take it twice; these are the paths that this process has locked.
_held: set[Path] = set()
# A process that only asks who holds the lock (`holder`) has it for a moment. So taking it is tried this many times,
# this many seconds apart.
TRIES, TRY_AGAIN = 5, 0.01
_holding = threading.Lock()


class Lock:
    """A lock that is held from its creation to `release`. The lock file says which process holds it."""

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
    """The lock file: beside the run file itself, whatever link or path leads there."""
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
        os.close(file)  # its last holder has removed it in the meantime


def _in_use(run_file: Path, holder: str) -> ValueError:
    return ValueError(f"run_file: {run_file} is in use by {holder}; wait until that ends, or use another file")


def holder(run_file: Path) -> str | None:
    """Which process uses a run file now; None if there is none."""
    path = lock_path(run_file)
    with _holding:
        if path in _held:  # closing another handle of the lock file would release the lock
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
    except (ValueError, KeyError, TypeError):  # the holder has just taken the lock and not written yet
        return "another process"


def _same(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False
