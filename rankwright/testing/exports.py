"""What every export promises: `check_export` runs it on any, `export_checks` lists the properties.

Small linear, additive, tree and network models, and a blend, are written and read again, as far as
the target says that it holds them; the others must be refused by a sentence, with nothing written.
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

_MADE: dict[str, tuple[str, dict[str, Any]]] = {
    "linear": ("ranksvm", {}),
    "additive": ("rankboost", {"n_rounds": 10}),
    "trees": ("gbdt", {"n_estimators": 8, "num_leaves": 5}),
    "network": ("ranknet", {"activation": "sigmoid", "epochs": 3}),
    "blend": ("blend", {"members": ("ranksvm", "gbdt"), "weights": (0.6, 0.4), "folds": 2}),
}
_LEAST_VECTORS = 50
_LARGEST = {"float32": 1e-5, "float64": 1e-9}


def check_export(export: Any) -> None:
    """Raise `ContractError` unless ``export`` keeps what every export promises.

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
    """Return the properties that ``export`` must have.

    Returns
    -------
    list of callables
        Each takes the target, and raises where the property does not hold.

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
    name, params = _MADE[family]
    return ranker(name, **params).fit(small_data(seed))


def held_families(target: Any) -> list[str]:
    """Return the families that the target holds; networks only where torch can fit one."""
    return [
        family
        for family in _MADE
        if family in target.families and (family != "network" or find_spec("torch"))
    ]


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="rankwright-export-") as made:
        yield Path(made)


# --- properties ----------------------------------------------------------------------------------


def check_families(target: Any) -> None:
    """Models that the target does not hold are refused by a sentence, and nothing is written."""
    known = set(_MADE)
    require(set(target.families) <= known, f"families must be among {', '.join(sorted(known))}.")
    require(target.families, "it holds no family of models.")
    require(target.evaluator, "it does not say who reads the export again.")
    for family in sorted(known - set(target.families) - {"network"}):
        with _folder() as folder:
            refuse_unheld(target, fitted_ranker(family), folder / "out")


def refuse_unheld(target: Any, given: Ranker, folder: Path) -> None:
    """Raise `ContractError` unless the target refuses a ranker, and writes nothing."""
    try:
        export_model(given, target, folder)
    except UsageError as sentence:
        require(str(sentence).endswith("."), f"'{sentence}' is no sentence.")
    else:
        raise ContractError(f"{given.name} on {given.model_name} is not refused.")
    require(not list(folder.parent.iterdir()), "something was written.")


def check_scores(target: Any) -> None:
    """The export scores as the model does, by an evaluator of its own."""
    for family in held_families(target):
        with _folder() as folder:
            verify_written(target, fitted_ranker(family), folder / "out")


def verify_written(target: Any, given: Ranker, folder: Path) -> dict[str, Any]:
    """Write a ranker and replay its vectors; return what ``export.json`` holds."""
    about = export_model(given, target, folder)
    require(about["format"] == target.name, "export.json names another format.")
    found = verify_export(folder, target)
    count = about["parity"]["vectors"]
    require(found.vectors == count > _LEAST_VECTORS, f"only {count} vectors were made.")
    most = _LARGEST[about["precision"]["numbers"]]
    require(
        found.largest_difference < most,
        f"a score differs by {found.largest_difference:.3g} from that of the model.",
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


def write_twice(target: Any, given: Ranker, folder: Path) -> None:
    """Raise `ContractError` unless two exports of a ranker are equal."""
    for name in ("a", "b"):
        export_model(given, target, folder / name)
    for path in (folder / "a").iterdir():
        same = path.read_bytes() == (folder / "b" / path.name).read_bytes()
        require(same, f"{path.name} differs from one export to the next.")


def check_altered_files(target: Any) -> None:
    """An altered file is found by its digest."""
    with _folder() as folder:
        alter_each(target, fitted_ranker(held_families(target)[0]), folder / "out")


def alter_each(target: Any, given: Ranker, folder: Path) -> None:
    """Raise `ContractError` unless a change in any file of an export is found."""
    export_model(given, target, folder)
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
    """Scores of another model are found by the replay of the vectors."""
    family = held_families(target)[0]
    with _folder() as folder:
        swap_models(target, fitted_ranker(family), fitted_ranker(family, seed=1), folder)


def swap_models(target: Any, one: Ranker, other: Ranker, folder: Path) -> None:
    """Raise `ContractError` unless another model's export fails under this one's vectors."""
    export_model(one, target, folder / "one")
    export_model(other, target, folder / "other")
    (folder / "other" / PARITY).write_bytes((folder / "one" / PARITY).read_bytes())
    reseal(folder / "other")
    try:
        verify_export(folder / "other", target)
    except ParityError as error:
        require("vectors score differently" in str(error), f"it is refused for: {error}")
    else:
        raise ContractError("the evaluator does not read what was written.")


def reseal(folder: Path) -> None:
    """Let the digests of export.json agree with the files, as a careful forger would."""
    about = json.loads((folder / ABOUT).read_text())
    for name in about["files"]:
        about["files"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    (folder / ABOUT).write_text(json.dumps(about))
