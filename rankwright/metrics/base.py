"""Base classes of metrics, and metrics by name.

A metric is a frozen value, and its ``repr`` is its name: ``ndcg@10``, ``err(max=5)@10``,
``p(min_grade=2)@5``, ``ndcg(gain=linear,max_per_group=2)@5``, or ``ndcg(gain=0:1:3:7)@10`` with the
gain of each grade. The convention sets all other parameters.

**Empty queries.** A query is empty for a metric if no order of its documents can earn anything: no
document with a gain, no relevant document, or, for metrics over pairs, no two documents to put in
order. Queries without documents are always empty. `Metric.values` sets their values: metrics that
divide by the best possible value get the convention's ``empty``, metrics over pairs omit the query,
and the rest is 0. Under ``empty="skip"`` every metric omits the query. NaN marks an omitted
query.

**Tied scores.** ``ties=mean``, the rule of the standard convention, is the mean of the metric over
all orders of tied documents (`mcsherry2008ties`). It has a closed form, except under
``max_per_group``, because the order of ties then determines which documents of a group stay, and
for `iprec`. For these it is the mean over `SAMPLED_ORDERS` sampled orders, the same ones in every
call. Models (rounds, penalties, features) are selected by `Metric.for_selection`, so that file
order earns nothing.
"""

from __future__ import annotations

import re
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from rankwright.core.checks import HIGHEST_EXP2_GRADE
from rankwright.core.dtypes import refuse_masked
from rankwright.core.parameters import check_parameters
from rankwright.core.types import F64, I64
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError, quoted
from rankwright.metrics.convention import (
    CLAUSES,
    SKIP,
    STANDARD,
    Convention,
    checked_gains,
    is_gain_list,
)
from rankwright.metrics.ranked import BINARY, Judged, Ranked, weighted_sums
from rankwright.metrics.swap import LINEAR_SWAP, SwapForm
from rankwright.registry import METRICS, plugins, resolve

_HIGHEST = 1000.0  # 2^1024 is infinite, and a list may hold many
_MOST_RANKS = 1_000_000_000  # kernels add to a cut-off, which must not overflow int64
_MOST_CUTOFFS = 1000
_LARGEST_FLOAT = sys.float_info.max


# --- constraints of parameters ---------------------------------------------------------------


def _whole(name: str, value: Any) -> None:
    if not isinstance(value, Integral) or isinstance(value, bool) or int(value) < 1:
        raise UsageError(f"{name} must be a whole number from 1, not {value}.")
    if int(value) > _MOST_RANKS:
        raise UsageError(f"{name} must be {_MOST_RANKS:,} or less; leave {name} out for no limit.")


def _clause(name: str, value: Any) -> None:
    values = CLAUSES[name][1]
    assert not callable(values), "a clause with listed values"
    if value not in list(values):  # a list: the value may have no hash
        raise UsageError(f"{name} must be {' or '.join(map(str, values))}, not {value}.")


def _gain(name: str, value: Any) -> None:
    if is_gain_list(value):
        checked_gains(value, name)
    else:
        _clause(name, value)


def number_between(
    low: float, high: float = np.inf, *, inclusive: bool = False
) -> Callable[[str, Any], None]:
    """Return the check of a number between ``low`` and ``high``, for a declared type."""

    def check(name: str, value: Any) -> None:
        if isinstance(value, int) and abs(value) > _LARGEST_FLOAT:
            raise UsageError(f"{name} is too large for a number in double precision.")
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        if not is_number or not (
            low < float(value) < high or (inclusive and float(value) in (low, high))
        ):
            limits = f"above {low:g}" if high == np.inf else f"between {low:g} and {high:g}"
            limits = f"from {low:g} to {high:g}" if inclusive else limits
            raise UsageError(f"{name} must be a number {limits}, not {value}.")

    return check


Ranks = Annotated[int, _whole]
Grade = Annotated[float, number_between(0)]
Clause = Annotated[float | str, _clause]
Gain = Annotated[str | tuple[float, ...], _gain]


