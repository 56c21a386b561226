"""Save a fitted ranker and load it again: the same scores to the last bit.

The receipt holds the ranker's name and parameters, the versions that made it, a digest of the
training data, the convention, the feature names and the learning curves; no times, paths or
thread counts, so that the same seed and data give the same bytes. Of a parameter that is a function
it holds the name, for information: loading imports nothing that a file names, and prediction needs
no loss. A loaded ranker has an `Absent` part there, and is fitted again once it is replaced.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import is_zipfile

import numpy as np
from safetensors.numpy import save as save_arrays

from rankwright import __version__, registry
from rankwright.core.parameters import params_of, part_name
from rankwright.core.types import F64
from rankwright.data.frames import categories_from_json, categories_to_json
from rankwright.data.streams import refuse_device
from rankwright.errors import PluginError, UsageError
from rankwright.metrics.base import Metric
from rankwright.models.schema import refuse_not_finite
from rankwright.persist.container import ModelFileError, read_parts, write_parts
from rankwright.persist.other_libraries import as_ranker, read_other
from rankwright.persist.runtime import (
    PART_ERRORS,
    check_packages,
    checked_shape,
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
    qid_column = getattr(ranker, "qid_column_", None)
    first_feature_id = getattr(ranker, "first_feature_id_", None)
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
        **({} if qid_column is None else {"qid_column": qid_column}),
        **({} if first_feature_id is None else {"first_feature_id": first_feature_id}),
    }
    refuse_not_finite(model)
    arrays = {name: np.ascontiguousarray(array) for name, array in model.arrays().items()}
    parts = {f"{name}.txt": text.encode() for name, text in model.texts().items()}
    write_parts(path, receipt, {**parts, "arrays.safetensors": save_arrays(arrays)})


def load_model(path: str | Path) -> Ranker:
    """Read a model file; the ranker scores as the saved one did.

    A model of LightGBM (text), XGBoost (JSON or UBJSON) or CatBoost (JSON) is read as a fitted
    ranker that scores as that library does; see `import_model`.
    """
    refuse_device(path)
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
        family = str(receipt["model"])
        ranker.model_ = fitted_model(family, parts, ranker.n_features_in_)
        if ranker.model_name != family:
            raise UsageError(f"a ranker of model '{ranker.model_name}', a model '{family}'.")
        ranker.best_iteration_, ranker.data_digest_, ranker.curve_ = _fit_record(receipt)
        ranker.qid_column_ = receipt.get("qid_column")
        if not isinstance(ranker.qid_column_, str | None):
            raise UsageError("its column of query ids is not a name.")
        ranker.first_feature_id_ = receipt.get("first_feature_id")
        if ranker.first_feature_id_ not in (None, 0, 1):
            raise UsageError("its first feature id is neither 0 nor 1.")
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
    ranker: Ranker = registry.resolve("rankers", receipt["ranker"])(**parameters)
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
