"""Slow twins of the losses: one query, sums written out over documents and pairs.

``TWINS[name](loss, s, y, w)`` returns value and gradient of a query with scores ``s``, grades ``y``
and document weights ``w``; noise comes as ``place=(round, query)``. A query of one grade is never
asked for: it contributes nothing, by definition.
"""

from itertools import combinations, permutations, product
from math import exp, expm1, log, log1p, log2

import numpy as np
from reference import metrics
from reference.all_threshold import all_threshold
from reference.approx_ndcg import approx_ndcg
from reference.boltzrank import boltzrank
from reference.domination import domination
from reference.dual_softmax import dual_softmax
from reference.fidelity import fidelity
from reference.gain_lists import gains_and_discounts
from reference.hashing import mixed
from reference.interval import optimum
from reference.listnet import listnet
from reference.ndcg_glm import ndcg_glm
from reference.neural_ndcg import neural_ndcg
from reference.pair_exp import pair_exp
from reference.pair_hinge import pair_hinge
from reference.position_svm import position_svm, precision_svm, rocarea_svm
from reference.rank_cosine import rank_cosine
from reference.retarget import retarget
from reference.soft_zero_one import soft_zero_one
from reference.softrank import softrank

from rankwright.core.parameters import part_name, resolve_part


def targets_of(loss, y):
    if loss.targets == "gain":
        return 2.0**y - 1
    return y.copy() if loss.targets == "linear" else np.array(loss.targets)[y.astype(int)]


def calibrated(loss, s, y, w, value, grad):
    error = s - targets_of(loss, y)
    return value + loss.calibration / 2 * (w * error**2).sum(), grad + loss.calibration * w * error


def squared(loss, s, y, w, **_):
    error = s - targets_of(loss, y)
    return (w * error**2).sum() / 2, w * error


def query_offset(loss, s, y, w, **_):
    error = s - targets_of(loss, y)
    error = error - (w * error).sum() / w.sum()
    return (w * error**2).sum() / 2, w * error


def interval(loss, s, y, w, **_):
    n = w.sum() if loss.scale_by_size else 1.0
    target = targets_of(loss, y)
    value, z = optimum(s, target, w, loss.lambda1 * n, loss.lambda2 * n)
    return calibrated(loss, s, y, w, value, w * (s - z))


def gbrank(loss, s, y, w, **_):
    value, grad = 0.0, np.zeros(len(s))
    target = targets_of(loss, y)
    for i, j in permutations(range(len(s)), 2):
        pair = w[i] * w[j]
        if y[i] > y[j]:
            miss = max(target[i] - target[j] - s[i] + s[j], 0.0)
            value += pair * miss**2
            grad[i] -= 2 * pair * miss
            grad[j] += 2 * pair * miss
        elif y[i] == y[j]:
            value += loss.lambda1 * pair * (s[i] - s[j]) ** 2
            grad[i] += 2 * loss.lambda1 * pair * (s[i] - s[j])
            grad[j] -= 2 * loss.lambda1 * pair * (s[i] - s[j])
    return calibrated(loss, s, y, w, value, grad)


def log_sum_exp(s, w):
    top = max(x for x, m in zip(s, w, strict=True) if m > 0)
    return top + log(sum(m * exp(x - top) for x, m in zip(s, w, strict=True) if m > 0))


def listmle(loss, s, y, w, **_):
    value, grad = 0.0, np.zeros(len(s))
    n = len(s)
    by_rank = np.array([2.0 ** (n - rank) - 1 for rank in range(1, n + 1)]) / (2.0**n - 1 - n)
    for i in range(n):
        not_above = y <= y[i]
        if w[i] == 0:
            continue
        first, last = (y > y[i]).sum(), (y >= y[i]).sum()  # ranks of this grade
        factor = w[i] * (by_rank[first:last].mean() if loss.position_aware else 1.0)
        whole = log_sum_exp(s[not_above], w[not_above])
        value += factor * (whole - s[i])
        grad[i] -= factor
        for j in np.flatnonzero(not_above & (w > 0)):
            grad[j] += factor * w[j] * exp(s[j] - whole)
    return calibrated(loss, s, y, w, value, grad)


