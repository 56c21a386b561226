"""IntervalRank's problem (6) as the paper writes it, one variable per document, in cvxpy."""

import contextlib
import math
import warnings
from itertools import pairwise

import cvxpy as cp
import numpy as np


def grades_of(y):
    """Documents of each grade present, grades rising."""
    return [np.flatnonzero(y == grade) for grade in np.unique(y)]


def penalty_sum(change, w, penalty, knee):
    if penalty == "squared":
        return cp.sum_squares(cp.multiply(np.sqrt(w), change)) / 2
    if penalty == "huber":
        return cp.sum(cp.multiply(w, cp.huber(change, knee))) / 2
    root = cp.norm(cp.vstack([np.ones(len(w)), change / knee]), axis=0)
    return knee**2 * cp.sum(cp.multiply(w, root - 1))


def optimum(s, y, w, lambda1, lambda2, *, penalty="squared", knee=1.0):
    """Value and corrected scores of (6); y are the targets, which show the grades.

    The solver sees scores near 0 and of size 1, where it is exact; the problem allows both.
    """
    middle, unit = (s.max() + s.min()) / 2, max(np.ptp(s), np.ptp(y))
    s, y, knee = (s - middle) / unit, y / unit, knee / unit
    grades = grades_of(y)
    z, eps, xi = cp.Variable(len(s)), cp.Variable(len(grades) - 1), cp.Variable(len(grades))
    cost, rules = penalty_sum(s - z, w, penalty, knee), []
    if lambda1 > 0:
        cost += price(lambda1, eps, rules)
        for g, (low, high) in enumerate(pairwise(grades)):
            i, j = (side.ravel() for side in np.meshgrid(high, low))
            rules.append(z[i] - z[j] >= y[high[0]] - y[low[0]] - eps[g])
    if lambda2 > 0:
        cost += price(lambda2, xi, rules)
        for g, members in enumerate(grades):
            i, j = (side.ravel() for side in np.meshgrid(members, members))
            rules.append(z[i] - z[j] <= xi[g])
    problem = cp.Problem(cp.Minimize(cost), rules)
    minimise(problem)
    return problem.value * unit**2, z.value * unit + middle


def minimise(problem):
    """Solve as exactly as Clarabel can."""
    for tolerance in (1e-12, 1e-10, 1e-8):
        exact = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), tolerance)
        with warnings.catch_warnings(), contextlib.suppress(cp.SolverError):
            warnings.filterwarnings("ignore", "Solution may be inaccurate")
            problem.solve(solver=cp.CLARABEL, **exact)
            if problem.status == cp.OPTIMAL:
                return
    raise AssertionError(f"Clarabel ended with status {problem.status}")


def price(strength, slack, rules):
    if math.isinf(strength):
        rules.append(slack == 0)
        return 0.0
    return strength / 2 * cp.sum_squares(slack)


def barrier_optimum(s, y, w, lambda1, lambda2, mu):
    """The least value of the log-barrier problem of Algorithm 2, all its variables kept."""
    grades = grades_of(y)
    count = len(grades)
    low, high, xi, eps = (cp.Variable(k) for k in (count, count, count, count - 1))
    cost = lambda1 / 2 * cp.sum_squares(eps) + lambda2 / 2 * cp.sum_squares(xi)
    for g, members in enumerate(grades):
        root = np.sqrt(w[members])
        cost += cp.sum_squares(cp.multiply(root, cp.pos(low[g] - s[members]))) / 2
        cost += cp.sum_squares(cp.multiply(root, cp.pos(s[members] - high[g]))) / 2
    margin = np.diff([y[members[0]] for members in grades])
    cost -= cp.sum(cp.log(high - low) + cp.log(low + xi - high)) / mu
    cost -= cp.sum(cp.log(low[1:] - high[:-1] - margin + eps)) / mu
    problem = cp.Problem(cp.Minimize(cost))
    minimise(problem)
    return problem.value


def kkt_residual(s, y, w, lambda1, lambda2, z):
    """How far corrected scores are from the optimality conditions of the reduced form (10).

    Forces on the ends of the intervals [min z, max z] must balance, or press a closed interval
    together. In units of weight times score.
    """
    grades = grades_of(y)
    low = np.array([z[members].min() for members in grades])
    high = np.array([z[members].max() for members in grades])
    margin = np.diff([y[members[0]] for members in grades])
    missed = np.maximum(margin - (low[1:] - high[:-1]), 0.0)
    up, down = np.zeros(len(grades)), np.zeros(len(grades))  # forces on low and on high
    up[1:] += lambda1 * missed
    down[:-1] += lambda1 * missed
    worst = 0.0
    for g, members in enumerate(grades):
        v, m = s[members], w[members]
        worst = max(worst, np.abs(z[members] - np.clip(v, low[g], high[g])).max())
        width = lambda2 * (high[g] - low[g])
        on_low = up[g] + width - (m * np.maximum(low[g] - v, 0.0)).sum()
        on_high = (m * np.maximum(v - high[g], 0.0)).sum() - down[g] - width
        if high[g] - low[g] > 1e-12 * max(np.abs(s).max(), np.abs(z).max(), np.ptp(y)):
            worst = max(worst, abs(on_low), abs(on_high))
        else:
            apart = max(0.0, on_high) if lambda2 < math.inf and len(members) > 1 else 0.0
            worst = max(worst, abs(on_low + on_high), apart)
    return worst
