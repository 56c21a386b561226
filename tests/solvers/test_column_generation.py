"""Column generation: the optimum of (27) as cutting planes and cvxpy find it."""

from itertools import permutations

import cvxpy as cp
import numpy as np
import pytest
from reference.position_svm import at_ranks, measured, reference_orders
from svm_problems import L2, problem_of, some_data

from rankwright.losses.position_svm import PositionSVM
from rankwright.solvers.bundle import Bundle
from rankwright.solvers.column_generation import ColumnGeneration


def structured_svm(loss, data, l2=L2):
    """(27) with a constraint for every order of every query."""
    w, xi = cp.Variable(data.n_features), cp.Variable(data.n_queries)
    rules = [xi >= 0]
    for q in range(data.n_queries):
        rows = slice(data.indptr[q], data.indptr[q + 1])
        X, y = data.X[rows], data.y[rows]
        c = 1 / np.arange(2.0, len(y) + 2)
        orders = reference_orders(y, np.zeros(len(y)), loss.ties)
        cref = np.mean([at_ranks(o, c) for o in orders], axis=0)
        ideal = measured(loss.metric, np.sort(y)[::-1])
        every = list(permutations(range(len(y))))
        gradients = np.array([(at_ranks(o, c) - cref) @ X for o in every])
        losses = np.array([ideal - measured(loss.metric, y[list(o)]) for o in every])
        rules.append(gradients @ w + losses <= xi[q])
    value = l2 / 2 * cp.sum_squares(w) + cp.sum(xi) / data.n_queries
    return cp.Problem(cp.Minimize(value), rules).solve(solver=cp.CLARABEL)


@pytest.mark.parametrize("ties", ["mean", "file"])
@pytest.mark.parametrize("metric", ["ndcg@3", "mrr"])
def test_bundle_column_generation_and_cvxpy_agree(metric, ties):
    loss, data = PositionSVM(metric=metric, ties=ties), some_data()
    best = structured_svm(loss, data)
    problem = problem_of(loss, data)
    planes = Bundle(tol=1e-9).solve(problem)
    columns = ColumnGeneration(tol=1e-9).solve(problem)
    for found in (planes, columns):
        assert found.value == pytest.approx(best, rel=1e-7)
        assert problem.value(found.w) == pytest.approx(found.value, rel=1e-12)
        assert found.optimality <= 1e-8
    assert planes.stopped == "the gap is small"
    assert columns.stopped == "no set has grown"
    np.testing.assert_allclose(planes.w, columns.w, atol=1e-3)
