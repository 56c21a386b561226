"""Sums over pairs by cells of scores: as the pairs one by one add up to, for every long list."""

import numpy as np
import pytest
from cases import each
from scipy.special import expit
from small_data import small_data

from rankwright import losses
from rankwright.data.ranking_data import RankingData
from rankwright.losses import approx_ndcg, fidelity, ranknet, score_sums
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
PARTS = [
    (losses.RankNet(), ranknet),
    (losses.RankNet(sigma=0.5, normalize=True), ranknet),
    (losses.Fidelity(), fidelity),
    (losses.Fidelity(confidence=0.8), fidelity),
    (losses.ApproxNDCG(temperature=1.0), approx_ndcg),
]


def data(**more):
    """A long list between two short ones, of five grades."""
    grades = np.random.default_rng(1)  # the same data whatever tests run before
    y = np.floor(5.0 * grades.random(N + 6) ** 2)
    return RankingData.from_arrays(np.zeros((N + 6, 1)), y, group_sizes=[3, N, 3], **more)


def both(loss, module, given, **options):
    """Return the loss as it is bound, and with every pair one by one."""
    bound, plain = loss.bind(given, **options), loss.bind(given)
    plain._kernel = module._queries
    plain._hessian = getattr(module, "_hessian", None)
    assert bound._kernel is module._any_queries
    return bound, plain


def gradients(bound, s):
    g, c = np.empty(len(s)), np.empty(len(s))
    return bound.grad_curv(s, g, c), g, c


@each("kind", SCORES)
@each(("loss", "module"), PARTS)
@each("weighted", [False, True])
def test_long_lists_are_what_their_pairs_add_up_to(kind, loss, module, weighted):
    given = data(sample_weight=rng.random(N + 6)) if weighted else data()
    s = np.concatenate(([0.1, 0.2, 0.3], SCORES[kind], [3.0, 2.0, 1.0]))
    bound, plain = both(loss, module, given)
    (value, g, c), (value_2, g_2, c_2) = gradients(bound, s), gradients(plain, s)
    assert value == pytest.approx(value_2, rel=1e-13)
    np.testing.assert_allclose(g, g_2, rtol=0.0, atol=1e-12 * np.abs(g_2).max())
    np.testing.assert_allclose(c, c_2, rtol=1e-11, atol=1e-12 * c_2.max())
    assert g[:3].tobytes() == g_2[:3].tobytes()  # short lists are as they were
    assert g[-3:].tobytes() == g_2[-3:].tobytes()
    if module is ranknet:
        v, out, out_2 = rng.normal(size=len(s)), np.empty(len(s)), np.empty(len(s))
        bound.hess_vec(v, out)
        plain.hess_vec(v, out_2)
        np.testing.assert_allclose(out, out_2, rtol=0.0, atol=1e-12 * np.abs(out_2).max())


@each("loss", [losses.RankNet(sigma=0.1), losses.Fidelity(), losses.ApproxNDCG(temperature=0.3)])
def test_a_level_that_all_scores_have_costs_no_digits(loss):
    y = np.floor(5.0 * rng.random(N) ** 2)
    bound = loss.bind(RankingData.from_arrays(np.zeros((N, 1)), y, group_sizes=[N]))
    s = np.round(2.0**20 * rng.normal(size=N)) / 2.0**20  # exact with the level as well
    near, far = gradients(bound, s), gradients(bound, s + 2.0**30)
    assert far[0] == pytest.approx(near[0], rel=1e-13)
    for found, expected in zip(far[1:], near[1:], strict=True):
        np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-12 * np.abs(expected).max())


@each(("loss", "module"), PARTS)
def test_what_cells_cannot_hold_is_added_up_pair_by_pair(loss, module):
    given = data()
    for odd in (np.nan, np.inf, 1e6):
        s = np.concatenate((np.zeros(3), SCORES["normal"], np.zeros(3)))
        s[7] = odd
        bound, plain = both(loss, module, given)
        for found, expected in zip(gradients(bound, s), gradients(plain, s), strict=True):
            np.testing.assert_array_equal(found, expected)


@each(("loss", "module"), PARTS)
def test_long_lists_give_the_same_bytes_on_any_threads_and_ties_are_equal(loss, module):
    y = np.floor(3.0 * rng.random(3 * N))
    given = RankingData.from_arrays(np.zeros((3 * N, 1)), y, group_sizes=[N] * 3)
    s = np.tile(SCORES["ties"], 3)
    found = [gradients(both(loss, module, given, n_jobs=n)[0], s) for n in (1, 2, 5)]
    assert len({b"".join(part.tobytes() for part in one[1:]) for one in found}) == 1
    tied = (s[:N] == 0.0) & (y[:N] == 1.0)
    assert tied.sum() > 2
    assert len(set(found[0][1][:N][tied].tolist())) == 1


def test_lists_below_the_limit_have_the_kernels_of_the_gpu():
    bound = losses.RankNet().bind(small_data())
    assert bound._kernel is ranknet._queries


def test_many_grades_are_worth_cells_only_where_those_are_fewer_products():
    x = rng.normal(size=N)
    few, many = np.array([0, 1500, N]), np.arange(N + 1)
    assert score_sums.count_cells(x, few, score_sums.different_grades(few), 5) == int(np.ptp(x)) + 1
    assert score_sums.different_grades(few) == 1500 * (N - 1500)
    assert score_sums.different_grades(many) == N * (N - 1) / 2
    assert score_sums.count_cells(x, many, 10.0, 5) == 0


def test_sums_of_any_smooth_function_are_those_of_the_matrix():
    x, w = 3.0 * rng.normal(size=400), rng.normal(size=400)
    count = int(np.ptp(x)) + 1
    cells, A = score_sums.new_cells(x, count), score_sums.new_values(count)
    far = len(A) // 2
    for k, a, b in np.ndindex(A.shape):
        A[k, a, b] = expit(score_sums.node_gap(k - far, a, b))
    score_sums.make_coefficients(A)
    found = np.ones(400)
    score_sums.add_all(x, w, A, cells, found)
    expected = 1.0 + expit(x[None, :] - x[:, None]) @ w
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-12)
    edges = np.array([0, 100, 250, 400])
    lower, higher = np.zeros(400), np.zeros(400)
    score_sums.add_lower(edges, x, w, A, cells, lower)
    score_sums.add_higher(edges, x, w, A, cells, higher)
    block = np.searchsorted(edges, np.arange(400), side="right")
    f = expit(x[None, :] - x[:, None]) * w
    np.testing.assert_allclose(lower, (f * (block[None] > block[:, None])).sum(1), atol=1e-12)
    np.testing.assert_allclose(higher, (f * (block[None] < block[:, None])).sum(1), atol=1e-12)
