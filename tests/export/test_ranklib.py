"""RankLib's text: missing values are 0, features count from 1, a sigmoid at the end."""

import json

import numpy as np
from exported_models import fitted_rankers, holding, named, of_rules, scored

from rankwright.export.folder import export_model


def test_ranklib_reads_a_missing_value_as_zero_and_the_export_says_where_that_is_wrong(tmp_path):
    about = export_model(of_rules([(0, -1.0, 1.0)]), "ranklib", tmp_path / "o")
    assert [feature["may_be_missing"] for feature in about["features"]] == [False, True]
    assert "missing" not in {k for k in about["parity"]["kinds"] if about["parity"]["kinds"][k] > 3}


def test_ranklibs_last_sigmoid_does_not_make_high_scores_equal(tmp_path):
    """A network whose scores are thousands: the sigmoid of all of them would be 1."""
    network = fitted_rankers()["network-sigmoid"].model_
    from dataclasses import replace

    weight, constant = network.layers[-1]
    high = replace(network, layers=(*network.layers[:-1], (weight * 1e3, constant + 1e4)))
    ranker = holding("ranknet", high, activation="sigmoid")
    X = np.random.default_rng(0).normal(size=(50, 5))
    expected = high.scores(X)
    found, about = scored(ranker, "ranklib", tmp_path / "o", X)
    assert about["score"]["function"] == "sigmoid"
    assert np.argsort(found).tolist() == np.argsort(expected).tolist()
    assert len(np.unique(found)) == 50


def test_ranklib_counts_features_from_one_and_the_plugins_name_them(tmp_path):
    ranker = named(of_rules([(1, 0.5, 1.0)]), "clicks", "age")
    export_model(ranker, "ranklib", tmp_path / "r")
    assert "2:0.5:1.0" in (tmp_path / "r" / "model.txt").read_text()
    export_model(ranker, "elasticsearch", tmp_path / "e")
    payload = json.loads((tmp_path / "e" / "model.json").read_text())
    (tree,) = json.loads(payload["model"]["model"]["definition"])
    assert tree["split"] == "age"
