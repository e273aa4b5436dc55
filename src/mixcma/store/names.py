"""What may be the name of a run file, and which files beside it are mixcma's own."""

from __future__ import annotations

import contextlib
import os
import shutil
import zlib
from pathlib import Path

from mixcma.store.schema import APPLICATION_ID

# The longest of the endings that SQLite and the lock append to the name of a run file.
LONGEST_ENDING = len("-journal")
DRAFT = "draft.db"
# A WAL begins with one of these; then come frames, each with a header and a page. Page 1 has the application's number.
WAL_MAGIC = (0x377F0682, 0x377F0683)
WAL_HEADER, FRAME_HEADER, APPLICATION_AT = 32, 24, 68
SHM_UNIT = 32768  # the size of SQLite's shared memory is a multiple of this


def check_name(path: Path) -> None:
    """Refuse what cannot be the name of a file, or what SQLite would take for something else."""
    text = str(path)
    if not path.name or "\0" in text:
        raise ValueError(f"run_file: expected the path of a file, but got {text!r}; name one")
    if text.startswith((":memory:", "file:")):
        raise ValueError(
            f"run_file: expected the path of a file, but got {text!r}, which SQLite takes for something else; "
            "write the full path if a file should have this name, or leave run_file out to keep none"
        )
    try:
        length = len(os.fsencode(path.resolve().name))
    except (UnicodeEncodeError, OSError, RuntimeError) as error:
        raise ValueError(f"run_file: {text!r} cannot be the path of a file ({error}); choose another") from error
    longest = _longest_name(path.parent)
    if length + LONGEST_ENDING > longest:
        raise ValueError(
            f"run_file: expected a name of at most {longest - LONGEST_ENDING} bytes, since files with longer names are "
            f"kept beside it, but got one of {length}; choose a shorter one"
        )


def _longest_name(folder: Path) -> int:
    try:
        return os.pathconf(folder, "PC_NAME_MAX")
    except (OSError, ValueError):  # there is no such folder, which is said elsewhere
        return 255


def beside(file: Path, ending: str) -> Path:
    return file.with_name(file.name + ending)


def clear_the_way(file: Path) -> None:
    """Before a file is made: remove what a killed search left of an earlier one, and refuse what is not mixcma's."""
    remove_drafts(file)
    refuse_foreign(file)
    wal = beside(file, "-wal")
    if not _size(wal):
        return
    if not _is_wal_of_mixcma(wal):
        raise _in_the_way(file, wal)
    wal.unlink()
    beside(file, "-shm").unlink(missing_ok=True)


def draft_prefix(file: Path) -> str:
    """How the folder is called in which a run file is made before it is moved to its place."""
    return f".mixcma-{zlib.crc32(os.fsencode(file.name)):08x}-"


def remove_drafts(file: Path) -> None:
    """Remove drafts that killed processes left; a folder that holds anything else stays."""
    ours = {DRAFT + ending for ending in ("", "-wal", "-shm", "-journal")}
    for folder in file.parent.glob(draft_prefix(file) + "*"):
        with contextlib.suppress(OSError):
            if {path.name for path in folder.iterdir()} <= ours:
                shutil.rmtree(folder)


def refuse_foreign(file: Path) -> None:
    """Refuse files that SQLite would overwrite or remove although they are not those of a run file."""
    wal, shm, journal = (beside(file, ending) for ending in ("-wal", "-shm", "-journal"))
    for other in (wal, shm, journal):
        if other.is_symlink():
            raise _in_the_way(file, other)
    if _size(journal):  # run files have no rollback journal at any time
        raise _in_the_way(file, journal)
    if _size(shm) % SHM_UNIT:
        raise _in_the_way(file, shm)
    if _size(wal) and not _begins_like_a_wal(wal):
        raise _in_the_way(file, wal)


def _in_the_way(file: Path, other: Path) -> ValueError:
    return ValueError(
        f"run_file: {file} needs the name {other.name} for a file beside it, but there is one that mixcma did not "
        "write; move that away, or choose another path"
    )


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0


def _begins_like_a_wal(wal: Path) -> bool:
    """Whether it begins as SQLite begins a WAL, or with zeroes, as a power cut may leave it."""
    with wal.open("rb") as file:
        return int.from_bytes(file.read(4), "big") in (0, *WAL_MAGIC)


def _is_wal_of_mixcma(wal: Path) -> bool:
    """Whether any of its frames is the first page of a run file."""
    mark = APPLICATION_ID.to_bytes(4, "big")
    with wal.open("rb") as file:
        page = int.from_bytes(file.read(WAL_HEADER)[8:12], "big")
        while frame := file.read(FRAME_HEADER + page):
            here = FRAME_HEADER + APPLICATION_AT
            if frame[:4] == b"\0\0\0\1" and frame[here : here + 4] == mark:
                return True
    return False
