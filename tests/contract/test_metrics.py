"""What every registered measure promises, checked for each against its slow twin."""

from dataclasses import replace
from itertools import pairwise, permutations, product

import numpy as np
import pytest
from cases import case
from hypothesis import given
from hypothesis import strategies as st
from reference import metrics as twins

from rankwright.data.ranking_data import RankingData
from rankwright.metrics.base import PositionMetric, metric
from rankwright.metrics.convention import CONVENTIONS
from rankwright.metrics.evaluation import Evaluator, evaluate, mean_over_queries
from rankwright.metrics.ranked import SAMPLED_ORDERS, Ranked
from rankwright.metrics.swap import LINEAR_SWAP
from rankwright.registry import METRICS
from rankwright.testing import metric_checks
from rankwright.testing.metrics import (
    LISTS,
    check_degenerate_queries,
    check_rows_of_ties,
    check_threads,
    random_lists,
    tie_patterns,
)
from rankwright.testing.metrics import many_lists as many

# Spellings beside the bare name, by measure; a new measure is tested without.
SPELLINGS = {
    "alpha_ndcg": ["alpha_ndcg@3", "alpha_ndcg(alpha=0.2)@2"],
    "best": ["best@2"],
    "dcg": ["dcg@3", "dcg(gain=linear)@2", "dcg(discount=letor)", "dcg(discount=reciprocal)@4"],
    "err": ["err@3", "err(max=3)@2"],
    "err_ia": ["err_ia@3", "err_ia(alpha=0.8)@2"],
    "eru": ["eru(alpha=2)@3", "eru(d=1)", "eru(alpha=3,d=0.5,normalised=true)"],
    "f1": ["f1@3", "f1(min_grade=2)@2"],
    "gm_map": ["gm_map@2"],
    "hit": ["hit@1", "hit(min_grade=2)@2"],
    "iprec": ["iprec(recall=0)", "iprec(recall=0.5)", "iprec(recall=1,min_grade=2)"],
    "judged": ["judged@2"],
    "map": ["map@2", "map(min_grade=2)@3"],
    "mrr": ["mrr@2", "mrr(min_grade=2)"],
    "ndcg": ["ndcg@1", "ndcg@3", "ndcg(gain=linear,discount=letor)@4"],
    "num_rel_ret": ["num_rel_ret@2"],
    "p": ["p@1", "p@4", "p(min_grade=2)@3"],
    "p_ia": ["p_ia@2"],
    "rbp": ["rbp@2", "rbp(p=0.5)", "rbp(p=0.95,min_grade=2)@3"],
    "recall": ["recall@2", "recall(min_grade=2)@3"],
    "wta": ["wta(modified=true)"],
}
NAMES = [name for key in METRICS for name in [key, *SPELLINGS.get(key, [])]]
each_metric = pytest.mark.parametrize("key", METRICS)
swappable = pytest.mark.parametrize(
    "key", [key for key in METRICS if hasattr(metric(key), "swap_form")]
)


def spellings(key):
    """Return the name of a metric, and names with other parameters."""
    return [key, *SPELLINGS.get(key, [])]


def twin(name, g, s):
    measure = metric(name)
    given = {
        field: value
        for field, value in vars(measure).items()
        if value is not None and field not in ("convention",)
    }
    return getattr(twins, measure.key)([float(x) for x in g], [float(x) for x in s], **given)


def settled(name, value):
    """The standard convention: measures of pairs leave out a query with nothing to find, 0 else."""
    return (np.nan if metric(name).when_empty == "skip" else 0.0) if value is None else value


OF_CONVENTIONS = {  # what clauses of a convention can break, beside the standard one
    check_degenerate_queries: ["lightgbm", "sklearn", "letor4", "ranklib"],
    check_rows_of_ties: ["ranklib"],
    check_threads: ["sklearn", "ranklib"],
}


@each_metric
def test_every_metric_keeps_what_metrics_promise(key):
    for name in spellings(key):
        for check in metric_checks(metric(name)):
            for convention in ["standard", *OF_CONVENTIONS.get(check, [])]:
                with case(name, convention, check.__name__):
                    check(metric(name, convention=convention))


