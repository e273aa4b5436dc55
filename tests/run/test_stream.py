"""Stream: draws by their number, generations by count, results by age; and what it takes to solve a problem."""

from __future__ import annotations

import heapq
import statistics

import numpy as np
import pytest

from mixcma import Bool, Discrete, Float, Int, Optimizer, Outcome, Space
from mixcma.core.methods import METHODS
from mixcma.problems.paper import problem
from mixcma.run.outcome import failure, read_outcomes
from mixcma.run.stream import Stream
from tests.run.states import assert_close, same_state

MIXED = Space(
    {
        "x": Float(-5, 5),
        "y": Float(mean=2.0, std=1.0),
        "n": Int(-10, 10),
        "on": Bool(),
        "wire": Discrete([0.1, 0.2, 0.5, 1.5]),
    }
)


def sphere(p):
    return float(sum(value**2 for value in p.values()))


WHOLE = [name for name, method in METHODS.items() if not method.guided]  # whose generations are whole


def stream_of(space=MIXED, **options):
    return Stream(Optimizer(space, **{"seed": 1, "method": "mix-without-model", **options}))


def drawn(stream, count):
    return [stream.draw() for _ in range(count)]


def take_all(stream, draws, objective=sphere):
    """Whether each of the results closed a generation."""
    return [stream.take(draw, Outcome(objective(draw.params))) for draw in draws]


def durations(seed, workers):
    """Lognormal evaluation times with mean and standard deviation 1; all 1 for a single worker."""
    rng = np.random.default_rng(seed)
    while True:
        yield 1.0 if workers == 1 else rng.lognormal(-np.log(2) / 2, np.log(2) ** 0.5)


def simulate(stream, objective, workers=1, seed=0, evaluations=200, target=-np.inf):
    """Evaluate on workers that take their time; all that was drawn, in the order of the results."""
    lasting, flying, finished = durations(seed, workers), [], []
    for number in range(workers):
        heapq.heappush(flying, (next(lasting), number, stream.draw()))
    while len(finished) < evaluations and not stream.optimizer.stop:
        now, _, draw = heapq.heappop(flying)
        finished.append(draw)
        value = objective(draw.params)
        if value <= target:
            break
        stream.take(draw, Outcome(value))
        waiting = [drawn for _, _, drawn in sorted(flying, key=lambda each: each[1])]
        heapq.heappush(flying, (now + next(lasting), len(finished) + workers, stream.draw(waiting=waiting)))
    return finished


# Draws


@pytest.mark.parametrize("method", METHODS)
def test_the_first_draws_are_the_candidates_of_the_first_generation(method):
    stream, optimizer = stream_of(method=method), Optimizer(MIXED, seed=1, method=method)
    for draw, candidate in zip(drawn(stream, optimizer.popsize), optimizer.ask()):
        assert draw.params == candidate.params
        assert np.array_equal(draw.latents[0], candidate.latent)
        assert (draw.run, draw.generation, draw.slot) == (0, 0, candidate.index)


