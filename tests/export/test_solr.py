"""Solr: a millionth on every threshold, and models too large for ZooKeeper."""

import json

import numpy as np
import pytest
from exported_models import of_rules, scored

from rankwright.core.dtypes import not_above
from rankwright.export import solr
from rankwright.export.folder import export_model, verify_export


def test_solr_adds_a_millionth_to_every_threshold():
    cuts = not_above(np.array([0.5, 0.1, -0.3, 12.0, 1e-3, 1e30, 0.0]))
    written, reached = solr.lowered(cuts)
    assert (written + np.float32(1e-6)).astype(float).tolist() == reached.tolist()
    assert reached.tolist() == cuts.astype(float).tolist()
    assert written[0] != cuts[0]


@pytest.mark.parametrize("cut", [1e-35, -1e-35, 1e-9, -1e-9])
def test_solr_near_zero_keeps_zero_on_its_side_and_says_that_it_is_not_exact(tmp_path, cut):
    ranker = of_rules([(0, cut, 1.0)])
    found, about = scored(ranker, "solr", tmp_path / "o", [[-0.01, 0], [0, 0], [0.01, 0]])
    assert found.tolist() == [0.0, float(cut < 0), 1.0]
    assert about["precision"]["inexact_thresholds"] == 1
    verify_export(tmp_path / "o")


def test_a_model_too_large_for_zookeeper_is_wrapped(tmp_path, monkeypatch):
    monkeypatch.setattr(solr.Solr, "limit", 100)
    about = export_model(of_rules([(0, 0.5, 1.0)]), "solr", tmp_path / "o")
    assert about["upload"][1]["file"] == "wrapper.json"
    wrapper = json.loads((tmp_path / "o" / "wrapper.json").read_text())
    assert wrapper["class"].endswith("DefaultWrapperModel")
    assert "ZooKeeper" in about["notes"][0]
    verify_export(tmp_path / "o")
