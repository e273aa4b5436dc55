"""Command: an external program as an objective."""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import re
import selectors
import shutil
import string
import subprocess
import tempfile
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from mixcma.run.outcome import Outcome, failure
from mixcma.space import Params, Value

# A program that writes more bytes than this to one of its streams is ended.
LARGEST_OUTPUT = 10 * 2**20
# This many characters of what a failed program wrote go into the error.
SHOWN_OUTPUT = 300
# This many characters of what a failed program wrote to stderr are kept as its traceback.
KEPT_ERRORS = 2000
# A pipe holds at most this many bytes.
LARGEST_PIPE = 2**20
# When a program has exited and others hold its streams open, they are read for this many more seconds.
GRACE = 0.2
PARAMS_FILE = "params.json"
# The placeholders that are not variables.
OWN_PLACEHOLDERS = ("id", "params", "here")
SHARED_FILE = (
    "with more than one worker, evaluations would read each other's {}; "
    'add workdir = "runs/{{id}}" and let the program write the file there, or use one worker'
)


@dataclass(frozen=True)
class Command:
    """Calls a program with the parameters in its arguments, and reads the value from what it writes.

    Parameters
    ----------
    arguments
        The program and its arguments. ``{name}`` stands for a parameter, ``{id}`` for the number of the
        evaluation, ``{depth|none}`` for a parameter that does not always exist, with what stands there where it does
        not; ``{params}`` for the path of a JSON file with all parameters, ``{here}`` for `folder`.
        A parameter of one of these names comes first. No shell is involved. A relative path of the program starts in
        `folder`.
    value
        Where the value stands: ``"stdout"`` (its last line), ``"json:key"`` (in stdout), ``"regex:..."`` (the first
        group of the last match in stdout) or ``"file:path"`` (the last line of a file that the program writes).
        The file is removed before each evaluation.
    constraints
        Where the constraints stand: ``"json:key"``, ``"regex:..."`` (every match) or ``"file:path"`` (every number in
        it); None if there are none.
    workdir
        The folder that is created for each evaluation to run in; its name may contain ``{id}``. None means `folder`.
    folder
        Where relative paths start.
    """

    takes_id = True  # it is also called with the number of the evaluation

    arguments: tuple[str, ...]
    value: str = "stdout"
    constraints: str | None = None
    workdir: str | None = None
    folder: str = "."

    @property
    def shared_file(self) -> str | None:
        """A file that all evaluations write and read at the same place; None if there is none."""
        for path in self._files:
            if not self._own_folder or not _inside(Path(path), Path()):
                return path
        return None

    @property
    def _own_folder(self) -> bool:
        """Whether each evaluation has a folder to itself."""
        return self.workdir is not None and "id" in placeholders(self.workdir)

    @property
    def _files(self) -> list[str]:
        """The paths of the files that the results are read from."""
        rules = (rule.partition(":") for rule in (self.value, self.constraints or ""))
        return [path for kind, _, path in rules if kind == "file"]

    def __call__(self, params: Params, id: int) -> Outcome:
        workdir = Path(self.folder, (self.workdir or ".").format(id=id))
        with tempfile.TemporaryDirectory(prefix="mixcma-") as scratch:
            try:
                if self.workdir is not None:
                    workdir.mkdir(parents=True, exist_ok=True)
                stale = {path: _cleared(workdir, path) for path in self._files}
                written = _write_params(params, workdir if self._own_folder else Path(scratch))
                here = str(Path(self.folder).resolve())
                arguments = [fill(part, params, id=id, params_file=written, here=here) for part in self.arguments]
                output, errors, status = _run(arguments, workdir, Path(self.folder))
            except OSError as error:
                what = error.filename or self.arguments[0]
                return failure(f"{error.strerror or error}: {what}{self._remedy(error)}")
            except StaleFile as error:
                return failure(str(error))
            outcome = self._outcome(output, errors, status, workdir, stale)
        if outcome.failed and self.workdir is not None:
            for name, written_there in (("stdout.txt", output), ("stderr.txt", errors)):
                with contextlib.suppress(OSError):  # why the program failed matters more
                    _replace(workdir / name, written_there)
        return outcome

    def _remedy(self, error: OSError) -> str:
        """What to do about a program that cannot be started."""
        program = self.arguments[0]
        if error.errno == errno.EACCES:
            return f"; make it executable: chmod +x {program}"
        if error.errno == errno.ENOEXEC:
            return "; its first line must name an interpreter, such as #!/bin/sh"
        if error.errno == errno.ENOENT and " " in program:
            return "; write the program and each of its arguments as a separate string of the list"
        if error.errno == errno.ENOENT and Path(self.folder, program).exists():
            return f"; write ./{program}"
        return ""

    def _outcome(
        self, output: bytes, errors: bytes, status: int | None, workdir: Path, stale: Mapping[str, FileState]
    ) -> Outcome:
        said = _text(errors[-4 * KEPT_ERRORS :])[-KEPT_ERRORS:].strip() or None
        if status is None:
            return failure(f"the program wrote more than {LARGEST_OUTPUT // 2**20} MB and was ended", said)
        if status != 0:
            return failure(f"the program ended with {_ending(status)}{_last_words(errors or output)}", said)
        try:
            for path, before in stale.items():
                if before is not None and before == _state(workdir / path):
                    raise ValueError(f"expected the file {path}, but the program did not write it")
            value = read_value(self.value, output, workdir)
            constraints = [] if self.constraints is None else read_constraints(self.constraints, output, workdir)
        except (ValueError, OSError) as error:
            return failure(f"{error}{_last_words(errors)}", said)
        return Outcome(value, constraints)


