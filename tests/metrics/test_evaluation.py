"""Names of named_metrics, and evaluating many of them at once."""

import gzip
import math
from itertools import permutations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import metrics as twins
from sklearn.metrics import ndcg_score
from small_data import lists

import rankwright
import rankwright as rw
from rankwright.data.ranking_data import RankingData
from rankwright.data.trec import judge_run, read_qrels, read_run
from rankwright.errors import DataError, UsageError
from rankwright.metrics.base import metric, named_metrics
from rankwright.metrics.convention import Convention
from rankwright.metrics.evaluation import Evaluator, evaluate
from rankwright.metrics.ndcg import NDCG

# --- names -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "canonical"),
    [
        ("ndcg@10", "ndcg@10"),
        ("NDCG@10", "ndcg@10"),
        ("err(max=5)@10", "err(max=5)@10"),
        ("p( min_grade = 2 )@5", "p(min_grade=2)@5"),
        ("ndcg(max_per_group=2,gain=linear)@5", "ndcg(max_per_group=2,gain=linear)@5"),
        ("rbp(p=0.8)", "rbp"),
        ("wta(modified=true)", "wta(modified=true)"),
        ("ndcg@10-", "ndcg(empty=0)@10"),
        ("map-", "map(empty=0)"),
        ("map(empty=skip,ties=mean)", "map(empty=skip,ties=mean)"),
    ],
)
def test_names_are_read(name, canonical):
    assert repr(metric(name)) == canonical
    assert metric(canonical) == metric(name)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("ncdg@10", "there is no metric 'ncdg'; did you mean ndcg"),
        ("ndcg@", "not the name of a metric; write it like ndcg@10"),
        ("ndcg@ten", "not the name of a metric"),
        ("", "not the name of a metric"),
        ("ndcg@0", "k must be a whole number from 1, not 0"),
        ("ndcg(gian=linear)", "ndcg has no parameter 'gian'; it has .*gain"),
        ("ndcg(gain=cubic)", "gain must be exp2 or linear, not cubic"),
        ("ndcg(linear)", "'linear' has no value"),
        ("ndcg(empty=2)", "empty must be 0 or 1 or skip, not 2"),
        ("ndcg(max_per_group=0)", "max_per_group must be a whole number from 1"),
        ("p(min_grade=-1)", "min_grade must be a number above 0, not -1"),
        ("rbp(p=1)", "p must be a number between 0 and 1, not 1"),
        ("err(max=many)", "max must be a number above 0, not many"),
        ("wta(modified=1)", "modified must be true or false"),
        ("auc@5", "auc uses the whole list; write it without @5"),
        ("auc(max_per_group=1)", "auc compares all documents; write it without max_per_group"),
        ("ndcg@5:1", "counts down"),
        ("ndcg@1:3", "names 3 metrics; name one"),
        ("map@9223372036854775807", "k must be 1,000,000,000 or less; leave k out"),
        ("ndcg@99999999999999999999", "k must be 1,000,000,000 or less; leave k out"),
        pytest.param("ndcg@" + "9" * 5000, "k must be 1,000,000,000 or less", id="5000 digits"),
        ("ndcg@1:999999999", "'ndcg@1:999999999' is a range of more than 1,000 cut-offs"),
        ("ndcg(max_per_group=99999999999999999999)", "max_per_group must be 1,000,000,000 or less"),
        pytest.param(f"err(max={10**400})", "max is too large for a number", id="400 digits"),
    ],
)
def test_a_wrong_name_is_answered_with_a_sentence(name, sentence):
    with pytest.raises(UsageError, match=sentence):
        metric(name)


@pytest.mark.parametrize("k", [True, 2.0, 10**10, 10**20])
def test_a_cut_off_that_cannot_be_one_is_refused(k):
    with pytest.raises(UsageError, match="k must be"):
        NDCG(k=k)


def test_the_largest_cut_off_is_the_whole_list_and_ranges_have_up_to_a_thousand_cut_offs():
    data, scores = lists([2, 0, 1], [0, 1, 0]), [1, 2, 3, 1, 2, 3]
    for name in ("ndcg", "map", "mrr", "recall", "hit", "err"):
        both = evaluate(data, scores, [name, f"{name}@1000000000"])
        assert both[name] == both[f"{name}@1000000000"]
    assert len(named_metrics("ndcg@1:1000")) == 1000


def test_many_names_in_one_text_keep_their_spelling():
    found = named_metrics("NDCG@1:3, p(min_grade=2,empty=0)@5,err@10 , map")
    assert list(found) == [
        "NDCG@1",
        "NDCG@2",
        "NDCG@3",
        "p(min_grade=2,empty=0)@5",
        "err@10",
        "map",
    ]
    assert list(named_metrics("ndcg@9:10-", convention="xgboost")) == ["ndcg@9-", "ndcg@10-"]


def test_measures_themselves_are_accepted_and_keep_their_convention():
    linear = metric("ndcg@2", convention="sklearn")
    found = evaluate(lists([2, 1]), [0, 1], [linear, "ndcg(gain=exp2)@2"])
    assert list(found) == ["ndcg@2", "ndcg(gain=exp2)@2"]
    assert found["ndcg@2"] == pytest.approx((1 + 2 / math.log2(3)) / (2 + 1 / math.log2(3)))


def test_no_names_are_refused():
    with pytest.raises(UsageError, match="there is no metric to compute"):
        evaluate(lists([1]), [0], [])


def test_parameters_that_are_not_written_come_from_the_convention():
    data, s = lists([1, 2]), [1, 0]
    for name, relevant in (("standard", 2), ("mslr", 1)):
        assert evaluate(data, s, "p@2", convention=name)["p@2"] == relevant / 2
    assert evaluate(data, s, "p(min_grade=1)@2", convention="mslr")["p(min_grade=1)@2"] == 1


