"""Steps along columns against finite differences, brute force over pairs, and the printed step."""

import numpy as np
import pytest
from cases import each
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.losses.domination import Domination
from rankwright.losses.domination_columns import (
    column_bounds,
    column_ranges,
    derivatives,
    move,
    step_length,
)

LOSSES = [
    Domination(),
    Domination(tiers=(1.0,)),
    Domination(margin="linear", margin_scale=0.4),
]


def sparse_data(seed=0, sizes=(20, 1, 0, 25, 15), features=8, density=0.4, grades=4, **more):
    rng = np.random.default_rng(seed)
    n = sum(sizes)
    X = sparse.random(n, features, density, random_state=seed, data_rvs=rng.standard_normal)
    y = rng.integers(0, grades, n)
    return RankingData.from_arrays(sparse.csr_array(X), y, group_sizes=sizes, **more)


def weighted_data(seed=0, **more):
    rng = np.random.default_rng(seed + 100)
    weights = {
        "sample_weight": rng.choice([0.0, 0.5, 1.0, 3.0], 61),
        "query_weight": np.array([1.0, 1.0, 1.0, 2.5, 0.5]),
    }
    return sparse_data(seed, **weights, **more)


def problem_of(data, loss=LOSSES[0], **options):
    return loss.bind(data).by_column(sparse.csc_array(data.X), **options)


def at(problem, w):
    """The gradient of all but l1 at w, from which steps then go on."""
    out = np.empty(problem.size)
    return problem.grad(np.array(w, float), out), out


def along(problem, j, w, u):
    moved = np.array(w, float)
    moved[j] += u
    return problem.value(moved)


def kernel_derivatives(problem, j):
    lo, hi = problem._arrays[0][j : j + 2]
    return derivatives(lo, hi, *problem._arrays[1:], problem._factor[j], problem._state)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_derivative_and_bend_of_a_column_are_differences_of_the_objective(loss):
    problem = problem_of(weighted_data(), loss)
    w = np.random.default_rng(1).normal(size=problem.size)
    _, gradient = at(problem, w)
    for j in range(problem.size):
        derivative, bend, positive = kernel_derivatives(problem, j)
        low, mid, high = (along(problem, j, w, u) for u in (-1e-4, 0.0, 1e-4))
        assert derivative == pytest.approx((high - low) / 2e-4, abs=1e-7)
        assert bend == pytest.approx((high - 2 * mid + low) / 1e-8, abs=1e-5)
        assert derivative == pytest.approx(gradient[j], abs=1e-12)
        assert positive >= bend


def test_derivative_is_the_sum_over_pairs():
    """mean over dominating i of sum over dominated j of p_ij (x_j - x_i), written out."""
    data = sparse_data(sizes=(12,), features=3)
    problem = problem_of(data)
    w = np.array([0.5, -1.0, 2.0])
    at(problem, w)
    X = data.X.toarray()
    s = X @ w
    total, dominating = np.zeros(3), 0
    for i in range(12):
        below = np.flatnonzero(data.y < data.y[i])
        if len(below):
            terms = np.exp(s[below] - s[i])
            share = terms / (1 + terms.sum())
            total += share @ (X[below] - X[i])
            dominating += 1
    found = [kernel_derivatives(problem, j)[0] for j in range(3)]
    assert found == pytest.approx(total / dominating)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_sums_that_are_carried_along_stay_those_of_the_scores(loss):
    """Many small steps and few large ones: S_k expanded in Z, and summed anew, agree."""
    data = weighted_data(3, features=30)
    problem = problem_of(data, loss)
    rng = np.random.default_rng(4)
    w = np.zeros(problem.size)
    at(problem, w)
    for number in range(400):
        j = int(rng.integers(problem.size))
        u = float(rng.normal() * (3.0 if number % 50 == 0 else 0.01))
        w[j] += u
        lo, hi = problem._arrays[0][j : j + 2]
        move(lo, hi, *problem._arrays[1:], 1.0, u, problem._state)
    carried = [kernel_derivatives(problem, j) for j in range(problem.size)]
    _, gradient = at(problem, w)
    exact = [kernel_derivatives(problem, j) for j in range(problem.size)]
    np.testing.assert_allclose([c[0] for c in carried], gradient, atol=1e-9)
    np.testing.assert_allclose(carried, exact, atol=1e-7)


@settings(deadline=None, max_examples=40)
@given(
    st.integers(0, 10_000),
    st.sampled_from(LOSSES),
    st.sampled_from([0.0, 1e-3, 0.03]),
    st.sampled_from([0.0, 1e-3, 1.0]),
    st.sampled_from(["log1p", "bound"]),
    st.sampled_from([0.1, 1.0, 30.0]),
)
def test_no_step_ever_increases_the_objective(seed, loss, l1, l2, step, size):
    data = weighted_data(seed)
    problem = problem_of(data, loss, l1=l1, l2=l2)
    w = size * np.random.default_rng(seed).normal(size=problem.size)
    w[::3] = 0.0
    before, _ = at(problem, w)
    for _ in range(2):
        for j in range(problem.size):
            problem.sweep(w, np.array([j]), step=step)
            after = problem.value(w)
            assert after <= before + 1e-9 * abs(before)
            before = after


def objective_of_step(u, derivative, bend, reach, w, l1):
    bound = u * u / 2 if reach == 0.0 else (np.expm1(reach * abs(u)) - reach * abs(u)) / reach**2
    return derivative * u + bend * bound + l1 * abs(w + u)


