"""LambdaRank with ties: documents equal in score and gain are one group, with the same results."""

import time

import numpy as np
import pytest
from cases import each

from rankwright import losses
from rankwright.data.ranking_data import RankingData

rng = np.random.default_rng(0)
N = 300
Y = np.floor(5.0 * rng.random(N) ** 2)
WEIGHTS = np.where(rng.random(N) < 0.05, 0.0, rng.random(N))
SCORES = {
    "all tied": np.zeros(N),
    "leaves of a tree": np.round(2.0 * rng.normal(size=N)),
    "wide leaves": 400.0 * np.round(2.0 * rng.normal(size=N)),
}


def results(loss, s, y=Y, *, n_jobs=1, **columns):
    data = RankingData.from_arrays(np.zeros((len(s), 1)), y, group_sizes=[len(s)], **columns)
    grad, curv = np.empty(len(s)), np.empty(len(s))
    return loss.bind(data, n_jobs=n_jobs).grad_curv(s, grad, curv), grad, curv


@each("kind", SCORES)
@each("weighted", [False, True])
@each("metric", ["ndcg", "ndcg@10", "p@5", "map", "err@3", "mrr"])
def test_a_group_is_its_documents(kind, weighted, metric):
    """Gains that differ by 1e-12 are no group, and change the results by no more than that."""
    columns = {"sample_weight": WEIGHTS} if weighted else {}
    s = SCORES[kind]
    if metric in ("ndcg", "ndcg@10"):
        gains = np.arange(5.0) ** 2
        loss = losses.LambdaRank(metric=metric, label_gain=gains, truncation=20)
        apart = np.concatenate([g + 1e-12 * np.arange(N) for g in gains])
        split = losses.LambdaRank(metric=metric, label_gain=apart, truncation=20)
        value, grad, curv = results(loss, s, **columns)
        value_2, grad_2, curv_2 = results(split, s, Y * N + np.arange(N), **columns)
        assert value == pytest.approx(value_2, rel=1e-8)
        np.testing.assert_allclose(grad, grad_2, rtol=0.0, atol=1e-8 * np.abs(grad).max())
        np.testing.assert_allclose(curv, curv_2, rtol=0.0, atol=1e-8 * curv.max())
    loss = losses.LambdaRank(metric=metric)
    _, grad, _ = results(loss, s, **columns)
    w = columns.get("sample_weight", np.ones(N))
    for group in {(score, grade) for score, grade in zip(s, Y, strict=True)}:
        rows = np.flatnonzero((s == group[0]) & (group[1] == Y) & (w > 0))
        share = grad[rows] / w[rows]
        np.testing.assert_allclose(share, np.full(len(rows), share[:1].sum()), rtol=1e-12)
    for threads in (2, 5):
        assert results(loss, s, n_jobs=threads, **columns)[1].tobytes() == grad.tobytes()


@pytest.mark.parametrize("weights", ["lambdarank", "ndcg_loss1", "ndcg_loss2++"])
def test_a_long_list_without_differences_in_score_takes_no_time_for_its_pairs(weights):
    y, loss = np.floor(5.0 * rng.random(200_000)), losses.LambdaRank(weights=weights)
    results(loss, np.zeros(10), y[:10] + np.arange(10) % 2)
    start = time.process_time()
    value, grad, _ = results(loss, np.zeros(len(y)), y)
    assert time.process_time() - start < 5.0  # 2 * 10^10 pairs would take a minute
    assert np.isfinite(value)
    assert len(set(grad.tolist())) == 5
