"""Small click logs that tests share."""

import numpy as np

from rankwright.data.click_log import ClickLog


def random_log(seed=0, sessions=60, documents=5, length=4, queries=2, rate=0.4):
    """Return lists of up to ``length`` documents, clicked at random, some with a weight."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, length + 1, sessions)
    shown = np.concatenate([rng.permutation(documents)[:size] for size in sizes])
    clicked = rng.random(len(shown)) < rate
    weight = rng.integers(1, 4, sessions).astype(float)
    query = rng.integers(0, queries, sessions)
    return ClickLog.from_arrays(query, shown, clicked, session_sizes=sizes, weight=weight)


def listed(model, log):
    """Return (pairs, clicks, weight) of each session, with pairs as the model numbers them."""
    codes = model.pairs_.codes(log)
    return [
        (codes[lo:hi], tuple(log.click[lo:hi].astype(int).tolist()), weight)
        for lo, hi, weight in zip(log.indptr[:-1], log.indptr[1:], log.weight, strict=True)
    ]
