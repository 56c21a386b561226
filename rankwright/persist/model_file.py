"""Save a fitted ranker and load it again: the same scores to the last bit.

The receipt holds the ranker's name and parameters, the versions that made it, a digest of the
training data, the convention, the feature names and the learning curves; no times, paths or
thread counts, so that the same seed and data give the same bytes. Of a parameter that is a function
it holds the name, for information: loading imports nothing that a file names, and prediction needs
no loss. A loaded ranker has an `Absent` part there, and is fitted again once it is replaced.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib.metadata import version
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import is_zipfile

import numpy as np
from safetensors.numpy import save as save_arrays

from rankwright import __version__, registry
from rankwright.core.parameters import params_of, part_name
from rankwright.core.types import F64
from rankwright.data.frames import categories_from_json, categories_to_json
from rankwright.errors import PluginError, UsageError
from rankwright.metrics.base import Metric
from rankwright.persist.container import ModelFileError, read_parts, write_parts
from rankwright.persist.other_libraries import as_ranker, read_other
from rankwright.persist.runtime import (
    PART_ERRORS,
    check_packages,
    checked_shape,
    family_of,
    fitted_model,
)

if TYPE_CHECKING:
    from rankwright.rankers.base import Ranker


_LIBRARIES = ("numpy", "scipy", "lightgbm")
NOT_KEPT = {"n_jobs", "verbose"}
_FLOAT, _FUNCTION, _PART = "float", "function", "part"
_PARTS = {"loss": "losses", "model": "models", "solver": "solvers"}


@dataclass(frozen=True, slots=True, repr=False)
class Absent:
    """A function or part that the ranker was saved with and a file does not hold, by its name.

    Prediction does without; fitting says that it is not there.
    """

    name: str

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ARG002
        """Refuse: the function is not there."""
        raise self._error()

    @property
    def traits(self) -> Any:
        """Refuse: the loss is not there."""
        raise self._error()

    bind = fit = solve = __call__

    def __repr__(self) -> str:
        return f"<{self.name}, not in the file>"

    def _error(self) -> UsageError:
        return UsageError(
            f"this ranker was saved with {self.name}, which a model file does not hold and no "
            "installed package announces; it predicts without. To fit it, give it again with "
            "set_params."
        )


def save_model(ranker: Ranker, path: str | Path) -> None:
    """Write a fitted ranker to a model file."""
    model = ranker._fitted()
    packages = {}
    for kind, part in (("rankers", ranker), ("models", ranker._part_of("model"))):
        what = registry.singular(kind)
        name = registry.name_of(kind, type(part))
        if name is None:
            raise UsageError(
                f"{type(part).__name__} has no registered name, by which a file could find it "
                f"again; announce it as an entry point of the group rankwright.{kind}, or save "
                f"what was fitted in your own way. ({what}s of Rankwright itself have one.)"
            )
        if (package := registry.package_of(kind, name)) is not None:
            packages[what] = package
    names = getattr(ranker, "feature_names_in_", None)
    deviation = getattr(ranker, "feature_deviation_", None)
    categories = getattr(ranker, "categories_", None)
    receipt = {
        "rankwright": __version__,
        "libraries": {name: version(name) for name in _LIBRARIES},
        "ranker": ranker.name,
        "model": ranker.model_name,
        "parameters": kept_parameters(ranker),
        "data": ranker.data_digest_,
        "convention": ranker.convention,
        "n_features": ranker.n_features_in_,
        "feature_names": None if names is None else list(names),
        **({} if deviation is None else {"feature_deviation": plain(deviation)}),
        "best_iteration": ranker.best_iteration_,
        "curve": plain(ranker.curve_),
        **({"packages": packages} if packages else {}),
        **({"categories": categories_to_json(categories)} if categories else {}),
    }
    arrays = {name: np.ascontiguousarray(array) for name, array in model.arrays().items()}
    parts = {f"{name}.txt": text.encode() for name, text in model.texts().items()}
    write_parts(path, receipt, {**parts, "arrays.safetensors": save_arrays(arrays)})


def load_model(path: str | Path) -> Ranker:
    """Read a model file; the ranker scores as the saved one did.

    A model of LightGBM (text), XGBoost (JSON or UBJSON) or CatBoost (JSON) is read as a fitted
    ranker that scores as that library does; see `import_model`.
    """
    other = None if is_zipfile(path) else read_other(path)
    if other is not None:
        return as_ranker(other)
    receipt, parts = read_parts(path)
    check_packages(path, receipt)
    try:
        ranker = _ranker_of(receipt)
        ranker.n_features_in_, names = checked_shape(receipt)
        held = receipt.get("categories")
        categories = categories_from_json(held, names) if held else None
        family = family_of(receipt)
        ranker.model_ = fitted_model(family, parts, ranker.n_features_in_)
        if ranker.model_name != family:
            raise UsageError(f"a ranker of model '{ranker.model_name}', a model '{family}'.")
        ranker.best_iteration_, ranker.data_digest_, ranker.curve_ = _fit_record(receipt)
        if "feature_deviation" in receipt:
            ranker.feature_deviation_ = _deviation(receipt["feature_deviation"], ranker)
    except PART_ERRORS as error:
        raise ModelFileError(f"{path} does not hold what its receipt says: {error}") from None
    if names is not None:
        ranker.feature_names_in_ = np.array(names, object)
    if categories is not None:
        ranker.categories_ = categories
    return ranker


def _fit_record(receipt: dict[str, Any]) -> tuple[int, str, dict[str, list[float]]]:
    """Return the best iteration, the digest of the data and the learning curves."""
    best, data = receipt["best_iteration"], receipt["data"]
    curve = {name: list(restored(values)) for name, values in receipt["curve"].items()}
    if type(best) is not int or best < 0 or not isinstance(data, str):
        raise UsageError("its best iteration is no number from 0, or the digest of its data none.")
    if any(type(value) not in (int, float) for values in curve.values() for value in values):
        raise UsageError("its learning curves are no numbers.")
    return best, data, curve


def _deviation(held: Any, ranker: Ranker) -> F64:
    """Return the standard deviations of the features, which feature importances are made of."""
    deviation = np.array(restored(held), np.float64)
    if deviation.shape != (ranker.n_features_in_,):
        raise UsageError(f"{deviation.size} deviations for {ranker.n_features_in_} features.")
    return deviation


def _ranker_of(receipt: dict[str, Any]) -> Ranker:
    parameters = restored(receipt["parameters"])
    name = receipt["ranker"]
    if receipt["format"] == 1:
        name, parameters = migrated(name, parameters)
    ranker: Ranker = registry.resolve("rankers", name)(**parameters)
    return ranker


def kept_parameters(ranker: Ranker) -> dict[str, Any]:
    """Return the parameters that decide on a fit, as JSON holds them."""
    found = {}
    for name, value in ranker.get_params(deep=False).items():
        if name not in NOT_KEPT:
            part = name in _PARTS and value is not None
            found[name] = _plain_part(_PARTS[name], value) if part else plain(value)
    return found


def _plain_part(kind: str, part: Any) -> Any:
    """Return a part as its registered name and parameters; those of plug-ins with their package.

    A part that was given by its name is that name; a plug-in's has no parameters then.
    """
    known = part if isinstance(part, str) else registry.name_of(kind, type(part))
    if known is None:
        shown = part.name if isinstance(part, Absent) else _named(kind, part)
        return {_FUNCTION: shown}
    package = registry.package_of(kind, known)
    if isinstance(part, str):
        held = {"kind": kind, "name": known, "package": package}
        return part if package is None else {_PART: held}
    held = {"kind": kind, "name": known, "params": plain(params_of(part))}
    return {_PART: held if package is None else {**held, "package": package}}


def _plain_ranker(ranker: Ranker) -> Any:
    """Return a ranker as its registered name and parameters; a plug-in's with its package."""
    name = registry.name_of("rankers", type(ranker))
    if name is None:
        return {_FUNCTION: f"the ranker {type(ranker).__name__}"}
    package = registry.package_of("rankers", name)
    held = {"kind": "rankers", "name": name, "params": kept_parameters(ranker)}
    return {_PART: held if package is None else {**held, "package": package}}


