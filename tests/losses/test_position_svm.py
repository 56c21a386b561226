"""DORM's loss against every order of small queries, for all measures, ties, groups and costs."""

import os
import subprocess
import sys
from itertools import permutations

import numpy as np
import pytest
from cases import each
from numba import config
from reference.position_svm import at_ranks, measured, position_svm, rank_decay, worst

from rankwright.data.ranking_data import RankingData
from rankwright.errors import IncompatibleError, UsageError
from rankwright.losses.position_svm import PositionSVM

METRICS = [
    *("ndcg", "ndcg@3", "ndcg@10", "dcg@2", "p@2", "p@3", "wta", "wta(modified=true)"),
    *("eru(alpha=3)", "eru(alpha=3,d=1)@4", "mrr", "mrr@2"),
]
TIES = ["mean", "score", "file"]


def data_of(y, **arrays):
    return RankingData.from_arrays(np.zeros((len(y), 1)), y, group_sizes=[len(y)], **arrays)


def bound_gradient(loss, data, s):
    grad = np.full(len(s), np.nan)
    return loss.bind(data).grad(s, grad), grad


def a_query(seed, tied):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, 6).astype(float)
    y[:2] = 0.0, 2.0
    # An odd factor, lest two quite different orders be equally bad by chance.
    return y, rng.choice([0.2, 1.0]) * 0.7310585786 * rng.normal(size=6).round(0 if tied else 9)


@pytest.mark.parametrize("metric", METRICS)
@each("tied", [False, True])
@each("ties", TIES)
def test_value_and_gradient_are_those_of_all_orders(metric, ties, tied):
    for seed, decay in enumerate([1.0, 0.25, "log", "loglog"]):
        y, s = a_query(seed, tied)
        loss = PositionSVM(metric=metric, ties=ties, decay=decay)
        value, grad = bound_gradient(loss, data_of(y), s)
        expected, gradient = position_svm(loss, s, y, np.ones(6))
        assert value == pytest.approx(expected, abs=1e-10)
        np.testing.assert_allclose(grad, gradient, atol=1e-10)


def test_two_documents_by_hand():
    """c = (1/2, 1/3): the wrong order scores (s_2 - s_1) / 6 and loses 1 - 1/log2(3)."""
    for lead in (-1.0, 0.0, 3.0, 10.0):
        s = np.array([lead, 0.0])
        value = PositionSVM(metric="ndcg").bind(data_of([1.0, 0.0])).value(s)
        assert value == pytest.approx(max(0.0, 1 - 1 / np.log2(3) - lead / 6))


@pytest.mark.parametrize("metric", METRICS)
def test_it_is_at_least_what_the_measure_loses(metric):
    for seed in range(20):
        y, s = a_query(seed, tied=False)
        loses = measured(metric, np.sort(y)[::-1]) - measured(metric, y[np.argsort(-s)])
        for ties in TIES:
            value = PositionSVM(metric=metric, ties=ties).bind(data_of(y)).value(s)
            assert value >= loses - 1e-12


def test_mean_is_the_mean_over_tied_orders_and_score_the_least_of_them():
    y, s = np.array([1.0, 1.0, 0.0, 0.0]), np.array([0.3, -0.2, 0.5, 0.1])
    over_orders = []
    for order in (o for o in permutations(range(4)) if y[list(o)].tolist() == [1, 1, 0, 0]):
        o = list(order)
        over_orders.append(PositionSVM(ties="file").bind(data_of(y[o])).value(s[o]))
    mean, score = (PositionSVM(ties=ties).bind(data_of(y)).value(s) for ties in ("mean", "score"))
    assert mean == pytest.approx(np.mean(over_orders))
    assert score == pytest.approx(min(over_orders))


