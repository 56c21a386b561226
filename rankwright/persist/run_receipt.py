"""What makes two fits the same run: ranker, parameters, data and versions, as a receipt.

A checkpoint goes on with a run whose receipt is the one it holds, and says what differs otherwise.
A parameter that is a function counts by its name.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from rankwright import __version__
from rankwright.core.types import FittedModel
from rankwright.data.categories import as_json
from rankwright.data.content import row_codes
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError
from rankwright.models.tree_memory import plan_bins
from rankwright.persist.model_file import kept_parameters

if TYPE_CHECKING:
    from rankwright.rankers.base import Ranker

_LIBRARIES = ("numpy", "scipy", "numba", "scikit-learn", "lightgbm", "torch")


def run_receipt(
    ranker: Ranker,
    data: RankingData | str,
    valid: RankingData | str | None,
    start: FittedModel | None,
) -> dict[str, Any]:
    """Return what makes two fits the same: their ranker, parameters, data and versions.

    Data that are not in this process stand as their digest.
    """
    receipt = {
        "rankwright": __version__,
        "libraries": _versions(),
        "ranker": ranker.name,
        "parameters": kept_parameters(ranker),
        "training data": digest_in_order(data, ranker.n_jobs),
        "valid data": None if valid is None else digest_in_order(valid, ranker.n_jobs),
        "start": None if start is None else _digest_of_model(start),
        "sample": _sample_of_thresholds(ranker, data),
    }
    as_read: dict[str, Any] = json.loads(json.dumps(receipt, default=repr))
    return as_read


def _sample_of_thresholds(ranker: Ranker, data: RankingData | str) -> int | None:
    """Return how many documents a bound on memory leaves for the thresholds of trees."""
    if isinstance(data, str) or ranker.model_name not in ("trees", "forest"):
        return None
    bins: int = ranker._part_of("model").max_bins
    sample = plan_bins(data.n_documents, data.n_features, bins, data.X.dtype.itemsize).sample
    return sample if sample < data.n_documents else None


def _versions() -> dict[str, str]:
    found = {}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def digest_in_order(data: RankingData | str, n_jobs: int | None) -> str:
    """Return a digest of the data, the order of its rows and the names of its queries included."""
    if isinstance(data, str):
        return data
    kind = "sparse" if sparse.issparse(data.X) else "dense"  # sums may differ in their last bits
    digest = hashlib.sha256(f"{kind} {data.n_documents} x {data.n_features}".encode())
    group = None if data.group is None else data.group_shares()
    columns = (row_codes(data, n_jobs=n_jobs), data.indptr, group)
    for column in (*columns, data.sample_weight, data.query_weight):
        digest.update(b"-" if column is None else np.ascontiguousarray(column).tobytes())
    names: list[Any] = [data.qid.tolist(), data.feature_names]
    if data.categories:
        names.append(as_json(data.categories))
    digest.update(json.dumps(names, default=str).encode())
    return digest.hexdigest()


def _digest_of_model(model: FittedModel) -> str:
    digest = hashlib.sha256()
    for name, array in sorted(model.arrays().items()):
        digest.update(name.encode() + np.ascontiguousarray(array).tobytes())
    for name, text in sorted(model.texts().items()):
        digest.update(f"{name} {text}".encode())
    return digest.hexdigest()


def read_receipt(path: Path) -> dict[str, Any]:
    """Return the receipt that a checkpoint holds."""
    try:
        receipt = json.loads(path.read_bytes())
    except (OSError, ValueError):
        receipt = None
    if not isinstance(receipt, dict):
        raise DataError(f"{path} cannot be read; choose another folder for the checkpoint.")
    return receipt


def check_same(folder: Path, there: Mapping[str, Any], here: Mapping[str, Any]) -> None:
    """Refuse to go on with another run, and say what differs first."""
    for name in ("ranker", "parameters", "training data", "valid data", "start", "sample"):
        if there.get(name) != here.get(name):
            what = _difference(name, there.get(name), here.get(name))
            raise UsageError(
                f"{folder} holds the checkpoint of another run: {what}; "
                "run it as before, or choose another folder."
            )
    made = {"rankwright": there.get("rankwright"), **_as_dict(there.get("libraries"))}
    now = {"rankwright": here["rankwright"], **here["libraries"]}
    for name in sorted(made.keys() | now.keys()):
        if made.get(name) != now.get(name):
            raise UsageError(
                f"{folder} was written with {name} {made.get(name)}, this is {now.get(name)}; "
                "only the same versions can resume it. Choose another folder."
            )


def _difference(name: str, there: Any, here: Any) -> str:
    if name == "parameters":
        before, now = _as_dict(there), _as_dict(here)
        differ = sorted(k for k in before.keys() | now.keys() if before.get(k) != now.get(k))
        return ", ".join(f"{k} was {before.get(k)!r} and is {now.get(k)!r}" for k in differ[:3])
    if name == "ranker":
        return f"the ranker was {there} and is {here}"
    if name == "sample":
        had, has = ("all" if count is None else f"{count:,}" for count in (there, here))
        return f"thresholds came from {had} documents and come from {has}, as --memory has it"
    if there is None or here is None:
        had, has = ("none" if digest is None else "given" for digest in (there, here))
        return f"the {name} was {had} and is {has}"
    return f"the {name} is not the same"


def _as_dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
