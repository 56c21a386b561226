"""What tuning may choose: a range or a list of values for each parameter.

A ranker's space is that of its model, given here once, with what the ranker itself declares as
``search_space``; None takes a parameter out::

    class LambdaMART(Ranker):
        search_space = {"truncation": Ints(5, 100, log=True)}

Parameters that the user sets are never searched. A space of the user's own, as `tune` takes it, is
written with plain values, which `checked_domains` reads::

    {"num_leaves": (7, 63), "learning_rate": (0.01, 0.3, "log"), "reg_lambda": [0, 1, 10]}
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, is_dataclass
from math import isfinite
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from rankwright.core.parameters import (
    check_range,
    default_params,
    params_of,
    same,
    unknown_parameter,
)
from rankwright.errors import UsageError

if TYPE_CHECKING:
    from rankwright.rankers.base import Ranker


class Domain(Protocol):
    """The values that a parameter may take."""

    def suggest(self, trial: Any, name: str) -> Any:
        """Return a value that an Optuna trial chooses."""

    def holds(self, value: Any) -> bool:
        """Whether ``value`` is one of them."""


@dataclass(frozen=True, slots=True)
class Ints:
    """Whole numbers from ``low`` to ``high``; with ``log``, factors rather than differences."""

    low: int
    high: int
    log: bool = False

    def suggest(self, trial: Any, name: str) -> int:
        """Return a value that an Optuna trial chooses."""
        return int(trial.suggest_int(name, self.low, self.high, log=self.log))

    def holds(self, value: Any) -> bool:
        """Whether ``value`` is one of them."""
        return isinstance(value, int) and self.low <= value <= self.high


@dataclass(frozen=True, slots=True)
class Floats:
    """Numbers from ``low`` to ``high``."""

    low: float
    high: float

    def suggest(self, trial: Any, name: str) -> float:
        """Return a value that an Optuna trial chooses."""
        return float(trial.suggest_float(name, self.low, self.high))

    def holds(self, value: Any) -> bool:
        """Whether ``value`` is one of them."""
        return isinstance(value, int | float) and self.low <= value <= self.high


@dataclass(frozen=True, slots=True)
class Log:
    """Numbers from ``low`` to ``high``, each power of ten as likely as the next."""

    low: float
    high: float

    def suggest(self, trial: Any, name: str) -> float:
        """Return a value that an Optuna trial chooses."""
        return float(trial.suggest_float(name, self.low, self.high, log=True))

    def holds(self, value: Any) -> bool:
        """Whether ``value`` is one of them."""
        return isinstance(value, int | float) and self.low <= value <= self.high


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few values: ``Choice("linear", "gain")``."""

    values: tuple[Any, ...]

    def __init__(self, *values: Any) -> None:
        object.__setattr__(self, "values", values)

    def suggest(self, trial: Any, name: str) -> Any:
        """Return a value that an Optuna trial chooses."""
        return self.value(trial.suggest_categorical(name, [self.kept(one) for one in self.values]))

    def holds(self, value: Any) -> bool:
        """Whether ``value`` is one of them."""
        return value in self.values

    def kept(self, value: Any) -> Any:
        """Return what Optuna keeps of a value: itself, or its text where it is no plain value."""
        plain = value is None or isinstance(value, bool | int | float | str)
        return value if plain else repr(value)

    def value(self, kept: Any) -> Any:
        """Return the value that Optuna keeps as ``kept``."""
        return next((one for one in self.values if same(self.kept(one), kept)), kept)


@dataclass(frozen=True, slots=True)
class OptunaDistribution:
    """A distribution of Optuna: ``optuna.distributions.IntDistribution(7, 63, step=4)``."""

    distribution: Any

    def suggest(self, trial: Any, name: str) -> Any:
        """Return a value that an Optuna trial chooses."""
        own = self.distribution
        if hasattr(own, "choices"):
            return trial.suggest_categorical(name, own.choices)
        suggest = trial.suggest_int if self.whole else trial.suggest_float
        return suggest(name, own.low, own.high, step=own.step, log=own.log)

    @property
    def whole(self) -> bool:
        """Whether it gives whole numbers alone."""
        return "Int" in type(self.distribution).__name__

    def holds(self, value: Any) -> bool:
        """Whether ``value`` is one of them."""
        own = self.distribution
        if hasattr(own, "choices"):
            return value in own.choices
        if not _is_number(value) or not own.low <= value <= own.high:
            return False
        steps = 0.0 if own.step is None else (value - own.low) / own.step
        return isinstance(value, int) if self.whole and own.step == 1 else steps == round(steps)


