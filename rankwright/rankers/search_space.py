"""What tuning may choose: a range or a list of values for each parameter.

A ranker's space is that of its model, given here once, with what the ranker itself declares as
``search_space``; None takes a parameter out::

    class LambdaMART(Ranker):
        search_space = {"truncation": Ints(5, 100, log=True)}

Parameters that the user sets are never searched.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from rankwright.core.parts import params_of, same

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
        return trial.suggest_categorical(name, self.values)

    def holds(self, value: Any) -> bool:
        """Whether ``value`` is one of them."""
        return value in self.values


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
    defaults = [params_of(type(model)())]
    if type(usual) is type(model):
        defaults.append(params_of(usual))
    return {
        name
        for name, value in params_of(model).items()
        if not any(same(value, default[name]) for default in defaults)
    }


def given_parameters(ranker: Ranker) -> dict[str, Any]:
    """Return the parameters of ``ranker`` that differ from their defaults."""
    default = type(ranker)().get_params(deep=False)
    return {
        name: value
        for name, value in ranker.get_params(deep=False).items()
        if not same(value, default[name])
    }
