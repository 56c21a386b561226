"""The models being served: which version answers a query, and the change to a replaced file.

A version is chosen by weighted rendezvous hashing (Schindelhauer and Schomaker, 2005): of all
versions of a name, the one with the largest ``-share / log(u)`` answers, u in (0, 1) being a hash
of name, version and query's id. So a query gets the same version each time, on every server with
the same shares, and changes only to a version whose share grew in proportion to that of its
own. In particular a version that alone grows keeps all its queries.

A file that was replaced is loaded and tried aside; then one assignment puts it in place, and
requests under way end with the model they began with. A file that cannot be used changes nothing
but `LoadedModel.error`.
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
_UNUSABLE = "the file was replaced by one that cannot be used; the server's log says why."


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
        """Which model this is, and whether its file could be used, as JSON holds it.

        Anyone may read this: what is wrong with the file, and where it lies, only the log says.
        """
        return {
            "name": self.version.name,
            "version": self.version.version,
            "reloads": self.reloads,
            "reload_fault": None if self.error is None else _UNUSABLE,
        }

    @property
    def about(self) -> dict[str, Any]:
        """What is served here, as JSON holds it."""
        model = self.model
        return {
            **self.state,
            "share": self.version.share,
            "ranker": model.ranker,
            "n_features": model.n_features,
            "feature_names": None if model.feature_names is None else list(model.feature_names),
            "categories": {
                name: list(own.values) for name, own in (model.categories or {}).items()
            },
            "data": model.receipt.get("data"),
        }


class ModelStore:
    """The models of all names; made once, at the start of the server, from files that load."""

    def __init__(self, versions: Sequence[Version]) -> None:
        self.models = [_load(own) for own in versions]
        self.names = list(dict.fromkeys(own.name for own in versions))

    def named(self, name: str) -> list[LoadedModel]:
        """Return the models that ``NAME`` or ``NAME@VERSION`` stands for."""
        own, _, version = name.partition("@")
        found = [loaded for loaded in self.models if loaded.version.name == own]
        if not found:
            raise UsageError(unknown("model", own, self.names))
        if not version:
            return found
        pinned = [loaded for loaded in found if loaded.version.version == version]
        if not pinned:
            known = [loaded.version.version for loaded in found]
            raise UsageError(unknown(f"version of {own}", version, known))
        return pinned

    def pick(self, name: str, query: str) -> LoadedModel:
        """Return the model that answers ``query``: always the same one for the same id."""
        found = self.named(name)
        return found[0] if len(found) == 1 else max(found, key=lambda own: _claim(own, query))

    def reload(self, on_reload: Callable[[LoadedModel], None]) -> None:
        """Check every file once, and serve those that were replaced and can be used."""
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
            except Exception as error:  # memory, a disk: the other files are checked all the same
                loaded.error = f"{path} cannot be loaded: {error!r}."
            else:
                loaded.error = None
                loaded.reloads += 1
            on_reload(loaded)


def _load(own: Version) -> LoadedModel:
    signature = _signature(own.path)  # before it is read: what replaces it meanwhile is seen later
    return LoadedModel(own, load_and_try(own.path), signature)


def _claim(loaded: LoadedModel, query: str) -> float:
    """Return the weight by which a version claims a query, as the docstring above defines it."""
    own = loaded.version
    text = f"{own.name}\0{own.version}\0{query}".encode("utf-8", "surrogatepass")
    bits = int.from_bytes(hashlib.sha256(text).digest()[:8]) >> 12
    return -own.share / math.log((bits + 0.5) / 2**52)


def load_and_try(path: Path) -> RuntimeModel:
    """Return the model of a file that loads and scores; this also readies its kernels."""
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