@each_metric
def test_queries_without_anything_to_find_are_counted(key):
    data = RankingData.from_arrays(np.zeros((4, 1)), [0, 2, 1, 1], group_sizes=[0, 1, 1, 2, 0])
    for name, convention in product(spellings(key), CONVENTIONS):
        found = evaluate(data, [0.1, 0.2, 0.3, 0.3], name, convention=convention)
        assert found.empty_queries == 3, (name, convention)


@each_metric
def test_every_order_has_the_value_of_the_slow_twin(key):
    for name, grades in product(spellings(key), LISTS):
        n = len(grades)
        orders = list(permutations(range(n)))
        lists = [[grades[i] for i in order] for order in orders]
        data, s = many(lists, [range(n, 0, -1)] * len(orders))
        found = evaluate(data, s, name).per_query[name]
        expected = [settled(name, twin(name, g, range(n, 0, -1))) for g in lists]
        with case(name, grades):
            np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-15)


@each_metric
def test_worst_mean_and_best_over_ties_are_those_of_all_tied_orders(key):
    for name, grades in product(spellings(key), LISTS):
        with case(name, grades):
            check_over_ties(name, grades)


def check_over_ties(name, grades):
    n, patterns = len(grades), tie_patterns(len(grades))
    data, s = many([grades] * len(patterns), patterns)
    tied = [
        [settled(name, twin(name, g, range(n, 0, -1))) for g in twins.orders_of_ties(grades, p)]
        for p in patterns
    ]
    measure, judged = metric(name), metric(name).judge(data)
    best_of, worst_of = (np.max, np.min) if measure.maximise else (np.min, np.max)
    for ties, expected in (("worst", worst_of), ("best", best_of)):
        found = measure.values(Ranked(judged, s, ties, strict=True), mean=False)
        np.testing.assert_allclose(found, [expected(t) for t in tied], rtol=1e-12, atol=1e-14)
    means, doubt = [np.mean(t) for t in tied], [doubt_of_mean(measure, t) for t in tied]
    found = [measure.values(Ranked(judged, s, "file"), mean=True)]
    selects = measure.for_selection()
    found.append(evaluate(data, s, selects).per_query[repr(selects)])
    if not measure.own_ties:  # what the standard convention reports
        found.append(evaluate(data, s, name).per_query[name])
    for values in found:
        apart = abs(values - means) > 1e-12 * np.abs(means) + 1e-14 + doubt
        assert not apart.any(), (values, means)


def doubt_of_mean(measure, values):
    """Five standard errors of the mean over sampled orders, 0 where the mean is exact."""
    return 0.0 if measure.exact_ties else 5 * np.std(values) / np.sqrt(SAMPLED_ORDERS)


def summary(measure, values):
    ones = np.ones(len(values))
    return mean_over_queries(measure, values, ones, ones)


@each_metric
def test_under_every_convention_models_are_selected_by_the_mean_over_tied_orders(key):
    """Short lists, MeanNDCG, float32 ranks, scikit-learn's ties taken together: all averaged."""
    beyond_a_list = {"ndcg": ["ndcg@5"], "p": ["p@6"], "map": ["map@5"]}
    for name in [*spellings(key), *beyond_a_list.get(key, [])]:
        for convention in CONVENTIONS.keys() - {"standard"}:
            with case(name, convention):
                check_selection_over_ties(name, convention)


def check_selection_over_ties(name, convention):
    lists = [(1, 0, 0, 2, 1), (2, 0, 1), (1, 1), (0, 1, 0, 1), (0, 0, 0)]
    scores = [(1, 1, 0, 0, 0), (1, 1, 1), (0, 0), (0, 1, 1, 0), (1, 1, 0)]
    selects = metric(name, convention=convention).for_selection()
    data, s = many(lists, scores)
    found = evaluate(data, s, selects).per_query[repr(selects)]
    assert not selects.own_ties
    for query, (grades, tied) in enumerate(zip(lists, scores, strict=True)):
        orders = list(twins.orders_of_ties(grades, tied))
        strict, ranks = many(orders, [range(len(grades), 0, -1)] * len(orders))
        values = evaluate(strict, ranks, name, convention=convention).per_query[name]
        near = pytest.approx(
            values.mean(), rel=1e-6, abs=doubt_of_mean(selects, values) + 1e-12, nan_ok=True
        )
        assert found[query] == near, grades


