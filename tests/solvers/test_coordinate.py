"""Coordinate descent against a generic convex solver, L-BFGS and its own optimality conditions."""

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse

from rankwright.data.ranking_data import RankingData
from rankwright.losses.domination import Domination
from rankwright.solvers.coordinate import (
    Coordinate,
    falling_l1,
    largest_l1,
    residuals,
    working_set,
)
from rankwright.solvers.lbfgs import LBFGS

MARGIN = Domination(margin="linear", margin_scale=0.3)


def make(seed=0, sizes=(18, 22, 10), features=14, density=0.4, grades=3, **more):
    rng = np.random.default_rng(seed)
    X = sparse.random(sum(sizes), features, density, random_state=seed)
    y = rng.integers(0, grades, sum(sizes))
    return RankingData.from_arrays(sparse.csr_array(X), y, group_sizes=sizes, **more)


def problem_of(data, loss=MARGIN, share=0.0, l2=0.0, **options):
    """The problem with l1 a share of the least that makes all weights 0."""
    problem = loss.bind(data).by_column(sparse.csc_array(data.X), l2=l2, **options)
    problem.l1 = share * largest_l1(problem)
    return problem


def by_cvxpy(data, l1, l2):
    """Weights and objective of MARGIN, written over pairs, from a generic solver."""
    w = cp.Variable(data.n_features)
    s = data.X.toarray() @ w
    total, queries = 0.0, 0
    for lo, hi in zip(data.indptr[:-1], data.indptr[1:], strict=True):
        terms = []
        for i in range(lo, hi):
            below = [j for j in range(lo, hi) if data.y[j] < data.y[i]]
            if below:
                lead = [s[j] - s[i] + 0.3 * (data.y[i] - data.y[j]) for j in below]
                terms.append(cp.log_sum_exp(cp.hstack([0.0, *lead])))
        if terms:
            total += sum(terms) / len(terms)
            queries += 1
    objective = total / queries + l1 * cp.norm1(w) + l2 / 2 * cp.sum_squares(w)
    problem = cp.Problem(cp.Minimize(objective))
    problem.solve(solver="CLARABEL")
    return w.value, problem.value


@pytest.mark.parametrize("share", [0.5, 0.3, 0.15])
@pytest.mark.parametrize("l2", [0.0, 0.1])
def test_same_optimum_and_support_as_a_generic_solver(share, l2):
    data = make(1)
    problem = problem_of(data, share=share, l2=l2)
    found = Coordinate(tol=1e-9).solve(problem)
    w, value = by_cvxpy(data, problem.l1, l2)
    assert found.value == pytest.approx(value, rel=1e-6)
    assert found.optimality <= 1e-9
    assert ((np.abs(w) > 1e-5) == (found.w != 0.0)).all()
    assert 0 < np.count_nonzero(found.w) < data.n_features
    np.testing.assert_allclose(found.w, w, atol=1e-4)


def test_without_l1_it_ends_where_lbfgs_does():
    data = make(3, sample_weight=np.random.default_rng(0).choice([0.0, 1.0, 2.0], 50))
    problem = problem_of(data, Domination(), l2=0.05)
    a = Coordinate(tol=1e-9).solve(problem)
    b = LBFGS(tol=1e-9, max_iter=5000).solve(problem)
    assert a.value == pytest.approx(b.value, rel=1e-12)
    np.testing.assert_allclose(a.w, b.w, atol=1e-6)


def test_the_printed_step_reaches_the_same_optimum_more_slowly():
    data = make(4)
    quick = Coordinate(tol=1e-7).solve(problem_of(data, share=0.2))
    printed = Coordinate(tol=1e-7, max_iter=100_000, step="bound").solve(
        problem_of(data, share=0.2)
    )
    np.testing.assert_allclose(printed.w, quick.w, atol=1e-4)
    assert printed.iterations > 3 * quick.iterations


def test_the_residual_is_the_miss_of_the_optimality_conditions_and_is_reported():
    g, w = np.array([0.3, -0.5, 0.1, -0.2]), np.array([0.0, 2.0, -1.0, 0.0])
    expected = [0.1, abs(-0.5 + 0.2), abs(0.1 - 0.2), 0.0]
    assert residuals(g, w, 0.2) == pytest.approx(expected)
    data = make(5)
    problem = problem_of(data, share=0.1)
    for tolerance in (1e-2, 1e-4, 1e-8):
        found = Coordinate(tol=tolerance).solve(problem)
        gradient = np.empty(problem.size)
        assert problem.grad(found.w, gradient) == found.value
        assert found.optimality == residuals(gradient, found.w, problem.l1).max() <= tolerance


def test_the_objective_never_rises_from_one_look_to_the_next():
    found = Coordinate(tol=1e-8).solve(problem_of(make(6, features=300), share=0.02))
    assert len(found.curve) > 3
    assert (np.diff(found.curve) <= 1e-12).all()


def test_a_working_set_is_the_weights_there_are_and_as_many_of_the_worst():
    w, missed = np.zeros(1000), np.arange(1000.0)
    w[5] = w[990] = 1.0
    chosen = working_set(missed, w)
    assert {5, 990} <= set(chosen.tolist())
    assert set(chosen.tolist()) - {5} == set(range(899, 1000))
    assert working_set(np.zeros(1000), w).tolist() == [5, 990]


def test_more_features_than_the_working_set_holds_still_meet_the_conditions():
    data = make(7, sizes=(60,), features=900, density=0.05)
    problem = problem_of(data, share=0.01)
    found = Coordinate(tol=1e-7, max_iter=5000).solve(problem)
    assert found.optimality <= 1e-7
    assert np.count_nonzero(found.w) > 15


def test_from_the_largest_l1_on_every_weight_is_zero():
    problem = problem_of(make(8), share=1.0)
    assert not Coordinate().solve(problem).w.any()
    problem.l1 *= 0.99
    assert Coordinate().solve(problem).w.any()


def test_a_path_is_the_same_as_solving_each_alone():
    data = make(9)
    penalties = falling_l1(problem_of(data), steps=8, least=0.01)
    assert penalties == sorted(penalties, reverse=True)
    assert penalties[-1] == pytest.approx(0.01 * largest_l1(problem_of(data)))
    path, w, kept = problem_of(data), None, []
    for l1 in penalties:
        problem = problem_of(data)
        path.l1 = problem.l1 = l1
        w = Coordinate(tol=1e-9).solve(path, w).w
        alone = Coordinate(tol=1e-9).solve(problem)
        np.testing.assert_allclose(w, alone.w, atol=1e-6)
        kept.append(np.count_nonzero(w))
    assert kept[0] < kept[-1]


def test_sparse_and_dense_matrices_and_both_precisions_agree():
    data = make(10)
    dense = RankingData(data.X.toarray(), data.y, data.indptr, data.qid)
    single = RankingData(data.X.astype(np.float32), data.y, data.indptr, data.qid)
    w = [Coordinate(tol=1e-9).solve(problem_of(d, share=0.1)).w for d in (data, dense, single)]
    np.testing.assert_array_equal(w[0], w[1])
    np.testing.assert_allclose(w[0], w[2], atol=1e-4)


def test_it_stops_at_max_iterations():
    problem = problem_of(make(11), share=0.05)
    cut = Coordinate(tol=1e-12, max_iter=3).solve(problem)
    assert (cut.iterations, cut.stopped) == (3, "max_iter was reached")
