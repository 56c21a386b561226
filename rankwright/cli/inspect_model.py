"""``rankwright inspect MODEL``: what a model file holds, and its feature importance."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import TYPE_CHECKING, Any

from rankwright.cli import console

if TYPE_CHECKING:
    from rankwright.rankers.base import Ranker

_LISTED = 20


def inspect_model(
    path: str, json: bool, *, train: str | None = None, read: dict[str, Any] | None = None
) -> None:
    """Print the ranker of a model file: its parameters, what chose it, and its feature importance.

    With the data ``train``, also whether its objective is jointly convex.
    """
    from rankwright.model_files import load_model

    ranker = load_model(path)
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
    at = ranker.best_iteration_ - 1
    chosen = {
        name: values[at]
        for name, values in ranker.curve_.items()
        if name != "loss" and at < len(values)
    }
    return {
        "ranker": ranker.name,
        "model": ranker.model_name,
        "parameters": dict(_given(ranker)),
        "features": ranker.n_features_in_,
        "best_iteration": ranker.best_iteration_,
        "convention": ranker.convention,
        "chosen": chosen,
        "goes_by": _goes_by(ranker),
    }


def _given(ranker: Ranker) -> Iterator[tuple[str, Any]]:
    """Yield the parameters that differ from the defaults; those of parts as ``model.max_bins``."""
    from rankwright.core.parameters import PARTS, params_of, part_name, same
    from rankwright.rankers.search_space import given_parameters

    for name, value in given_parameters(ranker).items():
        params = params_of(value) if name in PARTS and not isinstance(value, str) else {}
        if name != "model":
            yield name, part_name(PARTS[name], value) if params else _plain(value)
        usual = params_of(type(value)()) if params else {}
        for key, one in params.items():
            if not same(one, usual[key]):
                yield f"{name}.{key}", _plain(one)


def _plain(value: Any) -> Any:
    """Return a parameter as JSON holds it, a metric or function by what it shows as."""
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    known = value is None or isinstance(value, str | int | float | dict)
    return value if known else repr(value)


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
