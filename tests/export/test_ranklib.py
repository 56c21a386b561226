"""RankLib's text: missing values, the constant of Linear Regression, a sigmoid at the end."""

import json

import numpy as np
import pytest
from exported_models import fitted_rankers, holding, named, of_rules, scored
from small_data import small_data

import rankwright as rw
from rankwright.export import check_releases, export_model, verify_export
from rankwright.export.ranklib import RankLib, _walks_beyond, _weights
from rankwright.export.target import ParityError
from rankwright.models.linear import FittedLinear
from rankwright.ranklib.model_text import Tree


def linear_regression(coef):
    return holding("linear_regression", FittedLinear(np.array(coef)))


def test_linear_regression_has_its_constant_under_0(tmp_path):
    """RankLib has room for as many weights as there are keys, and counts the constant."""
    export_model(linear_regression([2.0, -1.0]), "ranklib", tmp_path / "o")
    text = (tmp_path / "o" / "model.txt").read_text()
    assert text.startswith("## Linear Regression\n")
    assert text.splitlines()[-1] == "0:0.0 1:2.0 2:-1.0"
    verify_export(tmp_path / "o")


@pytest.mark.parametrize("weights", ["1:2.0 2:-1.0", "0:0.0 2:-1.0"])
def test_weights_that_ranklib_has_no_room_for_are_refused(tmp_path, weights):
    about = export_model(linear_regression([2.0, -1.0]), "ranklib", tmp_path / "o")
    (tmp_path / "o" / "model.txt").write_text(f"## Linear Regression\n## Lambda = 0.0\n{weights}")
    with pytest.raises(ParityError, match="would be refused: its weights must be 0, the constant"):
        RankLib().scores(tmp_path / "o", about, np.zeros((1, 2)))


def test_without_missing_zero_a_feature_after_the_last_is_an_error(tmp_path):
    about = export_model(fitted_rankers()["trees"], "ranklib", tmp_path / "o")
    assert "-missingZero" in about["notes"][0]
    with_option, without = check_releases(tmp_path / "o")
    assert with_option.setup == "-missingZero"
    assert with_option.right
    assert not without.right
    assert 0 < without.wrong <= about["parity"]["kinds"]["missing"]


def test_what_was_exported_is_what_the_ranker_scores(tmp_path):
    data = small_data(queries=8, documents=10, features=4)
    ranker = rw.ranker("linear_regression").fit(data)
    about = export_model(ranker, "ranklib", tmp_path / "o")
    found = RankLib().scores(tmp_path / "o", about, np.asarray(data.X, np.float32).astype(float))
    np.testing.assert_allclose(found, ranker.predict(data), atol=1e-5)


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


def test_a_network_of_one_layer_is_a_linear_model_with_its_constant():
    written = _weights(np.array([2.0, -1.0]), 0.5)
    assert written.text().splitlines()[0] == "## Linear Regression"
    assert written.text().splitlines()[-1] == "0:0.5 1:2.0 2:-1.0"
    assert written.scores(np.array([[1.0, 4.0]])).tolist() == [0.5 + 2.0 - 4.0]
    assert _weights(np.array([2.0, -1.0]), 0.0).text().splitlines()[-1] == "1:2.0 2:-1.0"


def test_a_row_that_ends_before_a_feature_on_its_way_down_a_tree_is_found():
    tree = Tree(
        weight=1.0,
        feature=np.array([1, 0, 3, 0, 0]),
        threshold=np.array([0.5, 0, 0.5, 0, 0], np.float32),
        left=np.array([1, -1, 3, -1, -1]),
        right=np.array([2, -1, 4, -1, -1]),
        output=np.zeros(5),
    )
    X = np.array([[0.0, 0, 0], [1, 0, 0], [1, 0, 0], [0, 0, 0]])
    last = np.array([1, 1, 3, 0])  # the second goes right, to feature 3; the last has none
    assert _walks_beyond(tree, X, last).tolist() == [False, True, False, True]