@each_metric
def test_a_rule_for_ties_that_the_name_gives_is_kept_in_selection(key):
    for name, convention in product(spellings(key), CONVENTIONS):
        made = metric(name, convention=convention)
        given = replace(made, ties="file")
        assert given.for_selection() == given, (name, convention)
        assert made.for_selection().setting("ties") == "mean", (name, convention)


limited = pytest.mark.parametrize("key", [key for key in METRICS if metric(key).takes_limit])


@limited
def test_under_a_limit_per_group_the_mean_is_that_of_sampled_orders(key):
    """Closer to the mean over all orders than 5 standard errors of so many samples."""
    grades, scores = (2, 0, 1, 0, 2, 1), (1, 1, 1, 1, 0, 0)
    groups = np.array([0, 0, 0, 1, 0, 1])
    data, s = many([grades], [scores])
    data = replace(data, group=groups)
    name = f"{key}(max_per_group=2)"
    (found,) = evaluate(data, s, name).per_query[name]
    orders = [o for o in permutations(range(6)) if all(s[a] >= s[b] for a, b in pairwise(o))]
    values = []
    for order in orders:
        strict = replace(data, y=data.y[list(order)], group=groups[list(order)])
        values.append(evaluate(strict, np.arange(6, 0, -1.0), name)[name])
    equal = "best", "hit", "p", "f1", "recall", "rprec", "judged", "num_rel", "num_ret"
    assert len(set(values)) > 1 or key in (*equal, "num_rel_ret")
    doubt = 5 * np.std(values) / np.sqrt(SAMPLED_ORDERS)
    assert found == pytest.approx(np.mean(values), abs=doubt + 1e-12)


@limited
def test_sampled_orders_are_the_same_for_any_threads_parts_and_calls(key):
    lists, scores = random_lists(60, tied=True)
    data, s = many(lists, scores)
    data = replace(data, group=np.random.default_rng(2).integers(0, 5, len(s)))
    name = f"{key}(max_per_group=2)"
    whole = evaluate(data, s, name, n_jobs=1).per_query[name]
    assert evaluate(data, s, name, n_jobs=3).per_query[name].tobytes() == whole.tobytes()
    part = evaluate(data.select(np.arange(30, 60)), s[data.indptr[30] :], name).per_query[name]
    assert part.tobytes() == whole[30:].tobytes()
    interval = evaluate(data, s, name).tie_intervals()[name]
    assert interval.mean == pytest.approx(summary(metric(name), whole))


@limited
def test_without_ties_a_limit_per_group_needs_no_samples(key):
    lists, scores = random_lists(30)
    data, s = many(lists, scores)
    data = replace(data, group=np.random.default_rng(2).integers(0, 5, len(s)))
    name = f"{key}(max_per_group=2)"
    averaged, in_file = (
        evaluate(data, s, f"{key}(max_per_group=2,ties={ties})") for ties in ("mean", "file")
    )
    for found, expected in zip(
        averaged.per_query.values(), in_file.per_query.values(), strict=True
    ):
        assert found.tobytes() == expected.tobytes()
    assert evaluate(data, s, name)[name] == next(iter(averaged.values()))


@each_metric
def test_tie_intervals_are_means_over_queries_of_those_values(key):
    lists, scores = random_lists(tied=True)
    data, s = many(lists, scores)
    for name in spellings(key):
        interval = evaluate(data, s, name).tie_intervals()[name]
        measure, judged = metric(name), metric(name).judge(data)
        worst, best = (
            summary(measure, measure.values(Ranked(judged, s, ties, strict=True), mean=False))
            for ties in ("worst", "best")
        )
        mean = summary(measure, measure.values(Ranked(judged, s, "file"), mean=True))
        with case(name):
            np.testing.assert_allclose(interval, (worst, mean, best), rtol=1e-12)
        low, high = sorted((worst, best))
        assert low - 1e-15 <= mean <= high + 1e-15, name