# --- means -----------------------------------------------------------------------------------


def test_means_are_weighted_by_query():
    data = lists([1, 0], [0, 1], query_weight=[3, 1])
    found = evaluate(data, [1, 0, 1, 0], "p@1,mrr")
    assert found["p@1"] == 3 / 4
    assert found["mrr"] == (3 * 1 + 1 * 0.5) / 4


def test_queries_that_are_left_out_are_nan_and_weigh_nothing():
    data = lists([1, 0], [0, 0], [1, 0], query_weight=[1, 5, 1])
    found = evaluate(data, [1, 0, 1, 0, 0, 1], "p(empty=skip)@1")
    np.testing.assert_array_equal(found.per_query["p(empty=skip)@1"], [1, np.nan, 0])
    assert found["p(empty=skip)@1"] == 0.5


def test_a_mean_over_no_query_is_nan():
    assert math.isnan(evaluate(lists([0, 0]), [1, 2], "auc")["auc"])


@pytest.mark.parametrize(
    ("convention", "name", "value"),
    [
        ("standard", "ndcg", 0),
        ("lightgbm", "ndcg", 1),
        ("xgboost", "ndcg", 1),
        ("xgboost", "ndcg-", 0),
        ("catboost", "ndcg", 1),
        ("catboost", "map", 0),
        ("catboost", "recall@2", 1),
        ("catboost", "mrr", 0),
        ("lightgbm", "map@3", 1),
        ("lightgbm", "p@1", 0),
        ("lightgbm", "eru(normalised=true)", 1),
        ("lightgbm", "eru", 0),
        ("trec_eval", "map", 0),
        (Convention(empty="skip"), "dcg", np.nan),
        (Convention(empty="skip"), "ndcg", np.nan),
        ("lightgbm", "pair_error", np.nan),
    ],
)
def test_what_an_empty_query_is_worth(convention, name, value):
    found = evaluate(lists([0, 0], [0, 1]), [2, 1, 2, 1], name, convention=convention)
    np.testing.assert_equal(found.per_query[name][0], value)
    assert found.empty_queries == 1


def test_lightgbm_and_xgboost_add_an_empty_query_unweighted_to_ndcg_alone():
    data = lists([0, 0], [1, 0], query_weight=[5, 2])
    for convention in ("lightgbm", "xgboost"):
        found = evaluate(data, [0, 0, 0, 1], "ndcg@2,map@2", convention=convention)
        assert found["ndcg@2"] == pytest.approx((1 + 2 / math.log2(3)) / 7)
        assert found["map@2"] == pytest.approx((5 * 1 + 2 * 0.5) / 7)


def test_ranklib_cuts_grades_to_whole_numbers():
    data, s = lists([0.9, 1.9]), [2, 1]
    assert evaluate(data, s, "mrr", convention="ranklib")["mrr"] == 0.5
    found = evaluate(data, s, "ndcg@2", convention="ranklib")["ndcg@2"]
    assert found == pytest.approx(1 / math.log2(3))


# --- scores and ties -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scores", "sentence"),
    [
        ([1, 2], "one score per row: 3 are expected, not 2"),
        ([[1, 2, 3]], r"an array of shape \(1, 3\)"),
        ([1, np.nan, 2], r"the score of row 1 \(query 0\) is NaN"),
        ([1, 2, np.nan], r"the score of row 2 \(query 1\) is NaN"),
        (["a", "b", "c"], "scores must be numbers"),
    ],
)
def test_bad_scores_are_refused(scores, sentence):
    with pytest.raises(DataError, match=sentence):
        evaluate(lists([1, 0], [1]), scores, "ndcg")


def test_scores_may_be_a_column_integers_or_infinite():
    data = lists([0, 1, 2])
    for scores in ([[1], [2], [3]], [1, 2, 3], [-np.inf, 0, np.inf], [False, 0.5, True]):
        assert evaluate(data, scores, "ndcg")["ndcg"] == 1


def test_ties_are_broken_as_the_convention_says():
    data = lists([0, 1], doc_id=["b", "a"])
    tied = [1, 1]
    expected = {
        "file": 1 / 2,
        "reverse": 1,
        "doc_id": 1 / 2,
        "worst": 1 / 2,
        "best": 1,
        "mean": 3 / 4,
    }
    for ties, value in expected.items():
        assert evaluate(data, tied, f"mrr(ties={ties})")[f"mrr(ties={ties})"] == value
    nameless = lists([0, 1])
    assert evaluate(nameless, tied, "mrr(ties=doc_id)")["mrr(ties=doc_id)"] == 1


def test_ties_that_matter_are_counted_and_bounded():
    data = lists([0, 1], [1, 1], [1, 0])
    found = evaluate(data, [1, 1, 1, 1, 2, 1], "mrr,p@1")
    assert found.tie_queries == 1
    assert found.tie_intervals()["mrr"] == ((0.5 + 2) / 3, (0.75 + 2) / 3, 1)
    assert found.tie_intervals()["p@1"].mean == pytest.approx((0.5 + 2) / 3)


def test_tie_intervals_are_of_the_scores_that_were_evaluated():
    s = np.array([1.0, 1.0])
    found = evaluate(lists([0, 1]), s, "mrr")
    s[:] = [0, 1]
    assert found.tie_intervals()["mrr"] == (0.5, 0.75, 1)


def test_the_mean_over_ties_is_given_under_a_limit_per_group():
    data = lists([0, 1, 1], group=["x", "x", "y"])
    name = "p(max_per_group=1)@1"
    interval = evaluate(data, [1, 1, 0], name).tie_intervals()[name]
    assert (interval.worst, interval.best) == (0, 1)
    assert interval.mean == pytest.approx(0.5, abs=0.25)  # 5 standard errors of 100 orders


