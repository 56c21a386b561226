"""Sums over pairs by nodes: equal to the sums over all pairs of documents, for every long list."""

import numpy as np
import pytest
from cases import each
from scipy.special import expit

from rankwright import losses
from rankwright.data.ranking_data import RankingData
from rankwright.losses import score_sums
from rankwright.losses.score_sums import LONG

rng = np.random.default_rng(0)
N = LONG + 500
SCORES = {
    "normal": rng.normal(size=N),
    "spread out": 4.0 * rng.normal(size=N),
    "ties": np.round(2.0 * rng.normal(size=N)),
    "equal": np.zeros(N),
    "far from zero": 1e4 + rng.normal(size=N),
}
LOSSES = [
    losses.RankNet(),
    losses.RankNet(sigma=0.5, normalize=True),
    losses.Fidelity(),
    losses.Fidelity(confidence=0.8),
    losses.SoftZeroOne(sigma=2.0),
    losses.ApproxNDCG(temperature=1.0),
    losses.ApproxNDCG(temperature=0.5, metric="map"),
    losses.ApproxNDCG(temperature=1.0, metric="p@20"),
]
PAIRS = LOSSES[:5]


def data(grades=5, **more):
    """A long list between two short ones."""
    fixed = np.random.default_rng(1)  # the same data whatever tests run before
    y = np.floor(grades * fixed.random(N + 6) ** 2)
    return RankingData.from_arrays(np.zeros((N + 6, 1)), y, group_sizes=[3, N, 3], **more)


def results(bound, s):
    g, c = np.empty(len(s)), np.empty(len(s))
    return bound.grad_curv(s, g, c), g, c


def pair_function(loss, x):
    """Value, slope and bend of a pair whose worse document leads by x."""
    p = expit(-x)
    if isinstance(loss, losses.RankNet):
        return np.logaddexp(0.0, x), 1 - p, p * (1 - p)
    if isinstance(loss, losses.SoftZeroOne):
        return 1 - p, p * (1 - p), p * (1 - p)
    q = loss.confidence
    a, b = np.sqrt(p * q) * (1 - p) / 2, np.sqrt((1 - p) * (1 - q)) * p / 2
    return 1 - np.sqrt(p * q) - np.sqrt((1 - p) * (1 - q)), a - b, a + b


def over_pairs(loss, s, y, w):
    sigma = getattr(loss, "sigma", 1.0)
    pairs = np.clip(y[:, None] - y, 0.0, 1.0) * np.outer(w, w)
    if loss.normalize:
        pairs /= pairs.sum()
    value, slope, bend = pair_function(loss, sigma * (s - s[:, None]))
    gradient, curvature = sigma * pairs * slope, sigma**2 * pairs * bend
    return (
        (pairs * value).sum(),
        gradient.sum(0) - gradient.sum(1),
        curvature.sum(0) + curvature.sum(1),
    )


def over_ranks(loss, s, y, _):
    """ApproxNDCG in full matrices; only documents with a gain have a term."""
    above = expit((s - s[:, None]) / loss.temperature)
    np.fill_diagonal(above, 0.0)
    rank, relevant = 1 + above.sum(1), y >= 1
    count = 1 + above[:, relevant].sum(1)
    by_count = np.zeros(len(s))
    if loss.metric == "map":
        gain, best = relevant / relevant.sum(), 1.0
        term, by_rank, by_count = count / rank, -count / rank**2, 1 / rank
    elif loss.metric == "p@20":
        gain, best = relevant / 20, 1.0
        term = expit(20.5 - rank)
        by_rank = -term * (1 - term)
    else:
        gain, best = 2.0**y - 1, 1.0
        gain = gain / (np.sort(gain)[::-1] / np.log2(np.arange(len(y)) + 2)).sum()
        term = 1 / np.log2(1 + rank)
        by_rank = -np.log(2) / ((1 + rank) * np.log(1 + rank) ** 2)
    pull = -(gain * by_rank)[:, None] - np.outer(gain * by_count, relevant)
    pull = pull * above * (1 - above) / loss.temperature
    return best - (gain * term).sum(), pull.sum(0) - pull.sum(1), None


