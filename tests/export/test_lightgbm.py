"""LightGBM's text: rules become trees of one split that LightGBM itself loads."""

import json

import lightgbm
import numpy as np
import pytest
from exported_models import named, of_rules, of_weights

from rankwright.errors import UsageError
from rankwright.export import lightgbm as export_lightgbm
from rankwright.export.folder import export_model
from rankwright.export.target import ParityError


def test_lightgbm_itself_has_the_scores_and_names(tmp_path):
    ranker = named(of_rules([(0, 0.5, 1.0), (1, -1.0, 2.0)], initial=0.25), "clicks", "age")
    export_model(ranker, "lightgbm", tmp_path / "out")
    booster = lightgbm.Booster(model_file=tmp_path / "out" / "model.txt")
    assert booster.feature_name() == ["clicks", "age"]
    rows = np.array([[0.5, -1.0], [0.6, -1.0], [0.0, 0.0], [np.nan, 0.0]])
    assert booster.predict(rows).tolist() == [0.25, 0.25 + 1, 0.25 + 2, 0.25 + 2]


def test_a_damaged_text_is_refused_before_lightgbm_reads_it(tmp_path, monkeypatch):
    export_model(of_rules([(0, 0.5, 1.0), (1, -1.0, 2.0)]), "lightgbm", tmp_path)
    about = json.loads((tmp_path / "export.json").read_text())
    text = (tmp_path / "model.txt").read_text()
    monkeypatch.setattr(export_lightgbm, "run_evaluator", lambda *_: pytest.fail("it was read"))
    for old, new in (
        ("leaf_value=", "leaf_value=t"),
        ("tree_sizes=", "tree_sizes=9"),
        ("end of", ""),
    ):
        assert old in text
        (tmp_path / "model.txt").write_text(text.replace(old, new, 1))
        with pytest.raises(ParityError, match=r"LightGBM cannot read .*model\.txt: .*\."):
            export_lightgbm.LightGBM().scores(tmp_path, about, np.zeros((1, 2)))


def test_weights_have_no_place_there(tmp_path):
    with pytest.raises(UsageError, match="lightgbm has no place for a linear model"):
        export_model(of_weights([1.0]), "lightgbm", tmp_path / "out")
