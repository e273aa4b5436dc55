"""What every method is: how a run starts, draws candidates, and learns from their values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

from mixcma.core.bounds import distance_outside, known_inside
from mixcma.core.coordinates import Coordinates
from mixcma.core.gaussian import Start, decompose, deviations
from mixcma.core.namespace import Array, namespace
from mixcma.core.ranking import penalised_ranks
from mixcma.core.sampling import Noise, Sample
from mixcma.core.setting import Setting, strategy_of

# The state of a method: a NamedTuple of arrays that has at least the fields of `GaussianState`.
State = Any


@dataclass(frozen=True)
class Method(ABC):
    """A frozen value whose fields are the method's open choices; all its functions are pure.

    Parameters
    ----------
    keep_inside
        Rank candidates lower the farther they lie outside the bounds of floats and of variables with
        three or more values. The paper lets them wander; False does so too.
    """

    takes_categories: ClassVar[bool]  # if so, variables with two values are categories too
    takes_uniforms: ClassVar[bool]  # whether `Noise` needs its uniforms
    keep_inside: bool = field(default=True, kw_only=True)

    @property
    def guided(self) -> bool:
        """Whether a model says which candidates are worth evaluating."""
        return False

    @property
    def unguided(self) -> Method:
        """The same method without a model."""
        return self

    def setting(self, coordinates: Coordinates, popsize: int | None) -> Setting:
        """What stays fixed during a run."""
        return Setting(strategy_of(coordinates, popsize), coordinates)

    @abstractmethod
    def initial_state(self, setting: Any, start: Start) -> State:
        """The state before the first generation."""

    @abstractmethod
    def sample(self, setting: Any, state: State, noise: Noise) -> Sample:
        """The candidates of a generation."""

    @abstractmethod
    def tell(self, setting: Any, state: State, sample: Sample, values: Array, violations: Array | None = None) -> State:
        """One generation: rank the candidates, update the state. `values`, `violations`: (..., L)."""

    @abstractmethod
    def express(self, setting: Any, state: State, latents: Array, redrawn: Array | None = None) -> Sample:
        """Points from elsewhere, as if this state had drawn them.

        `latents` (..., L, P, N) are those that `latents` keeps. `redrawn` (..., L, N) is the z that this state draws
        with the noise behind the points; None if there is no such noise.
        """

    def latents(self, state: State, sample: Sample) -> Array:
        """What is kept of candidates to express them in a later state: (..., L, P, N), the evaluated point first."""
        return sample.v[..., None, :]

    def penalty(self, setting: Any, v: Array) -> Array | float:
        """What is added to the values before ranking, (..., L)."""
        return 0.0

    def spread(self, state: State) -> Array:
        """The standard deviation of each latent coordinate, 0 where it does not vary: (..., N)."""
        return deviations(state)

    def probabilities(self, state: State) -> Array:
        """The probabilities of the choices of each category: (..., N_cat, K)."""
        return namespace(state.m).zeros((*state.m.shape[:-1], 0, 1))

    def smallest_variance(self, setting: Any, state: State) -> Array:
        """A lower bound of the smallest eigenvalue of the candidates' covariance: (...)."""
        return (state.sigma**2 * state.eigenvalues)[..., 0]

    def decomposed(self, state: State) -> State:
        """The state with roots of its present C."""
        return state._replace(**decompose(state.C)._asdict())

    def varying(self, setting: Any, state: State) -> int:
        """How many coordinates of a single run vary, other than by mutation."""
        return int(state.m.shape[-1])

    def back_at_best(self, setting: Any, state: State) -> State | None:
        """A new start at the best point of the run, for methods that go back there; else None."""
        return None

    def ranked_inside(
        self,
        setting: Setting,
        state: State,
        v: Array,
        values: Array,
        violations: Array | None,
        slack: Array | float = 0.0,
    ) -> tuple[Array, Array | None]:
        """Values and violations to rank by: as they are, or penalised ranks if a candidate lies outside the bounds.

        The first `slack` standard deviations outside cost nothing.
        """
        if not self.keep_inside or known_inside(setting, v):
            return values, violations
        low, high = setting.coordinates.latent_low, setting.coordinates.latent_high
        outside = distance_outside(v, low, high, self.spread_outside(state), slack)
        return penalised_ranks(values, violations, outside), None

    def spread_outside(self, state: State) -> Array:
        """The standard deviations in which the distance from the bounds counts: (..., N), positive everywhere."""
        return deviations(state)


def best_first(w: Array, v: Array) -> Array:
    """The point with the largest weight: (..., L), (..., L, N) -> (..., N)."""
    xp = namespace(v)
    best = xp.argmax(w, axis=-1)[..., None, None]
    return xp.take_along_axis(v, best, axis=-2)[..., 0, :]
