"""Rankwright: learning to rank. Names load on first use; importing this package loads nothing."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_PUBLIC = {
    "Convention": "rankwright.metrics.convention",
    "RankingData": "rankwright.data.ranking_data",
    "evaluate": "rankwright.metrics.evaluate",
    "load": "rankwright.data.files",
    "metric": "rankwright.metrics.evaluate",
    "synthetic": "rankwright.data.synthetic",
}

__all__ = ["Convention", "RankingData", "evaluate", "load", "metric", "synthetic"]

if TYPE_CHECKING:
    from rankwright.data.files import load as load
    from rankwright.data.ranking_data import RankingData as RankingData
    from rankwright.data.synthetic import synthetic as synthetic
    from rankwright.metrics.convention import Convention as Convention
    from rankwright.metrics.evaluate import evaluate as evaluate
    from rankwright.metrics.evaluate import metric as metric


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'rankwright' has no attribute '{name}'")
    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])
