"""The traps that every target of a family must avoid: thresholds, gaps, base scores, depth."""

import numpy as np
import pytest
from cases import each
from exported_models import (
    chain,
    fitted_rankers,
    holding,
    named,
    of_rules,
    of_splits,
    of_weights,
    plain,
    scored,
    targets_of,
)

from rankwright import registry
from rankwright.errors import UsageError
from rankwright.export.folder import export_model, verify_export
from rankwright.export.target import ParityError
from rankwright.models.forest import Forest
from rankwright.models.portable import portable
from rankwright.models.thresholds import not_above

TREES, RULES, LINEAR = (targets_of(family) for family in ("trees", "additive", "linear"))
SINGLE = ["elasticsearch", "opensearch", "ranklib", "solr", "vespa", "xgboost-json"]
NO_GAPS = {"ranklib"}  # its rules take a missing value for 0
NO_FILL = {"ranklib", "xgboost-json"}  # no linear model there says what a missing value counts as
NESTED = {"elasticsearch", "opensearch", "solr", "vespa"}  # trees in trees: of limited depth


@pytest.mark.parametrize("to", RULES)
def test_a_value_that_hits_the_threshold_does_not_exceed_it(tmp_path, to):
    ranker = of_rules([(0, 0.5, 1.0)])
    below, above = np.nextafter(np.float32(0.5), np.float32([0, 1]))
    found, about = scored(ranker, to, tmp_path / "o", [[below, 0], [0.5, 0], [above, 0]])
    assert plain(found, about).tolist() == [0.0, 0.0, 1.0]


@pytest.mark.parametrize("to", SINGLE)
@each("cut", [0.1, 1 / 3, 1e-7, -0.3, 16777217.0, 1e30])
def test_a_threshold_between_two_float32_parts_them(tmp_path, to, cut):
    low = not_above(np.array([cut]))[0]
    high = np.nextafter(low, np.float32(np.inf))
    assert float(low) <= cut < float(high)
    if to == "solr" and abs(cut) < 1e-6:
        return  # its own test
    found, about = scored(of_rules([(1, cut, 2.0)]), to, tmp_path / "o", [[0, low], [0, high]])
    assert plain(found, about).tolist() == [0.0, 2.0]


@pytest.mark.parametrize("to", sorted({*RULES} - NO_GAPS))
def test_a_missing_value_exceeds_nothing(tmp_path, to):
    """In an additive model; it is no 0 either, which would exceed -1."""
    ranker = of_rules([(0, -1.0, 1.0), (1, 0.5, 4.0)])
    rows = [[np.nan, 1], [0, 1], [0, np.nan], [np.nan, np.nan]]
    found, about = scored(ranker, to, tmp_path / "o", rows)
    assert plain(found, about).tolist() == [4.0, 5.0, 1.0, 0.0]


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


@pytest.mark.parametrize("to", TREES)
@each("missing_left", [False, True])
def test_a_split_between_numbers_and_missing_values_is_held(tmp_path, to, missing_left):
    """Its threshold is infinite in the model; no engine reads an infinite number."""
    cut = -np.inf if missing_left else np.inf
    ranker, folder = of_splits([(0, cut, missing_left, (1.0, 3.0))]), tmp_path / str(missing_left)
    found, about = scored(ranker, to, folder, [[0, 0], [-7, 0], [1e6, 0]])
    assert plain(found, about).tolist() == [3.0 if missing_left else 1.0] * 3
    verify_export(folder)
    assert not any(b"Infinity" in path.read_bytes() for path in folder.glob("model.txt"))
    if about["features"][0]["may_be_missing"]:
        missing, _ = scored(ranker, to, folder, [[np.nan, 0]])
        assert plain(missing, about).tolist() == [1.0 if missing_left else 3.0]


@pytest.mark.parametrize("to", RULES)
def test_the_initial_score_is_in_the_export(tmp_path, to):
    ranker = of_rules([(0, 0.5, 1.0)], initial=0.25)
    found, about = scored(ranker, to, tmp_path / "o", [[0, 0], [1, 0]])
    assert plain(found, about).tolist() == [0.25, 1.25]


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
    empty = holding("lambdamart", Forest.empty(2, offset=0.75))
    for to in TREES:
        found, about = scored(empty, to, tmp_path / to, [[0, 1], [np.nan, 1e9]])
        assert plain(found, about).tolist() == [0.75, 0.75], to


@pytest.mark.parametrize("to", LINEAR)
def test_a_model_that_scores_nothing_can_be_verified(tmp_path, to):
    export_model(of_weights([0.0, 0.0]), to, tmp_path / "o")
    assert verify_export(tmp_path / "o").vectors > 50
