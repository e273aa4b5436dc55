"""One process at a time per run file: a lock file beside it. A process that is killed leaves it unlocked."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import stat
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
# What a lock file holds, in this order.
KEYS = ("pid", "host", "program", "since")


class Lock:
    """A lock that is held from its creation to `release`. The lock file says which process holds it."""

    def __init__(self, run_file: Path) -> None:
        self._path = lock_path(run_file)
        with _holding:
            if self._path in _held:
                raise _in_use(run_file, "another search of this process")
            self._file, created = _locked(run_file, self._path)
            try:
                # an empty file may be left of a power cut, or be somebody else's: it is used, and left empty
                self._found_empty = _check_own(run_file, self._path, self._file) and not created
                _sign(self._file)
            except BaseException:
                if created:
                    self._path.unlink(missing_ok=True)
                os.close(self._file)
                raise
            _held.add(self._path)

    def release(self) -> None:
        with _holding:
            if self._found_empty:
                os.ftruncate(self._file, 0)
            elif _same(self._file, self._path):
                self._path.unlink()
            os.close(self._file)
            _held.discard(self._path)


def lock_path(run_file: Path) -> Path:
    """The lock file: beside the run file itself, whatever link or path leads there."""
    file = run_file.resolve()
    return file.with_name(file.name + ".lock")


def _sign(file: int) -> None:
    entries = os.getpid(), socket.gethostname(), sys.argv[0] or "python", time.strftime("%Y-%m-%d %H:%M:%S")
    os.ftruncate(file, 0)
    os.write(file, json.dumps(dict(zip(KEYS, entries))).encode())


def _check_own(run_file: Path, path: Path, file: int) -> bool:
    """Refuse a file that mixcma has not written; returns whether it is empty."""
    content = os.pread(file, 65536, 0)
    if not _is_own(content):
        raise _in_the_way(run_file, path, "a file that mixcma did not write")
    return not content


def _is_own(content: bytes) -> bool:
    """Whether this is what `_sign` writes, or what is left of it when the process is killed or the power is cut."""
    begin = f'{{"{KEYS[0]}": '.encode()
    if not content.strip(b"\0"):
        return True
    try:
        entry = json.loads(content)
    except ValueError:
        return content.startswith(begin) or begin.startswith(content)
    return isinstance(entry, dict) and tuple(entry) == KEYS


def _in_the_way(run_file: Path, path: Path, what: str) -> ValueError:
    return ValueError(
        f"run_file: {run_file} needs the name {path.name} for its lock file, but that is {what}; "
        "move it away, or choose another path"
    )


def _locked(run_file: Path, path: Path) -> tuple[int, bool]:
    """The lock file, locked, and whether it was created."""
    tries_left = TRIES
    while True:
        try:
            file, created = _opened(run_file, path)
        except FileNotFoundError:  # its last holder has removed it in the meantime
            tries_left -= 1
            if not tries_left or not path.parent.is_dir():  # or no file can be made there, as in /proc
                raise
            continue
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
            return file, created
        os.close(file)  # its last holder has removed it in the meantime


def _opened(run_file: Path, path: Path) -> tuple[int, bool]:
    """A handle of the lock file, and whether it was created; links are not followed."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644), True
    except FileExistsError:
        pass
    if path.is_symlink():
        raise _in_the_way(run_file, path, "a symbolic link")
    if path.is_dir():
        raise _in_the_way(run_file, path, "a folder")
    file = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise _in_the_way(run_file, path, "not an ordinary file")
    return file, False


def _in_use(run_file: Path, holder: str) -> ValueError:
    return ValueError(f"run_file: {run_file} is in use by {holder}; wait until that ends, or use another file")


def holder(run_file: Path) -> str | None:
    """Which process uses a run file now; None if there is none."""
    path = lock_path(run_file)
    with _holding:
        if path in _held:  # closing another handle of the lock file would release the lock
            return "this process"
        try:
            file = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
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
        return os.path.samestat(os.fstat(file), path.lstat())
    except (FileNotFoundError, NotADirectoryError):
        return False
