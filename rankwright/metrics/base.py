"""What every metric is: a frozen value whose ``repr`` is its name, and one way to be computed.

The name carries everything: ``ndcg@10``, ``err(max=5)@10``, ``p(min_grade=2)@5``,
``ndcg(gain=linear,max_per_group=2)@5``, ``ndcg(gain=0:1:3:7)@10`` with the gain of each grade. A
parameter that is not written comes from the convention.

**A query with nothing to find.** Every metric knows for which queries no order of the documents
can earn anything: no document with a gain, no relevant document, or, for metrics of pairs, no two
documents to put in order; queries without documents are always among them. `Metric.values` settles
them, here and nowhere else: metrics that divide by what there is to find get the convention's
``empty``, metrics of pairs leave the query out, and the rest keep the 0 they come to; under
``empty="skip"`` all leave it out. A query that is left out has the value NaN.

**Tied scores.** ``ties=mean``, the rule of the standard convention, is the mean of the metric over
all orders of tied documents (`mcsherry2008ties`), in closed form for every metric. Where
``max_per_group`` is given there is none, since the order of ties decides which documents of a group
stay: it is then the mean over `SAMPLED_ORDERS` sampled orders, the same ones in every call. What
selects a model (rounds, penalties, features) goes by `Metric.for_selection`: file order earns 0.
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
    CLAUSE_VALUES,
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
    values = CLAUSE_VALUES[name]
    assert not callable(values), "a clause with listed values"
    if value not in list(values):  # a list: the value may have no hash
        raise UsageError(f"{name} must be {' or '.join(map(str, values))}, not {value}.")


def _gain(name: str, value: Any) -> None:
    if is_gain_list(value):
        checked_gains(value, name)
    else:
        _clause(name, value)


def number_between(low: float, high: float = np.inf) -> Callable[[str, Any], None]:
    """Return the check of a number above ``low`` and below ``high``, for a declared type."""

    def check(name: str, value: Any) -> None:
        if isinstance(value, int) and abs(value) > _LARGEST_FLOAT:
            raise UsageError(f"{name} is too large for a number in double precision.")
        if isinstance(value, bool) or not isinstance(value, Real) or not low < float(value) < high:
            limits = f"above {low:g}" if high == np.inf else f"between {low:g} and {high:g}"
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
        Cut-off: only the first k ranks count.
    empty, ties
        In place of the convention's clauses.
    max_per_group : int or None
        Maximum number of documents ranked of each group; the best possible list is held to the
        same limit.
    convention : Convention
        Where parameters come from that are not given.

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
    when_empty: ClassVar[str] = "zero"  # "convention": its clause decides; SKIP: left out
    takes_limit: ClassVar[bool] = True  # makes sense of max_per_group
    takes_runs: ClassVar[bool] = True  # makes sense where not all documents have a score

    k: Ranks | None = None
    empty: Clause | None = None
    ties: Clause | None = None
    max_per_group: Ranks | None = None
    convention: Convention = STANDARD

    def __post_init__(self) -> None:
        if self.k == 0:
            raise UsageError(
                f"{self.key}@0 looks at nothing; write {self.key}@10, or {self.key} for the whole "
                "list: k must be a whole number from 1, not 0."
            )
        check_parameters(self)
        if is_gain_list(getattr(self, "gain", None)):  # a tuple, which has a hash
            object.__setattr__(self, "gain", checked_gains(self.gain))  # type: ignore[attr-defined]
        if self.k is not None and not self.takes_k:
            raise UsageError(f"{self.key} looks at the whole list; write it without @{self.k}.")
        if self.max_per_group is not None and not self.takes_limit:
            raise UsageError(f"{self.key} compares all documents; write it without max_per_group.")

    def __repr__(self) -> str:
        given = [
            f"{field.name}={_text(value)}"
            for field in fields(self)
            if field.name not in ("k", "convention")
            and (value := getattr(self, field.name)) != field.default
        ]
        arguments = f"({','.join(given)})" if given else ""
        return f"{self.key}{arguments}{'' if self.k is None else f'@{self.k}'}"

    @classmethod
    def build(cls, parameters: dict[str, str], k: int | None, convention: Convention) -> Self:
        """Build from the texts in a name."""
        known = [f.name for f in fields(cls) if f.name not in ("k", "convention")]
        for name in parameters:
            if name not in known:
                raise UsageError(f"{cls.key} has no parameter '{name}'; it has {', '.join(known)}.")
        values: dict[str, Any] = {name: _value(text) for name, text in parameters.items()}
        return cls(k=k, convention=convention, **values)

    # --- what a metric says of itself -------------------------------------------------------

    def setting(self, clause: str) -> Any:
        """Return a parameter of this metric, or else the convention's clause of that name."""
        given = getattr(self, clause, None)
        return getattr(self.convention, clause) if given is None else given

    @property
    def gains_by_grade(self) -> tuple[float, ...] | None:
        """The gain of each grade from 0, where this metric goes by such gains."""
        return None

    @property
    def own_ties(self) -> bool:
        """Whether tied scores have a meaning of their own in this metric."""
        return False

    @property
    def averages_ties(self) -> bool:
        """Whether the value is the mean over the orders of tied documents."""
        return bool(self.setting("ties") == "mean")

    def for_selection(self) -> Self:
        """Return the metric that selects a model: with ties averaged over their orders.

        The convention's rule is for reports; selecting by file order, say, would reward a model for
        tied scores where that order is informative. A rule in the metric's own name is kept.
        """
        return replace(self, ties=self.ties or "mean")

    @abstractmethod
    def compute(self, ranked: Ranked, mean: bool, out: F64) -> None:
        """Write the value of each query, or its mean over tied orders, before `values` settles."""

    @abstractmethod
    def nothing_to_find(self, judged: Judged) -> Any:
        """Return a mask of the queries in which no order can earn anything."""

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
        """Return the value of each query; NaN: left out of the mean.

        ``mean`` averages over tied orders whatever the convention says.
        """
        out = np.empty(len(ranked.indptr) - 1)
        if mean is None:
            mean = self.averages_ties and not self.own_ties
        with np.errstate(divide="ignore", invalid="ignore"):  # empty queries are settled below
            if mean and ranked.judged.max_per_group is not None:
                self._mean_of_sampled_orders(ranked, out)
            else:
                self.compute(ranked, mean, out)
        judged = ranked.judged
        settled, values = judged.once(("settled", self), lambda: self.settled(judged))
        out[settled] = values[settled]
        return out

    def settled(self, judged: Judged) -> tuple[Any, F64]:
        """Return which queries have a value whatever the order, and the values of these."""
        nothing = self.nothing_to_find(judged)
        return nothing, np.full(len(nothing), self.value_when_empty())

    def _mean_of_sampled_orders(self, ranked: Ranked, out: F64) -> None:
        first, *others = ranked.sampled_orders()
        self.compute(first, False, out)
        change, value = np.zeros(len(out)), np.empty(len(out))
        for order in others:
            self.compute(order, False, value)
            change += value - out
        out += change / (1 + len(others))

    def value_when_empty(self) -> float:
        """Return the value of a query with nothing to find."""
        value = self.setting("empty")
        if value == SKIP or self.when_empty == SKIP:
            return np.nan
        return float(value) if self.when_empty == "convention" else 0.0

    def per_query(self, s: F64, data: RankingData, out: F64) -> None:
        """Write the value of each query under scores ``s`` to ``out``."""
        ranked = Ranked(self.judge(data), checked_scores(s, data), self.setting("ties"))
        out[:] = self.values(ranked)

    def cut(self, judged: Judged) -> I64:
        """Return how many ranks of each query count."""
        if self.k is None:
            return judged.best_sizes
        return np.full(len(judged.sizes), self.k, np.int64)


