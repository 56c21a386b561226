"""LightGBM as the engine that grows trees.

Each round passes gradients and curvatures (`rankwright.models.boosting`) to LightGBM as a custom
objective. Labels never reach LightGBM, so lists may be of any length and grades any real number.
Each new tree is converted to node arrays once, from the text of this tree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from rankwright.core.openmp import load_lightgbm_library, spare_threads
from rankwright.core.parallel import thread_count
from rankwright.core.types import F64, I64, AnyArray, FloatMatrix
from rankwright.data.content import content_sample
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.models.forest import Forest
from rankwright.models.lightgbm_text import model_text, read_tree, tree_blocks

if TYPE_CHECKING:  # imported on first use: scoring does not need LightGBM
    import lightgbm as lgb

    from rankwright.models.trees import Trees

Gradients = Callable[[F64], tuple[float, AnyArray, AnyArray]]
"""From training scores to the loss, and the gradient and curvature of each document."""

BIN_ROWS = 1 << 16
"""Largest number of documents that thresholds are computed from."""

_ROWS_PER_THREAD = 4096  # with fewer rows, LightGBM's threads mostly wait for each other


def lightgbm() -> ModuleType:
    """Return LightGBM, imported on first use, with threads that sleep while they wait."""
    load_lightgbm_library()
    import lightgbm as lgb

    module: ModuleType = lgb
    return module


def lightgbm_threads(rows: int, threads: int) -> int:
    """Return the number of threads for LightGBM, of at most ``threads``."""
    load_lightgbm_library()  # it may be too late to let its threads sleep
    return spare_threads(min(threads, max(1, rows // _ROWS_PER_THREAD)))


class LightGBMEngine:
    """Grows trees with LightGBM on one data set.

    Parameters
    ----------
    params : dict
        LightGBM's parameters.
    train : lightgbm.Dataset
        The data, binned once for any number of ensembles.
    """

    def __init__(self, params: dict[str, Any], train: lgb.Dataset) -> None:
        self._params, self._train = params, train

    @classmethod
    def of(
        cls, model: Trees, data: RankingData, *, seed: int, n_jobs: int | None = None
    ) -> LightGBMEngine:
        """Bin the data.

        Mapped features are read row by row and never copied. Thresholds are computed from at most
        `BIN_ROWS` documents.
        """
        params = lightgbm_params(model, data, seed, n_jobs)
        categorical = params.pop("categorical_feature", "auto")
        sample = None
        if data.n_documents > BIN_ROWS:  # LightGBM's own sample depends on the order of the rows
            rows = content_sample(data, BIN_ROWS, seed=seed)
            sample = _bins(data.X[rows], params, categorical, None)
        return cls(params, _bins(data.X, params, categorical, sample))

    def begin(self, scores: F64) -> None:
        """Begin an ensemble whose training scores are ``scores`` before its first tree."""
        self._scores = scores
        self._train.set_init_score(scores)
        self._booster = lightgbm().Booster(self._params, self._train)
        self._n_features = self._booster.num_feature()
        bins = map(self._train.feature_num_bin, range(self._n_features))
        self._can_split = any(bins)

    def grow(self, gradients: Gradients, columns: I64 | None) -> tuple[float, Forest | None]:
        """Add a tree to the ensemble; see `TreeEngine.grow`."""
        if not self._can_split:  # all features are constant, which LightGBM refuses to train on
            return gradients(self._scores)[0], None
        if columns is not None:  # the gain of other features becomes 0
            # LightGBM's own sample has a random stream that a resumed run cannot continue
            share = np.zeros(self._n_features)
            share[columns] = 1.0
            self._booster.reset_parameter({"feature_contri": share.tolist()})
        has_no_split = self._booster.update(fobj=partial(self._objective, gradients))
        if has_no_split:
            return self._loss, None
        last = self._booster.current_iteration() - 1
        text = self._booster.model_to_string(num_iteration=1, start_iteration=last)
        return self._loss, read_tree(tree_blocks(text)[0], self._n_features)

    def _objective(self, gradients: Gradients, scores: F64, _: Any) -> tuple[AnyArray, AnyArray]:
        self._loss, gradient, curvature = gradients(scores)
        return gradient, curvature


def _bins(
    X: FloatMatrix, params: dict[str, Any], categorical: Any, reference: lgb.Dataset | None
) -> lgb.Dataset:
    bins: lgb.Dataset = lightgbm().Dataset(
        sparse.csr_matrix(X) if sparse.issparse(X) else X,
        np.zeros(X.shape[0], np.float32),
        reference=reference,
        params=params,
        categorical_feature=categorical,
    )
    return bins.construct()


def booster_of(forest: Forest) -> lgb.Booster:
    """Return LightGBM's model of a forest, without its offset."""
    names = [f"Column_{column}" for column in range(forest.n_features)]
    booster: lgb.Booster = lightgbm().Booster(model_str=model_text(names, forest))
    return booster


# --- parameters ------------------------------------------------------------------------------


def lightgbm_params(
    model: Trees, data: RankingData, seed: int, n_jobs: int | None
) -> dict[str, Any]:
    """Return LightGBM's parameters; with these its result depends on data and seed only."""
    params: dict[str, Any] = {
        "objective": "none",
        "metric": "none",
        "verbosity": -1,
        "deterministic": True,
        "force_row_wise": True,
        "num_threads": lightgbm_threads(data.n_documents, thread_count(n_jobs)),
        "seed": seed,
        "feature_pre_filter": False,
        "bin_construct_sample_cnt": BIN_ROWS,
        "max_bin": int(model.max_bins),
        "num_leaves": model.num_leaves,
        "learning_rate": model.learning_rate,
        "max_depth": -1 if model.max_depth is None else model.max_depth,
        "min_data_in_leaf": int(model.min_child_samples),
        "min_sum_hessian_in_leaf": model.min_child_weight,
        "lambda_l1": model.reg_alpha,
        "lambda_l2": model.reg_lambda,
    }
    categorical = _categorical(model.categorical_feature, data)
    if categorical:
        params["categorical_feature"] = categorical
    if model.monotone_constraints is not None:
        signs = _signs(model.monotone_constraints, data)
        for column in categorical:
            if signs[column]:
                name = column if data.feature_names is None else data.feature_names[column]
                raise UsageError(
                    f"monotone_constraints has a sign for {name!r}, which is a category without "
                    "order; leave it out, or make the category ordered."
                )
        params["monotone_constraints"] = signs
    return params


def _column(name: str | int, data: RankingData) -> int:
    names = data.feature_names or ()
    if name in names:
        return names.index(str(name))
    if isinstance(name, int | np.integer) and 0 <= name < data.n_features:
        return int(name)
    raise UsageError(
        f"there is no feature {name!r}; use a name or a column from 0 to {data.n_features - 1}."
    )


def _categorical(named: Sequence[str | int] | None, data: RankingData) -> list[int]:
    """Return the columns that are split as categories, by parameter or by their type."""
    typed = [name for name, column in (data.categories or {}).items() if not column.ordered]
    return sorted({_column(name, data) for name in (*(named or ()), *typed)})


def _signs(monotone: Mapping[str | int, int] | Sequence[int], data: RankingData) -> list[int]:
    if not isinstance(monotone, Mapping):
        if len(monotone) != data.n_features:
            raise UsageError(
                f"monotone_constraints has {len(monotone)} signs for {data.n_features} features; "
                "a mapping such as {'price': -1} names only some."
            )
        return list(monotone)
    signs = [0] * data.n_features
    for name, sign in monotone.items():
        signs[_column(name, data)] = sign
    return signs