Space = Mapping[str, Domain]

OF_MODELS: dict[str, Space] = {
    "trees": {
        "n_estimators": Ints(50, 500, log=True),
        "num_leaves": Ints(4, 64, log=True),
        "learning_rate": Log(0.01, 0.3),
        "min_child_samples": Ints(5, 200, log=True),
        "colsample_bytree": Floats(0.3, 1.0),
    },
    "forest": {
        "num_leaves": Ints(10, 400, log=True),
        "min_child_samples": Ints(1, 50, log=True),
        "colsample_bytree": Floats(0.1, 1.0),
        "bag_fraction": Floats(0.3, 1.0),
    },
    "linear": {"l2": Log(1e-6, 1e3)},
    "classifier": {"l2": Log(1e-6, 1e3)},
    "kernel": {"l2": Log(1e-6, 1e3), "gamma": Log(1e-3, 10.0)},
    "least_squares": {"l2": Log(1e-10, 1e3)},
    "network": {
        "learning_rate": Log(3e-4, 0.03),
        "activation": Choice("sigmoid", "relu", "tanh"),
        "dropout": Floats(0.0, 0.5),
    },
    "additive": {"learning_rate": Log(0.03, 1.0), "n_candidates": Ints(5, 255, log=True)},
    "feature_sum": {"weights": Choice("total", "running"), "enqueue": Choice(True, False)},
    "coordinate_ascent": {"n_restarts": Ints(1, 10), "tol": Log(1e-4, 0.01)},
    "expression": {
        "tournament": Ints(2, 15),
        "crossover": Floats(0.3, 0.9),
        "max_nodes": Ints(7, 63, log=True),
        "parsimony": Log(1e-6, 0.01),
    },
    "factorization": {"n_factors": Ints(2, 100, log=True)},
    "passive_aggressive": {"C": Log(1e-3, 10.0), "averaging": Choice(True, False)},
    "prank": {"averaging": Choice(True, False)},
    "jrank": {"n_factors": Ints(2, 100, log=True), "averaging": Choice(True, False)},
}
"""What each model has to search, whatever the ranker; a model that is not here has nothing."""


def space_of(ranker: Ranker, *, fixed: Collection[str] = ()) -> dict[str, Domain]:
    """Return the domains of the parameters that tuning may choose for ``ranker``.

    A parameter of a model that replaces the default one goes by ``model__name``.

    Parameters
    ----------
    fixed
        Names of parameters that the user has set; those that differ from their defaults are
        left out in any case.
    """
    own = set(ranker.get_params(deep=False))
    found: dict[str, Domain | None] = dict(ranker.search_space)
    set_by_user = {*fixed, *given_parameters(ranker)}
    mine = ranker._has_own_model()
    in_model = set() if mine else _given_to_model(ranker)
    if not mine:  # what it declares for its default model is of no use to another
        found = {k: v for k, v in found.items() if k not in ranker._model_parameters()}
    for name, domain in OF_MODELS.get(ranker.model_name, {}).items():
        if mine and name in own:
            found.setdefault(name, domain)
        elif name not in fixed and name not in in_model:
            found.setdefault(f"model__{name}", domain)
    known = ranker.get_params(deep=True)
    return {
        name: domain
        for name, domain in found.items()
        if domain is not None and name in known and name not in set_by_user
    }


def _given_to_model(ranker: Ranker) -> set[str]:
    """Return the parameters of the model that are neither its defaults nor the ranker's."""
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


# --- a space of the user's own ---------------------------------------------------------------


