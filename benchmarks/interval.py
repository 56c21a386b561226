"""IntervalRank's loss against sorting the same scores, and against a generic QP solver.

Scores are new each time, and the loss starts without a memory of the last. The QP solver gets the
paper's problem (6) as it is written, a constraint for every pair of documents; and, as a figure
that is only reported, reformulated with the interval ends as variables (Lemma 3).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import cvxpy as cp
import numpy as np

from rankwright.data.ranking_data import RankingData
from rankwright.losses.interval import Interval

from .contest import version
from .findings import OURS, Findings, Record
from .timing import seconds_of

SHARES = np.array([0.5, 0.3, 0.15, 0.04, 0.01])
LOSSES = [Interval(1.0, 1.0), Interval(0.1, 0.1, scale_by_size=True), Interval(scale_by_size=True)]


def run() -> Findings:
    rng = np.random.default_rng(0)
    found = Findings()
    figures = found.figures
    for n in (1_000, 3_000, 10_000, 100_000, 1_000_000):
        figures[f"interval_vs_argsort_{n}"] = max(_against_argsort(n, x, rng) for x in LOSSES)
    figures["interval_vs_argsort_worst"] = max(figures.values())
    for name, what, rules, repeats in (
        ("interval_vs_clarabel", "a constraint per pair", _pair_rules, 1),
        ("interval_vs_clarabel_reduced", "interval ends as variables", _end_rules, 5),
    ):
        ours, theirs = _against_clarabel(1_000, rng, rules, repeats=repeats)
        figures[name] = theirs / ours
        task = f"IntervalRank's inner problem, 1,000 documents, {what}"
        found.records += [
            Record(task, OURS, version("rankwright"), "value and gradient, 1 thread", ours),
            Record(
                task, "Clarabel", version("clarabel"), f"by cvxpy {version('cvxpy')}", theirs,
                same="the same value within 1e-5",
            ),
        ]  # fmt: skip
    figures["interval_queries_vs_argsort"] = _against_many_sorts(10_000, 120, rng)
    return found


def _query(n: int, rng: np.random.Generator) -> RankingData:
    y = rng.choice(len(SHARES), n, p=SHARES).astype(float)
    y[:2] = 0.0, 1.0
    return RankingData.from_arrays(np.zeros((n, 1)), y, group_sizes=[n])


def _against_argsort(n: int, loss: Interval, rng: np.random.Generator) -> float:
    data, grad = _query(n, rng), np.empty(n)
    ours, sort = [], []
    loss.bind(data).grad(rng.normal(size=n), grad)
    for _ in range(max(5, min(200, 1_000_000 // n))):
        bound, s = loss.bind(data, n_jobs=1), rng.normal(size=n)
        sort.append(seconds_of(np.argsort, s))
        ours.append(seconds_of(bound.grad, s, grad))
    return float(np.median(ours) / np.median(sort))


def _against_many_sorts(queries: int, n: int, rng: np.random.Generator) -> float:
    """Return how lists of usual length compare with one argsort of each, all in one thread."""
    y = rng.choice(len(SHARES), queries * n, p=SHARES).astype(float)
    data = RankingData.from_arrays(np.zeros((len(y), 1)), y, group_sizes=np.full(queries, n))
    bound, grad = Interval(scale_by_size=True).bind(data, n_jobs=1), np.empty(len(y))
    ours, sort = [], []
    s = rng.normal(size=len(y))
    bound.grad(s, grad)
    for _ in range(5):
        s += 0.05 * rng.normal(size=len(y))
        sort.append(seconds_of(np.argsort, s.reshape(queries, n)))
        ours.append(seconds_of(bound.grad, s, grad))
    return float(np.median(ours) / np.median(sort))


def _against_clarabel(
    n: int, rng: np.random.Generator, rules: Callable[..., list[cp.Constraint]], *, repeats: int
) -> tuple[float, float]:
    """Return the seconds of ours and of Clarabel."""
    data, grad = _query(n, rng), np.empty(n)
    loss = Interval(1.0, 1.0, targets="linear")
    loss.bind(data).grad(rng.normal(size=n), grad)
    ours, generic = [], []
    for _ in range(repeats):
        s = rng.normal(size=n)
        bound = [loss.bind(data, n_jobs=1) for _ in range(21)]
        ours += [seconds_of(fresh.grad, s, grad) for fresh in bound]
        values: list[float] = []
        generic.append(seconds_of(lambda s=s, v=values: v.append(_clarabel(s, data.y, rules))))
        assert abs(loss.bind(data).value(s) - values[0]) < 1e-5 * values[0]
    return float(np.median(ours)), float(np.median(generic))


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
