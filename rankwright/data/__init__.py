"""Ranking data: the container, readers and writers of common formats, splits and synthetic data.

Names load on first use; importing this package loads nothing else.

    from rankwright.data import RankingData, load, train_valid_test_split
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankwright.data.files import convert as convert
    from rankwright.data.files import load as load
    from rankwright.data.files import save as save
    from rankwright.data.files import save_parts as save_parts
    from rankwright.data.normalize import QueryMinMax as QueryMinMax
    from rankwright.data.normalize import QuerySum as QuerySum
    from rankwright.data.normalize import QueryZScore as QueryZScore
    from rankwright.data.query_folds import QueryFolds as QueryFolds
    from rankwright.data.ranking_data import Query as Query
    from rankwright.data.ranking_data import RankingData as RankingData
    from rankwright.data.ranking_data import concatenate as concatenate
    from rankwright.data.rankings import RankedQuery as RankedQuery
    from rankwright.data.rankings import Ranking as Ranking
    from rankwright.data.split import Fold as Fold
    from rankwright.data.split import k_folds as k_folds
    from rankwright.data.split import letor_folds as letor_folds
    from rankwright.data.split import train_valid_test_split as train_valid_test_split
    from rankwright.data.synthetic_data import synthetic as synthetic
    from rankwright.data.synthetic_data import synthetic_with_truth as synthetic_with_truth

_MODULES = {
    "Fold": "rankwright.data.split",
    "Query": "rankwright.data.ranking_data",
    "QueryFolds": "rankwright.data.query_folds",
    "QueryMinMax": "rankwright.data.normalize",
    "QuerySum": "rankwright.data.normalize",
    "QueryZScore": "rankwright.data.normalize",
    "RankedQuery": "rankwright.data.rankings",
    "Ranking": "rankwright.data.rankings",
    "RankingData": "rankwright.data.ranking_data",
    "concatenate": "rankwright.data.ranking_data",
    "convert": "rankwright.data.files",
    "k_folds": "rankwright.data.split",
    "letor_folds": "rankwright.data.split",
    "load": "rankwright.data.files",
    "save": "rankwright.data.files",
    "save_parts": "rankwright.data.files",
    "synthetic": "rankwright.data.synthetic_data",
    "synthetic_with_truth": "rankwright.data.synthetic_data",
    "train_valid_test_split": "rankwright.data.split",
}
__all__ = [*_MODULES]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'rankwright.data' has no attribute '{name}'")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULES])
