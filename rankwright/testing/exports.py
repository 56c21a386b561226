"""Checks that every export passes: `check_export` runs them, `export_checks` lists them.

Small linear, additive, tree and network models and a blend are written and read again if the target
supports them. Other models must be refused with one sentence, and nothing may be written.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rankwright.core.parameters import resolve_part
from rankwright.errors import ContractError, UsageError
from rankwright.export.folder import ABOUT, PARITY, export_model, verify_export
from rankwright.export.target import ParityError
from rankwright.rankers.base import Ranker, ranker
from rankwright.testing.contract import Check, require, run_checks
from rankwright.testing.models import small_data

_FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "linear": ("ranksvm", {}),
    "additive": ("rankboost", {"n_rounds": 10}),
    "trees": ("gbdt", {"n_estimators": 8, "num_leaves": 5}),
    "network": ("ranknet", {"activation": "sigmoid", "epochs": 3}),
    "blend": ("blend", {"members": ("ranksvm", "gbdt"), "weights": (0.6, 0.4), "folds": 2}),
}
_LEAST_VECTORS = 50
_LARGEST = {"float32": 1e-5, "float64": 1e-9}


def check_export(export: Any) -> None:
    """Raise `ContractError` if ``export`` fails a check of exports.

    Parameters
    ----------
    export : Target or str
        An object of a subclass of `rankwright.export.target.Target`, or a name of
        ``rankwright list exports``.

    Examples
    --------
    >>> from rankwright.testing import check_export
    >>> check_export("json")
    """
    target = resolve_part("exports", export)
    run_checks(f"export '{target.name}'", target, export_checks(target))


def export_checks(export: Any) -> list[Check]:  # noqa: ARG001
    """Return the checks that ``export`` must pass.

    Returns
    -------
    list of callables
        Each takes the target and raises an error if the target fails.

    Examples
    --------
    >>> from rankwright.testing import export_checks
    >>> [check.__name__ for check in export_checks("json")][0]
    'check_families'
    """
    return [check_families, check_scores, check_same_bytes, check_altered_files, check_replay]


@cache
def fitted_ranker(family: str, seed: int = 0) -> Ranker:
    """Return a small fitted ranker of a family of models."""
    name, params = _FAMILIES[family]
    return ranker(name, **params).fit(small_data(seed))


def held_families(target: Any) -> list[str]:
    """Return the families that the target supports; networks only if torch is installed."""
    return [
        family
        for family in _FAMILIES
        if family in target.families and (family != "network" or find_spec("torch"))
    ]


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="rankwright-export-") as path:
        yield Path(path)


# --- properties ----------------------------------------------------------------------------------


def check_families(target: Any) -> None:
    """Unsupported models are refused with one sentence, and nothing is written."""
    families = set(_FAMILIES)
    require(
        set(target.families) <= families, f"families must be among {', '.join(sorted(families))}."
    )
    require(target.families, "it supports no family of models.")
    require(target.evaluator, "it does not name the evaluator of the export.")
    for family in sorted(families - set(target.families) - {"network"}):
        with _folder() as folder:
            refuse_unheld(target, fitted_ranker(family), folder / "out")


def refuse_unheld(target: Any, fitted: Ranker, folder: Path) -> None:
    """Raise `ContractError` unless the target refuses a ranker and writes nothing."""
    try:
        export_model(fitted, target, folder)
    except UsageError as error:
        require(str(error).endswith("."), f"'{error}' is not a sentence.")
    else:
        raise ContractError(f"{fitted.name} on {fitted.model_name} is not refused.")
    require(not list(folder.parent.iterdir()), "something was written.")


def check_scores(target: Any) -> None:
    """An independent evaluator of the export computes the scores of the model."""
    for family in held_families(target):
        with _folder() as folder:
            verify_written(target, fitted_ranker(family), folder / "out")


def verify_written(target: Any, fitted: Ranker, folder: Path) -> dict[str, Any]:
    """Write a ranker, replay its parity vectors and return the contents of ``export.json``."""
    about = export_model(fitted, target, folder)
    require(about["format"] == target.name, "export.json names another format.")
    result = verify_export(folder, target)
    count = about["parity"]["vectors"]
    require(result.vectors == count > _LEAST_VECTORS, f"only {count} vectors were written.")
    require(
        result.largest_difference < _LARGEST[about["precision"]["numbers"]],
        f"a score differs by {result.largest_difference:.3g} from the score of the model.",
    )
    kinds = about["parity"]["kinds"]
    require({"random", "extreme"} <= kinds.keys(), "vectors of a kind are missing.")
    if any(feature["may_be_missing"] for feature in about["features"]):
        require(kinds.get("missing", 0) > 0, "no vector has a missing value.")
    return about


def check_same_bytes(target: Any) -> None:
    """The same model gives the same bytes."""
    for family in held_families(target):
        with _folder() as folder:
            write_twice(target, fitted_ranker(family), folder)


def write_twice(target: Any, fitted: Ranker, folder: Path) -> None:
    """Raise `ContractError` unless two exports of a ranker are equal."""
    for name in ("a", "b"):
        export_model(fitted, target, folder / name)
    for path in (folder / "a").iterdir():
        same = path.read_bytes() == (folder / "b" / path.name).read_bytes()
        require(same, f"{path.name} differs between two exports.")


def check_altered_files(target: Any) -> None:
    """An altered file is detected by its digest."""
    with _folder() as folder:
        alter_each(target, fitted_ranker(held_families(target)[0]), folder / "out")


def alter_each(target: Any, fitted: Ranker, folder: Path) -> None:
    """Raise `ContractError` unless a change in any file of an export is detected."""
    export_model(fitted, target, folder)
    for path in folder.iterdir():
        before = path.read_bytes()
        path.write_bytes(before.replace(b"1", b"2"))
        try:
            verify_export(folder, target)
        except ParityError:
            path.write_bytes(before)
        else:
            raise ContractError(f"an altered {path.name} passes.")
    verify_export(folder, target)


def check_replay(target: Any) -> None:
    """The replay of the parity vectors detects another model."""
    family = held_families(target)[0]
    with _folder() as folder:
        swap_models(target, fitted_ranker(family), fitted_ranker(family, seed=1), folder)


def swap_models(target: Any, first: Ranker, other: Ranker, folder: Path) -> None:
    """Raise `ContractError` unless the vectors of one model fail for another."""
    export_model(first, target, folder / "first")
    export_model(other, target, folder / "other")
    (folder / "other" / PARITY).write_bytes((folder / "first" / PARITY).read_bytes())
    reseal(folder / "other")
    try:
        verify_export(folder / "other", target)
    except ParityError as error:
        require("vectors score differently" in str(error), f"it is refused for: {error}")
    else:
        raise ContractError("the evaluator does not read the files of the export.")


def reseal(folder: Path) -> None:
    """Update the digests in export.json, as a careful forger would."""
    about = json.loads((folder / ABOUT).read_text())
    for name in about["files"]:
        about["files"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    (folder / ABOUT).write_text(json.dumps(about))
