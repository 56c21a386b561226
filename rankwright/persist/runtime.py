"""Rank with a model file without importing the packages that only training needs.

    from rankwright.persist import runtime

    model = runtime.load("model.rw")
    order = model.rank(X, qid=qid, top=10).order

The scores are equal to the scores of `rankwright.load_model`, bit for bit. The
process does not import scikit-learn, LightGBM, torch or data frames, so it starts quickly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
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

_MAX_FEATURES = 1 << 24
_PART_ERRORS = (  # of parts that do not fit their receipt
    KeyError,
    TypeError,
    ValueError,
    IndexError,
    AttributeError,
    OverflowError,
    RecursionError,
    SafetensorError,
    msgspec.ValidationError,
)


class _NotFinite(msgspec.Struct, forbid_unknown_fields=True):
    name: Literal["nan", "inf", "-inf"] = msgspec.field(name="float")


class _Receipt(msgspec.Struct):
    """Types of entries in the receipt of a model file; reading checks parameters and categories."""

    ranker: str
    model: str
    parameters: dict[str, Any]
    data: str
    best_iteration: Annotated[int, msgspec.Meta(ge=0)]
    curve: dict[str, list[float | _NotFinite]]
    n_features: Annotated[int, msgspec.Meta(gt=0, le=_MAX_FEATURES)]
    feature_names: list[Any] | None
    feature_deviation: list[float | _NotFinite] | None = None
    qid_column: str | None = None
    first_feature_id: Literal[0, 1] | None = None


@dataclass(frozen=True, eq=False)
class RuntimeModel:
    """A fitted model and the receipt of its file.

    Attributes
    ----------
    ranker : str
        Name of the ranker that was fitted, such as ``lambdamart``.
    model : fitted model
    n_features : int
    feature_names : tuple of str or None
        In the order of the columns; None if the training data had no names.
    categories : dict from names to Categories, or None
        Values of the categorical features, in the order of their codes.
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
        """Code of each value of the categorical features, by column."""
        return {
            self.columns[name]: {value: code for code, value in enumerate(feature.values)}
            for name, feature in (self.categories or {}).items()
        }

    @cached_property
    def columns(self) -> dict[str, int]:
        """Column of each feature by name. Features without names have numbers from 1."""
        names = self.feature_names or [str(number + 1) for number in range(self.n_features)]
        return {name: column for column, name in enumerate(names)}

    def scores(self, X: Any, *, qid: Any = None, n_jobs: int | None = None) -> F64:
        """Return a score for each row; higher scores rank first.

        Scores of arrays are in the order of their rows, scores of RankingData in its order.

        Parameters
        ----------
        X : array, sparse matrix or RankingData
        qid : array-like (n,)
            Query of each row, which only models of users or whole lists need.
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
        """Return the documents of each query, best first; without ``qid`` there is one query.

        ``per_group`` is the maximum number of documents of each ``group`` (host, topic) in a
        query, and ``top`` the maximum number of documents of a query.
        """
        data = self._data(X, qid, group)
        scores = self.scores_of(data, n_jobs=n_jobs)
        return Ranking.of(data, scores, per_group=per_group, top=top, n_jobs=n_jobs)

    def scores_of(self, data: RankingData, *, n_jobs: int | None = None) -> F64:
        """Return the score of each document, in the order of the rows of the data."""
        model: Any = self.model
        if hasattr(model, "scores_of"):
            scores: F64 = model.scores_of(data, n_jobs=n_jobs)
        else:
            scores = model.scores(data.X, n_jobs=n_jobs)
        return scores

    def _data(self, X: Any, qid: Any, group: Any) -> RankingData:
        if isinstance(X, RankingData):
            self._check_width(X.X)
            names = X.feature_names
            if names is not None and self.feature_names not in (None, names):
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
    """Read a model file for scoring only, also of LightGBM, XGBoost or CatBoost."""
    other = read_other(path)
    if other is None:
        return read_model(path)
    receipt = {"library": other.library, "objective": other.objective, "data": None}
    return RuntimeModel(
        "ranker", other.model, other.model.n_features, other.names, receipt, other.categories
    )


def read_model(path: str | Path) -> RuntimeModel:
    """Read and check a model file of `Ranker.save`."""
    receipt, parts = read_parts(path)
    check_package(path, receipt, "model")
    with as_model_file_error(path):
        msgspec.convert(receipt, _Receipt)
        n_features, names = receipt["n_features"], receipt["feature_names"]
        if names is not None:
            names = tuple(map(str, names))
            if not len(names) == len(set(names)) == n_features:
                raise UsageError(f"feature_names must be {n_features} different names.")
        texts = {name.removesuffix(".txt"): content for name, content in parts.items()}
        arrays = load_arrays(texts.pop("arrays.safetensors"))
        model = registry.resolve("models", receipt["model"]).restore(
            arrays, {name: content.decode() for name, content in texts.items()}, n_features
        )
        categories = categories_from_json(receipt.get("categories"), names) or None
        return RuntimeModel(receipt["ranker"], model, n_features, names, receipt, categories)


@contextmanager
def as_model_file_error(path: str | Path) -> Iterator[None]:
    """Raise an error of parts that do not fit their receipt as a `ModelFileError`."""
    try:
        yield
    except _PART_ERRORS as error:
        reason = str(error).rstrip(".")
        raise ModelFileError(f"{path} does not match its receipt: {reason}.") from None


def check_package(path: str | Path, receipt: Mapping[str, Any], kind: str) -> None:
    """Raise if the ranker or model of a file is from a package that is not installed."""
    packages, name = receipt.get("packages"), str(receipt.get(kind))
    if isinstance(packages, dict) and kind in packages and name not in registry.names(f"{kind}s"):
        raise UsageError(
            f"{path} contains the {kind} {quoted(name)} of the package "
            f"{quoted(packages[kind])}, which is not installed; install it first."
        )
