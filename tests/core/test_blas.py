import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from rankwright.core.blas import one_blas_thread


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
