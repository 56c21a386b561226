"""Slow twin of the fidelity loss on pairs: every pair of a query, one by one."""

from math import exp, sqrt

import numpy as np


def fidelity(loss, s, y, w, **_):
    value, grad, pairs = 0.0, np.zeros(len(s)), 0.0
    q = loss.confidence
    for i in range(len(s)):
        for j in range(len(s)):
            if y[i] > y[j]:
                pair, p = w[i] * w[j] * min(y[i] - y[j], 1.0), 1 / (1 + exp(s[j] - s[i]))
                value += pair * (1 - sqrt(p * q) - sqrt((1 - p) * (1 - q)))
                along_p = -sqrt(q / p) / 2 + sqrt((1 - q) / (1 - p)) / 2
                grad[i] += pair * along_p * p * (1 - p)
                grad[j] -= pair * along_p * p * (1 - p)
                pairs += pair
    scale = 1.0 / pairs if loss.normalize else 1.0
    return scale * value, scale * grad
