"""Vespa: a rank profile in its own expressions, read back by its grammar."""

import numpy as np
import pytest
from exported_models import named, of_rules, of_weights, scored

from rankwright.export.target import ParityError
from rankwright.export.vespa import score_profile


def test_the_initial_score_is_added_outside_of_the_sum_of_trees(tmp_path):
    ranker = of_rules([(0, 0.5, 1.0), (1, 0.5, 2.0)], initial=0.25)
    found, _ = scored(ranker, "vespa", tmp_path / "o", [[0, 0], [1, 1]])
    assert found.tolist() == [0.25, 3.25]
    text = (tmp_path / "o" / "rankwright_model.profile").read_text()
    forest = text.partition("function forest() {")[2].partition("}")[0]
    terms = forest.partition("{")[2].strip().split(" +\n")
    assert len(terms) == 2
    assert all(term.strip().startswith("if (") for term in terms)
    assert "forest + 0.25" in text.partition("function score() {")[2]


def test_a_rule_is_not_met_below_the_next_float32(tmp_path):
    """Vespa has >=, so that x > 0.5 is x >= the least float32 above 0.5; NaN meets neither."""
    ranker = named(of_rules([(0, 0.5, 1.0)]), "clicks", "age")
    scored(ranker, "vespa", tmp_path / "out", [[0, 0]])
    above = float(np.nextafter(np.float32(0.5), np.float32(1)))
    text = (tmp_path / "out" / "rankwright_model.profile").read_text()
    assert f"if (!(attribute(clicks) >= {above}), 0.0, 1.0)" in text


def test_what_stands_for_a_missing_value_is_a_function(tmp_path):
    ranker = named(of_weights([2.0, -1.0], fill=[0.5, 8.0]), "clicks", "age")
    found, _ = scored(ranker, "vespa", tmp_path / "out", [[1, 1], [np.nan, 1]])
    text = (tmp_path / "out" / "rankwright_model.profile").read_text()
    assert "if (isNan(attribute(clicks)), 0.5, attribute(clicks))" in text
    assert found.tolist() == [2 - 1, 2 * 0.5 - 1]


@pytest.mark.parametrize("damage", ["+ +", "if (1.0)", "attribute(gone)", "unknown_function"])
def test_what_is_not_in_the_grammar_is_refused(tmp_path, damage):
    scored(named(of_weights([2.0, -1.0]), "clicks", "age"), "vespa", tmp_path / "out", [[0, 0]])
    path = tmp_path / "out" / "rankwright_model.profile"
    path.write_text(path.read_text().replace("attribute(age)", damage))
    with pytest.raises(ParityError, match=r"rankwright_model\.profile"):
        score_profile(path, ["clicks", "age"], np.zeros((1, 2)))
