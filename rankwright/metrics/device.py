"""Metrics on a GPU: scores are torch tensors there, and what comes back is a number by metric.

The kernels are those of the CPU (`rankwright.core.cuda`), for sorting as for the metrics that have
a `rankwright.metrics.base.DeviceForm`: sums over ranks (ndcg, dcg, p, ...), map, mrr and err. What
the grades alone say is copied once. Nothing here waits for the GPU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rankwright.core import cuda
from rankwright.core.cuda import DeviceHeap, DeviceMemory, QueryTeams
from rankwright.core.order import NO_KEY, sort_queries
from rankwright.core.types import F64, I64
from rankwright.errors import IncompatibleError
from rankwright.metrics.base import Metric
from rankwright.metrics.ranked import Judged, find_ties, tie_ends, tie_key

if TYPE_CHECKING:
    from rankwright.metrics.evaluation import Evaluator


class DeviceEvaluator:
    """The metrics of a `rankwright.metrics.evaluation.Evaluator` on a GPU."""

    def __init__(self, evaluator: Evaluator, torch: Any) -> None:
        self._torch = torch
        self._lists = _Lists(torch, evaluator.data.indptr)
        self._metrics = {
            name: _DeviceMetric(metric, evaluator.judge(metric), self._lists)
            for name, metric in evaluator.metrics.items()
        }
        memory = self._lists.memory
        self._weight = memory.copy(evaluator.query_weight())
        self._counted = {
            name: memory.copy(evaluator.counted_weight(name)) for name in self._metrics
        }
        with cuda.compiling():
            self.per_query(memory.zeros(evaluator.data.n_documents))

    def per_query(self, s: Any) -> dict[str, Any]:
        """Return the value of each query by metric, for scores on the GPU; NaN: left out."""
        orders: dict[Any, tuple[Any, Any]] = {}  # scores are sorted once for equal rules
        found = {}
        for name, one in self._metrics.items():
            if one.rule not in orders:
                orders[one.rule] = one.ranked(s)
            found[name] = one.values(*orders[one.rule])
        return found

    def means(self, s: Any) -> Any:
        """Return the mean over queries of each metric, as a tensor in the order of their names."""
        return self._torch.stack([self.mean(name, v) for name, v in self.per_query(s).items()])

    def mean(self, name: str, values: Any) -> Any:
        """Return the weighted mean over the queries that are not left out."""
        where, kept = self._torch.where, ~self._torch.isnan(values)
        total = where(kept, self._counted[name] * values, 0.0).sum()
        return total / where(kept, self._weight, 0.0).sum()

    def tied_queries(self, s: Any, grades: F64) -> Any:
        """Return how many queries have documents of different grades with equal scores."""
        lists = self._lists
        order = lists.sort(s, lists.memory.copy(NO_KEY))
        ties = self._torch.zeros((2, lists.n_queries), dtype=self._torch.bool, device=s.device)
        lists.launch(find_ties, lists.memory.copy(grades)[order], s, order, ties[0], ties[1])
        return ties[1].sum()


class _Lists:
    """The lists of a data set: what their kernels are launched with."""

    def __init__(self, torch: Any, indptr: I64) -> None:
        self.memory, self.indptr, self.n_queries = DeviceMemory(torch), indptr, len(indptr) - 1
        self._there = cuda.view(self.memory.copy(indptr))
        self._teams = QueryTeams(self.memory, indptr, team=True)
        self._alone = QueryTeams(self.memory, indptr, team=False)

    def sort(self, s: Any, key: Any) -> Any:
        """Return the rows of all queries, best first."""
        order, spare = self.memory.places(len(s)), self.memory.places(len(s))
        args = (self._there, *map(cuda.view, (s, key, order, spare)))
        self._teams.launch(sort_queries, 0, self.n_queries, args)
        return order

    def launch(self, kernel: Any, *args: Any, heap: DeviceHeap | None = None) -> None:
        """Call a kernel for each query, with one thread; tensors among ``args`` are passed on."""
        seen = [cuda.view(arg) if hasattr(arg, "data_ptr") else arg for arg in args]
        part = None if heap is None else heap.part(0, self.n_queries)
        self._alone.launch(kernel, 0, self.n_queries, (self._there, *seen), part)


class _DeviceMetric:
    """One metric on one data set."""

    def __init__(self, metric: Metric, judged: Judged, lists: _Lists) -> None:
        mean = metric.averages_ties and not metric.own_ties
        whole = judged.max_per_group is None and judged.retrieved is None
        form = metric.device_form(judged, mean) if whole and _is_own_form(metric) else None
        if form is None:
            raise IncompatibleError(f"{metric!r} is computed on the CPU alone.")
        self._form, self._lists, memory = form, lists, lists.memory
        ties = str(metric.setting("ties")).replace("mean", "file")
        self.rule = ties, judged.float32_scores
        key = tie_key(ties, judged)
        self._key = memory.copy(NO_KEY if key is None else key)
        self._x, self._divisor = memory.copy(form.x), memory.copy(form.divisor)
        self._args = [memory.copy(a) if isinstance(a, np.ndarray) else a for a in form.args]
        settled, values = metric.settled(judged)
        self._settled, self._values = memory.copy(np.asarray(settled)), memory.copy(values)
        self._heap = None
        if form.floats:
            numbers = form.floats * (np.diff(lists.indptr) + 1) * 2  # a multiple of 16 bytes each
            self._heap = DeviceHeap(memory, 8 * numbers)

    def ranked(self, s: Any) -> tuple[Any, Any]:
        """Return the ranking by these scores, and where its tie blocks end."""
        seen = s.float().double() if self.rule[1] else s
        order = self._lists.sort(seen, self._key)
        ends = self._lists.memory.places(len(order))
        self._lists.launch(tie_ends, seen, order, ends)
        return order, ends

    def values(self, order: Any, ends: Any) -> Any:
        """Return the value of each query."""
        form, lists = self._form, self._lists
        out = lists.memory.zeros(lists.n_queries)
        blocks = ends if form.ties else ends[:0]
        lists.launch(form.kernel, self._x[order], blocks, *self._args, out, heap=self._heap)
        out = out / self._divisor
        if form.single:
            out = out.float().double()
        return self._values.where(self._settled, out)


def _is_own_form(metric: Metric) -> bool:
    """Return whether the form is of the class that computes the values, or of one derived of it.

    A metric that computes something else than the class that it derives from has no form.
    """
    classes = type(metric).__mro__

    def place(name: str) -> int:
        return next(k for k, one in enumerate(classes) if name in vars(one))

    return place("device_form") <= min(place("compute"), place("values"))