@dataclass(frozen=True, repr=False, kw_only=True)
class RelevanceMetric(Metric):
    """A metric that asks of a document only whether it is relevant."""

    min_grade: Grade | None = None

    def nothing_to_find(self, judged: Judged) -> Any:  # noqa: D102
        return judged.top < self.setting("min_grade")


@dataclass(frozen=True, repr=False, kw_only=True)
class PairMetric(Metric):
    """A metric that compares documents two by two, by their scores rather than their ranks."""

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
    """A metric that is a sum over ranks: a weight by rank times a gain by document.

        value = sum_{r = 1}^{min(cut, n)} a_r b_{doc(r)} / scale                                 (1)

    This is the form <a(pi), b(y)> of DORM (`le2007dorm`); subclasses say gain, weights and scale.
    The mean over the orders of tied documents is the same sum with the mean gain of the tie block
    in place of b, since every document of a block stands on each of its ranks equally often.
    """

    @abstractmethod
    def gain_rule(self, judged: Judged) -> tuple[int, float | F64]:
        """Return the kind of gain, and its level, for all queries or for each."""

    def weights(self, n: int) -> F64:
        """Return the weights of ranks 1 to n."""
        return np.ones(n)

    def scale(self, judged: Judged) -> F64:
        """Return what the sum of each query is divided by."""
        return np.ones(len(judged.sizes))

    def compute(self, ranked: Ranked, mean: bool, out: F64) -> None:  # noqa: D102
        judged = ranked.judged
        kernel, arguments, scale = judged.once(("form", self), lambda: self.form(judged))
        ranked.map(kernel, ranked.grades, ranked.blocks(mean), *arguments, out)
        out /= scale

    def form(self, judged: Judged) -> tuple[Callable[..., None], tuple[Any, ...], F64]:
        """Return the kernel that computes the sums, its arguments, and the divisor of each query.

        The kernel's first arguments are the range of queries, their boundaries, the grades by rank
        and the ends of tie blocks; its last one is the output.
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
        """Return what it takes to know the effect of swapping two documents."""
        judged = self.judge(data)
        kind, level, weights, _ = self.terms(judged)
        gains = judged.gains(judged.grades, kind, level)
        return SwapForm.of(self, judged, LINEAR_SWAP, gains, weights, self.scale(judged))


def checked_scores(s: Any, data: RankingData, *, caller_order: bool = False) -> F64:
    """Return scores as float64, one per row of ``data``, naming the first wrong one.

    ``caller_order``: they come in the order of the rows that ``data`` was made from. A torch tensor
    on a GPU is copied to the CPU.
    """
    refuse_masked(s, "scores")
    scores: Any = np.asarray(s.detach().cpu() if getattr(s, "is_cuda", False) else s)
    if scores.ndim == 2 and scores.shape[1] == 1:
        scores = scores[:, 0]
    if scores.shape != data.y.shape:
        given = str(len(scores)) if scores.ndim == 1 else f"an array of shape {scores.shape}"
        raise DataError(
            f"there must be one score per row: {len(data.y)} are expected, not {given}."
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
        raise DataError(
            f"the score of row {shown} (query {query}) is NaN; it has no place in order."
        )
    checked: F64 = scores
    return checked


def check_exp2_gains(highest: float, advice: str = "") -> None:
    """Raise if 2^highest overflows, and warn if such gains let a few documents outweigh all others.

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
    """Return the cut-off in the name of a metric; `Metric` refuses one that is out of range."""
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
        return ":".join(repr(int(one) if one == int(one) else one) for one in value)
    return str(value).lower() if isinstance(value, bool) else str(value)


