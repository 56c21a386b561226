"""IntervalRank's loss against sorting the same scores, and against a generic QP solver.

Scores are new each time, and the loss starts without a memory of the last. The QP solver gets the
paper's problem (6) as it is written, a constraint for every pair of documents; and, as a figure
that is only reported, reformulated with the interval ends as variables (Lemma 3).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise

import cvxpy as cp
import numpy as np

from rankwright.data.ranking_data import RankingData
from rankwright.losses.interval import Interval

SHARES = np.array([0.5, 0.3, 0.15, 0.04, 0.01])
LOSSES = [Interval(1.0, 1.0), Interval(0.1, 0.1, scale_by_size=True), Interval(scale_by_size=True)]


def run() -> dict[str, float]:
    rng = np.random.default_rng(0)
    figures = {}
    for n in (1_000, 3_000, 10_000, 100_000, 1_000_000):
        figures[f"interval_vs_argsort_{n}"] = max(_against_argsort(n, x, rng) for x in LOSSES)
    figures["interval_vs_argsort_worst"] = max(figures.values())
    figures["interval_vs_clarabel"] = _against_clarabel(1_000, rng, _pair_rules, repeats=1)
    figures["interval_vs_clarabel_reduced"] = _against_clarabel(1_000, rng, _end_rules, repeats=5)
    figures["interval_queries_vs_argsort"] = _against_many_sorts(10_000, 120, rng)
    return figures


def _query(n: int, rng: np.random.Generator) -> RankingData:
    y = rng.choice(len(SHARES), n, p=SHARES).astype(float)
    y[:2] = 0.0, 1.0
    return RankingData.from_arrays(np.zeros((n, 1)), y, group_sizes=[n])


def _against_argsort(n: int, loss: Interval, rng: np.random.Generator) -> float:
    data, grad = _query(n, rng), np.empty(n)
    ours, sort = [], []
    loss.bind(data).grad(rng.normal(size=n), grad)
    for _ in range(max(5, min(200, 1_000_000 // n))):
        bound, s = loss.bind(data, n_threads=1), rng.normal(size=n)
        sort.append(_seconds(np.argsort, s))
        ours.append(_seconds(bound.grad, s, grad))
    return float(np.median(ours) / np.median(sort))


def _against_many_sorts(queries: int, n: int, rng: np.random.Generator) -> float:
    """Return how lists of usual length compare with one argsort of each, all in one thread."""
    y = rng.choice(len(SHARES), queries * n, p=SHARES).astype(float)
    data = RankingData.from_arrays(np.zeros((len(y), 1)), y, group_sizes=np.full(queries, n))
    bound, grad = Interval(scale_by_size=True).bind(data, n_threads=1), np.empty(len(y))
    ours, sort = [], []
    s = rng.normal(size=len(y))
    bound.grad(s, grad)
    for _ in range(5):
        s += 0.05 * rng.normal(size=len(y))
        sort.append(_seconds(np.argsort, s.reshape(queries, n)))
        ours.append(_seconds(bound.grad, s, grad))
    return float(np.median(ours) / np.median(sort))


def _against_clarabel(
    n: int, rng: np.random.Generator, rules: Callable[..., list[cp.Constraint]], *, repeats: int
) -> float:
    data, grad = _query(n, rng), np.empty(n)
    loss = Interval(1.0, 1.0, targets="linear")
    loss.bind(data).grad(rng.normal(size=n), grad)
    ours, generic = [], []
    for _ in range(repeats):
        s = rng.normal(size=n)
        bound = [loss.bind(data, n_threads=1) for _ in range(21)]
        ours += [_seconds(fresh.grad, s, grad) for fresh in bound]
        start = time.perf_counter()
        value = _clarabel(s, data.y, rules)
        generic.append(time.perf_counter() - start)
        assert abs(loss.bind(data).value(s) - value) < 1e-5 * value
    return float(np.median(generic) / np.median(ours))


def _clarabel(s: np.ndarray, y: np.ndarray, rules: Callable[..., list[cp.Constraint]]) -> float:
    """Return the optimum of (6) with both lambdas 1."""
    targets = np.unique(y)
    z, eps, xi = cp.Variable(len(s)), cp.Variable(len(targets) - 1), cp.Variable(len(targets))
    cost = (cp.sum_squares(z - s) + cp.sum_squares(eps) + cp.sum_squares(xi)) / 2
    problem = cp.Problem(cp.Minimize(cost), rules(y, targets, z, eps, xi))
    return float(problem.solve(solver=cp.CLARABEL))


def _pair_rules(y, targets, z, eps, xi):
    grades = [np.flatnonzero(y == target) for target in targets]
    rules = []
    for g, (low, high) in enumerate(pairwise(grades)):
        i, j = (side.ravel() for side in np.meshgrid(high, low))
        rules.append(z[i] - z[j] >= targets[g + 1] - targets[g] - eps[g])
    for g, members in enumerate(grades):
        i, j = (members[side] for side in np.triu_indices(len(members), 1))
        if len(i):
            rules.append(cp.abs(z[i] - z[j]) <= xi[g])
    return rules


def _end_rules(y, targets, z, eps, xi):
    grade = np.searchsorted(targets, y)
    low, high = cp.Variable(len(targets)), cp.Variable(len(targets))
    apart = low[1:] - high[:-1] >= np.diff(targets) - eps
    return [z >= low[grade], z <= high[grade], high - low <= xi, apart]


def _seconds(function: Callable[..., object], *args: object) -> float:
    start = time.perf_counter()
    function(*args)
    return time.perf_counter() - start