# --- a maximum number of documents of a group ----------------------------------------------------


@pytest.mark.parametrize("limit", [1, 2])
@pytest.mark.parametrize("name", ["ndcg@3", "dcg", "map", "p@2", "recall@2", "err", "rprec"])
def test_a_limit_per_group_shortens_the_list_and_the_ideal(name, limit):
    grades, groups = [2, 1, 0, 2, 1], ["x", "x", "x", "y", "z"]
    orders = list(permutations(range(5)))
    data = lists(
        *([grades[i] for i in order] for order in orders),
        group=[groups[i] for order in orders for i in order],
    )
    spelled = name.replace("@", f"(max_per_group={limit})@")
    spelled = spelled if "@" in name else f"{name}(max_per_group={limit})"
    values = evaluate(data, np.tile(np.arange(5, 0, -1), len(orders)), spelled).per_query[spelled]
    shown = [limited(order, groups, limit) for order in orders]
    ideal = limited(sorted(range(5), key=lambda i: -grades[i]), groups, limit)
    best = sorted((grades[i] for i in ideal), reverse=True)
    for value, kept in zip(values, shown, strict=True):
        assert value == pytest.approx(value_of(name, [grades[i] for i in kept], best))
    assert values.max() == pytest.approx(value_of(name, best, best))


def limited(order, groups, limit):
    kept = []
    for i in order:
        if sum(groups[j] == groups[i] for j in kept) < limit:
            kept.append(i)
    return kept


def value_of(name, shown, best):
    """The slow twin of the list shown, with what there is to find taken from the best list."""
    key, _, k = name.partition("@")
    k = int(k) if k else None
    R = sum(g >= 1 for g in best)
    hits = [g >= 1 for g in shown]
    if key == "ndcg":
        return twins.dcg(shown, None, k) / twins.dcg(best, None, k)
    if key == "map":
        return sum(sum(hits[: r + 1]) / (r + 1) for r in range(len(shown)) if hits[r]) / R
    if key == "recall":
        return sum(hits[:k]) / R
    if key == "rprec":
        return sum(hits[:R]) / R
    return getattr(twins, key)(shown, None, k)


def test_a_limit_per_group_needs_groups():
    with pytest.raises(DataError, match="needs the group of each document"):
        evaluate(lists([1, 0]), [1, 2], "ndcg(max_per_group=1)")


def test_groups_may_be_of_any_type_and_are_counted_in_each_query_anew():
    for group in (np.array([7, 7, 7, 9]), ["b", "b", "b", "a"], np.array([7, 7, 7, "a"], object)):
        data = lists([1, 1], [1, 1], group=group)
        found = evaluate(data, [2, 1, 2, 1], "p(max_per_group=1)@2")
        assert found.per_query["p(max_per_group=1)@2"].tolist() == [1 / 2, 1]


@pytest.mark.parametrize("name", ["ndcg@10", "dcg", "err(max=200)", "wta(modified=true)"])
def test_exponential_gains_of_counts_are_warned_about_once(name):
    data = lists([200, 3, 0], [1, 0, 1])
    with pytest.warns(UserWarning, match=r"highest grade is 200: with gains of 2\^grade") as caught:
        evaluate(data, [1, 2, 3, 1, 2, 3], name)
    assert len(caught) == 1


def test_grades_up_to_31_and_metrics_without_exponential_gains_are_not_warned_about():
    scores = [1, 2, 3]
    evaluate(lists([31, 3, 0]), scores, "ndcg@10,dcg,err(max=31),map")
    counts = lists([200, 3, 0])
    evaluate(counts, scores, "ndcg(gain=linear)@10,map,mrr,p@2,auc")
    evaluate(counts, scores, "ndcg@10", convention="trec_eval")


# --- the result ------------------------------------------------------------------------------


def test_the_result_is_a_mapping_that_shows_its_convention():
    found = evaluate(lists([1, 0], [0, 0]), [1, 0, 1, 1], "NDCG@10,map", convention="ranklib")
    assert dict(found) == {"NDCG@10": 0.5, "map": 0.5}
    assert found.convention is Convention.named("ranklib")
    assert repr(found).splitlines() == [
        "Evaluation (convention ranklib, 2 queries, 1 empty, 0 with ties that matter)",
        "  NDCG@10  0.5000",
        "  map      0.5000",
    ]


def test_a_metric_writes_per_query_values_by_itself():
    data = lists([1, 0], [0, 1])
    out = np.empty(2)
    metric("mrr").per_query(np.array([2.0, 1, 2, 1]), data, out)
    assert out.tolist() == [1, 0.5]


def test_an_evaluator_sorts_out_the_grades_once():
    data = lists([1, 0, 2], [0, 1])
    bound = Evaluator(data, "ndcg@2")
    first = bound([1, 2, 3, 1, 2])
    judged = next(iter(bound._judged.values()))
    again = bound([3, 2, 1, 2, 1])
    assert next(iter(bound._judged.values())) is judged
    assert first["ndcg@2"] > again["ndcg@2"]


@pytest.mark.parametrize("name", ["dcg", "ndcg@2", "wta(modified=true)", "err(max=3000)"])
def test_a_grade_whose_gain_is_beyond_all_numbers_is_refused(name):
    with pytest.raises(DataError, match=r"which overflows; .*make the grades 0, 1, 2"):
        evaluate(lists([2000, 0, 1]), [1, 2, 3], name)


# `evaluate` on arrays and frames: against scikit-learn, NumPy, and the same data grouped first.
Y = [2, 0, 1, 0, 3, 0]
SCORES = [0.9, 0.1, 0.2, 0.8, 0.4, 0.3]
QID = ["b", "a", "b", "a", "b", "c"]


