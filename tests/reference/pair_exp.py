"""Slow twin of the exponential loss on pairs: every pair of a query, one by one."""

from math import exp

import numpy as np


def pair_exp(loss, s, y, w, **_):
    value, grad, pairs = 0.0, np.zeros(len(s)), 0.0
    for i in range(len(s)):
        for j in range(len(s)):
            if y[i] > y[j]:
                pair = w[i] * w[j] * min(y[i] - y[j], 1.0)
                term = pair * exp(s[j] - s[i])
                value += term
                grad[i] -= term
                grad[j] += term
                pairs += pair
    scale = 1.0 / pairs if loss.normalize else 1.0
    return scale * value, scale * grad
