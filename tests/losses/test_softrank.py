"""SoftRank: the recursion against every outcome of comparisons, the exact form against noise."""

from itertools import product
from math import erf, log2, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwright.data.ranking_data import RankingData
from rankwright.errors import IncompatibleError, UsageError
from rankwright.losses.softrank import SoftRank
from rankwright.metrics.base import metric


def query(y, **arrays):
    return RankingData.from_arrays(np.zeros((len(y), 1)), y, qid=np.zeros(len(y)), **arrays)


def value(loss, y, s):
    return loss.bind(query(y)).value(np.array(s, float))


def ndcg(y, s, k=None):
    out = np.empty(1)
    metric("ndcg" if k is None else f"ndcg@{k}").per_query(np.array(s, float), query(y), out)
    return out[0]


def with_noise(y, s, k, draws=40_000):
    """Mean and standard error of NDCG@k of noisy scores."""
    shaken = s + np.random.default_rng(0).normal(size=(draws, len(s)))
    gains = (2.0**y - 1)[np.argsort(-shaken, axis=1)[:, :k]]
    discount = 1 / np.log2(np.arange(2, k + 2))
    found = gains @ discount / (np.sort(2.0**y - 1)[::-1][:k] @ discount)
    return found.mean(), found.std() / sqrt(draws)


def test_two_documents_by_hand():
    # the good one is above with chance Phi(0.5 / (sqrt(2) sigma)); below, its gain counts 1/log2(3)
    chance = (1 + erf(0.5 / (2 * 0.8))) / 2
    expected = 1 - (chance + (1 - chance) / log2(3))
    for form in ("recursion", "exact"):
        loss = SoftRank(metric="ndcg", sigma=0.8, form=form, nodes=64)
        assert value(loss, [1, 0], [0.7, 0.2]) == pytest.approx(expected, rel=1e-9)


scores_of_five = st.lists(st.floats(-2, 2), min_size=5, max_size=5)


@given(scores_of_five, st.sampled_from(["ndcg", "ndcg@2", "ndcg@1"]))
def test_the_recursion_is_the_mean_over_independent_comparisons(s, name):
    y = np.array([2.0, 0.0, 1.0, 0.0, 3.0])
    k = int(name.partition("@")[2] or 5)
    discount = [1 / log2(rank + 2) if rank < k else 0.0 for rank in range(5)]
    best = np.sort(2**y - 1)[::-1] @ discount
    expected = 1.0
    for i in range(5):
        p = [(1 + erf((s[j] - s[i]) / 2)) / 2 for j in range(5) if j != i]
        for above in product((0, 1), repeat=4):
            chance = np.prod([a if up else 1 - a for a, up in zip(p, above, strict=True)])
            expected -= chance * (2 ** y[i] - 1) * discount[sum(above)] / best
    assert value(SoftRank(metric=name), y, s) == pytest.approx(expected, abs=1e-12)


def test_the_exact_form_is_the_mean_under_gaussian_noise_and_the_recursion_is_not():
    rng = np.random.default_rng(1)
    y, s = rng.integers(0, 4, 50).astype(float), rng.normal(size=50)
    mean, error = with_noise(y, s, 10)
    exact = 1 - value(SoftRank(metric="ndcg@10", form="exact", nodes=48), y, s)
    paired = 1 - value(SoftRank(metric="ndcg@10"), y, s)
    assert exact == pytest.approx(mean, abs=4 * error)
    assert paired < mean - 0.1  # independent pairs pull every rank towards the middle


def test_in_the_exact_form_every_rank_holds_one_document():
    """One relevant document at a time: the chances of the first rank add up to 1."""
    s = np.random.default_rng(2).normal(size=6)
    data = RankingData.from_arrays(np.zeros((36, 1)), np.eye(6).ravel(), group_sizes=[6] * 6)

    def at_first_rank(form):
        bound = SoftRank(metric="ndcg@1", form=form, nodes=64).bind(data)
        return 6 - bound.value(np.tile(s, 6))

    assert at_first_rank("exact") == pytest.approx(1.0, abs=1e-9)
    assert at_first_rank("recursion") != pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("form", ["recursion", "exact"])
@pytest.mark.parametrize("k", [None, 3])
def test_without_noise_it_is_the_measure(form, k):
    rng = np.random.default_rng(3)
    y, s = rng.integers(0, 4, 12), rng.permutation(12)
    loss = SoftRank(metric="ndcg" if k is None else f"ndcg@{k}", sigma=0.01, form=form)
    assert value(loss, y, s) == pytest.approx(1 - ndcg(y, s, k), abs=1e-12)


def test_a_newton_step_is_never_longer_than_the_scale_of_the_noise():
    rng = np.random.default_rng(4)
    y, s = rng.integers(0, 4, 40), 0.5 * rng.normal(size=40)
    grad, curv = np.empty(40), np.empty(40)
    SoftRank(metric="ndcg@5", sigma=0.3).bind(query(y)).grad_curv(s, grad, curv)
    assert (np.abs(grad) <= sqrt(2) * 0.3 * curv * (1 + 1e-12)).all()


def test_dcg_is_counted_from_the_best_order():
    assert value(SoftRank(metric="dcg", sigma=1e-3), [0, 2, 1], [0, 2, 1]) == pytest.approx(0.0)
    lost = 3 * (1 - 1 / log2(3))
    assert value(SoftRank(metric="dcg", sigma=1e-3), [0, 2], [1, 0]) == pytest.approx(lost)


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        (SoftRank(sigma=0.0), "sigma must be above 0, not 0.0"),
        (SoftRank(form="gauss"), "form must be recursion or exact, not 'gauss'"),
        (SoftRank(nodes=0), "nodes must be 1 or more, not 0"),
    ],
)
def test_parameters_that_cannot_be_are_refused(loss, said):
    with pytest.raises(UsageError, match=said):
        loss.bind(query([1, 0]))


def test_a_measure_that_is_no_sum_over_ranks_is_refused():
    with pytest.raises(IncompatibleError, match="softrank needs a metric that is a sum over ranks"):
        SoftRank(metric="map").bind(query([1, 0]))
