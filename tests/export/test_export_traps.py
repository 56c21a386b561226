"""The traps of each target, by hand: thresholds, gaps, base scores, signs, names, sizes."""

import json
import sys

import numpy as np
import pytest
from exported import fitted_rankers, holding, of_rules, of_weights, scored, targets_of

from rankwright import registry
from rankwright.core.dtypes import not_above
from rankwright.errors import UsageError
from rankwright.export import solr, target
from rankwright.export.folder import export_model, verify_export
from rankwright.export.ltr_plugin import Elasticsearch
from rankwright.export.target import ParityError, strictly_above
from rankwright.models.portable import Forest, portable

TREES, RULES, LINEAR = (targets_of(family) for family in ("trees", "additive", "linear"))
SINGLE = ["elasticsearch", "opensearch", "ranklib", "solr", "vespa", "xgboost-json"]
NO_GAPS = {"ranklib"}  # its rules take a missing value for 0
NO_FILL = {"ranklib", "xgboost-json"}  # no linear model there says what a missing value counts as
NESTED = {"elasticsearch", "opensearch", "solr", "vespa"}  # trees in trees: of limited depth


def plain(found, about):
    """Return scores without the constant that keeps Elasticsearch's above 0."""
    return found - about["score"]["offset"]


# --- < against <= ------------------------------------------------------------------------------


@pytest.mark.parametrize("to", RULES)
def test_a_value_that_hits_the_threshold_does_not_exceed_it(tmp_path, to):
    ranker = of_rules([(0, 0.5, 1.0)])
    below, above = np.nextafter(np.float32(0.5), np.float32([0, 1]))
    found, about = scored(ranker, to, tmp_path / "o", [[below, 0], [0.5, 0], [above, 0]])
    assert plain(found, about).tolist() == [0.0, 0.0, 1.0]


# --- thresholds in float32 ---------------------------------------------------------------------


@pytest.mark.parametrize("cut", [0.1, 1 / 3, 1e-7, -0.3, 16777217.0, 1e30])
@pytest.mark.parametrize("to", SINGLE)
def test_a_threshold_between_two_float32_parts_them(tmp_path, to, cut):
    low = not_above(np.array([cut]))[0]
    high = np.nextafter(low, np.float32(np.inf))
    assert float(low) <= cut < float(high)
    if to == "solr" and abs(cut) < 1e-6:
        return  # its own test
    found, about = scored(of_rules([(1, cut, 2.0)]), to, tmp_path / "o", [[0, low], [0, high]])
    assert plain(found, about).tolist() == [0.0, 2.0]


def test_less_than_the_next_float32_is_not_more_than_the_threshold():
    cuts = np.array([0.1, 0.5, -0.1, 0.0, 3.4e38, -np.inf])
    for cut, above in zip(cuts, strictly_above(cuts), strict=True):
        for x in (np.float32(cut), np.nextafter(np.float32(cut), np.float32([-1e38, 1e38]))):
            x = np.atleast_1d(x)
            assert ((x < above) == (x.astype(float) <= cut)).all()


def test_solr_adds_a_millionth_to_every_threshold():
    cuts = not_above(np.array([0.5, 0.1, -0.3, 12.0, 1e-3, 1e30, 0.0]))
    written, reached = solr.thresholds_before_slack(cuts)
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


# --- missing values ----------------------------------------------------------------------------


@pytest.mark.parametrize("to", sorted({*RULES} - NO_GAPS))
def test_a_missing_value_exceeds_nothing(tmp_path, to):
    """In an additive model; it is no 0 either, which would exceed -1."""
    ranker = of_rules([(0, -1.0, 1.0), (1, 0.5, 4.0)])
    rows = [[np.nan, 1], [0, 1], [0, np.nan], [np.nan, np.nan]]
    found, about = scored(ranker, to, tmp_path / "o", rows)
    assert plain(found, about).tolist() == [4.0, 5.0, 1.0, 0.0]


def test_ranklib_reads_a_missing_value_as_zero_and_the_export_says_where_that_is_wrong(tmp_path):
    about = export_model(of_rules([(0, -1.0, 1.0)]), "ranklib", tmp_path / "o")
    assert [feature["may_be_missing"] for feature in about["features"]] == [False, True]
    assert "missing" not in {k for k in about["parity"]["kinds"] if about["parity"]["kinds"][k] > 3}


@pytest.mark.parametrize("to", sorted({*LINEAR} - NO_FILL))
def test_what_stands_for_a_missing_value_is_part_of_the_export(tmp_path, to):
    ranker = of_weights([2.0, -1.0], fill=[0.5, 8.0])
    found, _ = scored(ranker, to, tmp_path / "o", [[np.nan, 1], [3, np.nan]])
    assert found.tolist() == [0.0, -2.0]


