"""Which ranker of ours a RankLib ranker is, and its parameters from the flags.

Four things differ on purpose, and `docs/coming-from-ranklib.md` says what comes of them: trees are
grown by LightGBM, Random Forests sample features once per tree, networks are trained by Adam, and
ListNet's convex problem is solved outright.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg

from rankwright import registry
from rankwright.core.types import F64, Loss
from rankwright.data.ranking_data import RankingData
from rankwright.losses.lambdarank import LambdaRank
from rankwright.losses.squared import Squared
from rankwright.models.trees import Trees
from rankwright.rankers.base import Ranker
from rankwright.ranklib.conversion import REGISTERED
from rankwright.ranklib.flags import RANKERS, Flags
from rankwright.ranklib.java_numbers import java_double
from rankwright.ranklib.metrics import RankLibMetric
from rankwright.ranklib.model_text import ModelText, Terms, matrix

_RANKNET_RATE, _ADAM_RATE = 5e-5, 1e-3
_EVERY_VALUE = 65_535  # thresholds: the most that LightGBM keeps


class Recipe(NamedTuple):
    """A ranker of RankLib: parameters of ours, its log's lines, and what the user should know."""

    parameters: dict[str, Any]
    log: list[str]
    notices: list[str]


def make_ranker(flags: Flags, metric: RankLibMetric, n_lists: int = 1) -> tuple[Ranker, Recipe]:
    """Return the ranker that the flags ask for, to be trained for ``metric`` on so many lists."""
    name = RANKERS[flags.ranker]
    recipe = _RECIPES[name](flags, metric)
    common: dict[str, Any] = {
        "metric": metric.name,
        "select_metric": metric.selects,
        "convention": "ranklib",
        "random_state": flags.seed,
        "n_jobs": None if flags.thread < 1 else flags.thread,
    }
    if "l2" in recipe.parameters:  # ours is a penalty on the mean over lists
        common["l2"] = recipe.parameters.pop("l2") / n_lists
    kind = registry.resolve("rankers", REGISTERED[name])
    if "select_metric" not in kind._get_param_names():  # its metric does nothing but select
        common["metric"] = common.pop("select_metric")
    ranker: Ranker = kind(**{**common, **recipe.parameters})
    return ranker, recipe


def _mart(flags: Flags, metric: RankLibMetric) -> Recipe:  # noqa: ARG001
    tc = _given(flags.tc, 256)
    trees, leaves = _given(flags.tree, 1000), _given(flags.leaf, 10)
    grown = Trees(
        n_estimators=trees,
        num_leaves=leaves,
        learning_rate=flags.shrinkage,
        max_bins=tc if tc > 0 else _EVERY_VALUE,
        min_child_samples=max(1, flags.mls),
    )
    parameters = {"model": grown, "early_stopping_rounds": flags.estop}
    log = [
        f"No. of trees: {trees}",
        f"No. of leaves: {leaves}",
        f"No. of threshold candidates: {tc}",
        f"Min leaf support: {flags.mls}",
        f"Learning rate: {java_double(flags.shrinkage)}",
        f"Stop early: {flags.estop} rounds without performance gain on validation data",
    ]
    return Recipe(parameters, log, [])


def _with_pairs(
    recipe: Callable[[Flags, RankLibMetric], Recipe],
) -> Callable[[Flags, RankLibMetric], Recipe]:
    """Return a recipe with the pairs of LambdaRank in addition."""

    def of(flags: Flags, metric: RankLibMetric) -> Recipe:
        parameters, log, notices = recipe(flags, metric)
        pairs, more = _pairs(flags, metric)
        return Recipe({**parameters, **pairs}, log, notices + more)

    return of


