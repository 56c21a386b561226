"""Lemma 2 of the MEMR paper, by numbers: when the marginal objective is strongly convex.

With phi s-strongly convex and its gradient L-Lipschitz, the lemma has G(w) C-strongly convex (C the
penalty l2) if

    sum_i sigma_i (1/L + C_wi - 1/(s (1 + C_ri))) > 0,

sigma_i being the largest singular value of the features of query i. Square has s = L = 1; KL on the
simplex s = 1 and 1/L = 0. With one C_w and one C_r for all queries the bracket decides, whatever
the sigma_i. With several it must hold for each query, not for their sum.
"""

import numpy as np
import pytest
from small_data import small_data

from rankwright.losses import loss
from rankwright.models.linear_problem import LinearProblem

DATA, L2 = small_data(queries=6, documents=7, features=4), 0.3
INVERSE_L = {"square": 1.0, "kl": 0.0}


def bracket(divergence, C_r, C_w):
    return INVERSE_L[divergence] + C_w - 1 / (1 + C_r)


def problem_of(data=DATA, l2=L2, **parameters):
    bound = loss("retarget", **parameters).bind(data)
    return LinearProblem(data.X, data.indptr, bound, 1.0, l2=l2, deviation=np.ones(4))


def gradient(problem, w):
    out = np.empty(len(w))
    problem.grad(w, out)
    return out


def least_curvature(gradient, trials=150, along=(1, 1, 1, 1)):
    """The least (grad a - grad b)(a - b) / |a - b|^2 that is met; nearby points see the Hessian."""
    rng = np.random.default_rng(0)
    found = np.inf
    for _ in range(trials):
        a = rng.normal(size=4) * rng.choice([0.1, 1.0, 5.0])
        step = rng.normal(size=4) * rng.choice([1e-4, 1.0]) * along
        found = min(found, (gradient(a + step) - gradient(a)) @ step / (step @ step))
    return found


@pytest.mark.parametrize("margin", ["none", "grade", "large"])
@pytest.mark.parametrize(
    ("divergence", "C_r", "C_w"),
    [
        ("square", 0.5, 0.0),
        ("square", 0.0, 0.1),
        ("kl", 0.0, 1.05),
        ("kl", 1.0, 0.55),
        ("kl", 4.0, 0.25),
    ],
)
def test_where_the_condition_holds_the_objective_is_as_convex_as_its_penalty(
    divergence, C_r, C_w, margin
):
    assert bracket(divergence, C_r, C_w) > 0
    problem = problem_of(divergence=divergence, C_r=C_r, C_w=C_w, margin=margin, size=0.3)
    assert least_curvature(lambda w: gradient(problem, w)) >= L2 - 1e-6


@pytest.mark.parametrize("C_r", [0.0, 1.0])
def test_kl_without_c_w_fails_the_condition_and_is_not_that_convex(C_r):
    assert bracket("kl", C_r, 0.0) < 0
    problem = problem_of(divergence="kl", C_r=C_r, margin="grade")
    assert least_curvature(lambda w: gradient(problem, w)) < L2 - 0.01


def test_the_sum_over_queries_as_printed_is_not_enough():
    """A query of large C_w makes the sum positive, and is of no help where it has no feature."""
    first, second = (DATA.select([q]) for q in (0, 1))
    first.X[:, 2:], second.X[:, :2] = 0.0, 0.0
    firm = problem_of(first, 0.0, divergence="kl", C_w=9.0)
    loose = problem_of(second, L2, divergence="kl")
    sigma = [np.linalg.norm(part.X, 2) for part in (first, second)]
    assert sigma[0] * bracket("kl", 0.0, 9.0) + sigma[1] * bracket("kl", 0.0, 0.0) > 0

    def both(w):
        return gradient(firm, w) + gradient(loose, w)

    assert least_curvature(both, 400, along=(0, 0, 1, 1)) < L2 - 0.01