@dataclass(frozen=True, repr=False, kw_only=True)
class Metric(ABC):
    """A metric of a ranking; build it by name with `rankwright.metric`.

    Attributes
    ----------
    k : int or None
        Cut-off: only the first k ranks count. None counts all ranks.
    empty, ties
        Replace the convention's clauses of the same name.
    max_per_group : int or None
        Maximum number of documents of each group in the ranking and in the best possible list.
    convention : Convention
        Source of all parameters that are None.

    Examples
    --------
    >>> import rankwright as rw
    >>> metric = rw.metric("ndcg@10")
    >>> metric.k, metric.convention.name
    (10, 'standard')
    """

    key: ClassVar[str]
    takes_k: ClassVar[bool] = True
    maximise: ClassVar[bool] = True
    bounds: ClassVar[tuple[float, float]] = (-np.inf, np.inf)  # lowest and highest possible value
    when_empty: ClassVar[str] = "zero"  # "convention": see its clause; SKIP: omit the query
    takes_limit: ClassVar[bool] = True  # accepts max_per_group
    takes_runs: ClassVar[bool] = True  # is defined if some documents have no score
    exact_ties: ClassVar[bool] = True  # the mean over orders of ties has a closed form
    takes_subtopics: ClassVar[bool] = False  # depends on the subtopics of documents
    summary: ClassVar[str] = "mean"  # of the values of queries; or "geometric mean" or "sum"

    k: Ranks | None = None
    empty: Clause | None = None
    ties: Clause | None = None
    max_per_group: Ranks | None = None
    convention: Convention = STANDARD

    def __post_init__(self) -> None:
        if self.k == 0:
            raise UsageError(
                f"{self.key}@0 counts no rank; write {self.key}@10, or {self.key} for the whole "
                "list: k must be a whole number from 1, not 0."
            )
        check_parameters(self)
        if is_gain_list(getattr(self, "gain", None)):  # a tuple, which has a hash
            object.__setattr__(self, "gain", checked_gains(self.gain))  # type: ignore[attr-defined]
        if self.k is not None and not self.takes_k:
            raise UsageError(f"{self.key} uses the whole list; write it without @{self.k}.")
        if self.max_per_group is not None and not self.takes_limit:
            raise UsageError(f"{self.key} compares all documents; write it without max_per_group.")

    def __repr__(self) -> str:
        changed = [
            f"{field.name}={_text(value)}"
            for field in fields(self)
            if field.name not in ("k", "convention")
            and (value := getattr(self, field.name)) != field.default
        ]
        arguments = f"({','.join(changed)})" if changed else ""
        return f"{self.key}{arguments}{'' if self.k is None else f'@{self.k}'}"

    @classmethod
    def build(cls, parameters: dict[str, str], cut: str | None, convention: Convention) -> Self:
        """Build from the texts in a name; ``cut`` is the number after ``@``."""
        names = [f.name for f in fields(cls) if f.name not in ("k", "convention")]
        for name in parameters:
            if name not in names:
                raise UsageError(f"{cls.key} has no parameter '{name}'; it has {', '.join(names)}.")
        if cut is not None and not cut.isdigit():
            raise UsageError(f"the cut-off {cut} of {cls.key} is not a whole number; {_HELP}.")
        k = None if cut is None else cutoff(cut)
        values: dict[str, Any] = {name: _value(text) for name, text in parameters.items()}
        return cls(k=k, convention=convention, **values)

    # --- properties --------------------------------------------------------------------------

    def setting(self, clause: str) -> Any:
        """Return a parameter of this metric, or the convention's clause of that name if None."""
        value = getattr(self, clause, None)
        return getattr(self.convention, clause) if value is None else value

    @property
    def gains_by_grade(self) -> tuple[float, ...] | None:
        """The gain of each grade from 0, if the user specified gains; otherwise None."""
        return None

    @property
    def own_ties(self) -> bool:
        """Whether the definition of the metric covers tied scores."""
        return False

    @property
    def averages_ties(self) -> bool:
        """Whether the value is the mean over the orders of tied documents."""
        return bool(self.setting("ties") == "mean")

    def for_selection(self) -> Self:
        """Return the metric that selects a model: the mean over the orders of ties.

        The convention's rule is only for reports: selection by file order, for example, would
        reward tied scores if that order is informative. A rule in the metric's name has priority.
        """
        return replace(self, ties=self.ties or "mean")

    @abstractmethod
    def compute(self, ranked: Ranked, mean: bool, out: F64) -> None:
        """Write the value of each query, or its mean over orders of ties if ``mean``.

        `values` replaces the values of empty queries.
        """

    @abstractmethod
    def nothing_to_find(self, judged: Judged) -> Any:
        """Return a mask of the empty queries."""

    # --- values ------------------------------------------------------------------------------

    def judge(self, data: RankingData, *, n_jobs: int | None = None) -> Judged:
        """Return the grades of ``data`` as this metric uses them."""
        return Judged(data, **self.judged_options(), n_jobs=n_jobs)

    def judged_options(self) -> dict[str, Any]:
        """Return the parameters of `Judged` for this metric."""
        return {
            "integer_grades": self.convention.integer_grades,
            "max_per_group": self.max_per_group,
            "gains": self.gains_by_grade,
            "float32_scores": self.convention.score_precision == "float32",
        }

    def values(self, ranked: Ranked, *, mean: bool | None = None) -> F64:
        """Return the value of each query; NaN if it is omitted from the mean over queries.

        ``mean=True`` averages over the orders of ties under any convention.
        """
        out = np.empty(len(ranked.indptr) - 1)
        if mean is None:
            mean = self.averages_ties and not self.own_ties
        sampled = not self.exact_ties or ranked.judged.max_per_group is not None
        with np.errstate(divide="ignore", invalid="ignore"):  # for the empty queries
            if mean and sampled:
                self._mean_of_sampled_orders(ranked, out)
            else:
                self.compute(ranked, mean, out)
        judged = ranked.judged
        settled, values = judged.once(("settled", self), lambda: self.settled(judged))
        out[settled] = values[settled]
        return out

    def settled(self, judged: Judged) -> tuple[Any, F64]:
        """Return a mask of the queries whose value is the same for every order, and the values."""
        nothing = self.nothing_to_find(judged)
        return nothing, np.full(len(nothing), self.value_when_empty())

    def _mean_of_sampled_orders(self, ranked: Ranked, out: F64) -> None:
        first, *orders = ranked.sampled_orders()
        self.compute(first, False, out)
        change, value = np.zeros(len(out)), np.empty(len(out))
        for order in orders:
            self.compute(order, False, value)
            change += value - out
        out += change / (1 + len(orders))

    def value_when_empty(self) -> float:
        """Return the value of an empty query."""
        value = self.setting("empty")
        if value == SKIP or self.when_empty == SKIP:
            return np.nan
        return float(value) if self.when_empty == "convention" else 0.0

    def query_weight(self, judged: Judged) -> F64:
        """Return the weight of each query in the mean; NaN: the mean of the weights above 0."""
        data = judged.data
        weight = np.ones(data.n_queries) if data.query_weight is None else data.query_weight
        if self.convention.weighs_queries and data.sample_weight is not None:
            return weight * judged.mean_weights(self.relevance(judged))
        return weight

    def relevance(self, judged: Judged) -> F64:
        """Return the relevance of each row, its weight in the derived weight of its query."""
        relevant: F64 = (judged.data.y >= self.setting("min_grade")).astype(np.float64)
        return relevant

    def per_query(self, s: F64, data: RankingData, out: F64) -> None:
        """Write the value of each query under scores ``s`` to ``out``."""
        ranked = Ranked(self.judge(data), checked_scores(s, data), self.setting("ties"))
        out[:] = self.values(ranked)

    def cut(self, judged: Judged) -> I64:
        """Return the number of ranks of each query that count."""
        if self.k is None:
            return judged.best_sizes
        return np.full(len(judged.sizes), self.k, np.int64)


