"""XGBoost's file, as the LTR plugins read it too (``model/xgboost+json+raw``)."""

import json

import numpy as np
import pytest
from exported_models import chain, fitted_rankers, of_rules, scored

from rankwright.export import export_model
from rankwright.export.target import ParityError
from rankwright.export.xgboost_json import XGBoostJson
from rankwright.models.portable import Forest, portable

# XGBoostRawJsonParser of both plugins takes these, and leaves their scores as they are
KNOWN = {"binary:logitraw", "rank:ndcg", "rank:map", "rank:pairwise", "reg:linear"}


def test_the_objective_is_one_that_the_plugins_know(tmp_path):
    for case in ("trees-initial", "additive", "linear"):
        export_model(fitted_rankers()[case], "xgboost-json", tmp_path / case)
        whole = json.loads((tmp_path / case / "model.json").read_text())
        assert whole["learner"]["objective"]["name"] in KNOWN, case


def test_the_trees_alone_have_the_whole_score(tmp_path):
    """The plugins do not read base_score."""
    ranker = of_rules([(0, 0.5, 1.0)], initial=0.25)
    found, _ = scored(ranker, "xgboost-json", tmp_path / "o", [[0, 0], [1, 0]])
    learner = json.loads((tmp_path / "o" / "model.json").read_text())["learner"]
    assert float(learner["learner_model_param"]["base_score"]) == 0.0
    trees = learner["gradient_booster"]["model"]["trees"]
    roots = [tree["split_conditions"][0] for tree in trees if tree["left_children"] == [-1]]
    assert roots == [0.25]
    np.testing.assert_array_equal(found, [0.25, 1.25])


def test_children_that_are_not_neighbours_are_numbered_anew_for_xgboost(tmp_path):
    """XGBoost takes the node after the left child for the right one."""
    ranker = chain(6)
    forest = portable(ranker._fitted(), ranker.model_name)
    assert isinstance(forest, Forest)
    assert (forest.right != forest.left + 1).any()
    rows = [[float(k) - 0.5, 0] for k in range(8)]
    found, _ = scored(ranker, "xgboost-json", tmp_path / "o", rows)
    assert found.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 6.0]


def test_a_damaged_file_is_refused_before_or_by_xgboost(tmp_path):
    """XGBoost itself ends the process at places that lie outside a tree, or without weights."""
    cases = [
        ("trees", b'"learner"', b'"learner\xfa', "is not the file of a model"),
        ("trees", b'"left_children": [1', b'"left_children": [999', "is not the file of a model"),
        ("trees", b'"left_children": [1', b'"left_children": [0', "is not the file of a model"),
        ("trees", b'"split_indices": [0', b'"split_indices": [999', "is not the file of a model"),
        ("trees", b'"sum_hessian": [1.0, ', b'"sum_hessian": [', "is not the file of a model"),
        ("trees", b'"parents": [2147483647, 0', b'"parents": [2147483647, -10', "is not the file"),
        ("trees", b'"right_children": [2', b'"right_children": [1', "is not the file of a model"),
        ("trees", b'"categories": []', b'"categories": [7]', "is not the file of a model"),
        ("trees", b'"num_nodes": "', b'"num_nodes": "9', "is not the file of a model"),
        ("trees", b'"tree_info": [0', b'"tree_info": [5', "is not the file of a model"),
        ("trees", b'"rank:pairwise"', b'"rank:nothing"', "XGBoost cannot read"),
        ("linear", b'"weights"', b'"weight{"', "is not the file of a model"),
        ("linear", b'"weights": [', b'"weights": [1.0, ', "is not the file of a model"),
    ]
    for case, old, new, reason in cases:
        export_model(fitted_rankers()[case], "xgboost-json", tmp_path / "o", force=True)
        path = tmp_path / "o" / "model.json"
        whole, about = path.read_bytes(), json.loads((tmp_path / "o" / "export.json").read_text())
        assert old in whole, (case, old)
        path.write_bytes(whole.replace(old, new, 1))
        with pytest.raises(ParityError, match=reason):
            XGBoostJson().scores(tmp_path / "o", about, np.zeros((1, len(about["features"]))))
