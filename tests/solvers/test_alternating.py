"""Alternating minimisation over targets and weights, and joint convexity of the objective."""

import math

import numpy as np
import pytest
from scipy import sparse
from sklearn.isotonic import isotonic_regression
from small_data import small_data

from rankwright.data.ranking_data import RankingData
from rankwright.errors import IncompatibleError
from rankwright.losses import loss
from rankwright.models import Linear
from rankwright.models.linear_objective import LinearObjective
from rankwright.rankers.base import Ranker, ranker
from rankwright.rankers.joint_convexity import JointConvexity, sufficient_l2
from rankwright.solvers.alternating import Alternating
from rankwright.solvers.lbfgs import LBFGS

# --- a toy: scores A w, targets the nearest that rise by one from row to row -----------------

A = np.random.default_rng(0).normal(size=(12, 3))
STEPS = np.arange(12.0)


class Rising:
    """min over r with r_{i+1} >= r_i + 1 of 1/2 |r - A w|^2 + 1/2 |w|^2."""

    size = 3

    def targets(self, w, near=None, rate=1.0):
        s = A @ w if near is None else rate * (A @ w) + (1 - rate) * near
        return isotonic_regression(s - STEPS) + STEPS

    def with_targets(self, r):
        return Fixed(r)

    def value(self, w):
        return self.with_targets(self.targets(w)).value(w)

    def grad(self, w, out):
        return self.with_targets(self.targets(w)).grad(w, out)


class Fixed:
    """1/2 |r - A w|^2 + 1/2 |w|^2."""

    size = 3

    def __init__(self, r):
        self.r = r

    def value(self, w):
        return 0.5 * np.sum((A @ w - self.r) ** 2) + 0.5 * w @ w

    def grad(self, w, out):
        out[:] = A.T @ (A @ w - self.r) + w
        return self.value(w)


def test_one_turn_is_ridge_regression_on_the_targets():
    w = np.array([1.0, 0.0, -1.0])
    found = Alternating(max_iter=1, inner_tol=1e-10).solve(Rising(), w)
    ridge = np.linalg.solve(A.T @ A + np.eye(3), A.T @ Rising().targets(w))
    np.testing.assert_allclose(found.w, ridge, atol=1e-8)
    assert found.curve == [pytest.approx(Fixed(Rising().targets(w)).value(ridge))]


def test_turns_end_in_the_minimum_of_the_marginal_objective():
    found = Alternating(tol=1e-14).solve(Rising())
    best = LBFGS(tol=1e-10).solve(Rising())
    np.testing.assert_allclose(found.w, best.w, atol=1e-5)
    assert found.optimality < 1e-4
    assert found.value == Rising().value(found.w)
    assert found.stopped == "the objective no longer changes"


def test_the_limit_stops_the_run():
    limited = Alternating(max_iter=3, tol=0.0).solve(Rising())
    assert (limited.iterations, limited.stopped) == (3, "max_iter was reached")


# --- monotone retargeting --------------------------------------------------------------------

DATA = small_data(queries=12, documents=8)
FORMS = [
    {"divergence": "square"},
    {"divergence": "square", "margin": "none", "C_r": 0.5},
    {"divergence": "kl"},
    {"divergence": "kl", "domain": "cone", "C_r": 0.2},
]


def retargeting(**parameters):
    made = loss("retarget", **parameters)
    return LinearObjective(made.bind(DATA), DATA, made.traits, scale=np.ones(6), l2=0.1)


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_no_half_of_a_turn_raises_the_joint_objective(form):
    problem = retargeting(**form)
    found = Alternating(max_iter=15, tol=0.0).solve(problem)
    marginal = [
        Alternating(max_iter=turns, tol=0.0).solve(retargeting(**form)).value
        for turns in range(1, 16)
    ]
    start = problem.value(np.zeros(6))
    halves = np.column_stack([found.curve, marginal]).ravel()  # after (2), after the next (1)
    assert (np.diff([start, *halves]) <= 1e-9 * start).all()
    assert halves[-1] < start


@pytest.mark.parametrize("form", FORMS[:2], ids=str)
def test_it_is_never_better_than_a_solver_of_the_marginal_objective(form):
    problem = retargeting(**form)
    best = LBFGS(tol=1e-9).solve(problem).value
    short, long = (Alternating(max_iter=n, tol=1e-12).solve(problem) for n in (3, 500))
    assert best - 1e-9 <= long.value <= short.value
    assert long.value == pytest.approx(best, rel=1e-4)


def test_a_ranker_takes_it_for_losses_that_have_targets_to_hold():
    mr, memr = (
        Ranker("retarget", Linear(l2=0.1), solver=solver).fit(DATA)
        for solver in ("alternating", "lbfgs")
    )
    assert memr.solution_.value <= mr.solution_.value + 1e-9
    np.testing.assert_allclose(mr.predict(DATA), memr.predict(DATA), atol=0.05)
    with pytest.raises(IncompatibleError, match="needs a loss that is a minimum over targets"):
        Ranker("ranknet", solver="alternating").fit(DATA)


def test_turns_go_on_where_the_objective_is_negative():
    problem = retargeting(margin="large")
    best, found = LBFGS(tol=1e-9).solve(problem), Alternating(tol=1e-12).solve(problem)
    assert best.value < 0
    assert found.iterations > 1
    assert found.value == pytest.approx(best.value, rel=1e-4)


# --- exponentiated gradient ------------------------------------------------------------------


def falling(scores):
    """Return the falling distribution nearest to that of ``scores`` in KL."""
    pooled = np.exp(isotonic_regression(scores, increasing=False))
    return pooled / pooled.sum()


