from math import exp, log, log2

import numpy as np
import pytest
from cases import each
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.lightgbm_tree import leaf_values
from reference.losses import TWINS

from rankwright.data.ranking_data import RankingData
from rankwright.errors import IncompatibleError, UsageError
from rankwright.losses.lambdarank import LambdaRank


def query(y, **arrays):
    return RankingData.from_arrays(np.zeros((len(y), 1)), y, qid=np.zeros(len(y)), **arrays)


def parts(loss, data, s):
    grad, curv = np.empty(len(s)), np.empty(len(s))
    return loss.bind(data).grad_curv(np.array(s, float), grad, curv), grad, curv


def plain(metric, **params):
    return LambdaRank(metric=metric, normalize=False, **params)


# --- by hand -----------------------------------------------------------------------------------


def test_a_pair_weighs_what_its_swap_would_change():
    # the document of grade 1 stands second; ideal DCG is 1, a swap would add 1 - 1/log2(3)
    change, p = 1 - 1 / log2(3), 1 / (1 + exp(2 * -0.4))
    value, grad, curv = parts(plain("ndcg", sigma=2.0), query([1, 0]), [0.0, 0.4])
    assert value == pytest.approx(change * log(1 + exp(2 * 0.4)))
    assert grad == pytest.approx([-2 * change * p, 2 * change * p])
    assert curv == pytest.approx([4 * change * p * (1 - p)] * 2)


def test_in_the_first_round_a_pair_weighs_the_mean_over_all_orders():
    # three documents, all tied: two of grade 0 and one of grade 1
    d = [1, 1 / log2(3), 1 / 2]
    mean = (d[0] - d[1] + d[0] - d[2] + d[1] - d[2]) / 3
    _, grad, _ = parts(plain("dcg"), query([0, 1, 0]), [0, 0, 0])
    assert grad == pytest.approx([mean / 2, -2 * mean / 2, mean / 2])


def test_truncation_leaves_out_pairs_below_it():
    # ranking: 0 1 | 0 2; with truncation 2 the last pair does not count
    y, s = np.array([0, 1, 0, 2]), np.array([4.0, 3.0, 2.0, 1.0])
    d = [1, 1 / log2(3), 1 / 2, 1 / log2(5)]
    gain = [0, 1, 0, 3]
    expected = np.zeros(4)
    for a, b in [(0, 1), (0, 3), (1, 2), (1, 3)]:
        high, low = (a, b) if y[a] > y[b] else (b, a)
        step = abs(gain[a] - gain[b]) * (d[a] - d[b]) / (1 + exp(s[high] - s[low]))
        expected[high] -= step
        expected[low] += step
    assert parts(plain("dcg", truncation=2), query(y), s)[1] == pytest.approx(expected)


def test_beyond_the_cut_off_nothing_moves_the_measure():
    # the third document differs from the fourth alone, and both stand below rank 2
    _, grad, _ = parts(plain("ndcg@2"), query([1, 1, 1, 0]), [4.0, 3.0, 2.0, 1.0])
    assert grad[2] == 0.0
    assert grad[0] < 0.0 < grad[3]


def test_weights_multiply_in_pairs_and_ranks_count_each_document_once():
    y, s = [2, 0, 1], np.array([0.1, 0.4, 0.2])
    for metric in ("ndcg", "map"):
        even = parts(plain(metric), query(y), s)[1]
        double = parts(plain(metric), query(y, sample_weight=[2, 2, 2]), s)[1]
        assert double == pytest.approx(4 * even)


# --- against the slow twin -----------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 2), st.sampled_from([1.0, 2.0])),
        min_size=2,
        max_size=6,
    ),
    st.sampled_from(["ndcg", "ndcg@2", "dcg@3", "p@2", "map", "map@3", "mrr", "err", "err@2"]),
    st.sampled_from([1, 2, 30, None]),
    st.booleans(),
)
def test_tied_scores_weigh_the_mean_over_their_orders(documents, metric, truncation, normalize):
    y, s, w = np.array(documents, float).T
    loss = LambdaRank(metric=metric, truncation=truncation, normalize=normalize)
    value, grad, _ = parts(loss, query(y, sample_weight=w), s)
    expected, gradients = (
        TWINS["lambdarank"](loss, s, y, w) if np.ptp(y) else (0.0, np.zeros(len(y)))
    )
    assert value == pytest.approx(expected, rel=1e-9, abs=1e-14)
    assert grad == pytest.approx(gradients, rel=1e-9, abs=1e-12)


METRICS = ["ndcg", "ndcg@2", "dcg", "dcg@3", "p@2", "map", "map@3", "mrr", "mrr@2", "err", "err@2"]


