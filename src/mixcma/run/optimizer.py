"""Optimizer and Candidate: the thin mutable shell around the core."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from mixcma.core.gaussian import Start
from mixcma.core.method import Method, State
from mixcma.core.sampling import Sample
from mixcma.core.stopping import FAILING, FLAT, REASONS, VARIANCE, Stopping, StopReason
from mixcma.latent.encoding import Encoding
from mixcma.run.arguments import (
    check_categories,
    checked_count,
    checked_method,
    checked_popsize,
    checked_seed,
    checked_space,
    checked_stopping,
)
from mixcma.run.guide import Guide, Known, Plan
from mixcma.run.monitor import RunMonitor
from mixcma.run.noise import NoiseSource, fresh_seed
from mixcma.run.outcome import Order, Outcome, Told, interpret, read_outcomes
from mixcma.run.snapshot import Snapshot, arrays_of, state_from
from mixcma.run.warm_start import History, started_at, started_from, warm_start
from mixcma.space import Params, Space

DEFAULT_METHOD = "mix"
T = TypeVar("T")


class Draw(NamedTuple):
    """What the candidates of one generation have in common."""

    run: int
    generation: int
    sample: Sample
    penalty: NDArray[np.float64] | float
    plan: Plan | None  # where the model has chosen which are evaluated


class Candidate:
    """A point to evaluate: its `params`, and the latent sample it came from."""

    __slots__ = ("_draw", "index", "params")

    def __init__(self, params: Params, index: int, draw: Draw) -> None:
        self.params = params
        self.index = index
        self._draw = draw

    @property
    def run(self) -> int:
        return self._draw.run

    @property
    def generation(self) -> int:
        return self._draw.generation

    @property
    def latent(self) -> NDArray[np.float64]:
        """The latent point (N,) that `params` was decoded from."""
        latent: NDArray[np.float64] = self._draw.sample.v[self.index]
        return latent

    @property
    def proposed(self) -> bool:
        """Whether it is a point of the model's own."""
        plan = self._draw.plan
        return plan is not None and self.index in plan.proposed

    @property
    def slot(self) -> int:
        """Its place in the generation; points of the model's own have those after the last."""
        plan = self._draw.plan
        return self.index + len(plan.proposed) if plan is not None and self.proposed else self.index

    @property
    def penalty(self) -> float:
        """What the method adds to this candidate's value before ranking (``"im-box"``), else 0."""
        penalty = self._draw.penalty
        return penalty if isinstance(penalty, float) else float(penalty[self.index])

    def __repr__(self) -> str:
        return f"Candidate({self.params!r}, generation={self.generation}, index={self.index})"


class Best(NamedTuple):
    """The best evaluation so far: feasible before infeasible, then less violation, then less value."""

    params: Params
    value: float
    violation: float
    evaluation: int

    @property
    def feasible(self) -> bool:
        return self.violation == 0.0

    @property
    def order(self) -> Order:
        """Smaller is better."""
        return self.violation, self.value


