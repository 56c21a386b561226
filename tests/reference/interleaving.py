"""Interleaving by enumeration: every list with its probability, and credit by its definition."""

from collections import Counter
from fractions import Fraction
from itertools import combinations, product


def rank_in(ranking, document):
    """Return the rank from 1, None where the document is absent."""
    return ranking.index(document) + 1 if document in ranking else None


def team_draft(rankings, shown, teams):
    able = [j for j, one in enumerate(rankings) if set(one) - set(shown)]
    fewest = min(teams.count(j) for j in able)
    tied = [j for j in able if teams.count(j) == fewest]
    return [
        (Fraction(1, len(tied)), next(d for d in rankings[j] if d not in shown), j) for j in tied
    ]


def drawn_from(ranking, shown, tau):
    """Return the probability of each document that is left."""
    weight = {d: float(r + 1) ** -tau for r, d in enumerate(ranking) if d not in shown}
    total = sum(weight.values())
    return {d: one / total for d, one in weight.items()}


def probabilistic(rankings, shown, _teams, tau=3.0):
    able = [one for one in rankings if set(one) - set(shown)]
    found = Counter()
    for one in able:
        for d, p in drawn_from(one, shown, tau).items():
            found[d] += p / len(able)
    return [(p, d, None) for d, p in found.items()]


def distribution(choices, rankings, k):
    """Return the probability of each (list, teams)."""
    size = min(k, len({d for one in rankings for d in one}))
    found = {((), ()): 1}
    for _ in range(size):
        longer = Counter()
        for (shown, teams), p in found.items():
            for share, d, j in choices(rankings, shown, teams):
                longer[(*shown, d), (*teams, j)] += p * share
        found = longer
    return dict(found)


def allowed(rankings, k):
    """Return the lists that take the best document left of some ranker at each position."""
    found = {()}
    for _ in range(min(k, len({d for one in rankings for d in one}))):
        found = {
            (*shown, next(d for d in one if d not in shown))
            for shown in found
            for one in rankings
            if set(one) - set(shown)
        }
    return found


# --- credit ----------------------------------------------------------------------------------


def shares(rankings, shown, tau=3.0):
    """Return the probability, for each document shown, that each ranker gave it."""
    rows = []
    for i, d in enumerate(shown):
        odds = [
            drawn_from(one, shown[:i], tau).get(d, 0.0) if set(one) - set(shown[:i]) else 0.0
            for one in rankings
        ]
        rows.append([one / sum(odds) for one in odds])
    return rows


def assignments(rankings, shown, clicked, tau=3.0):
    """Yield each way in which rankers may have given what was clicked, with its probability."""
    rows = shares(rankings, shown, tau)
    for who in product(range(len(rankings)), repeat=len(clicked)):
        p = 1.0
        for c, j in zip(clicked, who, strict=True):
            p *= rows[c][j]
        yield who, p


def every_click(n):
    """Yield each set of positions, from 0."""
    for size in range(n + 1):
        yield from combinations(range(n), size)