def test_by_score_it_is_a_difference_of_convex_functions():
    y, _ = a_query(0, tied=False)
    bound = PositionSVM(ties="score", metric="ndcg@3").bind(data_of(y))
    rng = np.random.default_rng(1)
    for part in (bound.convex_part, bound.concave_part):
        for _ in range(40):
            a, b, gradient = 2 * rng.normal(size=6), 2 * rng.normal(size=6), np.empty(6)
            here = part(a, gradient)
            assert part(b, np.empty(6)) >= here + gradient @ (b - a) - 1e-12
    s, M, N, gradient = rng.normal(size=6), np.empty(6), np.empty(6), np.empty(6)
    value = bound.grad(s, gradient)
    assert bound.convex_part(s, M) - bound.concave_part(s, N) == pytest.approx(value)
    np.testing.assert_allclose(M - N, gradient, atol=1e-12)


def test_weights_of_the_measure_itself_need_one_sort():
    """c = a: the worst order is by s - b; beyond the cut-off nothing counts."""
    rng = np.random.default_rng(3)
    y, s = np.array([2.0, 0, 1, 1, 0, 2, 0]), rng.normal(size=7)
    value, grad = bound_gradient(PositionSVM(metric="ndcg@3", decay="metric"), data_of(y), s)
    a = np.append(1 / np.log2(np.arange(3) + 2.0), np.zeros(4))
    orders = list(permutations(range(7)))
    ideal = np.sort(2**y - 1)[::-1] @ a
    losses = [1 - (2 ** y[list(o)] - 1) @ a / ideal for o in orders]
    expected, gradient = worst(s, a, orders, losses)
    cref = np.array([a[:2].mean(), 0, a[2] / 2, a[2] / 2, 0, a[:2].mean(), 0])
    assert value == pytest.approx(expected - cref @ s)
    np.testing.assert_allclose(grad, gradient - cref, atol=1e-12)


def test_many_grades_and_long_lists_agree_with_the_assignment():
    """Past a size the dynamic programme gives way; both are DORM's problem (24)."""
    from scipy.optimize import linear_sum_assignment

    rng = np.random.default_rng(4)
    for grades, n in [(3, 60), (5, 40), (12, 60)]:
        y, s = rng.integers(0, grades, n).astype(float), rng.normal(size=n)
        value = PositionSVM(ties="file").bind(data_of(y)).value(s)
        a = np.append(1 / np.log2(np.arange(10) + 2.0), np.zeros(n - 10))
        ideal = np.sort(2**y - 1)[::-1] @ a
        c = 1 / np.arange(2.0, n + 2)
        C = np.outer(s, c) - np.outer((2**y - 1) / ideal, a)
        cref = at_ranks(np.argsort(-y, kind="stable"), c)
        best = C[linear_sum_assignment(C, maximize=True)].sum()
        assert value == pytest.approx(best + 1 - cref @ s)


# --- groups ----------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["ndcg@3", "ndcg", "p@2", "dcg@4"])
@each("ties", TIES)
@each("limit", [1, 2])
def test_orders_with_too_many_of_a_group_are_not_searched(metric, limit, ties):
    for seed in range(4):
        y, s = a_query(seed, tied=False)
        group = np.random.default_rng(seed).integers(0, 3, 6)
        loss = PositionSVM(metric=metric, per_group=limit, ties=ties)
        value, grad = bound_gradient(loss, data_of(y, group=group), s)
        most = int(np.minimum(np.bincount(group), limit).sum())
        top = min(most, int(metric.partition("@")[2] or 6))
        orders = [
            o for o in permutations(range(6), top) if np.bincount(group[list(o)]).max() <= limit
        ]
        earned = np.array([in_groups(metric, y[list(o)]) for o in orders])
        scale = earned.max() if metric.startswith("ndcg") else 1.0
        c = rank_decay(1.0, 6)
        expected, gradient = worst(s, c, orders, (earned.max() - earned) / scale)
        cref = grad - gradient
        assert value == pytest.approx(expected + cref @ s)
        # Whatever the ties, the negated rest is a mean of best orders.
        best = [
            at_ranks(o, c) for o, e in zip(orders, earned, strict=True) if e > earned.max() - 1e-9
        ]
        assert -cref.sum() == pytest.approx(c[:top].sum())
        if ties == "score":
            graded = [r for r in best if r @ y == pytest.approx(max(r @ y for r in best))]
            assert -cref @ s == pytest.approx(max(r @ s for r in graded))


