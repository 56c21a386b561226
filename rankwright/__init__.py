"""Rankwright: learning to rank. Names load on first use; importing this package loads nothing."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rankwright import registry

__version__ = "0.3.0"

_PUBLIC = {
    **registry.classes("rankers"),
    "Checkpoint": "rankwright.persist.checkpoint",
    "Convention": "rankwright.metrics.convention",
    "Iteration": "rankwright.rankers.fitting",
    "QueryFolds": "rankwright.data.query_folds",
    "Ranking": "rankwright.data.rankings",
    "RankingData": "rankwright.data.ranking_data",
    "Recommendations": "rankwright.rankers.ratings",
    "auto": "rankwright.comparison.auto",
    "compare": "rankwright.comparison.compare",
    "cross_validate": "rankwright.comparison.cross_validation",
    "evaluate": "rankwright.metrics.evaluation",
    "evaluate_run": "rankwright.metrics.evaluation",
    "explain": "rankwright.explanation",
    "import_model": "rankwright.persist.other_libraries",
    "importance": "rankwright.explanation.importance",
    "joint_convexity": "rankwright.rankers.joint_convexity",
    "load": "rankwright.data.files",
    "load_model": "rankwright.ranklib.model_files",
    "loss": "rankwright.losses",
    "metric": "rankwright.metrics.base",
    "out_of_fold": "rankwright.rankers.out_of_fold",
    "ranker": "rankwright.rankers.base",
    "scorer": "rankwright.rankers.scorer",
    "synthetic": "rankwright.data.synthetic_data",
    "train_valid_test_split": "rankwright.data.split",
    "tune": "rankwright.comparison.tune",
}

_SUBMODULES = ("clicks", "data", "losses", "metrics", "models", "solvers", "testing")

__all__ = [*_PUBLIC, *_SUBMODULES]

if TYPE_CHECKING:
    from rankwright import clicks as clicks
    from rankwright import data as data
    from rankwright import losses as losses
    from rankwright import metrics as metrics
    from rankwright import models as models
    from rankwright import solvers as solvers
    from rankwright import testing as testing
    from rankwright.comparison.auto import auto as auto
    from rankwright.comparison.compare import compare as compare
    from rankwright.comparison.cross_validation import cross_validate as cross_validate
    from rankwright.comparison.tune import tune as tune
    from rankwright.data.files import load as load
    from rankwright.data.query_folds import QueryFolds as QueryFolds
    from rankwright.data.ranking_data import RankingData as RankingData
    from rankwright.data.rankings import Ranking as Ranking
    from rankwright.data.split import train_valid_test_split as train_valid_test_split
    from rankwright.data.synthetic_data import synthetic as synthetic
    from rankwright.explanation import explain as explain
    from rankwright.explanation.importance import importance as importance
    from rankwright.losses import loss as loss
    from rankwright.metrics.base import metric as metric
    from rankwright.metrics.convention import Convention as Convention
    from rankwright.metrics.evaluation import evaluate as evaluate
    from rankwright.metrics.evaluation import evaluate_run as evaluate_run
    from rankwright.persist.checkpoint import Checkpoint as Checkpoint
    from rankwright.persist.other_libraries import import_model as import_model
    from rankwright.rankers.base import Ranker as Ranker
    from rankwright.rankers.base import ranker as ranker
    from rankwright.rankers.blend import Blend as Blend
    from rankwright.rankers.boosting import AdaRank as AdaRank
    from rankwright.rankers.boosting import CoordinateAscent as CoordinateAscent
    from rankwright.rankers.boosting import FRank as FRank
    from rankwright.rankers.boosting import RankBoost as RankBoost
    from rankwright.rankers.boosting import RankGP as RankGP
    from rankwright.rankers.fitting import Iteration as Iteration
    from rankwright.rankers.joint_convexity import joint_convexity as joint_convexity
    from rankwright.rankers.linear import IRSVM as IRSVM
    from rankwright.rankers.linear import MEMR as MEMR
    from rankwright.rankers.linear import MR as MR
    from rankwright.rankers.linear import NDCGGLM as NDCGGLM
    from rankwright.rankers.linear import PAMIR as PAMIR
    from rankwright.rankers.linear import Classification as Classification
    from rankwright.rankers.linear import Domination as Domination
    from rankwright.rankers.linear import LinearRegression as LinearRegression
    from rankwright.rankers.linear import ListMLE as ListMLE
    from rankwright.rankers.linear import ListNet as ListNet
    from rankwright.rankers.linear import PRank as PRank
    from rankwright.rankers.linear import RankCosine as RankCosine
    from rankwright.rankers.linear import RankSVM as RankSVM
    from rankwright.rankers.neural import BoltzRank as BoltzRank
    from rankwright.rankers.neural import LambdaRank as LambdaRank
    from rankwright.rankers.neural import RankNet as RankNet
    from rankwright.rankers.neural import SoftRank as SoftRank
    from rankwright.rankers.out_of_fold import out_of_fold as out_of_fold
    from rankwright.rankers.ratings import MMMF as MMMF
    from rankwright.rankers.ratings import CofiRank as CofiRank
    from rankwright.rankers.ratings import JRank as JRank
    from rankwright.rankers.ratings import Recommendations as Recommendations
    from rankwright.rankers.scorer import scorer as scorer
    from rankwright.rankers.structured import DORM as DORM
    from rankwright.rankers.structured import SVMPrecision as SVMPrecision
    from rankwright.rankers.structured import SVMROCArea as SVMROCArea
    from rankwright.rankers.trees import GBDT as GBDT
    from rankwright.rankers.trees import XENDCG as XENDCG
    from rankwright.rankers.trees import GBRank as GBRank
    from rankwright.rankers.trees import IntervalRank as IntervalRank
    from rankwright.rankers.trees import LambdaMART as LambdaMART
    from rankwright.rankers.trees import RandomForest as RandomForest
    from rankwright.ranklib.model_files import load_model as load_model


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return import_module(f"rankwright.{name}")
    if name not in _PUBLIC:
        raise AttributeError(f"module 'rankwright' has no attribute '{name}'{_hint(name)}")
    globals()[name] = found = getattr(import_module(_PUBLIC[name]), name)  # asked for once
    return found


def _hint(name: str) -> str:
    """Return the public name that comes nearest, whatever its capitals."""
    if name.startswith("_"):  # tools ask for these
        return ""
    from difflib import get_close_matches

    lower = {public.lower(): public for public in _PUBLIC}
    near = get_close_matches(name.lower(), lower, n=1)
    return f"; did you mean {lower[near[0]]}?" if near else ""


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC, *_SUBMODULES})
