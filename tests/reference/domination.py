"""The domination loss of one query, written out over pairs of documents."""

from math import exp, log

import numpy as np


def tier(loss, y):
    return y if loss.tiers is None else np.array([sum(g >= t for t in loss.tiers) for g in y])


def margins(loss, y):
    if loss.margin is None:
        return np.zeros(len(y))
    if loss.margin == "gain":
        return loss.margin_scale * (2.0**y - 1)
    table = y if loss.margin == "linear" else np.array(loss.margin)[y.astype(int)]
    return loss.margin_scale * table


def domination(loss, s, y, w, **_):
    grade, a = tier(loss, y), margins(loss, y)
    value, grad, dominating = 0.0, np.zeros(len(s)), 0.0
    for i in range(len(s)):
        below = [j for j in range(len(s)) if grade[j] < grade[i] and w[j] > 0]
        if not below or w[i] == 0:
            continue
        lead = [s[j] - s[i] + a[i] - a[j] for j in below]
        top = max(0.0, *lead)
        terms = [w[j] * exp(x - top) for j, x in zip(below, lead, strict=True)]
        whole = exp(-top) + sum(terms)
        value += w[i] * (top + log(whole))
        dominating += w[i]
        for j, term in zip(below, terms, strict=True):
            grad[j] += w[i] * term / whole
            grad[i] -= w[i] * term / whole
    return (value / dominating, grad / dominating) if dominating else (0.0, grad)
