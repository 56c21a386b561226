"""The ``##`` lines of RankLib's models, from a ranker's parameters and back.

They say how a model was made and have no say in what it scores, so one that cannot be read is left
at the ranker's default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from rankwright.core.parameters import params_of
from rankwright.models import network as layers
from rankwright.models.trees import Trees
from rankwright.rankers.base import Ranker
from rankwright.ranklib.java_numbers import java_double
from rankwright.ranklib.model_network import Network
from rankwright.ranklib.model_text import Body, ModelText


class Setting(NamedTuple):
    """A line: what RankLib calls it, our parameter, and what is written without one."""

    name: str
    parameter: str | None
    default: int | float | str


_BOOSTED = (
    Setting("No. of trees", "n_estimators", 1000),
    Setting("No. of leaves", "num_leaves", 10),
    Setting("No. of threshold candidates", "max_bins", 256),
    Setting("Learning rate", "learning_rate", 0.1),
    Setting("Stop early", "early_stopping_rounds", 100),
)
_NETWORK = (Setting("Epochs", "epochs", 100),)
SETTINGS: Mapping[str, tuple[Setting, ...]] = {
    "MART": _BOOSTED,
    "LambdaMART": _BOOSTED,
    "Random Forests": (
        Setting("No. of bags", "n_bags", 300),
        Setting("Sub-sampling", "bag_fraction", 1.0),
        Setting("Feature-sampling", "colsample_bytree", 0.3),
        Setting("No. of trees", "n_estimators", 1),
        Setting("No. of leaves", "num_leaves", 100),
        Setting("No. of threshold candidates", "max_bins", 256),
        Setting("Learning rate", "learning_rate", 0.1),
    ),
    "Coordinate Ascent": (
        Setting("Restart", "n_restarts", 5),
        Setting("MaxIteration", "n_steps", 25),
        Setting("StepBase", None, 0.05),
        Setting("StepScale", None, 2.0),
        Setting("Tolerance", "tol", 0.001),
        Setting("Regularized", None, "false"),
        Setting("Slack", "reg", 0.001),
    ),
    "Linear Regression": (Setting("Lambda", "l2", 1e-10),),
    "AdaRank": (
        Setting("Iteration", "n_rounds", 500),
        Setting("Train with enqueue", "enqueue", "Yes"),
        Setting("Tolerance", "tol", 0.002),
        Setting("Max consecutive selection count", "max_selections", 5),
    ),
    "RankBoost": (
        Setting("Iteration", "n_rounds", 300),
        Setting("No. of threshold candidates", "n_candidates", 10),
    ),
    "RankNet": _NETWORK,
    "LambdaRank": _NETWORK,
    "ListNet": (Setting("Epochs", "epochs", 1500),),
}


def settings_of(name: str, ranker: Ranker, body: Body) -> tuple[tuple[str, str], ...]:
    """Return the lines for a model that ``ranker`` made."""
    nested = ranker.get_params(deep=True)
    of_model = {k: v for k, v in nested.items() if k.startswith("model__")}
    parameters = {**nested, **{k.removeprefix("model__"): v for k, v in of_model.items()}}
    lines = []
    for setting in SETTINGS[name]:
        value = parameters.get(setting.parameter) if setting.parameter else None
        if setting.parameter == "reg" and not value:
            value = None
        if setting.name == "Regularized":
            value = "true" if parameters.get("reg") else "false"
        lines.append((setting.name, _text(setting.default if value is None else value)))
    if isinstance(body, Network):
        lines.append(("No. of features", str(len(body.features))))
        if name != "ListNet":
            lines.append(("No. of hidden layers", str(len(body.hidden))))
            lines += [(f"Layer {i}", f"{n} neurons") for i, n in enumerate(body.hidden, 1)]
    return tuple(lines)


def parameters_of(model: ModelText) -> dict[str, Any]:
    """Return the parameters of our ranker that made, or could have made, a RankLib model."""
    given = dict(model.settings)
    found: dict[str, Any] = {}
    for setting in SETTINGS[model.name]:
        if setting.parameter is not None and setting.name in given:
            value = _value(given[setting.name], setting.default)
            if value is not None:
                found[setting.parameter] = value
    if model.name == "Coordinate Ascent" and given.get("Regularized") != "true":
        found.pop("reg", None)
    if isinstance(model.body, Network):
        sizes = (*model.body.hidden, 1)
        trained = {"epochs": found.pop("epochs")} if "epochs" in found else {}
        found["model"] = layers.Network(hidden_layer_sizes=sizes, activation="sigmoid", **trained)
    if SETTINGS[model.name] is _BOOSTED:
        of_trees = {name: found.pop(name) for name in params_of(Trees()) if name in found}
        found["model"] = Trees(**of_trees)
    return found


def _text(value: int | float | str) -> str:
    if isinstance(value, bool):
        return "Yes" if value else "No"
    if value == "all":
        return "-1"
    return java_double(value) if isinstance(value, float) else str(value)


def _value(text: str, default: int | float | str) -> int | float | bool | None:
    if isinstance(default, str):
        return {"yes": True, "no": False}.get(text.lower())
    try:
        return float(text) if isinstance(default, float) else int(float(text))
    except (ValueError, OverflowError):
        return None
