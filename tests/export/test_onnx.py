"""ONNX: one graph that has the scores; without its package nothing is written."""

import sys

import numpy as np
import pytest
from exported_models import of_rules, of_weights

from rankwright.errors import MissingExtraError
from rankwright.export.folder import export_model


def test_any_runtime_of_onnx_has_the_scores(tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    about = export_model(of_weights([0.5, -2.0]), "onnx", tmp_path / "out")
    (name,) = (name for name in about["files"] if name.endswith(".onnx"))
    session = onnxruntime.InferenceSession(str(tmp_path / "out" / name))
    (given,) = session.get_inputs()
    rows = np.array([[1.0, 1.0], [4.0, 0.0]], np.float64 if "double" in given.type else np.float32)
    (scores,) = session.run(None, {given.name: rows})
    assert np.ravel(scores).tolist() == [-1.5, 2.0]


def test_without_onnx_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtraError, match="needs onnx"):
        export_model(of_rules([(0, 0.5, 1.0)]), "onnx", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
