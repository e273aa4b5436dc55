"""Random numbers from a counter: (seed, run, generation) -> noise, with no hidden generator state.

The stream is Philox keyed by (seed, run); its counter holds what the numbers are for and which block
of generations they belong to. A block is drawn at once, since starting a stream costs more than a
generation's numbers do.
"""

from __future__ import annotations

import secrets

import numpy as np
from numpy.typing import NDArray

from mixcma.core.sampling import Noise

NORMALS, UNIFORMS, STARTS = range(3)
# Numbers in a block, roughly: a few dozen generations of a small problem, one of a large one.
BLOCK_NUMBERS = 2**14


def fresh_seed() -> int:
    """A seed nobody chose, to be recorded so that the run can be repeated."""
    return secrets.randbits(32)


def generator(seed: int, run: int, purpose: int, block: int) -> np.random.Generator:
    key = np.array([seed % 2**64, run], dtype=np.uint64)
    counter = np.array([0, 0, purpose, block], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=counter))


class NoiseSource:
    """The noise of one run, generation by generation; holds the current block and nothing else."""

    def __init__(self, seed: int, run: int, popsize: int, dimension: int, uniforms: bool) -> None:
        self._key = (seed, run)
        self._shape = (popsize, dimension)
        self._with_uniforms = uniforms
        self._length = max(1, BLOCK_NUMBERS // (popsize * dimension))
        self._block = -1
        self._normals: NDArray[np.float64]
        self._uniforms: NDArray[np.float64]

    def __call__(self, generation: int) -> Noise:
        block, within = divmod(generation, self._length)
        if block != self._block:
            self._draw(block)
        if not self._with_uniforms:
            return Noise(self._normals[within])
        popsize = self._shape[0]
        uniforms = self._uniforms[within]
        return Noise(self._normals[within], uniforms[0], uniforms[1 : popsize + 1], uniforms[popsize + 1 :])

    def _draw(self, block: int) -> None:
        popsize, dimension = self._shape
        self._block = block
        draw = generator(*self._key, NORMALS, block)
        self._normals = draw.standard_normal((self._length, popsize, dimension))
        if self._with_uniforms:
            draw = generator(*self._key, UNIFORMS, block)
            self._uniforms = 1.0 - draw.random((self._length, 2 * popsize + 1, dimension))  # (0, 1]


def start_uniforms(seed: int, run: int, dimension: int) -> NDArray[np.float64]:
    """Uniforms in [0, 1) for the random start of a run."""
    return generator(seed, run, STARTS, 0).random(dimension)
