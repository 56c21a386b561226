"""LightGBM's text: rules become trees of one split that LightGBM itself loads."""

import lightgbm
import numpy as np
import pytest
from exported_models import named, of_rules, of_weights

from rankwright.errors import UsageError
from rankwright.export.folder import export_model


def test_lightgbm_itself_has_the_scores_and_names(tmp_path):
    ranker = named(of_rules([(0, 0.5, 1.0), (1, -1.0, 2.0)], initial=0.25), "clicks", "age")
    export_model(ranker, "lightgbm", tmp_path / "out")
    booster = lightgbm.Booster(model_file=tmp_path / "out" / "model.txt")
    assert booster.feature_name() == ["clicks", "age"]
    rows = np.array([[0.5, -1.0], [0.6, -1.0], [0.0, 0.0], [np.nan, 0.0]])
    assert booster.predict(rows).tolist() == [0.25, 0.25 + 1, 0.25 + 2, 0.25 + 2]


def test_weights_have_no_place_there(tmp_path):
    with pytest.raises(UsageError, match="lightgbm has no place for a linear model"):
        export_model(of_weights([1.0]), "lightgbm", tmp_path / "out")
