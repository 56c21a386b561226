"""Elasticsearch and OpenSearch: negative and missing values, versions, names and sizes."""

import json

import numpy as np
import pytest
from exported_models import fitted_rankers, of_rules, of_splits, of_weights, scored

from rankwright.errors import UsageError
from rankwright.export import check_releases, export_model, verify_export
from rankwright.export.ltr_plugin import Elasticsearch, OpenSearch
from rankwright.export.target import HIGHEST, ParityError

PLUGINS = {"elasticsearch": "8.9.2", "opensearch": "2.17"}  # with versions that know no 'missing'
GAPS = ("trees", "trees-gaps", "trees-initial", "trees-forest", "additive", "additive-gaps")


def features_of(folder):
    whole = json.loads((folder / "featureset.json").read_text())
    return {feature["name"]: feature for feature in whole["featureset"]["features"]}


# --- negative values ---------------------------------------------------------------------------


@pytest.mark.parametrize("to", PLUGINS)
def test_a_negative_value_reaches_the_model_though_no_script_returns_one(tmp_path, to):
    rows = [[-3.0, 4.0], [2.0, -0.5], [-np.float32(1e-30), 0.0]]
    found, about = scored(of_weights([2.0, -1.0]), to, tmp_path / "w", rows)
    assert found.tolist() == [-10.0, 4.5, float(np.float32(2.0) * -np.float32(1e-30))]
    assert any("difference of two scripts" in note for note in about["notes"])
    found, about = scored(of_rules([(0, -1.0, 1.0), (1, 0.5, 4.0)]), to, tmp_path / "r", rows)
    assert (found - about["score"]["offset"]).tolist() == [4.0, 1.0, 1.0]


def test_only_features_whose_sign_matters_are_differences(tmp_path):
    """Below every threshold a negative value and 0 go the same way."""
    export_model(of_rules([(0, -1.0, 1.0), (1, 0.5, 4.0)]), "opensearch", tmp_path / "o")
    features = features_of(tmp_path / "o")
    assert [*features] == [
        "feature_1_positive", "feature_1_negative", "feature_1", "feature_2",
    ]  # fmt: skip
    assert features["feature_1"]["template_language"] == "derived_expression"
    assert features["feature_1"]["template"] == "feature_1_positive - feature_1_negative"
    assert "Math.max(0.0, doc['feature_2'].value)" in features["feature_2"]["template"]["source"]


def test_a_script_that_returns_a_negative_number_is_an_error_of_the_engine(tmp_path):
    """As exports before this version wrote them."""
    folder = tmp_path / "o"
    about = export_model(of_rules([(1, 0.5, 4.0)]), "opensearch", folder)
    text = (folder / "featureset.json").read_text()
    bare = text.replace("Math.max(0.0, doc['feature_1'].value)", "doc['feature_1'].value")
    assert bare != text
    (folder / "featureset.json").write_text(bare)
    found = OpenSearch().scores(folder, about, np.array([[-1.0, 1.0], [-0.0, 1.0], [1.0, -1.0]]))
    assert np.isnan(found).tolist() == [True, False, False]


def test_names_that_are_there_already_are_not_given_again(tmp_path):
    ranker = of_weights([1.0, 1.0])
    ranker.feature_names_in_ = np.array(["a", "a_positive"], object)
    export_model(ranker, "opensearch", tmp_path / "o")
    assert [*features_of(tmp_path / "o")] == [
        "a_positive_", "a_negative", "a",
        "a_positive_positive", "a_positive_negative", "a_positive",
    ]  # fmt: skip
    verify_export(tmp_path / "o")


def test_a_network_finds_its_features_among_those_of_the_set(tmp_path):
    """RankLib's networks name features by their places, which the helpers move."""
    ranker = fitted_rankers()["network-sigmoid"]
    export_model(ranker, "elasticsearch", tmp_path / "o")
    payload = json.loads((tmp_path / "o" / "model.json").read_text())
    lines = payload["model"]["model"]["definition"].splitlines()
    assert "3 6 9 12 15" in lines
    verify_export(tmp_path / "o")


# --- versions ----------------------------------------------------------------------------------


