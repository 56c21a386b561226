import numpy as np
import pytest
from scipy import sparse

from rankwright.data.ranking_data import RankingData
from rankwright.losses import loss
from rankwright.models.factor_problem import BlockProblem, FactorProblem, factor_scores

USERS, ITEMS, FACTORS = 5, 6, 2


def some_data(seed=0):
    """Documents with one, two or no columns, in lists of four."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((20, ITEMS)) < 0.25, rng.normal(size=(20, ITEMS)), 0.0)
    return RankingData.from_arrays(
        sparse.csr_array(X), rng.integers(0, 4, 20), qid=np.repeat(np.arange(USERS), 4)
    )


def problem_of(name, data, **params):
    sizes = {"n_factors": FACTORS, "l2": 0.3, "l2_bias": 0.07}
    return FactorProblem(data, loss(name, **params), **sizes)


def point(problem, seed=1):
    return np.random.default_rng(seed).normal(size=problem.size)


def test_scores_and_penalty_are_those_of_the_formula():
    data = some_data()
    problem = problem_of("squared", data)
    theta = point(problem)
    U, level, V, b = problem.parts(theta)
    q, X = data.query_of_row(), data.X.toarray()
    s = level[q] + X @ b + np.einsum("if,if->i", U[q], X @ V)
    assert problem.scores(problem.parts(theta)) == pytest.approx(s)
    penalty = 0.3 / 2 * ((U**2).sum() / USERS + (V**2).sum())
    penalty += 0.07 / 2 * ((level**2).sum() / USERS + (b**2).sum())
    value = loss("squared").bind(data).value(s) / USERS + penalty
    assert problem.value(theta) == pytest.approx(value)
    assert problem.scaled([U, level, V, b]) == pytest.approx(theta)


def test_a_user_who_is_not_there_has_the_biases_alone():
    data = some_data()
    problem = problem_of("squared", data)
    parts = problem.parts(point(problem))
    scores = factor_scores(data.X, data.indptr, np.full(USERS, -1), parts)
    assert scores == pytest.approx(data.X @ parts[-1])


SIDES = pytest.mark.parametrize(
    "sides", [{"users": u, "items": i} for u, i in ((True, True), (True, False), (False, True))]
)


@SIDES
@pytest.mark.parametrize("name", ["squared", "ranknet", "listnet"])
def test_the_gradient_is_that_of_the_value(name, sides):
    problem = problem_of(name, some_data())
    theta = point(problem)
    block = BlockProblem(problem, theta, **sides)
    gradient, value = np.empty(block.size), block.value(block.start)
    assert block.grad(block.start, gradient) == value
    steps = 1e-6 * np.eye(block.size)
    ends = [
        (problem.value(block.at(block.start + h)), problem.value(block.at(block.start - h)))
        for h in steps
    ]
    assert gradient == pytest.approx(np.array([(a - b) / 2e-6 for a, b in ends]), abs=1e-6)


@SIDES
def test_a_block_is_the_problem_with_the_rest_held(sides):
    problem = problem_of("squared", some_data())
    theta = point(problem)
    block = BlockProblem(problem, theta, **sides)
    assert (block.at(block.start) == theta).all()
    other = point(problem, 2)[: block.size]
    assert block.value(other) - block.value(block.start) == pytest.approx(
        problem.value(block.at(other)) - problem.value(theta)
    )


@pytest.mark.parametrize("users", [True, False])
@pytest.mark.parametrize(
    ("name", "params"),
    [("pair_hinge", {"form": "hinge"}), ("position_svm", {"ties": "score"})],
)
def test_planes_touch_from_below(name, params, users):
    problem = problem_of(name, some_data(), **params)
    block = BlockProblem(problem, point(problem), users=users, items=not users)
    at, others = block.start, [point(problem, k)[: block.size] for k in range(3, 9)]
    a, b, value = block.cut(at)
    assert a @ at + b == pytest.approx(value)
    assert all(block.cut(w)[2] >= a @ w + b - 1e-9 for w in others)
    plane = block.concave_part(at)
    taken = 0.0 if plane is None else plane[0] @ at + plane[1]
    penalty = 0.3 / 2 * at @ at
    assert value - taken + penalty == pytest.approx(block.value(at))
