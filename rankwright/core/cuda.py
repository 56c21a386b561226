"""Kernels on a GPU, from the same source: ``launch(kernel, queries, args, team=...)``.

A ``@kernel`` is a plain module-level function that calls other kernels by name. Its function for
the GPU is the same code with other values for those names: the GPU functions of the other kernels
and, for a team (`rankwright.core.team`), the functions that work with the threads of a block. Numba
compiles it on first use in a process. Arrays are torch tensors, used in place (`view`) and on
torch's stream.

Kernels cannot allocate memory on a GPU; `allocates` finds those that do on the CPU, by ``np.empty``
and similar functions.

With ``NUMBA_ENABLE_CUDASIM=1`` the same code runs in Python on the CPU, for tests.
"""

from __future__ import annotations

import builtins
import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from types import CodeType, FunctionType
from typing import Any

import numpy as np
from numba import config, errors, float64

from rankwright.core import team as one_member
from rankwright.core.jit import is_kernel
from rankwright.core.order import sort_query
from rankwright.core.types import I64, AnyArray
from rankwright.errors import IncompatibleError, MissingExtraError

SIMULATED = bool(config.ENABLE_CUDASIM)
TEAMS = ((0, 32), (256, 256))  # for queries of so many documents or more, so many threads: 32 * 2^k
_THREADS = 32  # in a block, if each thread has a query of its own
_ALLOCATE = {"empty", "full", "ones", "zeros"}


def _numba_cuda() -> Any:
    if find_spec("numba_cuda") is None and not SIMULATED:
        raise MissingExtraError("numba-cuda", "gpu", "a loss on a GPU")
    # numba-cuda 0.30 imports np.row_stack, which NumPy 2.5 removed.
    has_row_stack = hasattr(np, "row_stack")
    if not has_row_stack:
        np.row_stack = np.vstack  # noqa: NPY201
    try:
        from numba import cuda

        if not SIMULATED:  # otherwise imported on first use, without np.row_stack
            import numba.cuda.np.arrayobj  # noqa: F401
    finally:
        if not has_row_stack:
            del np.row_stack  # noqa: NPY201
    return cuda


cuda = _numba_cuda()

# --- a team of threads -----------------------------------------------------------------------


@cuda.jit(device=True)
def _shared_range(lo, hi):
    return range(lo + (cuda.threadIdx.x - lo) % cuda.blockDim.x, hi, cuda.blockDim.x)


@cuda.jit(device=True)
def _owns(i):
    return i % cuda.blockDim.x == cuda.threadIdx.x


@cuda.jit(device=True)
def _members():
    return cuda.blockDim.x


@cuda.jit(device=True)
def _once(x):
    return x if cuda.threadIdx.x == 0 else 0.0


@cuda.jit(device=True)
def _wait():
    cuda.syncthreads()


@cuda.jit(device=True)
def _team_sum(x):
    return _over_team(float64(x), 0.0, False, False)[0]


@cuda.jit(device=True)
def _team_sums(x, y):
    return _over_team(float64(x), float64(y), True, False)


@cuda.jit(device=True)
def _team_max(x):
    return _over_team(float64(x), 0.0, False, True)[0]


@cuda.jit(device=True)
def _joined(mine, other, largest):
    """Return the sum, or the maximum, which is NaN if one of them is."""
    if not largest:
        return mine + other
    return other if other > mine or other != other else mine


@cuda.jit(device=True)
def _over_warp(x, largest):
    for step in (16, 8, 4, 2, 1):
        x = _joined(x, cuda.shfl_xor_sync(-1, x, step), largest)
    return x


def _over_team_by_warps(x, y, two, largest):
    """Combine x, and y if ``two``, of all members: in warps, then over warps, in a fixed order."""
    x, y = _over_warp(x, largest), _over_warp(y, largest) if two else y
    warps = cuda.blockDim.x // 32
    if warps == 1:
        cuda.syncwarp()
        return x, y
    shared = cuda.shared.array(0, float64)  # its size is that of the launch
    lane, warp = cuda.threadIdx.x % 32, cuda.threadIdx.x // 32
    cuda.syncthreads()  # all have read the previous results
    if lane == 0:
        shared[warp], shared[warps + warp] = x, y
    cuda.syncthreads()
    x = y = -np.inf if largest else 0.0
    if lane < warps:
        x, y = shared[lane], shared[warps + lane]
    return _over_warp(x, largest), _over_warp(y, largest) if two else y


