"""Objectives that raise what they should not."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from typing import Any, NoReturn

from cases import FAILED, INSIDE, TIMEOUT, WAYS, Params
from registry import FOREVER, LIE, attack

NOT_INSIDE = tuple(way for way in WAYS if way != INSIDE)


@attack(FAILED)
def raises_group(p: Params) -> NoReturn:
    """Raises an ExceptionGroup that holds other groups."""
    raise ExceptionGroup("outer", [ExceptionGroup("inner", [KeyError("a"), ValueError("b")])])


@attack(FAILED)
def raises_cancelled(p: Params) -> NoReturn:
    """Raises asyncio.CancelledError, which is no Exception."""
    import asyncio

    raise asyncio.CancelledError


@attack(FAILED)
def raises_futures_cancelled(p: Params) -> NoReturn:
    """Raises the CancelledError of concurrent.futures, as a cancelled future would."""
    from concurrent.futures import CancelledError

    raise CancelledError


@attack(FAILED)
def raises_broken_pool(p: Params) -> NoReturn:
    """Raises BrokenProcessPool, as a pool inside the objective would."""
    from concurrent.futures.process import BrokenProcessPool

    raise BrokenProcessPool("the pool of the objective")


@attack(FAILED)
def raises_generator_exit(p: Params) -> NoReturn:
    """Raises GeneratorExit."""
    raise GeneratorExit


@attack(FAILED)
def raises_system_exit(p: Params) -> NoReturn:
    """Calls sys.exit(0), as if all were well."""
    sys.exit(0)


class Foreign(BaseException):
    """A BaseException of the user's own."""


@attack(FAILED)
def raises_base_exception(p: Params) -> NoReturn:
    """Raises a BaseException of its own."""
    raise Foreign("neither an error nor an exit")


@attack(FAILED, ways=NOT_INSIDE)
def raises_keyboard_interrupt(p: Params) -> NoReturn:
    """Raises KeyboardInterrupt, though nobody pressed a key."""
    raise KeyboardInterrupt


class Impostor(KeyboardInterrupt):
    """Looks like Ctrl-C."""


@attack(FAILED, ways=NOT_INSIDE)
def raises_interrupt_of_its_own(p: Params) -> NoReturn:
    """Raises a subclass of KeyboardInterrupt."""
    raise Impostor


class Mute(Exception):
    """Leaves the program when it is shown."""

    def __str__(self) -> str:
        raise SystemExit("shown")

    __repr__ = __str__


@attack(FAILED)
def raises_unshowable(p: Params) -> NoReturn:
    """Raises an exception whose __str__ and __repr__ call for the end of the program."""
    raise Mute


@attack(FAILED)
def raises_unpicklable(p: Params) -> NoReturn:
    """Raises an exception that holds a lock, so that it cannot be sent."""
    raise RuntimeError(threading.Lock())


class Unloadable(Exception):
    """Can be pickled; loading it leaves the program."""

    def __reduce__(self) -> tuple[Any, ...]:
        return sys.exit, ("loaded",)


@attack(FAILED)
def raises_unloadable(p: Params) -> NoReturn:
    """Raises an exception that leaves the program where it is unpickled."""
    raise Unloadable


class Sleeper(Exception):
    """Can be pickled; loading it takes for ever."""

    def __reduce__(self) -> tuple[Any, ...]:
        return time.sleep, (FOREVER,)


@attack(FAILED, needs=TIMEOUT)
def raises_what_loads_for_ever(p: Params) -> NoReturn:
    """Raises an exception whose unpickling never ends."""
    raise Sleeper


def die_elsewhere(home: int) -> float:
    """Ends any process but the one in which the object was made."""
    if os.getpid() != home:
        os.kill(os.getpid(), signal.SIGKILL)
    return LIE


class LetterBomb(Exception):
    """Harmless where it was made; kills the process that unpickles it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return die_elsewhere, (os.getpid(),)


@attack(FAILED)
def raises_letter_bomb(p: Params) -> NoReturn:
    """Raises an exception that kills whatever other process unpickles it."""
    raise LetterBomb


@attack(FAILED)
def raises_deep_recursion(p: Params) -> object:
    """Recurses until Python stops it."""
    return raises_deep_recursion(p)


@attack(FAILED)
def raises_memory_error(p: Params) -> int:
    """Asks for more memory than any machine has."""
    return len(bytearray(2**60))


@attack(FAILED)
def raises_ten_megabytes(p: Params) -> NoReturn:
    """Raises an exception with a message of 10 MB."""
    raise ValueError("x" * 10**7)


@attack(FAILED)
def raises_cyclic_causes(p: Params) -> NoReturn:
    """Raises an exception that is its own cause, by way of another."""
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    raise first


@attack(FAILED)
def raises_long_chain(p: Params) -> NoReturn:
    """Raises an exception with 5,000 causes, one behind the other."""
    last = ValueError("0")
    for k in range(1, 5000):
        following = ValueError(str(k))
        following.__cause__ = last
        last = following
    raise last


@attack(FAILED)
def raises_broken_unicode(p: Params) -> NoReturn:
    """Raises an exception whose text holds half a surrogate pair, NUL and ESC."""
    raise ValueError("\ud800 \x00 \x1b[31m")


@attack(FAILED)
def raises_broken_notes(p: Params) -> NoReturn:
    """Raises an exception whose notes are no list."""
    error = ValueError("noted")
    error.__notes__ = 7  # type: ignore[attr-defined]
    raise error


@attack(FAILED)
def raises_stop_iteration(p: Params) -> object:
    """Raises StopIteration."""
    return next(iter(()))
