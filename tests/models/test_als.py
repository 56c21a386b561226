import numpy as np
import pytest
from cases import each
from scipy import sparse

from rankwright.core.parallel import documents_per_range
from rankwright.data.ranking_data import RankingData
from rankwright.losses import loss
from rankwright.models.als import AlternatingSquares
from rankwright.models.factor_problem import FactorProblem

USERS, ITEMS, FACTORS, L2, L2_BIAS = 30, 9, 3, 0.3, 0.07


def ratings(seed=0, users=USERS, values=True):
    """Users rate some items, two of them none at all; a document may have no column."""
    rng = np.random.default_rng(seed)
    user, item = np.nonzero(rng.random((users, ITEMS)) < 0.7)
    kept = ~np.isin(user, (3, 8))
    user, item = user[kept], item[kept]
    x = rng.normal(size=len(item)) if values else np.ones(len(item))
    X = sparse.csr_array((x, item, np.arange(len(item) + 1)), (len(item), ITEMS)).tolil()
    X[4] = 0.0
    y = rng.integers(0, 5, len(item))
    return RankingData.from_arrays(sparse.csr_array(X), y, qid=user)


def problem_of(name, data, n_jobs=None, *, l2=L2, l2_bias=L2_BIAS, **params):
    sizes = {"n_factors": FACTORS, "l2": l2, "l2_bias": l2_bias}
    return FactorProblem(data, loss(name), **sizes, **params, n_jobs=n_jobs)


def solve(problem, theta, *, n_rounds, tol, **sides):
    *_, solution = AlternatingSquares(problem, **sides).rounds(theta, n_rounds=n_rounds, tol=tol)
    return solution


def point(problem, seed=1):
    """Variables that a fit could have: levels and biases are 0 where there are none."""
    theta = np.random.default_rng(seed).normal(size=problem.size)
    return problem.scaled([np.where(p == 0.0, 0.0, p) for p in problem.parts(theta)])


@each("name", ["squared", "query_offset"])
def test_a_step_of_the_users_is_a_ridge_regression(name):
    data = ratings()
    problem = problem_of(name, data)
    theta = point(problem)
    _, _, V, b = problem.parts(theta)
    found = solve(problem, theta, items=False, n_rounds=1, tol=0.0)
    U, level, still_V, still_b = problem.parts(found.w)
    assert (still_V == V).all()
    assert (still_b == b).all()
    for q in range(data.n_queries):
        rows = slice(data.indptr[q], data.indptr[q + 1])
        X, y = data.X[rows].toarray(), data.y[rows]
        Z = np.column_stack([X @ V, np.ones(len(y))])
        penalty = np.diag([L2] * FACTORS + [L2_BIAS if name == "squared" else 0.0])
        best = np.linalg.solve(Z.T @ Z + penalty, Z.T @ (y - X @ b))
        assert U[q] == pytest.approx(best[:-1], abs=1e-9)
        if name == "squared":
            assert level[q] == pytest.approx(best[-1], abs=1e-9)


@each("biases", [True, False])
def test_a_step_of_the_items_is_a_ridge_regression(biases):
    data = ratings()
    problem = problem_of("squared", data, biases=biases)
    theta = point(problem)
    U, level, _, _ = problem.parts(theta)
    found = solve(problem, theta, users=False, n_rounds=1, tol=0.0)
    V, b = problem.parts(found.w)[2:]
    q, X = data.query_of_row(), data.X.toarray()
    for k in range(ITEMS):
        Z = X[:, [k]] * np.column_stack([U[q], np.ones(len(q))])[:, : FACTORS + biases]
        penalty = np.diag(([L2] * FACTORS + [L2_BIAS])[: FACTORS + biases])
        rows = X[:, k] != 0.0
        A, right = Z.T @ Z + data.n_queries * penalty, Z[rows].T @ (data.y - level[q])[rows]
        best = np.linalg.solve(A, right)
        assert V[k] == pytest.approx(best[:FACTORS], abs=1e-9)
        assert b[k] == pytest.approx(best[-1] if biases else 0.0, abs=1e-9)


@each("name", ["squared", "retarget", "ranknet", "all_threshold", "approx_ndcg"])
def test_the_objective_falls_from_round_to_round(name):
    problem = problem_of(name, ratings(values=False))
    theta = 3.0 * point(problem)
    found = solve(problem, theta, n_rounds=40, tol=0.0)
    curve = [problem.value(theta), *found.curve]
    assert (np.diff(curve) <= 0.0).all()
    assert found.value == pytest.approx(problem.value(found.w))
    assert found.value < 0.9 * curve[0]


def test_it_ends_when_a_round_gains_too_little():
    problem = problem_of("retarget", ratings(values=False))
    theta = point(problem)
    all_rounds = solve(problem, theta, n_rounds=60, tol=0.0).curve
    gains = -np.diff([problem.value(theta), *all_rounds]) / [problem.value(theta), *all_rounds[:-1]]
    found = solve(problem, theta, n_rounds=60, tol=1e-3)
    assert found.iterations == int(np.argmax(gains <= 1e-3)) + 1
    assert found.stopped == "J falls by less than tol"


@each("name", ["squared", "retarget"])
def test_any_number_of_threads_makes_the_same_bytes(name):
    data = ratings(users=60)
    with documents_per_range(16):
        found = [
            solve(problem, point(problem), n_rounds=5, tol=0.0).w.tobytes()
            for problem in (problem_of(name, data, n_jobs) for n_jobs in (1, 2, 5))
        ]
    assert len(set(found)) == 1


def test_lists_longer_than_a_block_are_summed_up_whole():
    rng = np.random.default_rng(5)
    n = 150
    X = sparse.csr_array((np.ones(n), np.arange(n), np.arange(n + 1)), (n, n))
    data = RankingData.from_arrays(X, rng.integers(0, 5, n), qid=np.zeros(n, int))
    problem = problem_of("squared", data)
    theta = point(problem)
    _, _, V, b = problem.parts(theta)
    found = solve(problem, theta, items=False, n_rounds=1, tol=0.0)
    Z = np.column_stack([V, np.ones(n)])
    best = np.linalg.solve(Z.T @ Z + np.diag([L2] * FACTORS + [L2_BIAS]), Z.T @ (data.y - b))
    U, level, _, _ = problem.parts(found.w)
    assert [*U[0], level[0]] == pytest.approx(best)


@each("name", ["squared", "query_offset", "ranknet"])
def test_a_penalty_lost_in_rounding_leaves_a_fit(name):
    """Without it the steps are least squares of deficient rank, which have a solution too."""
    found = []
    for l2 in (1e-7, 1e-18, 1e-200):
        problem = problem_of(name, ratings(values=False), l2=l2, l2_bias=l2)
        theta = problem.scaled([np.ones(p.shape) for p in problem.parts(np.zeros(problem.size))])
        problem.views(theta)[2][:] = np.random.default_rng(1).normal(size=(ITEMS, FACTORS))
        found.append(solve(problem, theta, n_rounds=30, tol=0.0).value)
    assert found[1:] == pytest.approx([found[0]] * 2, rel=0.2, abs=1e-3)
