"""Slow twins of the metrics: one list of grades in rank order, formulas as in the textbook.

Each takes the grades ``g`` from the first rank to the last and their scores ``s`` (descending), the
cut-off and the metric's parameters, under the clauses of the standard convention. None: there is
nothing to find in this query.
"""

from itertools import combinations, pairwise, permutations
from math import inf, log2, sqrt

import numpy as np

from rankwright.metrics.swap import change, prepare


def dcg(g, s, k=None, gain="exp2", discount="log2"):
    weight = {
        "log2": lambda r: 1 / log2(r + 1),
        "letor": lambda r: 1 if r <= 2 else 1 / log2(r),
        "reciprocal": lambda r: 1 / r,
    }[discount]
    earned = [2**x - 1 if gain == "exp2" else x for x in g]
    return sum(b * weight(r) for r, b in enumerate(earned[:k], 1)) if any(g) else None


def ndcg(g, s, k=None, **rules):
    return dcg(g, s, k, **rules) / dcg(sorted(g)[::-1], s, k, **rules) if any(g) else None


def _relevant(g, min_grade=1):
    return [x >= min_grade for x in g]


def p(g, s, k=None, min_grade=1):
    rel = _relevant(g, min_grade)
    return sum(rel[:k]) / (k or len(g)) if any(rel) else None


def recall(g, s, k=None, min_grade=1):
    rel = _relevant(g, min_grade)
    return sum(rel[:k]) / sum(rel) if any(rel) else None


def f1(g, s, k=None, min_grade=1):
    a, b = p(g, s, k, min_grade), recall(g, s, k, min_grade)
    if a is None:
        return None
    return 2 * a * b / (a + b) if a + b else 0.0


def rprec(g, s, min_grade=1):
    R = sum(_relevant(g, min_grade))
    return p(g, s, R, min_grade) if R else None


def hit(g, s, k=None, min_grade=1):
    rel = _relevant(g, min_grade)
    return float(any(rel[:k])) if any(rel) else None


def best(g, s, k=None):
    return max(g[:k]) if any(g) else None


def map(g, s, k=None, min_grade=1):  # noqa: A001
    rel = _relevant(g, min_grade)
    if not any(rel):
        return None
    return sum(sum(rel[: r + 1]) / (r + 1) for r in range(len(g))[:k] if rel[r]) / sum(rel)


def mrr(g, s, k=None, min_grade=1):
    rel = _relevant(g, min_grade)
    if not any(rel):
        return None
    return 1 / (rel.index(True) + 1) if any(rel[:k]) else 0.0


def err(g, s, k=None, max=4):  # noqa: A002
    if not any(g):
        return None
    total, going_on = 0.0, 1.0
    for r, x in enumerate(g[:k], 1):
        stop = (2**x - 1) / 2**max
        total += going_on * stop / r
        going_on *= 1 - stop
    return total


def gm_map(g, s, k=None, min_grade=1):
    return map(g, s, k, min_grade)  # the mean over queries is another one


def iprec(g, s, recall=None, min_grade=1):
    rel = _relevant(g, min_grade)
    if not any(rel):
        return None

    def at(level):
        needed = int(level * sum(rel) + 0.9)
        precisions = [sum(rel[:r]) / r for r in range(1, len(g) + 1) if sum(rel[:r]) >= needed]
        return max(precisions, default=0.0)

    return at(recall) if recall is not None else sum(at(x / 10) for x in range(11)) / 11


def num_ret(g, s):
    return len(g)


def num_rel(g, s, min_grade=1):
    return sum(_relevant(g, min_grade))


def num_rel_ret(g, s, k=None, min_grade=1):
    return sum(_relevant(g, min_grade)[:k])


def judged(g, s, k=None):
    return 1.0  # outside of runs all documents are judged


def coverage_error(g, s, min_grade=1):
    relevant = [x for x, rel in zip(s, _relevant(g, min_grade), strict=True) if rel]
    return sum(x >= min(relevant) for x in s) if relevant else None


def novelty(J, alpha, divisor):
    """Sum of gains over ranks, which fall with the documents above on the same subtopic."""
    topics = range(len(J[0]) if J else 0)
    return sum(
        J[r][t] * (1 - alpha) ** sum(J[i][t] for i in range(r)) / divisor(r + 1)
        for r in range(len(J))
        for t in topics
    )


def greedy(J, alpha):
    """The best list of subtopics by row: the document with the largest gain comes next."""
    ranked, rest = [], list(J)
    while rest:
        gains = [novelty([*ranked, row], alpha, lambda r: 1) for row in rest]
        ranked.append(rest.pop(gains.index(max(gains))))
    return ranked