@each("reach", [0.0, 0.5, 2.0])
@each("w", [0.0, 0.3, -0.3, 2.0])
@each("derivative", [0.0, 0.1, -0.1, 0.7, -3.0])
@each("l1", [0.0, 0.2, 1.0])
def test_a_step_is_the_minimum_of_its_bound(reach, w, derivative, l1):
    bend = 0.8
    u = step_length(derivative, bend, reach, w, l1)
    grid = np.linspace(-6.0, 6.0, 4001)
    tried = [objective_of_step(v, derivative, bend, reach, w, l1) for v in (*grid, -w)]
    assert objective_of_step(u, derivative, bend, reach, w, l1) <= min(tried) + 1e-12


def test_the_printed_step_is_the_derivative_over_m_times_the_largest_square():
    """(1.2): delta = -g / (m B); with l1, Lemma 2 and the two cases after it."""
    data = sparse_data(sizes=(30,), grades=2)
    B = data.X.toarray()[:, 2].max() ** 2, data.X.toarray()[:, 2].min() ** 2
    for l1, start in [(0.0, 0.0), (0.01, 0.5), (10.0, 0.5), (0.01, 0.0)]:
        problem = problem_of(data, l1=l1)
        w = np.zeros(problem.size)
        w[2] = start
        g = at(problem, w)[1][2]
        beta = max(B)
        if abs(g - beta * start) <= l1:
            expected = 0.0
        else:
            expected = start - (g + np.sign(beta * start - g) * l1) / beta
        problem.sweep(w, np.array([2]), step="bound")
        assert w[2] == pytest.approx(expected)


def test_without_penalty_a_step_is_log1p_of_derivative_over_bend():
    data = sparse_data(sizes=(30,), grades=2)
    problem = problem_of(data)
    w = np.zeros(problem.size)
    at(problem, w)
    derivative, bend, _ = kernel_derivatives(problem, 1)
    column = data.X.toarray()[:, 1]
    R = column.max() - column.min()
    problem.sweep(w, np.array([1]))
    assert w[1] == pytest.approx(-np.sign(derivative) * np.log1p(R * abs(derivative) / bend) / R)


def test_ranges_count_zeros_that_are_not_stored_and_stay_within_queries():
    X = np.array([[3.0, 0.0], [5.0, -2.0], [9.0, 4.0], [9.5, 4.0]])
    reach, largest = column_ranges(sparse.csc_array(X), np.array([0, 2, 4]), np.ones(4))
    assert reach.tolist() == [2.0, 2.0]
    assert largest.tolist() == [9.5**2, 16.0]


def test_ranges_leave_out_documents_of_weight_zero():
    X = np.array([[3.0, -1.0], [50.0, 0.0], [5.0, 2.0], [8.0, -7.0]])
    weight = np.array([1.0, 0.0, 1.0, 0.0])
    reach, largest = column_ranges(sparse.csc_array(X), np.array([0, 4]), weight)
    assert reach.tolist() == [2.0, 3.0]
    assert largest.tolist() == [25.0, 4.0]


def test_a_feature_that_is_constant_in_every_query_gets_no_weight():
    data = sparse_data()
    X = sparse.csr_array(np.column_stack([data.X.toarray(), 1.0 + data.query_of_row()]))
    problem = problem_of(RankingData(X, data.y, data.indptr, data.qid), l2=0.1)
    w = np.zeros(9)
    w[8] = 3.0
    at(problem, w)
    problem.sweep(w, np.arange(9))
    assert w[8] == 0.0


def test_scores_far_apart_stay_finite_and_go_down():
    data = sparse_data(5, density=0.9)
    problem = problem_of(data, l1=1e-3)
    w = np.full(problem.size, 300.0)
    before, _ = at(problem, w)
    for _ in range(150):
        problem.sweep(w, np.arange(problem.size))
    assert np.isfinite(w).all()
    assert problem.value(w) < before / 2


def test_columns_divided_by_a_deviation_are_divided_columns():
    data, rng = weighted_data(2), np.random.default_rng(0)
    deviation = rng.uniform(0.5, 2.0, data.n_features)
    divided = RankingData(
        sparse.csr_array(data.X.toarray() / deviation), data.y, data.indptr, data.qid,
        query_weight=data.query_weight, sample_weight=data.sample_weight,
    )  # fmt: skip
    weights = []
    for problem in (problem_of(data, l1=0.01, deviation=deviation), problem_of(divided, l1=0.01)):
        w = np.zeros(problem.size)
        at(problem, w)
        for _ in range(5):
            problem.sweep(w, np.arange(problem.size))
        weights.append(w)
    np.testing.assert_allclose(weights[0], weights[1], rtol=1e-9)


def test_gradients_have_the_same_bits_for_one_two_and_five_threads():
    data = sparse_data(7, sizes=(5_000,), features=400, density=0.3)
    w = np.random.default_rng(0).normal(size=400) * 0.1
    bits = [at(problem_of(data, n_jobs=n), w)[1].tobytes() for n in (1, 2, 5)]
    assert len(column_bounds(sparse.csc_array(data.X).indptr)) > 2
    assert bits[0] == bits[1] == bits[2]


def test_wrong_matrices_and_steps_are_refused():
    data = sparse_data()
    with pytest.raises(UsageError, match="CSC matrix"):
        Domination().bind(data).by_column(data.X)
    problem = problem_of(data)
    with pytest.raises(UsageError, match="step must be log1p or bound, not 'newton'"):
        problem.sweep(np.zeros(8), np.arange(8), step="newton")