def _over_team_by_halves(x, y, two, largest):  # noqa: ARG001
    """Do the same in Numba's simulator, which has no warps."""
    shared = cuda.shared.array(0, float64)
    me, members, half = cuda.threadIdx.x, cuda.blockDim.x, cuda.blockDim.x // 2
    cuda.syncthreads()
    shared[me], shared[members + me] = x, y
    cuda.syncthreads()
    while half > 0:
        if me < half:
            for at in (me, members + me):
                shared[at] = _joined(shared[at], shared[at + half], largest)
        cuda.syncthreads()
        half //= 2
    return shared[0], shared[members]


_over_team = cuda.jit(device=True)(_over_team_by_halves if SIMULATED else _over_team_by_warps)

_OF_TEAM = {
    one_member.owns: _owns,
    one_member.members: _members,
    one_member.once: _once,
    one_member.wait: _wait,
    one_member.team_sum: _team_sum,
    one_member.team_sums: _team_sums,
    one_member.team_max: _team_max,
}

# --- from kernels to functions for the GPU ---------------------------------------------------

_functions: dict[tuple[Any, int], Any] = {}
_launchers: dict[tuple[Any, int], Any] = {}


def device_function(one: Any, team: int) -> Any:
    """Return the function of a kernel for the GPU, with ``team`` threads per query."""
    if team > 1 and one in _OF_TEAM:
        return _OF_TEAM[one]
    if (one, team) not in _functions:
        _functions[one, team] = cuda.jit(device=True)(_rebound(one.py_func, team))
    return _functions[one, team]


def _rebound(function: Callable[..., Any], team: int) -> Callable[..., Any]:
    """Return the same code with its global names bound to their values on the GPU."""
    scope: dict[str, Any] = {"__builtins__": builtins, "__name__": function.__module__}
    for name in set(_names(function.__code__)) & set(function.__globals__):
        scope[name] = _on_device(function.__globals__[name], team)
    return FunctionType(function.__code__, scope, function.__name__, function.__defaults__)


def _on_device(value: Any, team: int) -> Any:
    if is_kernel(value):
        return device_function(value, team)
    return _shared_range if team > 1 and value is range else value


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def allocates(one: Any) -> bool:
    """Return whether a kernel, or one that it calls, allocates memory."""
    return bool(_names_used(one) & _ALLOCATE)


def shares_queries(one: Any) -> bool:
    """Return whether a kernel divides the documents of a query among the threads of a team.

    A kernel that only sorts by `sort_query` does not: that works for a single thread, too.
    """
    return "shared_range" in _names_used(one, without=sort_query)


def _names_used(one: Any, without: Any = None) -> set[str]:
    """Return the names that a kernel and the kernels that it calls use, but for one of these."""
    names: set[str] = set()
    seen, waiting = {one, without}, [one]
    while waiting:
        function = waiting.pop().py_func
        names_here = set(_names(function.__code__))
        values = [function.__globals__.get(name) for name in names_here]
        called = {value for value in values if is_kernel(value)}
        waiting += called - seen
        seen |= called
        names |= names_here
    return names


@contextmanager
def compiling() -> Iterator[None]:
    """Raise `IncompatibleError` if Numba cannot compile a kernel for the GPU."""
    try:
        yield
    except (errors.NumbaError, KeyError, NotImplementedError) as error:
        last = (str(error).strip() or type(error).__name__).splitlines()[-1]
        raise IncompatibleError(f"it does not compile for a GPU ({last})") from error


# --- launches --------------------------------------------------------------------------------


