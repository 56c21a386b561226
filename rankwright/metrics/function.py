"""A metric of the caller's own: a function of the scores and grades of one query."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rankwright.core.types import F64
from rankwright.errors import DataError, UsageError
from rankwright.metrics.base import Metric
from rankwright.metrics.convention import SKIP
from rankwright.metrics.ranked import Judged, Ranked


@dataclass(frozen=True, repr=False, kw_only=True)
class FunctionMetric(Metric):
    """A metric that calls a function for each query; build it with `from_function`.

    Attributes
    ----------
    function : callable
        From the scores and grades of one query to a number.
    name : str
        What the metric is called in results.
    maximise : bool
        Whether a higher value is better.
    """

    key: ClassVar[str] = "function"
    takes_k: ClassVar[bool] = False
    takes_limit: ClassVar[bool] = False
    when_empty: ClassVar[str] = SKIP

    function: Callable[[F64, F64], float]
    name: str
    maximise: bool = True  # type: ignore[misc]

    def __repr__(self) -> str:
        return self.name

    @property
    def own_ties(self) -> bool:  # noqa: D102
        return True

    def compute(self, ranked: Ranked, mean: bool, out: F64) -> None:  # noqa: ARG002, D102
        data, retrieved = ranked.judged.data, ranked.judged.retrieved
        scores, grades = ranked.scores.view(), ranked.judged.grades.view()
        for array in (scores, grades):
            array.flags.writeable = False  # they are the caller's, and those of other metrics
        for q in np.flatnonzero(ranked.judged.sizes):
            rows: Any = slice(data.indptr[q], data.indptr[q + 1])
            if retrieved is not None:
                rows = data.indptr[q] + np.flatnonzero(retrieved[rows])
            out[q] = self._number(self.function(scores[rows], grades[rows]), data.qid[q])

    def nothing_to_find(self, judged: Judged) -> Any:  # noqa: D102
        return judged.sizes == 0  # what any other query is worth, the function decides

    def _number(self, value: Any, query: Any) -> float:
        if np.ndim(value) == 0 and np.asarray(value).dtype.kind in "fiub":
            return float(value)
        raise DataError(
            f"the metric '{self.name}' returned {value!r} for query {query}; it must return one "
            "number for each query, or NaN to leave the query out."
        )


def from_function(
    function: Callable[[F64, F64], float], name: str | None = None, *, maximise: bool = True
) -> Metric:
    """Return a metric that calls ``function`` for each query.

    It is taken wherever a metric is: by `rankwright.evaluate`, as ``metric=`` or
    ``select_metric=`` of a ranker, by ``compare`` and ``tune``. A plain function given there is
    wrapped by itself. The result is the mean of its values over queries, by their weight, under any
    convention. What equal scores are worth is for the function to say. A loss that asks what a swap
    of two documents changes (LambdaRank) does not take it.

    Parameters
    ----------
    function : callable
        ``function(scores, grades)`` returns a number for one query, NaN to leave the query out of
        the mean. Both are read-only float64 arrays of the query's documents, in the order of their
        rows.
    name : str
        What the metric is called in results; by default the function's own name.
    maximise : bool
        Whether a higher value is better; False for an error.

    Examples
    --------
    >>> import numpy as np
    >>> def first_grade(scores, grades):
    ...     return grades[np.argmax(scores)]
    >>> from_function(first_grade)
    first_grade
    """
    if not callable(function):
        raise UsageError(f"from_function takes a function, not {function!r}.")
    if name is None:
        name = getattr(function, "__name__", type(function).__name__).strip("<>")
    if not isinstance(name, str) or not name.strip():
        raise UsageError(f"the name of a metric is a text, not {name!r}.")
    return FunctionMetric(function=function, name=name, maximise=maximise)
