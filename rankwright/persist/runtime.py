"""Rank from a model file without the training packages: numpy, scipy.sparse and numba are enough.

    from rankwright.persist import runtime

    model = runtime.load("model.rw")
    order = model.rank(X, qid=qid, top=10).order

The scores are those of `rankwright.load_model`, to the last bit. Neither scikit-learn nor LightGBM
is imported, so a process ranks its first list within a second of its start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays

from rankwright import registry
from rankwright.core.dtypes import as_feature_matrix, as_groups, as_vector
from rankwright.core.types import F64, FittedModel, FloatMatrix
from rankwright.data.frames import AllCategories, categories_from_json
from rankwright.data.ranking_data import RankingData
from rankwright.data.rankings import Ranking
from rankwright.errors import DataError, UsageError, quoted
from rankwright.persist.container import ModelFileError, read_parts
from rankwright.persist.other_libraries import read_other

_MOST_FEATURES = 1 << 24
_FIELDS = ("ranker", "parameters", "data", "best_iteration", "curve")
PART_ERRORS = (  # raised by parts that are not what the receipt says
    KeyError,
    TypeError,
    ValueError,
    IndexError,
    AttributeError,
    OverflowError,
    RecursionError,
    SafetensorError,
)


@dataclass(frozen=True, eq=False)
class RuntimeModel:
    """A fitted model and what its file says of it.

    Attributes
    ----------
    ranker : str
        The ranker that made it, such as ``lambdamart``.
    model : fitted model
    n_features : int
    feature_names : tuple of str or None
        In the order of the columns; None where the training data had no names.
    categories : dict from names to Categories, or None
        Of the features that are categories: what their codes in an array stand for.
    receipt : dict
        Parameters, versions, a digest of the training data, learning curves.
    """

    ranker: str
    model: FittedModel
    n_features: int
    feature_names: tuple[str, ...] | None
    receipt: dict[str, Any]
    categories: AllCategories | None = None

    @cached_property
    def coded(self) -> dict[int, dict[Any, int]]:
        """Code of each value of the features that are categories, by column."""
        return {
            self.columns[name]: {value: code for code, value in enumerate(own.values)}
            for name, own in (self.categories or {}).items()
        }

    @cached_property
    def columns(self) -> dict[str, int]:
        """Column of each feature by name; features without names go by number, from 1."""
        names = self.feature_names or [str(number + 1) for number in range(self.n_features)]
        return {name: column for column, name in enumerate(names)}

    def scores(self, X: Any, *, qid: Any = None, n_jobs: int | None = None) -> F64:
        """Return a score for each row; a higher one ranks first.

        For arrays in the caller's order of rows, for RankingData in its own.

        Parameters
        ----------
        X : array, sparse matrix or RankingData
        qid : array-like (n,)
            Query of each row; only models of users or of whole lists look at it.
        """
        data = self._data(X, qid, None)
        scores = self.scores_of(data, n_jobs=n_jobs)
        return scores if isinstance(X, RankingData) else data.in_caller_order(scores)

    def rank(
        self,
        X: Any,
        *,
        qid: Any = None,
        group: Any = None,
        per_group: int | None = None,
        top: int | None = None,
        n_jobs: int | None = None,
    ) -> Ranking:
        """Return the documents of each query, best first; without ``qid`` all are one query.

        With ``per_group`` at most that many documents of each ``group`` (host, topic) are kept
        per query, and with ``top`` that many documents in all; the others are left out.
        """
        data = self._data(X, qid, group)
        scores = self.scores_of(data, n_jobs=n_jobs)
        return Ranking.of(data, scores, per_group=per_group, top=top, n_jobs=n_jobs)

    def scores_of(self, data: RankingData, *, n_jobs: int | None = None) -> F64:
        """Return the score of each document, in the order of the data's own rows."""
        model: Any = self.model
        if hasattr(model, "scores_of"):
            in_lists: F64 = model.scores_of(data, n_jobs=n_jobs)
            return in_lists
        scores: F64 = model.scores(data.X, n_jobs=n_jobs)
        return scores

    def _data(self, X: Any, qid: Any, group: Any) -> RankingData:
        if isinstance(X, RankingData):
            self._check_width(X.X)
            known, names = self.feature_names, X.feature_names
            if known is not None and names is not None and names != known:
                raise DataError("the data has other features, or in another order, than the model.")
            data = X.in_categories(self.categories)
            if group is None:
                return data
            return replace(data, group=as_groups(group, "group", len(X.y)))
        if hasattr(X, "columns") or hasattr(X, "column_names"):
            raise UsageError(
                "runtime models take arrays: pass the columns of the frame in the order of "
                "model.feature_names, such as frame[list(model.feature_names)].to_numpy(); "
                "categories go in a RankingData.from_frame."
            )
        features = as_feature_matrix(X)
        self._check_width(features)
        n = features.shape[0]
        ids = np.zeros(n, np.int64) if qid is None else as_vector(qid, "qid", n)
        return RankingData.from_arrays(features, None, qid=ids, group=group)

    def _check_width(self, X: FloatMatrix) -> None:
        if X.shape[1] != self.n_features:
            raise DataError(f"X has {X.shape[1]} features, the model has {self.n_features}.")


