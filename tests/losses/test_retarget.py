"""Monotone retargeting against cvxpy, by hand, and what the paper's statements come to."""

from dataclasses import replace

import numpy as np
import pytest
from cases import each
from reference.retarget import optimum, retarget
from scipy.optimize import minimize
from small_data import small_data

from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.losses import loss
from rankwright.losses.retarget import Retarget
from rankwright.models.linear_objective import LinearObjective

SQUARE = [
    Retarget(),
    Retarget(margin="sqrt", targets="gain"),
    Retarget(margin="large", size=0.4),
    Retarget(C_r=0.7),
    Retarget(floor=0.3),
    Retarget(floor=0.3, C_r=0.5, margin="constant"),
    Retarget(margin="none", C_r=2.0, intercept=False),
    *(Retarget(margin="large", size=0.4, C_r=C_r) for C_r in (0.3, 1.0, 4.0)),
    Retarget(margin="large", C_r=1.0, intercept=False, targets="gain"),
    Retarget(margin="large", C_r=1.0, floor=0.3),
]
KL = [
    Retarget(divergence="kl"),
    Retarget(divergence="kl", C_r=0.5, margin="sqrt"),
    Retarget(divergence="kl", margin="large", size=0.2),
    Retarget(divergence="kl", floor=0.02, size=0.3),
    Retarget(divergence="kl", kl_margin="additive", size=0.02),
    Retarget(divergence="kl", kl_margin="additive", size=0.02, floor=0.01, C_r=0.4),
    Retarget(divergence="kl", domain="cone", floor=0.05),
    Retarget(divergence="kl", domain="cone", C_r=0.5, floor=0.4),
    Retarget(divergence="kl", domain="cone", margin="large", size=0.5, C_r=0.2),
    Retarget(divergence="kl", domain="cone", kl_margin="additive", size=0.5),
    Retarget(divergence="kl", domain="cone", kl_margin="additive", margin="sqrt", floor=0.2),
    *(
        Retarget(divergence="kl", domain=domain, margin="large", size=0.2, C_r=C_r)
        for domain in ("simplex", "cone")
        for C_r in (0.3, 1.0, 4.0)
    ),
    Retarget(divergence="kl", margin="large", size=0.2, C_r=1.0, kl_margin="additive", floor=0.01),
]


def name_of(loss):
    plain = Retarget()
    own = ((key, getattr(loss, key)) for key in Retarget.__dataclass_fields__)
    return "-".join(str(value) for key, value in own if value != getattr(plain, key)) or "default"


def query(y, **arrays):
    return RankingData.from_arrays(np.zeros((len(y), 1)), y, group_sizes=[len(y)], **arrays)


def at(bound, s):
    grad = np.empty(len(s))
    return bound.grad(np.asarray(s, float), grad), grad