@pytest.mark.parametrize("to", LINEAR)
def test_a_model_that_refuses_missing_values_says_so(tmp_path, to):
    about = export_model(of_weights([2.0, -1.0]), to, tmp_path / "o")
    assert not any(feature["may_be_missing"] for feature in about["features"])
    assert "missing" not in about["parity"]["kinds"]


@pytest.mark.parametrize("to", ["onnx", "xgboost-json", "elasticsearch", "vespa", "c", "python"])
def test_splits_that_send_missing_values_left_and_right_are_both_kept(tmp_path, to):
    ranker = fitted_rankers()["trees-gaps"]
    forest = portable(ranker._fitted(), ranker.model_name)
    rules = forest.rule[forest.splits]
    assert {1, 2} <= set(rules.tolist())  # the data makes both
    about = export_model(ranker, to, tmp_path / "o")
    assert all(feature["may_be_missing"] for feature in about["features"])
    verify_export(tmp_path / "o")


# --- base scores, signs ------------------------------------------------------------------------


@pytest.mark.parametrize("to", RULES)
def test_the_initial_score_is_in_the_export(tmp_path, to):
    ranker = of_rules([(0, 0.5, 1.0)], initial=0.25)
    found, about = scored(ranker, to, tmp_path / "o", [[0, 0], [1, 0]])
    assert plain(found, about).tolist() == [0.25, 1.25]


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


# --- names against ordinals --------------------------------------------------------------------


def named(ranker, *names):
    ranker.feature_names_in_ = np.array(names, object)
    return ranker


def test_names_are_made_fit_for_every_target_and_the_old_ones_kept(tmp_path):
    ranker = named(of_weights([1.0, 2.0, 3.0, 4.0]), "title match", "title-match", "7", "prix d'or")
    about = export_model(ranker, "vespa", tmp_path / "o")
    names = [feature["name"] for feature in about["features"]]
    assert names == ["title_match", "title_match_2", "feature_7", "prix_d_or"]
    assert about["features"][0]["in_training"] == "title match"
    verify_export(tmp_path / "o")


def test_no_name_stands_twice_where_a_made_one_is_taken(tmp_path):
    ranker = named(of_weights([1.0, 2.0, 3.0]), "a_b_3", "a b", "a-b")
    about = export_model(ranker, "json", tmp_path / "o")
    names = [feature["name"] for feature in about["features"]]
    assert names == ["a_b_3", "a_b", "a_b_3_3"]


def test_ranklib_counts_features_from_one_and_the_plugins_name_them(tmp_path):
    ranker = named(of_rules([(1, 0.5, 1.0)]), "clicks", "age")
    export_model(ranker, "ranklib", tmp_path / "r")
    assert "2:0.5:1.0" in (tmp_path / "r" / "model.txt").read_text()
    export_model(ranker, "elasticsearch", tmp_path / "e")
    payload = json.loads((tmp_path / "e" / "model.json").read_text())
    (tree,) = json.loads(payload["model"]["model"]["definition"])
    assert tree["split"] == "age"


def test_a_feature_set_in_another_order_is_refused(tmp_path):
    folder = tmp_path / "o"
    about = export_model(of_rules([(0, 0.5, 1.0), (1, 0.5, 2.0)]), "elasticsearch", folder)
    path = folder / "featureset.json"
    whole = json.loads(path.read_text())
    whole["featureset"]["features"].reverse()
    path.write_text(json.dumps(whole))
    with pytest.raises(ParityError, match=r"not those of export\.json"):
        Elasticsearch().scores(folder, about, np.zeros((1, 2)))


@pytest.mark.parametrize("to", ["elasticsearch", "solr", "vespa"])
def test_a_split_on_a_feature_that_is_not_there_is_refused(tmp_path, to):
    folder = tmp_path / "o"
    about = export_model(named(of_rules([(1, 0.5, 1.0)]), "clicks", "age"), to, folder)
    target = registry.resolve("exports", to)()
    path = next(p for p in folder.iterdir() if p.name in ("model.json", "rankwright_model.profile"))
    text = path.read_text()
    if to == "solr":
        text = text.replace('"feature": "age"', '"feature": "aged"')
    else:
        text = text.replace('\\"age\\"', '\\"aged\\"').replace("(age)", "(aged)")
    path.write_text(text)
    with pytest.raises(ParityError, match=r"aged|grammar"):
        target.scores(folder, about, np.zeros((1, 2)))


# --- sizes -------------------------------------------------------------------------------------


