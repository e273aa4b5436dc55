"""The four methods of the paper, CatCMA with Margin and mixcma's own, each a composition of the steps beside this file.

A method is a frozen value: its parameters are the method's open choices. It draws a generation's
candidates (`sample`) and turns their weights into the next state (`update`), both pure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal, get_args

from mixcma.core import update
from mixcma.core.box import box_penalty, distance_outside, overshoot
from mixcma.core.categories import Categories, Learning, drawn, frequencies, learning
from mixcma.core.catmargin import numbers_learnt
from mixcma.core.coordinates import cell_centre, cell_index
from mixcma.core.freezing import choices_learnt, integers_learnt, settled
from mixcma.core.integer_mutation import (
    Recall,
    RecallOn,
    SignPer,
    masked_step_size,
    mutation,
)
from mixcma.core.margin import corrected
from mixcma.core.mutating import mutations
from mixcma.core.namespace import Array, idle, namespace, squared_norm
from mixcma.core.natural import learnt
from mixcma.core.ranking import lead, penalised_ranks, weights_by_rank
from mixcma.core.sampling import Noise, Sample, delayed, expressed, gaussian, no_longer_than_usual
from mixcma.core.setting import Setting
from mixcma.core.state import State, deviations

__all__ = ["METHODS", "CatMargin", "Cma", "IntegerMutation", "Margin", "Mix", "Setting", "tell"]


@dataclass(frozen=True)
class Cma:
    """Plain CMA-ES (Section 2.1): what is sampled is rounded to be evaluated, nothing more.

    Parameters
    ----------
    keep_inside
        Rank candidates lower the farther they lie outside the bounds of floats and of variables with
        three or more values. The paper lets them wander; False does so too.
    """

    needs_uniforms: ClassVar[bool] = False
    mutates: ClassVar[bool] = False  # learns from two points: before and after integers were mutated
    follows_the_leader: ClassVar[bool] = False
    weighs: ClassVar[Literal["all", "better half", "both"]] = "all"
    takes_categories: ClassVar[bool] = False
    pairs: ClassVar[Literal["numbers", "categories"]] = "numbers"  # as what variables of two values are searched
    slack: ClassVar[float] = 0.0  # standard deviations outside the bounds that cost no rank, where there are floats
    keep_inside: bool = field(default=True, kw_only=True)

    def sample(self, setting: Setting, state: State, noise: Noise) -> Sample:
        """x = m + sigma y."""
        y, step = gaussian(state, noise.normal)
        return Sample(y, noise.normal, step, state.m[..., None, :] + step)

    def express(
        self, setting: Setting, state: State, v: Array, unmutated: Array | None = None, redrawn: Array | None = None
    ) -> Sample:
        """Latent points (..., L, N) from elsewhere, as if this state had drawn them: v = m + sigma y.

        `unmutated` are the same points before integers were mutated, where a method does that; `redrawn` (..., L, N) is
        the z of what this state draws with the noise behind the points, if noise is behind them: mix uses it.
        """
        return expressed(state, v, v - state.m[..., None, :], no_longer_than_usual(setting.strategy))

    def varying(self, setting: Setting, state: State) -> int:
        """How many coordinates of a single run vary, other than by mutation."""
        return int(state.m.shape[-1])

    def update(self, setting: Setting, state: State, sample: Sample, w: Array) -> State:
        """The mean, the paths, the covariance and the step size of the next generation."""
        s, xp = setting.strategy, namespace(state.m)
        positive = xp.maximum(w, 0.0)
        mean_y = update.combine(positive, sample.y)
        p_sigma = update.step_size_path(s, state.p_sigma, state.inverse_root, mean_y)
        p_sigma_norm = xp.sqrt(squared_norm(p_sigma))
        h_sigma = update.heaviside(s, p_sigma_norm, state.generation)
        p_c = update.covariance_path(s, state.p_c, h_sigma, mean_y)
        return State(
            m=state.m + s.c_m * update.combine(positive, sample.step),
            sigma=update.step_size(s, state.sigma, p_sigma_norm),
            C=update.covariance(s, state.C, w, sample.y, sample.z, p_c, h_sigma),
            A=state.A,
            p_sigma=p_sigma,
            p_c=p_c,
            root=state.root,
            inverse_root=state.inverse_root,
            eigenvalues=state.eigenvalues,
            recalled=state.recalled,
            live=state.live,
            leaving=state.leaving,
            long=state.long,
            idle=state.idle,
            level=state.level,
            best=state.best,
            theta=state.theta,
            signal=state.signal,
            rate=state.rate,
            open=state.open,
            generation=state.generation + 1,
        )


@dataclass(frozen=True)
class Margin(Cma):
    """CMA-ES with Margin (Section 4): every neighbouring value keeps at least a small probability.

    Parameters
    ----------
    alpha
        The margin; default 1 / (N lambda).
    """

    alpha: Array | float | None = None

    def sample(self, setting: Setting, state: State, noise: Noise) -> Sample:
        """v = m + sigma A y is evaluated; x = m + sigma y is learnt from."""
        y, step = gaussian(state, noise.normal)
        return Sample(y, noise.normal, step, state.m[..., None, :] + state.A[..., None, :] * step)

    def express(
        self, setting: Setting, state: State, v: Array, unmutated: Array | None = None, redrawn: Array | None = None
    ) -> Sample:
        """v = m + sigma A y."""
        step = (v - state.m[..., None, :]) / state.A[..., None, :]
        return expressed(state, v, step, no_longer_than_usual(setting.strategy))

    def update(self, setting: Setting, state: State, sample: Sample, w: Array) -> State:
        """The update of CMA-ES, then the corrections with the new m, sigma, C and the old A."""
        s = setting.strategy
        alpha = 1 / (s.dimension * s.popsize) if self.alpha is None else self.alpha
        state = super().update(setting, state, sample, w)
        sd = deviations(state) * state.A
        m, A = corrected(setting.coordinates, alpha, state.m, sd, state.A)
        return state._replace(m=m, A=A)


@dataclass(frozen=True)
class IntegerMutation(Cma):
    """CMA-ES-IM (Section 2.2), with ``box=True`` under the box constraint of Section 3.

    The paper's text leaves choices open; each is a parameter here, and its default is what comes
    closest to the paper's Table 2.

    Parameters
    ----------
    box
        Add the squared distance from the box, in granularities, times `penalty_weight` to the value.
    recall
        Step 6: how the last generation's best is counted in cells; "floor" as printed, "round" to the
        nearest value, "auto" the former for two-valued variables and the latter for all others.
    recall_on
        Step 6: the coordinates it moves, those of J ("stuck") or "all" discrete ones, as printed.
    geometric_start
        Step 4: the smallest number the geometric distribution gives. With 1 all of J moves.
    geometric_base
        Step 4: b of p = b^(1/|J|); printed 0.7. The smaller, the longer the jumps.
    sign_per
        Step 5: a sign for each "coordinate", or one for the whole "vector".
    negative_norm
        Whether the "mutated" or the "unmutated" vector stands in the norm that scales negative weights.
    penalty_weight
        Default 1/N, as printed.
    """

    needs_uniforms: ClassVar[bool] = True
    mutates: ClassVar[bool] = True
    box: bool = False
    recall: Recall = "auto"
    recall_on: RecallOn = "stuck"
    geometric_start: int = 1
    geometric_base: float = 0.1
    sign_per: SignPer = "coordinate"
    negative_norm: Literal["mutated", "unmutated"] = "mutated"
    penalty_weight: float | None = None

    def __post_init__(self) -> None:
        for name, known in _CHOICES.items():
            if getattr(self, name) not in known:
                raise ValueError(
                    f"{name} of IntegerMutation: expected one of {known}, but got {getattr(self, name)!r}; leave it out"
                )
        if not 0 < self.geometric_base < 1:
            raise ValueError(
                "geometric_base of IntegerMutation: expected a number between 0 and 1, but got "
                f"{self.geometric_base!r}; the paper prints 0.7"
            )

    def sample(self, setting: Setting, state: State, noise: Noise) -> Sample:
        """x = m + sigma y + S r is evaluated and moves the mean; y drives the paths and the covariance."""
        y, step = gaussian(state, noise.normal)
        injected = mutation(
            setting.strategy,
            setting.coordinates,
            state,
            noise,
            geometric_start=self.geometric_start,
            geometric_base=self.geometric_base,
            sign_per=self.sign_per,
            recall=self.recall,
            recall_on=self.recall_on,
        )
        step = step + injected
        v = state.m[..., None, :] + step
        z = noise.normal
        if self.negative_norm == "mutated":
            z = (step / state.sigma[..., None]) @ state.inverse_root
        return Sample(y, z, step, v, penalty=self._penalty(setting, v))

    def express(
        self, setting: Setting, state: State, v: Array, unmutated: Array | None = None, redrawn: Array | None = None
    ) -> Sample:
        """As in `sample`: y is that of the unmutated point, v moves the mean."""
        whole = super().express(setting, state, v)._replace(penalty=self._penalty(setting, v))
        if unmutated is None:
            return whole
        drawn = super().express(setting, state, unmutated)
        z = whole.z if self.negative_norm == "mutated" else drawn.z
        return whole._replace(y=drawn.y, z=z, step=v - state.m[..., None, :])

    def _penalty(self, setting: Setting, v: Array) -> Array | None:
        if not self.box:
            return None
        weight = self.penalty_weight
        return box_penalty(setting.coordinates, v, 1 / setting.strategy.dimension if weight is None else weight)

    def update(self, setting: Setting, state: State, sample: Sample, w: Array) -> State:
        xp = namespace(state.m)
        after = super().update(setting, state, sample, w)
        best = xp.argmax(w, axis=-1)[..., None, None]
        return after._replace(
            sigma=masked_step_size(setting.strategy, setting.coordinates, state, after.p_sigma),
            recalled=xp.take_along_axis(sample.v, best, axis=-2)[..., 0, :],
        )


@dataclass(frozen=True)
class CatMargin(Cma):
    """CatCMA with Margin (docs/catmargin.md): a Gaussian for numbers, a distribution of its own for each category."""

    needs_uniforms: ClassVar[bool] = True
    weighs: ClassVar[Literal["all", "better half", "both"]] = "both"
    takes_categories: ClassVar[bool] = True
    pairs: ClassVar[Literal["numbers", "categories"]] = "categories"

    def sample(self, setting: Setting, state: State, noise: Noise) -> Sample:
        """v = m + sigma A y, and a choice of each category."""
        y, step = gaussian(state, noise.normal)
        v = state.m[..., None, :] + state.A[..., None, :] * step
        categories = setting.categories
        if categories is not None:
            n = setting.strategy.dimension
            v = namespace(v).concat([v[..., :n], drawn(categories, state.theta, noise.sign[..., n:])], axis=-1)
        return Sample(y, noise.normal, step, v)

    def express(
        self, setting: Setting, state: State, v: Array, unmutated: Array | None = None, redrawn: Array | None = None
    ) -> Sample:
        """v = m + sigma A y for the numbers."""
        step = state.live[..., None, :] * (v - state.m[..., None, :]) / state.A[..., None, :]
        return expressed(state, v, step, no_longer_than_usual(setting.strategy))

    def update(self, setting: Setting, state: State, sample: Sample, w: Array) -> State:
        """Numbers and categories have nothing but the ranks in common."""
        w_plus = sample.better
        if setting.strategy.dimension:
            state = numbers_learnt(setting, state, sample, w, w_plus)
        else:
            state = state._replace(generation=state.generation + 1)
        categories = setting.categories
        if categories is None:
            return state
        chosen = sample.v[..., setting.strategy.dimension :]
        wanted = frequencies(state.theta.shape[-1], chosen, w_plus)
        learnt = learning(categories, Learning(state.theta, state.signal, state.rate), wanted)
        return state._replace(**learnt._asdict())


@dataclass(frozen=True)
class Mix(Cma):
    """mixcma's own method, docs/mix.md: integers and categories that have settled are mutated instead of drawn."""

    needs_uniforms: ClassVar[bool] = True
    follows_the_leader: ClassVar[bool] = True
    weighs: ClassVar[Literal["all", "better half", "both"]] = "better half"
    takes_categories: ClassVar[bool] = True
    pairs: ClassVar[Literal["numbers", "categories"]] = "categories"
    slack: ClassVar[float] = 2.0

    def sample(self, setting: Setting, state: State, noise: Noise) -> Sample:
        """v = m + sigma A y; y is 0 for frozen coordinates, some of which are mutated.

        In a space without floats the first candidate is the mean itself.
        """
        if not setting.has_floats:
            noise = noise._replace(normal=setting.all_but_first * noise.normal)
        xp, coordinates, given = namespace(state.m), setting.coordinates, setting.given(state)
        z = given.live_rows * noise.normal
        y = z @ state.root
        step = (state.sigma * state.A)[..., None, :] * y
        v = state.m[..., None, :] + step
        if setting.categories is not None:
            v = self._with_choices(setting, setting.categories, state, v, noise)
        cell = setting.cell(state.m)
        cells, left = (cell, None) if given.settled else self._cells(setting, cell, v)
        changes = None if given.none_frozen else mutations(coordinates, given, state, cell, noise)
        if changes is not None:
            mutated, there = changes
            v = xp.where(mutated, cell_centre(coordinates, there), v)
            cells, left = xp.where(mutated, there, cells), mutated if left is None else mutated | left
        return Sample(y, z, step, v, cells, left)

    def express(
        self, setting: Setting, state: State, v: Array, unmutated: Array | None = None, redrawn: Array | None = None
    ) -> Sample:
        """v = m + sigma A y; frozen coordinates are no part of y. What an older state of this run drew is `delayed`."""
        step = state.live[..., None, :] * (v - state.m[..., None, :]) / state.A[..., None, :]
        if redrawn is None:
            return expressed(state, v, step, no_longer_than_usual(setting.strategy))
        return delayed(state, v, step, redrawn)

    def _with_choices(self, setting: Setting, categories: Categories, state: State, v: Array, noise: Noise) -> Array:
        """The points with a choice drawn for each open category; the others are at their mode."""
        xp, n = namespace(v), setting.strategy.dimension
        chosen = drawn(categories, state.theta, noise.sign[..., n:])
        if not setting.has_floats:
            chosen = xp.where(setting.all_but_first > 0.0, chosen, v[..., n:])
        return xp.concat([v[..., :n], xp.where(state.open[..., None, :] > 0.0, chosen, v[..., n:])], axis=-1)

    def _cells(self, setting: Setting, cell: Array, v: Array) -> tuple[Array, Array]:
        """Those of v, and where they are others than `cell`, that of m."""
        cells = cell_index(setting.coordinates, v)
        left = cells != cell
        return cells, left if setting.all_settle else setting.settles & left

    def update(self, setting: Setting, state: State, sample: Sample, w_plus: Array) -> State:
        """Adoption, success and centring of integers; the Gaussian; margin and freezing; categories."""
        given, lead = setting.given(state), sample.lead
        assert lead is not None  # `tell` has looked
        if sample.cells is None:  # candidates that came one by one
            cells, left = self._cells(setting, setting.cell(state.m), sample.v)
            sample = sample._replace(cells=cells, left=left)
        integers = integers_learnt(setting.coordinates, given, state, sample, lead, w_plus)
        after = settled(setting, given, learnt(setting, given, state, integers, lead, w_plus), integers.succeeded)
        return choices_learnt(setting, state, after, sample, w_plus, integers.succeeded)

    def varying(self, setting: Setting, state: State) -> int:
        return int(setting.given(state).varying)


