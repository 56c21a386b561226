"""The first sentences of a report, on comparisons small enough to read off the right answer."""

from pathlib import Path

import numpy as np
import pytest

from rankwright import registry
from rankwright.comparison.result import Comparison, Entry, PairedTest, Run
from rankwright.metrics.significance import Interval
from rankwright.report.conclusion import conclusion
from rankwright.report.metric_help import PLAIN, explain_metric


def comparison(
    means, p_values, *, metric="ndcg@10", maximise=True, seconds=None, all_pairs=False, pairs=()
):
    """Return a comparison of the given means; the first ranker is the baseline."""
    labels = list(means)
    baseline = labels[0]
    seconds = seconds or dict.fromkeys(labels, 1.0)
    runs = {
        label: (Run(label, 0, {}, {}, Path("m.rw"), np.empty(0), {}, 1, seconds[label], 1),)
        for label in labels
    }
    tests = tuple(
        PairedTest(label, baseline, metric, means[label] - means[baseline], p, p, 1, 0, 0)
        for label, p in p_values.items()
    ) + tuple(PairedTest(a, b, metric, means[a] - means[b], p, p, 1, 0, 0) for a, b, p in pairs)
    return Comparison(
        name="books.csv",
        entries=tuple(Entry(label, label, {}) for label in labels),
        baseline=baseline,
        metrics=(metric,),
        maximise={metric: maximise},
        convention="standard",
        folds=(),
        qid=np.arange(40).astype(object),
        fold_of_query=np.zeros(40, np.int64),
        runs=runs,
        per_query={},
        intervals={k: {metric: Interval(m, m - 0.05, m + 0.05, 0.95)} for k, m in means.items()},
        tests=tests,
        failures={},
        fits=0,
        all_pairs=all_pairs,
        test_name="randomisation",
        correction="holm",
        notes={},
    )


def test_a_significant_gain_names_both_figures_and_says_use_it():
    first, second = conclusion(
        comparison({"regression": 0.7, "trees": 0.8}, {"trees": 0.0004}, seconds=None)
    )
    assert first == (
        "trees is best on books.csv: ndcg@10 0.8000 against 0.7000 of the baseline regression, a "
        "statistically significant difference (p < 0.001, 40 test queries)."
    )
    assert second == "Use trees."


def test_where_all_pairs_were_tested_the_next_best_is_compared_with_the_best():
    means = {"regression": 0.7, "forest": 0.79, "trees": 0.8}
    p_values = {"trees": 0.001, "forest": 0.002}
    for p, words in ((0.4, "is not significantly worse (p = 0.400)"), (0.01, "is significantly")):
        pairs = [("forest", "trees", p)]
        _, second = conclusion(comparison(means, p_values, all_pairs=True, pairs=pairs))
        assert f"the next best, forest (0.7900, 1 s), {words}" in second


def test_what_was_not_fitted_has_no_seconds():
    means = {"regression": 0.7, "column": 0.75, "trees": 0.8}
    seconds = {"regression": 1.0, "column": None, "trees": None}
    _, second = conclusion(comparison(means, {"trees": 0.001, "column": 0.5}, seconds=seconds))
    assert second == "Use trees; the next best, column (0.7500), was not tested against it."


def test_a_gain_by_chance_is_called_not_significant_and_the_baseline_is_kept():
    first, second = conclusion(
        comparison(
            {"regression": 0.7, "trees": 0.71},
            {"trees": 0.34},
            seconds={"regression": 0.5, "trees": 30.0},
        )
    )
    assert "not statistically significant (p = 0.340, 40 test queries)" in first
    assert second == (
        "Keep regression or choose by cost (trees trains in 30 s, regression in 0.5 s), and "
        "compare on more queries to decide."
    )


def test_two_that_were_not_tested_against_each_other_are_not_said_to_differ():
    found = comparison({"a": 0.5, "b": 0.8, "c": 0.79}, {"b": 0.01, "c": 0.01})
    first, second = conclusion(found)
    assert first.startswith("b is best")
    assert second == (
        "Use b, which trains in 1 s; the next best, c (0.7900, 1 s), was not tested against it."
    )


@pytest.mark.parametrize(
    ("p", "said", "advice"),
    [
        (
            0.01,
            "a statistically significant difference",
            "none of the other rankers improves on it",
        ),
        (0.6, "not statistically significant", "unless b is cheaper to run"),
    ],
)
def test_a_baseline_that_stays_best_is_compared_with_the_next(p, said, advice):
    first, second = conclusion(comparison({"a": 0.9, "b": 0.8, "c": 0.1}, {"b": p, "c": 0.001}))
    assert "The baseline a is best on books.csv: ndcg@10 0.9000 against 0.8000 of b" in first
    assert said in first
    assert advice in second


def test_less_is_better_where_the_metric_says_so():
    found = comparison({"a": 0.4, "b": 0.1}, {"b": 0.01}, metric="pair_error", maximise=False)
    assert conclusion(found)[0].startswith("b is best on books.csv: pair_error 0.1000 against")


def test_one_ranker_is_not_called_best():
    first, second = conclusion(comparison({"a": 0.4}, {}))
    assert first.startswith("a reaches ndcg@10 0.4000 on books.csv (95% interval 0.3500 to 0.4500")
    assert "no other ranker" in second


def test_a_metric_without_values_says_so():
    first, _ = conclusion(comparison({"a": np.nan, "b": np.nan}, {"b": np.nan}))
    assert first.startswith("No test query has a value of ndcg@10")


# --- metrics in plain words ----------------------------------------------------------------------


def test_every_metric_of_the_package_is_explained():
    assert set(PLAIN) == set(registry.METRICS)


@pytest.mark.parametrize(
    ("name", "maximise", "text"),
    [
        ("p@10", True, "Share of relevant documents in the first 10 documents. Higher is better."),
        ("p@1", True, "Share of relevant documents in the first document. Higher is better."),
        ("hit", True, "a relevant document in the whole list. Higher"),
        ("ndcg(gain=linear)@5", True, "How close the order of the first 5 documents is to the"),
        ("pair_error", False, "in the wrong order. Lower is better."),
        ("revenue", True, "revenue, a metric of your own. Higher is better."),
    ],
)
def test_a_metric_is_explained_with_its_cut_off_and_direction(name, maximise, text):
    assert text in explain_metric(name, maximise=maximise)