def _named(kind: str, part: Any) -> str:
    """Return what to call a part that no registry knows."""
    own = getattr(part, "name", None)
    return f"the {registry.singular(kind)} {own or part_name(kind, part)}"


def plain(value: Any) -> Any:
    """Return a parameter as JSON holds it.

    Numbers that are not finite, metrics and functions become their names; a generator of random
    numbers, whose state is not the file's to keep, becomes null.
    """
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(item) for item in value]
    if hasattr(value, "make_model"):  # a ranker, as the members of a blend are
        return _plain_ranker(value)
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return {_FLOAT: repr(value)}
    if isinstance(value, Metric) and registry.name_of("metrics", type(value)) is not None:
        return repr(value)
    if isinstance(value, np.random.Generator | np.random.RandomState):
        return None
    if callable(value) or isinstance(value, Metric):
        return {_FUNCTION: _name_of(value)}
    return value


def holds_all(value: Any) -> bool:
    """Whether nothing in a parameter, as JSON holds it, is only the name of something absent."""
    if isinstance(value, dict):
        return set(value) != {_FUNCTION} and all(map(holds_all, value.values()))
    return not isinstance(value, list) or all(map(holds_all, value))


def _name_of(function: Any) -> str:
    if isinstance(function, Absent):
        return function.name
    if isinstance(function, Metric):
        return f"the metric {function!r}"
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"the function {named.__module__}.{named.__qualname__}"


def restored(value: Any) -> Any:
    """Return a parameter from what JSON holds; nothing that it names is imported by its path."""
    if isinstance(value, list):
        return tuple(restored(item) for item in value)
    if isinstance(value, dict):
        if set(value) == {_FLOAT}:
            return float(value[_FLOAT])
        if set(value) == {_FUNCTION}:
            return Absent(str(value[_FUNCTION]))
        if set(value) == {_PART}:
            return _restored_part(value[_PART])
        return {key: restored(item) for key, item in value.items()}
    return value


