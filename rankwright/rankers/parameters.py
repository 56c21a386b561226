"""Parameters of rankers: where they come from, what kind each is, and what others call them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from inspect import Parameter, Signature
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from rankwright import registry
from rankwright.errors import UsageError

if TYPE_CHECKING:
    from rankwright.rankers.base import Ranker

COMMON: dict[str, Any] = {
    "metric": "ndcg@10",
    "select_metric": None,
    "convention": "standard",
    "early_stopping_rounds": None,
    "n_jobs": None,
    "seed": 0,
    "verbose": False,
}

_COMMON_KINDS = {
    "metric": "str",
    "select_metric": "str",
    "early_stopping_rounds": "int",
    "n_jobs": "int",
    "seed": "int",
}

ELSEWHERE = {
    "n_estimators": "n_estimators",
    "num_boost_round": "n_estimators",
    "num_iterations": "n_estimators",
    "iterations": "n_estimators",
    "eta": "learning_rate",
    "shrinkage": "learning_rate",
    "max_leaves": "num_leaves",
    "min_child_samples": "min_child_samples",
    "min_data_in_leaf": "min_child_samples",
    "min_child_weight": "min_child_weight",
    "min_sum_hessian_in_leaf": "min_child_weight",
    "reg_lambda": "l2",
    "lambda_l2": "l2",
    "alpha": "l2",
    "C": "l2",
    "reg_alpha": "l1",
    "lambda_l1": "l1",
    "subsample": "subsample",
    "bagging_fraction": "subsample",
    "colsample_bytree": "colsample_bytree",
    "max_bin": "max_bins",
    "monotone_constraints": "monotone",
    "categorical_feature": "categorical",
    "max_iter": "max_iter",
    "tol": "tolerance",
    "eval_metric": "metric",
    "early_stopping_rounds": "early_stopping_rounds",
    "n_jobs": "n_jobs",
    "num_threads": "n_jobs",
    "threads": "n_jobs",
    "nthread": "n_jobs",
    "random_state": "seed",
}
"""What LightGBM, XGBoost and scikit-learn call it -> what we call it."""

_LEAST = {
    "n_estimators": 1,
    "n_bags": 1,
    "n_rounds": 1,
    "n_generations": 1,
    "epochs": 1,
    "batch_size": 1,
    "max_iter": 1,
    "num_leaves": 2,
    "early_stopping_rounds": 1,
}
_ABOVE_ZERO = ("learning_rate",)
_KINDS = {"int": "a whole number", "float": "a number", "str": "text", "bool": "true or false"}


# --- where they come from -----------------------------------------------------------------------


def all_parameters(cls: type[Ranker]) -> dict[str, Any]:
    """Return every parameter of a ranker with its default."""
    of_models = dict.fromkeys(own_model_parameters(cls))
    own = {k: v for k, v in cls.defaults.items() if k not in of_models}
    return {"model": cls.models[0], **of_models, **COMMON, **loss_parameters(cls), **own}


def loss_parameters(cls: type[Ranker]) -> dict[str, Any]:
    """Return those of its loss."""
    if cls.loss_name is None:
        return {}
    loss = registry.resolve("losses", cls.loss_name)
    return {f.name: _default(f) for f in fields(loss)}


def own_model_parameters(cls: type[Ranker]) -> list[str]:
    """Return the parameters of the models; a name that the loss has too is the loss's."""
    of_loss = loss_parameters(cls)
    return [name for name in _model_parameters(cls.models) if name not in of_loss]


def _default(field: Any) -> Any:
    return field.default if field.default is not MISSING else field.default_factory()


def _model_parameters(models: tuple[str, ...]) -> list[str]:
    names: dict[str, None] = {}
    for model in models:
        names.update(dict.fromkeys(f.name for f in fields(registry.resolve("models", model))))
    return list(names)


def models_with(parameter: str) -> list[str]:
    """Return the models that have this parameter."""
    return [
        name
        for name in registry.KINDS["models"]
        if parameter in {f.name for f in fields(registry.resolve("models", name))}
    ]


def constructor(defaults: dict[str, Any]) -> Any:
    """Return an ``__init__`` with these keyword parameters, which refuses any other."""

    def __init__(self: Ranker, **parameters: Any) -> None:  # noqa: N807
        for name in parameters:
            if name not in defaults:
                raise unknown_parameter(type(self).__name__, name, defaults)
        for name, default in defaults.items():
            setattr(self, name, parameters.get(name, default))

    keyword = Parameter.KEYWORD_ONLY
    own = [Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)]
    shown = [Parameter(name, keyword, default=default) for name, default in defaults.items()]
    __init__.__signature__ = Signature([*own, *shown])  # type: ignore[attr-defined]
    return __init__


# --- what kind each is ---------------------------------------------------------------------------


def unknown_parameter(ranker: str, name: str, known: Iterable[str]) -> UsageError:
    """Return the error for a parameter that ``ranker`` lacks, with what it may be called here."""
    known = list(known)
    what = f"parameter of {ranker}"
    ours = ELSEWHERE.get(name)
    if ours in known:
        return UsageError(f"there is no {what} '{name}'; it is called {ours} here.")
    return UsageError(registry.unknown(what, name, known))


def check_parameters(parts: Iterable[Any], values: Mapping[str, Any]) -> None:
    """Refuse values that are not of the kind that a part (a loss, a model) says they are."""
    for part in parts:
        for field in fields(part):
            value = values.get(field.name)
            kinds = [kind.strip() for kind in str(field.type).split("|")]
            if value is not None and set(kinds) <= {*_KINDS, "None"}:
                _check_kind(field.name, value, kinds)
    for name, kind in _COMMON_KINDS.items():
        if values.get(name) is not None:
            _check_kind(name, values[name], [kind])
    for name, value in values.items():
        _check_range(name, value)


def _check_kind(name: str, value: Any, kinds: list[str]) -> None:
    boolean = isinstance(value, bool) or type(value).__name__ == "bool_"
    whole = isinstance(value, Integral) and not boolean
    fits = {
        "int": whole,
        "float": whole or (isinstance(value, Real) and not boolean),
        "str": isinstance(value, str),
        "bool": boolean,
    }
    if not any(fits[kind] for kind in kinds if kind in fits):
        wanted = " or ".join(_KINDS[kind] for kind in kinds if kind in _KINDS)
        raise UsageError(f"{name} must be {wanted}, not {value!r}.")


def _check_range(name: str, value: Any) -> None:
    if not isinstance(value, Real) or isinstance(value, bool):
        return
    value = float(value)
    if name in _LEAST and value < _LEAST[name]:
        raise UsageError(f"{name} must be {_LEAST[name]} or more, not {value:g}.")
    if name in _ABOVE_ZERO and not value > 0:
        raise UsageError(f"{name} must be above 0, not {value:g}.")
