"""IntervalRank's loss: values by hand, derivatives, weights, and what must not matter."""

import math

import numpy as np
import pytest
from reference import interval as reference

from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.losses.interval import Interval

KINDS = [
    {},
    {"lambda2": 0.0},
    {"lambda1": math.inf},
    {"calibration": 0.3, "targets": "linear"},
    {"scale_by_size": True, "lambda1": 0.3},
    {"qp_solver": "barrier"},
    {"qp_solver": "hard"},
    {"penalty": "huber", "knee": 0.4},
    {"penalty": "pseudo_huber", "knee": 0.4},
    {"penalty": "huber", "qp_solver": "hard"},
]
all_kinds = pytest.mark.parametrize("kind", KINDS, ids=str)


def data_of(*queries, **arrays):
    y = np.concatenate([np.asarray(query, float) for query in queries])
    sizes = [len(query) for query in queries]
    return RankingData.from_arrays(np.zeros((len(y), 1)), y, group_sizes=sizes, **arrays)


def some_data(rng, sizes=(12, 7, 9), grades=4, **arrays):
    return data_of(*(np.r_[0, 1, rng.integers(0, grades, n - 2)] for n in sizes), **arrays)


def at(loss, data, s, **options):
    """Value and gradient, the gradient's buffer full of rubbish before."""
    grad = np.full(len(s), np.nan)
    return loss.bind(data, **options).grad(np.asarray(s, float), grad), grad


def test_two_documents_in_the_wrong_order():
    # each moves by p = lambda1 (1 - (-1 + 2p)), so p = 2/3, and the slack is 2/3 as well
    value, grad = at(Interval(targets="linear"), data_of([0, 1]), [1.0, 0.0])
    assert value == pytest.approx(3 * (2 / 3) ** 2 / 2)
    assert grad == pytest.approx([2 / 3, -2 / 3])


def test_grades_that_are_missing_leave_the_margin_of_their_neighbours():
    # grades 0 and 3 of scores 0 and 0: p = lambda1 (7 - 2p) with gain, (3 - 2p) with linear
    for targets, margin in (("gain", 7.0), ("linear", 3.0), ((0.0, 1.0, 2.0, 5.0), 5.0)):
        _, grad = at(Interval(targets=targets), data_of([0, 3]), [0.0, 0.0])
        assert grad == pytest.approx([margin / 3, -margin / 3])


def test_corrected_scores_are_optimal():
    rng = np.random.default_rng(0)
    data = some_data(rng)
    s = rng.normal(size=data.n_documents)
    bound = Interval(targets="linear").bind(data)
    z, grad = np.empty(len(s)), np.empty(len(s))
    bound.corrected_scores(s, z)
    bound.grad(s, grad)
    np.testing.assert_allclose(z, s - grad, atol=1e-14)
    for rows in (slice(*data.indptr[q : q + 2]) for q in range(3)):
        one = np.ones(len(z[rows]))
        assert reference.kkt_residual(s[rows], data.y[rows], one, 1.0, 1.0, z[rows]) < 1e-12


def test_corrected_scores_of_a_query_without_order_are_its_scores():
    data = data_of([0, 1], [2, 2], [0, 0, 1], sample_weight=[1, 1, 1, 1, 1, 1, 0])
    s = np.array([1.0, 0.0, 5.0, 3.0, 2.0, 8.0, 1.0])
    z = np.empty(7)
    Interval().bind(data).corrected_scores(s, z)
    assert z[2:].tolist() == s[2:].tolist()
    assert at(Interval(calibration=1.0), data, s)[1][2:].tolist() == [0.0] * 5


@all_kinds
def test_gradient_by_finite_differences(kind):
    rng = np.random.default_rng(1)
    weights = {"sample_weight": rng.uniform(0.5, 2.0, 28), "query_weight": [1.0, 0.5, 3.0]}
    data = some_data(rng, **weights)
    s = rng.normal(size=28)
    _, grad = at(Interval(**kind), data, s)
    bound, step = Interval(**kind).bind(data), 1e-5
    derivatives = [
        (bound.value(s + e) - bound.value(s - e)) / (2 * step) for e in step * np.eye(28)
    ]
    np.testing.assert_allclose(grad, derivatives, atol=1e-6 * np.abs(grad).max())


@all_kinds
def test_curvature_bounds_the_loss_and_the_tangent_supports_it(kind):
    rng = np.random.default_rng(2)
    data = some_data(rng, sample_weight=rng.uniform(0.5, 2.0, 28))
    bound = Interval(**kind).bind(data)
    assert Interval(**kind).traits.convex
    for size in (0.01, 1.0, 10.0):
        s, move = rng.normal(size=28), size * rng.normal(size=28)
        grad, curv = np.empty(28), np.empty(28)
        value = bound.grad_curv(s, grad, curv)
        rise = bound.value(s + move) - value - grad @ move
        assert -1e-9 * abs(value) <= rise <= 0.5 * curv @ move**2 * (1 + 1e-9)


