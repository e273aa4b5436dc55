"""The fast text and the literal one side by side: spaces, objectives, and a run of both on the same noise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixcma import Bool, Discrete, Float, Int, Space
from mixcma.core.coordinates import values_at
from mixcma.core.method import Method
from mixcma.core.setting import Setting
from mixcma.latent.encoding import Encoding
from mixcma.run.noise import NoiseSource
from tests.reference import bounds
from tests.reference.bounds import Bounds
from tests.reference.run import Noise as LiteralNoise

Array = NDArray[np.float64]
Objective = Callable[[Array], Array]
State = Any  # of any method
RTOL = 1e-9

MIXED = Space(
    {
        "x1": Float(mean=1.5, std=1.0),
        "x2": Float(mean=2.5, std=1.0),
        "n1": Int(-10, 10, mean=2.25, std=1.0),
        "n2": Int(0, 3, mean=1.25, std=1.0),
        "n3": Int(1, 9, step=2, mean=4.0, std=2.0),
        "b1": Bool(mean=0.5, std=1.0),
        "b2": Bool(mean=0.5, std=1.0),
        "d1": Discrete([0.01, 0.1, 1.0], std=1.0),
        "d2": Discrete([1, 2, 4, 8], mean=3.5, std=1.0),
    }
)
INTEGERS = Space({f"n{i}": Int(-10, 10, mean=2.0 + i / 7, std=1.0) for i in range(5)})
PAPER_LIKE = Space(
    {f"x{i}": Float(mean=1 + i / 3, std=1.0) for i in range(4)}
    | {f"n{i}": Int(-10, 10, mean=1 + i / 2, std=1.0) for i in range(4)}
)
BINARY = Space({f"x{i}": Float(mean=1 + i / 3, std=1.0) for i in range(3)} | {f"b{i}": Bool(std=1.0) for i in range(3)})
FLOATS = Space({f"x{i}": Float(mean=1 + i / 3, std=1.0) for i in range(4)})
BOUNDED = Space(
    {
        "x1": Float(-1, 3, mean=1.5, std=1.0),
        "x2": Float(0, 5),
        "half": Float(low=-2.0, mean=1.0, std=1.0),
        "rate": Float(1e-3, 10.0, log=True),
        "free": Float(mean=2.0, std=1.0),
        "n1": Int(-4, 4, mean=1.25, std=1.0),
        "n2": Int(0, 3, mean=1.25, std=1.0),
        "n3": Int(1, 9, step=2, mean=4.0, std=2.0),
        "b": Bool(std=1.0),
        "d": Discrete([1, 2, 4, 8], mean=3.5, std=1.0),
    }
)
BOUNDED_INTEGERS = Space({f"n{i}": Int(-i, 3 + i, std=1.0) for i in range(5)} | {"d": Discrete([0, 1, 3], std=1.0)})


def ellipsoid(values: Array) -> Array:
    """Ill-conditioned, with an optimum that is not in the middle of a cell."""
    scales = np.geomspace(1, 100, values.shape[-1])
    return np.sum((scales * (values - 0.7)) ** 2, axis=-1)


def plateaus(values: Array) -> Array:
    """Many equal values, so that weights are shared."""
    return np.floor(np.sum(np.abs(values - 0.7), axis=-1))


def beyond(values: Array) -> Array:
    """Best far below the first, the third, ... and far above the others: at the bounds, where there are some."""
    optimum = np.where(np.arange(values.shape[-1]) % 2, 9.0, -7.0)
    return np.sum((values - optimum) ** 2, axis=-1)


def at_the_bounds(values: Array) -> Array:
    """Best where the lower bounds of `BOUNDED` are, in steps."""
    return np.floor(64 * np.sum((values + 1.0) ** 2, axis=-1)) / 64


def constraint(values: Array) -> Array:
    """What is violated close to 0 in the first coordinate."""
    return np.maximum(0.0, 1.0 - np.abs(values[..., 0]))


def latent_values(encoding: Encoding) -> list[list[float] | None]:
    """The values of each discrete number in latent units, as the literal text takes them; categories are left out."""
    listed: list[list[float] | None] = []
    for line in encoding.axes:
        if line.category:
            continue
        if not line.cells:
            listed.append(None)
        elif line.values is None:
            listed.append([k / line.scale for k in range(line.cells)])
        else:
            listed.append([line.latent(z) for z in line.values])
    return listed


def latent_limits(encoding: Encoding) -> list[Bounds]:
    """The bounds of each number in latent units, as the literal text takes them."""
    numbers = [line for line in encoding.axes if not line.category]
    return [
        (line.latent(line.low), line.latent(line.high)) if values is None else bounds.outer_ends(values)
        for line, values in zip(numbers, latent_values(encoding))
    ]


class Step(NamedTuple):
    """One generation of the fast text."""

    before: State
    after: State
    outside: bool  # some candidates lay outside the bounds
    when: str  # for messages


def in_step(
    method: Method,
    setting: Setting,
    state: State,
    literal: Any,
    objective: Objective,
    violation: Objective | None = None,
    *,
    generations: int,
    interval: int = 1,
    older: Callable[[int], Array | None] = lambda generation: None,
    rtol: float = RTOL,
    seed: int = 7,
) -> Iterator[Step]:
    """Both texts on the same noise; after each generation their states are there to be compared.

    `interval`: generations between decompositions. `older`: which candidates of a generation an older state drew.
    """
    popsize, dimension = setting.strategy.popsize, len(setting.coordinates.last)
    assert literal.constants.popsize == popsize
    source = NoiseSource(seed, 0, popsize, dimension, uniforms=True)
    for generation in range(generations):
        noise, before = source(generation), state
        sample = method.sample(setting, state, noise)
        points = literal.sample(LiteralNoise(*(part.tolist() for part in noise)))
        np.testing.assert_allclose(sample.v, points, rtol=rtol, atol=rtol / 100, err_msg=f"generation {generation}")
        decoded, outside = values_at(setting.coordinates, sample.v), False
        if literal.limits is not None:  # candidates outside are evaluated on the bounds
            inside = sample.v.copy()
            for j, limits in enumerate(literal.limits):
                inside[:, j] = [bounds.nearest_inside(point[j], limits) for point in points]
            outside = not np.array_equal(inside, points)
            assert_close(decoded, values_at(setting.coordinates, inside), "values", rtol)
        values = objective(decoded)
        violations = None if violation is None else violation(decoded)
        if violations is not None and not violations.any() and generation % 2:  # as `read_outcomes` says it
            violations = None
        told = [values.tolist(), None if violations is None else violations.tolist()]
        drawn_before = older(generation)
        if drawn_before is not None:
            sample = sample._replace(older=drawn_before)
            told.append(drawn_before.tolist())
        state = method.tell(setting, state, sample, values, violations)
        if state.generation % interval == 0:
            state = method.decomposed(state)
        literal.update(*told)
        yield Step(before, state, outside, f"after generation {generation}")


def assert_close(fast: Any, literal: Any, what: str, rtol: float = RTOL) -> None:
    """Equal up to rounding, of each number or of the largest beside it."""
    expected = np.asarray(literal, dtype=float)
    atol = rtol * np.abs(expected).max(initial=0.0)
    np.testing.assert_allclose(np.reshape(fast, expected.shape), expected, rtol=rtol, atol=atol, err_msg=what)
