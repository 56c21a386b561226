"""``onnx``: an ONNX graph in double precision, from ``features`` (n, d) to ``scores`` (n, 1).

Trees are the operator TreeEnsemble of ai.onnx.ml 5, which holds thresholds and leaves in double
precision and says where a missing value (NaN) goes. Weights and layers are matrix products; gaps
are filled in the graph.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rankwright import __version__
from rankwright.core.types import F64
from rankwright.errors import MissingExtraError
from rankwright.export.target import (
    DOUBLE,
    KEPT,
    REFUSED,
    Job,
    ParityError,
    Target,
    Written,
    accepts_missing,
)
from rankwright.models.portable import Blend, Network, OneKind, PortableForest, forest_in

_OPSET, _ML_OPSET, _IR = 21, 5, 10


class Onnx(Target):
    """An ONNX file for any runtime that knows ai.onnx.ml 5."""

    families = frozenset({"linear", "additive", "trees", "network", "blend"})
    single = False
    evaluator = "onnxruntime"

    def write(self, job: Job) -> Written:
        """Return model.onnx."""
        model = job.model
        graph = _Graph()
        forest = forest_in(model)
        if forest is not None:
            forest.check_numeric(self.name)
        if isinstance(model, Blend):
            *before, last = [graph.part(part, "") for part in model.parts]
            total = before[0]
            for part in before[1:]:
                total = graph.add(total, part)
            graph.add(total, last, "scores")
        else:
            graph.part(model, "scores")
        takes = accepts_missing(model)
        return Written(
            files={"model.onnx": graph.bytes(len(job.names), job)},
            epsilon=DOUBLE,
            missing=KEPT if takes.all() else REFUSED,
            takes_missing=takes,
            more={"onnx": {"ai.onnx": _OPSET, "ai.onnx.ml": _ML_OPSET, "ir_version": _IR}},
        )

    def scores(self, folder: Path, about: Mapping[str, Any], X: F64) -> F64:  # noqa: ARG002
        """Return onnxruntime's scores."""
        try:
            import onnxruntime
        except ImportError:
            raise MissingExtraError("onnxruntime", "onnx", "verifying an ONNX file") from None
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        path = folder / "model.onnx"
        try:
            session = onnxruntime.InferenceSession(
                path.read_bytes(), options, providers=["CPUExecutionProvider"]
            )
            (found,) = session.run(["scores"], {"features": X})
        except Exception as error:  # onnxruntime's errors have no base of their own
            reason = str(error).splitlines()[0][:200]
            raise ParityError(f"onnxruntime cannot run {path}: {reason}") from None
        return np.asarray(found, np.float64).ravel()


