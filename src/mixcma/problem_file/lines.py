"""The line of a TOML text on which each table and key stands."""

from __future__ import annotations

import re
import tomllib

Path = tuple[str, ...]

_PART = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*')"""
_DOTTED = rf"{_PART}(?:\s*\.\s*{_PART})*"
_HEADER = re.compile(rf"^\s*\[\[?\s*({_DOTTED})\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(rf"^\s*({_DOTTED})\s*=")


def key_lines(text: str) -> dict[Path, int]:
    """Path of a table or key -> its line, counted from 1; keys inside an inline table have the line of the table."""
    found: dict[Path, int] = {}
    table: Path = ()
    for number, line in enumerate(text.splitlines(), start=1):
        header = _HEADER.match(line)
        if header is not None:
            table = _parts(header[1])
            found.setdefault(table, number)
            continue
        key = _KEY.match(line)
        if key is not None:
            found.setdefault((*table, *_parts(key[1])), number)
    return found


def line_of(lines: dict[Path, int], path: Path) -> int:
    """The line of `path` or of something inside it; otherwise of the longest part of it that exists; otherwise 1."""
    for length in range(len(path), 0, -1):
        inside = [line for found, line in lines.items() if found[:length] == path[:length]]
        if inside:
            return min(inside)
    return 1


def _parts(dotted: str) -> Path:
    """The parts of a dotted key, as TOML reads them."""
    table, parts = tomllib.loads(f"{dotted} = 0"), []
    while isinstance(table, dict):
        ((part, table),) = table.items()
        parts.append(part)
    return tuple(parts)
