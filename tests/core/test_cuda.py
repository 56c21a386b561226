"""Kernels are bound to a GPU by their own code; nothing is written twice."""

import builtins
from typing import Any, NamedTuple

import numpy as np
import pytest
from simulated_gpu import cuda, torch

from rankwright.core import kernels, order, team
from rankwright.core.jit import kernel
from rankwright.errors import MissingExtraError
from rankwright.losses import lambdarank, listnet, ranknet


@kernel
def _allocates(n):
    return np.zeros(n)


@kernel
def _calls(n):
    return len(_allocates(n))


def test_a_kernel_keeps_its_code_and_calls_what_is_compiled_for_the_gpu():
    bound = cuda._rebound(listnet._queries.py_func, 32)
    assert bound.__code__ is listnet._queries.py_func.__code__
    scope = bound.__globals__
    assert scope["_softmax_of"] is cuda.device_function(listnet._softmax_of, 32)
    assert scope["math"] is listnet.math
    assert scope["__builtins__"] is builtins
    assert scope["shared_range"] is cuda._shared_range


def test_one_thread_a_query_has_the_names_of_the_cpu():
    scope = cuda._rebound(order.sort_query.py_func, 1).__globals__
    assert scope["members"] is cuda.device_function(team.members, 1)
    assert cuda._rebound(kernels.clear.py_func, 1).__globals__["shared_range"] is range


def test_what_allocates_is_found_wherever_it_is_called():
    assert cuda.allocates(_calls)
    assert cuda.allocates(lambdarank._any_metric)
    for one in (ranknet._ranknet, lambdarank._sums_over_ranks):
        assert not cuda.allocates(one)


class _Pair(NamedTuple):
    numbers: Any
    maybe: Any


@kernel
def _sums(lo, hi, indptr, pair, nothing, out):
    for q in range(lo, hi):
        for i in range(indptr[q], indptr[q + 1]):
            out[q] += pair.numbers[i]
        if pair.maybe is None and nothing is None:
            out[q] += 1000.0


def test_none_is_left_out_of_what_is_passed_on():
    memory, indptr = cuda.DeviceMemory(torch), np.array([0, 3, 3, 8])
    out, numbers = memory.zeros(3), memory.copy(np.arange(8.0))
    there = cuda.view(memory.copy(indptr))
    args = (there, _Pair(cuda.view(numbers), None), None, cuda.view(out))
    cuda.QueryTeams(memory, indptr, team=False).launch(_sums, 0, 3, args)
    np.testing.assert_allclose(out.cpu().numpy(), np.array([3.0, 0.0, 25.0]) + 1000.0)


def test_without_numba_cuda_the_error_names_the_extra(monkeypatch):
    monkeypatch.setattr(cuda, "SIMULATED", False)
    monkeypatch.setattr(cuda, "find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"needs numba-cuda.* 'rankwright\[gpu\]'"):
        cuda._numba_cuda()


def test_numpy_is_left_as_it_was():
    assert hasattr(np, "row_stack") == (np.lib.NumpyVersion(np.__version__) < "2.5.0")
