"""Command: an external program as an objective."""

from __future__ import annotations

import errno
import json
import math
import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from mixcma.run.outcome import Outcome, failure
from mixcma.space import Params, Value

# A program that writes more bytes than this to one of its streams is ended.
LARGEST_OUTPUT = 10 * 2**20
# This many characters of what a failed program wrote go into the error.
SHOWN_OUTPUT = 300
PARAMS_FILE = "params.json"


@dataclass(frozen=True)
class Command:
    """Calls a program with the parameters in its arguments, and reads the value from what it writes.

    Parameters
    ----------
    arguments
        The program and its arguments. ``{name}`` stands for a parameter, ``{id}`` for the number of the
        evaluation, ``{params}`` for the path of a JSON file with all parameters, ``{here}`` for `folder`.
        No shell is involved. A relative path of the program starts in `folder`.
    value
        Where the value stands: ``"stdout"`` (its last line), ``"json:key"`` (in stdout), ``"regex:..."`` (the first
        group of the last match in stdout) or ``"file:path"`` (the last line of a file that the program wrote).
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

    def __call__(self, params: Params, id: int) -> Outcome:
        workdir = Path(self.folder, (self.workdir or ".").format(id=id))
        with tempfile.TemporaryDirectory(prefix="mixcma-") as scratch:
            try:
                if self.workdir is not None:
                    workdir.mkdir(parents=True, exist_ok=True)
                written = _write_params(params, workdir if self.workdir is not None else Path(scratch))
                here = str(Path(self.folder).resolve())
                arguments = [fill(part, params, id=id, params_file=written, here=here) for part in self.arguments]
                output, errors, status = _run(arguments, workdir, Path(self.folder))
            except OSError as error:
                return failure(f"{error.strerror or error}: {error.filename or arguments[0]}{self._remedy(error)}")
            outcome = self._outcome(output, errors, status, workdir)
        if outcome.failed and self.workdir is not None:
            (workdir / "stdout.txt").write_bytes(output)
            (workdir / "stderr.txt").write_bytes(errors)
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

    def _outcome(self, output: bytes, errors: bytes, status: int | None, workdir: Path) -> Outcome:
        if status is None:
            return failure(f"the program wrote more than {LARGEST_OUTPUT // 2**20} MB and was ended")
        if status != 0:
            return failure(f"the program ended with {_ending(status)}{_last_words(errors or output)}")
        try:
            value = read_value(self.value, output, workdir)
            constraints = [] if self.constraints is None else read_constraints(self.constraints, output, workdir)
        except (ValueError, OSError) as error:
            return failure(f"{error}{_last_words(errors)}")
        return Outcome(value, constraints)


def fill(part: str, params: Params, *, id: int, params_file: Path, here: str) -> str:
    """An argument with its placeholders replaced."""
    shown = {name: as_argument(value) for name, value in params.items()}
    return part.format_map({**shown, "id": id, "params": str(params_file), "here": here})


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
    path = (folder / PARAMS_FILE).resolve()
    path.write_text(json.dumps(params))
    return path


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
    assert process.stdout is not None
    assert process.stderr is not None
    streams = [_Reader(process, stream) for stream in (process.stdout, process.stderr)]
    for stream in streams:
        stream.join()
    status = process.wait()
    output, errors = (bytes(stream.kept) for stream in streams)
    return output, errors, None if any(stream.overflowed for stream in streams) else status


class _Reader(threading.Thread):
    """Reads a stream to its end; if the program writes too much, ends the program."""

    def __init__(self, process: subprocess.Popen[bytes], stream: IO[bytes]) -> None:
        super().__init__(daemon=True)
        self.kept = bytearray()
        self.overflowed = False
        self._process, self._stream = process, stream
        self.start()

    def run(self) -> None:
        with self._stream:
            while chunk := self._stream.read1(2**16):  # type: ignore[attr-defined]  # it is a BufferedReader
                self.kept += chunk
                if len(self.kept) > LARGEST_OUTPUT:
                    self.overflowed = True
                    del self.kept[SHOWN_OUTPUT:]
                    self._process.kill()
                    return


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
    except ValueError:
        # a program may write other things first: the last line may be the JSON
        try:
            found = json.loads(_text(output).strip().splitlines()[-1])
        except (ValueError, IndexError):
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
    if path.stat().st_size > LARGEST_OUTPUT:
        raise ValueError(f"expected a number in {name}, but it is larger than {LARGEST_OUTPUT // 2**20} MB")
    return _text(path.read_bytes())


def _number(found: object, where: str) -> float:
    try:
        number = float(found)  # type: ignore[arg-type]  # float() checks it
    except (TypeError, ValueError):
        raise ValueError(f"expected a number in {where}, but got {_shown(found)}") from None
    if isinstance(found, bool) or math.isnan(number):
        raise ValueError(f"expected a number in {where}, but got {_shown(found)}")
    return number


def _text(output: bytes) -> str:
    return output.decode("utf-8", "replace")


def _shown(found: object) -> str:
    text = _text(found) if isinstance(found, bytes) else str(found)
    return repr(text if len(text) <= 80 else text[:77] + "...")


def _ending(status: int) -> str:
    return f"signal {-status}" if status < 0 else f"exit status {status}"


def _last_words(output: bytes) -> str:
    text = " ".join(_text(output[-SHOWN_OUTPUT:]).split())
    return f": {text}" if text else ""