def random_queries(count, seed=0):
    """Grades (at least two of them), scores and weights of documents."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        n = rng.integers(2, 9)
        y = np.r_[0.0, 2.0, rng.integers(0, 4, n)]
        yield y, rng.normal(size=n + 2) * rng.choice([0.3, 2.0]), rng.choice([0.5, 1, 2], n + 2)


# --- by hand -----------------------------------------------------------------------------------


def test_two_equal_scores_are_pulled_half_a_margin_each():
    bound = Retarget(size=3.0).bind(query([1.0, 0.0]))
    value, grad = at(bound, [5.0, 5.0])
    assert value == pytest.approx(2 * 1.5**2 / 2)
    assert grad == pytest.approx([-1.5, 1.5])


def test_scores_a_margin_apart_cost_nothing():
    bound = Retarget().bind(query([0.0, 2.0, 1.0, 1.0]))
    assert bound.value(np.array([0.0, 2.0, 1.0, 1.0]) * 1.01) == 0.0


def test_kl_of_two_documents_splits_the_simplex_by_the_ratio():
    bound = Retarget(divergence="kl", size=np.log(3.0)).bind(query([1.0, 0.0]))
    value, grad = at(bound, [0.0, 0.0])  # r = (3/4, 1/4) from (1/2, 1/2)
    assert value == pytest.approx(0.75 * np.log(1.5) + 0.25 * np.log(0.5))
    assert grad == pytest.approx([-0.25, 0.25])


def test_a_reward_lifts_by_its_size_over_the_weight():
    bound = Retarget(margin="large", size=0.4).bind(query([1.0, 0.0], sample_weight=[1.0, 2.0]))
    out = np.empty(2)
    bound.targets(np.array([3.0, 0.0]), out)
    assert out == pytest.approx([3.4, -0.2])


def test_a_reward_is_shared_with_the_pull_of_the_grades():
    bound = Retarget(margin="large", C_r=1.0).bind(query([0.0, 1.0]))
    # centred: s = (.1, -.1), q = (-.5, .5); r = (s + q)/2 -+ 1/2, the reward halved as the scores
    value, grad = at(bound, [0.3, 0.1])
    assert grad == pytest.approx([0.8, -0.8])
    assert value == pytest.approx((2 * 0.8**2 + 2 * 0.2**2) / 2 - 1.4)


# --- against cvxpy -----------------------------------------------------------------------------


@pytest.mark.parametrize("loss", SQUARE + KL, ids=name_of)
def test_value_and_targets_are_those_of_a_generic_solver(loss):
    for y, s, w in random_queries(24):
        bound = loss.bind(query(y, sample_weight=w))
        value, r = optimum(loss, s, y, w)
        assert bound.value(s) == pytest.approx(value, rel=1e-8, abs=1e-9)
        out = np.empty(len(s))
        bound.targets(s, out)
        if loss.divergence == "kl":
            out = np.exp(out)
            out = out / (w @ out) if loss.domain == "simplex" else out
            np.testing.assert_allclose(out, r, atol=2e-3 * max(1.0, r.max()))
        else:
            shift = np.average(r - out, weights=w) if loss.traits.shift_invariant else 0.0
            np.testing.assert_allclose(out + shift, r, atol=1e-4)


# --- targets and the way toward them -----------------------------------------------------------


@each("loss", SQUARE + KL + [Retarget(C_w=0.3, C_r=0.2)])
def test_toward_its_targets_the_loss_is_the_same_and_elsewhere_larger(loss):
    loss = replace(loss, query_weight_exponent=0.5)
    rng = np.random.default_rng(3)
    y, s, w = next(random_queries(1, seed=4))
    data = query(y, sample_weight=w, query_weight=[1.7])
    bound, out, best = loss.bind(data), np.empty(len(s)), np.empty(len(s))
    bound.targets(s, best)
    value, grad = at(bound, s)
    there, gradient = at(bound.with_targets(best), s)
    assert there == pytest.approx(value, rel=1e-9)
    np.testing.assert_allclose(gradient, grad, atol=1e-9)
    for _ in range(20):
        bound.targets(s + rng.normal(size=len(s)), out)  # other targets in order
        assert bound.with_targets(out).value(s) >= value - 1e-9


@pytest.mark.parametrize("loss", [SQUARE[3], SQUARE[4], KL[1], KL[7]], ids=name_of)
def test_toward_fixed_targets_derivatives_are_differences(loss):
    loss = replace(loss, C_w=0.2)
    rng = np.random.default_rng(5)
    y, s, w = next(random_queries(1, seed=6))
    data = query(y, sample_weight=w)
    bound, r = loss.bind(data), np.empty(len(s))
    bound.targets(s, r)
    fixed, v = bound.with_targets(r), rng.normal(size=len(s))
    here = s + rng.normal(size=len(s))
    grad = at(fixed, here)[1]
    out, eps = np.empty(len(s)), 1e-6
    fixed.hess_vec(v, out)
    ahead, behind = at(fixed, here + eps * v), at(fixed, here - eps * v)
    assert grad @ v == pytest.approx((ahead[0] - behind[0]) / (2 * eps), rel=1e-6)
    np.testing.assert_allclose(out, (ahead[1] - behind[1]) / (2 * eps), atol=1e-6)


def test_a_query_without_order_keeps_its_scores_as_targets():
    data = RankingData.from_arrays(np.zeros((5, 1)), [1, 1, 0, 1, 2], group_sizes=[2, 3])
    s, out = np.array([3.0, 4.0, 0.0, 0.0, 0.0]), np.empty(5)
    Retarget().bind(data).targets(s, out)
    assert out == pytest.approx([3, 4, -1, 0, 1])


# --- convexity and scale -----------------------------------------------------------------------


def midpoint_violation(loss, y=(0.0, 0.0, 0.0, 1.0, 1.0, 2.0)):
    """The largest excess of the loss between two points over the mean of the loss at them.

    The points are random, equal but for the order inside grades, or a step along the direction of
    least curvature apart.
    """
    y, rng, worst = np.array(y), np.random.default_rng(7), 0.0
    bound, n = loss.bind(query(y)), len(y)

    def least_curved(s):
        hessian = np.empty((n, n))
        at(bound, s)
        for row, one in zip(hessian, np.eye(n), strict=True):
            bound.hess_vec(one, row)
        return np.linalg.eigh(hessian)[1][:, 0]

    for _ in range(100):
        a, b = rng.normal(size=(2, n)) * 2
        mixed = a[np.lexsort((rng.random(n), y))]  # y rises, so grades keep their places
        for end in (b, mixed, a + 0.1 * least_curved(a)):
            ends = (bound.value(a) + bound.value(end)) / 2
            worst = max(worst, (bound.value((a + end) / 2) - ends) / ends)
    return worst


@pytest.mark.parametrize(
    "loss",
    [
        Retarget(divergence="kl"),
        Retarget(divergence="kl", domain="cone", C_r=0.2),
        Retarget(margin="constant", within_grade=True),
        Retarget(margin="sqrt", within_grade=True),
    ],
    ids=name_of,
)
def test_what_is_not_declared_convex_is_not(loss):
    assert not loss.traits.convex
    assert midpoint_violation(loss) > 1e-4


def test_margins_at_grade_changes_alone_leave_the_square_loss_convex():
    for margin in ("grade", "constant", "sqrt", "power"):
        loss = Retarget(margin=margin)
        assert loss.traits.convex
        assert midpoint_violation(loss) < 1e-12


@pytest.mark.parametrize("margin", ["grade", "sqrt", "large"])
def test_scaling_all_margins_scales_the_solution_and_changes_no_ranking(margin):
    rng = np.random.default_rng(8)
    X, y = rng.normal(size=(60, 4)), rng.integers(0, 3, 60)
    data = RankingData.from_arrays(X, y, group_sizes=[15] * 4)

    def weights(size):
        bound, grad = Retarget(margin=margin, size=size).bind(data), np.empty(60)

        def objective(v):
            value = bound.grad(X @ v, grad)
            return (value + v @ v) / size**2, (X.T @ grad + 2 * v) / size**2

        options = {"gtol": 1e-12, "ftol": 1e-16, "maxiter": 1000}
        start = size * np.ones(4)
        return minimize(objective, start, jac=True, method="L-BFGS-B", options=options).x

    np.testing.assert_allclose(weights(10.0), 10.0 * weights(1.0), rtol=1e-5)


def test_printed_surrogate_of_kl_margins_is_in_order_but_not_the_nearest():
    y, s = np.array([0.0, 0.0, 1.0]), np.array([-3.0, 0.5, 0.0])
    exact, printed = (
        Retarget(divergence="kl", kl_margin=kind).bind(query(y)) for kind in ("ratio", "surrogate")
    )
    r = np.empty(3)
    printed.targets(s, r)
    assert r[2] - r[1] == pytest.approx(1.0)
    assert printed.value(s) > exact.value(s) + 1e-3
    assert exact.with_targets(r).value(s) == pytest.approx(printed.value(s))


# --- margins inside a grade, as printed --------------------------------------------------------


@pytest.mark.parametrize(
    "loss",
    [
        Retarget(margin="constant", size=0.3, within_grade=True),
        Retarget(margin="sqrt", within_grade=True, C_r=0.2),
        Retarget(divergence="kl", margin="power", power=0.7, within_grade=True),
        Retarget(
            divergence="kl", domain="cone", kl_margin="additive", margin="sqrt", within_grade=True
        ),
    ],
    ids=name_of,
)
def test_margins_inside_a_grade_are_those_of_the_slow_twin(loss):
    for y, s, w in random_queries(12, seed=9):
        for scores in (s, s.round(0)):
            value, grad = at(loss.bind(query(y, sample_weight=w)), scores)
            expected, gradients = retarget(loss, scores, y, w)
            assert value == pytest.approx(expected, rel=1e-9)
            np.testing.assert_allclose(grad, gradients, atol=1e-8 * max(1, np.abs(gradients).max()))


def test_margins_inside_a_grade_ask_for_a_gap_between_tied_documents():
    bound = Retarget(margin="constant", within_grade=True).bind(query([0.0, 0.0, 1.0]))
    out = np.empty(3)
    bound.targets(np.array([0.1, -0.1, 0.0]), out)
    assert out == pytest.approx([0, -1, 1])
    assert at(bound, [0.0, 0.0, 0.0])[1] == pytest.approx([0.5, 0.5, -1.0])


# --- numbers -----------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [SQUARE[0], KL[0]], ids=name_of)
def test_results_do_not_depend_on_what_was_computed_before(loss):
    rng = np.random.default_rng(10)
    data = RankingData.from_arrays(
        np.zeros((600, 1)),
        rng.integers(0, 3, 600),
        group_sizes=[400, 200],
        sample_weight=rng.choice([0.3, 1.0, 1.7], 600),
    )
    used, s = loss.bind(data), np.zeros(600)
    for step in (0.0, 3.0, 0.01, 0.1, 0.001):  # ties, a new order, and small steps from it
        s = (s + step * rng.normal(size=600)).round(2)
        value, grad = at(used, s)
        fresh, again = at(loss.bind(data), s)
        assert value == fresh
        np.testing.assert_array_equal(grad, again)


def test_additive_margins_stay_exact_for_scores_of_ten_thousand():
    loss = Retarget(divergence="kl", kl_margin="additive", size=0.05)
    bound = loss.bind(query([0.0, 1.0, 2.0]))
    out = np.empty(3)
    bound.targets(np.array([1e4, 0.0, -1e4]), out)
    r = np.exp(out - 1e4)
    assert r.sum() == pytest.approx(1.0)
    assert np.diff(r).min() >= 0.05 - 1e-12


# --- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        (
            {"divergence": "squared"},
            "must be square or kl, not 'squared'; did you mean square",
        ),
        ({"margin": "grades"}, "did you mean grade"),
        ({"kl_margin": "ratios"}, "did you mean ratio"),
        ({"domain": "simplx"}, "did you mean simplex"),
        ({"C_r": -1.0}, "C_r must be 0 or more, not -1.0"),
        ({"size": np.inf}, "size must be 0 or more and finite, not inf"),
        ({"floor": 0.0, "intercept": True}, "set intercept=False"),
        ({"divergence": "kl", "intercept": False}, "leave intercept out"),
        ({"divergence": "kl", "domain": "cone", "intercept": True}, "leave intercept out"),
        (
            {"divergence": "kl", "kl_margin": "additive"},
            r"query 0 needs targets that sum to 3 or more",
        ),
        ({"divergence": "kl", "floor": 0.3, "size": 0.5}, "make size or floor smaller"),
        ({"divergence": "kl", "domain": "cone"}, "falls to 0 as all targets and scores sink"),
        ({"divergence": "kl", "domain": "cone", "floor": 0.0}, "set C_r, C_w or the floor"),
        ({"divergence": "kl", "domain": "cone", "kl_margin": "additive", "size": 0.0}, "set C_r"),
        ({"divergence": "kl", "domain": "cone", "margin": "large", "floor": 0.1}, "set C_r above"),
        ({"divergence": "kl", "domain": "cone", "margin": "large", "C_w": 1.0}, "without bound"),
    ],
)
def test_what_cannot_be_is_reported(params, sentence):
    with pytest.raises(UsageError, match=sentence):
        Retarget(**params).bind(query([0.0, 1.0, 2.0]))


# --- retarget convexity ----------------------------------------------------------------------
# Lemma 2 of the MEMR paper, by numbers: when the marginal objective is strongly convex.
#
# With phi s-strongly convex and its gradient L-Lipschitz, the lemma has G(w) C-strongly convex (C
# the penalty l2) if
#
#     sum_i sigma_i (1/L + C_wi - 1/(s (1 + C_ri))) > 0,
#
# sigma_i being the largest singular value of the features of query i. Square has s = L = 1; KL on
# the simplex s = 1 and 1/L = 0. With one C_w and one C_r for all queries the bracket decides,
# whatever the sigma_i. With several it must hold for each query, not for their sum.


DATA, L2 = small_data(queries=6, documents=7, features=4), 0.3
INVERSE_L = {"square": 1.0, "kl": 0.0}


def bracket(divergence, C_r, C_w):
    return INVERSE_L[divergence] + C_w - 1 / (1 + C_r)


def problem_of(data=DATA, l2=L2, **parameters):
    made, scale = loss("retarget", **parameters), np.ones(4)
    return LinearObjective(made.bind(data), data, made.traits, scale=scale, l2=l2, total_weight=1.0)


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