@dataclass(frozen=True, repr=False, kw_only=True)
class RelevanceMetric(Metric):
    """A metric that only distinguishes relevant and other documents."""

    min_grade: Grade | None = None

    def nothing_to_find(self, judged: Judged) -> Any:  # noqa: D102
        return judged.top < self.setting("min_grade")


@dataclass(frozen=True, repr=False, kw_only=True)
class PairMetric(Metric):
    """A metric that compares pairs of documents by their scores instead of their ranks."""

    takes_k: ClassVar[bool] = False
    takes_limit: ClassVar[bool] = False
    takes_runs: ClassVar[bool] = False
    when_empty: ClassVar[str] = SKIP

    @property
    def own_ties(self) -> bool:  # noqa: D102
        return self.ties != "mean"

    def nothing_to_find(self, judged: Judged) -> Any:  # noqa: D102
        return judged.top == judged.bottom


@dataclass(frozen=True, repr=False, kw_only=True)
class PositionMetric(Metric):
    """A metric that is a sum over ranks of a weight by rank times a gain by document.

        value = sum_{r = 1}^{min(cut, n)} a_r b_{doc(r)} / scale                                 (1)

    This is the form <a(pi), b(y)> of DORM (`le2007dorm`). Subclasses define gain, weights and
    scale. In the mean over the orders of ties, the mean gain of the tied documents replaces the
    gain of each, because each document has each rank of its block in the same number of orders.
    """

    @abstractmethod
    def gain_rule(self, judged: Judged) -> tuple[int, float | F64]:
        """Return the kind of gain, and its level, for all queries or for each."""

    def row_grades(self, judged: Judged) -> F64:
        """Return the number of each row of the data that its gain depends on."""
        return judged.grades

    def weights(self, n: int) -> F64:
        """Return the weights of ranks 1 to n."""
        return np.ones(n)

    def scale(self, judged: Judged) -> F64:
        """Return the divisor of the sum of each query."""
        return np.ones(len(judged.sizes))

    def compute(self, ranked: Ranked, mean: bool, out: F64) -> None:  # noqa: D102
        judged = ranked.judged
        kernel, arguments, scale = judged.once(("form", self), lambda: self.form(judged))
        rows = judged.once(("rows", self), lambda: self.row_grades(judged))
        grades = ranked.grades if rows is judged.grades else rows[ranked.order]
        ranked.map(kernel, grades, ranked.blocks(mean), *arguments, out)
        out /= scale

    def form(self, judged: Judged) -> tuple[Callable[..., None], tuple[Any, ...], F64]:
        """Return the kernel that computes the sums, its arguments, and the divisor of each query.

        The first arguments of the kernel are the range of queries, their boundaries, the grades by
        rank and the ends of tie blocks; its last argument is the output.
        """
        return weighted_sums, self.terms(judged), self.scale(judged)

    def best_sums(self, judged: Judged) -> F64:
        """Return the sum of (1) for the best list."""
        out = np.empty(len(judged.sizes))
        no_blocks = np.empty(0, np.int64)
        judged.map_best(weighted_sums, judged.ideal, no_blocks, *self.terms(judged), out)
        return out

    def terms(self, judged: Judged) -> tuple[int, F64, F64, I64]:
        """Return the kind and levels of gains, the weights of ranks and the cut-offs of queries."""

        def compute() -> tuple[int, F64, F64, I64]:
            kind, level = self.gain_rule(judged)
            weights = self.weights(int(judged.best_sizes.max(initial=0)))
            return kind, np.full(len(judged.sizes), level, np.float64), weights, self.cut(judged)

        terms: tuple[int, F64, F64, I64] = judged.once(("terms", self), compute)
        return terms

    def nothing_to_find(self, judged: Judged) -> Any:  # noqa: D102
        kind, level, _, _ = self.terms(judged)
        return judged.top < level if kind == BINARY else judged.top <= level

    def swap_form(self, data: RankingData) -> SwapForm:
        """Return the data from which kernels compute the effect of swapping two documents."""
        judged = self.judge(data)
        kind, level, weights, _ = self.terms(judged)
        gains = judged.gains(self.row_grades(judged), kind, level)
        return SwapForm.of(self, judged, LINEAR_SWAP, gains, weights, self.scale(judged))