def logistic(x):
    """log(1 + exp(-x)) and its derivative."""
    value = log1p(exp(-x)) if x > 0 else -x + log1p(exp(x))
    return value, expm1(-value)  # -1/(1 + exp(x)) = exp(-value) - 1


def logistic_pairs(sigma, s, y, pair_weight):
    value, grad = 0.0, np.zeros(len(s))
    for i, j in permutations(range(len(s)), 2):
        if y[i] > y[j]:
            loss, gradient = logistic(sigma * (s[i] - s[j]))
            value += pair_weight[i, j] * loss
            grad[i] += sigma * pair_weight[i, j] * gradient
            grad[j] -= sigma * pair_weight[i, j] * gradient
    return value, grad


def ranknet(loss, s, y, w, **_):
    pair_weight = np.outer(w, w) * np.minimum(np.abs(np.subtract.outer(y, y)), 1.0)
    if loss.normalize:
        pair_weight = pair_weight / pair_weight[y[:, None] > y].sum()
    return logistic_pairs(loss.sigma, s, y, pair_weight)


def cross_entropy(s, w, shares):
    whole = log_sum_exp(s, w)
    softmax = np.array([m * exp(x - whole) if m else 0.0 for x, m in zip(s, w, strict=True)])
    return (shares * (whole - s)).sum(), shares.sum() * softmax - shares, softmax


def softmax(_loss, s, y, w, **_):
    return cross_entropy(s, w, w * y)[:2]


def unique_softmax(_loss, s, y, w, **_):
    value, grad = 0.0, np.zeros(len(s))
    for i in range(len(s)):
        others = np.where(y < y[i], w, 0.0)
        others[i] = 1.0
        gain = w[i] * (2.0 ** y[i] - 1)
        shares = np.where(np.arange(len(s)) == i, gain, 0.0)
        part = cross_entropy(s, others, shares)
        value, grad = value + part[0], grad + part[1]
    return value, grad


def sigmoid_cross_entropy(_loss, s, y, w, **_):
    p, label = 1 / (1 + np.exp(-s)), np.minimum(y, 1.0)
    value = -(w * (label * np.log(p) + (1 - label) * np.log1p(-p))).sum()
    return value, w * (p - label)


def stochastic(loss, s, y, w, place=(0, 0)):
    value, grad = 0.0, np.zeros(len(s))
    seed = mixed(mixed(mixed(0, loss.random_state % 2**64), place[0]), place[1])
    for sample in range(loss.samples):
        state = mixed(seed, sample)
        u = [max((mixed(state, i) >> 11) / 2**53, 2.0**-54) for i in range(len(s))]
        noisy = s - loss.scale * np.log(-np.log(u))
        inner = resolve_part("losses", loss.loss)
        part = TWINS[part_name("losses", inner)](inner, noisy, y, w, place=place)
        value, grad = value + part[0] / loss.samples, grad + part[1] / loss.samples
    return value, grad


# --- LambdaRank ------------------------------------------------------------------------------


def swap_changes(name, y, orders, truncation):
    """Mean over rankings of how much the metric changes when two documents trade places."""
    key, _, k = name.partition("@")
    changes = np.zeros((len(y), len(y)))
    for order in orders:
        value = metric_of(key, k, y, order)
        for a, b in combinations(range(len(y)), 2):
            if a < truncation:
                swapped = list(order)
                swapped[a], swapped[b] = order[b], order[a]
                change = abs(metric_of(key, k, y, swapped) - value) / len(orders)
                changes[order[a], order[b]] += change
                changes[order[b], order[a]] += change
    return changes


def metric_of(key, k, y, order):
    found = getattr(metrics, key)([y[i] for i in order], None, int(k) if k else None)
    return 0.0 if found is None else found


def orders_of_ties(s):
    """All rankings in which equal scores stand in any order."""
    tied = [[i for i in range(len(s)) if s[i] == score] for score in sorted(set(s))[::-1]]
    blocks = [permutations(block) for block in tied]
    return [[i for block in choice for i in block] for choice in product(*blocks)]


