"""``rankwright inspect MODEL``: what a model file holds, and what its model goes by."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

from rankwright.cli import console

if TYPE_CHECKING:
    from rankwright.rankers.base import Ranker

_LISTED = 20


def inspect_model(
    path: str, json: bool, *, train: str | None = None, read: dict[str, Any] | None = None
) -> None:
    """Print the ranker of a model file: its parameters, what chose it, and what it goes by.

    With the data ``train``, also whether its objective is jointly convex.
    """
    from rankwright.cli.model import open_model

    ranker = open_model(path)
    found = _about(ranker)
    if train is not None:
        found["joint_convexity"] = _joint_convexity(ranker, train, read or {})
    if json:
        console.print_json(found)
        return
    console.show(path, "bold")
    parameters = ", ".join(f"{name}={value!r}" for name, value in found["parameters"].items())
    console.show(f"  {found['ranker']}, model {found['model']}")
    console.show(f"  {parameters or 'default parameters'}")
    chosen = "".join(f"; {name} {value:.4f}" for name, value in found["chosen"].items())
    console.show(
        f"  {found['features']:,} features, round {found['best_iteration']}{chosen} "
        f"({found['convention']})"
    )
    if train is not None:
        console.show(f"  {found['joint_convexity']['verdict']}")
    by = found["goes_by"]
    console.show(by["what"], "bold")
    for name, value in list(by["values"].items())[:_LISTED]:
        console.show(f"  {value:>12.6g}  {name}")
    for line in by.get("lines", [])[:_LISTED]:
        console.show(f"  {line}")
    rest = len(by["values"]) + len(by.get("lines", [])) - _LISTED
    if rest > 0:
        console.show(f"  and {rest:,} more; --json shows all")


def _about(ranker: Ranker) -> dict[str, Any]:
    defaults = type(ranker)().get_params(deep=False)
    given = {
        name: value
        for name, value in ranker.get_params(deep=False).items()
        if value != defaults[name] and name != "model"
    }
    at = ranker.best_iteration_ - 1
    chosen = {
        name: values[at]
        for name, values in ranker.curve_.items()
        if name != "loss" and at < len(values)
    }
    return {
        "ranker": ranker.name,
        "model": ranker.model_name,
        "parameters": given,
        "features": ranker.n_features_in_,
        "best_iteration": ranker.best_iteration_,
        "convention": ranker.convention,
        "chosen": chosen,
        "goes_by": _goes_by(ranker),
    }


def _joint_convexity(ranker: Ranker, train: str, read: dict[str, Any]) -> dict[str, Any]:
    from rankwright.data.files import load
    from rankwright.rankers.joint_convexity import joint_convexity

    found = joint_convexity(ranker, load(train, **read).with_n_features(ranker.n_features_in_))
    return {
        "l2": found.l2,
        "needed": found.needed if isfinite(found.needed) else None,
        "holds": found.holds,
        "verdict": str(found),
    }


def _goes_by(ranker: Ranker) -> dict[str, Any]:
    """Return the weights of a linear model, or the features of a tree model by gain.

    A model that can be read as text has ``describe(names)``: a heading, then a line for each part.
    """
    model: Any = ranker.model_
    if hasattr(model, "describe"):
        numbers = range(1, model.n_features + 1)  # as in LETOR files
        names = [str(name) for name in getattr(ranker, "feature_names_in_", numbers)]
        what, *lines = model.describe(names)
        return {"what": what, "values": {}, "lines": lines}
    if hasattr(model, "coef"):
        weights = ranker.weights_
        kept = {name: weight for name, weight in weights.items() if weight != 0.0}
        zeros = len(weights) - len(kept)
        return {"what": f"weights, the largest first; {zeros:,} are zero", "values": kept}
    if hasattr(model, "importance"):
        from rankwright.explanation.importance import importance

        gains = importance(ranker, "gain")
        used = {name: gain for name, gain in gains.items() if gain > 0.0}
        return {
            "what": f"{model.n_trees:,} trees; features by the gain of their splits",
            "values": used,
        }
    return {"what": "a model without weights by feature", "values": {}}