def _restored_part(held: dict[str, Any]) -> Any:
    kind, name = str(held["kind"]), str(held["name"])
    if kind not in (*_PARTS.values(), "rankers"):
        raise UsageError(f"a part of the kind {kind!r}.")
    package = f" of the package {held['package']}" if "package" in held else ""
    absent = Absent(f"the {registry.singular(kind)} {name}{package}")
    if not registry.is_known(kind, name):
        return absent
    if "params" not in held:
        return name
    try:
        made = registry.resolve(kind, name)
    except PluginError:  # predicting does without
        return absent
    return made(**restored(held["params"]))


# --- files of earlier versions -----------------------------------------------------------------
# Parameters of files of version 0.1, under the names and in the parts of today. There a ranker had
# the parameters of all its models side by side, None for the model's own default, and the name of
# the model among them.


RENAMED = {
    "batch_documents": "batch_size",
    "categorical": "categorical_feature",
    "early_stopping": "early_stopping_rounds",
    "feature_fraction": "colsample_bytree",
    "hidden": "hidden_layer_sizes",
    "max_iterations": "max_iter",
    "min_curvature": "min_child_weight",
    "min_documents": "min_child_samples",
    "monotone": "monotone_constraints",
    "n_trees": "n_estimators",
    "row_fraction": "subsample",
    "seed": "random_state",
    "tolerance": "tol",
}
_TREES = {"l2": "reg_lambda", "l1": "reg_alpha"}
_INTERVAL = {"solver": "qp_solver"}
_TREES_THEN = {"learning_rate": 0.1, "colsample_bytree": 1.0}
_LEAVES_THEN = {"gbdt": 15, "xendcg": 7}
"""Defaults of 0.1 for what is "auto" today; 31 leaves otherwise."""


def migrated(name: str, parameters: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the ranker and parameters of today for those of a file of version 0.1."""
    family = str(parameters["model"])
    renamed = {**RENAMED, **(_TREES if family in ("trees", "forest") else {})}
    if name == "intervalrank":
        renamed |= _INTERVAL
    given = {renamed.get(k, k): v for k, v in parameters.items() if k != "model"}
    if family == "trees":
        then = {**_TREES_THEN, "num_leaves": _LEAVES_THEN.get(name, 31)}
        given |= {k: v for k, v in then.items() if given.get(k) is None}
    model = registry.resolve("models", family)
    of_model = {k: given[k] for k in _names(model) if given.get(k) is not None}
    if name == "compose":
        loss = _loss(given.pop("loss"), given.pop("loss_params", None))
        own = _own("ranker", given, keep_none={"early_stopping_rounds"})
        return "ranker", {**own, "loss": loss, "model": model(**of_model)}
    kind = registry.resolve("rankers", name)
    own = _own(name, given, keep_none={*_names_of_loss(kind), "early_stopping_rounds"})
    if "loss" in _parameters(kind):  # RandomForest and CofiRank
        if "inner" in given:
            inner = registry.resolve("rankers", given["inner"])
            own["loss"] = _loss(inner.loss_class, given.get("inner_params"))
        elif "loss" in given:
            own["loss"] = _loss(given["loss"], given.get("loss_params"))
    if family != kind.model_class or not of_model.keys() <= own.keys():
        for field in _names(model):
            own.pop(field, None)
        own["model"] = model(**of_model)
    lost = _names_of_loss(kind) & given.keys() - own.keys()
    if any(given[field] != _default(kind, field) for field in lost):
        return "ranker", _generic(kind, given, own, model(**of_model))
    return name, own


def _generic(kind: Any, given: dict[str, Any], own: dict[str, Any], model: Any) -> dict[str, Any]:
    """Return the parameters of a `Ranker` of parts, where a named one has not all of them today."""
    loss = registry.resolve("losses", kind.loss_class)
    of_loss = {k: given[k] for k in _names(loss) if k in given}
    return {**_own("ranker", {**given, **own}), "loss": loss(**of_loss), "model": model}


def _own(
    name: str, given: Mapping[str, Any], keep_none: set[str] | frozenset[str] = frozenset()
) -> dict[str, Any]:
    known = _parameters(registry.resolve("rankers", name))
    return {
        k: v
        for k, v in given.items()
        if k in known and k not in ("loss", "model") and (v is not None or k in keep_none)
    }


def _loss(name: str, params: Any) -> Any:
    renamed = {RENAMED.get(k, k): v for k, v in (params or {}).items()}
    kind = registry.resolve("losses", name)
    return kind(**{k: v for k, v in renamed.items() if k in _names(kind)})


def _parameters(kind: Any) -> set[str]:
    return set(signature(kind.__init__).parameters)


def _names(part: Any) -> set[str]:
    return {field.name for field in fields(part)}


def _names_of_loss(kind: Any) -> set[str]:
    return set() if kind.loss_class is None else _names(registry.resolve("losses", kind.loss_class))


def _default(kind: Any, field: str) -> Any:
    fixed: dict[str, Any] = kind.fixed
    if field in fixed:
        return fixed[field]
    return getattr(registry.resolve("losses", kind.loss_class)(), field)
