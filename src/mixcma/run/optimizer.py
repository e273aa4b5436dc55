"""Optimizer and Candidate: the thin mutable shell around the core."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixcma.core.gaussian import Start
from mixcma.core.method import Method, State
from mixcma.core.sampling import Sample
from mixcma.core.stopping import FAILING, FLAT, NUMERICAL, REASONS, VARIANCE, Stopping, StopReason
from mixcma.latent.encoding import Encoding
from mixcma.run.arguments import (
    check_categories,
    checked_count,
    checked_method,
    checked_points,
    checked_popsize,
    checked_seed,
    checked_space,
    checked_stopping,
    checked_target,
)
from mixcma.run.guide import Guide, Known, Plan
from mixcma.run.monitor import RunMonitor
from mixcma.run.noise import NoiseSource, fresh_seed
from mixcma.run.outcome import Order, Outcome, Told, gather, interpret, read_outcomes
from mixcma.run.restarts import allowed_restarts, restart_popsize, start_mean
from mixcma.run.snapshot import Snapshot, arrays_of, state_from
from mixcma.run.stream import EXPLORED, Drawn, Stream
from mixcma.run.warm_start import History, checked_history, started_at, started_from, telling, warm_start
from mixcma.space import Params, Space

DEFAULT_METHOD = "mix"
# Farther than this many initial standard deviations away, flat values do not mean convergence: neighbouring floats are
# too far apart there.
FARTHEST = 1e15
# Candidates that are drawn alone have noise of their own, from this number on.
SINGLE_DRAWS = 2**32
# The slot of points that a user tells of.
OWN_POINT = EXPLORED + 1
# After exploring, the search starts at the best point, with this part of the initial standard deviations, or this part
# of the distance it has moved, whichever is larger.
AFTER_EXPLORING, PART_OF_THE_WAY = 0.3, 0.1


class Draw(NamedTuple):
    """What the candidates of one generation have in common."""

    run: int
    generation: int
    state: State  # that they were drawn from
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


class SingleCandidate(Candidate):
    """A point to evaluate that was drawn alone, or came from elsewhere."""

    __slots__ = ("drawn",)

    def __init__(self, drawn: Drawn, draw: Draw) -> None:
        super().__init__(drawn.params, 0, draw)
        self.drawn = drawn

    @property
    def proposed(self) -> bool:
        return self.drawn.proposed

    @property
    def slot(self) -> int:
        return self.drawn.slot

    def __repr__(self) -> str:
        return f"Candidate({self.params!r}, generation={self.generation})"


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
        ``"mix"`` (mixcma's own), ``"mix-without-model"`` (the same without a model of the objective), ``"margin"``
        (CMA-ES with Margin), ``"catmargin"`` (CatCMA with Margin), ``"im"`` and ``"im-box"`` (CMA-ES-IM without and
        with the box), ``"cma"`` (plain CMA-ES, rounded), or one of the classes of `mixcma.core.methods`.
    seed
        The same seed gives the same run; None draws one, kept in `seed`.
    popsize
        Candidates per generation; default 4 + floor(3 ln N).
    mean
        Initial means by name, instead of those of the variables.
    x0
        A point to start from, or several: the first `ask` gives them, and the best of them becomes the mean.
    history
        Points with values from earlier runs or other tools, ``[(params, value), ...]``: where the run
        starts, with which step size and covariance; the model learns from up to a hundred of them.
    stopping
        When to give up.
    target
        The value you are after; close to it, the run is not given up for small improvements.
    restarts
        Whether to start again as `minimize` does, from another point and with another population, when a run has
        converged; a number allows at most that many restarts. `stop` is None until the last run has ended.
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
        x0: Mapping[str, Any] | Sequence[Mapping[str, Any]] = (),
        history: History = (),
        stopping: Stopping = Stopping(),
        target: float | None = None,
        restarts: bool | int = False,
        run: int = 0,
    ) -> None:
        self.space = checked_space(space)
        self.method = checked_method(method)
        self.seed = fresh_seed() if seed is None else checked_seed(seed)
        self.stopping = checked_stopping(stopping)
        self.encoding = Encoding(space, self.method.takes_categories)
        check_categories(self.method, self.encoding)
        self._target, self._restarts = checked_target(target), allowed_restarts(restarts)
        history = checked_history(self.encoding, history)
        start = warm_start(self.encoding, history)
        if mean is not None:
            at_mean = started_at(self.encoding, self._latent_mean(mean))
            start = start._replace(m=at_mean.m, theta=at_mean.theta)
        self.evaluations = 0
        self.failures = 0
        self.best: Best | None = None
        self._x0 = checked_points(space, x0)
        self._single: dict[SingleCandidate, None] = {}  # drawn alone and not told yet, in this order
        self._late: dict[Candidate, SingleCandidate] = {}  # of generations whose run has ended meanwhile
        self._begin_run(checked_count("run", run, 0), checked_popsize(popsize), start)
        self._first_popsize = self.popsize
        self.told_before: Sequence[tuple[Params, Outcome]] = ()
        self.know(telling(self.encoding, history))

    def _begin_run(self, run: int, popsize: int | None, start: Start) -> None:
        self.run = run
        self.setting = self.method.setting(self.encoding.coordinates, popsize)
        self.state: State
        self._begin(start)
        self.stop: StopReason | None = None
        self.noise = NoiseSource(self.seed, run, self.popsize, self.encoding.dimension, self.method.takes_uniforms)
        floats = self.setting.strategy.dimension - int(self.encoding.coordinates.margin.sum())
        self.monitor = RunMonitor(self.stopping, self._target, self.encoding.dimension, floats, self.popsize)
        self._record_decomposition()
        self.guide = Guide(self.method, self.setting, self.seed, run) if self.method.guided else None
        self._asked: list[Candidate] | None = None
        self._told: dict[int, object] = {}  # the outcomes of some of these, by their place
        self._draws = 0  # generations drawn; ahead of the state's count where a whole one failed
        self._stream = Stream(self, SINGLE_DRAWS)

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
        n: int | None = None,
        *,
        at_least: int = 1,
        including: Collection[int] = (),
        known: Callable[[Params], bool] | None = None,
    ) -> list[Candidate]:
        """The candidates to evaluate next: `n` of them, or as many as the method wants now.

        Without `n` they are a generation, or as many of it as the model finds worth it; all of them are to be told
        before the next `ask()`. With `n` they are drawn one at a time, whenever you like, and told in any order.

        A generation has at least `at_least` candidates (or all of them, if it is smaller), including those with the
        slots `including`. Points for which `known` is true cost nothing, and come in addition.
        """
        if n is not None:
            if self._x0:
                raise RuntimeError(
                    "ask: the points of x0 come first; "
                    + ("they have been given out: " if self._asked else "call ask() without a number, and ")
                    + "tell their values"
                )
            return [self._ask_single() for _ in range(checked_count("n", n, 1))]
        if self._asked is not None:
            missing = len(self._asked) - len(self._told)
            raise RuntimeError(
                f"ask: {missing} of {len(self._asked)} candidates of generation {self._draws} still have no values; "
                "call tell(candidates, values) with them first, or ask(n) for more"
            )
        self._asked = self._ask_x0() if self._x0 else self._ask_generation(at_least, including, known)
        return list(self._asked)

    def _ask_generation(
        self, at_least: int, including: Collection[int], known: Callable[[Params], bool] | None
    ) -> list[Candidate]:
        sample, plan = self.method.sample(self.setting, self.state, self.noise(self._draws)), None
        chosen: Sequence[int] = range(self.popsize)
        v, cells = sample.v, sample.cells
        if self.guide is not None:
            plan = self.guide.plan(self.state, sample, self._draws, at_least, including, self._known_by(known))
            sample, chosen = plan.sample, plan.chosen
            v, cells = sample.v[chosen], np.broadcast_to(sample.cells, sample.v.shape)[chosen]
        draw = Draw(self.run, self._draws, self.state, sample, self.method.penalty(self.setting, sample.v), plan)
        return list(map(Candidate, self.encoding.decode(v, cells), chosen, itertools.repeat(draw)))

    def _ask_x0(self) -> list[Candidate]:
        latents = np.array([self.encoding.encode_checked(params) for params in self._x0])[:, None]
        sample = self.method.express(self.setting, self.state, latents)
        draw = Draw(self.run, self._draws, self.state, sample, 0.0, None)
        return [Candidate(params, index, draw) for index, params in enumerate(self._x0)]

    def _ask_single(self) -> Candidate:
        candidate = self._as_candidate(self._stream.draw(waiting=[each.drawn for each in self._single]))
        self._single[candidate] = None
        return candidate

    def _as_candidate(self, drawn: Drawn) -> SingleCandidate:
        sample = self.method.express(self.setting, self.state, drawn.latents[None])
        return SingleCandidate(drawn, Draw(drawn.run, drawn.generation, self.state, sample, 0.0, None))

    def tell(
        self, candidates: Sequence[Candidate | Mapping[str, Any]], outcomes: Iterable[float | Outcome | None]
    ) -> None:
        """Give the values of candidates and of points of your own, any number of them in any order.

        A value is a number or an `Outcome`; None and NaN mark a failed evaluation. A point of your own is a dict of
        parameters. All values count at once; a generation is learnt from when all of its candidates have been told.
        """
        for name, argument in (("candidates", candidates), ("values", outcomes)):
            if isinstance(argument, Mapping | str) or not isinstance(argument, Iterable):
                raise ValueError(
                    f"tell: expected a list of candidates and a list of values, but got {argument!r:.80} as {name}; "
                    "write tell([candidate], [value]) for a single one"
                )
        candidates, given = list(candidates), list(outcomes)
        if len(candidates) != len(given):
            raise ValueError(
                f"tell: expected a value for each candidate, but got {len(candidates)} candidates "
                f"and {len(given)} values; pass two lists of the same length"
            )
        at_once = not self._told and candidates == self._asked
        if not at_once:
            given = self._tell_some(candidates, given)
        if self._asked is not None and len(given) == len(self._asked):
            self._tell_all(self._asked, given, recorded=not at_once)
        if self.stop not in (None, FAILING) and self.run < self._restarts:
            self._restart()

    def _tell_some(self, candidates: Sequence[Candidate | Mapping[str, Any]], given: Sequence[object]) -> list[Any]:
        """Take in outcomes of single candidates; the others wait, and are returned once a generation is complete."""
        whose = [self._whose(candidate) for candidate in candidates]
        read = [interpret(outcome) for outcome in given]  # nothing has changed if one of them is refused
        places = [place for place in whose if isinstance(place, int)]
        singles = [id(single) for single in whose if not isinstance(single, int)]
        if len(set(places)) < len(places) or len(set(singles)) < len(singles):
            raise ValueError("tell: a candidate was given twice; pass each candidate once")
        for one, outcome in zip(whose, read):
            if isinstance(one, int) and self._asked is not None:
                self._told[one] = outcome
                self._record([self._asked[one]], gather([outcome]))
            elif isinstance(one, SingleCandidate):
                self._tell_single(one, outcome)
        complete = self._asked is not None and len(self._told) == len(self._asked)
        return [self._told[place] for place in range(len(self._told))] if complete else []

    def _whose(self, candidate: Candidate | Mapping[str, Any]) -> int | SingleCandidate:
        """The place of a candidate in the generation that was asked for; or a candidate that was drawn alone."""
        if not isinstance(candidate, Candidate):
            if not isinstance(candidate, Mapping):
                raise ValueError(
                    f"tell: expected candidates, and dicts of parameters for points of your own, but got "
                    f"{candidate!r:.80}; pass what ask() returned"
                )
            params = self.space.check_params(candidate)
            latents = self.encoding.encode_checked(params)[None]
            return self._as_candidate(Drawn(params, latents, self.run, self._draws, OWN_POINT, foreign=True))
        if isinstance(candidate, SingleCandidate) and candidate in self._single:
            return candidate
        if candidate in self._late:
            return self._late[candidate]
        places = [place for place, asked in enumerate(self._asked or ()) if asked is candidate]
        if not places:
            raise ValueError(
                f"tell: expected candidates that wait for their values, but got {candidate!r}; pass the very objects "
                "that ask() returned, each once, or a dict of parameters for a point of your own"
            )
        if places[0] in self._told:
            raise ValueError(f"tell: {candidate!r} was told already; pass each candidate once")
        return places[0]

    def _tell_single(self, candidate: SingleCandidate, outcome: Outcome) -> None:
        self._single.pop(candidate, None)
        self._late = {asked: single for asked, single in self._late.items() if single is not candidate}
        self._record([candidate], gather([outcome]))
        if self.stop is None:
            self._stream.take(candidate.drawn, outcome)

    def _tell_all(self, asked: list[Candidate], given: Sequence[object], recorded: bool) -> None:
        """Close a generation, or what was asked for of it; its values may have been recorded one by one."""
        draw = asked[0]._draw
        by_one = bool(self._x0) or draw.plan is not None
        outcomes = [interpret(each) for each in given] if by_one else []  # once: constraints may be an iterator
        told = gather(outcomes) if by_one else read_outcomes(given)
        if not recorded:
            self._record(asked, told)
        self._asked, self._told = None, {}
        if self._x0:
            self._x0 = []
            self.start_from(list(zip((candidate.params for candidate in asked), outcomes)))
        elif self.stop is not None and draw.state is not self.state:
            return  # candidates that were drawn alone have ended the run meanwhile
        elif draw.plan is not None:
            self._learn_by_model(asked, draw.plan, outcomes)
        else:
            self.advance(self._present(draw), told)

    def _learn_by_model(self, asked: list[Candidate], plan: Plan, outcomes: Sequence[Outcome]) -> None:
        """Close a generation of which the model has chosen the candidates."""
        assert self.guide is not None
        points = [self.encoding.encode_checked(candidate.params) for candidate in asked]
        explored = self.guide.explorer.over or self._draws == 0  # a first generation is learnt from in any case
        told = self.guide.learn(plan, points, outcomes)
        if self.guide.explorer.over and not explored:
            self.end_exploring()
        elif told is not None:
            self.advance(self._present(asked[0]._draw), told)
        else:
            self._draws += 1

    def _present(self, draw: Draw) -> Sample:
        """A generation as it was drawn; in the present state, if candidates that were drawn alone have changed it."""
        if draw.state is self.state:
            return draw.sample
        method, setting, state = self.method, self.setting, self.state
        latents = method.latents(draw.state, draw.sample)
        redrawn = method.sample(setting, state, self.noise(draw.generation)).z
        sample = method.express(setting, state, latents, redrawn)._replace(older=np.ones(len(latents), dtype=bool))
        count = 0 if draw.plan is None else len(draw.plan.proposed)
        if not count:
            return sample
        own = method.express(setting, state, latents[-count:])  # no noise of this run is behind these
        return Sample._make(np.concatenate([part[:-count], last]) for part, last in zip(sample, own))

    def start_from(self, evaluated: Sequence[tuple[Params, Outcome]]) -> None:
        """Points that were evaluated before the first generation: data for the model, and the best is the mean."""
        for params, outcome in evaluated:
            self.remember(params, outcome)
        if self.guide is not None:
            self.guide.refit()
        params, outcome = min(evaluated, key=lambda pair: pair[1].order)
        if not outcome.failed:
            self.move_to(params)

    def _restart(self) -> None:
        """Begin the next run."""
        for place, candidate in enumerate(self._asked or ()):
            if place not in self._told:
                draw = candidate._draw
                drawn = Drawn(candidate.params, candidate.latent[None], draw.run, draw.generation, candidate.slot)
                self._late[candidate] = SingleCandidate(drawn, draw)
        run, monitor, guide = self.run + 1, self.monitor, self.guide
        start = started_at(self.encoding, start_mean(self.encoding, self.seed, run))
        self._begin_run(run, restart_popsize(self._first_popsize, run), start)
        self._come_after(monitor, guide)

    def advance(self, sample: Sample, told: Told) -> None:
        """Close a generation: learn from its samples, unless all of them failed."""
        self._draws += 1
        if told.failures == len(told.values):
            self.monitor.record_failure()
        else:
            self._update(sample, told)
        self.stop = self.monitor.stop_reason(self.step_size)
        if self.stop is None and self.stopping.flat_tolerance is not None and self._has_converged():
            self.stop = FLAT
        strayed = self.stop in (None, FLAT, VARIANCE) and self.monitor.has_strayed(self._draws, self.stop)
        # at the end of a wide range all candidates may be in the last cell
        wide = self.stop is FLAT and self.monitor.may_return and self._widest() > 1.0
        if strayed or wide:
            self._return_to_best()
        if self.stop is FLAT and float(np.abs(self.state.m).max()) > FARTHEST:
            self.stop = NUMERICAL

    def end_exploring(self) -> None:
        """Begin to learn, at the best point that was found by exploring."""
        self._draws += 1
        if self.guide is not None and self.guide.best_point is not None:
            start, n = started_from(self.encoding, self.guide.best_point), self.setting.strategy.dimension
            std = np.maximum(AFTER_EXPLORING, PART_OF_THE_WAY * np.abs(start.m - self.state.m)[:n])
            start.covariance[:n, :n] *= std[:, None] * std
            self._begin(start)

    def follow(self, earlier: Optimizer) -> None:
        """Come after another run of the same search, and be given up where there is no hope of being better."""
        self._come_after(earlier.monitor, earlier.guide)

    def _come_after(self, monitor: RunMonitor, guide: Guide | None) -> None:
        self.monitor.come_after(monitor)
        if self.guide is not None and guide is not None:
            self.guide.follow(guide)

    def know(self, told: Sequence[tuple[Params, Outcome]]) -> None:
        """What is to be known of an earlier search, or of that of a similar problem, the most telling first."""
        if self.guide is not None:
            self.told_before = told
            points = [self.encoding.encode_checked(params) for params, _ in told]
            self.guide.explorer.know(points, [outcome for _, outcome in told])

    def remember(self, params: Params, outcome: Outcome) -> None:
        """Let the model learn from a point that was not asked for."""
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
            "best": best and [self.space.row(best.params), best.value, best.violation, best.evaluation],
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
        self.best = best and Best(self.space.from_row(best[0]), *best[1:])
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

    def _record(self, asked: Sequence[Candidate], told: Told) -> None:
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

    def _has_converged(self) -> bool:
        """Whether the model says so: mix's own distribution may take much longer to shrink to a point."""
        return self.guide is not None and self.guide.has_converged(self.monitor.patience)

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
