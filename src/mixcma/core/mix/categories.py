"""mix, step 11 (docs/mix.md): open categories learn the probabilities of their choices; sure ones freeze."""

from __future__ import annotations

from mixcma.core.categories import CategoryState, asng_step, frequencies, with_margin
from mixcma.core.mix.integers import IntegerStep
from mixcma.core.mix.margin import FREEZES_AT
from mixcma.core.mix.presence import Presence, centred
from mixcma.core.mix.state import MixSetting, MixState
from mixcma.core.namespace import Array, known_empty, namespace
from mixcma.core.sampling import Sample


def update_categories(
    setting: MixSetting, state: MixState, sample: Sample, step: IntegerStep, w_plus: Array, presence: Presence | None
) -> MixState:
    """Step 11. A frozen category that succeeded gets the frequencies of this generation; it opens unless it is sure."""
    if not len(setting.coordinates.choices):
        return state
    N, before, is_open = setting.strategy.dimension, state.categories, state.is_open > 0.0
    adopted, succeeded = step.adopted[..., N:], step.succeeded[..., N:]
    again = succeeded & ~is_open
    if known_empty(is_open | again | adopted):  # for speed
        return state
    xp, m, chosen = namespace(state.m), state.m[..., N:], sample.v[..., N:]
    places = xp.arange(before.theta.shape[-1])
    r = w_plus - 1.0 / w_plus.shape[-1] if presence is None else centred(w_plus, presence)
    f = known_frequencies(before.theta, chosen, w_plus, presence)
    toward = wanted(before.theta, f, sample, chosen, r)
    learnt = asng_step(setting.categories, before, xp.where(is_open[..., None], toward, before.theta))
    told = xp.where(adopted[..., None], (m[..., None] == places) * 1.0, f)
    theta = xp.where(is_open[..., None], learnt.theta, before.theta)
    theta = xp.where((again | adopted)[..., None], with_margin(setting.categories, told), theta)
    some_open = is_open.any(axis=-1, keepdims=True)
    unsure = 1.0 - theta.max(axis=-1) > FREEZES_AT * setting.alpha
    opens, mode = (is_open | again) & unsure, xp.argmax(theta, axis=-1) * 1.0
    return state._replace(
        m=xp.concat([state.m[..., :N], xp.where(is_open | again, mode, m)], axis=-1),
        categories=CategoryState(
            theta,
            xp.where(some_open[..., None], learnt.s, before.s),
            xp.where(some_open, learnt.rate, before.rate),
        ),
        is_open=state.is_open if known_empty(opens != is_open) else opens * 1.0,
    )


def known_frequencies(theta: Array, chosen: Array, w_plus: Array, presence: Presence | None) -> Array:
    """f: the weighted frequencies of the choices. Candidates without the category count as they would be drawn."""
    if presence is None:
        return frequencies(theta.shape[-1], chosen, w_plus)
    w = w_plus[..., None] * presence.exists[..., -chosen.shape[-1] :]
    return frequencies(theta.shape[-1], chosen, w) + (1.0 - w.sum(axis=-2))[..., None] * theta


def wanted(theta: Array, f: Array, sample: Sample, chosen: Array, r: Array) -> Array:
    """Where open categories are drawn to. Older candidates were not drawn with theta, so if there are some, the
    gradient is taken from the mean frequencies of the candidates."""
    if known_empty(sample.older):
        return f
    xp, some_older = namespace(theta), sample.older.any(axis=-1)[..., None, None]
    toward = theta + frequencies(theta.shape[-1], chosen, r if r.ndim < chosen.ndim else r[..., -chosen.shape[-1] :])
    return xp.where(some_older, toward, f)
