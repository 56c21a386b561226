"""The rows of synthetic data look like those of the sets they stand for."""

import numpy as np
from scipy import sparse

from rankwright.data.synthetic_data import synthetic


def test_features_are_as_mixed_as_real_ones():
    data = synthetic("mslr10k", queries=100)
    X = data.X[:, :10]
    zeros = (X == 0).mean(axis=0)
    assert (zeros > 0.5).any()  # rare
    assert (X.max(axis=0) > 50 * np.median(np.abs(X), axis=0)).any()  # heavy-tailed
    assert np.corrcoef(X[:, 0], X[:, 1])[0, 1] > 0.7  # correlated
    counts = X[:, 2]
    assert (counts == np.floor(counts)).all()
    per_query = X[data.indptr[:-1], 6]
    np.testing.assert_array_equal(X[:, 6], np.repeat(per_query, data.sizes))


def test_rcv1_is_sparse_with_distinct_sorted_columns_in_unit_rows():
    data = synthetic("rcv1", queries=1)
    X = data.X
    assert sparse.issparse(X)
    assert X.shape[1] == 47_236
    assert X.dtype == np.float32
    assert abs(X.nnz / np.prod(X.shape) - 0.0016) < 0.0001
    steps = np.diff(X.indices)
    starts = X.indptr[1:-1] - 1
    assert (np.delete(steps, starts) > 0).all()
    assert X.indices.max() < 47_236
    np.testing.assert_allclose(X.multiply(X).sum(axis=1), 1, rtol=1e-5)


def test_web_names_hosts_and_some_hosts_come_twice_in_a_query():
    data = synthetic("web", queries=50)
    assert set(np.unique(data.y)) == {0, 1, 2, 3, 4}
    repeats = [
        len(hosts) - len(set(hosts.tolist())) for hosts in np.split(data.group, data.indptr[1:-1])
    ]
    assert sum(repeats) > 50
