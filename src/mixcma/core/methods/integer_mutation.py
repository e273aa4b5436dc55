"""CMA-ES-IM (Section 2.2): integer mutations and the masked step size; the box constraint of Section 3."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, get_args

from mixcma.core.coordinates import Coordinates
from mixcma.core.gaussian import GaussianState, Start, deviations, initial_gaussian
from mixcma.core.method import State, best_first
from mixcma.core.methods.cma import Cma, cma_update
from mixcma.core.namespace import Array, namespace, squared_norm
from mixcma.core.ranking import weights_by_rank
from mixcma.core.sampling import Noise, Sample, complete, gaussian
from mixcma.core.setting import Setting
from mixcma.core.strategy import Strategy

Recall = Literal["auto", "floor", "round"]
RecallOn = Literal["stuck", "all"]
SignPer = Literal["coordinate", "vector"]


class IntegerMutationState(NamedTuple):
    """See the glossary of `mixcma.core`."""

    m: Array
    sigma: Array
    C: Array
    p_sigma: Array
    p_c: Array
    root: Array
    inverse_root: Array
    eigenvalues: Array
    recalled: Array  # (..., N) the best latent point of the last generation
    generation: Array | int


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

    takes_uniforms: ClassVar[bool] = True
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

    def initial_state(self, setting: Setting, start: Start) -> State:
        return IntegerMutationState(**initial_gaussian(start), recalled=start.m)

    def sample(self, setting: Setting, state: State, noise: Noise) -> Sample:
        """x = m + sigma y + S r is evaluated and moves the mean; y drives the paths and the covariance."""
        y, step = gaussian(state, noise.normal)
        step = step + mutation(
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
        z = noise.normal
        if self.negative_norm == "mutated":
            z = (step / state.sigma[..., None]) @ state.inverse_root
        return complete(setting.coordinates, y, z, step, state.m[..., None, :] + step)

    def latents(self, state: State, sample: Sample) -> Array:
        """The point before its integers were mutated is kept too: the paths learn from it."""
        unmutated = state.m[..., None, :] + state.sigma[..., None] * sample.y
        return namespace(unmutated).stack([sample.v, unmutated], axis=-2)

    def express(self, setting: Setting, state: State, latents: Array, redrawn: Array | None = None) -> Sample:
        """As in `sample`: y is that of the unmutated point, v moves the mean."""
        whole = super().express(setting, state, latents)
        if latents.shape[-2] == 1:
            return whole
        drawn = super().express(setting, state, latents[..., 1:, :])
        z = whole.z if self.negative_norm == "mutated" else drawn.z
        return whole._replace(y=drawn.y, z=z, step=whole.v - state.m[..., None, :])

    def penalty(self, setting: Setting, v: Array) -> Array | float:
        if not self.box:
            return 0.0
        weight = self.penalty_weight
        return box_penalty(setting.coordinates, v, 1 / setting.strategy.dimension if weight is None else weight)

    def tell(
        self, setting: Setting, state: State, sample: Sample, values: Array, violations: Array | None = None
    ) -> State:
        """The update of CMA-ES but for the step size; the best candidate is recalled in the next generation."""
        values = values + self.penalty(setting, sample.v)
        values, violations = self.ranked_inside(setting, state, sample.v, values, violations)
        w = weights_by_rank(setting.strategy.all_weights, values, violations)
        after = cma_update(setting.strategy, state, sample, w)
        after["sigma"] = masked_step_size(setting.strategy, setting.coordinates, state, after["p_sigma"])
        return state._replace(**after, recalled=best_first(w, sample.v))


_CHOICES: dict[str, tuple[object, ...]] = {
    "recall": get_args(Recall),
    "recall_on": get_args(RecallOn),
    "sign_per": get_args(SignPer),
    "geometric_start": (0, 1),
    "negative_norm": ("mutated", "unmutated"),
}


def mutation(
    strategy: Strategy,
    coordinates: Coordinates,
    state: IntegerMutationState,
    noise: Noise,
    *,
    geometric_start: int,
    geometric_base: float,
    sign_per: SignPer,
    recall: Recall,
    recall_on: RecallOn,
) -> Array:
    """S^int r_i for every candidate: (..., L, N). Steps 1 to 6."""
    xp = namespace(state.m)
    stuck = _stuck(coordinates, state)  # J
    count = xp.sum(stuck, axis=-1, keepdims=True)  # |J|
    mutated = _mutated_candidates(strategy, count)  # lambda_int
    row = xp.reshape(xp.arange(strategy.popsize), (-1, 1))  # i - 1
    sign = _sign(noise, sign_per)
    geometric = _geometric(count, noise.geometric, geometric_start, geometric_base)
    size = _designated(stuck, count, noise.order, row) + geometric
    r = xp.where(stuck[..., None, :] & (row < mutated[..., None]), sign * size, 0.0)
    last = (row == strategy.popsize - 1) & (mutated[..., None] > 0) & (state.generation > 0)
    recalled = _recalled(coordinates, state, recall)
    if recall_on == "stuck":
        recalled = xp.where(stuck, recalled, 0.0)
    r = xp.where(last, sign * recalled[..., None, :], r)
    return coordinates.granularity * r


def _stuck(coordinates: Coordinates, state: GaussianState) -> Array:
    """Step 1, J: discrete coordinates with 2 sigma C_jj^(1/2) < S."""
    sd = deviations(state)
    return coordinates.discrete & (2 * sd < coordinates.granularity)


def _mutated_candidates(strategy: Strategy, count: Array) -> Array:
    """Step 2, lambda_int: how many candidates are mutated. (..., 1)."""
    xp = namespace(count)
    lam, n = strategy.popsize, strategy.dimension
    some = xp.minimum(lam // 10 + count + 1, xp.full_like(count, lam // 2 - 1))
    return xp.where(count == 0, 0, xp.where(count < n, some, lam // 2))


def _designated(stuck: Array, count: Array, order: Array, row: Array) -> Array:
    """Step 3, R': 1 where j is the ((i-1) mod |J|)-th element of the randomly ordered J."""
    xp = namespace(stuck)
    before = order[..., None, :] < order[..., :, None]  # [j, k]: k comes before j
    position = xp.sum(before & stuck[..., None, :], axis=-1)
    turn = row % xp.maximum(count, xp.ones_like(count))[..., None]  # (..., L, 1)
    return (position[..., None, :] == turn) * 1.0


