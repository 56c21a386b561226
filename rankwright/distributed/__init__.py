"""Many machines with Dask: `fit`, `evaluate` and `rank` over partitions of whole queries."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_NAMES = {
    "Partitions": "rankwright.distributed.partitions",
    "evaluate": "rankwright.distributed.evaluation",
    "executor": "rankwright.distributed.cluster",
    "fit": "rankwright.distributed.fitting",
    "predict": "rankwright.distributed.evaluation",
    "rank": "rankwright.distributed.evaluation",
    "write_run": "rankwright.distributed.evaluation",
}

__all__ = list(_NAMES)


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'rankwright.distributed' has no attribute '{name}'")
