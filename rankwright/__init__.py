"""Rankwright: learning to rank. Names load on first use; importing this package loads nothing."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_PUBLIC = {
    "BoltzRank": "rankwright.rankers.boltzrank",
    "Classification": "rankwright.rankers.classification",
    "CofiRank": "rankwright.rankers.cofirank",
    "AdaRank": "rankwright.rankers.adarank",
    "Checkpoint": "rankwright.persist.checkpoint",
    "Convention": "rankwright.metrics.convention",
    "CoordinateAscent": "rankwright.rankers.coordinate_ascent",
    "Domination": "rankwright.rankers.domination",
    "DORM": "rankwright.rankers.dorm",
    "FRank": "rankwright.rankers.frank",
    "GBDT": "rankwright.rankers.gbdt",
    "GBRank": "rankwright.rankers.gbrank",
    "IRSVM": "rankwright.rankers.irsvm",
    "JRank": "rankwright.rankers.jrank",
    "IntervalRank": "rankwright.rankers.intervalrank",
    "LambdaMART": "rankwright.rankers.lambdamart",
    "LambdaRank": "rankwright.rankers.lambdarank",
    "LinearRegression": "rankwright.rankers.linear_regression",
    "ListMLE": "rankwright.rankers.listmle",
    "ListNet": "rankwright.rankers.listnet",
    "MEMR": "rankwright.rankers.memr",
    "MMMF": "rankwright.rankers.mmmf",
    "MR": "rankwright.rankers.mr",
    "NDCGGLM": "rankwright.rankers.ndcg_glm",
    "PAMIR": "rankwright.rankers.pamir",
    "OrdinalSVM": "rankwright.rankers.ordinal_svm",
    "PRank": "rankwright.rankers.prank",
    "RandomForest": "rankwright.rankers.random_forest",
    "RankCosine": "rankwright.rankers.rankcosine",
    "RankGP": "rankwright.rankers.rankgp",
    "RankBoost": "rankwright.rankers.rankboost",
    "QueryFolds": "rankwright.data.query_folds",
    "RankNet": "rankwright.rankers.ranknet",
    "RankSVM": "rankwright.rankers.ranksvm",
    "Ranking": "rankwright.data.rankings",
    "RankingData": "rankwright.data.ranking_data",
    "SVMPrecision": "rankwright.rankers.svm_precision",
    "SVMROCArea": "rankwright.rankers.svm_rocarea",
    "SoftRank": "rankwright.rankers.softrank",
    "XENDCG": "rankwright.rankers.xendcg",
    "auto": "rankwright.rankers.auto",
    "compare": "rankwright.experiments.compare",
    "evaluate": "rankwright.metrics.evaluation",
    "explain": "rankwright.explanation",
    "joint_convexity": "rankwright.rankers.joint_convexity",
    "load": "rankwright.data.files",
    "load_model": "rankwright.persist.model_file",
    "loss": "rankwright.losses",
    "metric": "rankwright.metrics.names",
    "ranker": "rankwright.rankers.base",
    "synthetic": "rankwright.data.synthetic",
    "train_valid_test_split": "rankwright.data.split",
}

__all__ = [*_PUBLIC]

if TYPE_CHECKING:
    from rankwright.data.files import load as load
    from rankwright.data.query_folds import QueryFolds as QueryFolds
    from rankwright.data.ranking_data import RankingData as RankingData
    from rankwright.data.rankings import Ranking as Ranking
    from rankwright.data.split import train_valid_test_split as train_valid_test_split
    from rankwright.data.synthetic import synthetic as synthetic
    from rankwright.experiments.compare import compare as compare
    from rankwright.explanation import explain as explain
    from rankwright.losses import loss as loss
    from rankwright.metrics.convention import Convention as Convention
    from rankwright.metrics.evaluation import evaluate as evaluate
    from rankwright.metrics.names import metric as metric
    from rankwright.persist.checkpoint import Checkpoint as Checkpoint
    from rankwright.persist.model_file import load_model as load_model
    from rankwright.rankers.adarank import AdaRank as AdaRank
    from rankwright.rankers.auto import auto as auto
    from rankwright.rankers.base import ranker as ranker
    from rankwright.rankers.boltzrank import BoltzRank as BoltzRank
    from rankwright.rankers.classification import Classification as Classification
    from rankwright.rankers.cofirank import CofiRank as CofiRank
    from rankwright.rankers.coordinate_ascent import CoordinateAscent as CoordinateAscent
    from rankwright.rankers.domination import Domination as Domination
    from rankwright.rankers.dorm import DORM as DORM
    from rankwright.rankers.frank import FRank as FRank
    from rankwright.rankers.gbdt import GBDT as GBDT
    from rankwright.rankers.gbrank import GBRank as GBRank
    from rankwright.rankers.intervalrank import IntervalRank as IntervalRank
    from rankwright.rankers.irsvm import IRSVM as IRSVM
    from rankwright.rankers.joint_convexity import joint_convexity as joint_convexity
    from rankwright.rankers.jrank import JRank as JRank
    from rankwright.rankers.lambdamart import LambdaMART as LambdaMART
    from rankwright.rankers.lambdarank import LambdaRank as LambdaRank
    from rankwright.rankers.linear_regression import LinearRegression as LinearRegression
    from rankwright.rankers.listmle import ListMLE as ListMLE
    from rankwright.rankers.listnet import ListNet as ListNet
    from rankwright.rankers.memr import MEMR as MEMR
    from rankwright.rankers.mmmf import MMMF as MMMF
    from rankwright.rankers.mr import MR as MR
    from rankwright.rankers.ndcg_glm import NDCGGLM as NDCGGLM
    from rankwright.rankers.ordinal_svm import OrdinalSVM as OrdinalSVM
    from rankwright.rankers.pamir import PAMIR as PAMIR
    from rankwright.rankers.prank import PRank as PRank
    from rankwright.rankers.random_forest import RandomForest as RandomForest
    from rankwright.rankers.rankboost import RankBoost as RankBoost
    from rankwright.rankers.rankcosine import RankCosine as RankCosine
    from rankwright.rankers.rankgp import RankGP as RankGP
    from rankwright.rankers.ranknet import RankNet as RankNet
    from rankwright.rankers.ranksvm import RankSVM as RankSVM
    from rankwright.rankers.softrank import SoftRank as SoftRank
    from rankwright.rankers.svm_precision import SVMPrecision as SVMPrecision
    from rankwright.rankers.svm_rocarea import SVMROCArea as SVMROCArea
    from rankwright.rankers.xendcg import XENDCG as XENDCG


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'rankwright' has no attribute '{name}'{_hint(name)}")
    return getattr(import_module(_PUBLIC[name]), name)


def _hint(name: str) -> str:
    """Return the public name that comes nearest, whatever its capitals."""
    if name.startswith("_"):  # tools ask for these
        return ""
    from difflib import get_close_matches

    lower = {public.lower(): public for public in _PUBLIC}
    near = get_close_matches(name.lower(), lower, n=1)
    return f"; did you mean {lower[near[0]]}?" if near else ""


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])