@pytest.mark.parametrize("metric", METRICS)
@each("truncation", [1, 3, None])
@each("s", [(0, 0, 0, 0, 0, 0), (1, 1, 0, 0, 0, 0), (2, 1, 1, 1, 1, 0)])
def test_every_metric_weighs_tied_pairs_by_the_mean_over_all_orders(metric, truncation, s):
    y, s, w = np.array([0.0, 2, 1, 0, 3, 0]), np.array(s, float), np.ones(6)
    loss = plain(metric, truncation=truncation)
    _, grad, _ = parts(loss, query(y), s)
    np.testing.assert_allclose(grad, TWINS["lambdarank"](loss, s, y, w)[1], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("metric", METRICS)
@each("normalize", [True, False])
def test_the_order_of_rows_never_reaches_the_gradient(metric, normalize):
    rng = np.random.default_rng(6)
    y, s, w = rng.integers(0, 4, 60), rng.integers(0, 5, 60).astype(float), rng.choice([1.0, 2], 60)
    loss = LambdaRank(metric=metric, normalize=normalize, truncation=7)
    value, grad, curv = parts(loss, query(y, sample_weight=w), s)
    for _ in range(3):
        mixed = rng.permutation(60)
        found = parts(loss, query(y[mixed], sample_weight=w[mixed]), s[mixed])
        assert found[0] == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(found[1], grad[mixed], rtol=1e-10, atol=1e-13)
        np.testing.assert_allclose(found[2], curv[mixed], rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("metric", ["ndcg", "map"])
def test_long_lists_with_far_scores_are_those_of_the_twin(metric):
    rng = np.random.default_rng(3)
    y, s, w = rng.integers(0, 5, 25), 400 * rng.normal(size=25), rng.uniform(0.5, 2, 25)
    loss = LambdaRank(metric=metric, truncation=5)
    value, grad, _ = parts(loss, query(y, sample_weight=w), s)
    expected, gradients = TWINS["lambdarank"](loss, s, y, w)
    assert value == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(grad, gradients, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("metric", ["ndcg@5", "map", "err"])
def test_while_the_ranking_stands_the_gradient_is_that_of_the_value(metric):
    rng = np.random.default_rng(4)
    y, s = rng.integers(0, 4, 12), rng.normal(size=12)
    bound = plain(metric).bind(query(y))
    eps, grad, curv = 1e-6, np.empty(12), np.empty(12)
    bound.grad_curv(s, grad, curv)
    for i, step in enumerate(eps * np.eye(12)):
        gradient = (bound.value(s + step) - bound.value(s - step)) / (2 * eps)
        bend = (bound.value(s + 100 * step) - 2 * bound.value(s) + bound.value(s - 100 * step)) / (
            1e4 * eps**2
        )
        assert grad[i] == pytest.approx(gradient, abs=1e-7)
        assert curv[i] == pytest.approx(bend, abs=1e-6)


# --- against LightGBM ----------------------------------------------------------------------------


@pytest.mark.parametrize("l2", [0.01, 1.0])
@pytest.mark.parametrize("normalize", [True, False])
def test_gradients_and_curvatures_are_those_of_lightgbm(normalize, l2):
    rng = np.random.default_rng(5)
    y, s = rng.integers(0, 5, 72), rng.normal(size=72)
    data = RankingData.from_arrays(np.zeros((72, 1)), y, group_sizes=[12] * 6)
    _, grad, curv = parts(LambdaRank(sigma=0.7, normalize=normalize), data, s)
    leaf, output = leaf_values("lambdarank", data, s, l2, sigmoid=0.7, lambdarank_norm=normalize)
    newton = -np.bincount(leaf, grad) / (np.bincount(leaf, curv) + l2)
    assert len(newton) > 3
    np.testing.assert_allclose(output, newton[leaf], atol=3e-4 if l2 < 1 else 2e-5)  # it tabulates


def test_gradients_under_label_gain_are_those_of_lightgbm():
    rng = np.random.default_rng(5)
    y, s = rng.integers(0, 4, 72), rng.normal(size=72)
    data = RankingData.from_arrays(np.zeros((72, 1)), y, group_sizes=[12] * 6)
    gains = [0, 1, 5, 20]
    _, grad, curv = parts(LambdaRank(label_gain=gains), data, s)
    leaf, output = leaf_values("lambdarank", data, s, 1.0, sigmoid=1.0, label_gain=gains)
    newton = -np.bincount(leaf, grad) / (np.bincount(leaf, curv) + 1.0)
    np.testing.assert_allclose(output, newton[leaf], atol=2e-5)  # it tabulates
    plain = parts(LambdaRank(), data, s)[1]
    assert np.abs(plain - grad).max() > 0.01
    usual = parts(LambdaRank(label_gain=(0, 1, 3, 7)), data, s)[1]
    np.testing.assert_array_equal(usual, plain)


# --- refusals ------------------------------------------------------------------------------------


def test_a_measure_that_does_not_know_what_a_swap_changes_is_refused():
    with pytest.raises(IncompatibleError, match="'kendall' does not provide it"):
        LambdaRank(metric="kendall").bind(query([1, 0]))


@pytest.mark.parametrize("params", [{"sigma": 0.0}, {"truncation": 0}])
def test_parameters_out_of_range_are_refused(params):
    with pytest.raises(UsageError, match=f"lambdarank's {next(iter(params))} must be"):
        LambdaRank(**params).bind(query([1, 0]))


@pytest.mark.parametrize("metric", ["map", "p@2"])
def test_weights_of_lambdaloss_are_for_ndcg_and_dcg(metric):
    with pytest.raises(UsageError, match=r"weights=ndcg_loss2 need ndcg or dcg, not"):
        LambdaRank(metric=metric, weights="ndcg_loss2").bind(query([1, 0]))


def test_weights_of_lambdaloss_take_truncation_in_place_of_a_cut_off():
    with pytest.raises(UsageError, match=r"no cut-off. Use metric='ndcg' and truncation=10"):
        LambdaRank(metric="ndcg@10", weights="ndcg_loss1").bind(query([1, 0]))
