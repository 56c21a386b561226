"""A measure along a line: between crossings, the value that evaluating the scores gives."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from cases import each
from hypothesis import given, settings
from hypothesis import strategies as st

from rankwright.data.ranking_data import RankingData
from rankwright.metrics.along_line import MetricLine
from rankwright.metrics.base import metric
from rankwright.metrics.evaluation import evaluate

MEASURES = [
    "ndcg@3", "ndcg", "ndcg(gain=linear)@2", "dcg@5", "p@1", "p@4", "recall@3", "rprec", "rbp",
]  # fmt: skip
OTHERS = ["map", "map@3", "mrr", "mrr@3", "err@3", "err", "auc", "pair_error", "kendall"]
LOW, HIGH = -4.0, 4.0


def random_data(rng, *, whole, queries=4, weights=False):
    """Queries of 1 to 9 documents; whole numbers make many lines meet in one point."""
    sizes = rng.integers(1, 10, queries)
    n = int(sizes.sum())
    X = rng.integers(-2, 3, (n, 2)).astype(float) if whole else rng.normal(size=(n, 2))
    y = rng.integers(0, 3, n)
    weight = rng.integers(1, 4, queries).astype(float) if weights else None
    return RankingData.from_arrays(X, y, group_sizes=sizes, query_weight=weight)


def mean(data, s, name, convention="standard"):
    """The weighted mean of a measure, ties averaged, by the public function."""
    averaged = replace(metric(name, convention=convention), ties="mean")
    values = np.empty(data.n_queries)
    averaged.per_query(s, data, values)
    weight = np.ones(data.n_queries) if data.query_weight is None else data.query_weight
    known = ~np.isnan(values)
    return float(values[known] @ weight[known] / (weight[known].sum() or 1.0))


def crossings(data, s, x):
    """Every t between LOW and HIGH at which two documents of a query change places."""
    found = {LOW, HIGH}
    for first, end in pairwise(data.indptr):
        for i in range(first, end):
            for j in range(first, i):
                if x[i] != x[j]:
                    found.add(float((s[j] - s[i]) / (x[i] - x[j])))
    return sorted(t for t in found if LOW <= t <= HIGH)


def at(pieces, t):
    return pieces.values[np.searchsorted(pieces.edges, t) - 1]


@pytest.mark.parametrize("name", MEASURES)
@settings(max_examples=12)
@given(seed=st.integers(0, 10**6), whole=st.booleans(), weights=st.booleans())
def test_between_two_crossings_the_pieces_have_the_value_of_the_measure(name, seed, whole, weights):
    data = random_data(np.random.default_rng(seed), whole=whole, weights=weights)
    s, x = data.X[:, 0].copy(), data.X[:, 1].copy()
    pieces = MetricLine(metric(name), data).pieces(s, x, LOW, HIGH)
    for left, right in pairwise(crossings(data, s, x)):
        if right - left > 1e-7:
            t = (left + right) / 2
            assert at(pieces, t) == pytest.approx(mean(data, s + t * x, name), abs=1e-9), t


@pytest.mark.parametrize("convention", ["ranklib", "letor3", "letor4", "lightgbm", "sklearn"])
def test_pieces_follow_the_convention(convention):
    data = random_data(np.random.default_rng(3), whole=False, queries=12)
    s, x = data.X[:, 0].copy(), data.X[:, 1].copy()
    line = MetricLine(metric("ndcg@3", convention=convention), data)
    pieces = line.pieces(s, x, LOW, HIGH)
    for t in np.linspace(-3.9, 3.9, 50):
        expected = mean(data, s + t * x, "ndcg@3", convention)
        assert at(pieces, t) == pytest.approx(expected, abs=1e-9)
        assert line.value(s + t * x) == pytest.approx(expected, abs=1e-9)


@each("name", OTHERS)
def test_only_sums_over_ranks_are_followed_exactly(name):
    data = random_data(np.random.default_rng(0), whole=False)
    assert not MetricLine(metric(name), data).exact
    assert MetricLine(metric("ndcg@3"), data).exact


@each("name", [*MEASURES, *OTHERS, "domination_error"])
def test_a_value_is_the_mean_over_the_orders_of_ties(name):
    data = random_data(np.random.default_rng(1), whole=True, queries=9, weights=True)
    s = data.X[:, 0].copy()
    sign = 1.0 if metric(name).maximise else -1.0
    line = MetricLine(metric(name), data)
    assert line.value(s) == pytest.approx(sign * mean(data, s, name), abs=1e-12)


def test_documents_on_one_line_count_as_the_mean_over_their_orders():
    data = RankingData.from_arrays(np.zeros((3, 1)), [2, 0, 1], qid=[0, 0, 0])
    line = MetricLine(metric("dcg"), data)
    pieces = line.pieces(np.array([1.0, 1.0, 0.0]), np.array([0.0, 0.0, 1.0]), LOW, HIGH)
    one, two, three = 1.0, 1 / np.log2(3), 1 / 2.0
    assert pieces.edges.tolist() == [LOW, 1.0, 1.0, HIGH]  # the third overtakes both at once
    assert pieces.values[0] == pytest.approx(1.5 * one + 1.5 * two + 1 * three)
    assert pieces.values[-1] == pytest.approx(1 * one + 1.5 * two + 1.5 * three)


@each("name", MEASURES)
def test_a_line_that_says_nothing_earns_nothing_from_the_order_of_rows(name):
    """Good documents first in the file, equal scores, and a feature that is equal too."""
    data = RankingData.from_arrays(np.zeros((8, 1)), [2, 2, 1, 0, 0, 0, 0, 0], qid=np.zeros(8))
    turned = RankingData.from_arrays(np.zeros((8, 1)), data.y[::-1], qid=np.zeros(8))
    s, x = np.zeros(8), np.ones(8)
    found = [MetricLine(metric(name), one).pieces(s, x, LOW, HIGH) for one in (data, turned)]
    assert len(found[0].values) == len(found[1].values) == 1
    assert found[0].values[0] == pytest.approx(found[1].values[0], rel=1e-12)
    assert found[0].values[0] == pytest.approx(mean(data, s, name), rel=1e-12)


def test_queries_are_swept_alike_on_any_number_of_threads():
    rng = np.random.default_rng(0)
    sizes = np.full(500, 100)
    n = int(sizes.sum())
    data = RankingData.from_arrays(
        rng.normal(size=(n, 2)), rng.integers(0, 3, n), group_sizes=sizes
    )
    args = data.X[:, 0].copy(), data.X[:, 1].copy(), LOW, HIGH
    one, five = (MetricLine(metric("ndcg@5"), data, n_jobs=t).pieces(*args) for t in (1, 5))
    assert (one.edges == five.edges).all()
    assert (one.values == five.values).all()


def test_the_public_measure_agrees_where_there_are_no_ties():
    data = random_data(np.random.default_rng(5), whole=False, queries=8)
    found = evaluate(data, data.X[:, 0], "ndcg@3,map,mrr,err")
    for name, value in found.items():
        assert MetricLine(metric(name), data).value(data.X[:, 0].copy()) == pytest.approx(value)