@pytest.mark.parametrize("to", PLUGINS)
@pytest.mark.parametrize("case", GAPS)
def test_an_export_for_an_old_version_is_right_on_every_version(tmp_path, to, case):
    export_model(fitted_rankers()[case], to, tmp_path / "o", engine_version=PLUGINS[to])
    verify_export(tmp_path / "o")
    about = json.loads((tmp_path / "o" / "export.json").read_text())
    assert about["engine"]["version"] == PLUGINS[to]
    assert about["engine"]["oldest_version"] == {"elasticsearch": "7.0", "opensearch": "1.0"}[to]
    checked = [own for own in check_releases(tmp_path / "o") if not own.setup]
    assert len(checked) == 5
    assert all(own.right for own in checked)


@pytest.mark.parametrize("to", PLUGINS)
@pytest.mark.parametrize("case", GAPS)
def test_the_oldest_version_is_the_one_that_a_replay_finds(tmp_path, to, case):
    about = export_model(fitted_rankers()[case], to, tmp_path / "o")
    right = [own.versions for own in check_releases(tmp_path / "o")
             if own.right and own.engine == to and not own.setup]  # fmt: skip
    assert right[-1].startswith(f">={about['engine']['oldest_version']}")
    old = to + ":" + PLUGINS[to]
    if len(right) == 1:
        with pytest.raises(ParityError, match=rf"on {old} does not hold: \d+ of \d+ vectors"):
            verify_export(tmp_path / "o", engine=old)
        assert any("--engine-version" in note for note in about["notes"])
    else:
        verify_export(tmp_path / "o", engine=old)


def test_a_model_that_counts_missing_values_as_zero_is_right_on_every_version(tmp_path):
    about = export_model(fitted_rankers()["trees"], "opensearch", tmp_path / "o")
    assert about["engine"] == {"name": "opensearch", "version": "3.8", "oldest_version": "1.0"}


def test_a_feature_that_goes_both_ways_is_read_twice_by_old_versions(tmp_path):
    ranker = of_splits([(0, 0.5, True, (1.0, 2.0)), (0, 1.5, False, (10.0, 20.0))])
    rows = [[0.0, 0], [1.0, 0], [2.0, 0], [np.nan, 0]]
    found, about = scored(ranker, "opensearch", tmp_path / "o", rows, engine_version="2.19")
    assert found.tolist() == [11.0, 12.0, 22.0, 21.0]
    features = features_of(tmp_path / "o")
    assert [*features] == ["feature_1", "feature_1_or_lowest", "feature_2"]
    lost = {n: f["template"]["params"]["missing"] for n, f in features.items()}
    assert lost == {
        "feature_1": pytest.approx(HIGHEST), "feature_1_or_lowest": 0.0, "feature_2": 0.0,
    }  # fmt: skip
    assert any("twice" in note for note in about["notes"])


@pytest.mark.parametrize("cut", [1e300, -1e300, -np.inf, 0.25])
def test_a_split_between_numbers_and_missing_values_is_kept_for_old_versions(tmp_path, cut):
    """LightGBM writes 1e300 where all numbers go left; a rule may be [x > -inf]."""
    splits = [(0, cut, side, (1.0 + side, 3.0)) for side in (True, False)]
    rows = [[np.nan, 0], [-5.0, 0], [0.25, 0], [7.0, 0]]
    for ranker in (of_splits(splits), of_splits(splits[:1]), of_splits(splits[1:])):
        wanted = ranker.model_.scores(np.array(rows))
        for to, version in (*PLUGINS.items(), ("solr", "9.1"), ("solr", None)):
            folder = tmp_path / "o"
            found, about = scored(ranker, to, folder, rows, engine_version=version)
            assert (found - about["score"]["offset"]).tolist() == wanted.tolist(), (to, version)


def test_versions_that_are_not_known_are_refused_with_a_sentence(tmp_path):
    ranker = of_weights([1.0, 2.0])
    for to, version, sentence in (
        ("opensearch", "new", "a version is numbers and dots"),
        ("elasticsearch", "1.5.8", r"older than 7\.0.* of elasticsearch itself, not of a plugin"),
        ("json", "3.8", "json has no versions of an engine"),
    ):
        with pytest.raises(UsageError, match=sentence):
            export_model(ranker, to, tmp_path / "o", engine_version=version)
    assert not (tmp_path / "o").exists()
    export_model(ranker, "opensearch", tmp_path / "o")
    with pytest.raises(UsageError, match="is not read by 'solr', only by elasticsearch, opensear"):
        verify_export(tmp_path / "o", engine="solr:9.1")


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
    about = export_model(of_rules([(0, 0.5, 1.0), (1, 0.5, 2.0)]), "elasticsearch", folder)
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
