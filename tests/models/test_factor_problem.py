import numpy as np
import pytest
from scipy import sparse

from rankwright.data.ranking_data import RankingData
from rankwright.losses import loss
from rankwright.models.factor_problem import BlockProblem, FactorProblem, Lists

USERS, ITEMS, FACTORS = 5, 6, 2


def some_data(seed=0):
    """Documents with one, two or no columns, in lists of four."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((20, ITEMS)) < 0.25, rng.normal(size=(20, ITEMS)), 0.0)
    return RankingData.from_arrays(
        sparse.csr_array(X), rng.integers(0, 4, 20), qid=np.repeat(np.arange(USERS), 4)
    )


def problem_of(name, data, **params):
    made = loss(name, **params)
    return FactorProblem(
        Lists(data.X, data.indptr),
        made.bind(data),
        float(USERS),
        n_factors=FACTORS,
        l2=0.3,
        l2_bias=0.07,
        levels=not made.traits.shift_invariant,
        difference=made.traits.difference,
    )


def point(problem, seed=1):
    return np.random.default_rng(seed).normal(size=problem.size)


def test_scores_and_penalty_are_those_of_the_formula():
    data = some_data()
    problem = problem_of("squared", data)
    theta = point(problem)
    U, level, V, b = problem.parts(theta)
    q, X = data.query_of_row(), data.X.toarray()
    s = level[q] + X @ b + np.einsum("if,if->i", U[q], X @ V)
    assert problem.scores(theta) == pytest.approx(s)
    penalty = 0.3 / 2 * ((U**2).sum() / USERS + (V**2).sum())
    penalty += 0.07 / 2 * ((level**2).sum() / USERS + (b**2).sum())
    value = loss("squared").bind(data).value(s) / USERS + penalty
    assert problem.value(theta) == pytest.approx(value)
    assert problem.scaled([U, level, V, b]) == pytest.approx(theta)


def test_a_user_who_is_not_there_has_the_biases_alone():
    data = some_data()
    problem = problem_of("squared", data)
    U, level, V, b = problem.parts(point(problem))
    no_user = np.full(USERS, -1)
    assert Lists(data.X, data.indptr).scores(no_user, U, V, b, level) == pytest.approx(data.X @ b)


@pytest.mark.parametrize("name", ["squared", "ranknet", "listnet"])
def test_the_gradient_is_that_of_the_value(name):
    problem = problem_of(name, some_data())
    theta, gradient = point(problem), np.empty(problem.size)
    assert problem.grad(theta, gradient) == pytest.approx(problem.value(theta))
    steps = 1e-6 * np.eye(problem.size)
    gradients = [(problem.value(theta + h) - problem.value(theta - h)) / 2e-6 for h in steps]
    assert gradient == pytest.approx(np.array(gradients), abs=1e-6)


@pytest.mark.parametrize("users", [True, False])
def test_a_block_is_the_problem_with_the_rest_held(users):
    problem = problem_of("squared", some_data())
    theta = point(problem)
    block = BlockProblem(problem, theta, users=users)
    whole, gradient = np.empty(problem.size), np.empty(block.size)
    value = problem.grad(theta, whole)
    assert block.grad(block.start, gradient) == pytest.approx(block.value(block.start))
    assert gradient == pytest.approx(whole[problem.part_of(users=users)])
    other = point(problem, 2)[: block.size]
    assert block.value(other) - block.value(block.start) == pytest.approx(
        problem.value(block.at(other)) - value
    )


@pytest.mark.parametrize("users", [True, False])
@pytest.mark.parametrize(
    ("name", "params"),
    [("pair_hinge", {"form": "hinge"}), ("position_svm", {"ties": "score"})],
)
def test_planes_touch_from_below(name, params, users):
    problem = problem_of(name, some_data(), **params)
    block = BlockProblem(problem, point(problem), users=users)
    at, others = block.start, [point(problem, k)[: block.size] for k in range(3, 9)]
    a, b, value = block.cut(at)
    assert a @ at + b == pytest.approx(value)
    assert all(block.cut(w)[2] >= a @ w + b - 1e-9 for w in others)
    plane = block.concave_part(at)
    taken = 0.0 if plane is None else plane[0] @ at + plane[1]
    penalty = 0.3 / 2 * at @ at
    assert value - taken + penalty == pytest.approx(block.value(at))