# Files that programs write their results to

# What tells two versions of a file apart; None if there is no file.
FileState = tuple[int, int, int] | None


class StaleFile(ValueError):
    """The file of an earlier evaluation is in the way."""


def _cleared(workdir: Path, path: str) -> FileState:
    """Remove the file of an earlier evaluation. Outside of `workdir` nothing is removed, and its state is returned."""
    file = workdir / path
    if _inside(file.parent.resolve(), workdir.resolve()) and not file.is_dir():
        try:
            file.unlink(missing_ok=True)  # of a symbolic link, the link itself
        except OSError as error:
            raise StaleFile(
                f"expected to remove the file {path} of an earlier evaluation, but that failed ({error.strerror}); "
                "make its folder writable"
            ) from error
    return _state(file)


def _state(path: Path) -> FileState:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _inside(path: Path, folder: Path) -> bool:
    """Whether a path stays in a folder. It has no symbolic links, or is relative and has not been resolved."""
    return ".." not in path.parts and path.is_relative_to(folder)


# Arguments


def placeholders(template: str) -> set[str]:
    """What stands in the braces of a template, without formats; a ValueError if the braces do not match."""
    return {name for _, name, _, _ in string.Formatter().parse(template) if name is not None}


def split_field(field: str, names: Collection[str]) -> tuple[str, str | None]:
    """What stands in braces as a name, and what is to stand there if that variable does not exist: {depth|none}."""
    name, bar, instead = field.partition("|")
    return (name, instead) if bar and field not in names else (field, None)


def fill(part: str, params: Params, *, id: int, params_file: Path, here: str) -> str:
    """An argument with its placeholders replaced. Names are taken as they are: {x.y} is a parameter called "x.y"."""
    values: dict[str, object] = {"id": id, "params": str(params_file), "here": here}
    values |= {name: as_argument(value) for name, value in params.items()}
    filled = []
    for text, field, form, conversion in string.Formatter().parse(part):
        filled.append(text)
        if field is not None:
            name, instead = split_field(field, values)
            if name not in values and instead is not None:
                filled.append(instead)
            else:
                value = string.Formatter().convert_field(values[name], conversion)
                filled.append(format(value, form or ""))
    return "".join(filled)