def checked_scores(s: Any, data: RankingData, *, caller_order: bool = False) -> F64:
    """Return scores as float64, one per row of ``data``; an error names the first wrong score.

    ``caller_order`` means that scores are in the order of the rows that ``data`` was built from. A
    torch tensor on a GPU is copied to the CPU.
    """
    refuse_masked(s, "scores")
    scores: Any = np.asarray(s.detach().cpu() if getattr(s, "is_cuda", False) else s)
    if scores.ndim == 2 and scores.shape[1] == 1:
        scores = scores[:, 0]
    if scores.shape != data.y.shape:
        actual = str(len(scores)) if scores.ndim == 1 else f"an array of shape {scores.shape}"
        raise DataError(
            f"there must be one score per row: {len(data.y)} are expected, not {actual}."
        )
    if scores.dtype.kind not in "fiub":
        raise DataError(f"scores must be numbers, not of type {scores.dtype}.")
    scores = np.ascontiguousarray(scores, np.float64)
    moved = data.row if caller_order else None
    if moved is not None:
        scores = scores[moved]
    missing = scores != scores
    if missing.any():
        row = int(missing.argmax())
        query = data.qid[np.searchsorted(data.indptr, row, side="right") - 1]
        shown = row if moved is None else int(moved[row])
        raise DataError(f"the score of row {shown} (query {query}) is NaN, which cannot be ranked.")
    checked: F64 = scores
    return checked


