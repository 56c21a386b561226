"""Whether two ranking data sets are equal, bit for bit, in all that is asked for."""

import numpy as np
from scipy import sparse

PARTS = ("y", "indptr", "qid", "query_weight", "sample_weight", "doc_id", "group", "position")


def assert_same(got, wanted, *, but=(), dtype=None):
    """Compare every part of ``wanted`` with ``got``; those named in ``but`` are left out."""
    for name in PARTS:
        if name in but:
            continue
        a, b = getattr(got, name), getattr(wanted, name)
        assert (a is None) == (b is None), name
        if b is not None:
            assert a.dtype.kind == b.dtype.kind, name
            assert a.tolist() == b.tolist(), name
    if "feature_names" not in but:
        assert got.feature_names == wanted.feature_names
    if "X" not in but:
        a, b = dense(got.X), dense(wanted.X)
        assert a.shape == b.shape
        assert a.dtype == (dtype or b.dtype)
        assert bits(a) == bits(b)


def dense(X):
    return X.toarray() if sparse.issparse(X) else np.asarray(X)


def bits(X):
    """Bytes, every NaN spelled the same; -0.0 is not 0.0."""
    return np.where(np.isnan(X), X.dtype.type(np.nan), X).tobytes()
