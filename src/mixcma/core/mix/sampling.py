"""mix, "Sampling" (docs/mix.md): the Gaussian of live coordinates, open categories, mutations of frozen ones."""

from __future__ import annotations

from mixcma.core.categories import draw_choices
from mixcma.core.conditions import existing
from mixcma.core.coordinates import Coordinates, cell_centre, cell_index
from mixcma.core.mix.constants import MutationConstants
from mixcma.core.mix.state import MixSetting, MixState, Partition
from mixcma.core.namespace import Array, as_column, clip, known_empty, namespace, ndtr, squared_norm
from mixcma.core.sampling import Noise, Sample, complete, expressed
from mixcma.core.update import combine

# While the search is level, at least this share of the candidates is mutated.
MUTATED_WHERE_LEVEL = 0.5
# |t - 1/2| counts as at least this: jumps are shorter than 2**40 cells, so that floats can tell them apart.
SMALLEST_OFFSET = 2.0**-80


def draw(setting: MixSetting, state: MixState, noise: Noise) -> Sample:
    """Steps 1 to 3. The uniforms s_ij and t_ij are noise.sign and noise.geometric, called so for CMA-ES-IM."""
    xp, coordinates, partition = namespace(state.m), setting.coordinates, setting.partition(state)
    varies = candidates_that_vary(setting, state)
    xi = noise.normal if setting.has_floats else noise.normal * varies
    z = state.live[..., None, :] * xi
    y = z @ state.root
    step = (state.sigma * state.A)[..., None, :] * y
    v = state.m[..., None, :] + step
    if len(coordinates.choices):
        v = with_choices(setting, state, v, noise.sign, varies)
    of_mean = setting.cells_of(state.m)
    # for speed, cells are not looked up where only mutations change them
    cells = of_mean if partition.nothing_discrete_varies else cell_index(coordinates, v)
    if not partition.nothing_frozen:
        k = mutation_counts(partition, state, xi)
        if not known_empty(k > 0.0):
            beyond = beyond_reach(coordinates, partition, cells)
            mutated, there = mutated_at(partition, k, noise.sign, beyond), jump(coordinates, of_mean, noise.geometric)
            v = xp.where(mutated, cell_centre(coordinates, there), v)
            # on a log scale, the centre of a narrow cell may be rounded into its neighbour
            cells = xp.where(mutated, there, cells) if coordinates.log_grid is None else cell_index(coordinates, v)
    return Sample(y, z, step, v, cells, xp.zeros(v.shape[:-1], dtype=bool))


def candidates_that_vary(setting: MixSetting, state: MixState) -> Array | float:
    """1, or (L, 1): 0 for the first candidate of a space without floats, which is the mean from the second
    generation on."""
    if setting.has_floats:
        return 1.0
    rows = namespace(state.m).arange(setting.strategy.popsize)[:, None]
    return 1.0 * ((rows > 0) | (state.generation == 0))


def with_choices(setting: MixSetting, state: MixState, v: Array, s: Array, varies: Array | float) -> Array:
    """Step 1 for categories: a choice is drawn for each open one; the others are at m_j."""
    xp, N = namespace(v), setting.strategy.dimension
    chosen = draw_choices(setting.categories, state.categories.theta, s[..., N:])
    drawn = state.is_open[..., None, :] * varies > 0.0
    return xp.concat([v[..., :N], xp.where(drawn, chosen, v[..., N:])], axis=-1)


def mutation_counts(partition: Partition, state: MixState, xi: Array) -> Array:
    """Step 2: k_i (..., L), how many mutations a candidate aims at, so that P(k_i >= k) = q / k^2.

    The Gaussian does not use the normals of frozen coordinates, so they decide it.
    """
    n_F = as_column(partition.mutation.n_F)
    q = as_column(mutation_rate(partition.mutation, partition.n_active, state.g_idle, state.level))
    u = ndtr(combine(partition.frozen_share, xi.mT))
    xp = namespace(u)
    return xp.minimum(xp.floor((q / u) ** 0.5), n_F)


def beyond_reach(coordinates: Coordinates, partition: Partition, cells: Array) -> Array:
    """0 where a coordinate can be mutated, else 2: more than any uniform. What a candidate lacks cannot be."""
    beyond = partition.beyond[..., None, :]
    return beyond + 2.0 * ~existing(coordinates, cells) if coordinates.conditions else beyond


def mutated_at(partition: Partition, k: Array, s: Array, beyond: Array) -> Array:
    """Step 3: which coordinates of which candidates are mutated, (..., L, N) bool."""
    xp = namespace(s)
    s = s + beyond
    reach = xp.maximum(s.min(axis=-1), (k - 1.0) / as_column(partition.mutation.n_F))
    return s <= xp.where(k > 0.0, xp.minimum(reach, 1.0), 0.0)[..., None]


def mutation_rate(constants: MutationConstants, n_active: Array, g_idle: Array, level: Array) -> Array:
    """q (...): the share of the candidates that is mutated. It falls while nothing succeeds, but not below a floor.

    While the search is level it is at least 1/2, and where nothing else varies it is 1.
    """
    falling = constants.q0 * constants.T / (constants.T + g_idle)
    floor = clip(MUTATED_WHERE_LEVEL * level, constants.least, 1.0)
    return clip(falling, clip(1.0 * (n_active == 0), floor, 1.0), 1.0)


def jump(coordinates: Coordinates, cell: Array, t: Array) -> Array:
    """Another cell, d away, with P(d or more) = d^-2, or the last one on that side if there are fewer.

    If there is none on that side, it is the neighbour on the other. For a category it is any other choice.
    """
    xp = namespace(t)
    offset = t - 0.5
    d = xp.floor(xp.sqrt(0.5 / xp.maximum(xp.abs(offset), SMALLEST_OFFSET)))
    # the cell itself is no goal
    lowest, highest = (cell == 0.0) * 1.0, coordinates.last - (cell == coordinates.last)
    there = xp.minimum(xp.maximum(cell + xp.copysign(d, offset), lowest), highest)
    n_cat = len(coordinates.choices)
    if not n_cat:
        return there
    further = cell[..., -n_cat:] + xp.ceil(t[..., -n_cat:] * (coordinates.choices - 1.0))
    return xp.concat([there[..., :-n_cat], further % coordinates.choices], axis=-1)


def delayed(setting: MixSetting, state: MixState, v: Array, step: Array, xi: Array) -> Sample:
    """Points that an older state of this run drew; `xi` is the z that this state draws with the same noise.

    They lie farther away and are worse: with the lengths that they have from here they would shrink the step size. So
    they get the length of their noise, and half of their direction from it, which says how they differ from each other
    and not how the mean has moved since.
    """
    xp, coordinates = namespace(v), setting.coordinates
    length = xp.sqrt(squared_norm(xi))
    z = (expressed(coordinates, state, v, step, lambda _: length).z + xi) / 2
    y = z @ state.root
    return complete(coordinates, y, z, state.sigma[..., None] * y, v)
