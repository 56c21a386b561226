"""Interleaved lists for tests: rankings, all lists of a method, logs of them."""

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
    """Rankings as methods take them: documents are numbers."""

    def __init__(self, rankings):
        self.ids = list(dict.fromkeys(d for ranking in rankings for d in ranking))
        self.numbers = [[self.ids.index(d) for d in ranking] for ranking in rankings]

    def list_of(self, name, u, k):
        """Return the list and teams that a method makes of the random numbers u."""
        choice = interleaving.METHODS[name](k=k).choose(self.numbers, iter(u))
        return tuple(self.ids[d] for d in choice.documents), tuple(choice.teams)


def cells(n):
    """Return the middles of n equal parts of [0, 1)."""
    return [(i + 0.5) / n for i in range(n)]


def drawn_distribution(name, rankings, k):
    """Return the exact distribution of (list, teams) of a method whose choices are even.

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


def programme(rankings, k, max_lists=2048):
    """Return the linear program of optimised interleaving."""
    return interleaving.solve_programme(Coded(rankings).numbers, k, max_lists)


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
    return made.credit[:, :, 0] - made.credit[:, :, 1]


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
