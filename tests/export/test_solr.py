"""Solr: thresholds, missing values by version, and models too large for ZooKeeper."""

import json

import numpy as np
import pytest
from exported_models import fitted_rankers, of_rules, of_splits, of_weights, scored

from rankwright.export import check_releases, export_model, solr, verify_export
from rankwright.models.thresholds import not_above

BOTH_WAYS = [(0, 0.5, True, (1.0, 2.0)), (0, 1.5, False, (10.0, 20.0))]
ROWS = [[0.0, 0], [1.0, 0], [2.0, 0], [np.nan, 0]]


def read(folder, name):
    return json.loads((folder / name).read_text())


def test_splits_say_where_missing_values_go_from_9_2_on(tmp_path):
    found, about = scored(of_splits(BOTH_WAYS), "solr", tmp_path / "o", ROWS)
    assert found.tolist() == [11.0, 12.0, 22.0, 21.0]
    assert all(feature["may_be_missing"] for feature in about["features"])
    assert about["engine"]["oldest_version"] == "9.2"
    model, features = (read(tmp_path / "o", f"{name}.json") for name in ("model", "features"))
    assert model["params"]["isNullSameAsZero"] is False
    assert [tree["root"]["missing"] for tree in model["params"]["trees"]] == ["left", "right"]
    assert {feature["params"]["defaultValue"] for feature in features} == {"NaN"}
    checked = {own.versions: own for own in check_releases(tmp_path / "o")}
    assert checked[">=9.5"].right
    assert checked[">=9.2,<9.5"].right
    assert "Solr before 9.2 knows no isNullSameAsZero" in checked[">=7.3,<9.2"].error


def test_before_9_2_a_feature_that_goes_both_ways_has_two_defaults(tmp_path):
    found, about = scored(of_splits(BOTH_WAYS), "solr", tmp_path / "o", ROWS, engine_version="9.1")
    assert found.tolist() == [11.0, 12.0, 22.0, 21.0]
    assert about["engine"]["oldest_version"] == "7.3"
    assert all(own.right for own in check_releases(tmp_path / "o"))
    features = {
        feature["name"]: feature["params"] for feature in read(tmp_path / "o", "features.json")
    }
    assert [*features] == ["feature_1", "feature_1_or_lowest", "feature_2"]
    assert features["feature_1_or_lowest"] == {"field": "feature_1", "defaultValue": -3.4028235e38}


@pytest.mark.parametrize("version", [None, "9.1"])
@pytest.mark.parametrize("case", ["trees-gaps", "trees-initial", "additive-gaps", "trees"])
def test_no_feature_must_be_there(tmp_path, case, version):
    about = export_model(fitted_rankers()[case], "solr", tmp_path / "o", engine_version=version)
    assert all(feature["may_be_missing"] for feature in about["features"])
    assert about["parity"]["kinds"]["missing"] > 20
    verify_export(tmp_path / "o")


def test_a_missing_value_without_a_default_is_zero(tmp_path):
    found, about = scored(of_weights([2.0, 1.0]), "solr", tmp_path / "o", [[np.nan, 3.0]])
    assert found.tolist() == [3.0]
    assert not any(feature["may_be_missing"] for feature in about["features"])


# --- sizes -------------------------------------------------------------------------------------


def test_a_large_forest_is_wrapped_and_read_through_its_wrapper(tmp_path, monkeypatch):
    ranker = fitted_rankers()["trees-forest"]
    small = export_model(ranker, "solr", tmp_path / "small")
    assert small["upload"][1]["file"] == "model.json"
    monkeypatch.setattr(solr.Solr, "limit", 5_000)
    about = export_model(ranker, "solr", tmp_path / "o", name="forest")
    assert about["upload"][1]["file"] == "wrapper.json"
    wrapper, whole = read(tmp_path / "o", "wrapper.json"), read(tmp_path / "o", "forest.json")
    assert wrapper["class"].endswith("DefaultWrapperModel")
    assert wrapper["params"] == {"resource": "forest.json"}
    assert wrapper["features"] == []
    assert wrapper["store"] == whole["store"]
    assert any("ZooKeeper" in note and "forest.json" in note for note in about["notes"])
    verify_export(tmp_path / "o")
    wrapper["params"]["resource"] = "other.json"
    (tmp_path / "o" / "wrapper.json").write_text(json.dumps(wrapper))
    with pytest.raises(ValueError, match=r"other\.json cannot be read"):
        solr.Solr().scores(tmp_path / "o", about, np.zeros((1, 5)))


def test_the_size_is_that_of_the_store_which_is_indented_before_9_5(tmp_path, monkeypatch):
    ranker = of_rules([(0, 0.5, 1.0)] * 40)
    export_model(ranker, "solr", tmp_path / "o")
    size = len((tmp_path / "o" / "model.json").read_bytes())
    monkeypatch.setattr(solr.Solr, "limit", size + 500)
    for version, file in ((None, "model.json"), ("9.5", "model.json"), ("9.4", "wrapper.json")):
        about = export_model(ranker, "solr", tmp_path / "o", engine_version=version)
        assert about["upload"][1]["file"] == file, version


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


def test_a_model_too_large_for_zookeeper_is_wrapped(tmp_path, monkeypatch):
    monkeypatch.setattr(solr.Solr, "limit", 100)
    about = export_model(of_rules([(0, 0.5, 1.0)]), "solr", tmp_path / "o")
    assert about["upload"][1]["file"] == "wrapper.json"
    wrapper = json.loads((tmp_path / "o" / "wrapper.json").read_text())
    assert wrapper["class"].endswith("DefaultWrapperModel")
    assert "ZooKeeper" in about["notes"][0]
    verify_export(tmp_path / "o")
