"""Save a fitted ranker and load it again with the same scores, bit for bit.

The receipt contains the name and the parameters of the ranker, versions, a digest of the training
data, the convention, the feature names and the learning curves. It contains no times, paths or
thread counts, so that the same seed and data give the same bytes. A parameter that is a function is
saved by name only, because loading imports nothing that a file names. A loaded ranker has an
`Absent` part instead, which must be replaced before the ranker is fitted again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors.numpy import save as save_arrays

from rankwright import __version__, registry
from rankwright.core.parameters import PARTS, params_of, part_name
from rankwright.data.frames import categories_to_json
from rankwright.data.streams import refuse_device
from rankwright.errors import PluginError, UsageError
from rankwright.metrics.base import Metric
from rankwright.models.schema import refuse_not_finite
from rankwright.persist.container import write_parts
from rankwright.persist.other_libraries import as_ranker, read_other
from rankwright.persist.runtime import as_model_file_error, check_package, read_model

if TYPE_CHECKING:
    from rankwright.rankers.base import Ranker


_LIBRARIES = ("numpy", "scipy", "lightgbm")
NOT_KEPT = {"n_jobs", "verbose"}
_FLOAT, _FUNCTION, _PART = "float", "function", "part"


@dataclass(frozen=True, slots=True, repr=False)
class Absent:
    """Name of a function or part that a file does not contain.

    Prediction does not need it; fitting raises an error.
    """

    name: str

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ARG002
        """Raise, because the function is not available."""
        raise self._error()

    @property
    def traits(self) -> Any:
        """Raise, because the loss is not available."""
        raise self._error()

    bind = fit = solve = __call__

    def __repr__(self) -> str:
        return f"<{self.name}, not in the file>"

    def _error(self) -> UsageError:
        return UsageError(
            f"this ranker was saved with {self.name}, which is neither in the model file nor in an "
            "installed package. It can predict; to fit it, pass the part again with set_params."
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
                f"{type(part).__name__} has no registered name, which a model file needs; announce "
                f"it as an entry point of the group rankwright.{kind}, or save the "
                f"fitted {what} in another way."
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


def load_model(path: str | Path, *, categories: Sequence[str] | None = None) -> Ranker:
    """Read a model file as a fitted ranker; see `rankwright.load_model`, which reads more kinds."""
    refuse_device(path)
    other = read_other(path, categories=categories)
    if other is not None:
        return as_ranker(other)
    if categories is not None and Path(path).exists():
        raise UsageError(f"categories= is for models of LightGBM, and {path} is not one.")
    saved = read_model(path)
    receipt = saved.receipt
    check_package(path, receipt, "ranker")
    with as_model_file_error(path):
        ranker: Ranker = registry.resolve("rankers", saved.ranker)(
            **restored(receipt["parameters"])
        )
        if ranker.model_name != receipt["model"]:
            raise UsageError(
                f"a ranker of model '{ranker.model_name}', a model '{receipt['model']}'."
            )
        ranker.model_, ranker.n_features_in_ = saved.model, saved.n_features
        ranker.best_iteration_, ranker.data_digest_ = receipt["best_iteration"], receipt["data"]
        ranker.curve_ = {name: list(restored(values)) for name, values in receipt["curve"].items()}
        ranker.qid_column_ = receipt.get("qid_column")
        ranker.first_feature_id_ = receipt.get("first_feature_id")
        if receipt.get("feature_deviation") is not None:
            deviation = np.array(restored(receipt["feature_deviation"]), np.float64)
            if deviation.shape != (saved.n_features,):
                raise UsageError(f"{deviation.size} deviations for {saved.n_features} features.")
            ranker.feature_deviation_ = deviation
    if saved.feature_names is not None:
        ranker.feature_names_in_ = np.array(saved.feature_names, object)
    if saved.categories is not None:
        ranker.categories_ = dict(saved.categories)
    return ranker


def kept_parameters(ranker: Ranker) -> dict[str, Any]:
    """Return the parameters that determine a fit, as JSON values."""
    parameters = ranker.get_params(deep=False)
    return _plain_parameters({k: v for k, v in parameters.items() if k not in NOT_KEPT})


def _plain_parameters(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return parameters of a ranker or part, some of which may be parts, as JSON values."""
    return {
        name: _plain_part(PARTS[name], value)
        if name in PARTS and value is not None
        else plain(value)
        for name, value in parameters.items()
    }


def _plain_part(kind: str, part: Any) -> Any:
    """Return a part as its registered name and parameters, with the package of a plug-in.

    A string is the name of a part with default parameters, which are not saved.
    """
    if isinstance(part, str):
        package = registry.package_of(kind, part)
        return part if package is None else _plain_name(kind, part)
    name = registry.name_of(kind, type(part))
    if name is None:
        if isinstance(part, Absent):
            return {_FUNCTION: part.name}
        name = getattr(part, "name", None) or part_name(kind, part)
        return {_FUNCTION: f"the {registry.singular(kind)} {name}"}
    return _plain_name(kind, name, params=_plain_parameters(params_of(part)))


def _plain_name(kind: str, name: str, **params: Any) -> dict[str, Any]:
    """Return the registered name of a part, its parameters and the package of a plug-in."""
    package = registry.package_of(kind, name)
    packages = {} if package is None else {"package": package}
    return {_PART: {"kind": kind, "name": name, **params, **packages}}


def plain(value: Any) -> Any:
    """Return a parameter as a JSON value.

    Numbers that are not finite, metrics and functions become their names. A generator of random
    numbers becomes null, because its state is not saved.
    """
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(item) for item in value]
    if hasattr(value, "make_model"):  # a ranker, such as a member of a blend
        name = registry.name_of("rankers", type(value))
        if name is None:
            return {_FUNCTION: f"the ranker {type(value).__name__}"}
        return _plain_name("rankers", name, params=kept_parameters(value))
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
    """Return whether a JSON value contains no name of an absent function."""
    if isinstance(value, dict):
        return set(value) != {_FUNCTION} and all(map(holds_all, value.values()))
    return not isinstance(value, list) or all(map(holds_all, value))


def _name_of(function: Any) -> str:
    if isinstance(function, Absent):
        return function.name
    if isinstance(function, Metric):
        return f"the metric {function!r}"
    source = function if hasattr(function, "__qualname__") else type(function)
    return f"the function {source.__module__}.{source.__qualname__}"


def restored(value: Any) -> Any:
    """Return a parameter from a JSON value. Nothing that it names is imported by its path."""
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


def _restored_part(value: dict[str, Any]) -> Any:
    kind, name = str(value["kind"]), str(value["name"])
    if kind not in (*PARTS.values(), "rankers"):
        raise UsageError(f"a part of the kind {kind!r}.")
    package = f" of the package {value['package']}" if "package" in value else ""
    absent = Absent(f"the {registry.singular(kind)} {name}{package}")
    if not registry.is_known(kind, name):
        return absent
    if "params" not in value:
        return name
    try:
        part = registry.resolve(kind, name)
    except PluginError:  # prediction does not need it
        return absent
    return part(**restored(value["params"]))
