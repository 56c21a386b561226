"""JSON: the numbers of the model, and a reader of it in plain Python."""

import json

import numpy as np
from exported_models import named, of_rules, of_weights, scored


def test_the_file_holds_the_weights_and_what_stands_for_missing_values(tmp_path):
    ranker = named(of_weights([2.0, -1.0], fill=[0.5, 8.0]), "clicks", "age")
    found, _ = scored(ranker, "json", tmp_path / "out", [[1, 1], [np.nan, 1]])
    assert json.loads((tmp_path / "out" / "model.json").read_text()) == {
        "rankwright_model": 1,
        "family": "linear",
        "features": ["clicks", "age"],
        "coef": [2.0, -1.0],
        "fill": [0.5, 8.0],
    }
    assert found.tolist() == [2 - 1, 2 * 0.5 - 1]


def test_a_rule_is_a_tree_of_one_split(tmp_path):
    found, _ = scored(of_rules([(1, 0.5, 3.0)], initial=0.25), "json", tmp_path / "out", [[0, 1]])
    written = json.loads((tmp_path / "out" / "model.json").read_text())
    (tree,) = written["trees"]
    assert written["initial"] == 0.25
    assert (tree["feature"][0], tree["threshold"][0]) == (1, 0.5)
    assert (tree["value"][tree["left"][0]], tree["value"][tree["right"][0]]) == (0.0, 3.0)
    assert found.tolist() == [0.25 + 3.0]


def test_rules_of_every_feature_are_followed(tmp_path):
    rules = [(0, 0.5, 3.0), (1, 0.5, 10.0)]
    found, _ = scored(of_rules(rules), "json", tmp_path / "out", [[0, 0], [1, 0], [0, 1], [1, 1]])
    assert found.tolist() == [0.0, 3.0, 10.0, 13.0]
