"""Rates of one core and sizes of messages, from which docs/scale.md reckons what a cluster takes.

- a pass over the data of a linear model: its scores, the loss and the gradient in the weights;
- LambdaRank's gradients and curvatures of all documents;
- one tree of 31 leaves and 255 bins from those, by LightGBM;
- a round of messages to parts that lie on Dask workers and do nothing: seconds over parts.

One thread each, on the shape of web search: lists of 120 documents with 136 features.
"""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np

from rankwright import RankingData, synthetic
from rankwright.distributed import Partitions
from rankwright.distributed.cluster import cluster
from rankwright.losses.lambdarank import LambdaRank
from rankwright.losses.ranknet import RankNet
from rankwright.losses.retarget import Retarget
from rankwright.models.linear_problem import LinearProblem
from rankwright.models.trees import BinnedData, Trees, empty_forest

from .findings import Findings
from .timing import least

QUERIES, ROUNDS, PARTS, WORKERS = 1500, 5, (8, 64, 256), 2
TREES = Trees(n_estimators=1, num_leaves=31, learning_rate=0.1, colsample_bytree=1.0, max_bins=255)


def run() -> Findings:
    data = synthetic("mslr10k", queries=QUERIES)
    values = data.n_documents * data.n_features
    looks = {"memr": Retarget(), "ranknet": RankNet()}
    seconds = least({name: _look(loss, data) for name, loss in looks.items()}, ROUNDS)
    seconds |= least({"lambdarank": _gradients(data), "tree": _tree(data)}, ROUNDS)
    fixed, per_part = _messages(synthetic("mslr10k", queries=max(PARTS)))
    w, g = np.zeros(data.n_features), np.zeros(data.n_features)
    return Findings(
        {
            "memr_look_values_per_second": values / seconds["memr"],
            "ranknet_look_values_per_second": values / seconds["ranknet"],
            "lambdarank_documents_per_second": data.n_documents / seconds["lambdarank"],
            "tree_values_per_second": values / seconds["tree"],
            "dask_seconds_per_round": fixed,
            "dask_seconds_per_part_of_a_round": per_part,
            "bytes_to_a_part": len(pickle.dumps((w,))),
            "bytes_from_a_part": len(pickle.dumps((0.0, g))),
        }
    )


def _look(loss: Any, data: RankingData) -> Any:
    ones = np.ones(data.n_features)
    bound = loss.bind(data, n_jobs=1)
    problem = LinearProblem(data.X, data.indptr, bound, 1.0, l2=0.0, deviation=ones, n_jobs=1)
    rng = np.random.default_rng(0)
    out, w = np.empty(problem.size), 0.01 * rng.normal(size=problem.size)
    return lambda: problem.grad(w, out)


def _gradients(data: RankingData) -> Any:
    bound = LambdaRank().bind(data, n_jobs=1)
    s = np.random.default_rng(0).normal(size=data.n_documents)
    out, curvature = np.empty(len(s)), np.empty(len(s))
    return lambda: bound.grad_curv(s, out, curvature)


def _tree(data: RankingData) -> Any:
    binned = BinnedData(data, None, TREES.lightgbm_params(data, 0, 1))
    booster = binned.booster(empty_forest(0.0, data.n_features))
    rng = np.random.default_rng(0)
    gradient = rng.normal(size=data.n_documents).astype(np.float32)
    curvature = np.ones(data.n_documents, np.float32)
    return lambda: booster.update(fobj=lambda *_: (gradient, curvature))


def _messages(data: RankingData) -> tuple[float, float]:
    """Return the seconds of a round, and what each part adds to them."""
    seconds = []
    with cluster(f"local:{WORKERS}") as client:
        for n in PARTS:
            parts = Partitions.of(data, client=client, n_parts=n)
            w = np.zeros(data.n_features)
            seconds.append(
                least({"round": lambda p=parts, w=w: p.map(_answer, w)}, ROUNDS)["round"]
            )
    per_part, fixed = np.polyfit(PARTS, seconds, 1)
    return max(0.0, float(fixed)), float(per_part)


def _answer(_part: RankingData, w: Any) -> tuple[float, Any]:
    return 0.0, w
