"""Solvers of problems in weights: every class under its usual name."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rankwright import registry

if TYPE_CHECKING:
    from rankwright.solvers.alternating import Alternating as Alternating
    from rankwright.solvers.bundle import Bundle as Bundle
    from rankwright.solvers.column_generation import ColumnGeneration as ColumnGeneration
    from rankwright.solvers.coordinate import Coordinate as Coordinate
    from rankwright.solvers.lbfgs import LBFGS as LBFGS
    from rankwright.solvers.online import Online as Online
    from rankwright.solvers.sgd import SGD as SGD
    from rankwright.solvers.tron import TRON as TRON

_MODULES = registry.classes("solvers")
__all__ = [*_MODULES]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'rankwright.solvers' has no attribute '{name}'")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULES])