# --- inputs ----------------------------------------------------------------------------------
# `evaluate` on arrays and frames: against scikit-learn, NumPy, and the same data grouped first.


def first_relevant(y, scores, qid):
    """1 / rank of the first document with a grade, by query: NumPy, one query at a time."""
    found = {}
    for query in dict.fromkeys(qid):
        here = np.array(qid) == query
        grades = np.array(y)[here][np.argsort(-np.array(scores)[here], kind="stable")]
        found[query] = 1 / (1 + np.argmax(grades > 0)) if grades.any() else 0.0
    return found


# --- arrays ----------------------------------------------------------------------------------


def test_scores_stay_with_their_grades():
    found = evaluate([0, 1, 2, 0], [0.3, 0.1, 0.8, 0.2], "mrr", qid=["b", "a", "b", "a"])
    assert found.per_query["mrr"].tolist() == [1, 1 / 2]  # b: 0.8 is right; a: 0.2 is not


def test_rows_may_come_in_any_order():
    found = evaluate(Y, SCORES, "mrr,p@1", qid=QID)
    assert found.qid.tolist() == ["b", "a", "c"]
    assert found.per_query["mrr"].tolist() == list(first_relevant(Y, SCORES, QID).values())
    assert found["p@1"] == 1 / 3


rows = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, 10**6)),
    min_size=2,
    max_size=40,
    unique_by=lambda row: row[2],  # no ties
)


@given(rows, st.sampled_from([None, 1, 3]))
def test_ndcg_is_that_of_scikit_learn(rows, k):
    qid, y, scores = (np.array(column) for column in zip(*rows, strict=True))
    name = "ndcg" if k is None else f"ndcg@{k}"
    found = evaluate(y, scores, name, qid=qid, convention="sklearn", n_jobs=1)
    for query, value in zip(found.qid, found.per_query[name], strict=True):
        here = qid == query
        if here.sum() == 1:
            assert math.isnan(value)  # scikit-learn refuses a list of one
        else:
            assert value == pytest.approx(ndcg_score([y[here]], [scores[here]], k=k), abs=1e-12)


@given(rows, st.randoms(use_true_random=False))
def test_shuffled_rows_give_the_same_values(rows, random):
    mixed = random.sample(rows, len(rows))
    frames = []
    for some in (rows, mixed):
        qid, y, scores = zip(*some, strict=True)
        found = evaluate(y, scores, "map,ndcg@3", qid=qid, n_jobs=1).to_frame()
        frames.append(found.sort_values("qid", ignore_index=True))
    pd.testing.assert_frame_equal(*frames)


FORMS = {
    "list": list,
    "tuple": tuple,
    "array": np.array,
    "column": lambda values: np.array(values)[:, None],
    "pandas": pd.Series,
    "polars": pl.Series,
    "arrow": pa.array,
    "chunked": lambda values: pa.chunked_array([values[:2], values[2:]]),
}


@pytest.mark.parametrize("form", FORMS)
def test_any_array_will_do(form):
    make = FORMS[form]
    found = evaluate(make(Y), make(SCORES), "ndcg@2,map", qid=make(QID))
    assert dict(found) == dict(evaluate(Y, SCORES, "ndcg@2,map", qid=QID))


def test_categories_and_sizes_are_queries():
    found = evaluate(Y, SCORES, "mrr", qid=pd.Categorical(QID))
    assert found["mrr"] == evaluate(Y, SCORES, "mrr", qid=QID)["mrr"]
    sized = evaluate(Y, SCORES, "mrr", group_sizes=[4, 0, 2])
    np.testing.assert_array_equal(sized.per_query["mrr"], [1, 0, 1])
    assert sized.qid.tolist() == [0, 1, 2]


def test_weights_groups_and_document_ids_follow_their_rows():
    weights = {"b": 5.0, "a": 1.0, "c": 2.0}
    expected = first_relevant(Y, SCORES, QID)
    mean = sum(weights[q] * expected[q] for q in weights) / sum(weights.values())
    per_row = [weights[q] for q in QID]
    assert evaluate(Y, SCORES, "mrr", qid=QID, query_weight=per_row)["mrr"] == pytest.approx(mean)
    per_query = list(weights.values())  # in order of first appearance
    assert evaluate(Y, SCORES, "mrr", qid=QID, query_weight=per_query)["mrr"] == pytest.approx(mean)
    host = ["x", "h", "y", "h", "x", "h"]  # of b, row 4 (grade 3) is below row 0 of its host
    name = "dcg(max_per_group=1,gain=linear)"
    found = evaluate(Y, SCORES, name, qid=QID, group=host).per_query[name]
    assert found[0] == pytest.approx(2 + 1 / math.log2(3))
    tied = evaluate(
        [1, 0, 0, 1], [1] * 4, "mrr", qid=[1, 2, 1, 2], doc_id=list("zxay"), convention="trec_eval"
    )
    assert tied.per_query["mrr"].tolist() == [1, 1]  # z before a, y before x


def test_ranking_data_gives_what_its_arrays_give():
    data = RankingData.from_arrays(np.zeros((6, 1)), Y, qid=QID)
    own_order = np.array(SCORES)[data.row]
    found = evaluate(data, own_order, "dcg,ndcg@2")
    assert dict(found) == dict(evaluate(Y, SCORES, "dcg,ndcg@2", qid=QID))
    assert found.qid.tolist() == ["b", "a", "c"]


def test_without_queries_all_rows_are_one_and_a_warning_says_so():
    with pytest.warns(UserWarning, match="no qid was given: all rows are taken as one query") as w:
        found = evaluate(Y, SCORES, "ndcg@3", convention="sklearn")
    assert w[0].filename == __file__
    assert found["ndcg@3"] == pytest.approx(ndcg_score([Y], [SCORES], k=3))
    assert evaluate(Y, SCORES, "ndcg@3", group_sizes=[6]).n_queries == 1  # and here it is meant