def _pairs(flags: Flags, metric: RankLibMetric) -> tuple[dict[str, Any], list[str]]:
    """Return the parameters of LambdaRank's pairs, as RankLib weighs them."""
    only_first = metric.name == "map" and flags.strict
    pairs = {"normalize": False, "truncation": 1 if only_first else None}
    notices = []
    if metric.name == "map" and not flags.strict:
        notices.append(
            "for MAP all pairs of documents count; RankLib takes only those with the first-ranked "
            "document (--strict does so)."
        )
    if metric.name.startswith("err"):
        notices.append(
            "what a swap changes in ERR is exact; RankLib squares the chance that a reader goes on "
            "(--strict does not bring that back)."
        )
    return pairs, notices


def _random_forests(flags: Flags, metric: RankLibMetric) -> Recipe:
    trees, leaves = _given(flags.tree, 1), _given(flags.leaf, 100)
    given = _given(flags.tc, 256)
    tc = 256 if flags.strict else given
    notices = []
    if given != tc:
        notices.append("--strict: -tc does not reach Random Forests, as in RankLib.")
    elif given != 256:
        notices.append("-tc is obeyed; RankLib keeps 256 in Random Forests (--strict does so).")
    loss: Loss = Squared()
    if flags.rtype == 6:
        pairs, more = _pairs(flags, metric)
        loss, notices = LambdaRank(metric=metric.name, **pairs), notices + more
    parameters = {
        "loss": loss,
        "n_bags": flags.bag,
        "bag_fraction": flags.srate,
        "colsample_bytree": flags.frate,
        "n_estimators": trees,
        "num_leaves": leaves,
        "learning_rate": flags.shrinkage,
        "max_bins": tc if tc > 0 else _EVERY_VALUE,
        "min_child_samples": max(1, flags.mls),
    }
    log = [
        f"No. of bags: {flags.bag}",
        f"Sub-sampling: {java_double(flags.srate)}",
        f"Feature-sampling: {java_double(flags.frate)}",
        f"No. of trees: {trees}",
        f"No. of leaves: {leaves}",
        f"No. of threshold candidates: {tc}",
        f"Learning rate: {java_double(flags.shrinkage)}",
    ]
    return Recipe(parameters, log, notices)


def _coordinate_ascent(flags: Flags, metric: RankLibMetric) -> Recipe:  # noqa: ARG001
    tolerance = _given(flags.tolerance, 0.001)
    parameters = {
        "n_restarts": flags.restarts,
        "n_steps": flags.iterations,
        "tol": tolerance,
        "reg": flags.reg or 0.0,
        "steps": "ranklib",
        "scale": False,
    }
    log = [
        f"No. of random restarts: {flags.restarts}",
        f"No. of iterations to search in each direction: {flags.iterations}",
        f"Tolerance: {java_double(tolerance)}",
        "Regularization: No" if flags.reg is None else "Reg. param: " + java_double(flags.reg),
    ]
    return Recipe(parameters, log, [])


def _rankboost(flags: Flags, metric: RankLibMetric) -> Recipe:  # noqa: ARG001
    rounds, tc = _given(flags.round, 300), _given(flags.tc, 10)
    parameters = {
        "n_rounds": rounds,
        "n_candidates": tc if tc > 0 else "all",
        "falling": False,
    }
    log = [f"No. of rounds: {rounds}", f"No. of threshold candidates: {tc}"]
    return Recipe(parameters, log, [])


def _adarank(flags: Flags, metric: RankLibMetric) -> Recipe:  # noqa: ARG001
    rounds = _given(flags.round, 500)
    tolerance = _given(flags.tolerance, 0.002)
    parameters = {
        "n_rounds": rounds,
        "weights": "running",
        "enqueue": not flags.noeq,
        "tol": tolerance,
        "max_selections": flags.max,
    }
    log = [
        f"No. of rounds: {rounds}",
        f"Train with 'enequeue': {'No' if flags.noeq else 'Yes'}",
        f"Tolerance: {java_double(tolerance)}",
        f"Max Sel. Count: {flags.max}",
    ]
    return Recipe(parameters, log, [])


