"""From a space to latent coordinates and back: what is encoded is decoded, whatever the latent point."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mixcma import Bool, Discrete, Float, Int, Space
from mixcma.core.coordinates import cell_index, threshold_above, values_at
from mixcma.latent.encoding import Encoding

ANY_LATENT = st.floats(allow_nan=False, allow_infinity=False)
HUGE = (1e300, -1e300, 1.7e308, -1.7e308)
STD = st.none() | st.floats(1e-3, 1e3)
WIDE = [Int(0, 2**60), Int(-(2**61), 2**61), Int(0, 2**60 - 1), Int(1, 2**62, log=True), Int(0, 7 * 2**58, 7)]


@st.composite
def linear_floats(draw):
    """A float with a value of it; a bound or both may be missing."""
    low = draw(st.floats(-1e6, 1e6))
    high = low + draw(st.floats(1e-3, 1e6))
    value = draw(st.floats(low, high))
    low, high = draw(st.sampled_from([(low, high), (low, None), (None, high), (None, None)]))
    return Float(low, high, std=draw(STD)), value


@st.composite
def log_floats(draw):
    low = draw(st.floats(1e-30, 1e10))
    high = low * draw(st.floats(1.01, 1e20))
    value = draw(st.floats(low, high))
    return Float(low, draw(st.sampled_from([high, None])), log=True, std=draw(STD)), value


@st.composite
def integers_(draw, log=False):
    low = draw(st.integers(1, 1000) if log else st.integers(-(2**40), 2**40))
    step, last = draw(st.integers(1, 1000)), draw(st.integers(0, 20) | st.integers(0, 2**30))
    value = low + step * draw(st.integers(0, last))
    return Int(low, low + step * last, step, log=log, std=draw(STD)), value


@st.composite
def sets(draw):
    """Uneven values in any order, as ints or with a fraction."""
    scale = draw(st.sampled_from([1, 1e-6, 0.0625, 1e6]))
    steps = draw(st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=12, unique=True))
    values = [step * scale for step in steps]
    return Discrete(values, std=draw(STD)), draw(st.sampled_from(values))


BOOLS = st.tuples(st.builds(Bool, std=STD), st.booleans())
CONSTANTS = st.sampled_from(
    [(Float(2.5, 2.5), 2.5), (Int(0, 0), 0), (Int(7, 7), 7), (Discrete([0.1]), 0.1), (Discrete([3]), 3)]
)
PAIRS = linear_floats() | log_floats() | integers_() | integers_(log=True) | sets() | BOOLS | CONSTANTS


@st.composite
def points(draw):
    """A space with at least one free variable, and a point of it."""
    pairs = draw(st.lists(PAIRS, max_size=5))
    pairs.insert(draw(st.integers(0, len(pairs))), draw(linear_floats() | BOOLS))
    named = {f"v{i}": pair for i, pair in enumerate(pairs)}
    return Space({n: v for n, (v, _) in named.items()}), {n: value for n, (_, value) in named.items()}


def close(variable, one, other):
    """Equal but for the rounding of a float within its range."""
    if not isinstance(variable, Float):
        return one == other
    if variable.log:
        return math.isclose(one, other, rel_tol=1e-9)
    ends = [abs(end) for end in (variable.low, variable.high, variable.std, one) if end is not None]
    return math.isclose(one, other, abs_tol=1e-12 * max(ends, default=1.0))


def true_type(variable):
    if isinstance(variable, Discrete):
        return type(variable.values[0])
    return {Float: float, Int: int, Bool: bool}[type(variable)]


def one(variable):
    return Encoding(Space({"v": variable}))


def decoded(encoding, *latent):
    return [params["v"] for params in encoding.decode(np.array(latent)[:, None])]


def threshold(encoding, k):
    return float(threshold_above(encoding.coordinates, np.array([float(k)]))[0])


def cell(encoding, u):
    return int(cell_index(encoding.coordinates, np.array([u]))[0])


# There and back


@given(points())
def test_decoding_what_was_encoded_gives_the_same_parameters(point):
    space, params = point
    encoding = Encoding(space)
    (back,) = encoding.decode(encoding.encode(params)[None])
    assert list(back) == list(space)
    wrong = [name for name in space if not close(space[name], back[name], params[name])]
    assert not wrong, (params, back)


@given(points())
def test_decoded_values_have_true_python_types(point):
    space, params = point
    encoding = Encoding(space)
    for back in encoding.decode(np.stack([encoding.encode(params), encoding.initial_mean])):
        assert {name: type(value) for name, value in back.items()} == {n: true_type(space[n]) for n in space}


@given(points(), st.lists(ANY_LATENT, min_size=6, max_size=6))
def test_every_finite_latent_point_decodes_to_a_point_of_the_space(point, latent):
    space, _ = point
    encoding = Encoding(space)
    with np.errstate(over="ignore"):
        (params,) = encoding.decode(np.array(latent[: encoding.dimension])[None])
    unbounded = {n for n, v in space.items() if isinstance(v, Float) and (v.low is None or v.high is None)}
    for name in set(space) - unbounded:
        space[name].check_value(name, params[name])
    for name in unbounded:
        low, high = space[name].low, space[name].high
        assert low is None or params[name] >= low
        assert high is None or params[name] <= high


@given(points())
def test_rows_are_decoded_independently(point):
    space, params = point
    encoding = Encoding(space)
    latent = np.stack([encoding.encode(params), encoding.initial_mean, *encoding.start_box])
    assert encoding.decode(latent) == [encoding.decode(row[None])[0] for row in latent]


@given(points())
def test_one_row_of_cells_goes_with_all_points(point):
    space, params = point
    encoding = Encoding(space)
    latent = np.stack([encoding.encode(params)] * 3)
    discrete = encoding.coordinates.discrete
    latent[1:, ~discrete] = encoding.initial_mean[~discrete]
    cells = np.broadcast_to(cell_index(encoding.coordinates, latent)[:1], latent.shape)
    decoded = encoding.decode(latent, cells)
    assert decoded == encoding.decode(latent)
    assert [list(each) for each in decoded] == [list(space)] * 3


@given(points())
def test_the_core_values_are_those_of_the_parameters(point):
    space, params = point
    encoding = Encoding(space)
    latent = np.stack([encoding.encode(params), encoding.initial_mean])
    numbers = values_at(encoding.coordinates, latent)
    for row, back in zip(numbers, encoding.decode(latent)):
        assert row.tolist() == [float(back[name]) for name in encoding.names]


@pytest.mark.parametrize("where", range(4))
@pytest.mark.parametrize("constant", [Float(2.5, 2.5), Int(7, 7), Discrete([3])], ids=["float", "int", "set"])
def test_a_constant_keeps_its_place_and_has_no_coordinate(where, constant):
    items = [("d", Discrete([5, 1])), ("b", Bool()), ("x", Float(0, 1))]
    items.insert(where, ("c", constant))
    encoding = Encoding(Space(dict(items)))
    assert encoding.dimension == 3
    (params,) = encoding.decode(encoding.initial_mean[None])
    assert list(params) == [name for name, _ in items]
    assert params["c"] == Space({"c": constant}).constants["c"]


@pytest.mark.parametrize(
    "values",
    [[-1.0, 0.0, 1e-20], [1e6, 1.0, 1.0 + 2**-52], [0.0, 5e-324], [1e308, 1.2e308], [-8e307, 8e307]],
    ids=["tiny beside wide", "neighbouring floats", "smallest float", "largest floats", "widest"],
)
def test_every_value_of_an_accepted_set_can_be_reached(values):
    try:
        encoding = one(Discrete(values))
    except ValueError:
        return
    assert np.isfinite(encoding.initial_mean).all()
    assert [decoded(encoding, *encoding.encode({"v": value}))[0] for value in values] == values


@pytest.mark.parametrize(
    "variable",
    [
        Float(1, 1e308, log=True),
        Float(1e305, 1e308, log=True),
        Float(1e-320, 1e-300, log=True),
        Float(-8e307, 8e307),
    ],
    ids=["wide log", "large log", "small log", "wide"],
)
def test_both_bounds_of_an_accepted_float_can_be_reached(variable):
    encoding = one(variable)
    for bound in (variable.low, variable.high):
        back = decoded(encoding, *encoding.encode({"v": bound}))[0]
        assert math.isclose(back, bound, rel_tol=1e-9)


@pytest.mark.parametrize(
    "variable",
    [
        Float(0, 5e-324),
        Float(1e300, math.nextafter(1e300, math.inf), log=True),
        Int(2**61, 2**61 + 1, log=True),
    ],
    ids=["subnormal", "narrow log", "narrow log int"],
)
def test_an_accepted_range_has_a_scale_however_narrow_it_is(variable):
    try:
        encoding = one(variable)
    except ValueError:
        return
    assert 0 < encoding.axes[0].scale < math.inf
    assert np.isfinite(encoding.initial_mean).all()


# Bounds


@given(linear_floats() | log_floats(), ANY_LATENT)
@example((Float(0.1, 0.3), 0.1), 1e300)
@example((Float(1e-5, 0.1, log=True), 0.1), -1e300)
@example((Float(-1e6, 1e6), 0.0), 1.7e308)
def test_a_float_is_never_outside_its_bounds(pair, latent):
    variable, _ = pair
    with np.errstate(over="ignore"):
        (value,) = decoded(one(variable), latent)
    assert variable.low is None or value >= variable.low
    assert variable.high is None or value <= variable.high


@pytest.mark.parametrize("variable", [Float(0.1, 0.3), Float(0.3, 0.7, log=True), Float(-1e6, 1e6)], ids=str)
def test_far_outside_the_bounds_a_float_is_its_bound_to_the_bit(variable):
    assert decoded(one(variable), -1e200, 1e200) == [variable.low, variable.high]


@pytest.mark.parametrize(
    "variable",
    [
        Float(0, 1e10),
        Float(1e-3, 10, log=True),
        Float(0, None, log=False),
        Int(0, 10),
        Int(0, 2**60),
        Int(1, 2**60, log=True),
        Bool(),
        Discrete([1, 5, 7]),
        Discrete([0, 1e200]),
    ],
    ids=str,
)
def test_a_huge_latent_point_is_decoded_without_a_warning(variable):
    encoding = one(variable)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values = decoded(encoding, *HUGE)
    for value in values:
        encoding.space["v"].check_value("v", value)


# Wide integers


@pytest.mark.parametrize("variable", WIDE, ids=str)
@pytest.mark.parametrize("u", [0.0, 1.0, 2.0, 3.999, -1.0, 1e10, -1e10, *np.linspace(-0.1, 4.1, 12).tolist()])
def test_a_wide_int_decodes_to_one_of_its_values(variable, u):
    (value,) = decoded(one(variable), u)
    assert type(value) is int
    assert variable.low <= value <= variable.high
    assert (value - variable.low) % variable.step == 0


@pytest.mark.parametrize("variable", WIDE, ids=str)
def test_a_wide_int_reaches_both_its_bounds(variable):
    encoding = one(variable)
    assert decoded(encoding, -1e3, 1e3) == [variable.low, variable.high]
    for bound in (variable.low, variable.high):
        assert decoded(encoding, *encoding.encode({"v": bound})) == [bound]


@pytest.mark.parametrize("variable", WIDE, ids=str)
def test_a_wide_int_is_never_made_into_a_table(variable):
    coordinates = one(variable).coordinates
    assert coordinates.tables is None
    assert all(np.size(array) <= 1 for array in coordinates if isinstance(array, np.ndarray))


# Cells


@pytest.mark.parametrize(
    ("variable", "thresholds"),
    [
        (Int(0, 4, std=1), [0.5, 1.5, 2.5, 3.5]),
        (Int(-3, 1, std=1), [0.5, 1.5, 2.5, 3.5]),
        (Int(0, 40, 10, std=10), [0.5, 1.5, 2.5, 3.5]),
        (Int(0, 4, std=4), [0.125, 0.375, 0.625, 0.875]),
        (Bool(std=1), [0.5]),
        (Discrete([4, 0, 1], std=1), [0.5, 2.5]),
        (Discrete([-1.0, 2.0], std=0.5), [3.0]),
        (Discrete([0.1, 0.25, 0.7], std=0.3), None),
    ],
    ids=str,
)
def test_a_point_on_a_threshold_belongs_to_the_lower_cell(variable, thresholds):
    encoding = one(variable)
    computed = [threshold(encoding, k) for k in range(encoding.axes[0].cells - 1)]
    assert thresholds is None or computed == thresholds
    for k, u in enumerate(computed):
        assert (cell(encoding, u), cell(encoding, math.nextafter(u, math.inf))) == (k, k + 1)


@given(integers_() | integers_(log=True) | sets() | BOOLS, st.integers(0, 1000))
def test_cells_meet_at_their_thresholds(pair, k):
    variable, _ = pair
    encoding = Encoding(Space({"v": variable, "other": Discrete([0, 1, 7, 9])}))
    cells = encoding.axes[encoding.names.index("v")].cells if "v" in encoding.names else 1
    if k >= cells - 1:
        return
    column = encoding.names.index("v")
    edge = threshold_above(encoding.coordinates, np.full(2, float(k)))
    beside = [cell_index(encoding.coordinates, edge * factor)[column] for factor in (1 - 1e-9, 1 + 1e-9)]
    assert beside == [k, k + 1]


def test_the_threshold_of_two_set_values_lies_midway():
    encoding = one(Discrete([1.0, 2.0, 10.0]))
    scale = encoding.axes[0].scale
    assert [threshold(encoding, k) for k in range(2)] == pytest.approx([0.5 / scale, 5.0 / scale], rel=1e-12)


def test_the_threshold_of_two_log_ints_lies_midway_in_the_value():
    encoding = one(Int(1, 100, log=True))
    scale = encoding.axes[0].scale
    assert threshold(encoding, 9) == pytest.approx(math.log(10.5) / scale, rel=1e-12)


# Where the search starts: latent points are counted in initial standard deviations


@pytest.mark.parametrize(
    ("variable", "std", "mean"),
    [
        (Float(0, 8), 2.0, 4.0),
        (Float(-10, 10), 5.0, 0.0),
        (Float(1, math.exp(8), log=True), 2.0, math.exp(4)),
        (Int(0, 7), 2.0, 3.5),
        (Int(-3, 0), 1.0, -1.5),
        (Int(0, 70, 10), 20.0, 35.0),
        (Bool(), 0.5, 0.5),
        (Discrete([3, 0, 1]), 1.125, 1.5),
        (Discrete([5.0, 7.0]), 1.0, 6.0),
    ],
    ids=str,
)
def test_the_search_starts_in_the_middle_with_a_quarter_of_the_range(variable, std, mean):
    """The range of discrete values includes half a cell on either side."""
    (line,) = one(variable).axes
    low, step = (variable.low, variable.step) if isinstance(variable, Int) else (0, 1)  # ints count steps
    assert line.scale * step == pytest.approx(std, rel=1e-12)
    assert (math.exp(line.mean) if line.log else low + step * line.mean) == pytest.approx(mean, rel=1e-12)


def test_a_log_int_starts_in_the_middle_of_its_logarithms_with_a_quarter_of_their_range():
    (line,) = one(Int(1, 4096, log=True)).axes
    assert line.mean == pytest.approx(math.log(64))
    assert line.scale == pytest.approx(math.log(4096) * 4096 / 4095 / 4)


@pytest.mark.parametrize(
    ("variable", "mean", "value"),
    [
        (Float(0, 8), 7.0, 7.0),
        (Float(1e-4, 1, log=True), 1e-3, 1e-3),
        (Int(10, 20), 18, 18),
        (Int(10, 20, 2), 18, 18),
        (Int(1, 1000, log=True), 30, 30),
        (Bool(), 0.9, True),
        (Discrete([1, 5, 9]), 4.9, 5),
    ],
    ids=str,
)
def test_the_search_starts_at_the_mean_given(variable, mean, value):
    by_variable = one(type(variable)(**{**vars(variable), "mean": mean}))
    by_name = one(variable)
    for encoding, latent in (
        (by_variable, by_variable.initial_mean),
        (by_name, by_name.encode_mean({"v": mean})),
    ):
        assert decoded(encoding, *latent) == [pytest.approx(value)]
    assert by_name.encode_mean({"v": mean}) == pytest.approx(by_variable.initial_mean, rel=1e-12)


def test_means_left_out_keep_their_own():
    encoding = Encoding(Space({"x": Float(0, 8, mean=1), "n": Int(0, 9), "c": Int(3, 3)}))
    moved = encoding.encode_mean({"n": 9, "c": 3})
    assert moved[0] == encoding.initial_mean[0]
    assert encoding.decode(moved[None]) == [{"x": 1.0, "n": 9, "c": 3}]
    assert encoding.encode_mean({}).tolist() == encoding.initial_mean.tolist()


@pytest.mark.parametrize(
    ("variable", "end", "units"),
    [
        (Float(std=0.5), 3.0, 6.0),
        (Float(0, 100, std=10), 70.0, 2.0),
        (Float(1e-2, 1e2, log=True, std=math.log(10)), 1e2, 2.0),
        (Int(0, 100, std=10), 70, 2.0),
        (Int(0, 1000, 10, std=100), 700, 2.0),
        (Discrete([0, 50, 70], std=7), 70, 5.0),
        (Bool(std=0.25), True, 2.0),
    ],
    ids=str,
)
def test_a_latent_unit_is_the_std_given(variable, end, units):
    """Distances from the mean to a value, in standard deviations."""
    encoding = one(variable)
    assert encoding.encode({"v": end}) - encoding.initial_mean == pytest.approx(units, abs=1e-9)


@pytest.mark.parametrize(
    ("variable", "mean", "std"),
    [
        (Float(), 0.0, 1.0),
        (Float(low=3), 4.0, 1.0),
        (Float(low=-5), 0.0, 1.0),
        (Float(low=-0.5), 0.5, 1.0),
        (Float(high=-3), -4.0, 1.0),
        (Float(high=5), 0.0, 1.0),
        (Float(low=3, std=2), 5.0, 2.0),
        (Float(low=3, mean=10), 10.0, 1.0),
        (Float(low=2, log=True), 2 * math.e, 1.0),
    ],
    ids=str,
)
def test_a_float_without_a_bound_starts_near_zero_a_std_inside(variable, mean, std):
    encoding = one(variable)
    assert encoding.axes[0].scale == std
    assert decoded(encoding, *encoding.initial_mean) == [pytest.approx(mean)]


@pytest.mark.parametrize(
    ("variable", "low", "high"),
    [
        (Float(0, 8), -2.0, 2.0),
        (Float(1, math.exp(8), log=True), -2.0, 2.0),
        (Float(), -2.0, 2.0),
        (Float(low=3), -1.0, 2.0),
        (Float(high=-3), -2.0, 1.0),
        (Float(low=2, log=True), -1.0, 2.0),
        (Float(0, 8, mean=6, std=1), -6.0, 2.0),
        (Int(0, 7), -2.0, 2.0),
        (Int(0, 70, 10), -2.0, 2.0),
        (Int(1, 4096, log=True), -2.0, 2.0),
        (Bool(), -2.0, 2.0),
        (Discrete([3, 0, 1]), -2.0, 2.0),
    ],
    ids=str,
)
def test_random_starts_cover_the_bounds_with_their_cells(variable, low, high):
    """Seen from the mean: without a bound two standard deviations, else to the bound."""
    encoding = one(variable)
    box = np.array(encoding.start_box)[:, 0] - encoding.initial_mean[0]
    assert box.tolist() == pytest.approx([low, high], rel=1e-9)


@given(points())
def test_random_starts_are_within_bounds_and_around_the_mean(point):
    encoding = Encoding(point[0])
    low, high = encoding.start_box
    assert (low <= encoding.initial_mean + 1e-9).all()
    assert (encoding.initial_mean <= high + 1e-9).all()
    assert np.isfinite([low, high]).all()
