"""Save a fitted ranker and load it again: the same scores to the last bit.

The receipt holds the ranker's name and parameters, the versions that made it, a digest of the
training data, the convention, the feature names and the learning curves; no times, paths or
thread counts, so that the same seed and data give the same bytes. Of a parameter that is a function
it holds the name, for information: loading imports nothing that a file names, and prediction needs
no loss. A loaded ranker has an `AbsentFunction` there, and is fitted again once it is replaced.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors.numpy import save as save_arrays

from rankwright import __version__, registry
from rankwright.errors import UsageError
from rankwright.persist.container import ModelFileError, read_parts, write_parts
from rankwright.persist.runtime import FAULTS, checked_shape, fitted_model

if TYPE_CHECKING:
    from rankwright.rankers.base import Ranker

_LIBRARIES = ("numpy", "scipy", "lightgbm")
NOT_KEPT = {"n_jobs", "verbose"}
_FLOAT, _FUNCTION = "float", "function"


@dataclass(frozen=True, slots=True, repr=False)
class AbsentFunction:
    """A parameter that was a function when the ranker was saved; only its name is known.

    Parameters
    ----------
    name : str
        Module and qualified name.
    """

    name: str

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ARG002
        """Refuse: the function is not there."""
        raise UsageError(
            f"this ranker was saved with the function {self.name}, which a model file does not "
            "hold; it predicts without. To fit it, give the function again with set_params."
        )

    def __repr__(self) -> str:
        return f"<function {self.name}, not in the file>"


def save_model(ranker: Ranker, path: str | Path) -> None:
    """Write a fitted ranker to a model file."""
    model = ranker._fitted()
    names = getattr(ranker, "feature_names_in_", None)
    receipt = {
        "rankwright": __version__,
        "libraries": {name: version(name) for name in _LIBRARIES},
        "ranker": ranker.name,
        "parameters": plain(
            {k: v for k, v in ranker.get_params(deep=False).items() if k not in NOT_KEPT}
        ),
        "data": ranker.data_digest_,
        "convention": ranker.convention,
        "n_features": ranker.n_features_in_,
        "feature_names": None if names is None else list(names),
        "best_iteration": ranker.best_iteration_,
        "curve": plain(ranker.curve_),
    }
    arrays = {name: np.ascontiguousarray(array) for name, array in model.arrays().items()}
    parts = {f"{name}.txt": text.encode() for name, text in model.texts().items()}
    write_parts(path, receipt, {**parts, "arrays.safetensors": save_arrays(arrays)})


def load_model(path: str | Path) -> Ranker:
    """Read a model file; the ranker scores as the saved one did."""
    receipt, parts = read_parts(path)
    try:
        kind = registry.resolve("rankers", receipt["ranker"])
        ranker: Ranker = kind(**_restored(receipt["parameters"]))
        ranker.n_features_in_, names = checked_shape(receipt)
        ranker.model_ = fitted_model(ranker.model, parts, ranker.n_features_in_)
        ranker.best_iteration_ = receipt["best_iteration"]
        ranker.data_digest_ = receipt["data"]
        ranker.curve_ = {name: list(_restored(v)) for name, v in receipt["curve"].items()}
    except FAULTS as fault:
        raise ModelFileError(f"{path} does not hold what its receipt says: {fault}") from None
    if names is not None:
        ranker.feature_names_in_ = np.array(names, object)
    return ranker


def plain(value: Any) -> Any:
    """Return a parameter as JSON holds it.

    Numbers that are not finite and functions become their names.
    """
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return {_FLOAT: repr(value)}
    if callable(value):
        return {_FUNCTION: _name_of(value)}
    return value


def _name_of(function: Any) -> str:
    if isinstance(function, AbsentFunction):
        return function.name
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}.{named.__qualname__}"


def _restored(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_restored(item) for item in value)
    if isinstance(value, dict):
        if set(value) == {_FLOAT}:
            return float(value[_FLOAT])
        if set(value) == {_FUNCTION}:
            return AbsentFunction(str(value[_FUNCTION]))
        return {key: _restored(item) for key, item in value.items()}
    return value
