"""mix where variables do not exist everywhere (docs/mix.md, "Conditions"): candidates are silent on what they lack."""

from __future__ import annotations

from typing import NamedTuple

from mixcma.core.conditions import existing
from mixcma.core.mix.constants import WHOLE_GROUP, MixConstants
from mixcma.core.mix.state import MixSetting, MixState, Partition
from mixcma.core.namespace import Array, as_column, clip, exp, namespace
from mixcma.core.sampling import Sample


class Presence(NamedTuple):
    """Which variables the candidates of a generation have."""

    exists: Array  # e_ij: (..., L, N) 1 or 0
    share: Array  # (..., N) the share of the candidates that have it


def presence_of(setting: MixSetting, sample: Sample) -> Presence:
    """In a space with conditions."""
    exists = existing(setting.coordinates, sample.cells) * 1.0
    return Presence(exists, exists.mean(axis=-2))


def without_what_is_absent(setting: MixSetting, state: MixState, sample: Sample) -> Sample:
    """A candidate is at the mean in the variables that it lacks: y = 0, v = m."""
    xp, exists = namespace(sample.v), existing(setting.coordinates, sample.cells)
    y = xp.where(exists, sample.y, 0.0)
    return sample._replace(
        y=y,
        z=y @ state.inverse_root,
        step=xp.where(exists, sample.step, 0.0),
        v=xp.where(exists, sample.v, state.m[..., None, :]),
        cells=xp.where(exists, sample.cells, setting.cells_of(state.m)[..., : sample.v.shape[-2], :]),
    )


def centred(w_plus: Array, presence: Presence) -> Array:
    """r (..., L, N): the weights minus their mean over the candidates that have the variable."""
    xp, (e, _) = namespace(w_plus), presence
    w = e * w_plus[..., None]
    mean = w.sum(axis=-2, keepdims=True) / xp.maximum(e.sum(axis=-2, keepdims=True), 1.0)
    return w - e * mean


def constants_of(setting: MixSetting, partition: Partition, state: MixState, presence: Presence) -> MixConstants:
    """Those for the live variables that candidates have: n, n_x and n_z of the candidate with most of them."""
    xp, live = namespace(state.live), state.live[..., None, :] * presence.exists
    n = live.sum(axis=-1).max(axis=-1)
    integers = live * partition.live_integers[..., None, :]
    n_z, n_x = integers.sum(axis=-1).max(axis=-1), (live - integers).sum(axis=-1).max(axis=-1)
    c = setting.constants(n)
    share = clip(xp.minimum(n_x, n_z) / WHOLE_GROUP, 0.0, 1.0)
    return c._replace(n_x=xp.maximum(n_x, 1.0), n_z=xp.maximum(n_z, 1.0), group_share=share)


def lengths_expected(state: MixState, presence: Presence) -> Array:
    """n_i (..., L): the live variables that a candidate has. So long is its step expected to be, squared."""
    return (state.live[..., None, :] * presence.exists).sum(axis=-1)


def unmoved(A: Array, live: Array, change: Array | float, presence: Presence) -> Array:
    """A so that sigma A_j changes by exp(share_j change), when sigma itself changes by exp(change)."""
    kept = as_column(exp(clip(change, -1.0, 1.0))) ** (presence.share - 1.0)
    return namespace(A).where(live > 0.0, A * kept, A)