def _geometric(count: Array, uniform: Array, start: int, base: float) -> Array:
    """Step 4, R'': geometric with success probability p = base^(1/|J|), on {start, start + 1, ...}."""
    xp = namespace(uniform)
    p = base ** (1.0 / xp.maximum(count, xp.ones_like(count)))
    return start + xp.floor(xp.log(uniform) / xp.log1p(-p)[..., None])


def _sign(noise: Noise, per: SignPer) -> Array:
    """Step 5: +1 or -1 with equal probability, a coordinate or a vector."""
    xp = namespace(noise.normal)
    uniform = noise.sign if per == "coordinate" else noise.sign[..., :1]
    return xp.where(uniform < 0.5, 1.0, -1.0)


def _recalled(coordinates: Coordinates, state: IntegerMutationState, recall: Recall) -> Array:
    """Step 6 without its sign: from the mean's cell to that of the last generation's best. (..., N)."""
    xp = namespace(state.m)
    S = xp.where(coordinates.discrete, coordinates.granularity, 1.0)
    best, mean = (state.recalled - coordinates.anchor) / S, (state.m - coordinates.anchor) / S
    floor, rounded = xp.floor(best), xp.floor(best + 0.5)
    choices = {"floor": floor, "round": rounded, "auto": xp.where(coordinates.last > 1, rounded, floor)}
    return xp.where(coordinates.discrete, choices[recall] - xp.floor(mean), 0.0)


def masked_step_size(strategy: Strategy, coordinates: Coordinates, state: GaussianState, p_sigma: Array) -> Array:
    """The step size without the coordinates whose spread is far below their granularity.

    I_j = 0 where 5 sigma C_jj^(1/2) / c_sigma^(1/2) < S; sigma stays where no coordinate is left.
    """
    xp = namespace(p_sigma)
    spread = 5 * deviations(state) / strategy.c_sigma**0.5
    kept = ~(coordinates.discrete & (spread < coordinates.granularity))
    M = xp.sum(kept, axis=-1, keepdims=True) * 1.0
    M_safe = xp.maximum(M, xp.ones_like(M))
    chi_m = xp.sqrt(M_safe) * (1 - 1 / (4 * M_safe) + 1 / (21 * M_safe**2))
    norm = xp.sqrt(squared_norm(xp.where(kept, p_sigma, 0.0)))
    rate = strategy.c_sigma / strategy.d_sigma
    return state.sigma * xp.where(M > 0, xp.exp(rate * (norm / chi_m - 1)), 1.0)


def box_penalty(coordinates: Coordinates, v: Array, weight: float) -> Array:
    """Section 3: weight * ||x_feas - x||^2 over the discrete coordinates, in units of their granularity. (..., L).

    The paper's weight is 1/N, its granularity 1.
    """
    xp = namespace(v)
    feasible = xp.minimum(xp.maximum(v, coordinates.box_low), coordinates.box_high)
    S = xp.where(coordinates.discrete, coordinates.granularity, 1.0)
    return weight * squared_norm((v - feasible) / S)[..., 0]
