"""Losses on scores: every class under its usual name, ``loss`` by registry name, ``from_function``.

For a loss of your own (docs/write-your-own.md): `Part`, `Traits`, `KernelLoss`, ``kernel``,
``document_weight`` and ``order_weight``. Names load on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rankwright import registry

if TYPE_CHECKING:
    from rankwright.core.jit import kernel as kernel
    from rankwright.core.parameters import Part as Part
    from rankwright.core.types import Traits as Traits
    from rankwright.losses.all_threshold import AllThreshold as AllThreshold
    from rankwright.losses.approx_ndcg import ApproxNDCG as ApproxNDCG
    from rankwright.losses.base import KernelLoss as KernelLoss
    from rankwright.losses.base import document_weight as document_weight
    from rankwright.losses.base import order_weight as order_weight
    from rankwright.losses.boltzrank import BoltzRank as BoltzRank
    from rankwright.losses.domination import Domination as Domination
    from rankwright.losses.dual_softmax import DualSoftmax as DualSoftmax
    from rankwright.losses.fidelity import Fidelity as Fidelity
    from rankwright.losses.function import from_file as from_file
    from rankwright.losses.function import from_function as from_function
    from rankwright.losses.function import loss as loss
    from rankwright.losses.gbrank import GBRank as GBRank
    from rankwright.losses.interval import Interval as Interval
    from rankwright.losses.lambdarank import LambdaRank as LambdaRank
    from rankwright.losses.listmle import ListMLE as ListMLE
    from rankwright.losses.listnet import ListNet as ListNet
    from rankwright.losses.ndcg_glm import NDCGGLM as NDCGGLM
    from rankwright.losses.neural_ndcg import NeuralNDCG as NeuralNDCG
    from rankwright.losses.pair_exp import PairExp as PairExp
    from rankwright.losses.pair_hinge import PairHinge as PairHinge
    from rankwright.losses.position_svm import PositionSVM as PositionSVM
    from rankwright.losses.precision_svm import PrecisionSVM as PrecisionSVM
    from rankwright.losses.query_offset import QueryOffset as QueryOffset
    from rankwright.losses.rank_cosine import RankCosine as RankCosine
    from rankwright.losses.ranknet import RankNet as RankNet
    from rankwright.losses.retarget import Retarget as Retarget
    from rankwright.losses.rocarea_svm import ROCAreaSVM as ROCAreaSVM
    from rankwright.losses.softrank import SoftRank as SoftRank
    from rankwright.losses.squared import Squared as Squared
    from rankwright.losses.xendcg import XENDCG as XENDCG

_MODULES = {
    **registry.classes("losses"),
    "KernelLoss": "rankwright.losses.base",
    "Part": "rankwright.core.parameters",
    "Traits": "rankwright.core.types",
    "document_weight": "rankwright.losses.base",
    "from_file": "rankwright.losses.function",
    "from_function": "rankwright.losses.function",
    "kernel": "rankwright.core.jit",
    "loss": "rankwright.losses.function",
    "order_weight": "rankwright.losses.base",
}
__all__ = [*_MODULES]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'rankwright.losses' has no attribute '{name}'")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULES])
