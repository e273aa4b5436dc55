"""The rows of an SQLite file, read page by page: no tree, no header and no neighbour of a row needs to be intact.

SQLite keeps the rows of a table in the leaves of a tree. A leaf has a header, then the places of its cells, then free
space, then the cells; a cell is the number of bytes, the key, and the values, which go on in a chain of other pages if
there are many (https://www.sqlite.org/fileformat2.html). A page may be anything here: whoever asks for the rows has to
verify them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import NamedTuple

PAGE = 4096  # the size of a page, unless the header of the file says something else
LEAF = 0x0D
FILE_HEADER, LEAF_HEADER = 100, 8
WAL_HEADER, FRAME_HEADER = 32, 24
# How many bytes each kind of number has in a row: integers of 1 to 8 bytes, a float, and the constants 0 and 1.
_SIZES = {0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 7: 8, 8: 0, 9: 0}

Value = int | float | str | bytes | None
Pages = Mapping[int, bytes]  # by number, from 1
Span = tuple[int, int, int]  # the number of a page, and a begin and an end in it


class Found(NamedTuple):
    """Something that may be a row."""

    key: int
    values: tuple[Value, ...]
    listed: bool  # whether the page says that it is one; else it may be left of an earlier version
    touched: tuple[Span, ...]  # all bytes that it consists of


def pages_of(data: bytes, size: int) -> dict[int, bytes]:
    """The pages of a file; the last may be cut off."""
    return {at // size + 1: data[at : at + size].ljust(size, b"\0") for at in range(0, len(data), size)}


def frames_of(wal: bytes, size: int) -> list[tuple[int, bytes]]:
    """The pages in a WAL with their numbers, oldest first; frames that are left of an earlier use come before all."""
    salt = wal[16:24]
    newest: list[tuple[int, bytes]] = []
    older: list[tuple[int, bytes]] = []
    for at in range(WAL_HEADER, len(wal) - FRAME_HEADER - size + 1, FRAME_HEADER + size):
        number = int.from_bytes(wal[at : at + 4], "big")
        frame = (number, wal[at + FRAME_HEADER : at + FRAME_HEADER + size])
        (newest if wal[at + 8 : at + 16] == salt else older).append(frame)
    return older + newest


def rows_of(number: int, pages: Pages) -> Iterator[Found]:
    """Everything on a page that may be a row."""
    page = pages[number]
    header = FILE_HEADER if number == 1 else 0
    count = int.from_bytes(page[header + 3 : header + 5], "big") if page[header] == LEAF else 0
    first = header + LEAF_HEADER
    lowest = len(page)  # the places of the cells end before the first cell
    for at in range(first, len(page) - 1, 2):
        if at >= lowest:
            return
        place = int.from_bytes(page[at : at + 2], "big")
        if place < first:
            continue
        found = _cell(number, place, pages)
        if found is not None:
            lowest = min(lowest, place)
            pointer = (number, at, at + 2)
            yield Found(*found[:2], (at - first) // 2 < count, (pointer, *found[2]))


def _cell(number: int, place: int, pages: Pages) -> tuple[int, tuple[Value, ...], tuple[Span, ...]] | None:
    """The key and the values at a place, with the bytes that they consist of; None if there can be none."""
    page = pages[number]
    try:
        length, at = _varint(page, place)
        key, at = _varint(page, at)
        here = _local(length, len(page))
        payload, touched = page[at : at + here], [(number, place, at + here)]
        if here < length:
            touched[0] = (number, place, at + here + 4)
            rest, chain = _chained(int.from_bytes(page[at + here : at + here + 4], "big"), length - here, pages)
            payload, touched = payload + rest, touched + chain
        if len(payload) != length:
            return None
        return _signed(key), tuple(_values(payload)), tuple(touched)
    except (IndexError, KeyError, ValueError, OverflowError, struct.error):
        return None


def _local(length: int, usable: int) -> int:
    """How many bytes of a cell are on its own page."""
    most, least = usable - 35, (usable - 12) * 32 // 255 - 23
    if length <= most:
        return length
    here = least + (length - least) % (usable - 4)
    return here if here <= most else least


def _chained(number: int, left: int, pages: Pages) -> tuple[bytes, list[Span]]:
    """The bytes of a cell that stand on other pages."""
    parts: list[bytes] = []
    touched: list[Span] = []
    while left > 0:
        if len(touched) > len(pages):
            raise ValueError("the chain has no end")
        page = pages[number]
        size = min(left, len(page) - 4)
        parts.append(page[4 : 4 + size])
        last = size == left
        touched.append((number, 4 if last else 0, 4 + size))  # the last page's link to the next does not matter
        left, number = left - size, int.from_bytes(page[:4], "big")
    return b"".join(parts), touched


def _values(payload: bytes) -> Iterator[Value]:
    header, at = _varint(payload, 0)
    if header > len(payload):
        raise ValueError("the header is longer than the row")
    kinds = []
    while at < header:
        kind, at = _varint(payload, at)
        kinds.append(kind)
    for kind in kinds:
        size = _SIZES[kind] if kind < 12 else (kind - 12) // 2
        if at + size > len(payload):
            raise ValueError("the row is cut off")
        yield _value(kind, payload[at : at + size])
        at += size


def _value(kind: int, data: bytes) -> Value:
    if kind == 0:
        return None
    if kind == 7:
        return float(struct.unpack(">d", data)[0])
    if kind in (8, 9):
        return kind - 8
    if kind < 12:
        return int.from_bytes(data, "big", signed=True)
    return data.decode() if kind % 2 else data


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of one to nine bytes, seven bits in each (eight in the ninth), and where the next begins."""
    value = 0
    for count in range(8):
        byte = data[at + count]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + count + 1
    return value << 8 | data[at + 8], at + 9


def _signed(key: int) -> int:
    return key - 2**64 if key >= 2**63 else key
