"""What a metric means: every choice on which tools differ, under a name.

Two tools that both print "NDCG@10" may differ in a dozen clauses. A `Convention` writes them all
down; `CONVENTIONS` holds the presets, each of which reproduces the numbers of the tool it is named
after, and `differences` says which clauses separate two of them.

Three terms are used throughout. *k* is the cut-off and *n* the length of the list; a document is
*relevant* if its grade is at least ``min_grade``, and *R* counts the relevant ones; a query is
*empty* for a metric if no document in it can earn anything (all grades 0; no relevant document).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, fields
from itertools import pairwise
from typing import Any

from rankwright.errors import UsageError
from rankwright.registry import unknown

SKIP = "skip"


@dataclass(frozen=True, kw_only=True)
class Convention:
    """How metrics are computed; the defaults are those of ``standard``.

    Attributes
    ----------
    name : str
        What is printed next to every figure.
    gain : {"exp2", "linear"} or tuple of float
        What a document of grade g earns in DCG and NDCG: 2^g - 1, or g; or the gain of grade 0, 1,
        2, ..., as LightGBM's ``label_gain``. Gains do not fall as grades rise.
    discount : {"log2", "letor", "reciprocal"}
        Weight of rank r in DCG and NDCG: 1/log2(r + 1); 1 for ranks 1 and 2 and 1/log2(r) below;
        or 1/r.
    empty : 0, 1 or "skip"
        Value of an empty query in the metrics that divide by what there is to find (ndcg, map,
        recall, f1, rprec, bpref, wta, normalised eru); the others are 0 there by themselves.
        "skip" leaves the query out of the mean of any metric.
    empty_map : 0, 1, "skip" or None
        The same for map alone; None: as ``empty``.
    empty_unweighted : bool
        Under query weights, an empty query adds its value to the sum of NDCG with weight 1
        instead of its own, while its own weight stays in the divisor.
    one_document : {"keep", "skip"}
        Whether NDCG leaves out lists of one document.
    ties : {"mean", "file", "reverse", "doc_id", "worst", "best"}
        Order of equal scores: the mean of the metric over all orders; as in the file; last in the
        file first; highest document id first (without ids: last in the file first); lowest grade
        first; or highest grade first. Models are selected by the mean under any convention
        (`rankwright.metrics.base.Metric.for_selection`).
    map_ties : {"order", "together"}
        Whether map takes tied documents in the order of ``ties``, or all at once, with the
        precision after the last of them.
    min_grade : float
        Lowest grade that counts as relevant.
    precision_denominator : {"k", "min(k,n)"}
        What P@k divides by where the list is shorter than k.
    map_denominator : {"R", "min(R,k)"}
        What map@k divides by.
    short_list : {"keep", "zero"}
        Whether NDCG@k of a list shorter than k is 0.
    ndcg_without_k : {"whole", "mean"}
        ``ndcg`` without a cut-off: NDCG of the whole list, or the mean of NDCG@1 ... NDCG@n.
    err_gain : {"exp2", "label"}
        Probability that ERR gives a grade: (2^g - 1) / 2^max, or the grade itself.
    err_max : float
        Highest grade there is, for ERR.
    err_above_max : {"refuse", "allow"}
        What to do about a higher one.
    rbp_gain : {"binary", "linear"}
        What a document earns in RBP: 1 if relevant, or its grade.
    mrr_precision : {"float64", "float32"}
    score_precision : {"float64", "float32"}
        How precisely scores are compared: in float32, scores that are closer are tied.
    integer_grades : bool
        Whether grades are cut to whole numbers first.
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
        for clause in fields(self):
            if clause.name in CLAUSE_VALUES and not isinstance(getattr(self, clause.name), tuple):
                value, texts = getattr(self, clause.name), CLAUSE_VALUES[clause.name]
                if not callable(texts) and value not in texts:
                    known = ", ".join(repr(known) for known in texts)
                    raise UsageError(f"{clause.name} must be one of {known}, not {value!r}.")
        for number in (self.min_grade, self.err_max):
            if not (isinstance(number, (int, float)) and 0 < number < math.inf):
                raise UsageError(f"min_grade and err_max must be positive numbers, not {number!r}.")

    @property
    def weighs_queries(self) -> bool:
        """Whether the weights of queries are derived from the weights of documents."""
        return self.document_weights == "gains and queries"

    @classmethod
    def preset(cls, name: str) -> Convention:
        """Return the convention called ``name``, or say which names come near."""
        if name not in CONVENTIONS:
            raise UsageError(unknown("convention", name, CONVENTIONS))
        return CONVENTIONS[name]

    @classmethod
    def named(cls, convention: str | Convention) -> Convention:
        """Return the preset of that name, or the convention itself."""
        return convention if isinstance(convention, Convention) else cls.preset(convention)


def is_gain_list(gain: Any) -> bool:
    """Whether a gain is a list of numbers, one for each grade, and not a name."""
    return isinstance(gain, Iterable) and not isinstance(gain, str)


def checked_gains(gain: Any, name: str = "gains") -> tuple[float, ...]:
    """Return the gain of each grade as a tuple, or say why it makes no sense."""
    try:
        gains = tuple(float(one) for one in gain)
    except (TypeError, ValueError):
        raise UsageError(f"{name} must be a number for each grade from 0, not {gain!r}.") from None
    rising = all(low <= high for low, high in pairwise(gains))
    if not gains or not rising or not all(0 <= one < math.inf for one in gains):
        raise UsageError(
            f"{name} must be 0 or more, and not fall as grades rise, as in 0, 1, 3, 7 for the "
            f"grades 0 to 3; not {', '.join(f'{one:g}' for one in gains) or 'an empty list'}."
        )
    return gains


