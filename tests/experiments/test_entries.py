import pytest

from rankwright.errors import UsageError
from rankwright.experiments.comparison import Entry
from rankwright.experiments.entries import entries_of, parse_entry
from rankwright.rankers.base import ranker


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gbdt", Entry("gbdt", "gbdt", {})),
        ("gbdt:n_estimators=5", Entry("gbdt:n_estimators=5", "gbdt", {"n_estimators": 5})),
        (
            "few=lambdamart:n-trees=5:normalize=false",
            Entry("few", "lambdamart", {"n_estimators": 5, "normalize": False}),
        ),
        ("ranksvm:l2=auto", Entry("ranksvm:l2=auto", "ranksvm", {"l2": "auto"})),
        ("gbdt:targets=[0,1,3]", Entry("gbdt:targets=[0,1,3]", "gbdt", {"targets": (0, 1, 3)})),
    ],
)
def test_an_entry_is_a_name_with_parameters(text, expected):
    assert parse_entry(text) == expected


def test_commas_part_entries_but_not_lists():
    found = entries_of("gbdt:targets=[0,1,3],ranksvm")
    assert [entry.label for entry in found] == ["gbdt:targets=[0,1,3]", "ranksvm"]


def test_rankers_and_names_may_be_mixed_and_named():
    found = entries_of({"a": ranker("gbdt", n_estimators=5), "b": "ranksvm:l2=0.1"})
    assert found == (Entry("a", "gbdt", {"n_estimators": 5}), Entry("b", "ranksvm", {"l2": 0.1}))
    (own,) = entries_of(ranker("gbdt", n_estimators=5))
    assert own == Entry("gbdt:n_estimators=5", "gbdt", {"n_estimators": 5})


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("gbdt,gbdt", "'gbdt' is listed twice"),
        ("gbdt:n_estimators", "takes key=value, not 'n_estimators'"),
        ("gbdt:n_treees=3", "no parameter of GBDT 'n_treees'; did you mean n_estimators"),
        ("lambdamrt", "no ranker 'lambdamrt'"),
        ("gbdt:convention=letor4", "convention is set for the whole comparison"),
        ([], "no ranker to compare"),
        ([3], "must be a name or a ranker, not int"),
        (3, "must be names or rankers, not int"),
    ],
)
def test_wrong_entries_are_told_in_a_sentence(given, sentence):
    with pytest.raises(UsageError, match=sentence):
        entries_of(given)
