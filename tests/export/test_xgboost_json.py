"""XGBoost's JSON: children are neighbours there."""

import numpy as np
import pytest
from exported_models import chain, scored

from rankwright.export.target import ParityError
from rankwright.export.xgboost_json import XGBoostJson
from rankwright.models.portable import Forest, portable


def test_children_that_are_not_neighbours_are_numbered_anew_for_xgboost(tmp_path):
    """XGBoost takes the node after the left child for the right one."""
    ranker = chain(6)
    forest = portable(ranker._fitted(), ranker.model_name)
    assert isinstance(forest, Forest)
    assert (forest.right != forest.left + 1).any()
    rows = [[float(k) - 0.5, 0] for k in range(8)]
    found, _ = scored(ranker, "xgboost-json", tmp_path / "o", rows)
    assert found.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 6.0]


def test_a_damaged_file_is_refused_though_xgboost_quotes_its_bytes(tmp_path):
    _, about = scored(chain(2), "xgboost-json", tmp_path / "o", [[0.0, 0.0]])
    path = tmp_path / "o" / "model.json"
    path.write_bytes(path.read_bytes().replace(b'"learner"', b'"learner\xfa', 1))
    with pytest.raises(ParityError, match="XGBoost cannot read"):
        XGBoostJson().scores(tmp_path / "o", about, np.zeros((1, 2)))