def lambdaloss_changes(loss, y, orders, truncation):
    """Mean over rankings of the weights of LambdaLoss, for the first document as the better one."""
    n, (gain, _) = len(y), gains_and_discounts(loss.metric, y)
    changes = np.zeros((n, n))
    for order in orders:
        for a, b in permutations(range(n), 2):
            i, j = order[a], order[b]
            if min(a, b) < truncation and loss.weights == "ndcg_loss1":
                changes[i, j] += gain[i] / log2(2 + a) / len(orders)
            elif min(a, b) < truncation and y[i] > y[j]:
                gap = abs(a - b)
                moved = 1 / log2(1 + gap) - 1 / log2(2 + gap)
                changes[i, j] += (gain[i] - gain[j]) * moved / len(orders)
    return changes


def lambdarank(loss, s, y, w, **_):
    truncation = len(y) if loss.truncation is None else loss.truncation
    graded = y
    if loss.label_gain is not None:  # the grades whose gain 2^g - 1 is the one given
        graded = np.log2(1 + np.array(loss.label_gain)[y.astype(int)])
    orders = orders_of_ties(s)
    if loss.weights != "lambdarank":
        changes = lambdaloss_changes(loss, graded, orders, truncation)
        if loss.weights == "ndcg_loss2++":
            swaps = swap_changes(loss.metric, graded, orders, truncation)
            changes = loss.mu * changes + np.where(y[:, None] > y, swaps, 0.0)
    else:
        changes = np.where(
            y[:, None] > y, swap_changes(loss.metric, graded, orders, truncation), 0.0
        )
    if loss.weights == "ndcg_loss1":  # two documents alike have no order
        alike = (y[:, None] == y) & (s[:, None] == s)
        changes[alike] = 0.0
    if loss.normalize and max(s) > min(s):
        changes = changes / (0.01 + np.abs(s[:, None] - s))
    pair_weight = changes * np.outer(w, w)
    value, grad, size = 0.0, np.zeros(len(s)), 0.0
    for i, j in permutations(range(len(s)), 2):
        if pair_weight[i, j]:
            part, gradient = logistic(loss.sigma * (s[i] - s[j]))
            value += pair_weight[i, j] * part
            grad[i] += loss.sigma * pair_weight[i, j] * gradient
            grad[j] -= loss.sigma * pair_weight[i, j] * gradient
            size += 2 * loss.sigma * pair_weight[i, j] * abs(gradient)
    if loss.normalize:
        factor = log2(1 + size) / size if size else 1.0
        value, grad = factor * value, factor * grad
    return value, grad


# --- XE-NDCG ---------------------------------------------------------------------------------


def noise(seed, place, n):
    state = mixed(mixed(mixed(0, seed % 2**64), place[0]), place[1])
    return np.array([(mixed(state, i) >> 11) / 2**53 for i in range(n)])


def xendcg(loss, s, y, w, place=(0, 0)):
    gamma = noise(loss.random_state, place, len(s)) if loss.sampled else np.full(len(s), 0.5)
    shares = w * (2.0**y - gamma)
    shares = shares / shares.sum()
    value, grad, rho = cross_entropy(s, w, shares)
    off_diagonal = np.outer(rho, rho) - np.diag(rho**2)
    term = grad
    for _ in range(loss.newton_terms - 1):
        term = off_diagonal @ (term / (rho * (1 - rho)))
        grad = grad + term
    return value, grad


TWINS = {
    "all_threshold": all_threshold,
    "approx_ndcg": approx_ndcg,
    "boltzrank": boltzrank,
    "domination": domination,
    "dual_softmax": dual_softmax,
    "fidelity": fidelity,
    "gbrank": gbrank,
    "interval": interval,
    "lambdarank": lambdarank,
    "listmle": listmle,
    "listnet": listnet,
    "pair_exp": pair_exp,
    "pair_hinge": pair_hinge,
    "position_svm": position_svm,
    "precision_svm": precision_svm,
    "ndcg_glm": ndcg_glm,
    "neural_ndcg": neural_ndcg,
    "query_offset": query_offset,
    "rank_cosine": rank_cosine,
    "ranknet": ranknet,
    "retarget": retarget,
    "rocarea_svm": rocarea_svm,
    "sigmoid_cross_entropy": sigmoid_cross_entropy,
    "soft_zero_one": soft_zero_one,
    "softmax": softmax,
    "softrank": softrank,
    "squared": squared,
    "stochastic": stochastic,
    "unique_softmax": unique_softmax,
    "xendcg": xendcg,
}
