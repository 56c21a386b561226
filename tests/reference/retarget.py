"""Retargeting of one query, twice: by the max-min formula over all pools, and in cvxpy.

`retarget` is the slow twin of the loss. `optimum` knows neither sorting nor pooling: every document
of a grade against every one of the grade below.
"""

from itertools import pairwise
from math import exp, log

import cvxpy as cp
import numpy as np
from reference.interval import grades_of, minimise
from scipy.optimize import brentq


def targets_of(loss, y):
    if loss.targets == "gain":
        return 2.0**y - 1
    return y.copy() if loss.targets == "linear" else np.array(loss.targets)[y.astype(int)]


def level_is_free(loss):
    if loss.divergence == "kl":
        return loss.domain == "simplex"
    return loss.floor is None if loss.intercept is None else loss.intercept


def margins_below(loss, y, w):
    """The margin between each grade present and the next lower one, grades rising."""
    grades = grades_of(y)
    target = targets_of(loss, y)
    found = []
    for low, high in pairwise(grades):
        rank = w[y >= y[high[0]]].sum()
        steps = {
            "grade": target[high[0]] - target[low[0]],
            "large": target[high[0]] - target[low[0]],
            "none": 0.0,
            "constant": 1.0,
            "sqrt": rank**-0.5,
            "power": rank**-loss.power,
        }
        found.append(loss.size * steps[loss.margin])
    return found


def log_normalised(x, w):
    return x - max(x) - log((w * np.exp(x - max(x))).sum())


# --- the twin ----------------------------------------------------------------------------------


def max_min(n, level):
    """x_k = max over i <= k of min over j >= k of the level of the pool i .. j."""
    pool = {(i, j): level(i, j) for i in range(n) for j in range(i, n)}
    return np.array(
        [max(min(pool[i, j] for j in range(k, n)) for i in range(k + 1)) for k in range(n)]
    )


def mean_levels(u, w):
    return max_min(len(u), lambda i, j: np.average(u[i : j + 1], weights=w[i : j + 1]))


def additive_levels(y, w, d):
    def level(i, j):
        part = slice(i, j + 1)
        known = (w[part] * y[part]).sum()

        def miss(t):
            return (w[part] * np.log(exp(t) + (d[part] - d[i]))).sum() - known

        return exp(brentq(miss, -600, 100, xtol=1e-14)) - d[i]

    return max_min(len(y), level)


def running(loss, y, w):
    """d and the reward of each place; places have grades rising."""
    n, d, reward = len(y), np.zeros(len(y)), np.zeros(len(y))
    steps = margins_below(loss, y, w)
    if loss.within_grade and loss.margin in ("constant", "sqrt", "power"):
        power = {"constant": 0.0, "sqrt": 0.5, "power": loss.power}[loss.margin]
        return np.cumsum([0.0, *(loss.size / (n - p) ** power for p in range(1, n))]), reward
    for step, high in zip(steps, grades_of(y)[1:], strict=True):
        if loss.margin == "large":
            reward[high[0]] += step
            reward[high[0] - 1] -= step
        else:
            d[high[0] :] += step
    return d, reward


def project_square(loss, s, y, w):
    q = targets_of(loss, y)
    d, reward = running(loss, y, w)
    alpha = 1 / (1 + loss.C_r)
    x = mean_levels(alpha * (s + reward / w) + (1 - alpha) * q - d, w)
    return np.maximum(x, -np.inf if loss.floor is None else loss.floor) + d


def project_kl(loss, known, y, w):
    """log r for the deflected scores ``known``."""
    d, reward = running(loss, y, w)
    known = known + reward / w / (1 + loss.C_r)
    floor = loss.floor or 0.0

    def at(shift):
        if loss.kl_margin == "additive":
            return np.log(np.maximum(additive_levels(known + shift, w, d), floor) + d)
        tilt = np.exp(d) if loss.kl_margin == "ratio" else np.ones(len(d))
        x = mean_levels(known + shift - d, w * tilt)
        return np.maximum(x, log(floor) if floor else -np.inf) + d

    if loss.domain == "cone":
        return at(0.0)
    return at(brentq(lambda shift: log((w * np.exp(at(shift))).sum()), -20, 20, xtol=1e-13))


def retarget(loss, s, y, w, **_):
    order = np.lexsort((np.arange(len(s)), w if loss.within_grade else 0 * w, s, y))
    value, grad = sorted_retarget(loss, s[order], y[order], w[order])
    if loss.within_grade:
        kind = np.stack([y, s, w])[:, order]
        grad = np.array([grad[(kind == one[:, None]).all(axis=0)].mean() for one in kind.T])
    back = np.empty(len(s))
    back[order] = grad
    scale = w.sum() ** -loss.query_weight_exponent
    return scale * value, scale * back


def sorted_retarget(loss, s, y, w):
    q, reward = targets_of(loss, y), running(loss, y, w)[1]
    height = s - np.average(s, weights=w) if level_is_free(loss) else s
    alpha = 1 / (1 + loss.C_r)
    if loss.divergence == "square":
        if level_is_free(loss) and loss.C_r:  # the offset at which nothing pushes any more

            def push(b):
                return (w * (s + b - project_square(loss, s + b, y, w))).sum()

            s = s + brentq(push, -100, 100, xtol=1e-14)
        r = project_square(loss, s, y, w)
        value = (w * ((r - s) ** 2 + loss.C_r * (r - q) ** 2)).sum() / 2
        grad = w * (s - r)
    else:
        simplex = loss.domain == "simplex"
        s, q = (log_normalised(x, w) if simplex else x for x in (s, q))
        log_r = project_kl(loss, alpha * s + (1 - alpha) * q, y, w)
        r = np.exp(log_r)
        value = sum(
            c * (w * (r * (log_r - x) - r + np.exp(x))).sum() for c, x in ((1, s), (loss.C_r, q))
        )
        grad = w * (np.exp(s) - r)
    value += loss.C_w / 2 * (w * height**2).sum() - (reward * r).sum()
    return value, grad + loss.C_w * w * height


# --- cvxpy -------------------------------------------------------------------------------------


def optimum(loss, s, y, w):
    """Value and targets r of one query, without C_w and query weights."""
    q, grades = targets_of(loss, y), grades_of(y)
    r, rules = cp.Variable(len(s)), []
    if loss.divergence == "square":
        offset = cp.Variable() if level_is_free(loss) else 0.0
        cost = cp.sum_squares(cp.multiply(np.sqrt(w), r - s - offset)) / 2
        cost += loss.C_r / 2 * cp.sum_squares(cp.multiply(np.sqrt(w), r - q))
    else:
        if loss.domain == "simplex":
            s, q = log_normalised(s, w), log_normalised(q, w)
            rules.append(w @ r == 1)
        cost = w @ cp.kl_div(r, np.exp(s)) + loss.C_r * (w @ cp.kl_div(r, np.exp(q)))
    ratio = loss.divergence == "kl" and loss.kl_margin == "ratio"
    for t, low, high in zip(margins_below(loss, y, w), grades[:-1], grades[1:], strict=True):
        i, j = (side.ravel() for side in np.meshgrid(high, low))
        if loss.margin == "large":
            rules.append(r[i] >= r[j])
            cost -= t * (cp.min(r[high]) - cp.max(r[low]))
        else:
            rules.append(r[i] >= exp(t) * r[j] if ratio else r[i] - r[j] >= t)
    if loss.floor is not None:
        rules.append(r >= loss.floor)
    problem = cp.Problem(cp.Minimize(cost), rules)
    minimise(problem)
    return problem.value, r.value