@each_metric
def test_long_lists_agree_with_the_slow_twin(key):
    for name in spellings(key):
        for tied in (False, True) if metric(name).own_ties else (False,):
            lists, scores = random_lists(40, tied=tied)
            data, s = many(lists, scores)
            found = evaluate(data, s, name).per_query[name]
            by_score = [twins.by_score(g, s) for g, s in zip(lists, scores, strict=True)]
            expected = [settled(name, twin(name, g, s)) for g, s in by_score]
            with case(name, f"tied: {tied}"):
                np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


documents = st.tuples(st.sampled_from([0.0, 0.0, 0.5, 1.0, 2.0, 3.0]), st.integers(-2, 2))


@given(
    st.sampled_from([n for n in NAMES if metric(n).exact_ties]),
    st.lists(st.lists(documents, min_size=1, max_size=5), min_size=1),
)
def test_any_lists_agree_with_the_slow_twin(name, queries):
    grades = [[g for g, _ in query] for query in queries]
    scores = [[s for _, s in query] for query in queries]
    data, s = many(grades, scores)
    found = evaluate(data, s, name).per_query[name]
    expected = [expected_value(name, g, s) for g, s in zip(grades, scores, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


def expected_value(name, grades, scores):
    """The slow twin's value, averaged over the orders of ties where they have no meaning."""
    if metric(name).own_ties:
        return settled(name, twin(name, *twins.by_score(grades, scores)))
    n = len(grades)
    orders = twins.orders_of_ties(grades, scores)
    return np.mean([settled(name, twin(name, g, range(n, 0, -1))) for g in orders])


@swappable
def test_the_change_by_a_swap_is_that_of_computing_anew(key):
    for name in spellings(key):
        with case(name):
            check_changes_by_swaps(metric(name))


def check_changes_by_swaps(measure):
    lists, scores = random_lists(30)
    data, s = many(lists, scores)
    order = Ranked(measure.judge(data), s, "file").order
    form = measure.swap_form(data)
    for q in range(data.n_queries):
        rows = slice(data.indptr[q], data.indptr[q + 1])
        g = data.y[order[rows]]
        n = len(g)
        swapped = np.tile(g, (n * n, 1))
        for i, j in product(range(n), repeat=2):
            swapped[i * n + j, [i, j]] = g[[j, i]]
        all_swaps, ranks = many(swapped, [range(n, 0, -1)] * n * n)
        values = evaluate(all_swaps, ranks, measure).per_query[repr(measure)].reshape(n, n)
        np.testing.assert_allclose(
            twins.changes_by_swaps(form, order[rows], q), abs(values - values[0, 0]), atol=1e-14
        )


@swappable
def test_where_swaps_are_linear_the_value_is_a_sum_over_ranks(key):
    lists, scores = random_lists()
    data, s = many(lists, scores)
    for name in spellings(key):
        measure = metric(name)
        form = measure.swap_form(data)
        assert (form.kind == LINEAR_SWAP) == isinstance(measure, PositionMetric), name
        if form.kind != LINEAR_SWAP:
            continue
        order = Ranked(measure.judge(data), s, "file").order
        values = evaluate(data, s, measure).per_query[repr(measure)]
        for q in range(data.n_queries):
            rows = order[data.indptr[q] : data.indptr[q + 1]][: form.cut[q]]
            total = form.scale[q] * (form.weight[: len(rows)] @ form.gain[rows])
            assert values[q] == pytest.approx(total, abs=1e-13), name


def test_the_repr_is_the_name_and_parsing_inverts_it():
    for name in NAMES:
        measure = metric(name, convention="letor4")
        assert metric(repr(measure), convention="letor4") == measure, name
        assert repr(measure).partition("@")[2] == name.partition("@")[2], name


def test_a_bound_evaluator_gives_what_evaluate_gives():
    lists, scores = random_lists()
    data, s = many(lists, scores)
    bound = Evaluator(data, NAMES)
    for scale in (1.0, -1.0):
        assert dict(bound(scale * s)) == dict(evaluate(data, scale * s, NAMES))