def test_the_noise_of_a_draw_is_that_of_its_number_in_whatever_state_it_is_made():
    stream = stream_of(method="cma", popsize=7)
    optimizer = stream.optimizer
    waiting = drawn(stream, 3)
    for number in range(3, 60):
        draw = stream.draw()
        state = optimizer.state
        xi = optimizer.noise(number // 7).normal[number % 7]
        expected = state.m + state.sigma * (xi @ state.root)
        np.testing.assert_allclose(draw.latents, expected[None], rtol=1e-12, atol=1e-12)
        assert (draw.slot, draw.generation) == (number, optimizer.generation)
        waiting.append(draw)
        take_all(stream, [waiting.pop(0)])
    assert optimizer.generation == 8


def test_drawing_changes_nothing_but_the_number_of_the_next_draw():
    stream = stream_of()
    before = stream.optimizer.state
    draws = drawn(stream, 40)
    assert stream.optimizer.state is before
    assert [draw.slot for draw in draws] == list(range(40))
    assert len({tuple(draw.latents[0]) for draw in draws}) == 40


def test_a_stream_goes_on_counting_from_the_draws_made_before():
    whole, rest = drawn(stream_of(), 30), Stream(stream_of().optimizer, drawn=13)
    for expected, draw in zip(whole[13:], drawn(rest, 17)):
        assert draw.slot == expected.slot
        assert np.array_equal(draw.latents, expected.latents)


@pytest.mark.parametrize("method", METHODS)
def test_the_same_order_of_results_gives_the_same_search_bit_for_bit(method):
    streams = [stream_of(method=method) for _ in range(2)]
    one, other = (simulate(stream, sphere, workers=5, seed=3) for stream in streams)
    assert [draw.slot for draw in one] == [draw.slot for draw in other]
    assert [draw.slot for draw in one] != sorted(draw.slot for draw in one)
    assert all(np.array_equal(a.latents, b.latents) for a, b in zip(one, other))
    assert same_state(streams[0].optimizer.state, streams[1].optimizer.state)


def test_another_order_of_results_or_another_seed_gives_another_search():
    streams = [stream_of(seed=seed) for seed in (1, 1, 2)]
    for stream, times in zip(streams, (3, 4, 3)):
        simulate(stream, sphere, workers=5, seed=times)
    means = {tuple(stream.optimizer.state.m) for stream in streams}
    assert len(means) == 3


# Generations


@pytest.mark.parametrize("popsize", [4, 9, 20])
def test_a_generation_closes_at_exactly_popsize_results(popsize):
    stream = stream_of(popsize=popsize)
    optimizer = stream.optimizer
    for generation in range(1, 6):
        before = optimizer.state
        assert take_all(stream, drawn(stream, popsize - 1)) == [False] * (popsize - 1)
        assert optimizer.state is before
        assert take_all(stream, drawn(stream, 1)) == [True]
        assert optimizer.generation == generation
        assert not np.array_equal(optimizer.state.m, before.m)


def test_the_order_of_the_results_of_one_generation_hardly_matters():
    ordered, turned = stream_of(popsize=12), stream_of(popsize=12)
    take_all(ordered, drawn(ordered, 12))
    take_all(turned, drawn(turned, 12)[::-1])
    assert_close(ordered.optimizer.state, turned.optimizer.state, rtol=1e-9)


def test_a_result_one_generation_old_is_used_as_the_present_state_expresses_it():
    stream = stream_of(popsize=6)
    optimizer = stream.optimizer
    draws = drawn(stream, 12)
    take_all(stream, draws[:6])
    present = optimizer.state
    assert take_all(stream, draws[6:]) == [False] * 5 + [True]
    by_hand = stream_of(popsize=6).optimizer
    by_hand.state = present
    latents = np.array([draw.latents for draw in draws[6:]])
    noise = by_hand.method.sample(by_hand.setting, present, by_hand.noise(1))
    sample = by_hand.method.express(by_hand.setting, present, latents, redrawn=noise.z)
    sample = sample._replace(older=np.ones(6, dtype=bool))
    by_hand.advance(sample, read_outcomes([sphere(draw.params) for draw in draws[6:]]))
    assert optimizer.generation == 2
    assert_close(optimizer.state, by_hand.state, rtol=1e-12)  # here row by row, there at once


def test_a_result_two_generations_old_is_not_used():
    stream = stream_of(popsize=6)
    optimizer = stream.optimizer
    old = drawn(stream, 20)
    take_all(stream, drawn(stream, 6))
    take_all(stream, drawn(stream, 6))
    before = optimizer.state
    assert take_all(stream, old) == [False] * 20
    assert optimizer.state is before
    assert optimizer.generation == 2
    assert take_all(stream, drawn(stream, 6)) == [False] * 5 + [True]


def test_results_that_are_not_used_do_not_count_toward_a_generation():
    with_old, without = stream_of(popsize=6), stream_of(popsize=6)
    for stream in (with_old, without):
        old = drawn(stream, 3)
        for _ in range(2):
            take_all(stream, drawn(stream, 6))
        new = drawn(stream, 6)
        if stream is with_old:
            assert take_all(stream, [new[0], old[0], new[1], old[1], old[2], *new[2:]]) == [False] * 8 + [True]
        else:
            take_all(stream, new)
    assert same_state(with_old.optimizer.state, without.optimizer.state)


def test_a_result_one_generation_old_counts_toward_a_generation():
    stream = stream_of(popsize=6)
    first = drawn(stream, 7)
    take_all(stream, first[:6])
    assert take_all(stream, first[6:]) == [False]
    assert take_all(stream, drawn(stream, 5)) == [False] * 4 + [True]


def test_a_result_of_another_run_is_not_used():
    stream, former = stream_of(popsize=6, run=1), stream_of(popsize=6, run=0)
    before = stream.optimizer.state
    assert take_all(stream, drawn(former, 20)) == [False] * 20
    assert stream.optimizer.state is before
    assert take_all(stream, drawn(stream, 6)) == [False] * 5 + [True]


# Failures


def test_a_generation_in_which_all_failed_makes_no_update():
    stream = stream_of(popsize=6)
    optimizer, before = stream.optimizer, stream.optimizer.state
    closed = [stream.take(draw, failure("broken")) for draw in drawn(stream, 6)]
    assert closed == [False] * 5 + [True]
    assert same_state(optimizer.state, before)
    assert optimizer.generation == 1
    assert optimizer.stop is None


def test_three_such_generations_stop_the_run():
    stream = stream_of(popsize=6)
    for _ in range(3):
        assert stream.optimizer.stop is None
        for draw in drawn(stream, 6):
            stream.take(draw, failure("broken"))
    assert stream.optimizer.stop.name == "failing"


def test_a_failed_result_is_ranked_last():
    failed, poor = (stream_of(popsize=6, method="margin") for _ in range(2))
    for stream, worst in ((failed, failure("broken")), (poor, Outcome(1e9))):
        draws = drawn(stream, 6)
        stream.take(draws[0], worst)
        take_all(stream, draws[1:])
    assert same_state(failed.optimizer.state, poor.optimizer.state)


def test_a_violation_is_ranked_behind_all_that_is_feasible():
    violating, poor = (stream_of(popsize=6, method="margin") for _ in range(2))
    for stream, worst in ((violating, Outcome(-1e9, [0.5])), (poor, Outcome(1e9))):
        draws = drawn(stream, 6)
        stream.take(draws[0], worst)
        take_all(stream, draws[1:])
    assert same_state(violating.optimizer.state, poor.optimizer.state)


# Points of the model's own


def exploring(results, objective=sphere, **options):
    """A stream with a model after so many results, drawn one after the other; and those."""
    stream, taken = stream_of(method="mix", **options), []
    for _ in range(results):
        taken.append(stream.draw())
        take_all(stream, taken[-1:], objective)
    return stream, taken


def test_results_of_exploring_close_no_generation():
    stream, taken = exploring(6, popsize=6)
    assert [draw.proposed for draw in taken] == [False] * 6
    assert stream.optimizer.generation == 1
    before, best = stream.optimizer.state, min(sphere(draw.params) for draw in taken)
    for _ in range(20):
        draw = stream.draw()
        assert draw.proposed
        assert take_all(stream, [draw]) == [False]
        best = min(best, sphere(draw.params))
    assert stream.optimizer.state is before
    assert stream.optimizer.generation == 1
    assert sphere(stream.optimizer.encoding.decode(stream.optimizer.guide.best_point[None])[0]) == pytest.approx(best)


def test_the_end_of_exploring_closes_a_generation_and_the_run_begins_at_the_best_point():
    stream, closed = stream_of(method="mix", popsize=6), []
    while not stream.optimizer.guide.explorer.over:
        closed.append(take_all(stream, [stream.draw()])[0])
    assert len(closed) <= 100
    assert [number for number, ended in enumerate(closed) if ended] == [5, len(closed) - 1]
    optimizer = stream.optimizer
    assert optimizer.generation == 2
    np.testing.assert_allclose(optimizer.state.m, optimizer.guide.best_point)
    draws = drawn(stream, 6)
    assert not all(draw.proposed for draw in draws)
    assert take_all(stream, draws) == [False] * 5 + [True]


def test_what_was_drawn_while_exploring_and_comes_in_later_closes_no_generation_twice():
    """Six are under way at any time, so some come back when exploring has ended."""
    stream = stream_of(method="mix", popsize=6)
    draws = simulate(stream, sphere, workers=6, seed=1, evaluations=160)
    assert stream.optimizer.guide.explorer.over
    assert 2 < stream.optimizer.generation <= len(draws) // 6
    assert len({(draw.run, draw.slot) for draw in draws}) == len(draws)


def test_what_is_waiting_is_not_proposed_again():
    stream, _ = exploring(12)
    waiting = []
    for _ in range(8):
        draw = stream.draw(waiting=waiting)
        assert draw.proposed
        assert draw.params not in [other.params for other in waiting]
        waiting.append(draw)


def test_a_stream_that_knows_the_same_results_proposes_the_same():
    one, taken = exploring(20)
    other = stream_of(method="mix")
    for draw in taken:
        other.take(draw, Outcome(sphere(draw.params)))
    number = len(taken)
    assert one.draw(number).params == other.draw(number).params
    assert one.draw(number).slot == other.draw(number).slot


# The search as a whole


@pytest.mark.parametrize("method", WHOLE)
def test_with_one_worker_it_is_the_search_generation_by_generation(method):
    """All results are those of the present state, so there is nothing to be expressed in another."""
    ellipsoid = problem("EllipsoidInt", 10)
    options = {"method": method, "seed": 2, "mean": ellipsoid.start(2)}
    stream, optimizer = stream_of(ellipsoid.space, **options), Optimizer(ellipsoid.space, **options)
    for generation in range(40):
        for _ in range(optimizer.popsize):
            take_all(stream, [stream.draw()], ellipsoid)
        candidates = optimizer.ask()
        optimizer.tell(candidates, [ellipsoid(c.params) for c in candidates])
        assert_close(stream.optimizer.state, optimizer.state, 1e-6, f"after generation {generation}")


def evaluations_by_generation(of, method, seed, budget):
    optimizer = Optimizer(of.space, method=method, seed=seed, mean=of.start(seed), target=of.success)
    while not optimizer.stop and optimizer.evaluations < budget:
        candidates = optimizer.ask()
        values = [of(candidate.params) for candidate in candidates]
        if min(values) <= of.success:
            return optimizer.evaluations + len(values)
        optimizer.tell(candidates, values)
    return np.inf


def evaluations_by_result(of, method, seed, workers, budget):
    stream = stream_of(of.space, method=method, seed=seed, mean=of.start(seed), target=of.success)
    finished = simulate(stream, of, workers, seed, budget, of.success)
    return len(finished) if of(finished[-1].params) <= of.success else np.inf


SOLVED = [
    ("EllipsoidInt", 10, "mix"),
    ("SphereInt", 10, "mix-without-model"),
    ("EllipsoidInt", 10, "mix-without-model"),
    ("SphereOneMax", 8, "mix-without-model"),
    ("SphereInt", 20, "mix-without-model"),
    ("EllipsoidOneMax", 10, "mix-without-model"),
    ("SphereOneMax", 10, "catmargin"),
    ("SphereInt", 4, "margin"),
    ("SphereInt", 10, "margin"),
    ("EllipsoidInt", 10, "margin"),
    ("SphereOneMax", 8, "margin"),
    ("SphereInt", 4, "im"),
]


@pytest.mark.parametrize(("workers", "more"), [(1, 1.2), (8, 1.6)])
@pytest.mark.parametrize(("name", "dimension", "method"), SOLVED, ids=lambda part: str(part))
def test_it_solves_what_is_solved_generation_by_generation_at_a_similar_cost(name, dimension, method, workers, more):
    of, seeds = problem(name, dimension), range(5)
    usual = statistics.median(evaluations_by_generation(of, method, seed, 8000) for seed in seeds)
    found = [evaluations_by_result(of, method, seed, workers, 8000) for seed in seeds]
    assert max(found) < np.inf
    assert statistics.median(found) <= more * usual
