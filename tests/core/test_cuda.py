"""Kernels are bound to a GPU by their own code; nothing is written twice."""

import builtins

import numpy as np
import pytest
import torch
from simulated_gpu import cuda

from rankwright.core import order, team
from rankwright.core.jit import kernel
from rankwright.errors import MissingExtraError
from rankwright.losses import base, gbrank, lambdarank, listnet, ranknet, top_k


@kernel
def _allocates(n):
    return np.zeros(n)


@kernel
def _calls(n):
    return len(_allocates(n))


def test_a_kernel_keeps_its_code_and_calls_what_is_compiled_for_the_gpu():
    bound = cuda._rebound(listnet.softmax_cross_entropy.py_func, 32)
    assert bound.__code__ is listnet.softmax_cross_entropy.py_func.__code__
    scope = bound.__globals__
    assert scope["exponentials"] is cuda.device_function(listnet.exponentials, 32)
    assert scope["math"] is listnet.math
    assert scope["__builtins__"] is builtins
    assert scope["shared_range"] is cuda._shared_range


def test_one_thread_a_query_has_the_names_of_the_cpu():
    scope = cuda._rebound(order.sort_query.py_func, 1).__globals__
    assert scope["members"] is cuda.device_function(team.members, 1)
    assert cuda._rebound(base.exponentials.py_func, 1).__globals__["shared_range"] is range


def test_what_allocates_is_found_wherever_it_is_called():
    assert cuda.allocates(_calls)
    assert cuda.allocates(top_k.top_k_queries)
    assert cuda.allocates(lambdarank._any_metric)
    for one in (ranknet._ranknet, lambdarank._sums_over_ranks, listnet.softmax_cross_entropy):
        assert not cuda.allocates(one)


def test_a_kernel_for_teams_is_recognised():
    assert cuda.shares_queries(listnet.softmax_cross_entropy)
    assert not cuda.shares_queries(_sums)
    assert not cuda.shares_queries(gbrank.GBRank.run)  # it only sorts by a team


@kernel
def _sums(queries, indptr, x, out):
    for q in queries:
        for i in range(indptr[q], indptr[q + 1]):
            out[q] += x[i]


def test_a_kernel_is_launched_for_the_queries_of_the_range_that_have_an_order():
    memory, indptr = cuda.DeviceMemory(torch), np.array([0, 3, 3, 8, 9, 10])
    out, x = memory.zeros(5), memory.copy(np.arange(10.0))
    args = (cuda.view(memory.copy(indptr)), cuda.view(x), cuda.view(out))
    cuda.QueryTeams(memory, indptr, np.array([0, 2, 4]), team=False).launch(_sums, 0, 4, args)
    np.testing.assert_allclose(out.cpu().numpy(), [3.0, 0.0, 25.0, 0.0, 0.0])


def test_without_numba_cuda_the_error_names_the_extra(monkeypatch):
    monkeypatch.setattr(cuda, "SIMULATED", False)
    monkeypatch.setattr(cuda, "find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"needs numba-cuda.* 'rankwright\[gpu\]'"):
        cuda._numba_cuda()


def test_numpy_is_left_as_it_was():
    assert hasattr(np, "row_stack") == (np.lib.NumpyVersion(np.__version__) < "2.5.0")