# --- functions as metrics --------------------------------------------------------------------
#


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


# --- metrics by name -------------------------------------------------------------------------
#
# Metrics by their names: ``ndcg@10``, ``ndcg@1:5,map``, ``err(max=5)@10``.
#
# A name is a key of the registry, parameters in parentheses, and a cut-off, or a range of them,
# behind ``@``; a trailing minus, as in XGBoost, makes an empty query 0.


_NAME = re.compile(
    r"""(?P<key>[A-Za-z]\w*)
        (?:\((?P<parameters>[^()]*)\))?
        (?:@(?P<first>\d+)(?::(?P<last>\d+))?)?
        (?P<minus>-?)""",
    re.VERBOSE,
)
_COMMA = re.compile(r",(?![^(]*\))")  # not between parentheses
AnyMetric = str | Metric | Callable[..., float]
"""A metric by name, as an object, or as a function of the scores and grades of one query."""

AnyMetrics = AnyMetric | Iterable[AnyMetric] | Mapping[str, AnyMetric]
"""One metric or several; a mapping gives them the names that results have."""

_HELP = "write it like ndcg@10, ndcg@1:5, err(max=4)@10 or p(min_grade=2)@5"

_ELSEWHERE = {
    "precision": "p",
    "prec": "p",
    "ap": "map",
    "average_precision": "map",
    "mean_average_precision": "map",
    "map_cut": "map",
    "rr": "mrr",
    "recip_rank": "mrr",
    "reciprocal_rank": "mrr",
    "hits": "hit",
    "success": "hit",
    "normalized_dcg": "ndcg",
    "normalised_dcg": "ndcg",
    "ndcg_cut": "ndcg",
    "roc_auc": "auc",
    "tau": "kendall",
    "r_precision": "rprec",
    "set_p": "p",
    "set_recall": "recall",
    "set_f": "f1",
}


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
        A name such as ``ndcg@10``, ``err(max=5)@10`` or ``ndcg(gain=linear,max_per_group=2)@5``; a
        function of the scores and grades of one query (`rankwright.metrics.from_function`); or a
        metric, which is returned as it is.
    convention : str or Convention
        Where parameters come from that the name leaves out.
    label_gain : sequence of float
        The gain of grade 0, 1, 2, ... in ndcg or dcg, as LightGBM's parameter of that name; the
        same as ``gain`` in the name of the metric, as in ``ndcg(gain=0:1:3:7)@10``.

    Examples
    --------
    >>> metric("NDCG(gain=linear)@5")
    ndcg(gain=linear)@5
    >>> metric("ndcg@10", label_gain=[0, 1, 3, 10])
    ndcg(gain=0:1:3:10)@10
    """
    if isinstance(name, str):
        found = list(_parsed(name, Convention.named(convention)))
        if len(found) != 1:
            raise UsageError(f"'{name}' names {len(found)} metrics, where one is expected.")
        made = found[0][1]
    else:
        made = _metric_of(name)
    if label_gain is None:
        return made
    if not has_gain(made):
        raise UsageError(f"{made!r} has no gain of a grade; leave label_gain out, or use ndcg@10.")
    changes: dict[str, Any] = {"gain": checked_gains(label_gain, "label_gain")}
    return replace(made, **changes)


def check_metric(name: str, value: Any) -> None:
    """Raise unless ``value`` is a metric, its name or a function, for a declared type."""
    try:
        metric(value)
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from None


def has_gain(metric: Metric) -> bool:
    """Whether documents earn a gain by their grade, which ``label_gain`` may change."""
    return any(field.name == "gain" for field in fields(metric))


def metric_name(given: AnyMetric, made: Metric) -> str:
    """Return what a metric is called: as the caller spelled it, or else by itself."""
    return given if isinstance(given, str) else repr(made)


def named_metrics(
    names: AnyMetrics, *, convention: str | Convention = "standard"
) -> dict[str, Metric]:
    """Return metrics by name as the caller spelled it; ``ndcg@1:3`` stands for three."""
    chosen = Convention.named(convention)
    found: dict[str, Metric] = {}
    several = isinstance(names, Iterable) and not isinstance(names, str)
    listed: Iterable[Any] = names if several else [names]  # type: ignore[assignment]
    if isinstance(names, Mapping):
        found = {str(name): metric(item, convention=chosen) for name, item in names.items()}
        listed = []
    for item in listed:
        for name, built in _named(item, chosen):
            if found.setdefault(name, built) != built:
                raise UsageError(
                    f"two metrics are called '{name}'; give a function another name with "
                    "from_function(f, name=...)."
                )
    if not found:
        raise UsageError(f"there is no metric to compute; {_HELP}.")
    return found


def _named(item: AnyMetric, convention: Convention) -> Iterator[tuple[str, Metric]]:
    if isinstance(item, str):
        for name in _COMMA.split(item):
            yield from _parsed(name.strip(), convention)
    else:
        built = _metric_of(item)
        yield repr(built), built


def _metric_of(given: Any) -> Metric:
    """Return a metric or a function as a metric."""
    if isinstance(given, Metric):
        return given
    if callable(given) and not isinstance(given, type):
        return from_function(given)
    what = f"the class {given.__name__}" if isinstance(given, type) else repr(given)
    raise UsageError(
        "a metric is a name, a Metric or a function of the scores and grades of one query, "
        f"not {what}; {_HELP}."
    )


def _parsed(name: str, convention: Convention) -> Iterator[tuple[str, Metric]]:
    match = _NAME.fullmatch(name.strip())
    if match is None:
        raise UsageError(f"'{name}' is not the name of a metric; {_HELP}.")
    kind = resolve("metrics", _key(name, match["key"].lower()))
    parameters = dict(_parameters(name, match["parameters"] or ""))
    if match["minus"]:
        parameters.setdefault("empty", "0")
    if match["last"] is None:
        k = None if match["first"] is None else cutoff(match["first"])
        yield name, kind.build(parameters, k, convention)
        return
    first, last = cutoff(match["first"]), cutoff(match["last"])
    if first > last:
        raise UsageError(f"'{name}' counts down; write the lower cut-off first.")
    if last - first >= _MOST_CUTOFFS:
        raise UsageError(
            f"{quoted(name)} is a range of more than {_MOST_CUTOFFS:,} cut-offs; name the few that "
            "you need, as in ndcg@1:5,ndcg@10."
        )
    head = name.partition("@")[0]
    for k in range(first, last + 1):
        yield f"{head}@{k}{match['minus']}", kind.build(parameters, k, convention)


def _key(name: str, key: str) -> str:
    """Return ``key``, or say how a metric is spelled here that comes with a cut-off or in full."""
    if key in METRICS or key in plugins("metrics"):
        return key
    head, digits = re.fullmatch(r"(.*?)_?(\d*)", key).groups()  # type: ignore[union-attr]
    ours = _ELSEWHERE.get(head, head)
    if ours in METRICS and digits:
        raise UsageError(f"there is no metric '{name}'; the cut-off is written {ours}@{digits}.")
    if ours in METRICS:
        raise UsageError(f"there is no metric '{name}'; it is called {ours} here, as in {ours}@10.")
    return key


def _parameters(name: str, text: str) -> Iterator[tuple[str, str]]:
    for part in text.split(","):
        if part.strip():
            key, equals, value = part.partition("=")
            if not equals:
                raise UsageError(f"'{name}': '{part.strip()}' has no value; {_HELP}.")
            yield key.strip(), value.strip()
