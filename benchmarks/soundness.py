"""Does the default method solve plain problems of every size, in every mixture of kinds, from any sensible start?

Five beds, each a law of docs/mix.md ("Where it holds"):

- ``mixtures``: a sphere (N up to 320) and an ellipsoid (N up to 80) of floats, integers, booleans, sets and
  categories: all of one kind, half and half, one of one kind among many of another. Evaluations to the optimum,
  against CMA-ES with Margin and CatCMA with Margin, whichever is the better. As in `minimize`, a point of a space
  without floats is evaluated once, however often it is proposed. mix is behind where its median is the larger one, and
  by more than chance where a Mann-Whitney test says so at 1 %.
- ``places``: an integer whose optimum is anywhere in its range, the ends included.
- ``distances``: floats whose optimum is 1 to 1e6 initial standard deviations away.
- ``halves``: half floats, half integers, on a sphere; ten seeds each.
- ``pycma-305``: the two problems of pycma's issue 305, "Integer variables with larger dimension".

    python benchmarks/soundness.py mixtures --dimensions 1 2 3 5 10 40 80 --seeds 3 --jobs 2
    python benchmarks/soundness.py places distances halves pycma-305 --jobs 2
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, NamedTuple

os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1"))

import numpy as np
from scipy.stats import mannwhitneyu

from mixcma import Bool, Categorical, Discrete, Float, Int, Optimizer, Space
from mixcma.core.stopping import Stopping
from mixcma.space import Variable

KINDS = ("float", "int", "bool", "set", "category")
DIMENSIONS = (1, 2, 3, 5, 10, 40, 80, 160, 320)
LARGEST_ELLIPSOID = 80
CLOSE = 1e-10
# The rotations of `ellirot`, which in pycma differ from process to process.
ROTATIONS = 5
# The runs are given up after so many evaluations per variable.
PATIENCE = 3000
Values = Callable[[np.ndarray], np.ndarray]  # (L, N) decoded values -> (L,)


class Problem(NamedTuple):
    name: str
    space: Space
    values: Values
    target: float
    budget: int


class Outcome(NamedTuple):
    problem: str
    method: str
    seed: int
    evaluations: int | None  # None if the optimum was not found
    end: str
    best: float


def variable(kind: str) -> Variable:
    """A variable that starts two standard deviations, or two values, from its optimum."""
    return {
        "float": Float(mean=2.0, std=1.0),
        "int": Int(-10, 10, mean=2.0, std=1.0),
        "bool": Bool(),
        "set": Discrete([-9, -6, -4, -2, -1, 0, 1, 2, 4, 6, 9], mean=2.0, std=1.0),
        "category": Categorical([3, 1, 0, 4, 2]),
    }[kind]


def cost(kinds: Sequence[str], coefficients: np.ndarray) -> Values:
    """sum_j c_j x_j^2 for numbers; c_j where a boolean is False, or a category is not at its best choice."""
    numbers = np.isin(kinds, ("float", "int", "set"))
    booleans, categories = np.equal(kinds, "bool"), np.equal(kinds, "category")

    def values(x: np.ndarray) -> np.ndarray:
        squares = np.where(numbers, x**2, np.where(booleans, 1.0 - x, np.where(categories, x > 0, 0.0)))
        total: np.ndarray = squares @ coefficients
        return total

    return values


def mixtures(N: int) -> Iterator[tuple[str, list[str]]]:
    """Names of mixtures, and the kinds of their N variables."""
    for kind in KINDS:
        yield f"all {kind}", [kind] * N
    if N < 2:
        return
    for one, other in itertools.combinations(KINDS, 2):
        yield f"half {one}, half {other}", [one if j % 2 == 0 else other for j in range(N)]
    if N < 5:
        return
    for one, many in itertools.permutations(KINDS, 2):
        yield f"one {one}, many {many}", [one if j == N // 2 else many for j in range(N)]


def mixture_problems(dimensions: Sequence[int]) -> Iterator[Problem]:
    for N in dimensions:
        for name, kinds in mixtures(N):
            space = Space({f"x{j}": variable(kind) for j, kind in enumerate(kinds)})
            target = CLOSE if "float" in kinds else 0.0
            shapes = {"sphere": np.ones(N)}
            if 2 <= N <= LARGEST_ELLIPSOID:
                shapes["ellipsoid"] = 10.0 ** (6 * np.arange(N) / (N - 1))
            for shape, coefficients in shapes.items():
                yield Problem(
                    f"{shape}, N = {N}, {name}", space, cost(kinds, coefficients), target, PATIENCE * max(N, 3)
                )


def place_problems() -> Iterator[Problem]:
    """80 places of Int(0, 10**6) within 2,000 evaluations; then wider and narrower ranges, alone and beside floats."""
    last = 10**6
    near = [0, 1, 2, 3, 5, 10, 30, 100, 300, 1000, 3000, 10_000, 12_345, 30_000, 100_000]
    inner = np.linspace(0, last, 52)[1:-1].astype(int).tolist()
    for place in [*near, *inner, *(last - p for p in near)]:
        yield Problem(f"Int(0, 10**6) at {place}", Space({"x": Int(0, last)}), _distance([place]), 0.0, 2000)
    for bits in (2, 3, 5, 8, 16, 24, 32, 40, 48, 62):
        last = 2**bits - 1 if bits > 2 else 2
        for place in sorted({0, 1, last // 3, last // 2, last - 1, last}):
            for beside in (0, 3, 10):
                variables = {"x": Int(0, last), **{f"y{j}": Float(mean=2.0, std=1.0) for j in range(beside)}}
                # beyond 2**49 values a step is smaller than the spacing of floats: within that is close enough
                close = CLOSE if last < 2**49 else 2.0 ** (bits - 49)
                name = f"Int(0, {last}) at {place}, {beside} floats"
                target = close if beside or last >= 2**49 else 0.0
                yield Problem(name, Space(variables), _distance([place] + [0] * beside), target, 20_000)


def _distance(optimum: Sequence[int]) -> Values:
    def values(x: np.ndarray) -> np.ndarray:
        first = np.array([abs(int(row[0]) - optimum[0]) for row in x], dtype=float)
        return first + (np.asarray(x[:, 1:], dtype=float) ** 2).sum(axis=1)

    return values


def distance_problems() -> Iterator[Problem]:
    for N, exponent in itertools.product((1, 2, 5, 20), range(7)):
        space = Space({f"x{j}": Float() for j in range(N)})
        optimum = 10.0**exponent / np.sqrt(N)
        precision = max(CLOSE, (1e-13 * 10.0**exponent) ** 2 * N)
        values = _sphere_around(optimum)
        yield Problem(f"{N} floats, optimum 1e{exponent} away", space, values, precision, 100_000)


def _sphere_around(optimum: float) -> Values:
    def values(x: np.ndarray) -> np.ndarray:
        return ((np.asarray(x, dtype=float) - optimum) ** 2).sum(axis=1)

    return values


def half_problems(dimensions: Sequence[int]) -> Iterator[Problem]:
    for N in dimensions:
        kinds = ["float" if j < N // 2 else "int" for j in range(N)]
        space = Space({f"x{j}": variable(kind) for j, kind in enumerate(kinds)})
        yield Problem(f"half floats, half integers, N = {N}", space, cost(kinds, np.ones(N)), CLOSE, 400 * N)


def pycma_305_problems() -> Iterator[Problem]:
    import cma
    from cma.transformations import Rotation

    def problem(name: str, N: int, integers: int, function: Callable[[np.ndarray], float]) -> Problem:
        variables: dict[str, Variable] = {f"n{j}": Int(-(10**4), 10**4, mean=0.12, std=0.2) for j in range(integers)}
        variables |= {f"x{j}": Float(mean=0.12, std=0.2) for j in range(N - integers)}

        def values(x: np.ndarray) -> np.ndarray:
            return np.array([function(np.asarray(row, dtype=float)) for row in x])

        return Problem(f"{name} of {N}, {integers} integers", Space(variables), values, 1e-6, 400_000)

    yield problem("sphere", 256, 244, cma.ff.sphere)
    for seed in range(1, ROTATIONS + 1):
        rotation = Rotation(seed)
        yield problem(f"ellirot, rotation {seed}", 75, 42, lambda x, rotation=rotation: cma.ff.elli(rotation(x)))


def solve(problem: Problem, method: str, seed: int) -> Outcome:
    """One run, without restarts."""
    optimizer = Optimizer(problem.space, method=method, seed=seed, target=problem.target, stopping=Stopping())
    wide = any(v.size is not None and v.size > 2**53 for v in problem.space.values())
    known: set[tuple[Any, ...]] | None = None if problem.space.size is None else set()
    best, spent = np.inf, 0
    with np.errstate(over="ignore"):
        while not optimizer.stop and spent < problem.budget:
            candidates = optimizer.ask()
            rows = [list(c.params.values()) for c in candidates]
            values = problem.values(np.array(rows, dtype=object if wide else float))
            for row, value in zip(map(tuple, rows), values.tolist()):
                spent += known is None or row not in known
                if known is not None:
                    known.add(row)
                if value <= problem.target:
                    return Outcome(problem.name, method, seed, spent, "target", value)
            best = min(best, float(values.min()))
            optimizer.tell(candidates, values.tolist())
    return Outcome(problem.name, method, seed, None, optimizer.stop.name if optimizer.stop else "budget", best)


def job(bed: str, dimensions: Sequence[int], index: int, method: str, seed: int) -> Outcome:
    """Problems hold closures, which do not travel: each process makes its own."""
    return solve(list(problems_of(bed, dimensions))[index], method, seed)


def problems_of(bed: str, dimensions: Sequence[int]) -> Iterator[Problem]:
    beds: dict[str, Callable[[], Iterator[Problem]]] = {
        "mixtures": lambda: mixture_problems(dimensions),
        "places": place_problems,
        "distances": distance_problems,
        "halves": lambda: half_problems(dimensions if dimensions != DIMENSIONS else (40, 80, 100, 160, 320)),
        "pycma-305": pycma_305_problems,
    }
    return beds[bed]()


# Methods to compare with, and seeds.
BEDS = {"mixtures": 3, "places": 4, "distances": 20, "halves": 10, "pycma-305": 10}


def reference_methods(bed: str, problem: Problem) -> list[str]:
    if bed != "mixtures":
        return []
    categories = any(isinstance(v, Categorical) for v in problem.space.values())
    return ["catmargin"] if categories else ["margin", "catmargin"]


def run(bed: str, arguments: argparse.Namespace, pool: Any) -> None:
    problems = list(problems_of(bed, arguments.dimensions))
    seeds = range(1, 1 + (arguments.seeds or BEDS[bed]))
    asked = []
    for index, problem in enumerate(problems):
        if arguments.only not in problem.name:
            continue
        references = [] if arguments.no_references else reference_methods(bed, problem)
        asked += [(index, method, seed) for method in [arguments.method, *references] for seed in seeds]
    found: dict[tuple[int, str], list[Outcome]] = {}
    tasks = zip(*asked) if asked else ((), (), ())
    answers = pool.map(job, itertools.repeat(bed), itertools.repeat(arguments.dimensions), *tasks)
    solved = behind = surely = 0
    for (index, method, _), outcome in zip(asked, answers):
        found.setdefault((index, method), []).append(outcome)
        references = [] if arguments.no_references else reference_methods(bed, problems[index])
        methods = [arguments.method, *references]
        if all(len(found.get((index, m), ())) == len(seeds) for m in methods):
            ours = summary(found[index, arguments.method])
            best, reference = min(((summary(found[index, m]), m) for m in references), default=(np.inf, None))
            failed = [o for o in found[index, arguments.method] if o.evaluations is None]
            solved += len(seeds) - len(failed)
            loses = reference is not None and ours > best
            chance = chance_of(found[index, arguments.method], found[index, reference]) if loses else 1.0
            behind, surely = behind + loses, surely + (chance < 0.01)
            if failed or arguments.verbose or loses:
                notes = "".join(f"; seed {o.seed} ends by {o.end} at {o.best:.3g}" for o in failed)
                against = f", best reference {best:g}, ratio {ours / best:.2f}" if references else ""
                against += f" (by chance: {chance:.2g})" if loses else ""
                print(f"{problems[index].name}: {ours:g}{against}{notes}", flush=True)
    runs = len({i for i, _, _ in asked}) * len(seeds)
    print(
        f"{bed}: {solved} of {runs} runs solved; {behind} of {len({i for i, _ in found})} problems with "
        f"more evaluations than the best reference, {surely} of them by more than chance"
    )


def chance_of(ours: Sequence[Outcome], theirs: Sequence[Outcome]) -> float:
    """The probability that chance alone puts us so far behind: one-sided Mann-Whitney."""
    numbers = [[np.inf if o.evaluations is None else o.evaluations for o in side] for side in (ours, theirs)]
    return float(mannwhitneyu(*numbers, alternative="greater").pvalue)


def summary(outcomes: Sequence[Outcome]) -> float:
    """The median of the evaluations; infinite where most runs failed."""
    return statistics.median(np.inf if o.evaluations is None else o.evaluations for o in outcomes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("beds", nargs="*", choices=[*BEDS, []], default=list(BEDS))
    parser.add_argument("--dimensions", type=int, nargs="*", default=DIMENSIONS)
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--method", default="mix")
    parser.add_argument("--only", default="", help="problems whose name contains this")
    parser.add_argument("--no-references", action="store_true")
    parser.add_argument("--verbose", action="store_true", help="every problem, not only failures and defeats")
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    with ProcessPoolExecutor(arguments.jobs) as pool:
        for bed in arguments.beds:
            run(bed, arguments, pool)


if __name__ == "__main__":
    sys.exit(main())
