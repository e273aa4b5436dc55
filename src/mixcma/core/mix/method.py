"""Mix: mixcma's own method, composed of the steps of docs/mix.md."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from mixcma.core.categories import initial_categories
from mixcma.core.coordinates import LARGEST_FLOAT, Coordinates, cell_centre, cell_index
from mixcma.core.gaussian import Start, deviations, initial_gaussian, start_at
from mixcma.core.method import Method
from mixcma.core.mix.best import compare_with_best, nothing_yet
from mixcma.core.mix.categories import update_categories
from mixcma.core.mix.gaussian import scaled_and_decomposed, update_gaussian
from mixcma.core.mix.integers import integer_step
from mixcma.core.mix.margin import apply_margin_and_freeze
from mixcma.core.mix.presence import presence_of, without_what_is_absent
from mixcma.core.mix.sampling import delayed, draw
from mixcma.core.mix.state import MixSetting, MixState
from mixcma.core.namespace import Array, known_empty, namespace
from mixcma.core.ranking import ranks_of, weights_of
from mixcma.core.sampling import Noise, Sample, expressed, no_longer_than_usual
from mixcma.core.setting import strategy_of

# Candidates lose ranks from this many standard deviations outside the bounds on, where there are floats.
SLACK = 2.0
# A search that goes back to its best point begins there with this part of the initial standard deviation.
RETURNS_WITH = 0.03


@dataclass(frozen=True)
class Mix(Method):
    """mixcma's own method, docs/mix.md: integers and categories that have settled are mutated instead of drawn.

    Parameters
    ----------
    model
        Whether a model of the objective says which candidates are worth evaluating, and proposes points of its own
        (docs/model.md).
    """

    takes_categories: ClassVar[bool] = True
    takes_uniforms: ClassVar[bool] = True
    model: bool = field(default=True, kw_only=True)

    @property
    def guided(self) -> bool:
        return self.model

    @property
    def unguided(self) -> Mix:
        return replace(self, model=False)

    def setting(self, coordinates: Coordinates, popsize: int | None) -> MixSetting:
        return MixSetting(strategy_of(coordinates, popsize), coordinates)

    def initial_state(self, setting: MixSetting, start: Start) -> MixState:
        """All numbers are live, all categories open."""
        xp, zero = namespace(start.m), 0.0 * start.m[..., 0]
        ones = xp.ones_like(start.m)
        return MixState(
            **initial_gaussian(start),
            A=ones,
            live=setting.numbers * ones,
            p=ones,
            g_idle=zero,
            level=zero,
            best=nothing_yet(start.m),
            categories=initial_categories(start.theta),
            is_open=xp.ones_like(start.theta[..., 0]),
        )

    def sample(self, setting: MixSetting, state: MixState, noise: Noise) -> Sample:
        """Sampling, steps 1 to 3."""
        drawn = draw(setting, state, noise)
        return without_what_is_absent(setting, state, drawn) if setting.coordinates.conditions else drawn

    def tell(
        self, setting: MixSetting, state: MixState, sample: Sample, values: Array, violations: Array | None = None
    ) -> MixState:
        """Update, steps 1 to 12."""
        comparison = compare_with_best(values, violations, sample.v, state.best)
        slack = allowance(setting, violations)
        values, violations = self.ranked_inside(setting, state, sample.v, values, violations, slack)
        ranks = ranks_of(values, violations)
        w_plus = weights_of(setting.strategy.positive_weights, ranks)
        w_minus = weights_of(setting.strategy.negative_weights, ranks)
        partition = setting.partition(state)
        presence = presence_of(setting, sample) if setting.coordinates.conditions else None
        step = integer_step(setting, partition, state, sample, comparison, w_plus, presence)
        after = update_gaussian(setting, partition, state, sample, step, comparison, w_plus, w_minus, presence)
        after = apply_margin_and_freeze(setting, partition, after, step.succeeded)
        return settled_at_best(setting, update_categories(setting, after, sample, step, w_plus, presence))

    def express(self, setting: MixSetting, state: MixState, latents: Array, redrawn: Array | None = None) -> Sample:
        """v = m + sigma A y; frozen coordinates are no part of y. What an older state of this run drew is `delayed`."""
        v = latents[..., 0, :]
        step = state.live[..., None, :] * (v - state.m[..., None, :]) / state.A[..., None, :]
        if redrawn is None:
            sample = expressed(setting.coordinates, state, v, step, no_longer_than_usual(setting.strategy))
        else:
            sample = delayed(setting, state, v, step, redrawn)
        return without_what_is_absent(setting, state, sample) if setting.coordinates.conditions else sample

    def spread(self, state: MixState) -> Array:
        return deviations(state) * state.A * state.live

    def smallest_variance(self, setting: MixSetting, state: MixState) -> Array:
        """Of the floats: integers need not be narrower than their cells."""
        A = state.A[..., setting.precise_places].min(axis=-1) if setting.has_floats else LARGEST_FLOAT**0.25
        return state.sigma[..., 0] ** 2 * state.eigenvalues[..., 0] * A**2

    def spread_outside(self, state: MixState) -> Array:
        return deviations(state) * state.A

    def probabilities(self, state: MixState) -> Array:
        return state.categories.theta

    def decomposed(self, state: MixState) -> MixState:
        return scaled_and_decomposed(state)

    def varying(self, setting: MixSetting, state: MixState) -> int:
        return int(setting.partition(state).n_active)

    def back_at_best(self, setting: MixSetting, state: MixState) -> MixState:
        """For the floats alone: integers and categories are frozen at those of the best point."""
        xp, coordinates = namespace(state.m), setting.coordinates
        m = centred_best(coordinates, state)
        start = self.initial_state(setting, start_at(m, coordinates.choices))
        live = xp.where(coordinates.margin, 0.0, start.live)
        return start._replace(
            sigma=RETURNS_WITH * start.sigma,
            root=live[..., None] * start.root,
            inverse_root=live[..., None] * start.inverse_root,
            live=live,
            best=state.best,
            categories=start.categories._replace(theta=state.categories.theta),
            is_open=0.0 * state.is_open,
            generation=state.generation,
        )


def allowance(setting: MixSetting, violations: Array | None) -> Array | float:
    """The standard deviations outside the bounds that cost nothing, (...): none where a constraint is violated."""
    if violations is None or not setting.has_floats:
        return SLACK if setting.has_floats else 0.0
    xp = namespace(violations)
    violated = ((violations > 0.0) & (violations < xp.inf)).any(axis=-1)  # a failure is no violation
    return xp.where(violated, 0.0, SLACK)


def settled_at_best(setting: MixSetting, state: MixState) -> MixState:
    """Step 12: once nothing is live or open, the mean is the best point so far."""
    xp, nothing_varies = namespace(state.m), setting.partition(state).n_active == 0
    if known_empty(nothing_varies):
        return state
    return state._replace(m=xp.where(nothing_varies[..., None], centred_best(setting.coordinates, state), state.m))


def centred_best(coordinates: Coordinates, state: MixState) -> Array:
    """The best point so far, with integers at the centres of their cells."""
    point = state.best.point
    return namespace(point).where(coordinates.margin, cell_centre(coordinates, cell_index(coordinates, point)), point)
