"""Kernels on a GPU, from the same source: ``launch(kernel, queries, args, team=...)``.

A ``@kernel`` is a plain function of a module that calls other kernels by name. Its function for the
GPU is the same code, with other values for those names: each kernel's own function for the GPU and,
for a team (`rankwright.core.team`), the threads of a block in place of one thread. Numba compiles
it on first use in a process. Arrays are torch's tensors, used where they are (`view`) and on
torch's stream.

With ``NUMBA_ENABLE_CUDASIM=1`` the same runs in Python on the CPU, for tests.
"""

from __future__ import annotations

import builtins
import math
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from types import CodeType, FunctionType
from typing import Any

import numpy as np
from numba import config, float64

from rankwright.core import team as one_member
from rankwright.core.jit import CachedKernel
from rankwright.core.team import LANES, Lanes
from rankwright.core.types import AnyArray
from rankwright.errors import MissingExtraError

SIMULATED = bool(config.ENABLE_CUDASIM)
TEAMS = ((0, 32), (256, 256))  # from so many documents on, so many threads: 32 times a power of 2
_THREADS = 32  # in a block of threads that have a query each
_ALLOCATE = {"argsort", "copy", "cumsum", "empty", "full", "ones", "searchsorted", "sum", "zeros"}


def _numba_cuda() -> Any:
    if find_spec("numba_cuda") is None and not SIMULATED:
        raise MissingExtraError("numba-cuda", "gpu", "a loss on a GPU")
    lacking = not hasattr(np, "row_stack")  # NumPy 2.5 has it no more, numba-cuda 0.30 asks for it
    if lacking:
        np.row_stack = np.vstack  # noqa: NPY201
    try:
        from numba import cuda

        if not SIMULATED:
            import numba.cuda.np.arrayobj  # noqa: F401
    finally:
        if lacking:
            del np.row_stack  # noqa: NPY201
    return cuda


cuda = _numba_cuda()

# --- a team of threads -----------------------------------------------------------------------


@cuda.jit(device=True)
def _shared_range(lo, hi):  # type: ignore[no-untyped-def]
    return range(lo + (cuda.threadIdx.x - lo) % cuda.blockDim.x, hi, cuda.blockDim.x)


@cuda.jit(device=True)
def _owns(i):  # type: ignore[no-untyped-def]
    return i % cuda.blockDim.x == cuda.threadIdx.x


@cuda.jit(device=True)
def _member():  # type: ignore[no-untyped-def]
    return cuda.threadIdx.x


@cuda.jit(device=True)
def _members():  # type: ignore[no-untyped-def]
    return cuda.blockDim.x


@cuda.jit(device=True)
def _once(x):  # type: ignore[no-untyped-def]
    return x if cuda.threadIdx.x == 0 else 0.0


@cuda.jit(device=True)
def _wait():  # type: ignore[no-untyped-def]
    cuda.syncthreads()


@cuda.jit(device=True)
def _team_sum(x):  # type: ignore[no-untyped-def]
    return _over_team(float64(x), 0.0, False)[0]


@cuda.jit(device=True)
def _team_sums(x, y):  # type: ignore[no-untyped-def]
    return _over_team(float64(x), float64(y), False)


@cuda.jit(device=True)
def _team_max(x):  # type: ignore[no-untyped-def]
    return _over_team(float64(x), 0.0, True)[0]


@cuda.jit(device=True)
def _joined(mine, other, largest):  # type: ignore[no-untyped-def]
    """Return the sum, or the largest, which is NaN where one is."""
    if not largest:
        return mine + other
    return other if other > mine or other != other else mine


def _over_team_by_warps(x, y, largest):  # type: ignore[no-untyped-def]
    """Join x, and y, of all members: within warps, then over them, always in the same order."""
    shared = cuda.shared.array(0, float64)  # as large as the launch says
    lane, warp, warps = cuda.threadIdx.x % 32, cuda.threadIdx.x // 32, cuda.blockDim.x // 32
    for step in (16, 8, 4, 2, 1):
        x = _joined(x, cuda.shfl_xor_sync(-1, x, step), largest)
        y = _joined(y, cuda.shfl_xor_sync(-1, y, step), largest)
    cuda.syncthreads()  # all have read what came of the last
    if lane == 0:
        shared[warp], shared[warps + warp] = x, y
    cuda.syncthreads()
    x = y = -np.inf if largest else 0.0
    if lane < warps:
        x, y = shared[lane], shared[warps + lane]
    for step in (16, 8, 4, 2, 1):
        x = _joined(x, cuda.shfl_xor_sync(-1, x, step), largest)
        y = _joined(y, cuda.shfl_xor_sync(-1, y, step), largest)
    return x, y


def _over_team_by_halves(x, y, largest):  # type: ignore[no-untyped-def]
    """As `_over_team_by_warps`, for Numba's simulator, which knows no warps."""
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
    one_member.member: _member,
    one_member.members: _members,
    one_member.once: _once,
    one_member.wait: _wait,
    one_member.team_sum: _team_sum,
    one_member.team_sums: _team_sums,
    one_member.team_max: _team_max,
}

# --- scratch: where kernels allocate on the CPU ----------------------------------------------
#
# Compiled into their callers, since functions for a GPU return no arrays.


@cuda.jit(device=True, inline="always")
def _new_floats(scratch, lo, begin, size):  # type: ignore[no-untyped-def]
    at = scratch.begin[lo] - scratch.first + begin
    return scratch.floats[at : at + size]