class _Truth:
    """A bool that formats as true or false."""

    def __init__(self, value: bool) -> None:
        self._value = value

    def __format__(self, spec: str) -> str:
        return format(int(self._value), spec) if spec else str(self._value).lower()


def as_argument(value: Value) -> object:
    """A value as it is formatted in the arguments of a program."""
    return _Truth(value) if isinstance(value, bool) else value


def _write_params(params: Params, folder: Path) -> Path:
    path = folder.resolve() / PARAMS_FILE
    _replace(path, json.dumps(params).encode())
    return path


def _replace(path: Path, content: bytes) -> None:
    """Write a new file. Whatever a program left in its place is removed: a link is not followed, nor a pipe opened."""
    path.unlink(missing_ok=True)
    with path.open("xb") as file:
        file.write(content)


def _run(arguments: Sequence[str], workdir: Path, folder: Path) -> tuple[bytes, bytes, int | None]:
    """stdout, stderr and the exit status, which is None if the program wrote too much and was ended."""
    program = arguments[0]
    if os.sep in program:
        program = str(folder.resolve() / program)  # an absolute path stays as it is
    else:
        program = shutil.which(program, path=os.environ.get("PATH")) or program
    process = subprocess.Popen(
        [program, *arguments[1:]],
        cwd=workdir,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        with _Streams(process) as streams:
            while streams.read():
                pass
            if streams.overflowed:
                process.kill()
    except BaseException:  # a Ctrl-C, for instance
        process.kill()
        raise
    finally:
        status = process.wait()
    output, errors = map(bytes, streams.kept)
    return output, errors, None if streams.overflowed else status


class _Streams:
    """stdout and stderr of a program, read until it has exited.

    Others may hold them open for longer, such as a process that the program left in the background. Everything that
    the program itself wrote is in the pipes when it exits; what comes later is read only for a short while.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        self.kept = (bytearray(), bytearray())
        self._open: dict[IO[bytes], bytearray] = dict(zip((process.stdout, process.stderr), self.kept))
        self._files = tuple(self._open)
        self.overflowed = False
        self._end = math.inf  # when to stop reading
        self._exit, exiting = os.pipe()
        self._waiting = threading.Thread(target=_close_at_exit, args=(process, exiting), daemon=True)
        self._selector = selectors.DefaultSelector()

    def __enter__(self) -> _Streams:
        for file in self._open:
            os.set_blocking(file.fileno(), False)
            self._selector.register(file, selectors.EVENT_READ)
        self._selector.register(self._exit, selectors.EVENT_READ)
        self._waiting.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._selector.close()
        for file in self._files:
            file.close()
        os.close(self._exit)

    def read(self) -> bool:
        """Wait for something to read, and read it; returns whether there may be more."""
        left = self._end - time.monotonic()
        if not self._open or left <= 0.0 or self.overflowed:
            return False
        for key, _ in self._selector.select(None if left == math.inf else left):
            if key.fileobj == self._exit:
                self._selector.unregister(self._exit)
                self._end = time.monotonic() + GRACE
            for file in [file for file in self._open if key.fileobj in (file, self._exit)]:
                self._read(file)
        return True

    def _read(self, file: IO[bytes]) -> None:
        """Read what is there now."""
        try:
            chunk = os.read(file.fileno(), LARGEST_PIPE)
        except BlockingIOError:
            return
        kept = self._open[file]
        kept += chunk
        if not chunk:
            self._selector.unregister(file)
            del self._open[file]
        elif len(kept) > LARGEST_OUTPUT:
            self.overflowed = True
            del kept[SHOWN_OUTPUT:]


def _close_at_exit(process: subprocess.Popen[bytes], descriptor: int) -> None:
    process.wait()
    os.close(descriptor)


def read_value(rule: str, output: bytes, workdir: Path) -> float:
    """The value at the place that `rule` names; a ValueError says what stands there instead."""
    kind, _, argument = rule.partition(":")
    if kind == "json":
        return _number(_json(output, argument), f"{argument} in its JSON")
    if kind == "regex":
        matches = re.findall(argument, _text(output), re.MULTILINE)
        if not matches:
            raise ValueError(f"expected text that matches {argument!r} in its stdout, but got {_shown(output)}")
        return _number(_group(matches[-1]), f"the match of {argument!r}")
    text, where = (_text(output), "its stdout") if kind == "stdout" else (_file(workdir, argument), argument)
    lines = text.strip().splitlines()
    if not lines:
        raise ValueError(f"expected a number in {where}, but it is empty")
    return _number(lines[-1].strip(), f"the last line of {where}")


def read_constraints(rule: str, output: bytes, workdir: Path) -> list[float]:
    kind, _, argument = rule.partition(":")
    if kind == "json":
        found = _json(output, argument)
        listed = found if isinstance(found, list) else [found]
        return [_number(g, f"{argument} in its JSON") for g in listed]
    if kind == "regex":
        matches = re.findall(argument, _text(output), re.MULTILINE)
        return [_number(_group(match), f"the match of {argument!r}") for match in matches]
    return [_number(word, argument) for word in _file(workdir, argument).replace(",", " ").split()]


def _json(output: bytes, key: str) -> Any:
    try:
        found: Any = json.loads(output)
    except (ValueError, RecursionError):  # the latter where it is nested too deeply
        # a program may write other things first: the last line may be the JSON
        try:
            found = json.loads(_text(output).strip().splitlines()[-1])
        except (ValueError, IndexError, RecursionError):
            raise ValueError(f"expected JSON in its stdout, but got {_shown(output)}") from None
    for part in key.split("."):
        try:
            found = found[int(part)] if isinstance(found, list) else found[part]
        except (KeyError, IndexError, TypeError, ValueError):
            raise ValueError(f"expected {key} in its JSON, but there is no {part} in {_shown(output)}") from None
    return found


def _group(match: str | tuple[str, ...]) -> str:
    return match if isinstance(match, str) else match[0]


def _file(workdir: Path, name: str) -> str:
    path = workdir / name
    if not path.is_file():
        raise ValueError(f"expected the file {name}, but the program did not write it")
    with open(path, "rb", opener=_open_without_waiting) as file:
        content = file.read(LARGEST_OUTPUT + 1)
    if len(content) > LARGEST_OUTPUT:
        raise ValueError(f"expected a number in {name}, but it is larger than {LARGEST_OUTPUT // 2**20} MB")
    return _text(content)


def _open_without_waiting(path: str, flags: int) -> int:
    """Open a file, also if a process that the program left behind has just put a pipe in its place."""
    return os.open(path, flags | os.O_NONBLOCK)


def _number(found: object, where: str) -> float:
    """A number as a program would print it. Python's float also reads 2024_01_01 and the digits of other scripts."""
    try:
        if isinstance(found, str) and (not found.isascii() or "_" in found):
            raise ValueError
        number = float(found)  # type: ignore[arg-type]  # float() checks it
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"expected a number in {where}, but got {_shown(found)}") from None
    if isinstance(found, bool) or math.isnan(number):
        raise ValueError(f"expected a number in {where}, but got {_shown(found)}")
    return number


def _text(output: bytes) -> str:
    return output.decode("utf-8", "replace")


def _shown(found: object) -> str:
    text = _text(found[:200]) if isinstance(found, bytes) else str(found)
    return repr(text if len(text) <= 80 else text[:77] + "...")


def _ending(status: int) -> str:
    return f"signal {-status}" if status < 0 else f"exit status {status}"


def _last_words(output: bytes) -> str:
    text = " ".join(_text(output[-SHOWN_OUTPUT:]).split())
    return f": {text}" if text else ""
