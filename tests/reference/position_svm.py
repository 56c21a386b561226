"""Losses over orders, by trying every order of a query."""

from functools import cache
from itertools import pairwise, permutations, product

import numpy as np
from reference import metrics


def rank_decay(decay, n, metric=None):
    i = np.arange(1, n + 1)
    if decay == "log":
        return 1 / np.log(i + 2)
    if decay == "loglog":
        return 1 / np.log(np.log(i + 2))
    return (i + 1.0) ** -decay


def measured(name, grades):
    """The metric of grades in rank order; names as in ``eru(alpha=3)@5``."""
    return measured_once(name, tuple(grades))


@cache
def measured_once(name, grades):
    key, _, k = name.partition("@")
    key, _, rules = key.partition("(")
    values = {"true": True}
    given = dict(rule.split("=") for rule in rules.rstrip(")").split(",") if rule)
    given = {rule: values[text] if text in values else float(text) for rule, text in given.items()}
    if k:
        given["k"] = int(k)
    return getattr(metrics, key)(list(grades), None, **given) or 0.0


def reference_orders(y, s, ties):
    """All orders by falling grade that ``ties`` allows, alike."""
    by_grade = [np.flatnonzero(y == grade) for grade in np.unique(y)[::-1]]
    if ties == "file":
        return [np.concatenate(by_grade)]
    orders = [np.concatenate(o) for o in product(*(permutations(block) for block in by_grade))]
    if ties == "mean":
        return orders
    return [o for o in orders if all(s[i] >= s[j] or y[i] > y[j] for i, j in pairwise(o))]


def at_ranks(order, c):
    """c of each document's rank; documents that are not in the order have 0."""
    out = np.zeros(len(c))
    out[list(order)] = c[: len(order)]
    return out


def worst(s, c, orders, losses):
    """The largest sum_i s_i c_i + loss over orders, and the mean of c over those that reach it."""
    weights = np.array([at_ranks(order, c) for order in orders])
    values = weights @ s + np.array(losses)
    best = values > values.max() - 1e-9
    return values.max(), weights[best].mean(axis=0)


def position_svm(loss, s, y, w, **_):
    kept = w > 0
    value, grad = of_query(loss, s[kept], y[kept])
    out = np.zeros(len(s))
    out[kept] = grad
    return value, out


def of_query(loss, s, y):
    c = rank_decay(loss.decay, len(y))
    ideal = measured(loss.metric, sorted(y)[::-1])
    value, gradient = first_worst(s, y, c, lambda grades: ideal - measured(loss.metric, grades))
    cref = np.mean([at_ranks(o, c) for o in reference_orders(y, s, loss.ties)], axis=0)
    return value - cref @ s, gradient - cref


def first_worst(s, y, c, lost):
    """The largest sum_i s_i c_i + loss, and c in the first of the worst orders.

    Orders begin with the highest scores, equal scores with the lowest grade. Documents of equal
    score share the mean of their c if no order changes the loss when they are swapped.
    """
    orders = [list(o) for o in permutations(np.lexsort((y, -s)).tolist())]
    values = np.array([at_ranks(o, c) @ s + lost(y[o]) for o in orders])
    weights = at_ranks(orders[np.argmax(values > values.max() - 1e-9)], c)

    def alike(i, j):
        swap = {i: j, j: i}
        return s[i] == s[j] and all(
            lost(y[o]) == lost(y[[swap.get(k, k) for k in o]]) for o in orders
        )

    n = range(len(y))
    equals = [[j for j in n if i == j or alike(i, j)] for i in n]
    return values.max(), np.array([weights[together].mean() for together in equals])


def precision_svm(loss, s, y, w, **_):
    kept = np.flatnonzero(w > 0)
    relevant = (y[kept] >= loss.min_grade).astype(float)
    grad = np.zeros(len(s))
    if len(set(relevant)) < 2:
        return 0.0, grad
    n = loss.n if loss.n < len(kept) else int(relevant.sum())
    c = np.append(np.ones(n), np.zeros(len(kept) - n))
    most = min(n, relevant.sum())
    value, gradient = first_worst(
        s[kept], relevant, c, lambda grades: (most - grades[:n].sum()) / n
    )
    references = reference_orders(relevant, s[kept], "mean")
    cref = np.mean([at_ranks(o, c) for o in references], axis=0)
    grad[kept] = gradient - cref
    return value - cref @ s[kept], grad


def rocarea_svm(loss, s, y, w, **_):
    value, grad, pairs = 0.0, np.zeros(len(s)), 0.0
    for i, j in permutations(range(len(s)), 2):
        if y[i] > y[j]:
            pair = w[i] * w[j] * min(y[i] - y[j], 1.0)
            pairs += pair
            if loss.margin - s[i] + s[j] > 0:
                value += pair * (loss.margin - s[i] + s[j])
                grad[i] -= pair
                grad[j] += pair
    return value / pairs, grad / pairs