@cuda.jit(device=True, inline="always")
def _new_table(scratch, lo, begin, rows, columns):  # type: ignore[no-untyped-def]
    at = scratch.begin[lo] - scratch.first + begin
    return scratch.floats[at : at + rows * columns].reshape((rows, columns))


_SCRATCH = {one_member.new_floats: _new_floats, one_member.new_table: _new_table}

# --- from kernels to functions for the GPU ---------------------------------------------------

_functions: dict[tuple[Any, int], Any] = {}
_launchers: dict[tuple[Any, int], Any] = {}


def device_function(one: Any, team: int) -> Any:
    """Return the function of a kernel for the GPU, with ``team`` threads to a query."""
    if one in _SCRATCH:
        return _SCRATCH[one]
    if team > 1 and one in _OF_TEAM:
        return _OF_TEAM[one]
    if (one, team) not in _functions:
        _functions[one, team] = cuda.jit(device=True)(_rebound(one.py_func, team))
    return _functions[one, team]


def _rebound(function: Callable[..., Any], team: int) -> Callable[..., Any]:
    """Return the same code with the names that it uses bound to what they are on the GPU."""
    scope: dict[str, Any] = {"__builtins__": builtins, "__name__": function.__module__}
    for name in _names(function.__code__):
        if name in function.__globals__:
            scope[name] = _on_device(function.__globals__[name], team)
    return FunctionType(function.__code__, scope, function.__name__, function.__defaults__)


def _on_device(value: Any, team: int) -> Any:
    if isinstance(value, CachedKernel):
        return device_function(value, team)
    if isinstance(value, Lanes):
        return int(value) // LANES * lanes(team)
    return _shared_range if team > 1 and value is range else value


def lanes(team: int) -> int:
    """Return what `rankwright.core.team.LANES` is for a team: one for each member."""
    return team if team > 1 else int(LANES)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def allocating(one: Any) -> str | None:
    """Return the first function that allocates, of a kernel and those that it calls, or None.

    On a GPU there is no memory to be had within a kernel.
    """
    found = {one}
    left = [one]
    while left:
        function = left.pop().py_func
        names = set(_names(function.__code__))
        if names & _ALLOCATE:
            return f"{function.__module__}.{function.__name__}"
        called = {function.__globals__.get(name) for name in names if _is_kernel(function, name)}
        left += called - found - set(_SCRATCH)
        found |= called
    return None


def _is_kernel(function: Any, name: str) -> bool:
    return isinstance(function.__globals__.get(name), CachedKernel)


# --- launches --------------------------------------------------------------------------------


def launch(one: Any, queries: Any, args: tuple[Any, ...], *, team: int, stream: Any = 0) -> None:
    """Call ``kernel(q, q + 1, *args)`` for each of the queries, by ``team`` threads, all at once.

    The longest should come first: threads that work side by side wait for each other.
    """
    n = len(queries)
    if n == 0:
        return
    if (one, team) not in _launchers:
        _launchers[one, team] = _launcher(one, team)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*under-utilization")  # of few queries
        if team > 1:
            _launchers[one, team][n, team, stream, 16 * team](queries, args)
        else:
            _launchers[one, team][math.ceil(n / _THREADS), _THREADS, stream](queries, args)


def _launcher(one: Any, team: int) -> Any:
    function = device_function(one, team)

    def of_teams(queries, args):  # type: ignore[no-untyped-def]
        q = queries[cuda.blockIdx.x]
        function(q, q + 1, *args)

    def of_threads(queries, args):  # type: ignore[no-untyped-def]
        if cuda.grid(1) < len(queries):
            q = queries[cuda.grid(1)]
            function(q, q + 1, *args)

    return cuda.jit(of_teams if team > 1 else of_threads)


class DeviceMemory:
    """Arrays on the GPU, in torch's memory and on its stream; on the CPU where all is simulated."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._device = "cpu" if SIMULATED else "cuda"

    def zeros(self, n: int) -> Any:
        """Return a tensor of n zeros (float64)."""
        return self._torch.zeros(n, dtype=self._torch.float64, device=self._device)

    def copy(self, array: AnyArray) -> Any:
        """Return a copy of a NumPy array as a tensor; torch knows no uint64 and gets int64."""
        return self._torch.tensor(_signed(array), device=self._device)

    def refresh(self, tensor: Any, array: AnyArray) -> None:
        """Copy an array into its copy."""
        tensor.copy_(self._torch.from_numpy(_signed(array)))

    def fetch(self, tensor: Any, array: AnyArray) -> None:
        """Copy a tensor back into the array that it is a copy of."""
        _signed(array)[...] = tensor.cpu().numpy()

    def stream(self) -> Any:
        """Return torch's current stream, as `launch` takes it."""
        handle = 0 if SIMULATED else self._torch.cuda.current_stream().cuda_stream
        return cuda.external_stream(handle) if handle else 0


def _signed(array: AnyArray) -> AnyArray:
    return array.view(np.int64) if array.dtype == np.uint64 else array


def view(tensor: Any, dtype: Any = None) -> Any:
    """Return a tensor as kernels take it, without a copy; as another type of the same size."""
    there = tensor.numpy() if SIMULATED else cuda.as_cuda_array(tensor.detach(), sync=False)
    return there if dtype is None or there.dtype == dtype else there.view(dtype)
