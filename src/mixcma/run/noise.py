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

NORMALS, UNIFORMS, STARTS, PROPOSALS = range(4)
# Numbers in a block, roughly: a few dozen generations of a small problem, one of a large one.
BLOCK_NUMBERS = 2**14
# Numbers that a batch of runs holds at once, roughly.
CHUNK_NUMBERS = 2**22
FloatArray = NDArray[np.float64]


def fresh_seed() -> int:
    """A seed nobody chose, to be recorded so that the run can be repeated."""
    return secrets.randbits(32)


def generator(seed: int, run: int, purpose: int, block: int) -> np.random.Generator:
    key = np.array([seed % 2**64, run], dtype=np.uint64)
    counter = np.array([0, 0, purpose, block], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=counter))


def block_length(popsize: int, dimension: int) -> int:
    """Generations in a block."""
    return max(1, BLOCK_NUMBERS // (popsize * dimension))


class NoiseSource:
    """The noise of one run, generation by generation; holds the current block and nothing else."""

    def __init__(self, seed: int, run: int, popsize: int, dimension: int, uniforms: bool) -> None:
        self._key = (seed, run)
        self._shape = (block_length(popsize, dimension), popsize, dimension)
        self._with_uniforms = uniforms
        self._block = -1
        self._drawn: Noise  # of the whole block
        # memory that is touched for the first time is slow, so that of the uniforms, which nobody keeps, is used again
        self._uniforms = np.empty((self._shape[0], 2 * popsize + 1, dimension) if uniforms else 0)

    def __call__(self, generation: int) -> Noise:
        block, within = divmod(generation, self._shape[0])
        if block != self._block:
            self._block, self._drawn = block, self._draw(block)
        normal, order, geometric, sign = self._drawn
        if not self._with_uniforms:
            return Noise(normal[within])
        return Noise(normal[within], order[within], geometric[within], sign[within])

    def _draw(self, block: int) -> Noise:
        normals = generator(*self._key, NORMALS, block).standard_normal(self._shape)
        if not self._with_uniforms:
            return Noise(normals)
        return _with_uniforms(normals, _flipped(generator(*self._key, UNIFORMS, block).random(out=self._uniforms)))


class NoiseBatch:
    """The noise of many runs, the same as that of a `NoiseSource` of each.

    A block is drawn in chunks, so that thousands of runs fit into memory; only runs alive are drawn for.
    """

    def __init__(self, seed: int, runs: NDArray[np.int64], popsize: int, dimension: int, uniforms: bool) -> None:
        self._seed, self._runs = seed, runs
        self._shape = (popsize, dimension)
        self._with_uniforms = uniforms
        self._length = block_length(popsize, dimension)
        self._chunk = max(1, min(self._length, CHUNK_NUMBERS // (len(runs) * popsize * dimension)))
        self._generators: dict[int, tuple[np.random.Generator, np.random.Generator | None]] = {}
        self._drawn = range(0)  # the generations of the current chunk
        self._row = np.zeros(len(runs), dtype=np.int64)  # of each run in the chunk
        self._normals: FloatArray
        self._uniforms: FloatArray

    def __call__(self, generation: int, alive: NDArray[np.int64]) -> Noise:
        """The noise of the runs alive, indices into `runs`; generations must be asked for in order."""
        if generation not in self._drawn:
            self._draw(generation, alive)
        rows, within = self._row[alive], generation - self._drawn.start
        if not self._with_uniforms:
            return Noise(self._normals[rows, within])
        return _with_uniforms(self._normals[rows, within], self._uniforms[rows, within])

    def _draw(self, generation: int, alive: NDArray[np.int64]) -> None:
        block, within = divmod(generation, self._length)
        if within == 0:
            self._generators = {int(row): self._streams(int(self._runs[row]), block) for row in alive}
        count = min(self._chunk, self._length - within)
        self._drawn = range(generation, generation + count)
        self._row[alive] = np.arange(len(alive))
        popsize, dimension = self._shape
        drawing = [self._generators[int(row)] for row in alive]
        self._normals = np.stack([n.standard_normal((count, *self._shape)) for n, _ in drawing])
        if self._with_uniforms:
            shape = (count, 2 * popsize + 1, dimension)
            self._uniforms = _flipped(np.stack([u.random(shape) for _, u in drawing if u is not None]))

    def _streams(self, run: int, block: int) -> tuple[np.random.Generator, np.random.Generator | None]:
        normals = generator(self._seed, run, NORMALS, block)
        return normals, generator(self._seed, run, UNIFORMS, block) if self._with_uniforms else None


def _flipped(u: FloatArray) -> FloatArray:
    """From [0, 1) to (0, 1], in place."""
    return np.subtract(1.0, u, out=u)


def _with_uniforms(normals: FloatArray, u: FloatArray) -> Noise:
    """(..., L, N) normals, (..., 2 L + 1, N) uniforms in (0, 1] -> Noise."""
    popsize = normals.shape[-2]
    return Noise(normals, u[..., 0, :], u[..., 1 : popsize + 1, :], u[..., popsize + 1 :, :])


def start_uniforms(seed: int, run: int, dimension: int) -> NDArray[np.float64]:
    """Uniforms in [0, 1) for the random start of a run."""
    return generator(seed, run, STARTS, 0).random(dimension)
