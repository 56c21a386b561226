"""Rankwright: learning to rank. Names load on first use; importing this package loads nothing."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_PUBLIC = {
    "Convention": "rankwright.metrics.convention",
    "GBDT": "rankwright.rankers.gbdt",
    "GBRank": "rankwright.rankers.gbrank",
    "IntervalRank": "rankwright.rankers.intervalrank",
    "LambdaMART": "rankwright.rankers.lambdamart",
    "ListMLE": "rankwright.rankers.listmle",
    "RandomForest": "rankwright.rankers.random_forest",
    "RankingData": "rankwright.data.ranking_data",
    "XENDCG": "rankwright.rankers.xendcg",
    "evaluate": "rankwright.metrics.evaluate",
    "load": "rankwright.data.files",
    "load_model": "rankwright.persist.model_file",
    "loss": "rankwright.losses",
    "metric": "rankwright.metrics.evaluate",
    "ranker": "rankwright.rankers.base",
    "synthetic": "rankwright.data.synthetic",
}

__all__ = [*_PUBLIC]

if TYPE_CHECKING:
    from rankwright.data.files import load as load
    from rankwright.data.ranking_data import RankingData as RankingData
    from rankwright.data.synthetic import synthetic as synthetic
    from rankwright.losses import loss as loss
    from rankwright.metrics.convention import Convention as Convention
    from rankwright.metrics.evaluate import evaluate as evaluate
    from rankwright.metrics.evaluate import metric as metric
    from rankwright.persist.model_file import load_model as load_model
    from rankwright.rankers.base import ranker as ranker
    from rankwright.rankers.gbdt import GBDT as GBDT
    from rankwright.rankers.gbrank import GBRank as GBRank
    from rankwright.rankers.intervalrank import IntervalRank as IntervalRank
    from rankwright.rankers.lambdamart import LambdaMART as LambdaMART
    from rankwright.rankers.listmle import ListMLE as ListMLE
    from rankwright.rankers.random_forest import RandomForest as RandomForest
    from rankwright.rankers.xendcg import XENDCG as XENDCG


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'rankwright' has no attribute '{name}'")
    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])
