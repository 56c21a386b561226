"""Plots of a comparison: what is drawn is what was measured."""

import matplotlib as mpl
import numpy as np
import pytest
from small_data import small_data

from rankwright.comparison.compare import compare
from rankwright.errors import UsageError
from rankwright.metrics.evaluation import evaluate

mpl.use("agg")
from matplotlib import pyplot

RANKERS = "ranksvm,trees=gbdt:n_estimators=5,first=column:1"


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    cache = tmp_path_factory.mktemp("cache")
    return compare(small_data(queries=18, documents=10), RANKERS, folds=3, cache=cache, jobs=1)


@pytest.fixture(autouse=True)
def closed():
    yield
    pyplot.close("all")


def test_means_are_drawn_with_their_intervals(found):
    ax = found.plot(metric="map")
    assert [tick.get_text() for tick in ax.get_yticklabels()] == list(found.rankers)
    points = [container.lines[0].get_xdata()[0] for container in ax.containers]
    assert points == [found.intervals[label]["map"].mean for label in found.rankers]
    assert ax.get_xlabel().startswith("map, mean over 18 test queries")


def test_differences_are_sorted_bars_of_one_ranker(found):
    ax = found.plot("differences", rankers="trees")
    change = found.per_query["trees"]["ndcg@10"] - found.per_query["ranksvm"]["ndcg@10"]
    heights = [bar.get_height() for bar in ax.patches]
    np.testing.assert_allclose(heights, sorted(change, reverse=True))
    assert "trees − ranksvm" in ax.get_ylabel()


def test_differences_of_several_are_lines_with_a_legend(found):
    ax = found.plot("differences")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["trees", "first"]


def test_a_metric_at_k_is_evaluated_at_each_cut_off(found):
    ax = found.plot("metric_at_k", ks=[1, 3], metric="p", rankers=["trees", "first"])
    for line, label in zip(ax.get_lines(), ("trees", "first"), strict=True):
        for k, value in zip(*line.get_data(), strict=True):
            expected = [
                evaluate(fold.test, scores, f"p@{k}").per_query[f"p@{k}"]
                for fold, scores in zip(found.folds, found.scores[label], strict=True)
            ]
            assert value == pytest.approx(np.concatenate(expected).mean())


def test_learning_curves_are_means_over_the_folds(found):
    _, mine = pyplot.subplots()
    ax = found.plot("curves", rankers=["trees"], ax=mine)
    assert ax is mine
    line, *_ = ax.get_lines()
    curves = [run.curve["valid ndcg@10"] for run in found.runs["trees"]]
    np.testing.assert_allclose(line.get_ydata(), np.mean(curves, axis=0))
    assert ax.get_xlabel() == "iteration"


@pytest.mark.parametrize(
    ("kind", "options", "sentence"),
    [
        ("bars", {}, "no kind of plot called 'bars'"),
        ("metrics", {"metric": "err"}, "no metric in this comparison called 'err'"),
        ("metrics", {"ks": [1]}, "ks are cut-offs of kind='metric_at_k'"),
        ("curves", {"rankers": ["first"]}, "none of first has a learning curve"),
        ("differences", {"rankers": "ranksvm"}, "differences need another ranker"),
        ("metric_at_k", {"metric": "ndcg@10"}, "takes it without, such as ndcg"),
        ("metrics", {"rankers": ["tree"]}, "called 'tree'; did you mean trees"),
    ],
)
def test_what_cannot_be_drawn_is_reported_in_a_sentence(found, kind, options, sentence):
    with pytest.raises(UsageError, match=sentence):
        found.plot(kind, **options)
