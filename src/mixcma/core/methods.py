"""The four methods of the paper and mixcma's own, each a composition of the steps beside this file.

A method is a frozen value: its parameters are the method's open choices. It draws a generation's
candidates (`sample`) and turns their weights into the next state (`update`), both pure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal, NamedTuple, get_args

from mixcma.core import update
from mixcma.core.box import box_penalty, distance_outside
from mixcma.core.coordinates import Coordinates, cell_centre, cell_index
from mixcma.core.freezing import centred, frozen_deviation, held, identity_outside, leaving, mutated, transformed
from mixcma.core.integer_mutation import (
    Recall,
    RecallOn,
    SignPer,
    masked_step_size,
    mutation,
)
from mixcma.core.margin import corrected
from mixcma.core.namespace import Array, idle, namespace, squared_norm
from mixcma.core.ranking import lead, penalised_ranks, weights_by_rank
from mixcma.core.sampling import Noise, Sample, expressed, gaussian
from mixcma.core.state import State, deviations
from mixcma.core.strategy import Paces, Strategy, paces


class Setting(NamedTuple):
    """What stays fixed during a run."""

    strategy: Strategy
    coordinates: Coordinates


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
    weighs: ClassVar[Literal["all", "better half"]] = "all"
    keep_inside: bool = field(default=True, kw_only=True)

    def sample(self, setting: Setting, state: State, noise: Noise) -> Sample:
        """x = m + sigma y."""
        y, step, norm_sq = gaussian(state, noise.normal)
        return Sample(y, step, state.m[..., None, :] + step, norm_sq)

    def express(self, setting: Setting, state: State, v: Array, unmutated: Array | None = None) -> Sample:
        """Latent points (..., L, N) from elsewhere, as if this state had drawn them: v = m + sigma y.

        `unmutated` are the same points before integers were mutated, where a method does that.
        """
        return expressed(setting.strategy, state, v, v - state.m[..., None, :])

    def all_frozen(self, state: State) -> bool:
        """Whether nothing of a single run varies but by mutation."""
        return False

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
            C=update.covariance(s, state.C, w, sample.y, p_c, h_sigma, sample.norm_sq),
            A=state.A,
            p_sigma=p_sigma,
            p_c=p_c,
            root=state.root,
            inverse_root=state.inverse_root,
            eigenvalues=state.eigenvalues,
            recalled=state.recalled,
            live=state.live,
            long=state.long,
            idle=state.idle,
            best=state.best,
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
        y, step, norm_sq = gaussian(state, noise.normal)
        return Sample(y, step, state.m[..., None, :] + state.A[..., None, :] * step, norm_sq)

    def express(self, setting: Setting, state: State, v: Array, unmutated: Array | None = None) -> Sample:
        """v = m + sigma A y."""
        return expressed(setting.strategy, state, v, (v - state.m[..., None, :]) / state.A[..., None, :])

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
        y, step, norm_sq = gaussian(state, noise.normal)
        injected = mutation(
            *setting,
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
        if self.negative_norm == "mutated":
            whitened = (step / state.sigma[..., None]) @ state.inverse_root
            norm_sq = squared_norm(whitened)[..., 0]
        return Sample(y, step, v, norm_sq, self._penalty(setting, v))

    def express(self, setting: Setting, state: State, v: Array, unmutated: Array | None = None) -> Sample:
        """As in `sample`: y is that of the unmutated point, v moves the mean."""
        whole = super().express(setting, state, v)._replace(penalty=self._penalty(setting, v))
        if unmutated is None:
            return whole
        drawn = super().express(setting, state, unmutated)
        norm_sq = whole.norm_sq if self.negative_norm == "mutated" else drawn.norm_sq
        return whole._replace(y=drawn.y, step=v - state.m[..., None, :], norm_sq=norm_sq)

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
            sigma=masked_step_size(*setting, state, after.p_sigma),
            recalled=xp.take_along_axis(sample.v, best, axis=-2)[..., 0, :],
        )


# mix: the search moves when its path has been long for so many generations.
LONG_ENOUGH = 5
# mix: a group of fewer live coordinates has its own step size only in part.
WHOLE_GROUP = 10
# mix: integers freeze at this many times the margin.
FREEZES_AT = 2.0


@dataclass(frozen=True)
class Mix(Cma):
    """mixcma's own method, docs/mix.md: integers that have settled leave the Gaussian and are mutated instead."""

    needs_uniforms: ClassVar[bool] = True
    follows_the_leader: ClassVar[bool] = True
    weighs: ClassVar[Literal["all", "better half"]] = "better half"

    def sample(self, setting: Setting, state: State, noise: Noise) -> Sample:
        live, sigma = state.live[..., None, :], state.sigma[..., None]
        y = ((live * noise.normal) @ state.root) * live
        step = sigma * y
        v = state.m[..., None, :] + state.A[..., None, :] * step
        if not idle(state.live == 0.0):
            v = mutated(
                setting.coordinates, self._alpha(setting), state.m, state.live, state.idle, v,
                noise.normal, noise.sign, noise.geometric,
            )  # fmt: skip
        return Sample(y, step, v, squared_norm(noise.normal)[..., 0])

    def express(self, setting: Setting, state: State, v: Array, unmutated: Array | None = None) -> Sample:
        """v = m + sigma A y; frozen coordinates are no part of y."""
        step = state.live[..., None, :] * (v - state.m[..., None, :]) / state.A[..., None, :]
        return expressed(setting.strategy, state, v, step)

    def update(self, setting: Setting, state: State, sample: Sample, w_plus: Array) -> State:
        xp, coordinates, alpha, leader = namespace(state.m), setting.coordinates, self._alpha(setting), sample.leader
        assert leader is not None
        live, frozen = state.live > 0.0, state.live == 0.0
        cells, cell = cell_index(coordinates, sample.v), cell_index(coordinates, state.m)[..., None, :]
        left = coordinates.margin & (cells != cell)  # (..., L, N)
        # 1. adoption, 2. success
        adopted = xp.any(left & frozen[..., None, :] & leader[..., None], axis=-2)
        something_lives = xp.any(live, axis=-1, keepdims=True)  # else all are mutated, and nothing is there to beat
        counting = left & (w_plus > 0.0)[..., None] & (~adopted & something_lives)[..., None, :]
        succeeded = xp.any(counting, axis=-2)
        waited = xp.where(xp.any(succeeded | adopted, axis=-1, keepdims=True), 0.0, state.idle + 1.0)
        m, revivable = state.m, succeeded & frozen
        if not idle(adopted | revivable):
            m = self._frozen_mean(setting, state, sample.v, w_plus, leader, adopted, revivable)
        # 3. centring
        y, taking_part = sample.y, (coordinates.margin & live)[..., None, :] & (w_plus > 0.0)[..., None]
        if not idle(counting & taking_part):
            moved = centred(sample.v, cell_centre(coordinates, cells), counting & taking_part, taking_part)
            y = y + moved / (state.sigma * state.A)[..., None, :]
        state = self._gaussian_update(setting, state, y, w_plus)._replace(idle=waited)
        # 9. margin, 10. freezing
        m = xp.where(live, state.m, m)
        return self._freeze(coordinates, alpha, state, m, live, revivable)

    def all_frozen(self, state: State) -> bool:
        return not state.live.any()

    def _frozen_mean(
        self, setting: Setting, state: State, v: Array, w_plus: Array, leader: Array, adopted: Array, succeeded: Array
    ) -> Array:
        """The mean, with the frozen coordinates where the leader or the successful mutations take them."""
        xp, reach = namespace(v), setting.coordinates.granularity
        away = v - state.m[..., None, :]
        pulled = update.combine(w_plus, xp.minimum(xp.maximum(away, -reach), reach))
        led = update.combine(leader * 1.0, away)
        return state.m + xp.where(adopted, led, xp.where(succeeded, pulled, 0.0))

    def _gaussian_update(self, setting: Setting, state: State, y: Array, w_plus: Array) -> State:
        """Steps 4 to 8: the live coordinates."""
        s, xp, live = setting.strategy, namespace(y), state.live
        n = xp.sum(live, axis=-1, keepdims=True)
        pace = self._pace(setting, n)
        z = (y @ state.inverse_root) * live[..., None, :]
        r = w_plus - 1.0 / s.popsize
        c = pace.c_sigma
        p_sigma = live * ((1 - c) * state.p_sigma + xp.sqrt(c * (2 - c) * s.mu_w) * update.combine(r, z))
        path = xp.sqrt(squared_norm(p_sigma))
        long = xp.where(path >= pace.chi, state.long + 1.0, 0.0)
        moves = long >= LONG_ENOUGH
        w, eta = r, xp.where(moves, 1.0, pace.eta_sigma)
        if not idle(moves):
            lengths = xp.sqrt(squared_norm(z))[..., 0]  # (..., L)
            far = w_plus * xp.exp(pace.distance * xp.minimum(lengths, 2 * pace.chi))
            far = far / xp.sum(far, axis=-1, keepdims=True) - 1.0 / s.popsize
            w = xp.where(moves, far, r)
        d = update.combine(w, z * z)
        mean_d = xp.sum(d, axis=-1, keepdims=True) / xp.maximum(n, 1.0)
        mean_y = update.combine(w, y)
        growth, relative = self._step_sizes(setting.coordinates, live, d, mean_d, eta)
        c = pace.c_c
        p_c = live * ((1 - c) * state.p_c + (path < 2 * pace.chi) * xp.sqrt(c * (2 - c) * s.mu_w) * mean_y)
        x = (z @ state.inverse_root) * live[..., None, :]
        C = (1 - pace.c_1)[..., None] * transformed(state.C, pace.eta_C, w, y, x, mean_d)
        C = C + (pace.c_1 * p_c)[..., :, None] * p_c[..., None, :]
        return state._replace(
            m=state.m + live * state.sigma * state.A * mean_y,
            sigma=state.sigma * xp.exp(growth),
            C=C if idle(live == 0.0) else identity_outside(live, C),
            A=state.A * xp.exp(relative),
            p_sigma=p_sigma,
            p_c=p_c,
            long=long,
            generation=state.generation + 1,
        )

    def _step_sizes(
        self, coordinates: Coordinates, live: Array, d: Array, mean_d: Array, eta: Array
    ) -> tuple[Array, Array]:
        """The change of log sigma (..., 1), and of log A (..., N): the integers have a step size of their own."""
        xp = namespace(d)
        integers, floats = live * coordinates.margin, live * ~coordinates.margin
        n_z, n_x = xp.sum(integers, axis=-1, keepdims=True), xp.sum(floats, axis=-1, keepdims=True)
        d_z = xp.sum(integers * d, axis=-1, keepdims=True) / xp.maximum(n_z, 1.0)
        d_x = xp.sum(floats * d, axis=-1, keepdims=True) / xp.maximum(n_x, 1.0)
        rate = eta / 2 * xp.minimum(1.0, xp.minimum(n_x, n_z) / WHOLE_GROUP)
        growth = eta / 2 * mean_d + rate * (d_x - mean_d)
        relative = rate * (d_z - d_x)
        return held(growth), integers * held(relative)

    def _freeze(
        self, coordinates: Coordinates, alpha: float, state: State, m: Array, live: Array, succeeded: Array
    ) -> State:
        """The margin, and who freezes or lives again."""
        xp = namespace(m)
        sd = xp.where(live, deviations(state) * state.A, frozen_deviation(coordinates, alpha))
        sd = xp.where(coordinates.margin, sd, 1.0)
        concerned = coordinates.margin & (live | succeeded)
        m_new, A_new = corrected(coordinates, alpha, m, sd, state.A)
        sd = sd * (A_new / state.A)
        m = xp.where(concerned, m_new, m)
        settled = leaving(coordinates, m, sd) <= FREEZES_AT * alpha * (1 + 1e-9)  # from a centre it is 2 alpha, rounded
        freezes, revives = coordinates.margin & live & settled, succeeded & ~settled
        changed = freezes | revives
        A = xp.where(coordinates.margin & live, A_new, state.A)
        if idle(changed):
            return state._replace(m=m, A=A)
        kept = xp.where(changed, 0.0, 1.0)
        return state._replace(
            m=m,
            A=xp.where(revives, sd / state.sigma, A),
            C=identity_outside(kept, state.C),
            p_sigma=kept * state.p_sigma,
            p_c=kept * state.p_c,
            live=xp.where(changed, revives * 1.0, state.live),
        )

    def _alpha(self, setting: Setting) -> float:
        """1 - 0.73^(1 / D)."""
        return float(1 - 0.73 ** (1 / max(1, int(setting.coordinates.margin.sum()))))

    def _pace(self, setting: Setting, n: Array) -> Paces:
        """The constants of the number of live coordinates: (..., 1) each."""
        xp, s = namespace(n), setting.strategy
        table = paces(s.dimension, s.popsize, s.mu_w)
        return Paces._make(xp.moveaxis(xp.asarray(table)[xp.astype(n, xp.int64)], -1, 0))


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
        leader, best = lead(values, violations, state.best)
        sample, state = sample._replace(leader=leader), state._replace(best=best)
    coordinates = setting.coordinates
    if method.keep_inside and coordinates.latent_low is not None:
        outside = distance_outside(coordinates, sample.v, deviations(state) * state.A)
        values, violations = penalised_ranks(values, violations, outside), None
    w = weights_by_rank(setting.strategy.cumulative[method.weighs], values, violations)
    return method.update(setting, state, sample, w)


METHODS: dict[str, Cma] = {
    "cma": Cma(),
    "im": IntegerMutation(),
    "im-box": IntegerMutation(box=True),
    "margin": Margin(),
    "mix": Mix(),
}