def in_groups(metric, grades):
    key, _, k = metric.partition("@")
    k = int(k) if k else len(grades)
    if key == "p":
        return sum(g >= 1 for g in grades[:k]) / k
    return sum((2**g - 1) / np.log2(r + 2) for r, g in enumerate(grades[:k]))


def test_a_limit_that_never_binds_leaves_the_best_measure_alone():
    y, _ = a_query(0, tied=False)
    free = PositionSVM(metric="ndcg@3", per_group=1).bind(data_of(y, group=np.arange(6)))
    assert free.value(np.zeros(6)) == pytest.approx(
        PositionSVM(metric="ndcg@3").bind(data_of(y)).value(np.zeros(6))
    )


# --- costs -----------------------------------------------------------------------------------


def late(grades):
    """A cost of our own: good documents must not stand first, but second."""
    rank = np.arange(len(grades))
    return np.outer(grades, np.abs(rank - 1)) / 4


@pytest.mark.parametrize("ties", TIES)
def test_costs_of_the_caller_take_the_place_of_a_measure(ties):
    for seed in range(4):
        y, s = a_query(seed, tied=False)
        value, grad = bound_gradient(PositionSVM(cost=late, ties=ties), data_of(y), s)
        c, orders = rank_decay(1.0, 6), list(permutations(range(6)))
        costs = np.array([sum(abs(j - 1) * y[i] / 4 for j, i in enumerate(o)) for o in orders])
        expected, gradient = worst(s, c, orders, costs - costs.min())
        cref = gradient - grad
        assert value == pytest.approx(expected - cref @ s)
        cheapest = np.array([at_ranks(o, c) for o in np.array(orders)[costs < costs.min() + 1e-9]])
        assert cref.sum() == pytest.approx(c.sum())
        assert (cheapest @ s).min() - 1e-9 <= cref @ s <= (cheapest @ s).max() + 1e-9


def test_wrong_parameters_are_reported():
    data = data_of([1.0, 0.0], group=[0, 1])
    for params, sentence in [
        ({"ties": "random"}, "ties must be score, mean or file"),
        ({"decay": "fast"}, "decay must be a number above 0"),
        ({"decay": -1.0}, "decay must be a number above 0"),
        ({"per_group": 0}, "per_group must be 1 or more"),
        ({"cost": lambda y: np.zeros(3)}, "needs a matrix of 2 x 2"),
    ]:
        with pytest.raises(UsageError, match=sentence):
            PositionSVM(**params).bind(data)
    with pytest.raises(IncompatibleError, match="needs a metric that is a sum over ranks"):
        PositionSVM(metric="map").bind(data)


# --- overlapping topics ----------------------------------------------------------------------


def orders_within(topics, limit, cut):
    """Every order of as many documents, up to ``cut``, as the limits leave room for."""
    for top in range(min(cut, len(topics)), 0, -1):
        found = [
            o for o in permutations(range(len(topics)), top)
            if (topics[list(o)].sum(axis=0) <= limit + 1e-9).all()
        ]  # fmt: skip
        if found:
            return found, top
    raise AssertionError("no document obeys the limits")


def some_topics(seed, kind):
    rng = np.random.default_rng(seed)
    topics = (rng.random((6, 4)) < 0.5).astype(float)
    if kind == "shares":
        topics *= rng.choice([0.3, 0.5, 1.0], topics.shape)
    return topics


@pytest.mark.parametrize("metric", ["ndcg@3", "ndcg", "p@2", "dcg@4"])
@each("kind", ["members", "shares"])
@each("ties", TIES)
@each("limit", [1, 2])
def test_topics_that_overlap_limit_the_orders(metric, limit, ties, kind):
    for seed in range(6):
        y, s = a_query(seed, tied=False)
        topics = some_topics(seed, kind)
        loss = PositionSVM(metric=metric, per_group=limit, ties=ties)
        value, grad = bound_gradient(loss, data_of(y, group=topics), s)
        cut = int(metric.partition("@")[2] or 6)
        orders, top = orders_within(topics, limit, cut)
        k = cut if metric.startswith("p") else top
        earned = np.array([sum(y[list(o)] >= 1) / k for o in orders])
        if not metric.startswith("p"):
            earned = np.array([in_groups("dcg", y[list(o)]) for o in orders])
        scale = earned.max() if metric.startswith("ndcg") and earned.max() > 0 else 1.0
        c = rank_decay(1.0, 6)
        expected, gradient = worst(s, c, orders, (earned.max() - earned) / scale)
        cref = gradient - grad
        assert value == pytest.approx(expected - cref @ s)
        best = [
            at_ranks(o, c) for o, e in zip(orders, earned, strict=True) if e > earned.max() - 1e-9
        ]
        assert cref.sum() == pytest.approx(c[:top].sum())
        assert min(r @ s for r in best) - 1e-9 <= cref @ s <= max(r @ s for r in best) + 1e-9


