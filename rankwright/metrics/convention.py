"""Conventions: named sets of the definitions that differ between tools.

Two tools that both print "NDCG@10" can differ in a dozen clauses. A `Convention` has a value for
each. `CONVENTIONS` has the presets, which reproduce the values of the tools with their names.
`differences` lists the clauses that differ between two conventions.

*k* is the cut-off and *n* the length of the list. A document is *relevant* if its grade is at least
``min_grade``, and *R* is the number of relevant documents. A query is *empty* for a metric if no
document in it can earn anything: all grades are 0, or no document is relevant.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from rankwright.errors import UsageError
from rankwright.registry import unknown

SKIP = "skip"


@dataclass(frozen=True, kw_only=True)
class Convention:
    """Definitions that metrics share; the default is ``standard``.

    Attributes
    ----------
    name : str
        Name that is printed with results.
    gain : {"exp2", "linear"} or tuple of float
        Gain of a document of grade g in DCG and NDCG: 2^g - 1, or g; or the gain of grade 0, 1, 2,
        ..., like LightGBM's ``label_gain``. Gains do not fall as grades rise.
    discount : {"log2", "letor", "reciprocal"}
        Weight of rank r in DCG and NDCG: 1/log2(r + 1); 1 for ranks 1 and 2 and 1/log2(r) below;
        or 1/r.
    empty : 0, 1 or "skip"
        Value of an empty query in the metrics with a divisor that depends on the relevant documents
        (ndcg, map, recall, f1, rprec, bpref, wta, alpha_ndcg, normalised eru); other metrics are 0.
        "skip" omits the query from the mean of every metric.
    empty_map : 0, 1, "skip" or None
        The same for map; None uses ``empty``.
    empty_unweighted : bool
        If queries have weights, add the value of an empty query to the sum of NDCG with weight 1,
        and use its weight only in the divisor.
    one_document : {"keep", "skip"}
        Whether NDCG omits lists of one document.
    ties : {"mean", "file", "reverse", "doc_id", "worst", "best"}
        Order of equal scores: the mean of the metric over all orders; as in the file; last in the
        file first; highest document id first (without ids: last in the file first); lowest grade
        first; or highest grade first. Models are selected by the mean under every convention
        (`rankwright.metrics.base.Metric.for_selection`).
    map_ties : {"order", "together"}
        Whether map ranks tied documents in the order of ``ties``, or all at once, with the
        precision after the last tied document.
    min_grade : float
        Lowest grade of a relevant document.
    precision_denominator : {"k", "min(k,n)"}
        Divisor of P@k for lists shorter than k.
    map_denominator : {"R", "min(R,k)"}
        Divisor of map@k.
    short_list : {"keep", "zero"}
        Whether NDCG@k of a list shorter than k is 0.
    ndcg_without_k : {"whole", "mean"}
        ``ndcg`` without a cut-off: NDCG of the whole list, or the mean of NDCG@1 ... NDCG@n.
    err_gain : {"exp2", "label"}
        Probability that ERR gives a grade: (2^g - 1) / 2^max, or the grade itself.
    err_max : float
        Highest possible grade, for ERR.
    err_above_max : {"refuse", "allow"}
        Whether a higher grade is an error.
    rbp_gain : {"binary", "linear"}
        Gain of a document in RBP: 1 if relevant, or its grade.
    mrr_precision : {"float64", "float32"}
        Precision of reciprocal ranks.
    score_precision : {"float64", "float32"}
        Precision for comparing scores. In float32, more scores are tied.
    integer_grades : bool
        Whether grades are truncated to whole numbers first.
    document_weights : {"none", "gains", "gains and queries"}
        Use of the weights of documents (``sample_weight``): none; they multiply the gains of DCG
        and NDCG; or they also multiply the terms of map, and the weight of a query in the mean is
        the mean weight of its documents, weighted by gain (dcg, ndcg) or relevance.

    Examples
    --------
    >>> import rankwright as rw
    >>> linear = rw.Convention(name="linear gains", gain="linear")
    >>> grades, scores = [0, 3, 1], [0.2, 0.9, 0.4]
    >>> rw.evaluate(grades, scores, "dcg@1", qid=[1, 1, 1], convention=linear)["dcg@1"]
    3.0
    """

    name: str = "custom"
    gain: str | tuple[float, ...] = "exp2"
    discount: str = "log2"
    empty: float | str = 0
    empty_map: float | str | None = None
    empty_unweighted: bool = False
    one_document: str = "keep"
    ties: str = "mean"
    map_ties: str = "order"
    min_grade: float = 1
    precision_denominator: str = "k"
    map_denominator: str = "R"
    short_list: str = "keep"
    ndcg_without_k: str = "whole"
    err_gain: str = "exp2"
    err_max: float = 4
    err_above_max: str = "refuse"
    rbp_gain: str = "binary"
    mrr_precision: str = "float64"
    score_precision: str = "float64"
    integer_grades: bool = False
    document_weights: str = "none"

    def __post_init__(self) -> None:
        if is_gain_list(self.gain):
            object.__setattr__(self, "gain", checked_gains(self.gain))
        for name, (_, texts) in CLAUSES.items():
            value = getattr(self, name)
            if not isinstance(value, tuple) and not callable(texts) and value not in texts:
                values = ", ".join(map(repr, texts))
                raise UsageError(f"{name} must be one of {values}, not {value!r}.")
        for number in (self.min_grade, self.err_max):
            if not (isinstance(number, (int, float)) and 0 < number < math.inf):
                raise UsageError(f"min_grade and err_max must be positive numbers, not {number!r}.")

    @property
    def weighs_queries(self) -> bool:
        """Whether the weights of queries are derived from the weights of documents."""
        return self.document_weights == "gains and queries"

    @classmethod
    def named(cls, convention: str | Convention) -> Convention:
        """Return the preset of that name; a convention is returned unchanged."""
        if isinstance(convention, Convention):
            return convention
        if convention not in CONVENTIONS:
            raise UsageError(unknown("convention", convention, CONVENTIONS))
        return CONVENTIONS[convention]


def is_gain_list(gain: Any) -> bool:
    """Return whether a gain is a list with a number for each grade instead of a name."""
    return isinstance(gain, Iterable) and not isinstance(gain, str)


def checked_gains(gain: Any, name: str = "gains") -> tuple[float, ...]:
    """Return the gain of each grade as a tuple; raise an error if it is not valid."""
    try:
        gains = tuple(map(float, gain))
    except (TypeError, ValueError):
        raise UsageError(f"{name} must be a number for each grade from 0, not {gain!r}.") from None
    rising = all(low <= high for low, high in pairwise(gains))
    if not gains or not rising or not all(0 <= value < math.inf for value in gains):
        raise UsageError(
            f"{name} must be 0 or more, and not fall as grades rise, as in 0, 1, 3, 7 for the "
            f"grades 0 to 3; not {', '.join(f'{value:g}' for value in gains) or 'an empty list'}."
        )
    return gains


def _grade(value: float) -> str:
    whole = round(value, 6)
    return f"g > {whole:g}" if whole < value else f"g >= {value:g}"


ClauseValues = dict[float | str | bool | None, str] | Callable[[float], str]
_EMPTY: dict[float | str | bool | None, str] = {0: "0", 1: "1", SKIP: "left out"}
_PRECISION: dict[float | str | bool | None, str] = {"float64": "float64", "float32": "float32"}
CLAUSES: dict[str, tuple[str, ClauseValues]] = {
    "gain": ("gain of grade g (dcg, ndcg)", {"exp2": "2^g - 1", "linear": "g"}),
    "discount": (
        "weight of rank r (dcg, ndcg)",
        {
            "log2": "1/log2(r + 1)",
            "letor": "1 for ranks 1, 2; then 1/log2(r)",
            "reciprocal": "1/r",
        },
    ),
    "empty": ("empty query", _EMPTY),
    "empty_map": ("empty query, map", {None: "as empty", **_EMPTY}),
    "empty_unweighted": ("empty query unweighted (ndcg)", {False: "no", True: "yes"}),
    "one_document": ("list of one document (ndcg)", {"keep": "kept", SKIP: "left out"}),
    "ties": (
        "equal scores",
        {
            "mean": "mean over orders",
            "file": "file order",
            "reverse": "last in file first",
            "doc_id": "highest document id first",
            "worst": "lowest grade first",
            "best": "highest grade first",
        },
    ),
    "map_ties": ("equal scores, map", {"order": "as ties", "together": "taken together"}),
    "min_grade": ("relevant", _grade),
    "precision_denominator": ("P@k divides by", {"k": "k", "min(k,n)": "min(k, n)"}),
    "map_denominator": ("map@k divides by", {"R": "R", "min(R,k)": "min(R, k)"}),
    "short_list": ("NDCG@k of a list shorter than k", {"keep": "as any", "zero": "0"}),
    "ndcg_without_k": ("ndcg without @k", {"whole": "whole list", "mean": "mean of NDCG@1..n"}),
    "err_gain": ("probability of grade g (err)", {"exp2": "(2^g - 1)/2^max", "label": "g"}),
    "err_max": ("highest grade (err)", "{:g}".format),
    "err_above_max": ("a higher grade (err)", {"refuse": "refused", "allow": "allowed"}),
    "rbp_gain": ("gain of grade g (rbp)", {"binary": "1 if relevant", "linear": "g"}),
    "mrr_precision": ("precision of 1/rank (mrr)", _PRECISION),
    "score_precision": ("precision of scores", _PRECISION),
    "integer_grades": ("grades cut to whole numbers", {False: "no", True: "yes"}),
    "document_weights": (
        "document weights",
        {
            "none": "ignored",
            "gains": "multiply gains (dcg, ndcg)",
            "gains and queries": "multiply gains (dcg, ndcg, map); weigh queries",
        },
    ),
}
"""The clauses in the order of the table: heading, and the text of each value."""

STANDARD = Convention(name="standard")
CONVENTIONS = {
    convention.name: convention
    for convention in (
        STANDARD,
        Convention(name="letor3", discount="letor", ties="file"),
        Convention(
            name="letor4", discount="letor", ties="file", short_list="zero", ndcg_without_k="mean"
        ),
        Convention(
            name="mslr",
            discount="letor",
            ties="file",
            min_grade=2,
            short_list="zero",
            ndcg_without_k="mean",
        ),
        Convention(
            name="ranklib",
            ties="file",
            precision_denominator="min(k,n)",
            err_above_max="allow",
            mrr_precision="float32",
            integer_grades=True,
        ),
        Convention(
            name="lightgbm",
            empty=1,
            empty_unweighted=True,
            ties="file",
            map_denominator="min(R,k)",
        ),
        Convention(
            name="xgboost",
            empty=1,
            empty_unweighted=True,
            ties="file",
            precision_denominator="min(k,n)",
            map_denominator="min(R,k)",
        ),
        Convention(
            name="catboost",
            gain="linear",
            empty=1,
            empty_map=0,
            ties="worst",
            min_grade=math.nextafter(0.5, 1),
            precision_denominator="min(k,n)",
            map_denominator="min(R,k)",
            err_gain="label",
            err_above_max="allow",
        ),
        Convention(name="sklearn", gain="linear", one_document=SKIP, map_ties="together"),
        Convention(name="trec_eval", gain="linear", ties="doc_id", score_precision="float32"),
        Convention(name="ranx", gain="linear", ties="file", rbp_gain="linear"),
        Convention(
            name="rax",
            ties="file",
            precision_denominator="min(k,n)",
            document_weights="gains",
        ),
        Convention(
            name="tf_ranking",
            precision_denominator="min(k,n)",
            document_weights="gains and queries",
        ),
    )
}

_DESCRIPTIONS = {
    "standard": "the default: gain 2^g - 1, discount 1/log2(rank + 1), an empty query is 0, "
    "mean over ties",
    "letor3": "Microsoft's evaluation script of LETOR 3.0",
    "letor4": "Microsoft's evaluation script of LETOR 4.0 (MQ2007, MQ2008)",
    "mslr": "Microsoft's evaluation script of MSLR-WEB; relevant from grade 2",
    "ranklib": "RankLib 2.18",
    "lightgbm": "LightGBM's ndcg and map",
    "xgboost": "XGBoost's ndcg, map and pre; a trailing minus (ndcg@10-) makes an empty query 0",
    "catboost": "CatBoost's NDCG, DCG, MAP, PrecisionAt, RecallAt, MRR, ERR; worst case over ties",
    "sklearn": "scikit-learn's ndcg_score, dcg_score, average_precision_score; mean over ties",
    "trec_eval": "trec_eval and pytrec_eval; ties by document id, descending",
    "ranx": "ranx; it does not define an order of ties",
    "rax": "rax; document weights multiply the gains of DCG and NDCG",
    "tf_ranking": "TensorFlow Ranking; document weights also determine the weights of queries",
}


def descriptions() -> dict[str, str]:
    """Return a line about each preset."""
    return dict(_DESCRIPTIONS)


def differences(a: Convention, b: Convention) -> list[str]:
    """Return one sentence for each clause that differs between two conventions.

    Examples
    --------
    >>> from rankwright.metrics import Convention, differences
    >>> differences(Convention.named("standard"), Convention.named("lightgbm"))[0]
    'empty query: 0 (standard), 1 (lightgbm)'
    """
    return [
        f"{heading}: {_text(a, clause)} ({a.name}), {_text(b, clause)} ({b.name})"
        for clause, (heading, _) in CLAUSES.items()
        if getattr(a, clause) != getattr(b, clause)
    ]


def _text(convention: Convention, clause: str) -> str:
    """Return the value of a clause as text."""
    texts, value = CLAUSES[clause][1], getattr(convention, clause)
    if isinstance(value, tuple):
        return ", ".join(f"{gain:g}" for gain in value)
    return texts(value) if callable(texts) else texts[value]


def conventions_table() -> str:
    """Return all presets as a Markdown table with a clause per row; a dot means ``standard``."""
    lines = [f"| clause | {' | '.join(CONVENTIONS)} |", "|---" * (len(CONVENTIONS) + 1) + "|"]
    for clause, (heading, _) in CLAUSES.items():
        standard, *others = (_text(convention, clause) for convention in CONVENTIONS.values())
        cells = ["·" if other == standard else other for other in others]
        lines.append(f"| {' | '.join([heading, standard, *cells])} |")
    return "\n".join(lines)