@all_kinds
def test_a_weight_is_a_repetition(kind):
    rng = np.random.default_rng(3)
    data = some_data(rng)
    s = rng.normal(size=28)
    copies = rng.integers(0, 4, 28)
    copies[data.indptr[:-1]] = copies[data.indptr[:-1] + 1] = 1
    weighted, grad = at(Interval(**kind), data_of(*split(data), sample_weight=copies), s)
    sizes = np.add.reduceat(copies, data.indptr[:-1])
    again = RankingData.from_arrays(
        np.zeros((sizes.sum(), 1)), np.repeat(data.y, copies), group_sizes=sizes
    )
    repeated, each = at(Interval(**kind), again, np.repeat(s, copies))
    assert weighted == pytest.approx(repeated, rel=1e-9)
    np.testing.assert_allclose(np.repeat(grad, copies), np.repeat(copies, copies) * each, atol=1e-9)


def split(data):
    return [data.y[data.indptr[q] : data.indptr[q + 1]] for q in range(data.n_queries)]


@all_kinds
def test_a_common_offset_matters_only_under_calibration(kind):
    rng = np.random.default_rng(4)
    data = some_data(rng)
    s = rng.normal(size=28)
    here, there = at(Interval(**kind), data, s), at(Interval(**kind), data, s + 1e4)
    if Interval(**kind).traits.shift_invariant:
        assert there[0] == pytest.approx(here[0], rel=1e-8)
        np.testing.assert_allclose(there[1], here[1], atol=1e-8)
    else:
        assert there[0] > 2 * here[0]


def test_scaling_by_size_keeps_the_loss_per_document():
    rng = np.random.default_rng(5)
    y, s = np.r_[0, 1, rng.integers(0, 3, 18)], rng.normal(size=20)
    once, many = data_of(y), data_of(np.tile(y, 50))
    for scaled, same in ((True, True), (False, False)):
        loss = Interval(scale_by_size=scaled)
        ratio = at(loss, many, np.tile(s, 50))[0] / (50 * at(loss, once, s)[0])
        assert (ratio == pytest.approx(1.0)) == same


def test_scaling_by_size_is_a_multiple_of_both_lambdas():
    data, s = data_of([0, 1, 2, 0, 1]), np.array([0.3, -1.0, 0.2, 0.9, 0.1])
    scaled = at(Interval(0.2, 0.3, scale_by_size=True), data, s)
    assert scaled[0] == at(Interval(1.0, 1.5), data, s)[0]


@pytest.mark.parametrize("solver", ["newton", "barrier", "hard"])
def test_bits_do_not_depend_on_threads(solver):
    rng = np.random.default_rng(6)
    data = some_data(rng, sizes=[60] * 900)
    s = rng.normal(size=data.n_documents)
    loss = Interval(qp_solver=solver, scale_by_size=True)
    one, *others = (at(loss, data, s, n_jobs=threads) for threads in (1, 2, 5))
    for other in others:
        assert other[0] == one[0]
        assert (other[1] == one[1]).all()


def test_bits_of_the_gradient_do_not_depend_on_the_order_of_rows():
    rng = np.random.default_rng(7)
    data = some_data(rng, sizes=[80] * 50, sample_weight=rng.lognormal(size=4000))
    s = rng.normal(size=4000)
    order = np.concatenate([80 * q + rng.permutation(80) for q in range(50)])
    moved = RankingData.from_arrays(
        data.X, data.y[order], group_sizes=data.sizes, sample_weight=data.sample_weight[order]
    )
    loss = Interval(0.5, 0.2, scale_by_size=True)
    assert (at(loss, data, s)[1][order] == at(loss, moved, s[order])[1]).all()


def test_bits_do_not_depend_on_what_was_asked_before():
    rng = np.random.default_rng(8)
    data = some_data(rng, sizes=[50] * 20)
    bound, s = Interval(10.0, 5.0).bind(data), rng.normal(size=1000)
    grad = np.empty(1000)
    for _ in range(20):
        s = s + rng.normal(size=1000)
        value = bound.grad(s, grad)
        fresh = at(Interval(10.0, 5.0), data, s)
        assert value == fresh[0]
        assert (grad == fresh[1]).all()


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"lambda1": -1.0}, "lambda1 must be 0 or more"),
        ({"lambda2": math.nan}, "lambda2 must be 0 or more"),
        ({"qp_solver": "newtn"}, "did you mean newton"),
        ({"penalty": "hubr"}, "did you mean huber"),
        ({"knee": 0.0}, "knee must be above 0"),
        ({"qp_solver": "barrier", "lambda2": 0.0}, "qp_solver='newton' takes any"),
    ],
)
def test_parameters_out_of_range_are_refused(params, words):
    with pytest.raises(UsageError, match=words):
        Interval(**params).bind(data_of([0, 1]))
