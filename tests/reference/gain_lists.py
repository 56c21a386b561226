"""Sums over ranks, written out for one query: gain by document, discount by rank."""

from math import log2

import numpy as np


def gains_and_discounts(name, y):
    """Of ndcg, dcg or p, with or without a cut-off; gains are over what the sum is divided by."""
    key, _, k = name.partition("@")
    k = min(int(k), len(y)) if k else len(y)
    if key == "p":
        first = (np.arange(len(y)) < k).astype(float)
        return (y >= 1) / int(name.partition("@")[2] or len(y)), first
    gain = 2.0**y - 1
    discount = np.array([1 / log2(rank + 2) if rank < k else 0.0 for rank in range(len(y))])
    return (gain / (np.sort(gain)[::-1] @ discount) if key == "ndcg" else gain), discount


def of_documents_that_count(of_query):
    """A twin that leaves documents of weight 0 out and takes all others alike."""

    def twin(loss, s, y, w, **place):
        kept = np.flatnonzero(w > 0)
        value, grad = of_query(loss, s[kept], y[kept], **place)
        out = np.zeros(len(s))
        out[kept] = grad
        return value, out

    return twin
