"""BoltzRank of one query: its rankings one by one, energies as sums over pairs."""

from itertools import combinations, permutations
from math import log, tanh

import numpy as np
from reference.gain_lists import gains_and_discounts, of_documents_that_count
from reference.hashing import mixed


@of_documents_that_count
def boltzrank(loss, s, y, place=(0, 0)):
    rankings = [sampled_ranking(loss, y, place, m) for m in range(loss.samples)]
    return sum_over(rankings, loss, s, y)


def exact_boltzrank(loss, s, y):
    """Value and gradient with all n! rankings in place of the samples."""
    return sum_over(list(permutations(range(len(s)))), loss, s, y)


def sum_over(rankings, loss, s, y):
    gain, discount = gains_and_discounts(loss.metric, y)
    N = np.array([gain[list(ranking)] @ discount for ranking in rankings])
    P, gradients = chances(loss, rankings, s)
    Q, _ = chances(loss, rankings, y)
    value = np.sort(gain)[::-1] @ discount - P @ N + loss.divergence * Q @ np.log(Q / P)
    # d log P(R) / ds = -gradient(R) + mean gradient
    log_gradients = P @ gradients - gradients
    return value, -(P * N) @ log_gradients - loss.divergence * Q @ log_gradients


def chances(loss, rankings, s):
    """Probabilities of the rankings, and the derivatives of their energies."""
    energies, gradients = zip(*(energy(loss, ranking, s) for ranking in rankings), strict=True)
    mass = np.exp(min(energies) - np.array(energies))
    return mass / mass.sum(), np.array(gradients)


def energy(loss, ranking, s):
    n = len(s)
    value, gradient = 0.0, np.zeros(n)
    for a, b in combinations(range(n), 2):
        i, j = ranking[a], ranking[b]  # j is below i
        level = tanh(s[j] - s[i])
        value += loss.sharpness * 2 / (n * (n - 1)) * (b - a) * (s[j] - s[i])
        value += loss.pair_potential * 2 / (n - 1) * level
        pull = loss.sharpness * 2 / (n * (n - 1)) * (b - a)
        pull += loss.pair_potential * 2 / (n - 1) * (1 - level**2)
        gradient[j] += pull
        gradient[i] -= pull
    return value, gradient


def sampled_ranking(loss, y, place, m):
    """Ranking m of this round and query."""
    state = 0
    for word in (loss.random_state % 2**64, *place, m):
        state = mixed(state, word)
    uniform = [(mixed(state, i) >> 11) / 2**53 for i in range(len(y))]
    if m % 2 == 0:
        noisy = [grade - log(-log(u)) for grade, u in zip(y, uniform, strict=True)]
        return sorted(range(len(y)), key=lambda i: -noisy[i])
    ranking = []
    for i, u in enumerate(uniform):  # each comes to a place of its own, whose document moves back
        other = int(u * (i + 1))
        ranking.append(i)
        ranking[i], ranking[other] = ranking[other], i
    return ranking