def load(path: str | Path) -> RuntimeModel:
    """Read a model file, checked, for scoring alone; those of other libraries too."""
    other = read_other(path)
    if other is not None:
        about = {"library": other.library, "objective": other.objective, "data": None}
        return RuntimeModel(
            "ranker", other.model, other.model.n_features, other.names, about, other.categories
        )
    receipt, parts = read_parts(path)
    check_packages(path, receipt, ("model",))
    try:
        n_features, names = checked_shape(receipt)
        model = fitted_model(str(receipt["model"]), parts, n_features)
        categories = categories_from_json(receipt.get("categories"), names)
        return RuntimeModel(str(receipt["ranker"]), model, n_features, names, receipt, categories)
    except PART_ERRORS as error:
        raise ModelFileError(f"{path} does not hold what its receipt says: {error}") from None


def check_packages(
    path: str | Path, receipt: Mapping[str, Any], needed: tuple[str, ...] = ("ranker", "model")
) -> None:
    """Refuse a file whose ranker or model is that of a package that is not installed."""
    packages = receipt.get("packages", {})
    for what in needed if isinstance(packages, dict) else ():
        name = str(receipt.get(what))
        if what in packages and name not in registry.names(f"{what}s"):
            raise UsageError(
                f"{path} holds the {what} {quoted(name)} of the package "
                f"{quoted(packages[what])}, which is not installed here; install it first."
            )


def checked_shape(receipt: Mapping[str, Any]) -> tuple[int, tuple[str, ...] | None]:
    """Return the number of features and their names, of a receipt that has all its fields."""
    for field in _FIELDS:
        if field not in receipt:
            raise UsageError(f"no {field}.")
    if not isinstance(receipt["parameters"], dict):
        raise UsageError("parameters that are no mapping.")
    n_features, names = receipt["n_features"], receipt["feature_names"]
    if type(n_features) is not int or not 0 < n_features <= _MOST_FEATURES:
        raise UsageError(f"{n_features!r} features.")
    if names is None:
        return n_features, None
    if not isinstance(names, list):
        raise UsageError("feature names that are no list.")
    called = tuple(map(str, names))
    if len(called) != n_features or len(set(called)) != n_features:
        raise UsageError(f"{len(set(called))} different names for {n_features} features.")
    return n_features, called


def fitted_model(family: str, parts: Mapping[str, bytes], n_features: int) -> FittedModel:
    """Return the model that the parts of a file hold."""
    held = dict(parts)
    arrays = load_arrays(held.pop("arrays.safetensors"))
    texts = {name.removesuffix(".txt"): content.decode() for name, content in held.items()}
    model: FittedModel = registry.resolve("models", family).restore(arrays, texts, n_features)
    return model