def test_a_model_too_large_for_zookeeper_is_wrapped(tmp_path, monkeypatch):
    monkeypatch.setattr(solr.Solr, "limit", 100)
    about = export_model(of_rules([(0, 0.5, 1.0)]), "solr", tmp_path / "o")
    assert about["upload"][1]["file"] == "wrapper.json"
    wrapper = json.loads((tmp_path / "o" / "wrapper.json").read_text())
    assert wrapper["class"].endswith("DefaultWrapperModel")
    assert "ZooKeeper" in about["notes"][0]
    verify_export(tmp_path / "o")


def test_a_model_too_large_for_a_request_is_noted(tmp_path, monkeypatch):
    monkeypatch.setattr(Elasticsearch, "limit", 100)
    about = export_model(of_rules([(0, 0.5, 1.0)]), "elasticsearch", tmp_path / "o")
    assert any("http.max_content_length" in note for note in about["notes"])


def chain(depth):
    """A tree that splits on and on to the right, in LightGBM's text."""
    inner = range(depth)
    lines = {
        "num_leaves": [depth + 1],
        "num_cat": [0],
        "split_feature": [0] * depth,
        "split_gain": [1] * depth,
        "threshold": [float(k) for k in inner],
        "decision_type": [0] * depth,
        "left_child": [-1 - k for k in inner],
        "right_child": [*range(1, depth), -1 - depth],
        "leaf_value": [float(k) for k in range(depth + 1)],
        "leaf_weight": [1] * (depth + 1),
        "leaf_count": [1] * (depth + 1),
        "internal_value": [0] * depth,
        "internal_weight": [1] * depth,
        "internal_count": [2] * depth,
        "is_linear": [0],
        "shrinkage": [1],
    }
    body = "\n".join(f"{key}={' '.join(map(str, some))}" for key, some in lines.items())
    tree = f"Tree=0\n{body}\n\n\n"
    head = (
        "tree\nversion=v4\nnum_class=1\nnum_tree_per_iteration=1\nlabel_index=0\n"
        "max_feature_idx=1\nobjective=custom\nfeature_names=a b\nfeature_infos=none none\n"
        f"tree_sizes={len(tree)}\n\n"
    )
    from rankwright.models.trees import FittedTrees

    return holding("lambdamart", FittedTrees(f"{head}{tree}end of trees\n", 0.0, 2))


@pytest.mark.parametrize("to", TREES)
def test_a_tree_too_deep_for_nested_readers_is_refused_by_them_alone(tmp_path, to):
    deep = chain(450)
    if to in NESTED:
        with pytest.raises(UsageError, match="450 splits deep"):
            export_model(deep, to, tmp_path / "o")
    else:
        export_model(deep, to, tmp_path / "o")
        verify_export(tmp_path / "o")
    export_model(chain(390), to, tmp_path / "p")
    verify_export(tmp_path / "p")


def test_a_model_without_trees_or_rules_scores_the_same_everywhere(tmp_path):
    from rankwright.models.trees import FittedTrees

    empty = holding("lambdamart", FittedTrees("", 0.75, 2))
    for to in TREES:
        found, about = scored(empty, to, tmp_path / to, [[0, 1], [np.nan, 1e9]])
        assert plain(found, about).tolist() == [0.75, 0.75], to


@pytest.mark.parametrize("to", LINEAR)
def test_a_model_that_scores_nothing_can_be_verified(tmp_path, to):
    export_model(of_weights([0.0, 0.0]), to, tmp_path / "o")
    assert verify_export(tmp_path / "o").vectors > 50


def test_a_program_that_hangs_or_talks_nonsense_is_a_sentence(monkeypatch):
    monkeypatch.setattr(target, "_SECONDS", 0.2)
    sleep = [sys.executable, "-c", "import time; time.sleep(60)"]
    with pytest.raises(ParityError, match=r"it fails: no answer within 0\.2 seconds"):
        target.run_evaluator(sleep, b"", "it fails")
    monkeypatch.setattr(target, "_SECONDS", 60)
    with pytest.raises(ParityError, match="it fails: the program ends with 3"):
        target.run_evaluator([sys.executable, "-c", "raise SystemExit(3)"], b"", "it fails")
    with pytest.raises(ParityError, match="it fails: 5 bytes are not 2 scores"):
        target.as_scores(b"hello", 2, "it fails")


def test_children_that_are_not_neighbours_are_numbered_anew_for_xgboost(tmp_path):
    """XGBoost takes the node after the left child for the right one."""
    ranker = chain(6)
    forest = portable(ranker._fitted(), ranker.model_name)
    assert isinstance(forest, Forest)
    assert (forest.right != forest.left + 1).any()
    rows = [[float(k) - 0.5, 0] for k in range(8)]
    found, _ = scored(ranker, "xgboost-json", tmp_path / "o", rows)
    assert found.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 6.0]
