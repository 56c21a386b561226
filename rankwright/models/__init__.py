"""Model families: every class under its usual name."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rankwright import registry

if TYPE_CHECKING:
    from rankwright.core.types import Round as Round
    from rankwright.models.additive import Additive as Additive
    from rankwright.models.bagged_trees import BaggedTrees as BaggedTrees
    from rankwright.models.coordinate_ascent import CoordinateAscent as CoordinateAscent
    from rankwright.models.expression import Expression as Expression
    from rankwright.models.factorization import Factorization as Factorization
    from rankwright.models.feature_sum import FeatureSum as FeatureSum
    from rankwright.models.jrank import JRank as JRank
    from rankwright.models.kernel import Kernel as Kernel
    from rankwright.models.linear import Linear as Linear
    from rankwright.models.network import Network as Network
    from rankwright.models.perceptron import PassiveAggressiveLinear as PassiveAggressiveLinear
    from rankwright.models.perceptron import PRankLinear as PRankLinear
    from rankwright.models.pointwise import Classifier as Classifier
    from rankwright.models.pointwise import LeastSquares as LeastSquares
    from rankwright.models.trees import Trees as Trees

_MODULES = {**registry.classes("models"), "Round": "rankwright.core.types"}
__all__ = [*_MODULES]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'rankwright.models' has no attribute '{name}'")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULES])
