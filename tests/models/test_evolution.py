"""Evolution on candidates whose fitness is known: bit strings as whole numbers."""

import numpy as np
import pytest

from rankwright.errors import UsageError
from rankwright.models.expression import Evolve

BITS = 24


class Bits:
    """Candidates are numbers of 24 bits; each 1 is worth as much, and size is 1 for all."""

    def first(self, number, rng):
        return int(rng.integers(1 << BITS))

    def cross(self, a, b, rng):
        mask = int(rng.integers(1 << BITS))
        return a & mask | b & ~mask

    def mutate(self, a, rng):
        return a ^ 1 << int(rng.integers(BITS))

    def size(self, a):
        return 1


def ones(candidates):
    return np.array([one.bit_count() / BITS for one in candidates])


def history(fitness=ones, species=None, **parameters):
    seen = []
    options = {name: parameters.pop(name) for name in ("start", "seed") if name in parameters}
    Evolve(**parameters).run(
        species or Bits(), fitness, lambda *args: seen.append(args) or False, **options
    )
    return seen


def test_it_finds_the_best_candidate():
    *_, (_, best, value) = history(population=60, n_generations=30)
    assert (best, value) == ((1 << BITS) - 1, 1.0)


@pytest.mark.parametrize("seed", range(5))
def test_the_best_fitness_never_falls(seed):
    values = [value for _, _, value in history(population=20, n_generations=15, seed=seed)]
    assert values == sorted(values)
    assert values[-1] > values[0]


def test_the_seed_decides():
    assert history(seed=1, population=20) == history(seed=1, population=20)
    assert history(seed=1, population=20) != history(seed=2, population=20)


def test_candidates_of_a_generation_differ_and_number_as_asked():
    met = []

    def fitness(candidates):
        met.append(list(candidates))
        return ones(candidates)

    history(fitness, population=30, n_generations=8)
    assert [len(set(some)) for some in met] == [30] * 8


def test_where_there_are_fewer_candidates_than_places_some_come_twice():
    class Two(Bits):
        def first(self, number, rng):
            return int(rng.integers(2))

        def mutate(self, a, rng):
            return a

        cross = mutate_both = lambda self, a, b, rng: a

    seen = history(species=Two(), population=10, n_generations=3)
    assert [best for _, best, _ in seen] == [1, 1, 1]


def test_of_equals_the_smaller_is_best():
    class Sized(Bits):
        def size(self, a):
            return a

    def alike(candidates):
        return np.zeros(len(candidates))

    bests = [best for _, best, _ in history(alike, Sized(), population=40, n_generations=10)]
    assert bests == sorted(bests, reverse=True)


def test_it_begins_with_what_it_is_given():
    start = [(1 << BITS) - 1]
    assert history(start=start, population=5, n_generations=1)[0][1] == start[0]


def test_the_watcher_may_end_the_run():
    seen = []
    Evolve(population=5).run(Bits(), ones, lambda t, *_: seen.append(t) or t == 3)
    assert seen == [1, 2, 3]


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"population": 0}, "population must be 1 or more, not 0"),
        ({"n_generations": 0}, "n_generations must be 1 or more"),
        ({"population": 3, "elites": 4}, "elites must be at most population, 3"),
        ({"crossover": 1.5}, "crossover must be a share from 0 to 1, not 1.5"),
        ({"parsimony": -1.0}, "parsimony must be 0 or more"),
    ],
)
def test_impossible_parameters_are_told_when_the_run_begins(parameters, sentence):
    evolve = Evolve(**parameters)
    with pytest.raises(UsageError, match=sentence):
        evolve.run(Bits(), ones, lambda *_: True)
