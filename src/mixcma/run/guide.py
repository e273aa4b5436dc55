"""Guide: a run's model of its objective; which candidates are worth evaluating, and what the others may be worth."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixcma.core.conditions import without_absent
from mixcma.core.coordinates import cell_centre, cell_index
from mixcma.core.method import Method, State
from mixcma.core.model import Surrogate, Trust, fit_surrogate
from mixcma.core.model.constrained import proposals
from mixcma.core.model.descent import proposal
from mixcma.core.model.features import Features
from mixcma.core.model.floats import proposal_of_floats, size_of_floats, window_of_floats
from mixcma.core.model.local import Local, fit_local
from mixcma.core.model.plateau import on_plateau
from mixcma.core.model.polynomial import Polynomial
from mixcma.core.model.region import Region
from mixcma.core.model.surrogate import Evaluated, window_of
from mixcma.core.model.threads import on_one_thread
from mixcma.core.model.trust import places
from mixcma.core.sampling import Sample
from mixcma.core.setting import Setting
from mixcma.run.explorer import Explorer, evaluated_from, is_data
from mixcma.run.guesses import guess_between
from mixcma.run.outcome import NOTHING_YET, Order, Outcome, Told

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
# Which candidates (L,) were evaluated before, and cost nothing.
Known = Callable[[Sample], NDArray[np.bool_]]

# One candidate of each generation is evaluated whatever the model says of it; they are drawn independently, so any will
# do, except the first, which is the mean in spaces without floats.
AT_RANDOM = 1
# The model is fitted anew when the evaluations have increased by this part of its coefficients. That part grows with
# the evaluations and the coefficients, since the time of a fit grows with the square of these, up to the slowest pace.
PACE, LATER, SLOWEST = 0.025, 2.3e6, 1.0
# So many evaluations per coefficient are enough for a model.
ENOUGH = 1.05
# Of candidates that are drawn alone, every so many are proposals of the quadratic models.
LOCAL_EVERY = 4
# Proposals that are among this many of the newest points, or of the newest that failed, are not made again.
NOT_AGAIN = 5000
# Features this close, in units of their spread, are the same; under constraints, of how far a model is believed.
SAME, SAME_LOCALLY = 1e-9, 1e-7
# Plateaus are looked for among so many of the newest points; a range is so many latent units wide.
NEIGHBOURS, RANGE = 300, 4.0
# Under constraints a run does not wait for longer than it took to find its best point, but for so many evaluations.
SHORTEST_WAIT = 30
# Mutations take long to find the last steps of an integer with this many values.
MANY_VALUES = 100
# Under constraints the nearest of so many windows of points count; nothing is proposed in larger problems than this.
NEARBY, MOST_FEATURES, MOST_CONSTRAINTS = 4, 60, 100


# The kinds of models that propose, beside those of polynomials.
PROCESS, FLOATS, CONSTRAINED = "process", "floats", "constrained"


class Proposal(NamedTuple):
    """A point of the model's own."""

    point: FloatArray  # (N,) latent
    kind: str


class Prediction(NamedTuple):
    """All candidates of a generation, the best first, as a model predicts."""

    by: Surrogate
    order: IntArray  # (L,)


class Plan(NamedTuple):
    """A generation: all its candidates, and which of them are evaluated."""

    sample: Sample
    points: FloatArray  # (L, N) latent, integers at the centres of their cells
    chosen: list[int]  # in the order in which they are evaluated
    free: set[int]  # those of them whose outcome is known
    proposed: tuple[int, ...] = ()  # the candidates that are points of the model's own: the last ones
    asked: Mapping[str, Sequence[int]] = {}  # the quadratic models that were asked: which of `proposed` are theirs
    predicted: Prediction | None = None  # None without a model
    exploring: bool = False  # whether the run explores: the other candidates are of no account


