"""Space -> arrays: how a latent vector becomes parameters, and parameters a latent vector."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixcma.core.coordinates import (
    LARGEST_FLOAT,
    NARROWEST_CELL,
    Condition,
    Coordinates,
    LogGrid,
    Tables,
    cell_centre,
    cell_index,
    float_values,
)
from mixcma.core.stopping import LARGEST_SCALE
from mixcma.latent.axis import Axis, axis
from mixcma.latent.decoder import Decoder
from mixcma.space import Bool, Categorical, Discrete, Float, Int, Params, Space, Value, Variable, invalid

FloatArray = NDArray[np.float64]

# Random starts of floats without bounds lie within this many standard deviations of the mean.
START_REACH = 2.0


# The order of the latent coordinates; those that are searched as categories come last.
KIND_ORDER: tuple[type[Variable], ...] = (Float, Int, Bool, Discrete, Categorical)


class Encoding:
    """The free variables of a space as latent coordinates, those of one kind side by side.

    Categories come last. If the method takes `categories`, variables with two values are categories too.

    Examples
    --------
    >>> encoding = Encoding(Space({"ribs": Int(1, 12), "radius": Float(10, 200)}))
    >>> encoding.decode(encoding.encode({"ribs": 3, "radius": 42.5})[None])
    [{'ribs': 3, 'radius': 42.5}]
    """

    def __init__(self, space: Space, categories: bool = False) -> None:
        self.space = space
        lines = {name: axis(variable, categories) for name, variable in space.free.items()}
        self.names = tuple(sorted(lines, key=lambda n: (lines[n].category, KIND_ORDER.index(type(space[n])))))
        if not self.names:
            raise ValueError(
                f"the space: expected at least one variable with two or more values, but got only the "
                f"constants {space.constants}; widen the bounds of one"
            )
        self.axes = tuple(lines[name] for name in self.names)
        for name, line in zip(self.names, self.axes):
            if not 0 < line.scale < math.inf:
                expected = "a range in which floats can be told apart"
                invalid(name, expected, space[name], "widen the bounds or drop log=True")
        self._axis_of = dict(zip(self.names, self.axes))
        self.initial_mean = np.array([a.latent(a.mean) for a in self.axes])
        self.coordinates = _with_conditions(space, self.names, _coordinates(self.axes), self.initial_mean)
        self._decoder = Decoder(space, self.names, self.axes)
        self._positions = [(name, _position(space[name], line)) for name, line in zip(self.names, self.axes)]

    @property
    def dimension(self) -> int:
        return len(self.axes)

    @property
    def start_box(self) -> tuple[FloatArray, FloatArray]:
        """Where random starts are drawn from, in latent units: the bounds, cells included.

        A float without a bound starts at most `START_REACH` standard deviations from its mean on that side.
        """
        ends = [_start_ends(line) for line in self.axes]
        return np.array([low for low, _ in ends]), np.array([high for _, high in ends])

    @property
    def near_box(self) -> tuple[FloatArray, FloatArray]:
        """The part of `start_box` within `START_REACH` standard deviations of the initial mean; all choices."""
        (low, high), mean = self.start_box, self.initial_mean
        near = np.array([not line.category for line in self.axes])
        return (
            np.where(near, np.maximum(low, mean - START_REACH), low),
            np.where(near, np.minimum(high, mean + START_REACH), high),
        )

    def decode(self, latent: FloatArray, cells: FloatArray | None = None) -> list[Params]:
        """The parameters that latent points (L, N) stand for, in true Python types; their `cells` may be known."""
        with np.errstate(over="ignore"):  # what overflows is clipped to a bound or to the last cell
            floats = float_values(self.coordinates, latent)
            return self._decoder(floats, cell_index(self.coordinates, latent) if cells is None else cells)

    def encode(self, params: Mapping[str, Any]) -> FloatArray:
        """A latent point (N,) that decodes to `params`: the middle of its cells."""
        return self.encode_checked(self.space.check_params(params))

    def encode_checked(self, params: Params) -> FloatArray:
        """The same for `params` that are known to be of the space, with the types that it gives them."""
        present = [position(params[name]) if name in params else math.nan for name, position in self._positions]
        latent: FloatArray = (np.array(present, dtype=np.float64) - self.coordinates.origin) / self.coordinates.scale
        absent = self.coordinates.absent
        return latent if absent is None else np.where(np.isnan(latent), absent, latent)

    def encode_mean(self, mean: Mapping[str, float]) -> FloatArray:
        """The latent point (N,) of an initial mean; names left out keep their own."""
        t = {}
        for name, value in mean.items():
            if name not in self.space:
                invalid(name, f"a variable of the space {list(self.space)}", name, "remove it from mean")
            checked = self.space[name].check_mean(name, value)
            if name in self._axis_of:
                t[name] = _start(self.space[name], self._axis_of[name], checked)
        return np.array([a.latent(t.get(name, a.mean)) for name, a in zip(self.names, self.axes)])


def _position(variable: Variable, line: Axis) -> Callable[[Any], float]:
    """The function that gives the t of a value."""
    if line.category or isinstance(variable, Categorical):
        return variable.listed.index
    return line.position if line.log or line.cells else float


def _start(variable: Variable, line: Axis, mean: float) -> float:
    """The t of a mean; of a category with two values, how probable the second is."""
    if not line.category:
        return line.position(mean)
    low, high = variable.hull
    return (mean - low) / (high - low)


def _start_ends(line: Axis) -> tuple[float, float]:
    """Where the random starts of one coordinate begin and end, latent."""
    half, mean = _granularity(line) / 2, line.latent(line.mean)
    if line.category:
        return line.low, line.high
    if line.cells:
        return line.latent(line.low) - half, line.latent(line.high) + half
    low = mean - START_REACH if math.isinf(line.bounds[0]) else line.latent(line.low)
    high = mean + START_REACH if math.isinf(line.bounds[1]) else line.latent(line.high)
    return low, high


def _coordinates(axes: Sequence[Axis]) -> Coordinates:
    def column(of: Callable[[Axis], float]) -> FloatArray:
        return np.array([of(a) for a in axes], dtype=np.float64)

    log_float = np.array([a.log and not a.cells for a in axes])
    bounded_float = any(not a.cells and (math.isfinite(a.low) or math.isfinite(a.high)) for a in axes)
    bounded_float |= any(not a.cells and a.scale > LARGEST_SCALE for a in axes)  # latents may leave the floats
    low, high = column(lambda a: _latent_ends(a)[0]), column(lambda a: _latent_ends(a)[1])
    bounded = bool((np.isfinite(low) | np.isfinite(high)).any())
    granularity = column(_granularity)
    return Coordinates(
        origin=column(lambda a: a.origin),
        scale=column(lambda a: a.scale),
        log=log_float if log_float.any() else None,
        low=column(lambda a: max(a.bounds[0], -LARGEST_FLOAT)) if bounded_float else None,
        high=column(lambda a: min(a.bounds[1], LARGEST_FLOAT)) if bounded_float else None,
        latent_low=low if bounded else None,
        latent_high=high if bounded else None,
        discrete=np.array([a.cells > 0 for a in axes]),
        margin=np.array([_has_margin(a) for a in axes]),
        choices=np.array([a.cells for a in axes if a.category], dtype=np.int64),
        last=column(lambda a: max(a.cells - 1, 0)),
        width=column(lambda a: 1 / a.scale if a.cells and not a.log and a.values is None else 1.0),
        first=column(lambda a: a.first),
        spacing=column(lambda a: a.spacing),
        log_grid=_log_grid(axes),
        tables=_tables(axes),
        granularity=granularity,
        anchor=column(lambda a: a.latent((a.low + a.high) / 2) if a.cells == 2 else 0.0),
        box_low=column(lambda a: _box(a)[0]),
        box_high=column(lambda a: _box(a)[1]),
    )


def _with_conditions(space: Space, names: Sequence[str], coordinates: Coordinates, mean: FloatArray) -> Coordinates:
    """With the conditions of the space. Absent numbers are at the value next to the mean, categories at no choice."""
    if not space.conditions:
        return coordinates
    conditions = tuple(
        Condition(names.index(child), names.index(parent), _cells(space[parent], allowed))
        for child, needed in space.conditions.items()
        for parent, allowed in needed.items()
        if child in names and parent in names
    )
    centre = cell_centre(coordinates, cell_index(coordinates, mean))
    absent = np.where(coordinates.discrete, centre, mean)
    absent[len(names) - len(coordinates.choices) :] = -1.0
    return coordinates._replace(conditions=conditions, absent=absent)


def _cells(variable: Variable, values: Sequence[Value]) -> tuple[float, ...]:
    """The cells of some values of a variable that is no float."""
    if isinstance(variable, Int):
        return tuple(float((value - variable.low) // variable.step) for value in values)
    return tuple(float(variable.listed.index(value)) for value in values)


def _has_margin(line: Axis) -> bool:
    """Whether neighbouring values can be told apart in latent numbers; on a log scale at least the lower ones can."""
    return line.cells > 0 and not line.category and (line.log or NARROWEST_CELL * (line.cells - 1) < 1)


def _granularity(line: Axis) -> float:
    """The mean latent distance of neighbouring values."""
    return (line.high - line.low) / (line.cells - 1) / line.scale if line.cells else 0.0


def _latent_ends(line: Axis) -> tuple[float, float]:
    """The latent bounds of a float; of three or more values the outer ends of their cells; else none."""
    if 0 < line.cells <= 2 or line.category:
        return -math.inf, math.inf
    half = _granularity(line) / 2
    return line.latent(line.low) - half, line.latent(line.high) + half


def _box(line: Axis) -> tuple[float, float]:
    """The box of Section 3: for two values their threshold -+ S, for more the first and the last value."""
    if not line.cells or line.category:
        return -math.inf, math.inf
    low, high = line.latent(line.low), line.latent(line.high)
    if line.cells == 2:
        middle, S = (low + high) / 2, high - low
        return middle - S, middle + S
    return low, high


def _log_grid(axes: Sequence[Axis]) -> LogGrid | None:
    member = np.array([a.log and a.cells > 0 for a in axes])
    if not member.any():
        return None

    def where(of: Callable[[Axis], float], otherwise: float) -> FloatArray:
        return np.array([of(a) if m else otherwise for a, m in zip(axes, member)], dtype=float)

    return LogGrid(
        member=member,
        origin=where(lambda a: a.origin, 0.0),
        scale=where(lambda a: a.scale, 0.0),
        first=where(lambda a: a.first, 1.0),
        spacing=where(lambda a: a.spacing, 0.0),
    )


def _tables(axes: Sequence[Axis]) -> Tables | None:
    listed = [(i, a, a.values) for i, a in enumerate(axes) if a.values is not None]
    if not listed:
        return None
    longest = max(len(values) for _, _, values in listed)
    row = np.zeros(len(axes), dtype=np.int64)
    thresholds = np.full((len(listed), longest - 1), np.inf)
    padded = np.empty((len(listed), longest))
    for t, (i, line, values) in enumerate(listed):
        row[i] = t
        z = np.array(values)
        thresholds[t, : len(z) - 1] = (z[:-1] / 2 + z[1:] / 2 - line.origin) / line.scale
        padded[t] = np.concatenate([z, np.full(longest - len(z), z[-1])])
    return Tables(
        member=np.array([a.values is not None for a in axes]),
        columns=np.array([i for i, _, _ in listed]),
        row=row,
        thresholds=thresholds,
        values=padded,
    )