class Optimizer:
    """Ask for candidates, tell their values; one run of one method.

    Parameters
    ----------
    space
        What may be varied.
    method
        ``"mix"`` (mixcma's own), ``"margin"`` (CMA-ES with Margin), ``"catmargin"`` (CatCMA with Margin),
        ``"im"`` and ``"im-box"`` (CMA-ES-IM without and with the box), ``"cma"`` (plain CMA-ES, rounded), or
        one of the classes of `mixcma.core.methods`.
    seed
        The same seed gives the same run; None draws one, kept in `seed`.
    popsize
        Candidates per generation; default 4 + floor(3 ln N).
    mean
        Initial means by name, instead of those of the variables.
    history
        Points with values from earlier runs or other tools, ``[(params, value), ...]``: where the run
        starts, with which step size and covariance.
    stopping
        When to give up.
    target
        The value you are after; close to it, the run is not given up for small improvements.
    run
        Number of this run among the restarts of a search; runs of the same seed are independent.

    Examples
    --------
    >>> from mixcma import Float, Int, Space
    >>> optimizer = Optimizer(Space({"x": Float(-5, 5), "n": Int(0, 9)}), seed=1)
    >>> while not optimizer.stop:
    ...     candidates = optimizer.ask()
    ...     optimizer.tell(candidates, [1 + c.params["x"]**2 + (c.params["n"] - 3)**2 for c in candidates])
    >>> optimizer.best.params["n"], optimizer.stop.name
    (3, 'flat')
    """

    def __init__(
        self,
        space: Space,
        *,
        method: str | Method = DEFAULT_METHOD,
        seed: int | None = None,
        popsize: int | None = None,
        mean: Mapping[str, float] | NDArray[np.float64] | None = None,
        history: History = (),
        stopping: Stopping = Stopping(),
        target: float | None = None,
        run: int = 0,
    ) -> None:
        self.space = checked_space(space)
        self.method = checked_method(method)
        self.seed = fresh_seed() if seed is None else checked_seed(seed)
        self.run = checked_count("run", run, 0)
        self.stopping = checked_stopping(stopping)
        self.encoding = Encoding(space, self.method.takes_categories)
        check_categories(self.method, self.encoding)
        self.setting = self.method.setting(self.encoding.coordinates, checked_popsize(popsize))
        start = warm_start(self.encoding, history)
        if mean is not None:
            at_mean = started_at(self.encoding, self._latent_mean(mean))
            start = start._replace(m=at_mean.m, theta=at_mean.theta)
        self.state: State
        self._begin(start)
        self.evaluations = 0
        self.failures = 0
        self.best: Best | None = None
        self.stop: StopReason | None = None
        self.noise = NoiseSource(self.seed, run, self.popsize, self.encoding.dimension, self.method.takes_uniforms)
        floats = self.setting.strategy.dimension - int(self.encoding.coordinates.margin.sum())
        self.monitor = RunMonitor(self.stopping, target, self.encoding.dimension, floats, self.popsize)
        self._record_decomposition()
        self.guide = Guide(self.method, self.setting) if self.method.guided else None
        self._asked: list[Candidate] | None = None
        self._draws = 0  # generations drawn; ahead of the state's count where a whole one failed

    @property
    def popsize(self) -> int:
        return self.setting.strategy.popsize

    @property
    def generation(self) -> int:
        """Generations told so far."""
        return self._draws

    @property
    def step_size(self) -> float:
        return float(self.state.sigma[0])

    def ask(
        self,
        at_least: int = 1,
        *,
        including: Collection[int] = (),
        known: Callable[[Params], bool] | None = None,
    ) -> list[Candidate]:
        """The candidates to evaluate and tell next: a generation, or as many of it as the model finds worth it.

        There are `at_least` so many, or the whole generation, and those with the slots `including` are among them.
        Points that are `known`, and cost nothing, come on top.
        """
        if self._asked is not None:
            raise RuntimeError(
                f"ask: generation {self._draws} was asked for already and has not been told; "
                "call tell(candidates, values) with all of its candidates first"
            )
        sample, plan = self.method.sample(self.setting, self.state, self.noise(self._draws)), None
        chosen: Sequence[int] = range(self.popsize)
        v, cells = sample.v, sample.cells
        if self.guide is not None:
            plan = self.guide.plan(self.state, sample, at_least, including, self._known_by(known))
            sample, chosen = plan.sample, plan.chosen
            v, cells = sample.v[chosen], np.broadcast_to(sample.cells, sample.v.shape)[chosen]
        draw = Draw(self.run, self._draws, sample, self.method.penalty(self.setting, sample.v), plan)
        params = self.encoding.decode(v, cells)
        self._asked = list(map(Candidate, params, chosen, itertools.repeat(draw)))
        return list(self._asked)

    def tell(self, candidates: Sequence[Candidate], outcomes: Iterable[float | Outcome | None]) -> None:
        """Give the values of all candidates of the last `ask`, in any order.

        A value is a number or an `Outcome`; None and NaN mark a failed evaluation.
        """
        given = self._in_order(list(candidates), list(outcomes))
        asked = self._asked
        assert asked is not None
        plan = asked[0]._draw.plan
        told: Told | None
        if plan is None or self.guide is None:
            told = read_outcomes(given)
            self._record(asked, told)
        else:
            read = [interpret(each) for each in given]
            self._record(asked, read_outcomes(read))
            told = self.guide.learn(plan, [self.encoding.encode_checked(candidate.params) for candidate in asked], read)
        self._asked = None
        if told is None:
            self._draws += 1
        else:
            self.advance(asked[0]._draw.sample, told)

    def advance(self, sample: Sample, told: Told) -> None:
        """Close a generation: learn from its samples, unless all of them failed."""
        self._draws += 1
        if told.failures == len(told.values):
            self.monitor.record_failure()
        else:
            self._update(sample, told)
        self.stop = self.monitor.stop_reason(self.step_size)
        strayed = self.stop in (None, FLAT, VARIANCE) and self.monitor.has_strayed(self._draws, self.stop)
        # at the end of a wide range all candidates may be in the last cell
        wide = self.stop is FLAT and self.monitor.may_return and self._widest() > 1.0
        if strayed or wide:
            self._return_to_best()

    def follow(self, earlier: Optimizer) -> None:
        """Come after another run of the same search, and be given up where there is no hope of being better."""
        self.monitor.to_beat = min(earlier.monitor.to_beat, earlier.monitor.best)
        if self.guide is not None and earlier.guide is not None:
            self.guide.follow(earlier.guide)

    def remember(self, params: Params, outcome: Outcome) -> None:
        """Something was evaluated without being asked for: data for the model."""
        if self.guide is not None:
            self.guide.add(self.encoding.encode_checked(params), outcome)

    def move_to(self, params: Params) -> None:
        """Start from `params`: the mean becomes that point, and half of all first choices are its own."""
        start, n = started_from(self.encoding, self.encoding.encode(params)), self.setting.strategy.dimension
        start.covariance[:n, :n] = (self.state.sigma**2 * self.state.C)[:n, :n]  # what a history said
        self._begin(start)

    def snapshot(self) -> Snapshot:
        """All that this run is between two generations."""
        best = self.best
        numbers = {
            "generation": self.state.generation,
            "draws": self._draws,
            "evaluations": self.evaluations,
            "failures": self.failures,
            **self.monitor.snapshot(),
            **({} if self.guide is None else {"guide": self.guide.snapshot()}),
            "stop": self.stop and self.stop.name,
            "best": best and [list(best.params.values()), best.value, best.violation, best.evaluation],
        }
        return Snapshot(numbers, arrays_of(self.state))

    def restore(self, snapshot: Snapshot) -> None:
        """Go on from a snapshot of a run with the same settings, as if nothing had been in between."""
        numbers, best = snapshot.numbers, snapshot.numbers["best"]
        self.state = state_from(self.state, snapshot)
        self._draws, self.evaluations, self.failures = numbers["draws"], numbers["evaluations"], numbers["failures"]
        self.monitor.restore(numbers, self.method.varying(self.setting, self.state))
        self._record_decomposition()
        if self.guide is not None:
            self.guide.restore(numbers["guide"])
        self.best = best and Best(dict(zip(self.space, best[0])), *best[1:])
        self.stop = numbers["stop"] and REASONS[numbers["stop"]]
        if self.stop is FAILING:
            self.stop = None
            self.monitor.reset_failures()

    def _known_by(self, known: Callable[[Params], bool] | None) -> Known:
        if known is None:
            return lambda sample: np.zeros(len(sample.v), dtype=bool)
        return lambda sample: np.array([known(params) for params in self.encoding.decode(sample.v, sample.cells)])

    def _begin(self, start: Start) -> None:
        self.state = self.method.initial_state(self.setting, start)

    def _in_order(self, candidates: list[Candidate], outcomes: list[T]) -> list[T]:
        """The outcomes in the order of `ask`, after checking that they are all there, once."""
        asked = self._asked
        if asked is None:
            raise RuntimeError("tell: no candidates are waiting; call ask() first")
        if len(candidates) != len(outcomes):
            raise ValueError(
                f"tell: expected a value for each candidate, but got {len(candidates)} candidates "
                f"and {len(outcomes)} values; pass two lists of the same length"
            )
        if candidates == asked:
            return outcomes
        placed: dict[int, T] = {}
        place = {id(candidate): k for k, candidate in enumerate(asked)}
        for candidate, outcome in zip(candidates, outcomes):
            index = place.get(id(candidate), -1)
            if index < 0:
                raise ValueError(
                    f"tell: expected candidates of generation {self._draws} of this optimizer, but got "
                    f"{candidate!r}; pass the very objects that the last ask() returned"
                )
            if index in placed:
                raise ValueError(f"tell: {candidate!r} was given twice; pass each candidate once")
            placed[index] = outcome
        if len(placed) < len(asked):
            missing = sorted(asked[k].index for k in set(range(len(asked))) - set(placed))
            raise ValueError(
                f"tell: expected all {len(asked)} candidates of generation {self._draws}, but those with "
                f"index {missing} are missing; tell them too (None marks a failed evaluation)"
            )
        return [placed[index] for index in range(len(asked))]

    def _record(self, asked: list[Candidate], told: Told) -> None:
        """Count, and keep the best."""
        self.failures += told.failures
        key, best = (told.best_violation, told.best_value), self.best
        if told.failures < len(asked) and (best is None or key < best.order):
            where = self.evaluations + told.best + 1
            self.best = Best(dict(asked[told.best].params), told.best_value, told.best_violation, where)
        self.evaluations += len(asked)

    def _update(self, sample: Sample, told: Told) -> None:
        self.monitor.record(told, self.method.varying(self.setting, self.state))
        self.state = self.method.tell(self.setting, self.state, sample, told.values, told.violations)
        if self.state.generation % self.setting.eigen_interval == 0:
            self.state = self.method.decomposed(self.state)
            self._record_decomposition()

    def _record_decomposition(self) -> None:
        eigenvalues, variance = self.state.eigenvalues, float(self.method.smallest_variance(self.setting, self.state))
        per_sigma_sq = variance / self.step_size**2
        self.monitor.record_decomposition(float(eigenvalues[0]), float(eigenvalues[-1]), per_sigma_sq)

    def _return_to_best(self) -> None:
        """Go on from the best point of the run, with its integers, if the method does that."""
        state = self.method.back_at_best(self.setting, self.state)
        if state is not None:
            self.state, self.stop = state, None
            self.monitor.record_return(self.method.varying(self.setting, state))

    def _widest(self) -> float:
        """The largest standard deviation of an integer, in cells."""
        coordinates = self.encoding.coordinates
        S = np.where(coordinates.margin, coordinates.granularity, np.inf)
        return float(np.max(self.method.spread(self.state) / S))

    def _latent_mean(self, mean: Mapping[str, float] | NDArray[np.float64]) -> NDArray[np.float64]:
        if isinstance(mean, Mapping):
            return self.encoding.encode_mean(mean)
        latent = np.array(mean)
        if (
            latent.shape != (self.encoding.dimension,)
            or latent.dtype.kind not in "fiu"
            or not np.isfinite(latent).all()
        ):
            raise ValueError(
                f"mean: expected means by name, or {self.encoding.dimension} finite latent numbers, but got "
                f"{mean!r:.80}; pass a dict"
            )
        return latent.astype(np.float64)
