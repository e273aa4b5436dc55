"""Objectives that return something other than a number."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

from cases import EITHER, FAILED, TIMEOUT, VALUE, Params
from raising import Foreign, LetterBomb, Mute
from registry import FOREVER, LIE, attack, honest, leave, sleep


@attack(FAILED)
def returns_nan(p: Params) -> float:
    """Returns NaN."""
    return float("nan")


@attack(FAILED)
def returns_nothing(p: Params) -> None:
    """Returns None."""


@attack(FAILED)
def returns_text(p: Params) -> str:
    """Returns the number as text."""
    return str(honest(p))


@attack(FAILED)
def returns_minus_infinity(p: Params) -> float:
    """Returns -inf, which nothing could beat."""
    return -float("inf")


@attack(VALUE, value=float("inf"))
def returns_infinity(p: Params) -> float:
    """Returns +inf."""
    return float("inf")


@attack(VALUE, value=float("inf"))
def returns_huge_integer(p: Params) -> int:
    """Returns 10**400, an integer beyond the floats."""
    return 10**400


@attack(FAILED)
def returns_huge_negative_integer(p: Params) -> int:
    """Returns -10**400."""
    return -(10**400)


@attack(VALUE)
def returns_array_without_axes(p: Params) -> object:
    """Returns an array without axes."""
    import numpy as np

    return np.array(honest(p))


@attack(VALUE)
def returns_fraction(p: Params) -> object:
    """Returns a Fraction."""
    from fractions import Fraction

    return Fraction(honest(p))


@attack(EITHER)
def returns_decimal(p: Params) -> object:
    """Returns a Decimal."""
    from decimal import Decimal

    return Decimal(honest(p))


@attack(FAILED)
def returns_complex(p: Params) -> complex:
    """Returns a complex number."""
    return complex(honest(p))


@attack(FAILED)
def returns_masked(p: Params) -> object:
    """Returns numpy.ma.masked, a value that is missing."""
    import numpy as np

    return np.ma.masked


@attack(FAILED)
def returns_not_a_time(p: Params) -> object:
    """Returns NumPy's NaT, the NaN of dates."""
    import numpy as np

    return np.datetime64("NaT")


@attack(FAILED)
def returns_generator(p: Params) -> object:
    """Returns a generator: somebody wrote yield for return."""
    return (honest(p) for _ in range(1))


@attack(FAILED)
def returns_coroutine(p: Params) -> object:
    """Returns a coroutine: somebody forgot to await it."""

    async def value() -> float:
        return honest(p)

    return value()


@attack(FAILED)
def returns_function(p: Params) -> object:
    """Returns a lambda instead of calling it."""
    return lambda: honest(p)


@attack(FAILED)
def returns_deep_list(p: Params) -> object:
    """Returns lists nested 50,000 deep, which cannot be pickled or shown."""
    deep: list[object] = []
    for _ in range(50_000):
        deep = [deep]
    return deep


@attack(FAILED)
def returns_gigantic_repr(p: Params) -> object:
    """Returns a list whose repr has 6 million characters."""
    return [0.5] * 1_000_000


class Contrary(float):
    """A float that calls itself equal to everything and cannot be ordered."""

    def __eq__(self, other: object) -> bool:
        return True

    def __lt__(self, other: object) -> bool:
        raise RuntimeError("compared")

    __gt__ = __le__ = __ge__ = __lt__
    __hash__ = None  # type: ignore[assignment]


@attack(VALUE)
def returns_contrary_float(p: Params) -> float:
    """Returns a subclass of float whose comparisons lie or raise."""
    return Contrary(honest(p))


def real(**methods: Callable[..., Any]) -> object:
    """A number of a class of its own, with these methods."""
    import numbers

    made = type("Real", (), methods)
    numbers.Real.register(made)
    return made()


@attack(FAILED)
def returns_what_leaves_when_converted(p: Params) -> object:
    """Returns a number whose __float__ calls for the end of the program."""
    return real(__float__=leave)