class _Graph:
    """Nodes and constants under way; ``features`` goes in, ``scores`` comes out."""

    def __init__(self) -> None:
        try:
            from onnx import TensorProto, helper, numpy_helper
        except ImportError:
            raise MissingExtraError("onnx", "onnx", "writing an ONNX file") from None
        self._types, self._make, self._tensors = TensorProto, helper, numpy_helper
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def _constant(self, values: Any) -> str:
        name = f"constant_{len(self._constants)}"
        array = np.ascontiguousarray(values, np.float64)
        self._constants.append(self._tensors.from_array(array, name))
        return name

    def _node(self, kind: str, *inputs: str, output: str = "", **more: Any) -> str:
        output = output or f"step_{len(self._nodes)}"
        self._nodes.append(self._make.make_node(kind, list(inputs), [output], **more))
        return output

    def part(self, model: OneKind, output: str) -> str:
        """Add a model and return its scores, under the name ``output`` where one is given."""
        if isinstance(model, PortableForest):
            return self.trees(model, output)
        h = self.filled(model.fill)
        if isinstance(model, Network):
            return self.network(h, model.layers, model.activation, output)
        layer = model.coef[:, None], np.array([model.intercept])
        return self.network(h, (layer,), "", output)

    def add(self, one: str, other: str, output: str = "") -> str:
        """Add a sum and return its name."""
        return self._node("Add", one, other, output=output)

    def filled(self, fill: F64 | None) -> str:
        """Return the features with their gaps filled."""
        if fill is None:
            return "features"
        gaps = self._node("IsNaN", "features")
        return self._node("Where", gaps, self._constant(fill[None, :]), "features")

    def network(self, h: str, layers: Any, activation: str, output: str) -> str:
        """Add layers; the last makes the scores."""
        for number, (weight, constant) in enumerate(layers, 1):
            last = number == len(layers)
            product = self._node("MatMul", h, self._constant(weight))
            h = self.add(product, self._constant(constant), output if last else "")
            if not last:
                h = self._activated(h, activation)
        return h

    def _activated(self, z: str, name: str) -> str:
        if name != "elu":
            return self._node({"relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh"}[name], z)
        # not every runtime has Elu in double precision
        zero, one = self._constant([0.0]), self._constant([1.0])
        below = self._node("Sub", self._node("Exp", self._node("Min", z, zero)), one)
        return self._node("Where", self._node("Greater", z, zero), z, below)

    def trees(self, model: PortableForest, output: str) -> str:
        """Add the trees and the initial score, to which those of one leaf belong."""
        make, double = self._make, self._types.DOUBLE
        inner = model.left != np.arange(len(model.left))
        place = np.where(inner, np.cumsum(inner) - 1, np.cumsum(~inner) - 1)
        splits = np.flatnonzero(inner)
        constant = float(model.value[model.roots[~inner[model.roots]]].sum())
        if not len(splits):  # every document scores the same
            nothing = (np.zeros((model.n_features, 1)), np.array([model.offset + constant]))
            features = self.filled(np.zeros(model.n_features))
            return self.network(features, (nothing,), "", output)
        n = len(splits)
        left, right = model.left[splits], model.right[splits]
        cuts = model.threshold[splits]
        sums = self._node(
            "TreeEnsemble",
            "features",
            domain="ai.onnx.ml",
            n_targets=1,
            aggregate_function=1,
            post_transform=0,
            tree_roots=place[model.roots[inner[model.roots]]].tolist(),
            nodes_modes=make.make_tensor("modes", self._types.UINT8, (n,), [0] * n),
            nodes_featureids=model.feature[splits].tolist(),
            nodes_splits=make.make_tensor("splits", double, (n,), cuts.tolist()),
            nodes_truenodeids=place[left].tolist(),
            nodes_trueleafs=(~inner[left]).astype(int).tolist(),
            nodes_falsenodeids=place[right].tolist(),
            nodes_falseleafs=(~inner[right]).astype(int).tolist(),
            nodes_missing_value_tracks_true=model.missing_left[splits].astype(int).tolist(),
            leaf_targetids=[0] * int((~inner).sum()),
            leaf_weights=make.make_tensor(
                "leaves", double, (int((~inner).sum()),), model.value[~inner].tolist()
            ),
        )
        return self.add(sums, self._constant([model.offset + constant]), output)

    def bytes(self, width: int, job: Job) -> bytes:
        """Return the file."""
        make, double = self._make, self._types.DOUBLE
        graph = make.make_graph(
            self._nodes,
            job.title,
            [make.make_tensor_value_info("features", double, ["n", width])],
            [make.make_tensor_value_info("scores", double, ["n", 1])],
            initializer=self._constants,
        )
        opsets = [make.make_opsetid("", _OPSET), make.make_opsetid("ai.onnx.ml", _ML_OPSET)]
        model = make.make_model(
            graph,
            opset_imports=opsets,
            ir_version=_IR,
            producer_name="rankwright",
            producer_version=__version__,
        )
        make.set_model_props(model, {"features": " ".join(job.names)})
        content: bytes = model.SerializeToString(deterministic=True)
        return content