class MeanRanker:
    def predict(self, X):
        return np.mean(X, axis=1)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((Y, SCORES[:5], "map"), "one score per row: 6 are expected, not 5"),
        ((Y[:5], SCORES, "map"), "qid has 6 values, where 5 are expected"),
        ((Y, [*SCORES[:5], math.nan], "map"), r"the score of row 5 \(query c\) is NaN"),
        ((Y, [1, math.nan, 1, 1, 1, 1], "map"), r"the score of row 1 \(query a\) is NaN"),
        (([2, 0, math.nan, 0, 1, 0], SCORES, "map"), r"row 2 \(query b\) has nan"),
        (([2, 0, 1, -1, 1, 0], SCORES, "map"), r"grades must be .* row 3 \(query a\) has -1"),
        ((["good"] * 6, SCORES, "map"), "y must be numbers; row 0 holds 'good'"),
        ((Y, ["good"] * 6, "map"), "scores must be numbers"),
        (((Y, QID), SCORES, "map"), "is a tuple of 2 arrays; write evaluate"),
        ((([[1]], Y, QID), SCORES, "map"), "is a tuple of 3 arrays; write evaluate"),
        (
            (MeanRanker(), SCORES, "map"),
            "the first argument is a MeanRanker; pass its predictions",
        ),
        ((Y, MeanRanker(), "map"), "the scores argument is a MeanRanker; pass its predictions"),
        (([[1, 2], [3]], SCORES, "map"), "lists of different lengths"),
        ((np.zeros((2, 3)), SCORES, "map"), r"shape \(2, 3\).*put all queries end to end"),
        (("test.txt", SCORES, "map"), "is a text .test.txt.; read a file with rankwright.load"),
        ((None, SCORES, "map"), "the grades are None"),
        ((7, SCORES, "map"), "the grades are int, not an array"),
        ((Y, "score", "map"), "scores is a text, 'score'; pass an array with a value for each"),
        (([], [], "map"), "there are no rows to evaluate"),
        ((Y, SCORES, QID), "'b' is not the name of a measure|there is no metric 'b'"),
        ((Y, SCORES, [1, 2]), "a metric is a name, a Metric or a function .* not 1"),
    ],
)
def test_wrong_arrays_are_answered_with_a_sentence(arguments, sentence):
    qid = QID if arguments[1] else []
    with pytest.raises((DataError, UsageError), match=sentence):
        evaluate(*arguments, qid=qid)


def test_arguments_that_do_not_belong_together_are_refused():
    data = RankingData.from_arrays(np.zeros((6, 1)), Y, qid=QID)
    with pytest.raises(UsageError, match="RankingData and click logs have their own qid; leave"):
        evaluate(data, SCORES, "map", qid=QID)
    with pytest.raises(DataError, match="not both"):
        evaluate(Y, SCORES, "map", qid=QID, group_sizes=[6])
    with pytest.raises(UsageError, match="qid is a text, 'query'; pass an array"):
        evaluate(Y, SCORES, "map", qid="query")
    with pytest.raises(DataError, match="sizes of queries are given as group_sizes"):
        evaluate(Y, SCORES, "map", qid=[4, 2])


def test_series_whose_indexes_differ_in_order_are_refused():
    y, scores = pd.Series(Y), pd.Series(SCORES)
    with pytest.raises(DataError, match=r"index of scores is that of y in another order.*y\.index"):
        evaluate(y, scores.sort_values(), "map", qid=QID)
    shifted = pd.Series(SCORES, index=range(10, 16))  # another index altogether: by place
    assert dict(evaluate(y, shifted, "map", qid=QID)) == dict(evaluate(Y, SCORES, "map", qid=QID))


FRAME = pd.DataFrame(
    {"grade": Y, "score": SCORES, "query": QID, "host": list("xhyhxh"), "w": [5, 1, 5, 1, 5, 2]}
)
BACKENDS = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "lazy": lambda frame: pl.from_pandas(frame).lazy().collect(),
    "arrow": pa.Table.from_pandas,
}


