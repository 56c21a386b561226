"""LambdaRank in long lists with ties: equal documents together are as each by itself."""

import numpy as np
import pytest
from cases import each

from rankwright import losses
from rankwright.data.ranking_data import RankingData
from rankwright.losses import lambdarank
from rankwright.losses.score_sums import LONG

rng = np.random.default_rng(0)
N = LONG + 300
Y = np.floor(5.0 * rng.random(N + 5) ** 2)
WEIGHTS = np.where(rng.random(N + 5) < 0.05, 0.0, rng.random(N + 5))
SCORES = {
    "all tied": np.zeros(N),
    "leaves of a tree": np.round(2.0 * rng.normal(size=N)),
    "wide leaves": 400.0 * np.round(2.0 * rng.normal(size=N)),
}


def gradients(loss, data, s, *, n_jobs=1, kernel=None):
    bound = loss.bind(data, n_jobs=n_jobs)
    assert bound._kernel is lambdarank._any_length
    if kernel is not None:
        bound._kernel = kernel
    grad, curv = np.empty(len(s)), np.empty(len(s))
    return bound.grad_curv(s, grad, curv), grad, curv


@each("kind", SCORES)
@each("weighted", [False, True])
@each(
    "loss",
    [
        losses.LambdaRank(),
        losses.LambdaRank(metric="ndcg@10", normalize=False, sigma=0.5),
        losses.LambdaRank(metric="p@5", truncation=None),
    ],
)
def test_equal_documents_together_are_as_each_by_itself(kind, weighted, loss):
    more = {"sample_weight": WEIGHTS} if weighted else {}
    data = RankingData.from_arrays(np.zeros((N + 5, 1)), Y, group_sizes=[3, N, 2], **more)
    s = np.concatenate(([1.0, 0.0, 0.0], SCORES[kind], [0.0, 0.0]))
    value, grad, curv = gradients(loss, data, s)
    value_2, grad_2, curv_2 = gradients(loss, data, s, kernel=lambdarank._sums_over_ranks)
    assert value == pytest.approx(value_2, rel=1e-12)
    np.testing.assert_allclose(grad, grad_2, rtol=0.0, atol=1e-12 * np.abs(grad_2).max())
    np.testing.assert_allclose(curv, curv_2, rtol=0.0, atol=1e-12 * curv_2.max())
    for threads in (2, 5):
        assert gradients(loss, data, s, n_jobs=threads)[1].tobytes() == grad.tobytes()


def test_scores_without_ties_are_ranked_as_ever():
    data = RankingData.from_arrays(np.zeros((N, 1)), Y[:N], group_sizes=[N])
    s = rng.normal(size=N)
    found = gradients(losses.LambdaRank(), data, s)
    expected = gradients(losses.LambdaRank(), data, s, kernel=lambdarank._sums_over_ranks)
    assert found[0] == expected[0]
    assert found[1].tobytes() == expected[1].tobytes()