_CHOICES: dict[str, tuple[object, ...]] = {
    "recall": get_args(Recall),
    "recall_on": get_args(RecallOn),
    "sign_per": get_args(SignPer),
    "geometric_start": (0, 1),
    "negative_norm": ("mutated", "unmutated"),
}


def tell(
    method: Cma,
    setting: Setting,
    state: State,
    sample: Sample,
    values: Array,
    violations: Array | None = None,
) -> State:
    """One generation: rank the candidates, update the state. `values`, `violations`: (..., L)."""
    if sample.penalty is not None:
        values = values + sample.penalty
    if method.follows_the_leader:
        found = lead(values, violations, sample.v, state.best, state.recalled)
        sample = Sample(*sample[:-1], found)  # faster than _replace
    bounds, v = setting.latent_bounds if method.keep_inside else None, sample.v
    if bounds is not None and not idle((v < bounds[0]) | (v > bounds[1])):
        slack = method.slack if setting.has_floats else 0.0
        outside = distance_outside(overshoot(setting.coordinates, v), deviations(state) * state.A, slack)
        values, violations = penalised_ranks(values, violations, outside), None
    weighing, weighs = setting.strategy.weighing, method.weighs
    if weighs == "both":
        sample = sample._replace(better=weights_by_rank(weighing["better half"], values, violations))
        weighs = "all"
    w = weights_by_rank(weighing[weighs], values, violations)
    return method.update(setting, state, sample, w)


METHODS: dict[str, Cma] = {
    "cma": Cma(),
    "im": IntegerMutation(),
    "im-box": IntegerMutation(box=True),
    "margin": Margin(),
    "catmargin": CatMargin(),
    "mix": Mix(),
}
