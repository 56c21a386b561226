"""Compare rankers, cross-validate and tune them; the cache of fits; the demo."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankwright.rankers.out_of_fold import out_of_fold as out_of_fold

_NAMES = {"out_of_fold": "rankwright.rankers.out_of_fold"}

__all__ = [*_NAMES]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'rankwright.comparison' has no attribute '{name}'")
