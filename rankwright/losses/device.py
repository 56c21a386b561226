"""Bound losses on a GPU: scores and gradients are torch tensors there and stay there.

The kernels are those of the CPU (`rankwright.core.cuda`); what a loss knows of its data is copied
once, when it is bound. Nothing here waits for the GPU, but for `DeviceLoss.state`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwright.core import cuda
from rankwright.core.cuda import DeviceMemory, QueryTeams
from rankwright.core.team import Scratch
from rankwright.core.types import F64, I64, AnyArray
from rankwright.errors import IncompatibleError

if TYPE_CHECKING:
    from rankwright.losses.base import KernelLoss


class DeviceLoss:
    """What `rankwright.losses.base.KernelLoss.on_device` returns; see there for the arguments.

    ``per_query`` is the weighted loss of each query at its last scores, on the GPU.
    """

    def __init__(
        self,
        loss: KernelLoss,
        kernel: Callable[..., None],
        args: tuple[Any, ...],
        indptr: I64,
        weight: F64,
        *,
        torch: Any,
        present: tuple[I64, I64] | None,
        score_limit: float | None,
        scratch: Callable[[I64, int], I64] | None,
        team: bool,
    ) -> None:
        if cuda.allocates(kernel):
            raise IncompatibleError("its kernels allocate memory, which they cannot do on a GPU.")
        if score_limit is not None:
            raise IncompatibleError("its limit on scores is checked on the CPU only.")
        self.memory = DeviceMemory(torch)
        self._loss, self._kernel = loss, kernel
        self._copies: list[tuple[AnyArray, Any, Any]] = []  # arrays, tensors, and views of these
        self._args = tuple(self._to_device(arg) for arg in args)
        self._indptr, self._there = indptr, self._to_device(indptr)
        self._weight, self._nothing = self._to_device(weight), self._to_device(np.empty(0))
        self._present = None
        if present is not None:
            self._present = self.memory.copy(present[0]), present[1]
        sizes = np.diff(indptr)
        self._teams = QueryTeams(self.memory, indptr, team=team)
        self._scratch_begin: I64 | None = None
        if scratch is not None:
            floats = np.zeros(len(sizes), np.int64)
            for threads in np.unique(self._teams.threads).tolist():
                own = self._teams.threads == threads
                floats[own] = scratch(sizes[own], cuda.lanes(threads))
            self._scratch_begin = np.append(0, np.cumsum(floats)).astype(np.int64)
            self._scratch_there = self._to_device(self._scratch_begin)
            self._floats = self.memory.zeros(0)
        self.per_query = self.memory.zeros(len(weight))
        self._compile()

    def grad_queries(self, lo: int, hi: int, s: Any, out: Any) -> Any:
        """Write the gradient of the queries lo:hi to their rows of ``out``; return their loss.

        ``s`` and ``out`` have one number (float64) for each document of the data.
        """
        seen, part = self._seen(lo, hi, s), self._scratch_for(out)
        views = (self._weight, cuda.view(self.per_query), cuda.view(part), self._nothing)
        self._launch(self._kernel, lo, hi, seen, *views)
        self._put(lo, hi, part, out)
        return self.per_query[lo:hi].sum()

    def set_iteration(self, t: int) -> None:
        """Take what is sampled in round ``t`` from here on, where anything is."""
        step = getattr(self._loss, "set_iteration", None)
        if step is not None:
            step(t)
            self._send()

    def state(self) -> dict[str, AnyArray]:
        """Return what answers depend on beside the scores."""
        kept = self._loss.state()
        for array, tensor in self._shared(kept):
            self.memory.fetch(tensor, array)
        return kept

    def load_state(self, kept: Mapping[str, AnyArray]) -> None:
        """Be as the loss that had this `state`."""
        self._loss.load_state(kept)
        self._send()

    def _compile(self) -> None:
        """Compile the kernel by its first query, or say that it does not work on a GPU."""
        nothing, first = self.memory.zeros(int(self._indptr[-1])), min(1, len(self._indptr) - 1)
        views = (self._weight, cuda.view(self.per_query), cuda.view(nothing), self._nothing)
        kept = {name: array.copy() for name, array in self._loss.state().items()}
        with cuda.compiling():
            self._launch(self._kernel, 0, first, nothing, *views)
        if kept:
            self.load_state(kept)

    # --- between here and there

    def _to_device(self, arg: Any) -> Any:
        """Return an argument with its arrays on the GPU; one array stays one."""
        if isinstance(arg, tuple):
            parts = [self._to_device(part) for part in arg]
            return type(arg)(*parts) if hasattr(arg, "_fields") else tuple(parts)
        if not isinstance(arg, np.ndarray):
            return arg
        for array, _, there in self._copies:
            if array is arg:
                return there
        tensor = self.memory.copy(arg)
        self._copies.append((arg, tensor, cuda.view(tensor, arg.dtype)))
        return self._copies[-1][2]

    def _shared(self, kept: Mapping[str, AnyArray]) -> Iterator[tuple[AnyArray, Any]]:
        """Yield the copies of arrays that ``kept`` are parts of."""
        for array, tensor, _ in self._copies:
            if any(np.shares_memory(array, part) for part in kept.values()):
                yield array, tensor

    def _send(self) -> None:
        for array, tensor in self._shared(self._loss.state()):
            self.memory.refresh(tensor, array)

    # --- launches

    def _launch(self, kernel: Any, lo: int, hi: int, s: Any, *last: Any) -> None:
        args = self._args
        if self._scratch_begin is not None:
            first = int(self._scratch_begin[lo])
            needed = int(self._scratch_begin[hi]) - first
            if len(self._floats) < needed:
                self._floats = self.memory.zeros(needed)
            args = (*args[:-1], Scratch(cuda.view(self._floats), self._scratch_there, first))
        self._teams.launch(kernel, lo, hi, (self._there, cuda.view(s), *args, *last))

    def _seen(self, lo: int, hi: int, s: Any) -> Any:
        """Return the scores as the kernels see them: of documents of positive weight."""
        if self._present is None:
            return s
        own = slice(int(self._indptr[lo]), int(self._indptr[hi]))
        seen = self.memory.zeros(int(self._indptr[-1]))
        seen[own] = s[self._present[0][own]]
        return seen

    def _scratch_for(self, out: Any) -> Any:
        return out if self._present is None else self.memory.zeros(int(self._indptr[-1]))

    def _put(self, lo: int, hi: int, part: Any, out: Any) -> None:
        if self._present is None:
            return
        rows, begin = self._present
        own = slice(int(self._indptr[lo]), int(self._indptr[hi]))
        out[int(begin[lo]) : int(begin[hi])] = 0.0
        out[rows[own]] = part[own]
