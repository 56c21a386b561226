"""``vespa``: a rank profile with the model as ranking expressions.

Features are attributes of the document (float fields of the same names): ``attribute(name)``, which
is NaN where a document has none. A tree is nested ``if (x < t, yes, no)``, the form that Vespa
evaluates fastest and in float32: so t is the float32 next above the threshold, written out exactly;
``!(x >= t)`` sends NaN to yes. Put the file into ``schemas/SCHEMA/`` of the application package.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rankwright.core.types import F64
from rankwright.export.forest import Forest
from rankwright.export.portable import Linear, Network
from rankwright.export.target import (
    KEPT,
    REFUSED,
    SINGLE,
    Job,
    Target,
    Written,
    held_below,
    strictly_above,
    taken,
)
from rankwright.export.vespa_reader import score_profile
from rankwright.ranklib.java_numbers import java_double


class Vespa(Target):
    """A rank profile for Vespa's application package."""

    families = frozenset({"linear", "additive", "trees", "network"})
    single = True
    evaluator = "a strict reader of rank profiles and their expressions"

    def write(self, job: Job) -> Written:
        """Return NAME.profile."""
        model, held = job.model, None
        functions: dict[str, str] = {}
        if isinstance(model, Forest):
            model.need_numeric(self.name)
            model.need_shallow(self.name)
            held = held_below(model)
            score = _trees(model, job.names)
        else:
            features = _features(job.names, model.fill, functions)
            if isinstance(model, Linear):
                score = _weighted(model.coef, features)
            else:
                score = _network(model, features, functions)
        takes = taken(model)
        return Written(
            files={f"{job.title}.profile": _profile(job.title, functions, score).encode()},
            epsilon=SINGLE,
            missing=KEPT if takes.all() else REFUSED,
            takes_missing=takes,
            thresholds=held,
            notes=("Fields must be attributes of type float under the names of the features.",),
        )

    def scores(self, folder: Path, about: Mapping[str, Any], X: F64) -> F64:
        """Return the scores by `rankwright.export.vespa_reader`."""
        names = [feature["name"] for feature in about["features"]]
        return score_profile(folder / f"{about['name']}.profile", names, X)


def _profile(title: str, functions: dict[str, str], score: str) -> str:
    lines = [f"rank-profile {title} inherits default {{"]
    for name, expression in {**functions, "score": score}.items():
        lines += [f"    function {name}() {{", "        expression {"]
        lines += [f"            {line}" for line in expression.split("\n")]
        lines += ["        }", "    }"]
    return "\n".join([*lines, "    first-phase {", "        expression: score", "    }", "}", ""])


def _trees(model: Forest, names: tuple[str, ...]) -> str:
    cuts, missing_left = strictly_above(model.threshold).astype(np.float64), model.missing_left

    def nested(node: int) -> str:
        if model.left[node] == node:
            return java_double(model.value[node])
        x = f"attribute({names[int(model.feature[node])]})"
        cut = java_double(cuts[node])
        holds = f"!({x} >= {cut})" if missing_left[node] else f"{x} < {cut}"
        return f"if ({holds}, {nested(int(model.left[node]))}, {nested(int(model.right[node]))})"

    first = [java_double(model.initial)] if model.initial else []
    return " +\n".join([*first, *(nested(int(root)) for root in model.roots)])


def _features(names: tuple[str, ...], fill: F64 | None, functions: dict[str, str]) -> list[str]:
    """Return an expression for each feature; with ``fill``, a function that fills its gaps."""
    plain = [f"attribute({name})" for name in names]
    if fill is None:
        return plain
    for name, x, value in zip(names, plain, fill.tolist(), strict=True):
        functions[f"filled_{name}"] = f"if (isNan({x}), {java_double(value)}, {x})"
    return [f"filled_{name}" for name in names]


def _weighted(weights: Any, terms: list[str]) -> str:
    kept = [
        f"{java_double(w)} * {term}" for w, term in zip(weights.tolist(), terms, strict=True) if w
    ]
    return " +\n".join(kept) or "0.0"


def _network(model: Network, h: list[str], functions: dict[str, str]) -> str:
    *hidden, (last, constant) = model.layers
    for number, (weight, bias) in enumerate(hidden, 1):
        names = []
        for unit in range(weight.shape[1]):
            total = f"{_weighted(weight[:, unit], h)} +\n{java_double(bias[unit])}"
            names.append(f"layer{number}_unit{unit + 1}")
            functions[names[-1]] = f"{model.activation}({total})"
        h = names
    return f"{_weighted(last[:, 0], h)} +\n{java_double(constant[0])}"
