"""BoltzRank: its samples against the sum over all rankings, and that sum by hand."""

from itertools import permutations
from math import exp, log, log2

import numpy as np
import pytest
from reference.boltzrank import exact_boltzrank

from rankwright.data.ranking_data import RankingData
from rankwright.errors import IncompatibleError, UsageError
from rankwright.losses.boltzrank import BoltzRank


def query(y, **arrays):
    return RankingData.from_arrays(np.zeros((len(y), 1)), y, qid=np.zeros(len(y)), **arrays)


def parts(loss, data, s, t=0):
    grad = np.empty(len(s))
    bound = loss.bind(data)
    bound.set_iteration(t)
    return bound.grad(np.array(s, float), grad), grad


def test_two_documents_by_hand():
    # E of (good, bad) = 2/(2 - 1) (-0.5 * 0.7 + 0.5 * 0.2) = -0.5; of (bad, good) = +0.5
    chance = exp(0.5) / (exp(0.5) + exp(-0.5))
    by_grade = exp(1) / (exp(1) + exp(-1))
    lost = 1 - (chance + (1 - chance) / log2(3))
    apart = by_grade * log(by_grade / chance) + (1 - by_grade) * log((1 - by_grade) / (1 - chance))
    loss = BoltzRank(sharpness=1.0, divergence=0.3)
    value = exact_boltzrank(loss, np.array([0.7, 0.2]), np.array([1, 0]))[0]
    # grades 1 and 0 have energies -1 and +1
    assert value == pytest.approx(lost + 0.3 * apart)


def test_the_energy_is_that_of_the_paper():
    """2/(n (n - 1)) times rank difference times score difference, over pairs: written here."""
    s, y = np.array([0.3, -1.0, 0.8]), np.array([2.0, 0.0, 1.0])
    mass = {}
    for ranking in permutations(range(3)):
        rank = np.argsort(ranking)
        pairs = [(i, j) for i in range(3) for j in range(3) if rank[j] > rank[i]]
        energy = sum((rank[j] - rank[i]) * (s[j] - s[i]) for i, j in pairs)
        mass[ranking] = exp(-2 / (3 * 2) * energy)
    gain, ideal = 2**y - 1, 3 + 1 / log2(3)
    expected = sum(
        m * sum(gain[i] / log2(r + 2) for r, i in enumerate(ranking)) / ideal
        for ranking, m in mass.items()
    ) / sum(mass.values())
    value = exact_boltzrank(BoltzRank(sharpness=1.0, divergence=0.0), s, y)[0]
    assert value == pytest.approx(1 - expected)


@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_many_samples_come_near_to_all_rankings(beta):
    """With nearly equal grades the samples from the grades are nearly uniform, like the others."""
    y, s = 1e-3 * np.array([2, 0, 1, 0, 1]), np.array([0.5, 1.0, -0.4, 0.2, 0.9])
    loss = BoltzRank(samples=40_000, pair_potential=beta, divergence=0.2, sharpness=1.0)
    exact, sampled = exact_boltzrank(loss, s, y), parts(loss, query(y), s)
    assert sampled[0] == pytest.approx(exact[0], abs=0.01)
    np.testing.assert_allclose(sampled[1], exact[1], atol=0.01)


def test_each_round_and_query_has_its_own_rankings_and_they_come_back():
    data = RankingData.from_arrays(np.zeros((8, 1)), 2 * [2, 0, 1, 0], group_sizes=[4, 4])
    rounds = [parts(BoltzRank(random_state=3), data, np.zeros(8), t)[1] for t in (4, 5, 4)]
    np.testing.assert_array_equal(rounds[0], rounds[2])
    assert (rounds[0] != rounds[1]).any()
    assert (rounds[0][:4] != rounds[0][4:]).any()
    other = parts(BoltzRank(random_state=4), data, np.zeros(8), 4)[1]
    assert (other != rounds[0]).any()


def test_samples_contain_better_rankings_than_uniform_ones_would():
    y = np.arange(6.0) / 2
    loss = BoltzRank(samples=2000, divergence=0.0)
    exact, sampled = exact_boltzrank(loss, np.zeros(6), y), parts(loss, query(y), np.zeros(6))
    assert sampled[0] < exact[0] - 0.02


def test_a_sharp_distribution_is_the_measure():
    """Among 500 rankings of four documents is the one in order of the scores."""
    y, s = [2, 0, 1, 0], [0.1, 0.3, 0.2, 0.0]  # in order of s: grades 0, 1, 2, 0
    value = parts(BoltzRank(samples=500, sharpness=1e4, divergence=0.0), query(y), s)[0]
    assert value == pytest.approx(1 - (1 / log2(3) + 3 / 2) / (3 + 1 / log2(3)))


def test_far_apart_documents_cannot_outvote_others_by_pair_potentials():
    """The potential of a pair ends at 1: another 90 apart changes nothing."""
    loss = BoltzRank(sharpness=0.0, pair_potential=1.0, divergence=0.0)
    near = parts(loss, query([2, 0, 1]), [10.0, 0.0, -10.0])[0]
    far = parts(loss, query([2, 0, 1]), [100.0, 0.0, -10.0])[0]
    assert far == pytest.approx(near, rel=1e-7)


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        (BoltzRank(samples=1), "samples must be 2 or more, not 1"),
        (BoltzRank(divergence=-1.0), "divergence must be 0 or more, not -1.0"),
        (BoltzRank(pair_potential=-0.5), "pair_potential must be 0 or more, not -0.5"),
    ],
)
def test_parameters_that_cannot_be_are_refused(loss, said):
    with pytest.raises(UsageError, match=said):
        loss.bind(query([1, 0]))


def test_a_measure_that_is_no_sum_over_ranks_is_refused():
    with pytest.raises(IncompatibleError, match="boltzrank needs a metric that is a sum"):
        BoltzRank(metric="err").bind(query([1, 0]))
