"""Whether the command in a run file was put there by this user's own ``mixcma run``; if not, it is asked."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import stat
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import click

from mixcma.cli.common import WRONG, errors, fail, plain

KEY_LENGTH = 32
SIGNED = ("text", "folder", "path")


def signature(problem: Mapping[str, str]) -> str | None:
    """What says that this user has run this problem in this folder; None if no key can be kept."""
    key = _key() or _new_key()
    return None if key is None else _signed(key, problem)


def is_own(problem: Mapping[str, str]) -> bool:
    """Whether the problem of a run file carries a signature of this user."""
    key, given = _key(), problem.get("signature")
    if key is None or not isinstance(given, str):
        return False
    return hmac.compare_digest(_signed(key, problem).encode(), given.encode("utf-8", "replace"))


def ask(run_file: Path, problem: Mapping[str, str]) -> None:
    """Show what the file would run, and ask whether it may; nothing of it has been run before."""
    what = f"{run_file} was not begun by your own mixcma run. To continue it runs"
    errors.print(
        plain(f"{what} this, in the folder {problem['folder']}:\n{_command_in(problem['text'])}", "yellow"),
        soft_wrap=True,
    )
    if not _at_a_terminal():
        fail(f"{run_file}: expected a yes to this command, but there is no terminal to ask; pass --yes if you trust it")
    if not click.confirm("Run it?", err=True):
        sys.exit(WRONG)


def _at_a_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


def _command_in(text: str) -> str:
    """The lines of a problem file that say what is run; all of them if they cannot be told apart."""
    try:
        objective = tomllib.loads(text)["objective"]
        return "\n".join(f"  {key} = {json.dumps(value)}" for key, value in objective.items())
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return text


def _signed(key: bytes, problem: Mapping[str, str]) -> str:
    text = json.dumps([problem[name] for name in SIGNED])
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def _key_path() -> Path | None:
    """Where the key is kept: in the user's folder for the state of programs."""
    given = os.environ.get("XDG_STATE_HOME", "")
    try:
        state = Path(given) if os.path.isabs(given) else Path.home() / ".local" / "state"
    except RuntimeError:  # this user has no home
        return None
    return state / "mixcma" / "key"


def _key() -> bytes | None:
    """The key, unless anybody else could have read or written it."""
    path = _key_path()
    if path is None:
        return None
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        about, key = os.fstat(file), os.read(file, KEY_LENGTH + 1)
    except OSError:
        return None
    finally:
        os.close(file)
    private = about.st_uid == os.geteuid() and not about.st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    return key if private and len(key) == KEY_LENGTH else None


def _new_key() -> bytes | None:
    """Keep a new random key, if there is none."""
    path = _key_path()
    if path is None:
        return None
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(file, secrets.token_bytes(KEY_LENGTH))
        finally:
            os.close(file)
    except OSError:
        pass  # another process has just made one, or nothing can be written there
    return _key()