def _ranknet(flags: Flags, metric: RankLibMetric) -> Recipe:  # noqa: ARG001
    epochs = _given(flags.epoch, 100)
    rate = _given(flags.lr, _RANKNET_RATE)
    parameters = {
        "hidden_layer_sizes": (flags.node,) * flags.layer,
        "activation": "sigmoid",
        "epochs": epochs,
        # Adam's steps have the length of its rate, whatever the gradient: only how much the rate
        # differs from RankLib's default is taken over
        "learning_rate": _ADAM_RATE * rate / _RANKNET_RATE,
    }
    log = [
        f"No. of epochs: {epochs}",
        f"No. of hidden layers: {flags.layer}",
        f"No. of hidden nodes per layer: {flags.node}",
        f"Learning rate: {java_double(rate)}",
    ]
    return Recipe(parameters, log, [])


def _listnet(flags: Flags, metric: RankLibMetric) -> Recipe:  # noqa: ARG001
    epochs, rate = _given(flags.epoch, 1500), _given(flags.lr, 1e-5)
    notices = []
    if flags.lr is not None:
        rate = 0.001 if flags.strict else rate
        notices.append(
            "ListNet's problem is solved outright, without a learning rate: -lr has no effect "
            "(RankLib takes 0.001 whatever it is)."
        )
    parameters = {"max_iter": max(1, epochs)}
    log = [f"No. of epochs: {epochs}", f"Learning rate: {java_double(rate)}"]
    return Recipe(parameters, log, notices)


def _linear_regression(flags: Flags, metric: RankLibMetric) -> Recipe:  # noqa: ARG001
    parameters = {"l2": flags.l2, "scale": False}
    notices = []
    if not flags.strict:
        notices.append(
            "the regression uses all features and saves its own constant; RankLib leaves the last "
            "feature out and saves the constant as its weight (--strict does so)."
        )
    log = [f"L2-norm regularization: lambda = {java_double(flags.l2)}"]
    return Recipe(parameters, log, notices)


def _given(value: Any, default: Any) -> Any:
    """Return what a flag says, or its ranker's default where it was not given."""
    return default if value is None else value


_RECIPES = {
    "MART": _mart,
    "RankNet": _ranknet,
    "RankBoost": _rankboost,
    "AdaRank": _adarank,
    "Coordinate Ascent": _coordinate_ascent,
    "LambdaRank": _with_pairs(_ranknet),
    "LambdaMART": _with_pairs(_mart),
    "ListNet": _listnet,
    "Random Forests": _random_forests,
    "Linear Regression": _linear_regression,
}


# --- linear regression -------------------------------------------------------------------------
# RankLib leaves the last feature out of the equations and saves the constant as that feature's
# weight, and the first feature's weight as the constant (feature 0). ``--strict`` does the same.


def with_constant(model: ModelText, data: RankingData, l2: float) -> ModelText:
    """Return a regression with the constant that makes scores on ``data`` right in the mean."""
    body = model.body
    assert isinstance(body, Terms)
    constant = float(np.mean(data.y - body.scores(data.X)))
    terms = Terms(body.features, np.append(constant, body.weights[1:]))  # 0 stands first
    return replace(model, settings=_settings(l2), body=terms)


def as_ranklib_solves(data: RankingData, l2: float) -> ModelText:
    """Return RankLib's own regression on ``data``, slips included."""
    d = data.n_features
    known = matrix(data.X, list(range(1, d)))
    A: F64 = np.column_stack([known, np.ones(data.n_documents)])
    equations = A.T @ A + l2 * np.eye(d)
    w: F64 = linalg.solve(equations, A.T @ data.y, assume_a="pos")
    return ModelText(
        "Linear Regression", _settings(l2), Terms(np.arange(d + 1), np.append(w[0], w))
    )


def _settings(l2: float) -> tuple[tuple[str, str], ...]:
    return (("Lambda", java_double(l2)),)
