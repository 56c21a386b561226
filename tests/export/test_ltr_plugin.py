"""Elasticsearch and OpenSearch: no negative scores, features by name, sizes of requests."""

import json

import numpy as np
import pytest
from exported_models import of_rules, of_weights, scored

from rankwright.export.folder import export_model
from rankwright.export.ltr_plugin import Elasticsearch
from rankwright.export.target import ParityError


@pytest.mark.parametrize("to", ["elasticsearch", "opensearch"])
def test_search_engines_get_no_negative_score(tmp_path, to):
    ranker = of_rules([(0, 0.5, -3.0), (1, 0.5, 1.0)], initial=-2.0)
    rows = [[1, 0], [0, 0], [1, 1], [0, 1]]
    found, about = scored(ranker, to, tmp_path / "o", rows)
    assert about["score"]["offset"] == pytest.approx(5.0)
    assert found == pytest.approx([0.0, 3.0, 1.0, 4.0], abs=1e-5)
    weights = export_model(of_weights([1.0, 2.0]), to, tmp_path / "w")  # features may be negative
    assert any("negative" in note for note in weights["notes"])


@pytest.mark.parametrize("to", ["elasticsearch", "opensearch"])
def test_the_least_score_is_not_negative_after_float32_has_added_it_up(tmp_path, to):
    """Sums of a thousand rounded leaves fall below their exact sum."""
    leaves = -np.random.default_rng(0).lognormal(sigma=2.0, size=1000)
    ranker = of_rules([(0, 0.5, leaf) for leaf in leaves], initial=-1e3)
    found, _ = scored(ranker, to, tmp_path / "o", [[1, 0], [0, 0]])
    assert (found >= 0.0).all()


def test_a_feature_set_in_another_order_is_refused(tmp_path):
    folder = tmp_path / "o"
    about = export_model(of_weights([1.0, 2.0]), "elasticsearch", folder)
    path = folder / "featureset.json"
    whole = json.loads(path.read_text())
    whole["featureset"]["features"].reverse()
    path.write_text(json.dumps(whole))
    with pytest.raises(ParityError, match=r"not those of export\.json"):
        Elasticsearch().scores(folder, about, np.zeros((1, 2)))


def test_a_model_too_large_for_a_request_is_noted(tmp_path, monkeypatch):
    monkeypatch.setattr(Elasticsearch, "limit", 100)
    about = export_model(of_rules([(0, 0.5, 1.0)]), "elasticsearch", tmp_path / "o")
    assert any("http.max_content_length" in note for note in about["notes"])
