"""Slow twin of the soft zero-one loss on pairs: every pair of a query, one by one."""

from math import exp

import numpy as np


def soft_zero_one(loss, s, y, w, **_):
    value, grad, pairs = 0.0, np.zeros(len(s)), 0.0
    for i in range(len(s)):
        for j in range(len(s)):
            if y[i] > y[j]:
                pair = w[i] * w[j] * min(y[i] - y[j], 1.0)
                wrong = 1 / (1 + exp(loss.sigma * (s[i] - s[j])))
                value += pair * wrong
                grad[i] -= loss.sigma * pair * wrong * (1 - wrong)
                grad[j] += loss.sigma * pair * wrong * (1 - wrong)
                pairs += pair
    scale = 1.0 / pairs if loss.normalize else 1.0
    return scale * value, scale * grad
