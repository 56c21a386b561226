"""Models for other systems: one file per target, each export with a proof that scores agree."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankwright.export.folder import check_releases as check_releases
    from rankwright.export.folder import export_model as export_model
    from rankwright.export.folder import verify_export as verify_export

_NAMES = {
    "check_releases": "rankwright.export.folder",
    "export_model": "rankwright.export.folder",
    "verify_export": "rankwright.export.folder",
}

__all__ = [*_NAMES]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'rankwright.export' has no attribute '{name}'")
