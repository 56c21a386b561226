"""Parameters of model files of version 0.1, under the names and in the parts of today.

In 0.1 a ranker had the parameters of all its models side by side, None for "the model's own
default", and the name of the model among them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from inspect import signature
from typing import Any

from rankwright import registry

RENAMED = {
    "batch_documents": "batch_size",
    "categorical": "categorical_feature",
    "early_stopping": "early_stopping_rounds",
    "feature_fraction": "colsample_bytree",
    "hidden": "hidden_layer_sizes",
    "max_iterations": "max_iter",
    "min_curvature": "min_child_weight",
    "min_documents": "min_child_samples",
    "monotone": "monotone_constraints",
    "n_trees": "n_estimators",
    "row_fraction": "subsample",
    "seed": "random_state",
    "tolerance": "tol",
}
_TREES = {"l2": "reg_lambda", "l1": "reg_alpha"}
_INTERVAL = {"solver": "qp_solver"}


def migrated(name: str, parameters: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the ranker and parameters of today for those of a file of version 0.1."""
    family = str(parameters["model"])
    renamed = {**RENAMED, **(_TREES if family in ("trees", "forest") else {})}
    if name == "intervalrank":
        renamed |= _INTERVAL
    given = {renamed.get(k, k): v for k, v in parameters.items() if k != "model"}
    model = registry.resolve("models", family)
    of_model = {k: given[k] for k in _names(model) if given.get(k) is not None}
    if name == "compose":
        loss = _loss(given.pop("loss"), given.pop("loss_params", None))
        return "ranker", {**_own("ranker", given), "loss": loss, "model": model(**of_model)}
    kind = registry.resolve("rankers", name)
    own = _own(name, given, keep_none=_names_of_loss(kind))
    if "loss" in _parameters(kind):  # RandomForest and CofiRank
        if "inner" in given:
            inner = registry.resolve("rankers", given["inner"])
            own["loss"] = _loss(inner.loss_class, given.get("inner_params"))
        elif "loss" in given:
            own["loss"] = _loss(given["loss"], given.get("loss_params"))
    if family != kind.model_class or not of_model.keys() <= own.keys():
        for field in _names(model):
            own.pop(field, None)
        own["model"] = model(**of_model)
    lost = _names_of_loss(kind) & given.keys() - own.keys()
    if any(given[field] != _default(kind, field) for field in lost):
        return "ranker", _generic(kind, given, own, model(**of_model))
    return name, own


def _generic(kind: Any, given: dict[str, Any], own: dict[str, Any], model: Any) -> dict[str, Any]:
    """Return the parameters of a `Ranker` of parts, where a named one has not all of them today."""
    loss = registry.resolve("losses", kind.loss_class)
    of_loss = {k: given[k] for k in _names(loss) if k in given}
    return {**_own("ranker", {**given, **own}), "loss": loss(**of_loss), "model": model}


def _own(
    name: str, given: Mapping[str, Any], keep_none: set[str] | frozenset[str] = frozenset()
) -> dict[str, Any]:
    known = _parameters(registry.resolve("rankers", name))
    return {
        k: v
        for k, v in given.items()
        if k in known and k not in ("loss", "model") and (v is not None or k in keep_none)
    }


def _loss(name: str, params: Any) -> Any:
    renamed = {RENAMED.get(k, k): v for k, v in (params or {}).items()}
    kind = registry.resolve("losses", name)
    return kind(**{k: v for k, v in renamed.items() if k in _names(kind)})


def _parameters(kind: Any) -> set[str]:
    return set(signature(kind.__init__).parameters)


def _names(part: Any) -> set[str]:
    return {field.name for field in fields(part)}


def _names_of_loss(kind: Any) -> set[str]:
    return set() if kind.loss_class is None else _names(registry.resolve("losses", kind.loss_class))


def _default(kind: Any, field: str) -> Any:
    fixed: dict[str, Any] = kind.fixed
    if field in fixed:
        return fixed[field]
    return getattr(registry.resolve("losses", kind.loss_class)(), field)