# --- frames ----------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
def test_columns_of_frames_are_arrays(backend):
    frame = BACKENDS[backend](FRAME)
    names = "mrr,ndcg(max_per_group=1)@2"
    grades, scores, qid = (frame[column] for column in ("grade", "score", "query"))
    found = evaluate(grades, scores, names, qid=qid, query_weight=frame["w"], group=frame["host"])
    arrays = evaluate(Y, SCORES, names, qid=QID, query_weight=FRAME["w"], group=list(FRAME["host"]))
    assert dict(found) == dict(arrays)
    assert found.qid.tolist() == ["b", "a", "c"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_frame_is_refused_with_the_call_that_names_its_columns(backend):
    """The columns are found by their usual names."""
    frame = BACKENDS[backend](FRAME)
    call = r"evaluate\(frame\['grade'\], frame\['score'\], metrics, qid=frame\['query'\]\)"
    for use in (
        lambda: evaluate(frame, "score", "map", qid="query"),
        lambda: evaluate(frame, SCORES, "map", qid=QID),
    ):
        with pytest.raises(UsageError, match=f"the first argument is a frame; write {call}"):
            use()
    renamed = FRAME.rename(columns={"grade": "relevance", "query": "query_id", "score": "s"})
    call = r"evaluate\(frame\['relevance'\], frame\['score'\], .*qid=frame\['query_id'\]"
    with pytest.raises(UsageError, match=call):
        evaluate(renamed, "s", "map")
    missing = FRAME.astype({"query": object}).copy()
    missing.loc[3, "query"] = None
    with pytest.raises(DataError, match="the query id is missing at row 3"):
        evaluate(missing["grade"], missing["score"], "map", qid=missing["query"])


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_a_frame_has_a_row_for_each_query(backend):
    found = evaluate(Y, SCORES, "mrr,auc", qid=QID)
    frame = found.to_frame(backend)
    names = frame.column_names if backend == "pyarrow" else list(frame.columns)
    assert names == ["qid", "mrr", "auc"]
    assert list(np.asarray(frame["qid"])) == ["b", "a", "c"]
    for name in ("mrr", "auc"):
        np.testing.assert_array_equal(np.asarray(frame[name]), found.per_query[name])
    assert np.isnan(np.asarray(frame["auc"])[2])  # c has one document: left out


def test_without_pandas_a_sentence_says_what_to_install(monkeypatch):
    import narwhals

    def not_there(*_, **__):
        raise ModuleNotFoundError("no module")

    monkeypatch.setattr(narwhals, "from_dict", not_there)
    found = evaluate(Y, SCORES, "mrr", qid=QID)
    with pytest.raises(UsageError, match="pandas is not installed: pip install pandas"):
        found.to_frame()


def test_the_public_name_is_this_function():
    assert rankwright.evaluate is evaluate


# Runs against judgments: what counts, how they may be given, and what is refused.
QRELS = {"q1": {"d1": 0, "d2": 2, "d7": 1}, "q2": {"d4": 1, "d5": 0}, "q4": {"d1": 1}}
RUN = {"q1": {"d1": 3, "d2": 2, "d3": 1}, "q2": {"d4": 2, "d5": 1}, "q3": {"d9": 1}}
SECOND = 1 / np.log2(3)
BOTH = {"ndcg@10": (2 * SECOND / (2 + SECOND) + 1) / 2, "map": (1 / 4 + 1) / 2}


# --- runs ------------------------------------------------------------------------------------
# Runs against judgments: what counts, how they may be given, and what is refused.


def run_rows(by_query):
    return [(q, d, value) for q, documents in by_query.items() for d, value in documents.items()]


def text_of_run(run=RUN):
    return "".join(f"{q} Q0 {d} {n} {s} tag\n" for n, (q, d, s) in enumerate(run_rows(run)))


def text_of_qrels(qrels=QRELS):
    return "".join(f"{q} 0 {d} {g}\n" for q, d, g in run_rows(qrels))


def test_documents_that_were_not_retrieved_are_in_the_ideal_and_in_r():
    found = rw.evaluate_run(RUN, QRELS, "ndcg@10,map")
    assert dict(found) == pytest.approx(BOTH)
    assert [round(value, 4) for value in found.values()] == [0.7398, 0.6250]
    assert found.qid.tolist() == ["q1", "q2"]
    assert found.n_queries == 2
    assert found.left_out == {"q3": "has no judgments", "q4": "is not in the run"}
    assert found.per_query["map"].tolist() == [1 / 4, 1]
    assert "1 left out, as the query is not in the run: q4" in repr(found)
    assert found.to_frame()["qid"].tolist() == ["q1", "q2"]


def test_complete_counts_every_judged_query():
    found = rw.evaluate_run(RUN, QRELS, "ndcg@10,map,p", complete=True)
    assert found.qid.tolist() == ["q1", "q2", "q4"]
    assert found["ndcg@10"] == pytest.approx(BOTH["ndcg@10"] * 2 / 3)
    assert found.per_query["p"].tolist() == [1 / 3, 1 / 2, 0]
    assert found.left_out == {"q3": "has no judgments"}


def test_the_relevance_level_is_named_and_leaves_ndcg_as_it_is():
    found = rw.evaluate_run(RUN, QRELS, "ndcg@10,map", relevance_level=2)
    assert dict(found) == pytest.approx({"ndcg@10": BOTH["ndcg@10"], "map": (1 / 2 + 0) / 2})
    assert found.convention.name == "trec_eval(min_grade=2)"
    assert found.empty_queries == 1  # q2 has a document of grade 1 at best
    assert rw.evaluate_run(RUN, QRELS, relevance_level=1).convention.name == "trec_eval"


def test_bpref_passes_over_documents_without_a_judgment():
    qrels = {"q": {"bad": 0, "good": 1, "other": 0}}
    ranked = {"q": {"x": 4, "bad": 3, "y": 2, "good": 1}}
    assert rw.evaluate_run(ranked, qrels, "bpref")["bpref"] == 0  # one of min(2, 1) above
    assert rw.evaluate_run({"q": {"x": 4, "y": 3, "good": 1}}, qrels, "bpref")["bpref"] == 1


def test_scores_are_compared_in_single_precision_and_ties_go_by_name():
    qrels = {"q": {"a": 1, "b": 0}}
    close = {"q": {"a": 1 + 1e-9, "b": 1.0}}
    assert rw.evaluate_run(close, qrels, "mrr")["mrr"] == 1 / 2
    assert rw.evaluate_run(close, qrels, "mrr", convention="ranx")["mrr"] == 1
    ties = rw.evaluate_run(close, qrels, "mrr").tie_intervals()["mrr"]
    assert ties == (1 / 2, 3 / 4, 1)


def test_other_conventions_and_metrics_look_at_the_same_documents():
    second = (2**2 - 1) * SECOND / (2**2 - 1 + SECOND)
    assert rw.evaluate_run(RUN, QRELS, "ndcg", convention="standard")["ndcg"] == pytest.approx(
        (second + 1) / 2
    )
    # LETOR 4.0's mean of NDCG@1 to NDCG@3, ranks 1 and 2 undiscounted: 0, 3/4 and 3/4; and 1
    letor = rw.evaluate_run(RUN, QRELS, "ndcg", convention="letor4")
    assert letor["ndcg"] == pytest.approx(((0 + 3 / 4 + 3 / 4) / 3 + 1) / 2)

    def listed(scores, grades):
        return len(scores) + 10 * grades.sum()

    assert rw.evaluate_run(RUN, QRELS, listed).per_query["listed"].tolist() == [23, 12]
    assert rw.evaluate_run(RUN, QRELS, "wta")["wta"] == 1 / 2
    assert rw.evaluate_run(RUN, QRELS, "err@1").per_query["err@1"].tolist() == [0, 1 / 16]


@pytest.mark.parametrize("frame", ["pandas", "polars", "pyarrow", "docno", "numbers"])
def test_frames(frame):
    run = pd.DataFrame(run_rows(RUN), columns=["qid", "doc_id", "score"])
    qrels = pd.DataFrame(run_rows(QRELS), columns=["query_id", "docno", "relevance"])
    if frame == "polars":
        run, qrels = pl.from_pandas(run), pl.from_pandas(qrels)
    elif frame == "pyarrow":
        run, qrels = pl.from_pandas(run).to_arrow(), pl.from_pandas(qrels).to_arrow()
    elif frame == "docno":
        run = run.rename(columns={"doc_id": "docno"}).assign(rank=0)
        qrels = qrels.rename(columns={"relevance": "score"})
    elif frame == "numbers":  # integers in one, text in the other
        run = run.assign(qid=run["qid"].str[1:].astype(int))
        qrels = qrels.assign(query_id=qrels["query_id"].str[1:])
    assert dict(rw.evaluate_run(run, qrels)) == pytest.approx(BOTH)


@pytest.mark.parametrize("suffix", ["txt", "txt.gz", "csv", "tsv", "parquet"])
def test_files(tmp_path, suffix):
    paths = tmp_path / f"run.{suffix}", tmp_path / f"qrels.{suffix}"
    tables = (
        pd.DataFrame(run_rows(RUN), columns=["qid", "doc_id", "score"]),
        pd.DataFrame(run_rows(QRELS), columns=["query-id", "corpus-id", "score"]),
    )
    for path, table, text in zip(paths, tables, (text_of_run(), text_of_qrels()), strict=True):
        if suffix == "txt":
            path.write_text(text)
        elif suffix == "txt.gz":
            path.write_bytes(gzip.compress(text.encode()))
        elif suffix == "parquet":
            table.to_parquet(path)
        else:
            table.to_csv(path, index=False, sep="," if suffix == "csv" else "\t")
    assert dict(rw.evaluate_run(*paths)) == pytest.approx(BOTH)
    assert read_run(str(paths[0])) == RUN
    assert read_qrels(paths[1]) == QRELS


def test_judgments_with_tabs_and_no_names_are_lines_of_trec(tmp_path):
    path = tmp_path / "qrels.dev.tsv"
    path.write_text(text_of_qrels().replace(" ", "\t"))
    assert read_qrels(path) == QRELS


@pytest.mark.parametrize("form", ["mapping", "frame", "file"])
def test_an_empty_run_is_0_for_every_judged_query_when_all_are_asked_for(form, tmp_path):
    path = tmp_path / "empty.run"
    path.write_text("# nothing was found\n")
    frame = pd.DataFrame({"qid": [], "doc_id": [], "score": []})
    run = {"mapping": {}, "frame": frame, "file": path}[form]
    with pytest.raises(DataError, match="is empty"):
        rw.evaluate_run(run, QRELS)
    with pytest.warns(UserWarning, match="the run is empty: nothing is retrieved for 3 queries"):
        found = rw.evaluate_run(run, QRELS, "ndcg@10,map,mrr,bpref,p@5", complete=True)
    assert set(found.values()) == {0.0}
    assert found.qid.tolist() == ["q1", "q2", "q4"]


def test_empty_judgments_are_a_mean_over_no_query_when_all_are_asked_for():
    with pytest.raises(DataError, match="qrels is empty"):
        rw.evaluate_run(RUN, {})
    with pytest.warns(UserWarning, match="the judgments are empty, so metrics are means over no"):
        found = rw.evaluate_run(RUN, {}, "ndcg@10,map", complete=True)
    assert np.isnan(list(found.values())).all()
    assert (found.n_queries, found.empty_queries, found.tie_queries) == (0, 0, 0)
    assert found.left_out == dict.fromkeys(RUN, "has no judgments")


def test_a_run_that_shares_no_document_with_the_judgments_is_warned_about():
    """Ids read as 1 by one tool and as 1.0 by another."""
    run, qrels = {"q1": {1.0: 3, 2.0: 2}}, {"q1": {1: 1, 2: 0}}
    says = "for query 'q1' the run has documents such as '1.0', the judgments such as '1'; check"
    with pytest.warns(UserWarning, match=says):
        assert rw.evaluate_run(run, qrels)["map"] == 0.0
    run, qrels = {1.0: {"d": 1}, 2.0: {"e": 1}}, {1: {"d": 1}, 2: {"e": 1}}
    with pytest.raises(DataError, match=r"no query in common: the run has 1\.0, 2\.0, the judg"):
        rw.evaluate_run(run, qrels)
    with pytest.warns(UserWarning, match=r"no query in common: the run has 1\.0, 2\.0, the judg"):
        assert rw.evaluate_run(run, qrels, complete=True)["map"] == 0.0
    assert rw.evaluate_run({"q1": {"a": 1}, "q2": {"x": 1}}, QRELS | {"q1": {"a": 1}})["map"] == 0.5


def test_a_score_of_minus_infinity_ranks_last_unless_it_is_not_retrieved():
    data, scores = lists([2, 0, 1]), np.array([1.0, 0.5, -np.inf])
    assert evaluate(data, scores, "recall@3")["recall@3"] == 1.0
    retrieved = Evaluator(data, "recall@3", retrieved=scores > -np.inf)
    assert retrieved(scores)["recall@3"] == 0.5


def test_a_run_beside_its_judgments_in_arrays():
    both = judge_run(RUN, QRELS, complete=True)
    assert both.data.qid.tolist() == ["q1", "q2", "q4"]
    assert both.data.doc_id.tolist() == ["d1", "d2", "d3", "d7", "d4", "d5", "d1"]
    assert both.data.y.tolist() == [0, 2, 0, 1, 1, 0, 1]
    assert both.scores.tolist() == [3, 2, 1, -np.inf, 2, 1, -np.inf]
    assert both.retrieved.tolist() == [True, True, True, False, True, True, False]
    assert both.judged.tolist() == [True, True, False, True, True, True, True]


@pytest.mark.parametrize(
    ("run", "qrels", "sentence"),
    [
        ({"z": {"d": 1}}, QRELS, "no query in common: the run has z, the judgments q1, q2, q4"),
        ({}, QRELS, "run is empty; give a file with lines"),
        ({"q1": ["d1"]}, QRELS, "the run, query 'q1' is of type list; give a mapping"),
        (
            {"q1": {"d1": None}},
            QRELS,
            "the run, query 'q1', document 'd1': the score None is not a",
        ),
        ({"q1": {"d1": "3"}}, QRELS, "query 'q1', document 'd1': the score '3' is not a number"),
        ({"q1": {"d1": np.nan}}, QRELS, "query 'q1', document 'd1': the score nan is not a number"),
        (RUN, {"q1": {"d1": np.inf}}, "query 'q1', document 'd1': the grade inf is not finite"),
        ({1: {"d": 1}, "1": {"d": 1}}, QRELS, "the run, query '1': two ids have the same text"),
        ({"q1": {1: 1, "1": 1}}, QRELS, "the run, query 'q1': two ids have the same text"),
        (None, QRELS, "run is None; give a file .*, a mapping"),
        (RUN, [1, 2], "qrels is of type list; give a file"),
        (pd.DataFrame({"qid": [1], "score": [1]}), QRELS, "no document id column found"),
        (
            pd.DataFrame({"qid": [1, 1], "doc": ["a", "a"], "score": [1, 2]}),
            QRELS,
            "the run, row 1: document 'a' of query 1 appears twice",
        ),
        (
            pd.DataFrame({"qid": [None], "doc": ["a"], "score": [1]}),
            QRELS,
            "the run, row 0: the query id is missing",
        ),
    ],
)
def test_what_is_no_run_is_answered_with_a_sentence(run, qrels, sentence):
    with pytest.raises((DataError, UsageError), match=sentence):
        rw.evaluate_run(run, qrels)


def test_a_score_that_is_no_number_names_the_line(tmp_path):
    (tmp_path / "run").write_text(text_of_run() + "q3 Q0 d4 2 nan tag\n")
    with pytest.raises(DataError, match="line 7: the score nan is not a number"):
        rw.evaluate_run(tmp_path / "run", QRELS)


@pytest.mark.parametrize("name", ["auc", "kendall", "pair_error"])
def test_metrics_that_need_every_score_are_refused(name):
    with pytest.raises(UsageError, match=f"{name} compares the scores of all documents"):
        rw.evaluate_run(RUN, QRELS, name)


@pytest.mark.parametrize("level", [0, -1, "high", True])
def test_a_relevance_level_that_cannot_be_is_refused(level):
    with pytest.raises(UsageError, match="relevance_level must be a number above 0"):
        rw.evaluate_run(RUN, QRELS, relevance_level=level)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("ndcg_cut_10", "ndcg@10"),
        ("map_cut_100", "map@100"),
        ("recip_rank", "mrr"),
        ("P_5", "p@5"),
        ("set_F", "f1"),
        ("iprec_at_recall_0.10", "iprec(recall=0.1)"),
        ("11pt_avg", "iprec"),
        ("nDCG(dcg='exp-log2')@10", "ndcg(gain=exp2)@10"),
        ("AP(rel=2)@100", "map(min_grade=2)@100"),
        ("IPrec@0.1", "iprec(recall=0.1)"),
        ("R@100", "recall@100"),
        ("NumRet", "num_ret"),
        ("NumRet(rel=1)", "num_rel_ret(min_grade=1)"),
        ("alpha_nDCG(alpha=0.2)@20", "alpha_ndcg(alpha=0.2)@20"),
        ("ERR_IA@20", "err_ia@20"),
        ("precision@5", "p@5"),
    ],
)
def test_names_of_other_tools_are_aliases_and_kept_in_results(theirs, ours):
    assert repr(metric(theirs)) == ours
    assert list(named_metrics(theirs)) == [theirs]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("ndcg_cut_10@5", "'ndcg_cut_10@5' has two cut-offs"),
        ("ndcg@1.5", "the cut-off 1.5 of ndcg is not a whole number"),
        ("ndcg@1.5:3", "is not the name of a metric"),
        ("utility_10", "there is no metric 'utility_10'"),
        ("P(judged_only=true)@5", "p has no parameter 'judged_only'"),
    ],
)
def test_names_like_those_of_other_tools_are_answered_with_a_sentence(name, sentence):
    with pytest.raises(UsageError, match=sentence):
        metric(name)


class TensorOnGPU:
    """What `evaluate` uses of a torch tensor on a GPU."""

    is_cuda = True

    def __init__(self, values):
        self.values = values

    def detach(self):
        return self

    def cpu(self):
        return np.asarray(self.values)


def test_scores_on_a_gpu_are_copied_to_the_cpu():
    data, s = lists([2, 0, 1], [0, 1]), np.array([0.1, 0.2, 0.3, 0.4, 0.4])
    found = evaluate(data, TensorOnGPU(s), "ndcg@3,map")
    assert dict(found) == dict(evaluate(data, s, "ndcg@3,map"))