def _grade(value: float) -> str:
    whole = round(value, 6)
    return f"g > {whole:g}" if whole < value else f"g >= {value:g}"


ClauseValues = dict[float | str | bool | None, str] | Callable[[float], str]
_EMPTY: dict[float | str | bool | None, str] = {0: "0", 1: "1", SKIP: "left out"}
# The text of each value of a clause; the order is that of the table.
CLAUSE_VALUES: dict[str, ClauseValues] = {
    "gain": {"exp2": "2^g - 1", "linear": "g"},
    "discount": {
        "log2": "1/log2(r + 1)",
        "letor": "1 for ranks 1, 2; then 1/log2(r)",
        "reciprocal": "1/r",
    },
    "empty": _EMPTY,
    "empty_map": {None: "as empty", **_EMPTY},
    "empty_unweighted": {False: "no", True: "yes"},
    "one_document": {"keep": "kept", SKIP: "left out"},
    "ties": {
        "mean": "mean over orders",
        "file": "file order",
        "reverse": "last in file first",
        "doc_id": "highest document id first",
        "worst": "lowest grade first",
        "best": "highest grade first",
    },
    "map_ties": {"order": "as ties", "together": "taken together"},
    "min_grade": _grade,
    "precision_denominator": {"k": "k", "min(k,n)": "min(k, n)"},
    "map_denominator": {"R": "R", "min(R,k)": "min(R, k)"},
    "short_list": {"keep": "as any", "zero": "0"},
    "ndcg_without_k": {"whole": "whole list", "mean": "mean of NDCG@1..n"},
    "err_gain": {"exp2": "(2^g - 1)/2^max", "label": "g"},
    "err_max": lambda value: f"{value:g}",
    "err_above_max": {"refuse": "refused", "allow": "allowed"},
    "rbp_gain": {"binary": "1 if relevant", "linear": "g"},
    "mrr_precision": {"float64": "float64", "float32": "float32"},
    "score_precision": {"float64": "float64", "float32": "float32"},
    "integer_grades": {False: "no", True: "yes"},
    "document_weights": {
        "none": "ignored",
        "gains": "multiply gains (dcg, ndcg)",
        "gains and queries": "multiply gains (dcg, ndcg, map); weigh queries",
    },
}

ABOUT = {
    "gain": "gain of grade g (dcg, ndcg)",
    "discount": "weight of rank r (dcg, ndcg)",
    "empty": "empty query",
    "empty_map": "empty query, map",
    "empty_unweighted": "empty query unweighted (ndcg)",
    "one_document": "list of one document (ndcg)",
    "ties": "equal scores",
    "map_ties": "equal scores, map",
    "min_grade": "relevant",
    "precision_denominator": "P@k divides by",
    "map_denominator": "map@k divides by",
    "short_list": "NDCG@k of a list shorter than k",
    "ndcg_without_k": "ndcg without @k",
    "err_gain": "probability of grade g (err)",
    "err_max": "highest grade (err)",
    "err_above_max": "a higher grade (err)",
    "rbp_gain": "gain of grade g (rbp)",
    "mrr_precision": "precision of 1/rank (mrr)",
    "score_precision": "precision of scores",
    "integer_grades": "grades cut to whole numbers",
    "document_weights": "document weights",
}

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
    "ranx": "ranx, whose own order of ties is not defined",
    "rax": "rax; document weights multiply the gains of DCG and NDCG",
    "tf_ranking": "TensorFlow Ranking; document weights also determine the weights of queries",
}


def descriptions() -> dict[str, str]:
    """Return what each preset is, in a line."""
    return dict(_DESCRIPTIONS)


def differences(a: Convention, b: Convention) -> list[str]:
    """Return one sentence for each clause in which two conventions differ.

    Examples
    --------
    >>> from rankwright.metrics import Convention, differences
    >>> differences(Convention.named("standard"), Convention.named("lightgbm"))[0]
    'empty query: 0 (standard), 1 (lightgbm)'
    """
    return [
        f"{ABOUT[clause]}: {formatted(a, clause)} ({a.name}), {formatted(b, clause)} ({b.name})"
        for clause in CLAUSE_VALUES
        if asdict(a)[clause] != asdict(b)[clause]
    ]


def formatted(convention: Convention, clause: str) -> str:
    """Return what ``convention`` says on ``clause``."""
    texts, value = CLAUSE_VALUES[clause], getattr(convention, clause)
    if isinstance(value, tuple):
        return ", ".join(f"{one:g}" for one in value)
    return texts(value) if callable(texts) else texts[value]


def conventions_table() -> str:
    """Return all presets as a Markdown table, a clause a row; a dot: as ``standard``."""
    lines = [f"| clause | {' | '.join(CONVENTIONS)} |", "|---" * (len(CONVENTIONS) + 1) + "|"]
    for clause, about in ABOUT.items():
        usual = formatted(STANDARD, clause)
        cells = [formatted(convention, clause) for convention in CONVENTIONS.values()]
        shown = [cells[0], *("·" if cell == usual else cell for cell in cells[1:])]
        lines.append(f"| {about} | {' | '.join(shown)} |")
    return "\n".join(lines)
