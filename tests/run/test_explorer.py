"""Laws of exploring: the same proposals for the same data, nothing proposed twice, an end; whatever the values are."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mixcma import Bool, Categorical, Discrete, Float, Int, Optimizer, Outcome, Space
from mixcma.core.model.features import Features
from mixcma.latent.encoding import Encoding
from mixcma.run.explorer import (
    LEAST_POINTS,
    LONGEST,
    MOST_CONSTRAINTS,
    MOST_TOGETHER,
    MOST_VARIABLES,
    PATIENCE,
    SHORTEST,
    Explorer,
)
from mixcma.run.outcome import failure

SPACES = {
    "float": Space({"x": Float(-5, 5)}),
    "floats": Space({"x": Float(-5, 5), "y": Float(1e-3, 10, log=True)}),
    "unbounded": Space({"x": Float(), "y": Float(low=0.0), "z": Float(high=3.0)}),
    "integers": Space({"n": Int(0, 30), "m": Int(-(2**40), 2**40)}),
    "categories": Space({"on": Bool(), "kind": Categorical(list("abcdef")), "other": Categorical(range(5))}),
    "mixed": Space(
        {
            "x": Float(-5, 5),
            "kind": Categorical(list("abc")),
            "n": Int(0, 9),
            "on": Bool(),
            "wire": Discrete([0.1, 0.2, 0.5, 1.5]),
        }
    ),
}


class Exploring:
    """An explorer of a space, and how its points are meant."""

    def __init__(self, space, seed=1, run=0):
        self.encoding = Encoding(space, True)
        self.explorer = Explorer(Features(self.encoding.coordinates), seed, run)
        self.points = []

    def first(self, count):
        """Candidates that mix draws first, without those that come twice."""
        drawn = Optimizer(self.encoding.space, seed=1, popsize=4 * count + 20).ask()
        points = {tuple(candidate.params.values()): candidate.params for candidate in drawn}
        return [self.encoding.encode(params) for params in points.values()][:count]

    def params(self, point):
        return self.encoding.decode(np.array(point)[None])[0]

    def add(self, point, objective):
        self.points.append(point)
        found = objective(self.params(point))
        self.explorer.add(point, found if isinstance(found, Outcome) else Outcome(float(found)))

    def ran(self, objective, count, first=6, together=1):
        """So many points are evaluated, `together` of them at once."""
        for point in self.first(first):
            self.add(point, objective)
        while len(self.points) < count and not self.explorer.over:
            proposed = self.explorer.propose(together, len(self.points))
            for point in proposed:
                self.add(point, objective)
            if not proposed:
                break
        return self


def bowl(p):
    """Of numbers and choices."""
    parts = [
        (v - 1.3) ** 2 if isinstance(v, float) else abs(v - 2) if isinstance(v, int) else v != "b" for v in p.values()
    ]
    return float(sum(math.log1p(part) for part in parts))


def explored(name, objective=bowl, count=25, **options):
    return Exploring(SPACES[name]).ran(objective, count, **options)


def distinct(points):
    return len({tuple(point) for point in points})


# What an earlier search says


def knowing(earlier, objective=bowl, name="mixed", constraints=()):
    """A few points, and what came of 40 others before."""
    exploring = Exploring(SPACES[name])
    points = exploring.first(48)
    came = [Outcome(earlier(exploring.params(point)), constraints) for point in points[8:]]
    exploring.explorer.know(points[8:], came)
    for point in points[:8]:
        exploring.add(point, objective)
    return exploring


def test_what_came_of_points_in_an_earlier_search_is_known():
    proposed = {
        kind: knowing(earlier).explorer.propose(1, 0)[0]
        for kind, earlier in {"same": bowl, "similar": lambda p: 1.1 * bowl(p) + 0.2}.items()
    }
    without = knowing(bowl, constraints=[0.0]).explorer.propose(1, 0)[0]
    exploring = Exploring(SPACES["mixed"])
    values = {kind: bowl(exploring.params(point)) for kind, point in {**proposed, "none": without}.items()}
    assert max(values["same"], values["similar"]) < values["none"], values


def test_what_has_other_constraints_is_of_no_use():
    fresh = knowing(bowl)
    fresh.explorer.know([], [])
    for constraints in ([-1.0], [0.5, 0.5]):
        other = knowing(bowl, constraints=constraints)
        np.testing.assert_array_equal(other.explorer.propose(2, 0), fresh.explorer.propose(2, 0))


def test_so_many_points_of_an_earlier_search_that_all_are_not_too_many():
    exploring = Exploring(SPACES["floats"])
    points = exploring.first(LONGEST + 30)
    exploring.explorer.know(points[:LONGEST], [Outcome(bowl(exploring.params(point))) for point in points[:LONGEST]])
    for point in points[LONGEST:]:
        exploring.add(point, bowl)
    exploring.explorer.propose(1, 0)
    believed = exploring.explorer._fit.earlier
    known = len(exploring.points)
    assert believed is not None
    assert LONGEST - known <= len(believed.points) <= LONGEST - known / 1.2  # as many as at the last fit


# Proposals


@pytest.mark.parametrize("name", SPACES)
def test_the_same_data_gives_the_same_proposals(name):
    one, other = explored(name), explored(name)
    np.testing.assert_array_equal(one.points, other.points)
    again = Exploring(SPACES[name])
    for point in one.points:
        again.add(point, bowl)
    number = len(one.points)
    np.testing.assert_array_equal(one.explorer.propose(3, number), again.explorer.propose(3, number))


def test_whoever_knows_the_same_proposes_the_same_however_often_others_were_asked():
    """Failures first, so that for long there is nothing to fit to."""
    outcomes = [failure("broken")] * 21 + [Outcome(float(k % 5)) for k in range(3)]
    asked, fresh = Exploring(SPACES["floats"]), Exploring(SPACES["floats"])
    points = asked.first(24)
    for k, (point, outcome) in enumerate(zip(points, outcomes)):
        asked.explorer.add(point, outcome)
        asked.explorer.propose(1, k)
        fresh.explorer.add(point, outcome)
        if k >= 21:
            again = Exploring(SPACES["floats"])
            for known, came in zip(points[: k + 1], outcomes):
                again.explorer.add(known, came)
            np.testing.assert_array_equal(asked.explorer.propose(1, 99), again.explorer.propose(1, 99))
    np.testing.assert_array_equal(asked.explorer.propose(1, 99), fresh.explorer.propose(1, 99))


def test_another_seed_run_or_number_gives_other_random_numbers():
    def proposal(number=7, **options):
        exploring = Exploring(SPACES["unbounded"], **options)
        for point in exploring.first(8):
            exploring.add(point, bowl)
        return tuple(exploring.explorer.propose(1, number)[0])

    assert len({proposal(), proposal(seed=2), proposal(run=1), proposal(number=8)}) == 4


@pytest.mark.parametrize("together", [1, 4])
@pytest.mark.parametrize("name", SPACES)
def test_no_evaluated_point_is_proposed(name, together):
    exploring = explored(name, count=40, together=together)
    assert len(exploring.points) > 10
    assert distinct(exploring.points) == len(exploring.points)


@pytest.mark.parametrize("name", SPACES)
def test_what_is_waiting_is_not_proposed(name):
    exploring, waiting = explored(name, count=12), []
    for number in range(8):
        waiting += exploring.explorer.propose(1, 100 + number, waiting)
    assert len(waiting) == 8 or name == "categories"
    assert distinct([*exploring.points, *waiting]) == len(exploring.points) + len(waiting)


@pytest.mark.parametrize("name", SPACES)
def test_proposals_are_points_of_the_space(name):
    space = SPACES[name]
    exploring = explored(name, count=30)
    for point in exploring.points:
        params = exploring.params(point)
        assert space.check_params(params) == params
        np.testing.assert_allclose(exploring.encoding.encode(params), point, rtol=1e-9, atol=1e-9)


def test_no_more_are_proposed_than_wanted_or_can_be_told_apart():
    exploring = explored("mixed", count=10)
    for wanted in (0, 1, 3):
        assert len(exploring.explorer.propose(wanted, 50)) == wanted
    assert len(exploring.explorer.propose(50, 50)) == MOST_TOGETHER


def test_the_first_of_several_is_the_one_that_is_proposed_alone():
    exploring = explored("mixed", count=14)
    np.testing.assert_array_equal(exploring.explorer.propose(4, 50)[0], exploring.explorer.propose(1, 50)[0])


def test_it_finds_the_floor_of_a_bowl_and_the_right_choices():
    exploring = explored("mixed", count=45)
    best = exploring.params(min(exploring.points, key=lambda point: bowl(exploring.params(point))))
    assert (best["kind"], best["n"], best["on"]) == ("b", 2, True)
    assert best["x"] == pytest.approx(1.3, abs=0.05)


def test_it_finds_the_best_feasible_point():
    """The least x + y where x y >= 1 and both are positive."""
    space = Space({"x": Float(0, 5), "y": Float(0, 5)})

    def objective(p):
        return Outcome(p["x"] + p["y"], [1 - p["x"] * p["y"]])

    exploring = Exploring(space).ran(objective, 35)
    outcomes = [objective(exploring.params(point)) for point in exploring.points]
    assert min(outcome.value for outcome in outcomes if outcome.feasible) < 2.05


# Whatever comes


def odd(kind):
    """Objectives that fail, jump, are flat or infinite, for every third point or for most of them."""
    calls = []

    def objective(p):
        calls.append(p)
        k, value = len(calls), bowl(p)
        return {
            "some fail": failure("broken") if k % 3 == 0 else value,
            "most fail": failure("broken") if k % 3 else value,
            "all fail": failure("broken"),
            "some infinite": math.inf if k % 3 == 0 else value,
            "most infinite": math.inf if k % 3 else value,
            "all infinite": math.inf,
            "some huge": 1e300 if k % 3 == 0 else value,
            "most huge": 1e300 if k % 3 else value,
            "huge": 1e300 * math.sin(value),
            "the largest floats": 1.7e308 * math.sin(9 * value),
            "tiny": 1e-300 * value,
            "constant": 3.0,
            "zero": 0.0,
            "two values": float(value > 1),
            "noise": math.sin(1e5 * k),
            "constrained": Outcome(value, [value - 1.0, 0.5 - value]),
            "constant constraint": Outcome(value, [0.0, 2.0]),
            "never feasible": Outcome(value, [1.0 + value]),
            "infinite constraints": Outcome(value, [math.inf if k % 3 == 0 else -value]),
            "minus infinite constraints": Outcome(value, [-math.inf if k % 3 == 0 else value]),
            "huge constraints": Outcome(value, [1e300 * math.sin(value), 1e-300]),
            "changing numbers of constraints": Outcome(value, [value] * (k % 3)),
            "more constraints later": Outcome(value, [value - 1.0] * (1 + (k > 12))),
        }[kind]  # fmt: skip

    return objective


ODD = [
    "some fail", "most fail", "all fail", "some infinite", "most infinite", "all infinite", "some huge", "most huge",
    "huge", "the largest floats", "tiny", "constant", "zero", "two values", "noise", "constrained",
    "constant constraint", "never feasible", "infinite constraints", "minus infinite constraints", "huge constraints",
    "changing numbers of constraints", "more constraints later",
]  # fmt: skip


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("name", ["unbounded", "categories", "mixed"])
def test_whatever_comes_of_the_points_proposals_are_new_points(name, kind):
    exploring = explored(name, odd(kind), count=20)
    assert np.isfinite(exploring.points).all()
    assert distinct(exploring.points) == len(exploring.points)
    nothing_to_choose_by = [
        "all fail", "all infinite", "changing numbers of constraints", "more constraints later", "huge",
        "the largest floats", "huge constraints",
    ]  # fmt: skip
    # now and then what is most promising is known, and there is no proposal
    assert len(exploring.points) >= 18 or kind in nothing_to_choose_by or name == "categories"


@pytest.mark.parametrize("kind", ODD)
def test_whatever_comes_of_the_points_a_run_goes_on_with_them(kind):
    """While exploring and after it, asked for one or several at a time."""
    constrained = isinstance(odd(kind)({"x": 0.0}), Outcome) and not odd(kind)({"x": 0.0}).failed
    budget = 25 if constrained else 70
    for at_least in (1, 3):
        optimizer, objective = Optimizer(SPACES["mixed"], seed=1), odd(kind)
        while optimizer.stop is None and optimizer.evaluations < budget:
            candidates = optimizer.ask(at_least=at_least)
            optimizer.tell(candidates, [objective(candidate.params) for candidate in candidates])
        assert optimizer.evaluations >= budget or optimizer.stop.name in ("failing", "flat")


@pytest.mark.parametrize(
    "space",
    [
        Space({"on": Bool()}),
        Space({"n": Int(0, 2), "on": Bool()}),
        Space({"kind": Categorical(list("abcde"))}),
        Space({"n": Int(4, 4), "m": Int(0, 6)}),
    ],
    ids=["two points", "six points", "five choices", "a constant"],
)
def test_a_space_of_few_points_is_explored_until_nothing_is_new(space):
    exploring = Exploring(space)
    first = exploring.first(4)
    for point in [*first, *first]:
        exploring.add(point, bowl)
    known = len(first)
    while proposed := exploring.explorer.propose(3, len(exploring.points)):
        for point in proposed:
            exploring.add(point, bowl)
        known += len(proposed)
        assert distinct(exploring.points) == known <= space.size


def test_a_point_that_was_evaluated_twice_with_other_values_is_no_obstacle():
    exploring = explored("mixed", count=10)
    for value in (0.0, 5.0, 9.0):
        exploring.explorer.add(exploring.points[0], Outcome(value))
    assert len(exploring.explorer.propose(2, 50)) == 2


# Its end


@pytest.mark.parametrize(("variables", "evaluations"), [(1, SHORTEST), (10, SHORTEST), (15, 150), (60, LONGEST)])
def test_it_ends_after_so_many_evaluations(variables, evaluations):
    """Ten for each variable, within limits, although each is better than those before."""
    exploring = Exploring(Space({f"x{i}": Float(-5, 5) for i in range(variables)}))
    for count in range(evaluations):
        assert not exploring.explorer.over
        exploring.explorer.add(np.full(variables, count / 100), Outcome(float(-count)))
    assert exploring.explorer.over
    assert exploring.explorer.propose(1, 0) == []


def test_only_with_floats_is_a_restart_explored():
    assert not Exploring(SPACES["mixed"], run=1).explorer.over
    assert Exploring(SPACES["categories"], run=1).explorer.over
    assert not Exploring(SPACES["categories"]).explorer.over


@pytest.mark.parametrize("worse", [Outcome(1.0), Outcome(2.0), Outcome(-5.0, [1.0]), failure("broken")], ids=str)
def test_it_ends_after_so_many_evaluations_in_vain(worse):
    exploring = Exploring(SPACES["floats"])
    for value in (9.0, 5.0, 1.0):
        exploring.explorer.add(np.array([value, 0.0]), Outcome(value))
    for count in range(PATIENCE):
        assert not exploring.explorer.over
        exploring.explorer.add(np.array([count / 100, 1.0]), worse)
    assert exploring.explorer.over


def test_a_feasible_point_is_better_than_all_that_are_not():
    exploring = Exploring(SPACES["floats"])
    for count in range(PATIENCE - 1):
        exploring.explorer.add(np.array([count / 100, 1.0]), Outcome(0.0, [1.0]))
    exploring.explorer.add(np.array([2.0, 1.0]), Outcome(50.0, [0.0]))
    for count in range(PATIENCE - 1):
        exploring.explorer.add(np.array([count / 100, 2.0]), Outcome(0.0, [1.0]))
    assert not exploring.explorer.over


def test_it_never_begins_with_too_many_variables_or_constraints():
    def of(count):
        return Exploring(Space({f"x{i}": Float(-5, 5) for i in range(count)}))

    assert of(MOST_VARIABLES + 1).explorer.over
    assert not of(MOST_VARIABLES).explorer.over
    exploring = of(2)
    exploring.explorer.add(np.zeros(2), Outcome(1.0, [0.0] * MOST_CONSTRAINTS))
    assert not exploring.explorer.over
    exploring.explorer.add(np.ones(2), Outcome(1.0, [0.0] * (MOST_CONSTRAINTS + 1)))
    assert exploring.explorer.over


def test_it_needs_some_points():
    exploring = Exploring(SPACES["mixed"])
    for point in exploring.first(LEAST_POINTS):
        assert exploring.explorer.propose(1, 0) == []
        exploring.add(point, bowl)
    assert len(exploring.explorer.propose(1, 0)) == 1