def checked_domains(ranker: Ranker, space: Any) -> dict[str, Domain]:
    """Return a space of the user's own as domains, or say what is wrong with it.

    Parameters
    ----------
    space : mapping from names of parameters to
        ``(low, high)`` or ``(low, high, "log")``, a range with both ends: whole numbers for a
        parameter that takes them, else any; a list of choices; a domain of this module; or a
        distribution of Optuna. ``model__max_bins`` is a parameter of the model.
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
    found = {}
    for given, values in space.items():
        name = str(given).replace(".", "__")
        found[name] = _domain(name, values, *_default_and_kind(ranker, name))
    return found


def _default_and_kind(ranker: Ranker, name: str) -> tuple[Any, str]:
    """Return the value of a parameter before tuning, and the text of its annotation."""
    known = ranker.get_params(deep=True)
    part, dots, field = name.partition("__")
    if dots and part in ("loss", "model", "solver") and part in known:
        owner = ranker._part_of(part)
        if name not in known:
            raise unknown_parameter(type(owner).__name__, field, params_of(owner))
    else:
        owner = ranker
        if name not in known:
            own = ranker.get_params(deep=False)
            raise unknown_parameter(type(ranker).__name__, name, own, ranker._part_of("model"))
    return known[name], _annotation(owner, field if dots else name)


def _annotation(owner: Any, name: str) -> str:
    kinds: dict[str, Any] = {}
    if is_dataclass(owner):
        kinds = {field.name: field.type for field in fields(owner)}
    else:
        parameters = inspect.signature(type(owner).__init__).parameters
        kinds = {key: parameter.annotation for key, parameter in parameters.items()}
    kind = kinds.get(name, "")
    return kind.__name__ if isinstance(kind, type) else str(kind)


def _domain(name: str, given: Any, default: Any, kind: str) -> Domain:
    if hasattr(given, "suggest") and hasattr(given, "holds"):
        domain: Domain = given
        return domain
    if type(given).__module__.startswith("optuna.distributions"):
        return OptunaDistribution(given)
    if isinstance(given, list | range | np.ndarray):
        choices = [one.item() if isinstance(one, np.generic) else one for one in given]
        if not choices:
            raise UsageError(f"space[{name!r}] is an empty list; name the values to choose from.")
        for choice in choices:
            check_range(name.rpartition("__")[2], choice)
        return Choice(*choices)
    if not isinstance(given, tuple):
        raise UsageError(
            f"space[{name!r}] is {given!r}: give a range (low, high), (low, high, 'log') or a list "
            "of choices; a value that stays is set on the ranker itself."
        )
    return _range(name, given, default, kind)


def _range(name: str, given: tuple[Any, ...], default: Any, kind: str) -> Domain:
    shown = f"space[{name!r}] is {given!r}"
    if len(given) not in (2, 3) or not all(_is_number(end) for end in given[:2]):
        raise UsageError(
            f"{shown}: a range is (low, high) or (low, high, 'log') with two finite numbers; "
            "choices are a list."
        )
    if len(given) == 3 and given[2] != "log":
        raise UsageError(f"{shown}: after low and high comes 'log' or nothing.")
    low, high, log = given[0], given[1], len(given) == 3
    if low > high:
        raise UsageError(f"{shown}, which is reversed; write ({high}, {low}).")
    if log and low <= 0:
        raise UsageError(f"{shown}: a range with 'log' begins above 0.")
    kinds = {one.strip() for one in kind.split("|")}
    takes_whole, takes_any = "int" in kinds, "float" in kinds
    free = default is None and kinds <= {"", "Any"}
    if isinstance(default, bool) or not (takes_whole or takes_any or free or _is_number(default)):
        raise UsageError(
            f"{shown}, but {name} takes no numbers (it is {default!r}); give a list of choices."
        )
    for end in (low, high):
        check_range(name.rpartition("__")[2], end)
    whole = isinstance(low, Integral) and isinstance(high, Integral)
    only_whole = isinstance(default, Integral) or (takes_whole and not takes_any)
    if only_whole and not takes_any:
        if not whole:
            raise UsageError(f"{shown}, but {name} takes whole numbers; write such ends.")
        return Ints(int(low), int(high), log)
    if whole and not takes_any and not isinstance(default, float):
        return Ints(int(low), int(high), log)
    return Log(float(low), float(high)) if log else Floats(float(low), float(high))


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and isfinite(value)