def check_exp2_gains(highest: float, advice: str = "") -> None:
    """Raise if 2^highest overflows, and warn if such gains let a few documents dominate.

    ``advice`` names an alternative to other grades, for the error.
    """
    if highest > _HIGHEST:
        raise DataError(
            f"grade {highest:g} has a gain of 2^{highest:g} - 1, which overflows; {advice}"
            "make the grades 0, 1, 2, ... up to a few."
        )
    warn_of_huge_gains(highest, "gains of 2^grade - 1")


def warn_of_huge_gains(highest: float, gains: str) -> None:
    """Warn if the highest grade is so high that exponential gains let few documents decide."""
    if highest > HIGHEST_EXP2_GRADE:
        warnings.warn(
            f"the highest grade is {highest:g}: with {gains} a few documents outweigh all others. "
            "If grades are counts, map them to a few grades, or use linear gains, as in "
            "metric='ndcg(gain=linear)@10'.",
            stacklevel=1,  # one place, so that Python shows it once
        )


# --- parameters in names ---------------------------------------------------------------------


def cutoff(digits: str) -> int:
    """Return the cut-off in the name of a metric; `Metric` checks its range."""
    return int(digits) if len(digits) < 19 else _MOST_RANKS + 1  # int() refuses 5,000 digits


def _value(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    if ":" in text:  # the gain of each grade
        return checked_gains(text.split(":"))
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return ":".join(repr(int(gain) if gain == int(gain) else gain) for gain in value)
    return str(value).lower() if isinstance(value, bool) else str(value)


# --- functions as metrics --------------------------------------------------------------------


@dataclass(frozen=True, repr=False, kw_only=True)
class FunctionMetric(Metric):
    """A metric that calls a function for each query; build it with `from_function`.

    Attributes
    ----------
    function : callable
        Function of the scores and grades of one query that returns a number.
    name : str
        Name of the metric in results.
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
            array.flags.writeable = False  # other metrics use the same arrays
        for q in np.flatnonzero(ranked.judged.sizes):
            rows: Any = slice(data.indptr[q], data.indptr[q + 1])
            if retrieved is not None:
                rows = data.indptr[q] + np.flatnonzero(retrieved[rows])
            out[q] = self._number(self.function(scores[rows], grades[rows]), data.qid[q])

    def nothing_to_find(self, judged: Judged) -> Any:  # noqa: D102
        return judged.sizes == 0  # the function sets the values of all other queries

    def _number(self, value: Any, query: Any) -> float:
        if np.ndim(value) == 0 and np.asarray(value).dtype.kind in "fiub":
            return float(value)
        raise DataError(
            f"the metric '{self.name}' returned {value!r} for query {query}; it must return one "
            "number for each query, or NaN to omit the query."
        )


def from_function(
    function: Callable[[F64, F64], float], name: str | None = None, *, maximise: bool = True
) -> Metric:
    """Return a metric that calls ``function`` for each query.

    The metric can be used in `rankwright.evaluate`, ``compare`` and ``tune``, and as ``metric=`` or
    ``select_metric=`` of a ranker; plain functions are converted automatically. The result is the
    weighted mean of its values over queries. Conventions have no effect on it, and the function
    itself has to handle equal scores. Losses that need the effect of swapping two documents, such
    as LambdaRank, do not accept it.

    Parameters
    ----------
    function : callable
        ``function(scores, grades)`` returns a number for one query, or NaN to omit the query from
        the mean. Both arguments are read-only float64 arrays with a value for each document of the
        query, in the order of the rows.
    name : str
        Name of the metric in results; by default the name of the function.
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


# --- metrics by name -------------------------------------------------------------------------
#
# A name has a key of the registry or an alias, parameters in parentheses, and a cut-off or a range
# of cut-offs after ``@``. A trailing minus, as in XGBoost, sets the value of empty queries to 0.

_NAME = re.compile(
    r"""(?P<key>\w[\w.]*)
        (?:\((?P<parameters>[^()]*)\))?
        (?:@(?P<first>\d+(?:\.\d+)?)(?::(?P<last>\d+))?)?
        (?P<minus>-?)""",
    re.VERBOSE,
)
_COMMA = re.compile(r",(?![^(]*\))")  # not between parentheses
_KEY_AND_NUMBER = re.compile(r"(.*?)_?(\d+(?:\.\d+)?)")
AnyMetric = str | Metric | Callable[..., float]
"""A metric by name, as an object, or as a function of the scores and grades of one query."""

AnyMetrics = AnyMetric | Iterable[AnyMetric] | Mapping[str, AnyMetric]
"""One metric or several; a mapping gives them the names that results have."""

_HELP = "write it like ndcg@10, ndcg@1:5, err(max=4)@10 or p(min_grade=2)@5"

OTHER_NAMES = {
    "11pt_avg": "iprec",
    "ap": "map",
    "average_precision": "map",
    "hits": "hit",
    "iprec_at_recall": "iprec",
    "map_cut": "map",
    "mean_average_precision": "map",
    "ndcg_cut": "ndcg",
    "normalised_dcg": "ndcg",
    "normalized_dcg": "ndcg",
    "numrel": "num_rel",
    "numrelret": "num_rel_ret",
    "numret": "num_ret",
    "prec": "p",
    "precision": "p",
    "r": "recall",
    "r_precision": "rprec",
    "recip_rank": "mrr",
    "reciprocal_rank": "mrr",
    "roc_auc": "auc",
    "rr": "mrr",
    "set_f": "f1",
    "set_p": "p",
    "set_recall": "recall",
    "setf": "f1",
    "setp": "p",
    "setr": "recall",
    "success": "hit",
    "tau": "kendall",
}
"""Names of trec_eval, ir_measures and other tools, in lower case, and the keys of the metrics."""

_DCG_GAINS = {"log2": "linear", "exp-log2": "exp2"}  # by the parameter ``dcg`` of ir_measures


def metric(
    name: AnyMetric,
    *,
    convention: str | Convention = "standard",
    label_gain: Iterable[float] | None = None,
) -> Metric:
    """Return the metric called ``name``.

    Parameters
    ----------
    name : str, Metric or callable
        A name such as ``ndcg@10``, ``err(max=5)@10`` or ``ndcg(gain=linear,max_per_group=2)@5``,
        also as trec_eval and ir_measures write it (``ndcg_cut_10``, ``nDCG@10``); a function of the
        scores and grades of one query (`rankwright.metrics.from_function`); or a metric, which is
        returned unchanged.
    convention : str or Convention
        Source of the parameters that the name leaves open.
    label_gain : sequence of float
        The gain of grade 0, 1, 2, ... in ndcg or dcg, like LightGBM's parameter of that name and
        like ``gain`` in the name of a metric, ``ndcg(gain=0:1:3:7)@10``.

    Examples
    --------
    >>> metric("NDCG(gain=linear)@5")
    ndcg(gain=linear)@5
    >>> metric("ndcg@10", label_gain=[0, 1, 3, 10])
    ndcg(gain=0:1:3:10)@10
    """
    if isinstance(name, str):
        metrics = [parsed for _, parsed in _parsed(name, Convention.named(convention))]
        if len(metrics) != 1:
            raise UsageError(f"'{name}' names {len(metrics)} metrics; name one.")
        (result,) = metrics
    else:
        result = _metric_of(name)
    if label_gain is None:
        return result
    if not has_gain(result):
        raise UsageError(f"{result!r} has no gain of a grade; omit label_gain, or use ndcg@10.")
    changes: dict[str, Any] = {"gain": checked_gains(label_gain, "label_gain")}
    return replace(result, **changes)


def check_metric(name: str, value: Any) -> None:
    """Raise unless ``value`` is a metric, its name or a function, for a declared type."""
    try:
        metric(value)
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from None


def has_gain(metric: Metric) -> bool:
    """Return whether the gains of the metric depend on the grade, so that users can set them."""
    return any(field.name == "gain" for field in fields(metric))


def metric_name(spelling: AnyMetric, metric: Metric) -> str:
    """Return the name of a metric as the caller spelled it; the ``repr`` of objects."""
    return spelling if isinstance(spelling, str) else repr(metric)


def named_metrics(
    names: AnyMetrics, *, convention: str | Convention = "standard"
) -> dict[str, Metric]:
    """Return metrics by name as the caller spelled it; ``ndcg@1:3`` returns three metrics."""
    convention = Convention.named(convention)
    if isinstance(names, Mapping):
        metrics = {str(name): metric(item, convention=convention) for name, item in names.items()}
    else:
        metrics = {}
        is_list = isinstance(names, Iterable) and not isinstance(names, str)
        items: Iterable[Any] = names if is_list else [names]  # type: ignore[assignment]
        for item in items:
            for name, named in _named(item, convention):
                if metrics.setdefault(name, named) != named:
                    raise UsageError(
                        f"two metrics are called '{name}'; give a function another name with "
                        "from_function(f, name=...)."
                    )
    if not metrics:
        raise UsageError(f"there is no metric to compute; {_HELP}.")
    return metrics


def _named(item: AnyMetric, convention: Convention) -> Iterator[tuple[str, Metric]]:
    if isinstance(item, str):
        for name in _COMMA.split(item):
            yield from _parsed(name.strip(), convention)
    else:
        yield repr(_metric_of(item)), _metric_of(item)


def _metric_of(item: Any) -> Metric:
    """Return a metric or a function as a metric."""
    if isinstance(item, Metric):
        return item
    if callable(item) and not isinstance(item, type):
        return from_function(item)
    actual = f"the class {item.__name__}" if isinstance(item, type) else repr(item)
    raise UsageError(
        "a metric is a name, a Metric or a function of the scores and grades of one query, "
        f"not {actual}; {_HELP}."
    )


def _parsed(name: str, convention: Convention) -> Iterator[tuple[str, Metric]]:
    match = _NAME.fullmatch(name.strip())
    if match is None:
        raise UsageError(f"'{name}' is not the name of a metric; {_HELP}.")
    parameters = dict(_parameters(name, match["parameters"] or ""))
    if match["minus"]:
        parameters.setdefault("empty", "0")
    key, number = _key(match["key"].lower())
    if key == "num_ret" and "min_grade" in parameters:  # NumRet(rel=1) of ir_measures
        key = "num_rel_ret"
    if number is not None and match["first"] is not None:
        raise UsageError(f"'{name}' has two cut-offs; {_HELP}.")
    kind = resolve("metrics", key)
    if match["last"] is None:
        yield name, kind.build(parameters, number or match["first"], convention)
        return
    if not match["first"].isdigit():
        raise UsageError(f"'{name}' is not the name of a metric; {_HELP}.")
    first, last = cutoff(match["first"]), cutoff(match["last"])
    if first > last:
        raise UsageError(f"'{name}' counts down; write the lower cut-off first.")
    if last - first >= _MOST_CUTOFFS:
        raise UsageError(
            f"{quoted(name)} is a range of more than {_MOST_CUTOFFS:,} cut-offs; name only the "
            "cut-offs that you need, as in ndcg@1:5,ndcg@10."
        )
    head = name.partition("@")[0]
    for k in range(first, last + 1):
        yield f"{head}@{k}{match['minus']}", kind.build(parameters, str(k), convention)


def _key(word: str) -> tuple[str, str | None]:
    """Return the key of the word in a name, and the cut-off in it (``ndcg_cut_10``), if any."""
    keys = {*METRICS, *plugins("metrics")}
    if word in keys:
        return word, None
    split = None if word in OTHER_NAMES else _KEY_AND_NUMBER.fullmatch(word)
    head, number = (word, None) if split is None else split.groups()
    head = OTHER_NAMES.get(head, head)
    return (head, number) if head in keys else (word, None)


def _parameters(name: str, text: str) -> Iterator[tuple[str, str]]:
    for part in text.split(","):
        if part.strip():
            key, equals, value = (word.strip() for word in part.partition("="))
            if not equals:
                raise UsageError(f"'{name}': '{part.strip()}' has no value; {_HELP}.")
            if key == "rel":
                key = "min_grade"
            elif key == "dcg":
                key, value = "gain", _DCG_GAINS.get(value.strip("'"), value)
            yield key, value
