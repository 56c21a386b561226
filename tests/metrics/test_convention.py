"""Conventions: presets by name, what they say, and where two of them part."""

from pathlib import Path

import pytest

from rankwright.errors import UsageError
from rankwright.metrics.convention import (
    CLAUSES,
    CONVENTIONS,
    Convention,
    conventions_table,
    descriptions,
    differences,
)


def test_the_presets():
    tools = "ranklib lightgbm xgboost catboost sklearn trec_eval ranx rax tf_ranking"
    assert list(CONVENTIONS) == ["standard", "letor3", "letor4", "mslr", *tools.split()]
    assert set(descriptions()) == set(CONVENTIONS)


def test_a_name_that_is_not_there_is_answered_with_the_nearest():
    with pytest.raises(UsageError, match="there is no convention 'leto4'; did you mean letor4"):
        Convention.named("leto4")


def test_a_convention_of_ones_own_starts_from_standard():
    own = Convention(name="ours", gain="linear")
    assert differences(Convention.named("standard"), own) == [
        "gain of grade g (dcg, ndcg): 2^g - 1 (standard), g (ours)"
    ]


def test_differences_name_every_clause_that_differs():
    found = differences(Convention.named("letor4"), Convention.named("mslr"))
    assert found == ["relevant: g >= 1 (letor4), g >= 2 (mslr)"]
    assert differences(Convention.named("ranx"), Convention.named("ranx")) == []


@pytest.mark.parametrize(
    ("clause", "value"),
    [("gain", "cubic"), ("ties", "random"), ("empty", 2), ("min_grade", 0), ("err_max", "four")],
)
def test_a_value_that_a_clause_does_not_know_is_refused(clause, value):
    with pytest.raises(UsageError, match=clause):
        Convention(**{clause: value})


def test_every_clause_has_texts_and_a_heading():
    clauses = set(Convention.__dataclass_fields__) - {"name"}
    assert set(CLAUSES) == clauses


def test_the_table_in_the_documentation_is_current():
    page = Path(__file__).parents[2] / "docs" / "metric-conventions.md"
    block = page.read_text().partition("<!-- generated: conventions -->\n")[2]
    assert block.partition("\n<!-- end -->")[0] == conventions_table()