@each("kind", SCORES)
@each("loss", LOSSES)
@each("weighted", [False, True])
def test_long_lists_are_the_sums_over_their_pairs(kind, loss, weighted):
    weight = 0.1 + rng.random(N + 6)
    columns = {"sample_weight": weight} if weighted else {}
    lists, s = data(**columns), np.concatenate(([0.1, 0.2, 0.3], SCORES[kind], [3.0, 2.0, 1.0]))
    bound, long = loss.bind(lists), slice(3, N + 3)
    _, g, c = results(bound, s)
    dense = over_pairs if loss in PAIRS else over_ranks
    w = weight[long] if weighted else np.ones(N)
    value, expected, curvature = dense(loss, SCORES[kind], lists.y[long], w)
    assert bound.per_query[1] == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(g[long], expected, rtol=0.0, atol=1e-12 * np.abs(expected).max())
    if curvature is not None:
        np.testing.assert_allclose(c[long], curvature, rtol=1e-11, atol=1e-12 * curvature.max())


@each("loss", LOSSES)
def test_a_level_that_all_scores_have_costs_no_digits(loss):
    bound = loss.bind(data())
    s = np.round(2.0**20 * rng.normal(size=N + 6)) / 2.0**20  # exact with the level as well
    near, far = results(bound, s), results(bound, s + 2.0**30)
    assert far[0] == pytest.approx(near[0], rel=1e-13)
    for shifted, expected in zip(far[1:], near[1:], strict=True):
        np.testing.assert_allclose(shifted, expected, rtol=0.0, atol=1e-12 * np.abs(expected).max())


@each("loss", PAIRS)
def test_an_extreme_score_leads_to_pairs_of_documents(loss):
    lists, s = data(), np.concatenate((np.zeros(3), SCORES["normal"], np.zeros(3)))
    s[7] = 1e6
    bound = loss.bind(lists)
    _, g, _ = results(bound, s)
    assert bound.terms[0].cells[1] == 0
    expected = over_pairs(loss, s[3:-3], lists.y[3:-3], np.ones(N))[1]
    np.testing.assert_allclose(g[3:-3], expected, rtol=0.0, atol=1e-11 * np.abs(expected).max())


@each("loss", LOSSES)
@each("odd", [np.nan, np.inf, -np.inf])
def test_scores_that_are_not_finite_end(loss, odd):
    s = np.concatenate((np.zeros(3), SCORES["normal"], np.zeros(3)))
    s[7] = odd
    bound = loss.bind(data())
    results(bound, s)
    assert bound.terms[0].cells[1] == 0
    assert np.isfinite(bound.per_query[[0, 2]]).all()


@each("loss", LOSSES)
def test_long_lists_give_the_same_bytes_on_any_threads_and_ties_are_equal(loss):
    y = np.floor(3.0 * rng.random(3 * N))
    lists = RankingData.from_arrays(np.zeros((3 * N, 1)), y, group_sizes=[N] * 3)
    s = np.tile(SCORES["ties"], 3)
    runs = [results(loss.bind(lists, n_jobs=n), s) for n in (1, 2, 5)]
    assert len({b"".join(part.tobytes() for part in run[1:]) for run in runs}) == 1
    tied = (s[:N] == 0.0) & (y[:N] == 1.0)
    assert tied.sum() > 2
    assert len(set(runs[0][1][:N][tied].tolist())) == 1


@each("loss", PAIRS)
def test_a_distinct_grade_for_each_document_leads_to_pairs_of_documents(loss):
    y, s = rng.permutation(N) / 3.0, SCORES["normal"]
    bound = loss.bind(RankingData.from_arrays(np.zeros((N, 1)), y, group_sizes=[N]))
    _, g, _ = results(bound, s)
    expected = over_pairs(loss, s, y, np.ones(N))[1]
    np.testing.assert_allclose(g, expected, rtol=0.0, atol=1e-12 * np.abs(expected).max())


def test_nodes_are_only_for_lists_with_many_pairs():
    s = SCORES["normal"]
    y = (np.arange(N) == 5).astype(float)  # one relevant document: N pairs
    few = losses.RankNet().bind(RankingData.from_arrays(np.zeros((N, 1)), y, group_sizes=[N]))
    many = losses.RankNet().bind(data())
    results(few, s)
    results(many, np.concatenate((np.zeros(3), s, np.zeros(3))))
    assert few.terms[0].cells[0] == 0
    assert many.terms[0].cells.tolist() == [0, int(np.ptp(s) / 2.0) + 1, 0]
    assert score_sums.NODES * many.terms[0].cells[1] < N
