"""Search spaces: the values that tuning tries for each parameter.

A range is ``(low, high)`` or ``(low, high, "log")``; a list has choices; distributions of Optuna
are accepted as well::

    {"num_leaves": (7, 63), "learning_rate": (0.01, 0.3, "log"), "reg_lambda": [0, 1, 10]}

The space of a ranker is the space of its model (`OF_MODELS`) and the ``search_space`` of its class,
in which None removes a parameter. Parameters that the user sets are not searched. `distributions`
converts a space to Optuna.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import isfinite
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwright.core.parameters import (
    PARTS,
    base_type,
    check_value,
    declared_types,
    default_params,
    params_of,
    same,
    type_options,
    unknown_parameter,
)
from rankwright.errors import UsageError

if TYPE_CHECKING:
    from rankwright.rankers.base import Ranker

Space = Mapping[str, Any]

OF_MODELS: dict[str, Space] = {
    "trees": {
        "n_estimators": (50, 500, "log"),
        "num_leaves": (4, 64, "log"),
        "learning_rate": (0.01, 0.3, "log"),
        "min_child_samples": (5, 200, "log"),
        "colsample_bytree": (0.3, 1.0),
    },
    "forest": {
        "num_leaves": (10, 400, "log"),
        "min_child_samples": (1, 50, "log"),
        "colsample_bytree": (0.1, 1.0),
        "bag_fraction": (0.3, 1.0),
    },
    "linear": {"l2": (1e-6, 1e3, "log")},
    "classifier": {"l2": (1e-6, 1e3, "log")},
    "kernel": {"l2": (1e-6, 1e3, "log"), "gamma": (1e-3, 10.0, "log")},
    "least_squares": {"l2": (1e-10, 1e3, "log")},
    "network": {
        "learning_rate": (3e-4, 0.03, "log"),
        "activation": ["sigmoid", "relu", "tanh"],
        "dropout": (0.0, 0.5),
    },
    "additive": {"learning_rate": (0.03, 1.0, "log"), "n_candidates": (5, 255, "log")},
    "feature_sum": {"weights": ["total", "running"], "enqueue": [True, False]},
    "coordinate_ascent": {"n_restarts": (1, 10), "tol": (1e-4, 0.01, "log")},
    "expression": {
        "tournament": (2, 15),
        "crossover": (0.3, 0.9),
        "max_nodes": (7, 63, "log"),
        "parsimony": (1e-6, 0.01, "log"),
    },
    "factorization": {"n_factors": (2, 100, "log")},
    "passive_aggressive": {"C": (1e-3, 10.0, "log"), "averaging": [True, False]},
    "prank": {"averaging": [True, False]},
    "jrank": {"n_factors": (2, 100, "log"), "averaging": [True, False]},
}
"""Search space of each model, for any ranker. Models that are not listed have none."""


def space_of(ranker: Ranker, *, fixed: Collection[str] = ()) -> dict[str, Any]:
    """Return the search space of ``ranker``.

    Parameters of a model that replaces the default one are named ``model__name``.

    Parameters
    ----------
    fixed
        Names of parameters that the user has set. Parameters that differ from their defaults are
        not searched in any case.
    """
    space = dict(ranker.search_space)
    own_model = ranker._fits_default_model()
    excluded = {*fixed, *(f"model__{name}" for name in fixed), *given_parameters(ranker)}
    if not own_model:
        excluded |= ranker._model_parameters()
        excluded |= {f"model__{name}" for name in _given_to_model(ranker)}
    names = ranker.get_params(deep=False)
    for name, values in OF_MODELS.get(ranker.model_name, {}).items():
        space.setdefault(name if own_model and name in names else f"model__{name}", values)
    return {
        name: values
        for name, values in space.items()
        if values is not None and name in ranker.get_params() and name not in excluded
    }


def _given_to_model(ranker: Ranker) -> set[str]:
    """Return the parameters of the model that differ from the model's and the ranker's defaults."""
    model, usual = ranker._part_of("model"), type(ranker)()._part_of("model")
    defaults = [default_params(model)]
    if type(usual) is type(model):
        defaults.append(params_of(usual))
    return {
        name
        for name, value in params_of(model).items()
        if not any(name in default and same(value, default[name]) for default in defaults)
    }


def given_parameters(ranker: Ranker) -> dict[str, Any]:
    """Return the parameters of ``ranker`` that differ from their defaults."""
    default = type(ranker)().get_params(deep=False)
    return {
        name: value
        for name, value in ranker.get_params(deep=False).items()
        if not same(value, default[name])
    }


# --- a space of the user ---------------------------------------------------------------------


def user_space(ranker: Ranker, space: Any) -> dict[str, Any]:
    """Return a space of the user with ends of the parameter's type, or raise an error.

    Parameters
    ----------
    space : mapping from names of parameters to
        ``(low, high)`` or ``(low, high, "log")``, a range that includes both ends; a list of
        choices; or a distribution of Optuna. ``model__max_bins`` is a parameter of the model.
    """
    if not isinstance(space, Mapping):
        raise UsageError(
            "space is a mapping from parameters to what to try, such as {'num_leaves': (7, 63)}, "
            f"not {type(space).__name__}."
        )
    if not space:
        raise UsageError(
            "space is empty; name a parameter, such as {'num_leaves': (7, 63)}, or leave space out "
            "to search the ranker's own."
        )
    names = [str(name).replace(".", "__") for name in space]
    return {
        name: _checked(name, values, *_default_and_type(ranker, name))
        for name, values in zip(names, space.values(), strict=True)
    }


def _default_and_type(ranker: Ranker, name: str) -> tuple[Any, Any]:
    """Return the value of a parameter before tuning, and its declared type."""
    params = ranker.get_params(deep=True)
    part, separator, field = name.partition("__")
    if separator and part in PARTS and part in params:
        owner = ranker._part_of(part)
        if name not in params:
            raise unknown_parameter(type(owner).__name__, field, params_of(owner))
        return params[name], declared_types(owner.__class__).get(field, Any)
    if name not in params:
        raise ranker._unknown_parameter(name, ranker._part_of("model"))
    return params[name], ranker.declared_type(name)


def _checked(name: str, values: Any, default: Any, declared: Any) -> Any:
    if type(values).__module__.startswith("optuna.distributions"):
        return values
    if isinstance(values, tuple):
        return _range(name, values, default, declared)
    if not isinstance(values, list | range | np.ndarray):
        raise UsageError(
            f"space[{name!r}] is {values!r}: give a range (low, high), (low, high, 'log') or a "
            "list of choices; a value that stays is set on the ranker itself."
        )
    choices = [value.item() if isinstance(value, np.generic) else value for value in values]
    if not choices:
        raise UsageError(f"space[{name!r}] is an empty list; name the values to choose from.")
    for choice in filter(_is_number, choices):
        check_value(name.rpartition("__")[2], choice, declared)
    return choices


def _range(name: str, values: tuple[Any, ...], default: Any, declared: Any) -> tuple[Any, ...]:
    shown = f"space[{name!r}] is {values!r}"
    if len(values) not in (2, 3) or not all(_is_number(end) for end in values[:2]):
        raise UsageError(
            f"{shown}: a range is (low, high) or (low, high, 'log') with two finite numbers; "
            "choices are a list."
        )
    low, high, *scale = values
    if scale not in ([], ["log"]):
        raise UsageError(f"{shown}: after low and high comes 'log' or nothing.")
    if low > high:
        raise UsageError(f"{shown}, which is reversed; write ({high}, {low}).")
    if scale and low <= 0:
        raise UsageError(f"{shown}: a range with 'log' begins above 0.")
    types = {base_type(option) for option in type_options(declared)}
    takes_numbers = types & {int, float} or (default is None and Any in types)
    if isinstance(default, bool) or not (takes_numbers or _is_number(default)):
        raise UsageError(
            f"{shown}, but {name} takes no numbers (it is {default!r}); give a list of choices."
        )
    whole_ends = isinstance(low, Integral) and isinstance(high, Integral)
    takes_floats = float in types or isinstance(default, float)
    takes_whole = int in types or isinstance(default, Integral)
    if takes_whole and not takes_floats and not whole_ends:
        raise UsageError(f"{shown}, but {name} takes whole numbers; write such ends.")
    for end in (low, high):
        check_value(name.rpartition("__")[2], end, declared)
    number = int if whole_ends and not takes_floats else float
    return number(low), number(high), *scale


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and isfinite(value)


# --- conversion to Optuna --------------------------------------------------------------------


def distributions(space: Space) -> dict[str, Any]:
    """Return the Optuna distribution of each parameter."""
    return {name: _distribution(values) for name, values in space.items()}


def _distribution(values: Any) -> Any:
    from optuna.distributions import (
        CategoricalDistribution,
        FloatDistribution,
        IntDistribution,
    )

    if isinstance(values, list):
        return CategoricalDistribution([as_plain(value) for value in values])
    if isinstance(values, tuple):
        low, high, *scale = values
        kind = IntDistribution if isinstance(low, int) else FloatDistribution
        return kind(low, high, log=bool(scale))
    return values


def as_plain(value: Any) -> Any:
    """Return a choice as Optuna stores it: unchanged, or its repr if it is not a plain value."""
    plain = value is None or isinstance(value, bool | int | float | str)
    return value if plain else repr(value)


def from_plain(values: Any, stored: Any) -> Any:
    """Return the value of a parameter that Optuna stores as ``stored``."""
    choices = values if isinstance(values, list) else []
    return next((choice for choice in choices if same(as_plain(choice), stored)), stored)


def contains(distribution: Any, value: Any) -> bool:
    """Return whether an Optuna distribution contains a value."""
    if hasattr(distribution, "choices"):
        return as_plain(value) in distribution.choices
    if not _is_number(value) or not distribution.low <= value <= distribution.high:
        return False
    steps = (value - distribution.low) / (distribution.step or 1)
    whole = "Int" in type(distribution).__name__
    return (not whole or isinstance(value, int)) and (distribution.step is None or steps % 1 == 0)
