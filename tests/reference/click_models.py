"""Click models by enumeration of everything hidden: for lists of a few documents."""

from itertools import product

import numpy as np


def chain_worlds(alpha, sigma, t):
    """Yield (examined, clicked, satisfied, went on, probability) of each course of a session.

    ``t`` has the continuations after no click, after a click without and with satisfaction.
    """
    n = len(alpha)

    def go(r, examined, world, p):
        if p == 0.0:
            return
        if r == n:
            yield (*(tuple(one) for one in zip(*world, strict=True)), p)
            return
        if not examined:
            yield from go(r + 1, 0, [*world, (0, 0, 0, 0)], p)
            return
        for c, s in ((0, 0), (1, 0), (1, 1)):
            q = p * (alpha[r] * (sigma[r] if s else 1.0 - sigma[r]) if c else 1.0 - alpha[r])
            on = t[c + s]
            yield from go(r + 1, 1, [*world, (1, c, s, 1)], q * on)
            yield from go(r + 1, 0, [*world, (1, c, s, 0)], q * (1.0 - on))

    yield from go(0, 1, [], 1.0)


def chain_likelihood(alpha, sigma, t):
    """Return the probability of each click vector."""
    found = dict.fromkeys(product((0, 1), repeat=len(alpha)), 0.0)
    for _, clicked, _, _, p in chain_worlds(alpha, sigma, t):
        found[clicked] += p
    return found


def ubm_likelihood(alpha, gamma):
    """Return the probability of each click vector; gamma[r, j]: last click at j from 1, 0: none."""
    found = {}
    for clicked in product((0, 1), repeat=len(alpha)):
        p, last = 1.0, 0
        for r, c in enumerate(clicked):
            one = alpha[r] * gamma[r, last]
            p *= one if c else 1.0 - one
            last = r + 1 if c else last
        found[clicked] = p
    return found


def conditionals(likelihood, clicked):
    """Return P(C_r = 1 | clicks above) from the probability of each click vector."""
    found = []
    for r in range(len(clicked)):
        same = {c: p for c, p in likelihood.items() if c[:r] == tuple(clicked[:r])}
        found.append(sum(p for c, p in same.items() if c[r]) / sum(same.values()))
    return np.array(found)


def marginals(likelihood):
    """Return P(C_r = 1)."""
    n = len(next(iter(likelihood)))
    return np.array([sum(p for c, p in likelihood.items() if c[r]) for r in range(n)])


def chain_step(sessions, alpha, sigma, t):
    """Return expected (successes, trials) of alpha and sigma by pair, and of t, over sessions.

    A session is (pairs, clicks, weight). A document that is not examined counts as one trial of
    alpha with alpha successes, as attractiveness is drawn whether it is looked at or not.
    """
    of_alpha, of_sigma = np.zeros((len(alpha), 2)), np.zeros((len(alpha), 2))
    of_t = np.zeros((3, 2))
    for pairs, clicked, weight in sessions:
        worlds = [
            world
            for world in chain_worlds(alpha[pairs], sigma[pairs], t)
            if world[1] == tuple(clicked)
        ]
        total = sum(world[-1] for world in worlds)
        for examined, _, satisfied, went_on, p in worlds:
            share = weight * p / total
            for r, u in enumerate(pairs):
                won = clicked[r] if examined[r] else alpha[u]
                of_alpha[u] += share * won, share
                if clicked[r]:
                    of_sigma[u] += share * satisfied[r], share
                if examined[r]:
                    of_t[clicked[r] + satisfied[r]] += share * went_on[r], share
    return of_alpha, of_sigma, of_t


def examination_step(cells, alpha, gamma):
    """Return expected (successes, trials) of alpha and gamma; a cell is (u, k, clicked, weight)."""
    of_alpha, of_gamma = np.zeros((len(alpha), 2)), np.zeros((len(gamma), 2))
    for u, k, clicked, weight in cells:
        worlds = {
            (a, e): (alpha[u] if a else 1.0 - alpha[u]) * (gamma[k] if e else 1.0 - gamma[k])
            for a in (0, 1)
            for e in (0, 1)
            if (a and e) == clicked
        }
        total = sum(worlds.values())
        for (a, e), p in worlds.items():
            of_alpha[u] += weight * p / total * np.array([a, 1])
            of_gamma[k] += weight * p / total * np.array([e, 1])
    return of_alpha, of_gamma
