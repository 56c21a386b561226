import numpy as np
import pytest
from sklearn.linear_model import Ridge

import rankwright as rw
from rankwright.comparison.entries import entries_of, parse_entry, selection
from rankwright.comparison.result import Entry
from rankwright.errors import RankwrightError
from rankwright.rankers.base import ranker


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gbdt", Entry("gbdt", "gbdt", {})),
        ("gbdt:n_estimators=5", Entry("gbdt:n_estimators=5", "gbdt", {"n_estimators": 5})),
        (
            "few=lambdamart:n-estimators=5:normalize=false",
            Entry("few", "lambdamart", {"n_estimators": 5, "normalize": False}),
        ),
        ("ranksvm:l2=auto", Entry("ranksvm:l2=auto", "ranksvm", {"l2": "auto"})),
        ("a=gbdt:model.max_bins=63", Entry("a", "gbdt", {"model__max_bins": 63})),
        ("gbdt:targets=[0,1,3]", Entry("gbdt:targets=[0,1,3]", "gbdt", {"targets": (0, 1, 3)})),
    ],
)
def test_an_entry_is_a_name_with_parameters(text, expected):
    assert parse_entry(text) == expected


@pytest.mark.parametrize(
    ("text", "label", "kind"),
    [
        ("bm25=column:BM25", "bm25", "column BM25"),
        ("column:7", "column:7", "column 7"),
        (" a = column:x=y:z ", "a", "column x=y:z"),
    ],
)
def test_a_column_is_named_in_text(text, label, kind):
    (found,) = entries_of(text)
    assert (found.label, found.ranker, found.scorer.kind) == (label, kind, kind)


def test_commas_part_entries_but_not_lists():
    found = entries_of("gbdt:targets=[0,1,3],ranksvm")
    assert [entry.label for entry in found] == ["gbdt:targets=[0,1,3]", "ranksvm"]


def test_rankers_and_names_may_be_mixed_and_named():
    found = entries_of({"a": ranker("gbdt", n_estimators=5), "b": "ranksvm:l2=0.1"})
    assert found == (Entry("a", "gbdt", {"n_estimators": 5}), Entry("b", "ranksvm", {"l2": 0.1}))
    (own,) = entries_of(ranker("gbdt", n_estimators=5))
    assert own == Entry("gbdt:n_estimators=5", "gbdt", {"n_estimators": 5})


def test_parts_and_functions_have_readable_labels():
    def squared(scores, grades):
        return 0.5 * float(((scores - grades) ** 2).sum()), scores - grades

    def first_grade(scores, grades):
        return float(grades[scores.argmax()])

    loss, model = rw.losses.from_function(squared), rw.models.Trees(n_estimators=3)
    given = [
        rw.Ranker(loss=loss, model=model, metric=first_grade),
        rw.Ranker(loss=rw.losses.ListNet(k=3), solver=rw.solvers.LBFGS(tol=1e-8)),
        rw.GBDT(model=model),
    ]
    found = entries_of(given)
    assert [entry.label for entry in found] == [
        "ranker:loss=from_function(squared):metric=first_grade:model=Trees(n_estimators=3)",
        "ranker:loss=ListNet(k=3):solver=LBFGS(tol=1e-08)",
        "gbdt:model=Trees(n_estimators=3)",
    ]
    assert found[0].parameters == {"loss": loss, "model": model, "metric": first_grade}


@pytest.mark.parametrize(
    ("name", "expected"),
    [("lambdamart", {"select_metric": "map"}), ("ranksvm", {"metric": "map"})],
)
def test_the_metric_that_selects_goes_where_a_ranker_has_it(name, expected):
    assert selection(name, "map") == expected
    assert ranker(name, **selection(name, "map")).selection_metric == "map"


class _OwnModel(rw.models.Linear):
    """A model of nobody's package."""


class _OwnRanker(rw.RankSVM):
    """A ranker of nobody's package."""


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("gbdt,gbdt", "'gbdt' is listed twice"),
        ("gbdt:n_estimators", "takes key=value, not 'n_estimators'"),
        ("gbdt:n_estimator=3", "GBDT has no parameter 'n_estimator'; did you mean n_estimators"),
        ("lambdamrt", "no ranker 'lambdamrt'"),
        ("gbdt:convention=letor4", "convention is set for the whole comparison"),
        ([], "no ranker to compare"),
        ("gbdt:model.max_bin=63", "Trees has no parameter 'max_bin'; it is called max_bins here"),
        (rw.Ranker(loss=sum), "is not a loss: it has no bind"),
        (rw.Ranker(model=_OwnModel()), "_OwnModel has no registered name"),
        (_OwnRanker(), "_OwnRanker has no registered name"),
        ([3], "must be a name, a ranker, an estimator or fitted model .*, not int"),
        ([rw.MEMR], r"MEMR is a class; write MEMR\(\)"),
        ({"a": [[1.0]]}, "an array of scores, not list"),
        ({"a": np.zeros((2, 2))}, "has one dimension"),
        ({"a": np.array(["x"])}, "must hold numbers"),
        ("a=run:", "'run:' is followed by the name of a TREC run"),
        ("a=run:none.txt", "none.txt"),
        ("a=model:none.rw", "none.rw"),
        ([Ridge(), Ridge(alpha=2.0)], "'Ridge' is listed twice; give one another name"),
        (3, "must be names or rankers, not int"),
    ],
)
def test_wrong_entries_are_told_in_a_sentence(given, sentence):
    with pytest.raises(RankwrightError, match=sentence):
        entries_of(given)
