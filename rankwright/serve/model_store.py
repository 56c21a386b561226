"""The models of a server: which version answers a query, and the replacement of model files.

Weighted rendezvous hashing (Schindelhauer and Schomaker, 2005) selects the version: among the
versions of a name, the one with the largest ``-share / log(u)``, with u in (0, 1) a hash of name,
version and query id. So a query always gets the same version, on every server with the same shares,
and moves only to a version whose share grew relative to that of its present version.

A replaced file is loaded and tried before one assignment puts it in place. Requests under way end
with the model with which they began. An unusable file only sets `LoadedModel.error`.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rankwright.core.types import F64
from rankwright.data.ranking_data import RankingData
from rankwright.errors import RankwrightError, UsageError
from rankwright.persist.runtime import RuntimeModel, load
from rankwright.registry import unknown
from rankwright.serve.settings import Version

Signature = tuple[int, int, int]
_UNUSABLE = "the new file cannot be used; see the log of the server."


@dataclass(eq=False)
class LoadedModel:
    """The model of one file; ``model`` changes when the file is replaced."""

    version: Version
    model: RuntimeModel
    signature: Signature | None
    error: str | None = None
    reloads: int = 0

    @property
    def state(self) -> dict[str, Any]:
        """Name, version and reloads. It is public, so it has no paths and no causes of errors."""
        return {
            "name": self.version.name,
            "version": self.version.version,
            "reloads": self.reloads,
            "reload_fault": None if self.error is None else _UNUSABLE,
        }

    @property
    def about(self) -> dict[str, Any]:
        """The state, the ranker and its features."""
        model = self.model
        categories = model.categories or {}
        return {
            **self.state,
            "share": self.version.share,
            "ranker": model.ranker,
            "n_features": model.n_features,
            "feature_names": None if model.feature_names is None else list(model.feature_names),
            "categories": {name: list(feature.values) for name, feature in categories.items()},
            "data": model.receipt.get("data"),
        }


class ModelStore:
    """The models of all names. Loading fails if a file cannot be used."""

    def __init__(self, versions: Sequence[Version]) -> None:
        # A signature is read before its file, so that a later check sees a replacement meanwhile.
        self.models = [
            LoadedModel(
                signature=_signature(each.path), model=load_and_try(each.path), version=each
            )
            for each in versions
        ]
        self.names = list(dict.fromkeys(version.name for version in versions))

    def named(self, name: str) -> list[LoadedModel]:
        """Return the models of ``NAME`` or ``NAME@VERSION``."""
        model_name, _, version = name.partition("@")
        models = [loaded for loaded in self.models if loaded.version.name == model_name]
        if not models:
            raise UsageError(unknown("model", model_name, self.names))
        if not version:
            return models
        pinned = [loaded for loaded in models if loaded.version.version == version]
        if not pinned:
            versions = [loaded.version.version for loaded in models]
            raise UsageError(unknown(f"version of {model_name}", version, versions))
        return pinned

    def pick(self, name: str, query: str) -> LoadedModel:
        """Return the model that answers ``query``: always the same one for the same id."""
        models = self.named(name)
        if len(models) == 1:
            return models[0]
        return max(models, key=lambda loaded: _rendezvous_weight(loaded.version, query))

    def reload(self, on_reload: Callable[[LoadedModel], None]) -> None:
        """Check every file once; load those that were replaced."""
        for loaded in self.models:
            path = loaded.version.path
            signature = _signature(path)
            if signature == loaded.signature:
                continue
            loaded.signature = signature
            try:
                loaded.model = load_and_try(path)
            except RankwrightError as error:
                loaded.error = str(error)
            except Exception as error:  # such as a full memory; the other files are still checked
                loaded.error = f"{path} cannot be loaded: {error!r}."
            else:
                loaded.error = None
                loaded.reloads += 1
            on_reload(loaded)


def _rendezvous_weight(version: Version, query: str) -> float:
    text = f"{version.name}\0{version.version}\0{query}".encode("utf-8", "surrogatepass")
    bits = int.from_bytes(hashlib.sha256(text).digest()[:8]) >> 12
    return -version.share / math.log((bits + 0.5) / 2**52)


def load_and_try(path: Path) -> RuntimeModel:
    """Return the model of a file after scoring, ranking and explaining two documents.

    This also loads or compiles the kernels, so that the first request does not wait for them.
    """
    if path.exists() and not path.is_file():  # opening a FIFO would wait for its writer
        raise UsageError(f"{path} is not a file.")
    model = load(path)
    X = np.zeros((2, model.n_features))
    data = RankingData(X, np.zeros(2), np.array([0, 2]), np.array([None], object))
    try:
        with np.errstate(all="ignore"):
            model.scores_of(data)
            model.rank(X, top=1, group=np.zeros(2), per_group=1)
            model.rank(X)
            if can_explain(model):
                explain_list(model, data, np.zeros(2))
    except RankwrightError:
        raise
    except Exception as error:
        raise UsageError(f"the model of {path} cannot score: {error}") from error
    return model


@dataclass(frozen=True, slots=True)
class _ScoredModel:
    """The part of a fitted ranker that explanations need, with scores that are known."""

    model_: Any
    scores: F64

    def predict(self, data: RankingData) -> F64:  # noqa: ARG002
        return self.scores


def can_explain(model: RuntimeModel) -> bool:
    """Return whether the scores of a model are sums over features."""
    return hasattr(model.model, "contributions_of") or not hasattr(model.model, "scores_of")


def explain_list(model: RuntimeModel, data: RankingData, scores: F64) -> dict[int, Any]:
    """Return the explanation of each document of one query, by its row."""
    from rankwright.explanation.query import QueryView, explain_query

    ranker: Any = _ScoredModel(model.model, scores)
    view = QueryView(ranker, data)
    return dict(zip(view.order.tolist(), explain_query(view).documents, strict=True))


def _signature(path: Path) -> Signature | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_ino, stat.st_size
