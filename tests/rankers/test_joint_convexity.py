"""The public test of joint convexity against the joint Hessian of an objective written out."""

import itertools
import math

import numpy as np
import pytest
from scipy import sparse

import rankwright as rw
from rankwright.data.ranking_data import RankingData
from rankwright.errors import IncompatibleError, UsageError

RNG = np.random.default_rng(1)
X = RNG.normal(size=(12, 2)) * [1.0, 5.0] + [0.0, 3.0]
Y = np.array([0, 1, 2, 1, 0, 1, 0, 2, 1, 0, 0, 1.0])
SIZES = [3, 4, 5]
QUERY_WEIGHT = np.array([1.0, 2.0, 0.5])
DATA = RankingData.from_arrays(X, Y, group_sizes=SIZES, query_weight=QUERY_WEIGHT)


def joint_objective(r, v, l2, C_r, exponent, q):
    """F of (8) over the simplex, features of unit deviation; r and v in one vector."""
    scaled = X / X.std(axis=0)
    total, begin = l2 / 2 * v @ v, 0
    for size, weight in zip(SIZES, QUERY_WEIGHT, strict=True):
        rows = slice(begin, begin + size)
        s = scaled[rows] @ v
        p, given = np.exp(s - s.max()), np.exp(q[rows])
        p, given = p / p.sum(), given / given.sum()
        loss = (r[rows] * np.log(r[rows] / p)).sum() + C_r * (
            r[rows] * np.log(r[rows] / given)
        ).sum()
        total += weight / QUERY_WEIGHT.sum() * size**-exponent * loss
        begin += size
    return total


def hessian(function, x, eps=1e-4):
    steps = eps * np.eye(len(x))
    return np.array(
        [
            [
                function(x + a + b)
                - function(x + a - b)
                - function(x - a + b)
                + function(x - a - b)
                for b in steps
            ]
            for a in steps
        ]
    ) / (4 * eps**2)


def least_curvature(l2, C_r, exponent):
    """Over random targets on the simplex, most of the mass on one document, and weights."""
    rng = np.random.default_rng(0)
    along = np.zeros((14, 11))  # directions that keep the sum of each query's targets, and v
    column = begin = 0
    for size in SIZES:
        along[begin : begin + size, column : column + size - 1] = np.linalg.svd(np.ones((1, size)))[
            2
        ][1:].T
        begin, column = begin + size, column + size - 1
    along[12:, 9:] = np.eye(2)

    def curvature():
        r = np.concatenate([0.98 * rng.dirichlet(np.full(n, 0.2)) + 0.02 / n for n in SIZES])
        x = np.concatenate([r, 3 * rng.normal(size=2)])
        at = hessian(lambda x: joint_objective(x[:12], x[12:], l2, C_r, exponent, Y), x)
        return np.linalg.eigvalsh(along.T @ at @ along)[0]

    return min(curvature() for _ in range(40))


@pytest.mark.parametrize(("C_r", "exponent"), [(0.0, 0.0), (1.5, 0.5)])
def test_the_l2_that_is_needed_makes_the_joint_objective_convex(C_r, exponent):
    memr = rw.MEMR(divergence="kl", C_r=C_r, query_weight_exponent=exponent, l2=0.01).fit(DATA)
    report = rw.joint_convexity(memr, DATA)
    scaled, begin = X / X.std(axis=0), np.cumsum([0, *SIZES])
    share = QUERY_WEIGHT / QUERY_WEIGHT.sum() / np.array(SIZES) ** exponent
    top = [np.linalg.norm(scaled[a:b], 2) ** 2 for a, b in itertools.pairwise(begin)]
    assert report.needed == pytest.approx(share @ top / (1 + C_r))
    assert (report.l2, report.holds) == (0.01, False)
    assert least_curvature(report.needed, C_r, exponent) >= -1e-4
    assert least_curvature(0.01, C_r, exponent) < -1e-3


def test_square_needs_nothing_and_other_sets_of_targets_have_no_guarantee():
    assert rw.joint_convexity(rw.MEMR(), DATA).needed == 0.0
    for parameters in (
        {"divergence": "kl", "domain": "cone"},
        {"margin": "sqrt", "within_grade": True},
        {"divergence": "kl", "kl_margin": "surrogate"},
    ):
        made = rw.Ranker(loss=rw.losses.Retarget(**parameters))
        assert math.isinf(rw.joint_convexity(made, DATA).needed)
    assert math.isinf(rw.joint_convexity(rw.MEMR(divergence="kl", domain="cone"), DATA).needed)


def test_the_l2_that_a_fit_chose_is_the_one_that_counts():
    mr = rw.MR(divergence="kl", l2="auto")
    with pytest.raises(UsageError, match="fit the ranker first, or give a number"):
        rw.joint_convexity(mr, DATA)
    mr.fit(DATA, eval_set=DATA.select(slice(1)))
    chosen = 10.0 ** (4 - mr.best_iteration_)
    assert rw.joint_convexity(mr, DATA).l2 == pytest.approx(chosen)


def test_arrays_sparse_features_and_a_composed_ranker_will_do():
    memr, qid = rw.MEMR(divergence="kl"), np.repeat([0, 1, 2], SIZES)
    dense = rw.joint_convexity(memr, X, Y, qid=qid)
    assert rw.joint_convexity(memr, sparse.csr_array(X), Y, qid=qid).needed == pytest.approx(
        dense.needed
    )
    composed = rw.Ranker(loss=rw.losses.Retarget(divergence="kl"))
    assert rw.joint_convexity(composed, X, Y, qid=qid).needed == pytest.approx(dense.needed)


def test_other_rankers_are_refused():
    with pytest.raises(UsageError, match="this is listmle on model 'linear'"):
        rw.joint_convexity(rw.ListMLE(), DATA)
    with pytest.raises(UsageError, match="this is memr on model 'trees'"):
        rw.joint_convexity(rw.MEMR(model="trees"), DATA)
    with pytest.raises(IncompatibleError, match="has no loss"):
        rw.joint_convexity(rw.AdaRank(), DATA)
