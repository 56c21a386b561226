"""Bound losses on a GPU: scores and gradients are torch tensors there and stay there.

The kernels are those of the CPU (`rankwright.core.cuda`). The terms of a loss are copied once, when
it is bound. Nothing here waits for the GPU, except `DeviceLoss.state`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwright.core import cuda
from rankwright.core.cuda import DeviceMemory, QueryTeams
from rankwright.core.types import AnyArray
from rankwright.errors import IncompatibleError

if TYPE_CHECKING:
    from rankwright.losses.base import BoundKernel


class DeviceLoss:
    """A `rankwright.losses.base.BoundKernel` on a GPU.

    ``per_query`` is the weighted loss of each query at the last scores, on the GPU.
    """

    def __init__(self, bound: BoundKernel, torch: Any) -> None:
        self._kernel = bound.loss.run
        if cuda.allocates(self._kernel):
            raise IncompatibleError("its kernels allocate memory, which they cannot do on a GPU.")
        if bound.score_limit is not None:
            raise IncompatibleError("its limit on scores is checked on the CPU only.")
        self._bound, self.memory = bound, DeviceMemory(torch)
        self._copies: list[tuple[AnyArray, Any, Any]] = []  # arrays, tensors, and views of these
        self._terms = tuple(self._to_device(term) for term in bound.terms)
        layout = bound.layout
        self._begin, self._indptr = layout.begin, layout.indptr
        self._indptr_view = self._to_device(layout.indptr)
        self._rows = None if layout.rows is None else self.memory.copy(layout.rows)
        self._weight = self.memory.copy(bound.weight)
        self._row_weight = self.memory.copy(np.repeat(bound.weight, np.diff(layout.indptr)))
        team = cuda.shares_queries(self._kernel)
        self._teams = QueryTeams(
            self.memory, layout.indptr, np.flatnonzero(bound.weight), team=team
        )
        self.per_query = self.memory.zeros(len(bound.weight))
        self._curvature = self.memory.zeros(int(layout.indptr[-1]))
        self._compile()

    def grad_queries(self, lo: int, hi: int, s: Any, out: Any) -> Any:
        """Write the gradient of the queries lo:hi to their rows of ``out``; return their loss.

        ``s`` and ``out`` have one number (float64) for each document of the data.
        """
        present = slice(int(self._indptr[lo]), int(self._indptr[hi]))
        seen, part = s, out
        if self._rows is not None:
            rows = self._rows[present]
            seen = self.memory.zeros(int(self._indptr[-1]))
            part = self.memory.zeros(int(self._indptr[-1]))
            seen[present] = s[rows]
        part[present] = 0.0
        self._curvature[present] = 0.0
        self.per_query[lo:hi] = 0.0
        self._launch(lo, hi, seen, part)
        self.per_query[lo:hi] *= self._weight[lo:hi]
        part[present] *= self._row_weight[present]
        if self._rows is not None:
            out[int(self._begin[lo]) : int(self._begin[hi])] = 0.0
            out[rows] = part[present]
        return self.per_query[lo:hi].sum()

    def set_iteration(self, t: int) -> None:
        """Use the samples of iteration ``t``, if the loss samples."""
        step = getattr(self._bound, "set_iteration", None)
        if step is not None:
            step(t)
            self._send()

    def state(self) -> dict[str, AnyArray]:
        """Return the arrays, besides the scores, on which results depend."""
        state = self._bound.state()
        for array, tensor in self._shared(state):
            self.memory.fetch(tensor, array)
        return state

    def load_state(self, arrays: Mapping[str, AnyArray]) -> None:
        """Restore the arrays that `state` returned."""
        self._bound.load_state(arrays)
        self._send()

    def _compile(self) -> None:
        """Compile the kernel by its first query; raise if it does not work on a GPU."""
        zeros = self.memory.zeros(int(self._indptr[-1]))
        state = {name: array.copy() for name, array in self._bound.state().items()}
        with cuda.compiling():
            for q in np.flatnonzero(self._bound.weight)[:1].tolist():
                self._launch(q, q + 1, zeros, zeros)
        if state:
            self.load_state(state)

    def _launch(self, lo: int, hi: int, s: Any, grad: Any) -> None:
        views = (cuda.view(array) for array in (self.per_query, grad, self._curvature))
        self._teams.launch(
            self._kernel, lo, hi, (self._indptr_view, cuda.view(s), *self._terms, *views)
        )

    def _to_device(self, term: Any) -> Any:
        """Return a term with its arrays on the GPU; an array in several places stays one."""
        if isinstance(term, tuple):
            parts = [self._to_device(part) for part in term]
            return type(term)(*parts) if hasattr(term, "_fields") else tuple(parts)
        if not isinstance(term, np.ndarray):
            return term
        for array, _, device_view in self._copies:
            if array is term:
                return device_view
        tensor = self.memory.copy(term)
        self._copies.append((term, tensor, cuda.view(tensor, term.dtype)))
        return self._copies[-1][2]

    def _shared(self, state: Mapping[str, AnyArray]) -> Iterator[tuple[AnyArray, Any]]:
        """Yield the copied arrays that the arrays of ``state`` are parts of."""
        for array, tensor, _ in self._copies:
            if any(np.shares_memory(array, part) for part in state.values()):
                yield array, tensor

    def _send(self) -> None:
        for array, tensor in self._shared(self._bound.state()):
            self.memory.refresh(tensor, array)