@pytest.mark.parametrize("limit", [1, 2])
def test_topics_that_do_not_overlap_are_groups(limit):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        y, s = rng.permutation(6).astype(float), rng.normal(size=6)
        group = rng.integers(0, 3, 6)
        loss = PositionSVM(metric="ndcg@3", per_group=limit)
        value, grad = bound_gradient(loss, data_of(y, group=group), s)
        again, same = bound_gradient(loss, data_of(y, group=np.eye(3)[group]), s)
        assert again == pytest.approx(value)
        np.testing.assert_allclose(same, grad, atol=1e-12)


def test_documents_of_equal_score_grade_and_topics_share_the_gradient():
    y = np.array([2.0, 2.0, 0.0, 1.0, 0.0, 0.0])
    topics = np.array([[1, 1, 0], [1, 1, 0], [0, 1, 1], [1, 0, 1], [0, 0, 1], [0, 0, 1]], float)
    s = np.array([0.3, 0.3, 0.1, 0.2, 0.5, 0.5])
    loss = PositionSVM(metric="ndcg@3", per_group=1)
    _, grad = bound_gradient(loss, data_of(y, group=topics), s)
    assert grad[0] == grad[1]
    assert grad[4] == grad[5]
    back = np.array([5, 3, 4, 2, 0, 1])
    _, other = bound_gradient(loss, data_of(y[back], group=topics[back]), s[back])
    np.testing.assert_allclose(other, grad[back], atol=1e-12)


def test_overlapping_topics_are_convex_and_an_upper_bound():
    """L at the midpoint is at most the mean, and L is at least what the best order by s loses."""
    rng = np.random.default_rng(1)
    for seed in range(10):
        y, _ = a_query(seed, tied=False)
        topics = some_topics(seed, "members")
        orders, _ = orders_within(topics, 1, 3)
        bound = PositionSVM(metric="ndcg@3", per_group=1).bind(data_of(y, group=topics))
        s, t = rng.normal(size=(2, 6)) * 3
        assert bound.value((s + t) / 2) <= (bound.value(s) + bound.value(t)) / 2 + 1e-9
        c = rank_decay(1.0, 6)
        earned = [in_groups("dcg", y[list(o)]) for o in orders]
        chosen = int(np.argmax([at_ranks(o, c) @ s for o in orders]))
        if max(earned) > 0:
            by_file = PositionSVM(metric="ndcg@3", per_group=1, ties="file")
            value = by_file.bind(data_of(y, group=topics)).value(s)
            assert value >= 1 - earned[chosen] / max(earned) - 1e-9


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="NUMBA_DISABLE_JIT leaves nothing to compile")
def test_searches_that_the_parameters_exclude_are_not_compiled(tmp_path):
    code = """
import numpy as np
from rankwright.data.ranking_data import RankingData
from rankwright.losses import position_orders, position_svm
data = RankingData.from_arrays(np.zeros((4, 1)), [0.0, 1.0, 0.0, 2.0], qid=[1, 1, 2, 2])
position_svm.PositionSVM("ndcg@10").bind(data).value(np.zeros(4))
print(len(position_orders.by_classes.signatures), len(position_svm._costliest_order.signatures))
print(len(position_orders.by_groups.signatures), len(position_orders.by_seats.signatures))
"""
    cache = {"RANKWRIGHT_CACHE": str(tmp_path)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env={**os.environ, **cache}, capture_output=True, text=True)
    assert done.stdout.split() == ["1", "0", "0", "0"], done.stderr
