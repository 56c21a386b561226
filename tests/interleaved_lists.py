"""Interleaved lists for tests: rankings for kernels, all lists of a method, logs of them."""

from collections import Counter
from fractions import Fraction

import numpy as np
from reference import interleaving as twin

from rankwright import clicks
from rankwright.clicks import interleaving

METHODS = ("optimised", "probabilistic", "team_draft")
PAIRS = [
    (("a", "b", "c", "d"), ("b", "d", "a", "c")),
    (("a", "b", "c"), ("d", "a", "e")),
    (("a", "b", "c", "d"), ("a", "c", "b", "d")),
    (("a", "b"), ("c", "b", "a", "d")),  # of different lengths
]
TRIPLE = (("a", "b", "c"), ("b", "c", "a"), ("d", "a", "b"))
SHORT = [  # at least one ranking ends before a list of four documents does
    (("a", "b"), ("b", "c")),
    (("a",), ("b", "c", "d")),
    (("a",), ("a", "b", "c", "d")),
    ((), ("a", "b")),
    PAIRS[3],
    (("b", "d", "a", "f", "g", "c", "e"), ("c", "g", "b")),  # (5) has no solution
    (("a", "c"), ("c", "e", "b", "a", "d")),  # and none here
]
SHORT_TRIPLES = [
    (("a", "b"), ("b", "c", "a", "d"), ("d", "a", "b")),
    (("a", "b", "c"), ("d",), ("e", "a", "f")),
]


class Coded:
    """Rankings as kernels take them."""

    def __init__(self, rankings):
        self.ids = list(dict.fromkeys(d for one in rankings for d in one))
        self.length = np.array([len(one) for one in rankings], np.int32)
        self.order = np.zeros((len(rankings), len(self.ids)), np.int32)
        self.rank = np.zeros((len(rankings), len(self.ids)), np.int32)
        for j, one in enumerate(rankings):
            for r, d in enumerate(one):
                self.order[j, r] = self.ids.index(d)
                self.rank[j, self.ids.index(d)] = r + 1

    def list_of(self, name, u, k):
        """Return the list and teams that a kernel makes of the numbers u."""
        n, rows = self.order.shape
        size = min(k, rows)
        u = np.asarray(u, np.float64)
        shown, team = np.empty(size, np.int32), np.full(size, -1, np.int16)
        used, place, picks = np.zeros(rows, bool), np.empty(n, np.int64), np.empty(n, np.int64)
        if name == "team_draft":
            interleaving.draft_list(self.order, self.length, u, used, place, picks, shown, team)
        else:
            credit, power = np.empty((size, n)), np.arange(1.0, rows + 1) ** -3.0
            mass, fresh = np.empty(n), np.empty(n)
            interleaving.probabilistic_list(
                *(self.order, self.length, self.rank, power, u, used, place, mass, fresh),
                *(shown, team, credit),
            )
        return tuple(self.ids[d] for d in shown), tuple(team.tolist())


def cells(n):
    """Return the middles of n equal parts of [0, 1)."""
    return [(i + 0.5) / n for i in range(n)]


def kernel_distribution(name, rankings, k):
    """Return the exact distribution of (list, teams) of a kernel whose choices are even.

    Random numbers run through the middles of cells that divide every choice evenly, one position
    after the other; those that lead to the same beginning are one.
    """
    coded, grid = Coded(rankings), cells(60)
    size = min(k, len(coded.ids))
    found = {(): Fraction(1)}
    for step in range(size):
        longer = {}
        for u, p in found.items():
            seen = {}
            for one in grid:
                rest = [0.5] * (size - step - 1)
                shown, team = coded.list_of(name, [*u, one, *rest], k)
                start = shown[: step + 1], team[: step + 1]
                seen.setdefault(start, [one, 0])[1] += 1
            for one, count in seen.values():
                longer[*u, one] = p * Fraction(count, len(grid))
        found = longer
    total = Counter()
    for u, p in found.items():
        shown, team = coded.list_of(name, u, k)
        total[shown, team] += p
    return total


def programme(rankings, k, **params):
    ids = Coded(rankings).ids
    scores = [
        np.array([-one.index(d) if d in one else np.nan for d in ids], float) for one in rankings
    ]
    ranked = interleaving._ranked(scores, np.array([0, len(ids)]), 1)
    return clicks.Optimised(k=k, **params).distribution(ranked, 0)


def credit_rows(name, rankings, shown):
    """Return what a method logs with a list, from definitions."""
    ranks = [[twin.rank_in(one, d) or 0 for one in rankings] for d in shown]
    shortest = min(map(len, rankings))
    if name == "probabilistic":
        rows = np.array(twin.shares(rankings, shown))
        rows[shortest:] = 0.0
        return rows
    if name == "optimised":
        rows = np.array([[1 / (r or len(one) + 1) for r, one in zip(row, rankings, strict=True)]
                         for row in ranks])  # fmt: skip
        made = programme(rankings, len(shown))
        gap = rows_of_lists(made)[:, :shortest]
        violated = np.flatnonzero(np.abs(made.probability @ gap) > 1e-6)
        rows[shortest:] = 0.0
        rows[violated] = 0.0
        return rows
    return ranks


def rows_of_lists(made):
    """Return the difference of credits of each list at each position."""
    credit = made.credit[made.lists]
    return credit[:, :, 0] - credit[:, :, 1]


def log_of(name, rankings, lists, clicked, teams=None):
    """Return a log of lists, each clicked at the same positions."""
    size = len(lists[0])
    return clicks.ClickLog.from_arrays(
        np.zeros(len(lists), int),
        np.concatenate(lists),
        np.tile(np.isin(np.arange(size), clicked), len(lists)),
        session_sizes=[size] * len(lists),
        team=None if teams is None else np.concatenate(teams),
        credit=np.concatenate([credit_rows(name, rankings, one) for one in lists]),
        interleaving=clicks.Interleaving(name, tuple("ABC"[: len(rankings)]), {"k": size}),
    )


def lists_of(name, rankings, k):
    """Return all lists of a method with their teams and probabilities."""
    if name == "optimised":
        made, ids = programme(rankings, k), Coded(rankings).ids
        return [
            (tuple(ids[d] for d in one), None, p)
            for one, p in zip(made.lists, made.probability, strict=True)
        ]
    found = twin.distribution(getattr(twin, name), rankings, k)
    shortest = min(map(len, rankings))
    return [(shown, with_credit(team, shortest) if name == "team_draft" else None, float(p))
            for (shown, team), p in found.items()]  # fmt: skip


def with_credit(team, shortest):
    """Return teams of a list, -1 below the shortest ranking."""
    return (*team[:shortest], *[-1] * len(team[shortest:]))