def launch(one: Any, queries: Any, args: tuple[Any, ...], *, team: int, stream: Any = 0) -> None:
    """Call ``kernel([q], *args)`` for each of the queries, by ``team`` threads, all at once.

    Threads of a block wait for each other, so the longest queries should come first.
    """
    n = len(queries)
    if n == 0:
        return
    if (one, team) not in _launchers:
        _launchers[one, team] = _launcher(device_function(one, team), team)
    shared = 16 * team if team > 1 else 0
    blocks = n if team > 1 else math.ceil(n / _THREADS)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*under-utilization")  # by few queries
        threads = team if team > 1 else _THREADS
        _launchers[one, team][blocks, threads, stream, shared](queries, args)


def _launcher(function: Any, team: int) -> Any:
    """Return the kernel of a launch: each team, or thread, calls the function for its query."""

    def team_of_queries(queries: Any, args: Any) -> None:
        k = cuda.blockIdx.x
        function(queries[k : k + 1], *args)

    def thread_of_queries(queries: Any, args: Any) -> None:
        k = cuda.grid(1)
        if k < len(queries):
            function(queries[k : k + 1], *args)

    return cuda.jit(team_of_queries if team > 1 else thread_of_queries)


class QueryTeams:
    """The queries that a kernel is called for, by how many threads work at each.

    Parameters
    ----------
    memory
    indptr
    ordered
        Numbers of the queries, ascending.
    team
        Whether kernels share a query among threads.
    """

    def __init__(self, memory: DeviceMemory, indptr: I64, ordered: I64, *, team: bool) -> None:
        self._memory, self._sizes, self._ordered = memory, np.diff(indptr), ordered
        self.threads = np.ones(len(self._sizes), np.int64)
        for documents, threads in TEAMS if team else ():
            self.threads[self._sizes >= documents] = threads
        self._runs: dict[tuple[int, int], list[tuple[int, Any]]] = {}

    def launch(self, one: Any, lo: int, hi: int, args: tuple[Any, ...]) -> None:
        """Call a kernel for the queries lo:hi, on torch's stream."""
        stream = self._memory.stream()
        for team, queries in self._queries(lo, hi):
            launch(one, queries, args, team=team, stream=stream)

    def _queries(self, lo: int, hi: int) -> list[tuple[int, Any]]:
        """Return the queries lo:hi by the size of their teams, each from the longest on."""
        if (lo, hi) not in self._runs:
            first, last = np.searchsorted(self._ordered, (lo, hi))
            queries = self._ordered[first:last]
            queries = queries[np.argsort(-self._sizes[queries], kind="stable")]
            teams = np.unique(self.threads[queries])[::-1].tolist()
            self._runs[lo, hi] = [
                (team, view(self._memory.copy(queries[self.threads[queries] == team])))
                for team in teams
            ]
        return self._runs[lo, hi]


class DeviceMemory:
    """Arrays on the GPU, in torch's memory and on its stream; on the CPU if it is simulated."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._device = "cpu" if SIMULATED else "cuda"

    def zeros(self, n: int) -> Any:
        """Return a tensor of n zeros (float64)."""
        return self._torch.zeros(n, dtype=self._torch.float64, device=self._device)

    def copy(self, array: AnyArray) -> Any:
        """Return a copy of a NumPy array as a tensor; uint64, which torch lacks, becomes int64."""
        return self._torch.tensor(_signed(array), device=self._device)

    def refresh(self, tensor: Any, array: AnyArray) -> None:
        """Copy an array into its tensor."""
        tensor.copy_(self._torch.from_numpy(_signed(array)))

    def fetch(self, tensor: Any, array: AnyArray) -> None:
        """Copy a tensor back into its array."""
        _signed(array)[...] = tensor.cpu().numpy()

    def stream(self) -> Any:
        """Return torch's current stream, for `launch`."""
        handle = 0 if SIMULATED else self._torch.cuda.current_stream().cuda_stream
        return cuda.external_stream(handle) if handle else 0


def _signed(array: AnyArray) -> AnyArray:
    return array.view(np.int64) if array.dtype == np.uint64 else array


def view(tensor: Any, dtype: Any = None) -> Any:
    """Return a tensor as an array for kernels, without a copy; ``dtype`` reinterprets it."""
    array = tensor.numpy() if SIMULATED else cuda.as_cuda_array(tensor.detach(), sync=False)
    return array if dtype is None or array.dtype == dtype else array.view(dtype)