class Guide:
    """The evaluations of a run, the model of them, and how far it is trusted.

    Parameters
    ----------
    method, setting
        Those of the run.
    """

    def __init__(self, method: Method, setting: Setting, seed: int, run: int) -> None:
        self._method, self._setting = method, setting
        self.features = Features(setting.coordinates)
        self.explorer = Explorer(self.features, seed, run)
        self.trust, self.region = Trust(), Region()
        self._window = window_of(self.features)
        self._points: list[FloatArray] = []
        self._outcomes: list[Outcome] = []
        self._failed: deque[FloatArray] = deque(maxlen=NOT_AGAIN)  # points whose outcomes are no data
        self._best: tuple[Order, FloatArray] | None = None
        self._best_place = -1
        self._stacked = np.empty((0, len(setting.coordinates.scale)))  # the newest points, up to this number
        self._stacked_up_to = 0
        self._surrogate: Surrogate | None = None
        self._fitted_at = 0  # how many evaluations there were
        self._with_least: tuple[Surrogate, FloatArray, FloatArray | None] | None = None  # of which model, from where
        self._with_best_floats: tuple[FloatArray | None] | None = None  # None if it is not known yet
        self._floats_at = 0  # how many evaluations it is made of
        self._nothing_new = False  # whether the model of the floats, or those under constraints, had nothing new
        self._before = 0  # evaluations of earlier runs
        self._barren: tuple[object, ...] | None = None  # what was known when the quadratic models had nothing new

    def add(self, point: FloatArray, outcome: Outcome) -> None:
        """A point was evaluated; failures are no data, nor are numbers whose squares are not floats."""
        self.explorer.add(point, outcome)
        if not is_data(outcome):
            self._failed.append(point)
            return
        self._points.append(point)
        self._outcomes.append(outcome)
        if self._best is None or outcome.order < self._best[0]:
            self._best, self._best_place = (outcome.order, point), len(self._points) - 1

    @on_one_thread
    def plan(
        self, state: State, sample: Sample, number: int, at_least: int, including: Collection[int], known: Known
    ) -> Plan:
        """Choose the candidates of generation `number` to evaluate; some may make way for points of the model's own.

        They are as many as the trust in the model asks for, but at least `at_least`, and enough to include those in
        `including`; there, points of the model's own are numbered after the last candidate. Those that are `known` cost
        nothing, and are added.
        """
        L = self._setting.strategy.popsize
        surrogate = self._model()
        if surrogate is None:
            return Plan(sample, self._settled(sample), list(range(L)), set())
        exploring = self._exploring(surrogate, state, sample, number, at_least, including)
        if exploring is not None:
            return exploring
        local = self._proposals(surrogate)
        sample, proposed = self._with_points(state, sample, [point for point, _ in local])
        points = self._settled(sample)
        predicted = _predict(surrogate, points)
        order = predicted.order
        free = set(np.flatnonzero(known(sample)).tolist())
        queue = [i for i in dict.fromkeys([AT_RANDOM % L, *proposed, *order.tolist()]) if i not in free]
        needed = {i if i < L else i - len(proposed) for i in including} - free
        furthest = max((queue.index(i) + 1 for i in needed), default=0)
        trusted = 0 if proposed and surrogate.constrained else self.trust.wanted(L)
        costing = queue[: max(trusted, len(proposed) + 1, at_least, furthest)]
        asked = self._asked(surrogate, local, proposed)
        return Plan(sample, points, sorted([*costing, *free]), free, proposed, asked, predicted)

    def _exploring(
        self, surrogate: Surrogate, state: State, sample: Sample, number: int, at_least: int, including: Collection[int]
    ) -> Plan | None:
        """A generation of proposals alone; None if the run does not explore.

        In every second generation the first of them is from the quadratic models, if they rank best and may propose.
        With more workers than proposals, candidates as mix drew them are added.
        """
        L = self._setting.strategy.popsize
        if self.explorer.over:
            return None
        wanted = min(max(at_least, 1 + max(including, default=0) - L), L)
        asked = self._is_local_turn(surrogate, number)
        local = self._proposals(surrogate)[:1] if asked else []
        points = [point for point, _ in local]
        points += self.explorer.propose(wanted - len(local), number, points)
        if not points:
            return None
        count = len(points)
        sample, proposed = self._with_points(state, sample, points)
        drawn = {*range(min(at_least, L) - count), *(i for i in including if i < L)} - set(proposed)
        return Plan(
            sample,
            self._settled(sample),
            chosen=[*sorted(drawn), *proposed],
            free=set(),
            proposed=proposed,
            asked=self._asked(surrogate, local, proposed) if asked else {},
            exploring=True,
        )

    @on_one_thread
    def suggest(self, number: int, waiting: Sequence[FloatArray]) -> tuple[FloatArray, str] | None:
        """A point to evaluate instead of the draw with this number, and the kind of model that proposes it.

        For candidates that are drawn one at a time, while others are `waiting` for their evaluation. Draws without a
        suggestion are evaluated as they are.
        """
        if len(self._points) < self._setting.strategy.popsize:
            return None
        waiting = [*self._at_values(np.array(waiting))] if waiting else []
        surrogate, exploring = self._model(), not self.explorer.over
        if surrogate is not None and self._is_local_turn(surrogate, number):
            for point, kind in self._proposals(surrogate):
                if not any(np.abs(point - other).max() <= SAME for other in waiting):
                    return point, kind
        for point in self.explorer.propose(1, number, waiting) if exploring else []:
            return point, PROCESS
        return None

    def _is_local_turn(self, surrogate: Surrogate, number: int) -> bool:
        if self.explorer.over:
            return number % LOCAL_EVERY == 0
        return number % 2 == 0 and (surrogate.constrained or isinstance(surrogate.screening[0][0], Polynomial))

    @on_one_thread
    def take(self, point: FloatArray, number: int, kind: str | None, outcome: Outcome) -> bool:
        """Take in the outcome of a candidate that was drawn alone; True if it came while the run explored.

        That outcome may have ended the exploring. `kind` is that of the model that proposed the candidate.
        """
        best_before = NOTHING_YET if self._best is None else self._best[0]
        exploring = not self.explorer.over and len(self._points) >= self._setting.strategy.popsize
        surrogate = self._model()
        self.add(point, outcome)
        if surrogate is not None and self._is_local_turn(surrogate, number):
            for asked in self._kinds(surrogate):
                self._judge(asked, outcome.order < best_before if asked == kind else None, outcome.violation == 0.0)
        self._keep_up(exploring)
        return exploring

    @on_one_thread
    def learn(self, plan: Plan, points: Sequence[FloatArray], outcomes: Sequence[Outcome]) -> Told | None:
        """Learn from the outcomes of the chosen candidates, and guess what the others may be worth.

        None if mix is to learn nothing from them: while the run explores, or if only some candidates were chosen and
        all of these failed. In the second case the model is no longer trusted.
        """
        best_before = NOTHING_YET if self._best is None else self._best[0]
        for point, outcome in zip(points, outcomes):
            self.add(point, outcome)
        if plan.exploring:
            self._judge_proposals(plan, outcomes, best_before)
            self._keep_up(exploring=True)
            return None
        if plan.predicted is not None:
            drawn = [k for k, i in enumerate(plan.chosen) if i not in plan.proposed and i not in plan.free]
            came = (
                np.lexsort(tuple(np.array([outcomes[k].order for k in drawn]).T[::-1])) if drawn else np.zeros(0, int)
            )
            self.trust.judge(places(plan.predicted.order)[[plan.chosen[k] for k in drawn]], places(came))
            self._judge_proposals(plan, outcomes, best_before)
        self._keep_up()
        if len(plan.chosen) < len(plan.points) and all(outcome.failed for outcome in outcomes):
            self.trust.lose()
            return None
        return self._told(plan, outcomes)

    @property
    def best_point(self) -> FloatArray | None:
        """The best latent point so far (N,)."""
        return None if self._best is None else self._best[1]

    def has_converged(self, evaluations: int) -> bool:
        """Whether this many evaluations have brought nothing better, and the quadratic models have nothing to propose.

        That is so where the floats of the best point are where their model is least; under constraints, where there is
        no new point, and then as many evaluations are enough as the best point took to find. Where an integer has many
        values it is never so: mutations take longer to find its last steps.
        """
        last = np.asarray(self._setting.coordinates.last)[np.asarray(self._setting.coordinates.discrete)]
        in_vain = len(self._points) - 1 - self._best_place
        if self._outcomes and self._outcomes[-1].constraints:
            evaluations = min(evaluations, max(SHORTEST_WAIT, self._best_place + 1))
        return self._nothing_new and in_vain >= evaluations and not (last >= MANY_VALUES).any()

    def follow(self, earlier: Guide) -> None:
        """Come after another run of the same search."""
        self._before = earlier._before + len(earlier._points)

    def refit(self) -> None:
        """Let the model know all evaluations so far."""
        self._fitted_at, self._surrogate = len(self._points), None

    def snapshot(self) -> dict[str, Any]:
        return {
            "fitted_at": self._fitted_at,
            "floats_at": self._floats_at,
            "nothing_new": self._nothing_new,
            "before": self._before,
            "region": self.region.snapshot(),
            **self.trust.snapshot(),
        }

    def restore(self, numbers: dict[str, Any]) -> None:
        """Go on as it was; the evaluations are added again by whoever has them."""
        self._fitted_at, self._before = numbers["fitted_at"], numbers["before"]
        self._floats_at, self._nothing_new = numbers.get("floats_at", 0), numbers.get("nothing_new", False)
        self.trust.restore(numbers)
        self.region.restore(numbers["region"])

    def _judge_proposals(self, plan: Plan, outcomes: Sequence[Outcome], best_before: Order) -> None:
        for kind, proposed in plan.asked.items():
            orders = [outcomes[plan.chosen.index(i)].order for i in proposed]
            succeeded = min(orders) < best_before if orders else None
            self._judge(kind, succeeded, feasible=bool(orders) and orders[0][0] == 0.0)

    def _judge(self, kind: str, succeeded: bool | None, feasible: bool) -> None:
        """Whether a proposal of this kind of model is the best so far; None if there was none."""
        if kind != CONSTRAINED:
            if succeeded is None and self.explorer.over and self.trust.may_propose(kind):
                self.trust.rest(kind)
            else:
                self.trust.judge_proposal(kind, succeeded)
        elif succeeded is None:
            self.region.rest()
        else:
            self.region.judge(succeeded, feasible)

    def _keep_up(self, exploring: bool = False) -> None:
        """Let the models know the evaluations, where there are enough new ones."""
        if exploring or self._is_due():
            self.refit()
        if len(self._points) - self._floats_at >= self._pace(size_of_floats(self.features)):
            self._floats_at, self._with_best_floats = len(self._points), None

    def _is_due(self) -> bool:
        """Whether there are enough new evaluations to fit the model anew, or enough of all for a larger one."""
        n, before = len(self._points), self._fitted_at
        sizes = [size for size in self.features.sizes.values() if size <= self._window]
        larger = any(before < ENOUGH * size <= n for size in sizes)
        return larger or n - before >= self._pace(max((size for size in sizes if size <= n), default=0))

    def _pace(self, coefficients: int) -> float:
        """After how many evaluations a model with so many coefficients is fitted anew."""
        return coefficients * min(max(PACE, coefficients * (self._before + len(self._points)) / LATER), SLOWEST)

    def _model(self) -> Surrogate | None:
        if self._surrogate is None:
            end = min(self._fitted_at, len(self._points))  # some may be lost in a salvaged file
            begin = max(0, end - self._window)
            evaluated = self._evaluated(range(begin, end))
            if evaluated is not None:
                self._surrogate = fit_surrogate(self.features, evaluated)
        return self._surrogate

    def _proposals(self, surrogate: Surrogate) -> list[Proposal]:
        """New points of the quadratic models."""
        if not surrogate.constrained:
            return self._unconstrained(surrogate)
        knowing = len(self._points), self._fitted_at, tuple(self.region.attempts())
        if knowing == self._barren:
            return []
        points = self._constrained()
        self._nothing_new = not points
        self._barren = None if points else knowing
        return [Proposal(without_absent(self._setting.coordinates, point), CONSTRAINED) for point in points]

    @staticmethod
    def _kinds(surrogate: Surrogate) -> tuple[str, ...]:
        """The kinds of quadratic models that may propose."""
        return (CONSTRAINED,) if surrogate.constrained else (surrogate.kind, FLOATS)

    def _asked(self, surrogate: Surrogate, local: list[Proposal], places: Sequence[int]) -> dict[str, list[int]]:
        """The kinds of quadratic models that were asked, and where their proposals are."""
        return {kind: [i for i, (_, own) in zip(places, local) if own == kind] for kind in self._kinds(surrogate)}

    def _with_points(self, state: State, sample: Sample, points: list[FloatArray]) -> tuple[Sample, tuple[int, ...]]:
        """The last candidates make way for these points."""
        L, count = len(sample.v), len(points)
        if not count:
            return sample, ()
        rows = self._method.express(self._setting, state, np.array(points)[:, None])
        whole = (np.broadcast_to(part, (L, *np.shape(part)[1:])) for part in sample)
        joined = Sample._make(np.concatenate([part[:-count], last]) for part, last in zip(whole, rows))
        return joined, tuple(range(L - count, L))

    def _unconstrained(self, surrogate: Surrogate) -> list[Proposal]:
        """The points where the quadratic model is least, and that of the floats alone."""
        if self._best is None:
            return []
        found: list[Proposal] = []
        for kind in self._kinds(surrogate):
            if not self.trust.may_propose(kind):
                continue
            point = self._floats() if kind == FLOATS else self._least(surrogate, self._best[1])
            point = None if point is None else without_absent(self._setting.coordinates, point)
            known = point is not None and self._is_known(surrogate, point, found)
            if point is not None and not known:
                found.append(Proposal(point, kind))
            if kind == FLOATS:
                self._nothing_new = known
        return found

    def _least(self, surrogate: Surrogate, best: FloatArray) -> FloatArray | None:
        """The point where the polynomial is least."""
        if self._with_least is None or self._with_least[0] is not surrogate or self._with_least[1] is not best:
            self._with_least = surrogate, best, proposal(surrogate, best)
        return self._with_least[2]

    def _floats(self) -> FloatArray | None:
        """The best point with its floats where a model of them alone is least."""
        if self._with_best_floats is None:
            end = min(self._floats_at, len(self._points))
            begin = max(0, end - max(self._window, window_of_floats(self.features)))
            evaluated = self._evaluated(range(begin, end))
            self._with_best_floats = (None if evaluated is None else proposal_of_floats(self.features, evaluated),)
        return self._with_best_floats[0]

    def _constrained(self) -> list[FloatArray]:
        """New points where the local models are least among those that are feasible."""
        end = min(self._fitted_at, len(self._points))
        begin = max(0, end - NEARBY * self._window)
        chosen = [*range(begin, end)] if begin <= self._best_place < end else [self._best_place, *range(begin, end)]
        evaluated = self._evaluated(chosen)
        if (
            evaluated is None
            or self.features.count > MOST_FEATURES
            or evaluated.constraints.shape[1] > MOST_CONSTRAINTS
        ):
            return []
        points: list[FloatArray] = []
        most = max(1, self._setting.strategy.popsize - 2)
        for attempt in self.region.attempts()[:most]:
            model = fit_local(self.features, evaluated, attempt.radius)
            if model is not None:
                known = np.stack([*evaluated.points, *self._failed, *points])
                new = (each for each in proposals(model, attempt.margin) if not _is_known_locally(model, known, each))
                points.extend(itertools.islice(new, 1))
        return points

    def _evaluated(self, chosen: Sequence[int]) -> Evaluated | None:
        """The evaluations of these numbers; None if they do not all have the same constraints."""
        outcomes = [self._outcomes[i] for i in chosen]
        if len({len(outcome.constraints) for outcome in outcomes}) != 1:
            return None
        return evaluated_from([self._points[i] for i in chosen], outcomes)

    def _is_known(self, surrogate: Surrogate, point: FloatArray, found: list[Proposal]) -> bool:
        """Whether the point, but for rounding, is among the newest or among those that were found, or on a plateau."""
        same = np.full(len(point), SAME)
        same[: self.features.numbers] *= surrogate.scaling.spread[: self.features.numbers]
        if self._is_flat_around(point):
            return True
        others = np.array([*self._failed, *(other for other, _ in found)]).reshape(-1, len(point))
        return any(bool((np.abs(points - point) <= same).all(axis=1).any()) for points in (self._newest(), others))

    def _is_flat_around(self, point: FloatArray) -> bool:
        """Whether the last points nearby all had the same outcome."""
        last = slice(max(0, len(self._points) - NEIGHBOURS), None)
        points, outcomes = np.array(self._points[last]), self._outcomes[last]
        orders = np.array([(outcome.value, outcome.violation) for outcome in outcomes])
        return bool(on_plateau(point[None] / RANGE, points / RANGE, orders)[0])

    def _newest(self) -> FloatArray:
        """The newest points (n, N)."""
        missing = self._points[self._stacked_up_to :]
        if missing:
            self._stacked = np.concatenate([self._stacked, missing])[-NOT_AGAIN:]
            self._stacked_up_to = len(self._points)
        return self._stacked

    def _settled(self, sample: Sample) -> FloatArray:
        """The latent points as they are evaluated: integers at the centres of their cells, floats inside the bounds."""
        return self._at_values(np.asarray(sample.v), np.asarray(sample.cells))

    def _at_values(self, v: FloatArray, cells: FloatArray | None = None) -> FloatArray:
        coordinates = self._setting.coordinates
        cells = cell_index(coordinates, v) if cells is None else cells
        if coordinates.latent_low is not None:
            v = np.clip(v, coordinates.latent_low, coordinates.latent_high)
        return np.where(coordinates.discrete, cell_centre(coordinates, cells), v)

    def _told(self, plan: Plan, outcomes: Sequence[Outcome]) -> Told:
        """Values and violations of all candidates; no guess is better than the best that was evaluated."""
        L = len(plan.points)
        values, violations = np.full(L, np.inf), np.full(L, np.inf)
        values[plan.chosen] = [outcome.value for outcome in outcomes]
        violations[plan.chosen] = [outcome.violation for outcome in outcomes]
        failures = sum(outcome.failed for outcome in outcomes)
        best = plan.chosen[min(range(len(outcomes)), key=lambda k: outcomes[k].order)]
        surrogate = self._model()
        if len(plan.chosen) < L and surrogate is not None and np.isfinite(values[best]):
            predicted = plan.predicted
            if predicted is None or predicted.by is not surrogate:  # what came has changed the model
                predicted = _predict(surrogate, plan.points)
            guess_between(predicted.order, plan.chosen, values, violations)
        violated = violations if violations.any() else None
        value, violation = float(values[best]), float(violations[best])
        return Told(values, violated, failures, best, value, violation, len(plan.chosen))


def _predict(surrogate: Surrogate, points: FloatArray) -> Prediction:
    value, violation = surrogate.predict(points)
    return Prediction(surrogate, np.lexsort((value, violation)))


def _is_known_locally(model: Local, known: FloatArray, point: FloatArray) -> bool:
    """Whether the point is one of the known ones (n, N), or as good as one."""
    distances: FloatArray = np.abs(model.rows(known) - model.rows(point[None])).max(axis=1)
    return bool(distances.min() < SAME_LOCALLY)