def alpha_ndcg(g, s, k=None, alpha=0.5, subtopics=None):
    J = [[rel] for rel in _relevant(g)] if subtopics is None else subtopics
    if not np.any(J):
        return None
    sums = [novelty(rows[:k], alpha, lambda r: log2(r + 1)) for rows in (J, greedy(J, alpha))]
    return sums[0] / sums[1]


def err_ia(g, s, k=None, alpha=0.5, subtopics=None):
    J = [[rel] for rel in _relevant(g)] if subtopics is None else subtopics
    T = np.any(J, axis=0).sum()
    if not T:
        return None
    ideal = sum(T * (1 - alpha) ** (r - 1) / r for r in range(1, (k or len(J)) + 1))
    return novelty(J[:k], alpha, lambda r: r) / ideal


def p_ia(g, s, k=None, min_grade=1, subtopics=None):
    J = [[rel] for rel in _relevant(g, min_grade)] if subtopics is None else subtopics
    T = np.any(J, axis=0).sum()
    return np.sum(J[:k]) / ((k or len(J)) * T) if T else None


def rbp(g, s, k=None, p=0.8, min_grade=1):
    rel = _relevant(g, min_grade)
    return (1 - p) * sum(p**r for r in range(len(g))[:k] if rel[r]) if any(rel) else None


def eru(g, s, k=None, alpha=5, d=0, normalised=False):
    def sum_of(grades):
        return sum(2 ** (-r / (alpha - 1)) * max(x - d, 0) for r, x in enumerate(grades[:k]))

    if max(g) <= d:
        return None
    return sum_of(g) / (sum_of(sorted(g)[::-1]) if normalised else 1)


def wta(g, s, modified=False):
    if not any(g):
        return None
    if not modified:
        return float(g[0] == max(g))
    ideal = sorted(g)[::-1]
    if len(set(ideal[:3])) > 1:
        return ndcg(g, s, 3)
    lower = [r for r, x in enumerate(ideal, 1) if x < ideal[0]]
    return ndcg(g, s, lower[0] if lower else len(g))


def bpref(g, s, min_grade=1):
    rel = _relevant(g, min_grade)
    R, N = sum(rel), len(rel) - sum(rel)
    if not R:
        return None
    cost = [min(rel[:r].count(False), R) / min(R, N) for r in range(len(g)) if rel[r] and N]
    return (R - sum(cost)) / R


def _pairs(g, s):
    """(grade difference, score difference) of all pairs, the first never negative."""
    ranks = range(len(g))
    both = [(g[i] - g[j], s[i] - s[j]) for i in ranks for j in ranks if i < j]
    return [(x, y) if x >= 0 else (-x, -y) for x, y in both]


def auc(g, s, min_grade=1):
    pairs = [y for x, y in _pairs(_relevant(g, min_grade), s) if x]
    return sum(0.5 if y == 0 else float(y > 0) for y in pairs) / len(pairs) if pairs else None


def pair_error(g, s):
    pairs = [y for x, y in _pairs(g, s) if x]
    return sum(0.5 if y == 0 else float(y < 0) for y in pairs) / len(pairs) if pairs else None


def kendall(g, s):
    pairs = _pairs(g, s)
    graded, scored = sum(x > 0 for x, _ in pairs), sum(y != 0 for _, y in pairs)
    if not graded or not scored:
        return None
    concordant = sum((y > 0) - (y < 0) for x, y in pairs if x)
    return concordant / sqrt(graded * scored)


def domination_error(g, s):
    docs = range(len(g))
    dominating = [i for i in docs if g[i] > min(g)]
    if not dominating:
        return None
    wrong = [any(g[j] < g[i] and s[j] > s[i] for j in docs) for i in dominating]
    return sum(wrong) / len(wrong)


def orders_of_ties(g, s):
    """All rankings by ``s`` (in any order), equal scores in every order: grades by rank."""
    for order in permutations(range(len(g))):
        if all(s[a] >= s[b] for a, b in pairwise(order)):
            yield [g[i] for i in order]


def by_score(g, s):
    """Grades and scores in rank order, equal scores as they came."""
    order = sorted(range(len(g)), key=lambda i: -s[i] if s[i] > -inf else inf)
    return [g[i] for i in order], [s[i] for i in order]


def changes_by_swaps(form, rows, query):
    """What each swap of two ranks of a query changes, asked of the kernels pair by pair."""
    gains, cut, n = form.gain[rows], form.cut[query], len(rows)
    u, v, out = np.empty(n + 1), np.empty(n + 1), np.zeros((n, n))
    prepare(form.kind, gains, cut, u, v)
    for i, j in combinations(range(n), 2):
        moved = change(form.kind, i, j, gains, form.weight, cut, u, v)
        out[i, j] = out[j, i] = abs(moved) * form.scale[query]
    return out
