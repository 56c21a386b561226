"""Names of named_metrics, and evaluating many of them at once."""

import math
from itertools import permutations

import numpy as np
import pytest
from reference import metrics as twins

from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, IncompatibleError, UsageError
from rankwright.metrics.convention import Convention
from rankwright.metrics.evaluation import Evaluator, evaluate
from rankwright.metrics.names import metric, named_metrics


def lists(*grades, **columns):
    y = np.concatenate([np.asarray(g, float) for g in grades])
    sizes = [len(g) for g in grades]
    return RankingData.from_arrays(np.zeros((len(y), 1)), y, group_sizes=sizes, **columns)


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
        ("auc@5", "auc looks at the whole list; write it without @5"),
        ("auc(max_per_group=1)", "auc compares all documents; write it without max_per_group"),
        ("ndcg@5:1", "counts down"),
        ("ndcg@1:3", "names 3 metrics, where one is expected"),
    ],
)
def test_a_wrong_name_is_answered_with_a_sentence(name, sentence):
    with pytest.raises(UsageError, match=sentence):
        metric(name)


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


def test_the_example_of_the_course_ndcg_prefers_f():
    """Truth ABC with grades 6, 4, 3; f ranks ACB and h ranks BAC."""
    data = lists([6, 4, 3])
    f = evaluate(data, [4, 2, 3], "ndcg")["ndcg"]
    h = evaluate(data, [4, 6, 3], "ndcg")["ndcg"]
    ideal = 63 + 15 / math.log2(3) + 7 / 2
    assert f == pytest.approx((63 + 7 / math.log2(3) + 15 / 2) / ideal)
    assert h == pytest.approx((15 + 63 / math.log2(3) + 7 / 2) / ideal)
    assert f > h


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


def test_a_short_list_scores_0_under_letor4_and_ndcg_without_k_is_a_mean():
    data = lists([1, 0], [0, 1, 2])
    found = evaluate(data, [2, 1, 3, 2, 1], "ndcg@3,ndcg,p@3", convention="letor4").per_query
    dcg = [0, 1, 1 + 3 / math.log2(3)]
    ideal = [3, 3 + 1, 3 + 1]
    assert found["ndcg@3"].tolist() == [0, pytest.approx(dcg[2] / ideal[2])]
    mean = np.mean([d / i for d, i in zip(dcg, ideal, strict=True)])
    assert found["ndcg"].tolist() == [1, pytest.approx(mean)]
    assert found["p@3"].tolist() == [1 / 3, 2 / 3]


def test_precision_of_a_short_list():
    data, s = lists([1, 1]), [1, 2]
    assert evaluate(data, s, "p@5")["p@5"] == 2 / 5
    assert evaluate(data, s, "p@5", convention="ranklib")["p@5"] == 1


def test_ranklib_cuts_grades_to_whole_numbers():
    data, s = lists([0.9, 1.9]), [2, 1]
    assert evaluate(data, s, "mrr", convention="ranklib")["mrr"] == 0.5
    found = evaluate(data, s, "ndcg@2", convention="ranklib")["ndcg@2"]
    assert found == pytest.approx(1 / math.log2(3))


def test_err_refuses_a_grade_above_the_highest_and_ranklib_lets_it_pass():
    data = lists([1, 0], [5, 0])
    with pytest.raises(
        DataError, match=r"query 1 has .* grade 5, above .* 4 .* write err\(max=5\)"
    ):
        evaluate(data, [1, 0, 1, 0], "err@10")
    assert evaluate(data, [1, 0, 1, 0], "err(max=5)@10")["err(max=5)@10"] == (1 + 31) / 32 / 2
    found = evaluate(data, [1, 0, 1, 0], "err@10", convention="ranklib")
    assert found["err@10"] == (1 + 31) / 16 / 2


def test_catboost_err_takes_the_grade_for_a_probability():
    found = evaluate(lists([0.8, 0.4]), [2, 1], "err", convention="catboost")
    assert found["err"] == pytest.approx(0.8 + 0.2 * 0.4 / 2)


def test_dorm_mwta_cuts_where_the_next_grade_begins():
    graded, flat = [2, 1, 0, 0], [1, 1, 1, 1, 0, 0]
    data = lists(graded[::-1], flat[::-1])
    name = "wta(modified=true)"
    found = evaluate(data, [4, 3, 2, 1, 6, 5, 4, 3, 2, 1], name)
    third, fifth = twins.ndcg(graded[::-1], None, 3), twins.ndcg(flat[::-1], None, 5)
    assert found.per_query[name].tolist() == pytest.approx([third, fifth])


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


# --- the result ------------------------------------------------------------------------------


def test_the_result_is_a_mapping_that_shows_its_convention():
    found = evaluate(lists([1, 0], [0, 0]), [1, 0, 1, 1], "NDCG@10,map", convention="ranklib")
    assert dict(found) == {"NDCG@10": 0.5, "map": 0.5}
    assert found.convention is Convention.preset("ranklib")
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


def test_a_highest_grade_of_err_beyond_all_numbers_is_refused():
    with pytest.raises(DataError, match=r"grade 2000 has a gain of 2\^2000 - 1"):
        evaluate(lists([2, 0, 1]), [1, 2, 3], "err(max=2000)")


# --- capabilities ----------------------------------------------------------------------------


def test_swaps_have_no_value_under_a_limit_per_group_or_for_a_mean_over_cut_offs():
    data = lists([1, 0], group=[0, 0])
    with pytest.raises(IncompatibleError, match="without max_per_group"):
        metric("ndcg(max_per_group=1)").swap_form(data)
    with pytest.raises(IncompatibleError, match="mean over all cut-offs"):
        metric("ndcg", convention="letor4").swap_form(data)


def test_swaps_of_a_list_that_scores_0_for_being_short_change_nothing():
    form = metric("ndcg@3", convention="letor4").swap_form(lists([1, 0], [1, 0, 0]))
    assert form.scale.tolist() == [0, 1]


def test_swaps_next_to_a_document_that_stops_every_reader():
    """ERR with a probability of 1, where the running products are 0."""
    data = lists([0.3, 1, 0.5, 0.2])
    measure = metric("err@3", convention="catboost")
    matrix = twins.changes_by_swaps(measure.swap_form(data), np.arange(4), 0)
    base = [0.3, 1, 0.5, 0.2]
    for i in range(4):
        for j in range(4):
            g = list(base)
            g[i], g[j] = g[j], g[i]
            assert matrix[i, j] == pytest.approx(abs(cascade(g) - cascade(base)), abs=1e-15)


def cascade(probabilities):
    total, alive = 0.0, 1.0
    for r, stop in enumerate(probabilities[:3], 1):
        total += alive * stop / r
        alive *= 1 - stop
    return total
