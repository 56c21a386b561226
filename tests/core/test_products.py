from threading import Event, Thread

import numpy as np
import pytest
from scipy import sparse
from threadpoolctl import threadpool_info, threadpool_limits

from rankwright.core.products import (
    one_blas_thread,
    times_vector,
    transposed_squares_times_vector,
    transposed_times_vector,
)

X = np.random.default_rng(0).normal(size=(50_000, 7))
W, G = np.random.default_rng(1).normal(size=7), np.random.default_rng(2).normal(size=50_000)


@pytest.mark.parametrize("matrix", [X, X.astype(np.float32), sparse.csr_array(X)])
def test_products_agree_with_numpy(matrix):
    dense = matrix.toarray() if sparse.issparse(matrix) else matrix.astype(float)
    np.testing.assert_allclose(times_vector(matrix, W), dense @ W, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(transposed_times_vector(matrix, G), dense.T @ G, rtol=1e-10)
    squares = transposed_squares_times_vector(matrix, G)
    np.testing.assert_allclose(squares, (dense**2).T @ G, rtol=1e-10)


def test_sums_are_of_float64_whatever_the_features_are():
    X = np.array([[1e8, 1.0, -1e8]] * 3, np.float32)  # in float32 the 1 would be lost
    assert times_vector(X, np.ones(3)).tolist() == [1.0] * 3
    tall = np.ascontiguousarray(X.T)
    assert transposed_times_vector(tall, np.ones(3)).tolist() == [1.0] * 3


@pytest.mark.parametrize("threads", [2, 5])
def test_the_number_of_threads_changes_no_bit(threads):
    one = transposed_times_vector(X, G, n_jobs=1).tobytes()
    assert transposed_times_vector(X, G, n_jobs=threads).tobytes() == one
    assert (times_vector(X, W, n_jobs=threads) == times_vector(X, W, n_jobs=1)).all()


# --- blas ------------------------------------------------------------------------------------


def blas_threads():
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


def test_blas_has_one_thread_inside_and_its_own_again_after():
    np.eye(3) @ np.eye(3)
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        assert 2 in before  # some libraries of a process may have one thread for good
        with one_blas_thread():
            assert blas_threads() == {1}
        assert blas_threads() == before


def test_threads_that_are_inside_at_once_share_the_limit_and_the_last_one_lifts_it():
    np.eye(3) @ np.eye(3)
    second_is_in, first_is_out, seen = Event(), Event(), []

    def second():
        with one_blas_thread():
            second_is_in.set()
            first_is_out.wait(10)
            seen.append(blas_threads())

    own = threadpool_limits(2, user_api="blas")
    try:
        before, other = blas_threads(), Thread(target=second)
        with one_blas_thread():
            other.start()
            assert second_is_in.wait(10)
        first_is_out.set()
        other.join()
        assert seen == [{1}]
        assert blas_threads() == before
    finally:
        own.restore_original_limits()
