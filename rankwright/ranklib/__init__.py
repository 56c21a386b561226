"""RankLib's command line, files and model texts, read and written by Rankwright."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankwright.ranklib.conversion import load_ranklib as load_ranklib
    from rankwright.ranklib.conversion import save_ranklib as save_ranklib

_NAMES = {
    "load_ranklib": "rankwright.ranklib.conversion",
    "save_ranklib": "rankwright.ranklib.conversion",
}

__all__ = [*_NAMES]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'rankwright.ranklib' has no attribute '{name}'")