@attack(FAILED, needs=TIMEOUT)
def returns_what_converts_for_ever(p: Params) -> object:
    """Returns a number whose __float__ never ends."""
    return real(__float__=sleep)


@attack(FAILED)
def returns_what_leaves_when_shown(p: Params) -> object:
    """Returns an object whose __repr__ calls for the end of the program."""
    return type("Shy", (), {"__repr__": leave})()


@attack(FAILED, needs=TIMEOUT)
def returns_what_is_shown_for_ever(p: Params) -> object:
    """Returns an object whose __repr__ never ends."""
    return type("Slow", (), {"__repr__": sleep})()


@attack(FAILED)
def returns_what_leaves_when_pickled(p: Params) -> object:
    """Returns an object whose __reduce__ calls for the end of the program."""
    return type("Stay", (), {"__reduce__": leave})()


@attack(FAILED, needs=TIMEOUT)
def returns_what_pickles_for_ever(p: Params) -> object:
    """Returns an object whose __reduce__ never ends."""
    return type("Stuck", (), {"__reduce__": sleep})()


class Parcel:
    """Harmless where it was made; kills the process that unpickles it."""

    __reduce__ = LetterBomb.__reduce__


@attack(FAILED)
def returns_letter_bomb(p: Params) -> object:
    """Returns an object that kills whatever other process unpickles it."""
    return Parcel()


def sleep_elsewhere(home: int) -> float:
    if os.getpid() != home:
        time.sleep(FOREVER)
    return LIE


class SleepingParcel:
    """Harmless where it was made; holds up the process that unpickles it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return sleep_elsewhere, (os.getpid(),)


@attack(FAILED, needs=TIMEOUT)
def returns_sleeping_bomb(p: Params) -> object:
    """Returns an object that never ends to unpickle in any other process."""
    return SleepingParcel()


@attack(FAILED)
def returns_changeling(p: Params) -> object:
    """Returns an object that claims to be a float, and is not."""
    return type("Changeling", (), {"__class__": property(lambda self: float)})()


@attack(FAILED)
def returns_what_items_text(p: Params) -> object:
    """Returns something like an array without axes whose item is text."""
    return type("Item", (), {"shape": (), "item": lambda self: "3.0"})()


def outcome(*arguments: Any, **named: Any) -> Any:
    """An Outcome; mixcma is imported where it is needed alone."""
    from mixcma import Outcome

    return Outcome(*arguments, **named)


@attack(FAILED)
def returns_broken_outcome(p: Params) -> object:
    """Returns a subclass of Outcome that raises when it is asked whether it failed."""
    from mixcma import Outcome

    return type("Broken", (Outcome,), {"failed": property(leave)})(honest(p))


@attack(FAILED)
def returns_endless_constraints(p: Params) -> object:
    """Returns constraints that never end."""
    return outcome(honest(p), (-1.0 for _ in itertools.count()))


@attack(FAILED)
def returns_growing_constraints(p: Params) -> object:
    """Returns constraints that grow while they are read."""

    class Growing(list):  # type: ignore[type-arg]
        def __iter__(self) -> Iterator[float]:
            for g in itertools.count():
                self.append(-1.0)
                yield self[g]

    return outcome(honest(p), Growing())


@attack(FAILED)
def returns_cancelling_constraints(p: Params) -> object:
    """Returns constraints that raise a BaseException at the second one."""

    def constraints() -> Iterator[float]:
        yield -1.0
        raise Foreign

    return outcome(honest(p), constraints())


@attack(FAILED)
def returns_constraints_in_text(p: Params) -> object:
    """Returns constraints as texts."""
    return outcome(honest(p), ["-1.0", "-2.0"])


@attack(FAILED)
def returns_long_error(p: Params) -> object:
    """Returns an Outcome with an error of 10 MB."""
    return outcome(0.0, error="e" * 10**7)


@attack(FAILED)
def returns_unshowable_error(p: Params) -> object:
    """Returns an Outcome whose error leaves the program when it is shown."""
    return outcome(0.0, error=Mute())
