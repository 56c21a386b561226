"""NDCG of a soft sort, of one query: the whole matrix, and the chain rule through all of it."""

import numpy as np
from reference.gain_lists import gains_and_discounts, of_documents_that_count


def soft_sort(s, temperature):
    """NeuralSort's matrix: rows by rank, columns by document."""
    n = len(s)
    apart = np.abs(s[:, None] - s).sum(axis=1)
    z = np.array([((n + 1 - 2 * rank) * s - apart) / temperature for rank in range(1, n + 1)])
    P = np.exp(z - z.max(axis=1, keepdims=True))
    return P / P.sum(axis=1, keepdims=True)


@of_documents_that_count
def neural_ndcg(loss, s, y, **_):
    """The gradient is carried forward, one score at a time, through softmax and scaling."""
    n, T = len(s), loss.temperature
    gain, discount = gains_and_discounts(loss.metric, y)
    P = soft_sort(s, T)
    up, rank = np.sign(s[:, None] - s), np.arange(1, n + 1)
    moved = []
    for k in range(n):
        z = np.tile(up[:, k], (n, 1)) / T  # -|s_j - s_k| moves with s_k
        z[:, k] = (n + 1 - 2 * rank - up[k].sum()) / T
        moved.append(P * (z - (P * z).sum(axis=1, keepdims=True)))
    for axis in (0, 1) * loss.sinkhorn:
        whole = P.sum(axis=axis, keepdims=True)
        moved = [(D - P * D.sum(axis=axis, keepdims=True) / whole) / whole for D in moved]
        P = P / whole
    value = np.sort(gain)[::-1] @ discount - discount @ P @ gain
    return value, np.array([-discount @ D @ gain for D in moved])
