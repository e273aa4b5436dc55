"""Explorer: the first evaluations of a run, which Gaussian processes choose (docs/model.md, "The idea")."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from mixcma.core.model.features import Features, FloatArray
from mixcma.core.model.improvement import Fit, Forecast, anywhere_with, fit_processes, forecast, most_promising
from mixcma.core.model.surrogate import Evaluated
from mixcma.core.model.threads import on_one_thread
from mixcma.run.contest import contested, deserving
from mixcma.run.noise import PROPOSALS, generator
from mixcma.run.outcome import NOTHING_YET, Order, Outcome

# Exploring ends after 10 evaluations per variable, but these are at least and at most so many; or when so many in a row
# have brought nothing better. Where choices are compared there is more to find.
SHORTEST, LONGEST, PER_VARIABLE, PATIENCE, PATIENCE_WITH_CHOICES = 100, 200, 10, 30, 60
# It needs some points to begin with; and it is too slow with more variables or constraints than these.
LEAST_POINTS, MOST_VARIABLES, MOST_CONSTRAINTS = 4, 80, 30
# Restarts explore again where there are floats, and at most so many variables: with more it is slow and brings nothing.
MOST_VARIABLES_AGAIN = 10
# The parameters of the processes are fitted anew when there are this many times as many points.
PACE = 1.1
# At most so many points are proposed together.
MOST_TOGETHER = 8
# Where choices are compared, so many of the points are proposed from all evaluations, and the others from those with
# the choice that deserves it.
TOGETHER = 0.5
# So many of the best points are looked around.
BEST = 8
# Values of an earlier search that are all so many times as large, or as small, are of no use.
MOST_TIMES = 1e50
# Larger numbers are no data for a model.
LARGEST = 1e150


class Explorer:
    """What was evaluated while a run explores.

    What is proposed depends on the evaluations alone, and on `seed`, `run` and a number for each proposal.
    """

    def __init__(self, features: Features, seed: int, run: int) -> None:
        self._features, self._seed, self._run = features, seed, run
        self._points: list[FloatArray] = []
        self._outcomes: list[Outcome] = []
        self._best: Order = NOTHING_YET
        self._in_vain = 0  # evaluations in a row that brought nothing better
        self._earlier: tuple[Sequence[FloatArray], Sequence[Outcome]] = [], []
        self._best_of_choice: dict[tuple[int, int], Order] = {}
        self._fit = Fit([])
        self._fitted_at = 0  # to how many evaluations
        self._contested = contested(features)
        many = LONGEST if self._contested else PER_VARIABLE * features.variables
        self._longest = min(max(SHORTEST, many), LONGEST)
        self._patience = PATIENCE_WITH_CHOICES if self._contested else PATIENCE
        # without floats, most of what a restart would propose is known already
        again = len(features.floats) > 0 and features.variables <= MOST_VARIABLES_AGAIN
        self.over = features.variables > MOST_VARIABLES or (run > 0 and not again)

    def know(self, points: Sequence[FloatArray], outcomes: Sequence[Outcome]) -> None:
        """What came of points (N,) in an earlier search, the most telling first."""
        self._earlier = points, outcomes

    def add(self, point: FloatArray, outcome: Outcome) -> None:
        """A point (N,) was evaluated."""
        if self.over:
            return
        self._points.append(point)
        self._outcomes.append(outcome)
        self._in_vain = 0 if self._is_better(point, outcome.order) else self._in_vain + 1
        self._best = min(self._best, outcome.order)
        many = len(outcome.constraints) > MOST_CONSTRAINTS
        self.over = many or len(self._points) >= self._longest or self._in_vain >= self._patience
        if self.over:
            self._points, self._outcomes = [], []

    def _is_better(self, point: FloatArray, order: Order) -> bool:
        """Whether an outcome is the best so far, or that of a choice that is compared with others."""
        better = order < self._best
        for column in self._contested:
            choice = column, int(point[column])
            if order < self._best_of_choice.get(choice, NOTHING_YET):
                self._best_of_choice[choice], better = order, True
        return better

    @on_one_thread
    def propose(self, count: int, number: int, waiting: Sequence[FloatArray] = ()) -> list[FloatArray]:
        """At most `count` new points (N,), the most promising first; fewer if there is nothing to choose by.

        Each is chosen as if the points that are `waiting` for their evaluation, and those before it, had come as
        predicted. Proposals with the same `number` use the same random numbers.
        """
        evaluated = None if self.over else self._evaluated(len(self._points))
        if evaluated is None or len(self._points) < LEAST_POINTS:
            return []
        fit, rng = self._fitted(), generator(self._seed, self._run, PROPOSALS, number)
        points: list[FloatArray] = []
        for guessed in waiting:
            evaluated = self._with_guess(evaluated, fit, guessed)
        while len(points) < min(count, MOST_TOGETHER):
            if points:
                evaluated = self._with_guess(evaluated, fit, points[-1])
            point = self._of_deserving_choice(evaluated, rng)
            if point is None:
                predicted = forecast(self._features, evaluated, fit)
                point = None if predicted is None else _new_point(predicted, evaluated, fit.earlier, rng)
            if point is None:
                break
            points.append(point)
        return points

    def _of_deserving_choice(self, evaluated: Evaluated, rng: np.random.Generator) -> FloatArray | None:
        """A new point of a choice that deserves it, which processes of that choice's points alone propose."""
        if not self._contested or rng.random() < TOGETHER:
            return None
        choice = deserving(self._features, self._contested, *evaluated[:2], evaluated.violations)
        if choice is None:
            return None
        mine = evaluated.points[:, choice.column] == choice.place
        own = Evaluated(*(part[mine] for part in evaluated))
        if len(own.points) < LEAST_POINTS:
            return anywhere_with(self._features, evaluated.points, choice, rng)
        fit = fit_processes(self._features, own)._replace(choice=(choice.column, choice.place))
        predicted = forecast(self._features, own, fit)
        point = None if predicted is None else _new_point(predicted, own, None, rng)
        return anywhere_with(self._features, evaluated.points, choice, rng) if point is None else point

    def _evaluated(self, count: int) -> Evaluated | None:
        """The first evaluations; what is no data counts as the worst. None if the number of constraints differs."""
        outcomes = self._outcomes[:count]
        good = [outcome for outcome in outcomes if is_data(outcome)]
        if len({len(outcome.constraints) for outcome in good}) != 1:
            return None
        worst = Outcome(max(each.value for each in good), [max(g) for g in zip(*(each.constraints for each in good))])
        known = set(map(id, good))
        return evaluated_from(self._points[:count], [each if id(each) in known else worst for each in outcomes])

    def _earlier_for(self, evaluated: Evaluated) -> Evaluated | None:
        """What an earlier search says of points like these: so much of it that all are not too many."""
        count, constraints = max(0, LONGEST - len(evaluated.points)), evaluated.constraints.shape[1]
        pairs = [pair for pair in zip(*self._earlier) if len(pair[1].constraints) == constraints][:count]
        earlier = evaluated_from(*zip(*pairs)) if pairs else None
        return None if earlier is None or _of_other_size(earlier.values, evaluated.values) else earlier

    def _fitted(self) -> Fit:
        """The parameters of the processes, from as many evaluations as there were at the last step of a schedule."""
        step = LEAST_POINTS
        while math.ceil(PACE * step) <= len(self._points):
            step = math.ceil(PACE * step)
        if step != self._fitted_at:
            # the first ones may all have failed
            evaluated = next(filter(None, map(self._evaluated, range(step, len(self._points) + 1))))
            self._fit = fit_processes(self._features, evaluated, self._earlier_for(evaluated))
            self._fitted_at = step
        return self._fit

    def _with_guess(self, evaluated: Evaluated, fit: Fit, point: FloatArray) -> Evaluated:
        predicted = forecast(self._features, evaluated, fit)
        if predicted is None:
            return evaluated
        value, constraints = predicted.expected(point[None])
        return Evaluated(
            np.concatenate([evaluated.points, point[None]]),
            np.append(evaluated.values, value),
            np.concatenate([evaluated.constraints, constraints[None]]),
        )


