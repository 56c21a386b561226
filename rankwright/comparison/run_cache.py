"""Fits that were done once are not done again: runs kept by what they depend on.

A run (one ranker on one fold) is a folder named by a digest of the fold's data, the ranker, its
parameters, what tuning may do, and the sources and libraries that compute it. It holds
``run.json``, ``scores.npz`` (test scores) and ``model.rw``, is written under a temporary name and
renamed when complete: a run that was killed leaves nothing that could be taken for one. Results of
tests over many queries, which take a while too, are small files beside them. What has not been
asked for in 90 days is dropped.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from uuid import uuid4
from zipfile import BadZipFile

import numpy as np
from scipy import sparse

import rankwright
from rankwright.core.kernel_cache import cache_root
from rankwright.core.types import F64, AnyArray
from rankwright.data.ranking_data import RankingData
from rankwright.data.split import Fold
from rankwright.data.streams import atomic_text, partial_beside
from rankwright.errors import DataError, UsageError
from rankwright.metrics.base import metric as make_metric
from rankwright.persist.model_file import holds_all, kept_parameters
from rankwright.rankers.base import Ranker

_PACKAGES = (
    "core", "data", "losses", "metrics", "models", "persist", "rankers", "solvers",
)  # fmt: skip
_FILES = (
    "registry.py",
    "comparison/compare.py",
    "comparison/tune.py",
)
_LIBRARIES = ("numpy", "scipy", "numba", "lightgbm", "scikit-learn", "torch", "optuna")
_DAMAGED = (FileNotFoundError, ValueError, KeyError, EOFError, BadZipFile)
_KEEP_SECONDS = 90 * 86_400
_ABOUT, _SCORES, _MODEL, _TEST = "run.json", "scores.npz", "model.rw", ".test.json"


@dataclass(frozen=True)
class StoredRun:
    """What the cache holds of one ranker on one fold."""

    about: Mapping[str, Any]
    scores: F64
    model: Path


class RunCache:
    """Runs in a folder; several processes may use it at once."""

    def __init__(self, folder: str | Path | None = None) -> None:
        self.folder = default_folder() if folder is None else Path(folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(
                f"the cache folder {self.folder} cannot be made: {error.strerror}; name another "
                "with --cache."
            ) from None

    def find(self, key: str) -> StoredRun | None:
        """Return a run, or None; one that cannot be read is dropped, to be run again."""
        folder = self.folder / key
        if not (folder / _ABOUT).is_file():
            return None
        try:
            about = json.loads((folder / _ABOUT).read_text(encoding="utf-8"))
            with np.load(folder / _SCORES, allow_pickle=False) as arrays:
                scores = np.asarray(arrays["scores"], np.float64)
            if (folder / _MODEL).stat().st_size != about["size"]:
                raise ValueError("the model file is not whole")
        except _DAMAGED:
            shutil.rmtree(folder, ignore_errors=True)
            return None
        _touch(folder)
        return StoredRun(about, scores, folder / _MODEL)

    def store(self, key: str, ranker: Ranker, scores: F64, about: Mapping[str, Any]) -> None:
        """Keep a run: it is there whole, or not at all."""
        try:
            with partial_beside(self.folder / key, folder=True) as partial:
                ranker.save(partial / _MODEL)
                np.savez(partial / _SCORES, scores=scores)
                described = {**about, "size": (partial / _MODEL).stat().st_size}
                text = json.dumps(described, default=_plain)
                (partial / _ABOUT).write_text(text, encoding="utf-8")
                os.rename(partial, self.folder / key)
        except OSError as error:
            if not (self.folder / key / _ABOUT).is_file():  # else another process was first
                raise DataError(
                    f"the cache folder {self.folder} cannot be written: {error.strerror}; name "
                    "another with --cache."
                ) from None

    def test(self, name: str, compute: Callable[..., Any], *values: F64, seed: int) -> list[float]:
        """Return ``compute(*values, seed=seed)``, some numbers, from the file of an earlier call.

        ``name`` says which numbers of which test these are.
        """
        digest = hashlib.blake2b(f"{source_digest()} {name} {seed}".encode(), digest_size=32)
        for array in values:
            digest.update(_bytes(array))
        path = self.folder / f"{digest.hexdigest()}{_TEST}"
        try:
            found: list[float] = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            found = list(compute(*values, seed=seed))
            with atomic_text(path) as stream:
                stream.write(json.dumps(found))
        else:
            _touch(path)
        return found

    def drop_old(self) -> None:
        """Remove what has not been asked for in a long time, and what killed runs left."""
        now = time.time()
        for path in self.folder.iterdir():
            partial = path.name.startswith(".") and path.name.endswith(".partial")
            ours = partial or path.name.endswith(_TEST) or (path / _ABOUT).is_file()
            try:
                age = now - path.stat().st_mtime
            except FileNotFoundError:  # another process has renamed or dropped it
                continue
            if not ours or age <= _KEEP_SECONDS:
                continue
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def default_folder() -> Path:
    """Return the folder beside the compiled kernels; ``RANKWRIGHT_CACHE`` moves both."""
    return cache_root() / "runs"


def run_key(data: str, ranker: Ranker, search: Mapping[str, Any] | None) -> str:
    """Return the name of a run.

    Of a ranker with a function, a part that belongs to no package or a seed that is not fixed the
    content cannot be determined; such a run has a name of its own each time, and is made again.

    Parameters
    ----------
    data
        Digest of the fold, of `fold_digest`.
    ranker
        With all its parameters; numbers of threads do not count.
    search
        What tuning may do; None without.
    """
    parameters = kept_parameters(ranker)
    content = {
        "sources": source_digest(),
        "plugins": _plugin_digests(ranker),
        "data": data,
        "ranker": ranker.name,
        "parameters": parameters,
        "search": search,
    }
    if not holds_all(parameters) or parameters.get("random_state", 0) is None:
        content["once"] = uuid4().hex
    text = json.dumps(content, sort_keys=True, default=_plain)
    return hashlib.sha256(text.encode()).hexdigest()


def _plugin_digests(ranker: Ranker) -> dict[str, str]:
    """Return a digest of the file of each class that is not ours, whose changes are not ours."""
    parts: list[Any] = [ranker, ranker.make_model(), ranker._part_of("solver")]
    parts.append(ranker.make_loss() if ranker.has_loss else None)
    parts.append(make_metric(ranker.metric, convention=ranker.convention))
    parts.append(make_metric(ranker.selection_metric, convention=ranker.convention))
    found = {}
    for kind in {type(part) for part in parts if part is not None}:
        file = getattr(sys.modules.get(kind.__module__), "__file__", None)
        if not kind.__module__.startswith("rankwright.") and file is not None:
            digest = hashlib.sha256(Path(file).read_bytes()).hexdigest()
            found[f"{kind.__module__}:{kind.__qualname__}"] = digest
    return found


def fold_digest(fold: Fold) -> str:
    """Return a digest of all that a run may depend on, the order of rows included."""
    digest = hashlib.blake2b(digest_size=32)
    for part in fold:
        digest.update(b"none" if part is None else _data_digest(part))
    return digest.hexdigest()


def _data_digest(data: RankingData) -> bytes:
    digest = hashlib.blake2b(digest_size=32)
    X = data.X
    features = (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,)
    optional = data.query_weight, data.sample_weight, data.group, data.position
    for array in (*features, data.y, data.indptr, data.qid, *optional):
        digest.update(b"none" if array is None else _bytes(array))
    digest.update(repr((X.shape, str(X.dtype), data.feature_names)).encode())
    if data.categories:
        digest.update(repr(dict(data.categories)).encode())
    return digest.digest()


def _bytes(array: AnyArray) -> Any:
    if array.dtype.kind in "biufc":
        return np.ascontiguousarray(array).view(np.uint8).data if array.size else b""
    return "\x1f".join(map(repr, array.tolist())).encode()


@cache
def source_digest() -> str:
    """Return a digest of the sources and libraries that decide results."""
    versions = {"rankwright": rankwright.__version__, **_versions()}
    digest = hashlib.sha256(json.dumps(versions, sort_keys=True).encode())
    root = Path(rankwright.__file__).parent
    own = [path for package in _PACKAGES for path in sorted((root / package).rglob("*.py"))]
    for path in (*own, *(root / name for name in _FILES)):
        digest.update(path.relative_to(root).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _versions() -> dict[str, str]:
    found = {}
    for name in _LIBRARIES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _touch(path: Path) -> None:
    """Note that ``path`` was of use, where the folder may be written to."""
    with suppress(OSError):
        os.utime(path)


def _plain(value: Any) -> Any:
    """Return NumPy's numbers and arrays as JSON holds them."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise UsageError(f"a parameter is {type(value).__name__}, which a comparison cannot keep.")
