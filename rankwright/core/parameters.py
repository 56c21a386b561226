"""Parameters of losses, models, solvers and metrics: reading, changing and checking them.

A part is a frozen dataclass that inherits from `Part`, or any object with ``get_params`` or
dataclass fields. Constructors only store parameters; `check_parameters` checks them before a fit.
"""

from __future__ import annotations

import difflib
import math
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass, replace
from functools import cache, partial
from numbers import Integral, Real
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from rankwright import registry
from rankwright.errors import UsageError, quoted

PARTS = {"loss": "losses", "model": "models", "solver": "solvers"}
"""Parameters of a ranker that are parts, with their kind in the registry."""

_KINDS: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    str: "text",
    bool: "true or false",
    tuple: "a sequence",
    Sequence: "a sequence",
    Mapping: "a mapping",
    Callable: "a function",
}


class Part:
    """Base of losses, models and solvers: frozen dataclasses whose ``repr`` omits default values.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from rankwright.losses import Part
    >>> @dataclass(frozen=True, slots=True, repr=False)
    ... class Huber(Part):
    ...     delta: float = 1.0
    ...     slope: float = 1.0
    >>> Huber(delta=0.5)
    Huber(delta=0.5)
    """

    __slots__ = ()

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002
        """Return the parameters by name, as in scikit-learn."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def __repr__(self) -> str:
        arguments = []
        for field in fields(self):  # type: ignore[arg-type]
            value, default = getattr(self, field.name), field.default
            if field.default_factory is not MISSING:
                default = field.default_factory()
            if not same(value, default):
                arguments.append(f"{field.name}={value!r}")
        return f"{type(self).__name__}({', '.join(arguments)})"


def same(a: Any, b: Any) -> bool:
    """Return whether two parameter values are equal; arrays are always different."""
    numbers = all(isinstance(x, Real) and not isinstance(x, bool) for x in (a, b))
    try:
        return a is b or ((numbers or type(a) is type(b)) and bool(a == b))
    except (TypeError, ValueError):  # a == b is an array, or has no truth value
        return False


def params_of(part: Any) -> dict[str, Any]:
    """Return the parameters of any part; none if it has neither ``get_params`` nor fields."""
    if hasattr(part, "get_params"):
        params: dict[str, Any] = part.get_params(deep=False)
        return params
    if is_dataclass(part):
        return {field.name: getattr(part, field.name) for field in fields(part)}
    return {}


def default_params(part: Any) -> dict[str, Any]:
    """Return the default parameters of the class of a part; none if it requires arguments."""
    try:
        return params_of(type(part)())
    except TypeError:
        return {}


def with_params(part: Any, changes: Mapping[str, Any]) -> Any:
    """Return a copy of ``part`` with other parameters."""
    params = params_of(part)
    for name in changes:
        if name not in params:
            raise unknown_parameter(type(part).__name__, name, params)
    if is_dataclass(part):
        return replace(part, **changes)  # type: ignore[type-var]
    return type(part)(**{**params, **changes})


def resolve_part(kind: str, part: Any) -> Any:
    """Return an object unchanged, and for a name the registered part with its defaults."""
    if isinstance(part, str):
        return registry.resolve(kind, part)()
    if isinstance(part, type):
        raise UsageError(
            f"{part.__name__} is a class; pass an object: {part.__name__}(), with its parameters."
        )
    return part


def part_name(kind: str, part: Any) -> str:
    """Return the registered name of a part, or the name of its class."""
    return registry.name_of(kind, type(part)) or type(part).__name__


# --- types and constraints of parameters ----------------------------------------------------------
#
# The type of a field declares its values, for example ``Literal["squared", "hinge"]``,
# ``float | Literal["auto"]`` or ``Annotated[float, check]``; ``check(name, value)`` raises if the
# value is out of range.


@cache
def declared_types(cls: type) -> dict[str, Any]:
    """Return the declared types of the parameters of a class."""
    owner = next(kind for kind in cls.__mro__ if "__init__" in vars(kind))
    source: Any = owner if "__dataclass_fields__" in vars(owner) else owner.__init__  # type: ignore[misc]
    try:
        return get_type_hints(source, include_extras=True)
    except (NameError, TypeError):  # a plug-in that imports a type only for type checkers
        return {}


def type_options(declared: Any) -> list[Any]:
    """Return the alternatives of a declared type."""
    if isinstance(declared, UnionType) or get_origin(declared) is Union:
        return [option for part in get_args(declared) for option in type_options(part)]
    return [declared]


def base_type(option: Any) -> Any:
    """Return a type without its constraints."""
    return get_args(option)[0] if get_origin(option) is Annotated else option


def check_parameters(part: Any) -> None:
    """Raise if a parameter of a loss, model, solver or metric has an invalid value."""
    cls: Any = type(part)
    params = params_of(part)
    for name, full_name, declared in _checked_fields(cls):
        if name in params:
            check_value(full_name, params[name], declared)


@cache
def _checked_fields(cls: type) -> list[tuple[str, str, Any]]:
    """Return name, name in messages, and type of each parameter; losses are named in messages."""
    loss = registry.name_of("losses", cls)
    prefix = f"{loss}'s " if loss else ""
    return [(name, prefix + name, declared) for name, declared in declared_types(cls).items()]


def check_value(name: str, value: Any, declared: Any) -> None:
    """Raise unless ``value`` is of a declared type and satisfies its constraints."""
    options = type_options(declared)
    matching = [option for option in options if _is_instance(value, base_type(option))]
    if not matching:
        required = [option for option in options if option is not type(None)]
        if len(required) > 1 or get_origin(required[0]) is not Annotated:
            raise UsageError(f"{name} must be {_expected(options, value)}")
        matching = required  # its check raises
    if all(get_origin(option) is Annotated for option in matching):
        for option in matching:
            for check in get_args(option)[1:]:
                check(name, value)


def _is_instance(value: Any, kind: Any) -> bool:
    """Return whether ``value`` is of a type; numbers of NumPy and any sequence are accepted."""
    origin = get_origin(kind) or kind
    if kind is Any:
        return True
    if origin in (Union, UnionType):
        return any(_is_instance(value, base_type(option)) for option in type_options(kind))
    if origin is Literal:
        return any(same(value, choice) for choice in get_args(kind))
    is_boolean = isinstance(value, bool | np.bool_)
    if kind is bool:
        return is_boolean
    if kind in (int, float):
        return isinstance(value, Integral if kind is int else Real) and not is_boolean
    if origin in (tuple, Sequence):
        sequence = isinstance(value, Sequence | np.ndarray) and not isinstance(value, str | bytes)
        return sequence and all(_is_instance(item, get_args(kind)[0]) for item in value)
    if hasattr(origin, "__value__"):  # a type alias, such as NDArray of NumPy 2.5
        return _is_instance(value, origin.__value__)
    return isinstance(value, origin)


def _expected(options: list[Any], value: Any) -> str:
    """Return the rest of an error message: accepted types and choices, and the value."""
    choices = [x for option in options if get_origin(option) is Literal for x in get_args(option)]
    if all(get_origin(option) is Literal for option in options):
        close = difflib.get_close_matches(str(value), choices, 1)
        hint = f"; did you mean {close[0]}?" if close else "."
        return f"{either(choices)}, not {value!r}{hint}"
    kinds = [base_type(option) for option in options if get_origin(option) is not Literal]
    types = [get_origin(kind) or kind for kind in kinds if kind is not type(None)]
    words = [_KINDS.get(kind, f"a {kind.__name__}") for kind in types]
    words += [repr(choice) for choice in choices]
    if choices and type(None) in kinds:
        words.append("None")
    return f"{either(words)}, not {value!r}."


# --- names in other libraries -----------------------------------------------------------------

ELSEWHERE: dict[str, tuple[str, ...]] = {
    "max_iter": ("n_iter", "max_iterations"),
    "n_estimators": (
        "num_boost_round", "num_iterations", "num_trees", "n_trees", "iterations", "n_iter",
    ),
    "n_rounds": ("num_boost_round", "num_iterations", "iterations", "n_iter"),
    "epochs": ("max_epochs", "n_epochs"),
    "learning_rate": ("eta", "shrinkage", "shrinkage_rate", "lr"),
    "num_leaves": ("max_leaves", "max_leaf_nodes"),
    "min_child_samples": ("min_data_in_leaf", "min_samples_leaf"),
    "min_child_weight": ("min_sum_hessian_in_leaf",),
    "reg_lambda": ("lambda_l2", "l2_leaf_reg", "l2_regularization", "l2"),
    "l2": ("lambda_l2", "l2_leaf_reg", "l2_regularization", "reg_lambda", "alpha", "C"),
    "reg_alpha": ("lambda_l1", "l1", "alpha"),
    "l1": ("lambda_l1", "reg_alpha"),
    "subsample": ("bagging_fraction",),
    "colsample_bytree": ("feature_fraction", "colsample_bylevel", "max_features", "rsm"),
    "max_bins": ("max_bin", "border_count"),
    "monotone_constraints": ("monotonic_cst",),
    "categorical_feature": ("categorical_features", "cat_features"),
    "tol": ("tolerance",),
    "metric": ("eval_metric", "scoring"),
    "loss": ("objective",),
    "early_stopping_rounds": ("early_stopping", "early_stopping_round", "n_iter_no_change"),
    "n_jobs": ("num_threads", "n_threads", "thread_count", "threads", "nthread"),
    "random_state": ("seed", "random_seed"),
    "hidden_layer_sizes": ("hidden", "hidden_sizes"),
    "truncation": ("truncation_level", "lambdarank_truncation_level"),
}  # fmt: skip
"""Names of parameters in this library, with their names in other libraries."""


def unknown_parameter(
    owner: str, name: str, params: Iterable[str], model: Any = None, loss: str | None = None
) -> UsageError:
    """Return the error for a parameter that ``owner`` does not have, with advice.

    Parameters
    ----------
    owner : str
        The class, for the message.
    name : str
        Also looked up in `ELSEWHERE`.
    params : iterable of str
        The parameters of the class.
    model : model, optional
        The model of the ranker, whose parameters are named ``model__x``.
    loss : str, optional
        The fixed loss of the ranker, whose parameters only a `Ranker` with this loss can set.
    """
    params = list(params)
    candidates = (name, *(ours for ours, theirs in ELSEWHERE.items() if name in theirs))
    for candidate in candidates:
        if candidate in params:
            return UsageError(f"{owner} has no parameter '{name}'; it is called {candidate} here.")
    model_params = params_of(model)
    for candidate in candidates:
        if candidate in model_params:
            return UsageError(
                f"{owner} has no parameter {quoted(name)}, its model has: write model__{candidate} "
                f"(on the command line --set model.{candidate}=VALUE)."
            )
    advice = _part_with(candidates, params, loss) or registry.nearest(name, params)
    return UsageError(f"{owner} has no parameter {quoted(name)}; {advice}")


def _part_with(candidates: Iterable[str], params: Collection[str], loss: str | None) -> str | None:
    """Return the advice to use another part that has one of the parameters, or None."""
    for candidate in candidates:
        if loss is not None and candidate in _field_names("losses", loss):
            return (
                f"its loss has {candidate}: take the ranker named ranker with the loss {loss} "
                f"(on the command line --set loss={loss} --set loss.{candidate}=VALUE)."
            )
        for part, names in (("solver", registry.SOLVERS), ("model", _FOR_ANY_LOSS)):
            owners = [name for name in names if candidate in _field_names(f"{part}s", name)]
            if part in params and owners:
                return (
                    f"{candidate} is a parameter of the {part} {either(owners)}: pass such a {part}"
                    f" (on the command line --set {part}={owners[0]} --set "
                    f"{part}.{candidate}=VALUE)."
                )
    return None


_FOR_ANY_LOSS = ("linear", "trees", "network", "kernel", "factorization")


def _field_names(kind: str, name: str) -> set[str]:
    return {field.name for field in fields(registry.resolve(kind, name))}


# --- checks of values --------------------------------------------------------------------------

_LARGEST_WHOLE = 2**63 - 1  # in kernels


def check_above_zero(name: str, value: Any) -> None:
    """Raise unless ``value`` is a finite number above 0."""
    _check_number(name, value, "above 0", lambda number: number > 0)


def check_zero_or_more(name: str, value: Any) -> None:
    """Raise unless ``value`` is a finite number from 0."""
    _check_number(name, value, "0 or more", lambda number: number >= 0)


def check_share(name: str, value: Any) -> None:
    """Raise unless ``value`` is a number above 0 and at most 1."""
    _check_number(name, value, "a share above 0, up to 1 for all", lambda number: 0 < number <= 1)


def _check_number(name: str, value: Any, wanted: str, is_valid: Callable[[Any], bool]) -> None:
    if not (_is_finite(value) and is_valid(value)):
        finite = " and finite" if isinstance(value, Real) and value == math.inf else ""
        raise UsageError(f"{name} must be {wanted}{finite}, not {_shown(value)}.")


def check_whole(name: str, value: Any, least: int) -> None:
    """Raise unless ``value`` is a whole number from ``least``."""
    if not (_is_finite(value) and float(value).is_integer()):
        raise UsageError(f"{name} must be a whole number, {least} or more, not {_shown(value)}.")
    if value < least:
        raise UsageError(f"{name} must be {least} or more, not {value}.")
    if value > _LARGEST_WHOLE:
        raise UsageError(f"{name} must be {_LARGEST_WHOLE} or less, not {float(value):g}.")


def check_choice(name: str, value: Any, choices: Iterable[str]) -> None:
    """Raise unless ``value`` is one of the choices."""
    choices = list(choices)
    if value not in choices:
        raise UsageError(f"{name} must be {either(choices)}, not '{value}'.")


def at_least(least: int) -> Callable[[str, Any], None]:
    """Return the check of a whole number from ``least``, for a declared type."""
    return partial(check_whole, least=least)


Positive = Annotated[float, check_above_zero]
NonNegative = Annotated[float, check_zero_or_more]
Share = Annotated[float, check_share]
Count = Annotated[int, at_least(1)]
CountOrZero = Annotated[int, at_least(0)]
Auto = Literal["auto"]
Missing = Literal["mean", "zero"] | None


def either(names: list[str]) -> str:
    """Return "a, b or c"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def both(names: list[str]) -> str:
    """Return "a, b and c"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _is_finite(value: Any) -> bool:
    if isinstance(value, bool) or (isinstance(value, int) and abs(value) > sys.float_info.max):
        return False
    return isinstance(value, Real) and math.isfinite(value)


def _shown(value: Any) -> Any:
    return repr(value) if isinstance(value, str) else value


def seed_of(random_state: Any) -> int:
    """Return the seed of a ``random_state``: itself, a sample from it, or for None a fresh one."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0] >> np.uint64(1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if isinstance(random_state, Integral) and not isinstance(random_state, bool):
        return int(random_state)
    raise UsageError(
        "random_state must be a whole number, a RandomState, a Generator or None, not "
        f"{random_state!r}."
    )
