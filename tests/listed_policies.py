"""Problems so small that every list and every click can be enumerated: exact expectations."""

from itertools import pairwise, permutations, product

import numpy as np

from rankwright.data.click_log import ClickLog
from rankwright.data.ranking_data import RankingData

SLOTS = 2
SCORES = np.array([0.2, 1.0, -0.3, 0.4, 0.0, 0.9, -1.0])  # of the logger, three and four documents
SIZES = (3, 4)
ATTRACTION = np.array([0.5, 0.1, 0.8, 0.3, 0.6, 0.2, 0.9])
EXAMINATION = np.array([1.0, 0.4])
SHARES = (0.4, 0.6)  # of sessions, by query


def pbm(rows):
    """Return the click probability at each slot, whatever was clicked above."""
    return lambda clicked: EXAMINATION[len(clicked)] * ATTRACTION[rows[len(clicked)]]


def cascade(rows):
    """Return it for users who stop at the first click, and like repetition of what is above."""

    def chance(clicked):
        near = 0.5 if len(clicked) and rows[0] % 2 == rows[len(clicked)] % 2 else 1.0
        return 0.0 if any(clicked) else near * ATTRACTION[rows[len(clicked)]]

    return chance


def lists_of(scores, lo, hi, temperature):
    """Return every list of a query with its probability, slot by slot given those above."""
    for rows in permutations(range(lo, hi), min(SLOTS, hi - lo)):
        chances, left = [], list(range(lo, hi))
        for row in rows:
            if temperature == 0.0:
                best = max(left, key=lambda d: (scores[d], -d))
                chances.append(float(row == best))
            else:
                rates = np.exp(scores[left] / temperature)
                chances.append(float(np.exp(scores[row] / temperature) / rates.sum()))
            left.remove(row)
        yield np.array(rows), np.array(chances)


def clicks_of(rows, user):
    """Return every pattern of clicks with its probability."""
    chance = user(rows)
    for clicked in product((0, 1), repeat=len(rows)):
        p = 1.0
        for at, click in enumerate(clicked):
            one = chance(clicked[:at])
            p *= one if click else 1.0 - one
        yield np.array(clicked), p


def value(scores, user, gain, *, temperature=0.0):
    """Return the expected metric of a policy."""
    total = 0.0
    for q, (lo, hi) in enumerate(bounds()):
        for rows, chances in lists_of(scores, lo, hi, temperature):
            for clicked, p in clicks_of(rows, user):
                total += SHARES[q] * np.prod(chances) * p * float(gain[: len(rows)] @ clicked)
    return total


def bounds():
    """Return the documents of each query."""
    ends = np.cumsum((0, *SIZES)).tolist()
    return list(pairwise(ends))


def whole_log(user, *, temperature=1.0, propensity="slot"):
    """Return the distribution of a log as a log: every session, weighted by its probability."""
    made = {"query": [], "document": [], "click": [], "weight": [], "propensity": []}
    for q, (lo, hi) in enumerate(bounds()):
        found = list(lists_of(SCORES, lo, hi, temperature))
        at_slot = np.zeros((len(SCORES), SLOTS))
        for rows, chances in found:
            at_slot[rows, np.arange(len(rows))] += np.prod(chances)
        for rows, chances in found:
            for clicked, p in clicks_of(rows, user):
                if np.prod(chances) * p == 0.0:
                    continue
                made["query"].append(q)
                made["weight"].append(1000.0 * SHARES[q] * np.prod(chances) * p)
                made["document"].append(rows)
                made["click"].append(clicked)
                slot = at_slot[rows, np.arange(len(rows))]
                made["propensity"].append(slot if propensity == "slot" else chances)
    sizes = [len(rows) for rows in made["document"]]
    features = RankingData.from_arrays(
        np.eye(len(SCORES)), np.zeros(len(SCORES)), group_sizes=SIZES,
        doc_id=np.arange(len(SCORES)),
    )  # fmt: skip
    return ClickLog.from_arrays(
        made["query"],
        np.concatenate(made["document"]),
        np.concatenate(made["click"]),
        session_sizes=sizes,
        weight=made["weight"],
        propensity=np.concatenate(made["propensity"]),
        features=features,
    )