def test_a_rate_below_one_is_a_projected_step_of_exponentiated_gradient():
    """On one query in the order of falling grades, no margins, from targets r."""
    scores, r = np.array([0.3, 1.0, -0.5, 0.8]), np.array([0.5, 0.25, 0.15, 0.1])
    data = RankingData.from_arrays(np.diag(scores), [3, 2, 1, 0], group_sizes=[4])
    made = loss("retarget", divergence="kl", margin="none")
    problem = LinearObjective(made.bind(data), data, made.traits, scale=np.ones(4))
    p = np.exp(scores) / np.exp(scores).sum()
    moved = r * np.exp(-0.3 * (np.log(r / p) + 1.0))
    got = np.exp(problem.targets(np.ones(4), np.log(r), 0.3))
    np.testing.assert_allclose(got / got.sum(), falling(np.log(moved)), atol=1e-12)


@pytest.mark.parametrize("form", [FORMS[0], FORMS[2]], ids=str)
def test_such_steps_never_raise_the_objective_and_end_where_exact_ones_do(form):
    problem = retargeting(**form)
    exact, steps = (
        Alternating(tol=1e-10, learning_rate=rate).solve(problem) for rate in (1.0, 0.4)
    )
    assert (np.diff(steps.curve) <= 1e-9).all()
    assert steps.iterations > exact.iterations
    assert steps.value == pytest.approx(exact.value, rel=1e-6)


# --- joint convexity -------------------------------------------------------------------------

X, INDPTR = np.random.default_rng(1).normal(size=(7, 2)), np.array([0, 3, 7])


def joint_hessian(r, w, l2, C_r):
    """Of sum_i 1/2 [D(r_i || p(A_i w)) + C_r D(r_i || q)] + l2/2 |w|^2, in r and w."""
    found = np.zeros((9, 9))
    found[:7, :7] = np.diag(0.5 * (1 + C_r) / r)
    found[:7, 7:] = -0.5 * X
    found[7:, :7] = -0.5 * X.T
    found[7:, 7:] = l2 * np.eye(2)
    for a, b in ((0, 3), (3, 7)):
        p = np.exp(X[a:b] @ w)
        p /= p.sum()
        found[7:, 7:] += 0.5 * X[a:b].T @ (np.diag(p) - np.outer(p, p)) @ X[a:b]
    return found


def smallest_curvature(l2, C_r):
    rng = np.random.default_rng(0)
    return min(
        np.linalg.eigvalsh(
            joint_hessian(
                np.concatenate([rng.dirichlet(np.full(n, 0.3)) + 1e-9 for n in (3, 4)]),
                rng.normal(size=2) * 10,
                l2,
                C_r,
            )
        )[0]
        for _ in range(500)
    )


EQUAL = np.array([0.5, 0.5])


@pytest.mark.parametrize("C_r", [0.0, 1.5])
def test_the_penalty_that_is_enough_makes_the_joint_hessian_positive(C_r):
    needed = sufficient_l2(X, INDPTR, EQUAL, C_r)
    top = [np.linalg.norm(X[a:b], 2) ** 2 for a, b in ((0, 3), (3, 7))]
    assert needed == pytest.approx(0.5 * sum(top) / (1 + C_r))
    assert smallest_curvature(needed, C_r) >= 0.0
    assert smallest_curvature(0.01, C_r) < 0.0


def test_query_weights_and_sparse_features():
    thin = sufficient_l2(sparse.csr_array(X), INDPTR, EQUAL, 0.0)
    assert thin == pytest.approx(sufficient_l2(X, INDPTR, EQUAL, 0.0))
    weighted = sufficient_l2(X, INDPTR, np.array([0.25, 0.0]), 0.0)
    assert weighted == pytest.approx(0.25 * np.linalg.norm(X[:3], 2) ** 2)


def test_the_report_reads_as_a_sentence():
    assert str(JointConvexity(2.0, 1.5)) == "jointly convex: l2 is 2, and 1.5 is enough"
    assert str(JointConvexity(1.0, 1.5)) == "perhaps not jointly convex: l2 is 1, and 1.5 is enough"
    assert str(JointConvexity(1.0, 0.0)) == "jointly convex, whatever l2"
    assert str(JointConvexity(1.0, math.inf)) == "no l2 makes sure of joint convexity"


# --- no margins and no C_r -------------------------------------------------------------------


@pytest.mark.parametrize("divergence", ["square", "kl"])
def test_mr_without_c_r_goes_toward_0_and_ranks_by_the_way_there(divergence):
    mr = ranker("mr", C_r=0.0, divergence=divergence, l2=1.0).fit(DATA)
    held = ranker("mr", C_r=1e6, divergence=divergence, l2=1.0, solver="lbfgs").fit(DATA)
    assert mr.solution_.stopped == "the objective has all but vanished"
    assert 0.0 < np.abs(mr.coef_).max() < 1e-3 * np.abs(held.coef_).max()
    agree = np.corrcoef(mr.predict(DATA), held.predict(DATA))[0, 1]
    assert agree > 0.8
    bound = loss("retarget", margin="none", divergence=divergence).bind(DATA)
    assert bound.value(np.zeros(DATA.n_documents)) == pytest.approx(0.0, abs=1e-12)


def test_every_l2_is_tried_from_the_targets_of_the_grades():
    auto = ranker("mr", C_r=0.0, l2="auto").fit(DATA, eval_set=DATA.select(slice(8)))
    for t in (1, 3):
        alone = ranker("mr", C_r=0.0, l2=10.0 ** (4 - t), metric="ndcg@10")
        start = ranker("mr", C_r=1e6, l2=1.0, solver="lbfgs").fit(DATA)
        one = alone.fit(DATA, eval_set=DATA.select(slice(8)), init_model=start).curve_[
            "valid ndcg@10"
        ][0]
        assert auto.curve_["valid ndcg@10"][t - 1] == pytest.approx(one)