def _of_other_size(earlier: FloatArray, values: FloatArray) -> bool:
    """Whether the values of another search are so large or small that they have nothing to do with these."""
    sizes = sorted((float(np.abs(earlier).max()), float(np.abs(values).max())))
    return 0.0 < sizes[0] * MOST_TIMES < sizes[1]


def _new_point(
    predicted: Forecast, evaluated: Evaluated, earlier: Evaluated | None, rng: np.random.Generator
) -> FloatArray | None:
    """The most promising point that is not known, as it would be evaluated."""
    best = _best(evaluated)
    if earlier is not None:  # one of each, in turn
        both = list(itertools.zip_longest(best, _best(earlier)))
        best = np.array([point for pair in both for point in pair if point is not None][:BEST])
    outcomes = np.column_stack([evaluated.violations, evaluated.values, evaluated.constraints])
    found = most_promising(predicted, evaluated.points, best, rng, outcomes)
    return found[0] if found else None


def _best(evaluated: Evaluated) -> FloatArray:
    points: FloatArray = evaluated.points[np.lexsort((evaluated.values, evaluated.violations))[:BEST]]
    return points


def is_data(outcome: Outcome) -> bool:
    """Whether an outcome can serve a model: it has not failed, and the square of its value is a float."""
    return not outcome.failed and abs(outcome.value) < LARGEST


def evaluated_from(points: Sequence[FloatArray], outcomes: Sequence[Outcome]) -> Evaluated:
    """Points and what came of them; all have the same number of constraints."""
    constraints = np.array([tuple(outcome.constraints) for outcome in outcomes], dtype=np.float64)
    values = np.array([outcome.value for outcome in outcomes])
    return Evaluated(np.array(points), values, _limited(constraints.reshape(len(outcomes), -1)))


def _limited(constraints: FloatArray) -> FloatArray:
    """What is no data, such as -inf, counts as the largest number of its constraint that is (or as 1)."""
    sizes = np.abs(constraints)
    usable = sizes < LARGEST
    if usable.all():
        return constraints
    largest = np.where(usable, sizes, 0.0).max(axis=0)
    return np.where(usable, constraints, np.sign(constraints) * np.where(largest > 0.0, largest, 1.0))
