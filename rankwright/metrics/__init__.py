"""Metrics of rankings: every class under its usual name, `metric` by name, and `evaluate`.

Names load on first use; importing this package loads nothing else.

    from rankwright.metrics import NDCG, evaluate, from_function

    evaluate(y, scores, [NDCG(k=10), "map", from_function(my_metric)], qid=qid)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rankwright.registry import METRICS, unknown

_PUBLIC = {
    **{target.partition(":")[2]: target.partition(":")[0] for target in METRICS.values()},
    "CONVENTIONS": "rankwright.metrics.convention",
    "Convention": "rankwright.metrics.convention",
    "Evaluation": "rankwright.metrics.evaluation",
    "Evaluator": "rankwright.metrics.evaluation",
    "Metric": "rankwright.metrics.base",
    "differences": "rankwright.metrics.convention",
    "evaluate": "rankwright.metrics.evaluation",
    "from_function": "rankwright.metrics.base",
    "metric": "rankwright.metrics.base",
}

__all__ = [*_PUBLIC]

if TYPE_CHECKING:
    from rankwright.metrics.auc import AUC as AUC
    from rankwright.metrics.base import Metric as Metric
    from rankwright.metrics.base import from_function as from_function
    from rankwright.metrics.base import metric as metric
    from rankwright.metrics.best import Best as Best
    from rankwright.metrics.bpref import BPref as BPref
    from rankwright.metrics.convention import CONVENTIONS as CONVENTIONS
    from rankwright.metrics.convention import Convention as Convention
    from rankwright.metrics.convention import differences as differences
    from rankwright.metrics.dcg import DCG as DCG
    from rankwright.metrics.domination_error import DominationError as DominationError
    from rankwright.metrics.err import ERR as ERR
    from rankwright.metrics.eru import ERU as ERU
    from rankwright.metrics.evaluation import Evaluation as Evaluation
    from rankwright.metrics.evaluation import Evaluator as Evaluator
    from rankwright.metrics.evaluation import evaluate as evaluate
    from rankwright.metrics.f1 import F1 as F1
    from rankwright.metrics.hit import Hit as Hit
    from rankwright.metrics.kendall import Kendall as Kendall
    from rankwright.metrics.map import MAP as MAP
    from rankwright.metrics.mrr import MRR as MRR
    from rankwright.metrics.ndcg import NDCG as NDCG
    from rankwright.metrics.p import Precision as Precision
    from rankwright.metrics.pair_error import PairError as PairError
    from rankwright.metrics.rbp import RBP as RBP
    from rankwright.metrics.recall import Recall as Recall
    from rankwright.metrics.rprec import RPrec as RPrec
    from rankwright.metrics.wta import WTA as WTA


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    hint = "" if name.startswith("_") else f"; {unknown('name', name, _PUBLIC)}"
    raise AttributeError(f"module 'rankwright.metrics' has no attribute '{name}'{hint}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])
