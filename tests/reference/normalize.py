"""Slow twins of the normalisers, one query and one feature at a time, in the words of RankLib."""

import math
from itertools import pairwise

import numpy as np


def minmax(column, *, ranklib=False):
    known = [x for x in column if not math.isnan(x)]
    if not known:
        return column
    low, high = min(known), max(known)
    if ranklib:
        high = max(high, 0.0)
    return [math.nan if math.isnan(x) else (x - low) / (high - low or 1.0) for x in column]


def zscore(column):
    known = [x for x in column if not math.isnan(x)]
    if len(known) < 2:
        return column
    mean = sum(known) / len(known)
    sd = math.sqrt(sum((x - mean) ** 2 for x in known) / (len(known) - 1))
    return column if sd == 0 else [(x - mean) / sd for x in column]


def total(column):
    absolute = sum(abs(x) for x in column if not math.isnan(x))
    return column if absolute == 0 else [x / absolute for x in column]


PER_QUERY = {"minmax": minmax, "zscore": zscore, "sum": total}


def per_query(name, X, indptr, **parameters):
    """Normalise a dense float64 matrix with the twin called ``name``."""
    out = np.array(X, dtype=np.float64)
    for start, end in pairwise(indptr.tolist()):
        for f in range(out.shape[1]):
            out[start:end, f] = PER_QUERY[name](X[start:end, f].tolist(), **parameters)
    return out
