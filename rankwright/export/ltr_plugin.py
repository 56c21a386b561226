"""Upload payloads for the learning-to-rank plugins of Elasticsearch and OpenSearch.

The plugin scores in float32. Trees and rules go as ``model/xgboost+json``, a nested dump in which a
split names its feature and sends x to "yes" where x < split_condition; weights as ``model/linear``;
networks as ``model/ranklib``, whose features are places in the feature set. The engine refuses
negative scores: a forest is raised by a constant, as a last tree of one leaf, so that none is below
0 even in float32; weights and networks without a last sigmoid cannot be, and a note says so.

Features of the set read a field of the document's own; they are a start, to be replaced by your
queries under the same names and in the same order.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from rankwright.core.types import F64
from rankwright.export.forest import Forest
from rankwright.export.ltr_plugin_reader import score_payload
from rankwright.export.portable import Linear
from rankwright.export.ranklib import ends_in_sigmoid, ranklib_text
from rankwright.export.target import (
    SINGLE,
    Job,
    Target,
    Written,
    held_below,
    shortest,
    strictly_above,
)


class LtrPlugin(Target):
    """What the two plugins have in common."""

    families = frozenset({"linear", "additive", "trees", "network"})
    single = True
    evaluator = "a strict reader of the plugin's payloads, in its float32 arithmetic"
    engine: ClassVar[str]
    limit: ClassVar[int] = 100 << 20  # bytes of a request that the engine takes by default

    def write(self, job: Job) -> Written:
        """Return featureset.json and model.json."""
        model, notes, scale, offset, held = job.model, [], 1.0, 0.0, None
        if isinstance(model, Forest):
            model.need_numeric(self.name)
            model.need_shallow(self.name)
            held, offset = held_below(model), max(0.0, -model.lowest(SINGLE))
            kind, definition = "model/xgboost+json", _dump(model, offset, job.names)
            takes, default = np.ones(len(job.names), bool), np.full(len(job.names), np.nan)
            missing = "a missing value scores as in the model, by the 'missing' of each split"
            if (model.rule[model.splits] != 0).any():
                notes.append("Splits say where missing values go; old plugins read them as 0.")
        else:
            default, takes = model.stand_in, ~np.isnan(model.stand_in)
            missing = "a missing value is what the feature set says ('missing' of its script)"
            if isinstance(model, Linear):
                kind, definition = "model/linear", _weights(model, job.names)
            else:
                kind = "model/ranklib"
                definition, scale, offset = ranklib_text(job)
            if not ends_in_sigmoid(model):
                notes.append(
                    f"Scores may be negative, which {self.engine} refuses outside of a rescore "
                    "query: use the model in one."
                )
        payload = {"model": {"name": job.title, "model": {"type": kind, "definition": definition}}}
        text = json.dumps(payload, allow_nan=False).encode()
        notes += self._note_of_size(len(text))
        features = json.dumps(_feature_set(job.names, default), indent=1, allow_nan=False)
        return Written(
            files={"featureset.json": features.encode(), "model.json": text},
            epsilon=SINGLE,
            missing=missing if takes.all() else "the model takes no missing values",
            takes_missing=takes,
            offset=offset,
            scale=scale,
            sigmoid=ends_in_sigmoid(model),
            thresholds=held,
            upload=self._upload(job.title),
            notes=tuple(notes),
        )

    def scores(self, folder: Path, about: Mapping[str, Any], X: F64) -> F64:
        """Return the scores by `rankwright.export.ltr_plugin_reader`."""
        names = [feature["name"] for feature in about["features"]]
        return score_payload(folder, names, X)

    def _note_of_size(self, size: int) -> list[str]:
        if size <= self.limit:
            return []
        return [
            f"The model has {size >> 20} MB, more than {self.engine} takes in a request by "
            "default: raise http.max_content_length, or fit fewer trees."
        ]

    def _upload(self, name: str) -> tuple[dict[str, str], ...]:
        features = f"/_ltr/_featureset/{name}"
        return (
            {"method": "PUT", "path": "/_ltr"},
            {"method": "POST", "path": features, "file": "featureset.json"},
            {"method": "POST", "path": f"{features}/_createmodel", "file": "model.json"},
        )


def _feature_set(names: tuple[str, ...], default: F64) -> dict[str, Any]:
    """Return features that read a field each, with what stands for a missing one."""
    features = []
    for name, value in zip(names, default.tolist(), strict=True):
        absent = "Float.NaN" if np.isnan(value) else "params.missing"
        source = f"doc['{name}'].size() == 0 ? {absent} : doc['{name}'].value"
        params = {} if np.isnan(value) else {"missing": float(shortest(value))}
        features.append(
            {
                "name": name,
                "params": [],
                "template_language": "script_feature",
                "template": {"lang": "painless", "source": source, "params": params},
            }
        )
    return {"featureset": {"features": features}}


def _weights(model: Linear, names: tuple[str, ...]) -> str:
    weights = {n: float(shortest(w)) for n, w in zip(names, model.coef, strict=True)}
    return json.dumps(weights, allow_nan=False)


def _dump(model: Forest, offset: float, names: tuple[str, ...]) -> str:
    """Return the trees as XGBoost dumps them, the initial score first and the offset last."""
    cuts, missing_left = strictly_above(model.threshold), model.missing_left

    def nested(node: int, at: int, depth: int) -> tuple[dict[str, Any], int]:
        left, right = int(model.left[node]), int(model.right[node])
        if left == node:
            return {"nodeid": at, "leaf": float(shortest(model.value[node]))}, at + 1
        yes, after = nested(left, at + 1, depth + 1)
        no, end = nested(right, after, depth + 1)
        own = {
            "nodeid": at,
            "depth": depth,
            "split": names[int(model.feature[node])],
            "split_condition": float(shortest(cuts[node])),
            "yes": at + 1,
            "no": after,
            "missing": at + 1 if missing_left[node] else after,
            "children": [yes, no],
        }
        return own, end

    trees = [nested(int(root), 0, 0)[0] for root in model.roots]
    first = [{"nodeid": 0, "leaf": float(shortest(model.initial))}] if model.initial else []
    last = [{"nodeid": 0, "leaf": float(shortest(offset))}] if offset else []
    return json.dumps([*first, *trees, *last], allow_nan=False)
