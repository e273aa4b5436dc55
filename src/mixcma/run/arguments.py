"""Arguments that several entry points take, and every check of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real

import numpy as np

from mixcma.core.methods import METHODS, Margin, Method, Mix
from mixcma.core.stopping import Stopping
from mixcma.latent.encoding import Encoding
from mixcma.space import Params, Space

SMALLEST_POPSIZE = 4


def check_categories(method: Method, encoding: Encoding) -> None:
    """Only some methods know categories of three or more choices."""
    listed = [name for name, line in zip(encoding.names, encoding.axes) if line.category]
    if listed and not method.takes_categories:
        able = [name for name, other in METHODS.items() if other.takes_categories]
        raise ValueError(
            f"method: expected one that takes categories, since the choices of variable {listed[0]!r} have no order, "
            f"but got {method!r}; use method={able[-1]!r}"
        )


def checked_space(space: object) -> Space:
    if not isinstance(space, Space):
        raise ValueError(f'space: expected a Space, but got {space!r}; write Space({{"x": Float(0, 1)}})')
    return space


def checked_method(method: object) -> Method:
    if isinstance(method, str) and method in METHODS:
        method = METHODS[method]
    if not isinstance(method, Method):
        known = ", ".join(repr(name) for name in METHODS)
        raise ValueError(f"method: expected one of {known} or a method object, but got {method!r}; choose one")
    if isinstance(method, Mix) and not isinstance(method.model, bool):
        raise ValueError(f"model of Mix: expected True or False, but got {method.model!r}; leave it out")
    if isinstance(method, Margin) and method.alpha is not None:
        alpha = method.alpha
        if isinstance(alpha, bool) or not isinstance(alpha, int | float) or not 0 < alpha < 0.5:
            raise ValueError(
                f"alpha of Margin: expected a number between 0 and 0.5, but got {alpha!r}; "
                "leave it out to use 1 / (N lambda)"
            )
    return method


def checked_stopping(stopping: object) -> Stopping:
    if not isinstance(stopping, Stopping):
        raise ValueError(f"stopping: expected a Stopping, but got {stopping!r}; write Stopping(...) or leave it out")
    for name, limit in vars(stopping).items():
        if not (limit is None and name == "flat_tolerance") and (
            isinstance(limit, bool) or not isinstance(limit, Real)
        ):
            raise ValueError(f"{name} of Stopping: expected a number, but got {limit!r}; leave it out")
    return stopping


def checked_count(name: str, count: object, least: int) -> int:
    """A whole number of at least `least`, of Python or NumPy."""
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < least:
        nearest = round(count) if isinstance(count, float) and math.isfinite(count) else least
        raise ValueError(
            f"{name}: expected an integer of at least {least}, but got {count!r}; pass {name}={max(nearest, least)}"
        )
    return int(count)


def checked_target(target: object) -> float | None:
    if target is None:
        return None
    if isinstance(target, bool) or not isinstance(target, Real) or math.isnan(target):
        raise ValueError(f"target: expected a number or None, but got {target!r}; leave it out")
    return float(target)


def checked_seed(seed: object) -> int:
    return checked_count("seed", seed, 0)


def checked_popsize(popsize: object) -> int | None:
    return None if popsize is None else checked_count("popsize", popsize, SMALLEST_POPSIZE)


def checked_points(space: Space, x0: object) -> list[Params]:
    if x0 is None:
        return []
    points = [x0] if isinstance(x0, Mapping) else x0
    if not isinstance(points, Sequence) or isinstance(points, str):
        raise ValueError(f"x0: expected a dict of parameters or a list of them, but got {x0!r:.80}; pass a dict")
    checked = []
    for number, point in enumerate(points):
        try:
            checked.append(space.check_params(point))
        except ValueError as error:
            raise ValueError(f"x0, point {number}: {error}") from error
    return checked
