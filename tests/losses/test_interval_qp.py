"""The inner problem of IntervalRank against cvxpy, its optimality conditions, and examples."""

import math

import numpy as np
import pytest
from cases import each
from reference import interval as reference

from rankwright.losses.interval_qp import (
    DOCUMENT_ROWS,
    END_ROWS,
    HUBER,
    PSEUDO_HUBER,
    SQUARED,
    Terms,
    V,
    W,
    X,
    penalty,
    solve,
)

SHAPES = {"squared": SQUARED, "huber": HUBER, "pseudo_huber": PSEUDO_HUBER}
INF = math.inf


class Query:
    """One query laid out as the kernels want it; y are the targets of its documents' grades."""

    def __init__(self, s, y, w=None):
        self.s, self.y = np.asarray(s, float), np.asarray(y, float)
        self.w = np.ones(len(self.y)) if w is None else np.asarray(w, float)
        v = self.s - self.y
        self.place = np.lexsort((self.w, v, self.y))
        _, first = np.unique(self.y[self.place], return_index=True)
        self.start = np.append(first, len(self.y))
        self.docs = np.full((DOCUMENT_ROWS, len(v)), np.nan)
        self.docs[V] = (v - (v.min() + v.max()) / 2)[self.place]
        self.docs[W] = self.w[self.place]

    def solve(self, lambda1, lambda2, *, barrier=False, penalty_="squared", knee=1.0):
        """Return the value and the corrected scores."""
        n = 2 * len(self.start) - 2
        ends, place = np.full((END_ROWS, n), np.nan), np.empty(len(self.s), np.int64)
        kind, mu = SHAPES[penalty_], 1.0 if barrier else INF
        terms = Terms(float(lambda1), float(lambda2), mu, kind, knee)
        rest = solve(0, n, self.start, self.docs, place, ends, terms)
        x = ends[X].reshape(-1, 2).repeat(np.diff(self.start), axis=0)
        z = np.empty(len(self.s))
        z[self.place] = self.s[self.place] - (self.docs[V] - np.clip(self.docs[V], *x.T))
        rho = [penalty(abs(d), kind, knee)[0] for d in self.s - z]
        return rest + self.w @ rho, z


def draw(rng, *, most=25):
    """Scores, targets, weights and lambdas of a small query with two to six grades."""
    n = int(rng.integers(2, most))
    y = np.cumsum(rng.uniform(0.2, 2.0, 6))[rng.integers(0, rng.integers(2, 7), n)]
    y[0], y[1] = -1.0, 0.5
    s = rng.normal(size=n) * rng.choice([0.3, 1.0, 5.0, 1000.0]) + rng.choice([0.0, 1e4])
    if rng.random() < 0.3:
        s = np.round(s)
    w = np.ones(n) if rng.random() < 0.5 else rng.choice([0.3, 1.0, 2.0, 3.5], n)
    return s, y, w, rng.choice([0.0, 0.1, 1.0, n]), rng.choice([0.0, 0.1, 1.0, n])


def unit_of(s, y):
    return max(np.ptp(s), np.ptp(y))


def assert_optimum(found, s, y, w, lambda1, lambda2, **options):
    oracle, _ = reference.optimum(s, y, w, lambda1, lambda2, **options)
    assert found == pytest.approx(oracle, rel=1e-8, abs=1e-9 * unit_of(s, y) ** 2)


def relative_kkt(s, y, w, lambda1, lambda2, z):
    finite = sum(strength for strength in (lambda1, lambda2) if strength < INF)
    size = (w.sum() + finite) * max(unit_of(s, y), 1e-3 * np.abs(s).max())
    return reference.kkt_residual(s, y, w, lambda1, lambda2, z) / size


# --- the exact solver ------------------------------------------------------------------------


def test_two_documents_in_the_wrong_order_meet_by_hand():
    # z0 = 1 - p, z1 = p with the force p = lambda1 (1 - z1 + z0) = 2 - 2p, so p = 2/3
    value, z = Query([1.0, 0.0], [0.0, 1.0]).solve(1.0, 1.0)
    assert z == pytest.approx([1 / 3, 2 / 3], abs=1e-15)
    assert value == pytest.approx(3 * (2 / 3) ** 2 / 2, abs=1e-15)


def test_a_wide_grade_is_drawn_together_by_hand():
    # grade 0 has 0 and 3, far below grade 1: each end moves in by p = lambda2 (3 - 2p), p = 1
    value, z = Query([0.0, 3.0, 99.0], [0.0, 0.0, 1.0]).solve(1.0, 1.0)
    assert z == pytest.approx([1.0, 2.0, 99.0], abs=1e-14)
    assert value == pytest.approx(1 / 2 + 1 / 2 + 1 / 2)


def test_satisfied_scores_cost_nothing_and_stay():
    s = np.array([0.0, 1.5, 4.0])
    value, z = Query(s, [0.0, 1.0, 3.0]).solve(5.0, 0.0)
    assert value == 0.0
    assert z.tolist() == s.tolist()


@each("seed", range(20))
def test_objective_and_conditions_of_the_full_problem(seed):
    rng = np.random.default_rng(seed)
    for _ in range(10):
        s, y, w, lambda1, lambda2 = draw(rng)
        value, z = Query(s, y, w).solve(lambda1, lambda2)
        assert_optimum(value, s, y, w, lambda1, lambda2)
        assert relative_kkt(s, y, w, lambda1, lambda2, z) < 1e-12


@pytest.mark.parametrize("grades", [2, 5, 40, 400])
@pytest.mark.parametrize("documents", [400, 20_000])
def test_conditions_on_long_lists_and_many_grades(grades, documents):
    rng = np.random.default_rng(grades)
    for strength in (0.01, 1.0, documents):
        y = rng.integers(0, grades, documents).astype(float)
        s = 0.5 * y + rng.normal(size=documents) * grades / 4
        _, z = Query(s, y).solve(strength, strength)
        assert relative_kkt(s, y, np.ones(documents), strength, strength, z) < 1e-12


@pytest.mark.parametrize("lambda2", [0.0, 1.0, INF])
@pytest.mark.parametrize("lambda1", [1.0, INF])
def test_infinite_lambdas_are_limits(lambda1, lambda2):
    rng = np.random.default_rng(0)
    for _ in range(5):
        s, y, w, _, _ = draw(rng)
        value, z = Query(s, y, w).solve(lambda1, lambda2)
        assert_optimum(value, s, y, w, lambda1, lambda2)
        near, _ = Query(s, y, w).solve(min(lambda1, 1e9), min(lambda2, 1e9))
        assert near == pytest.approx(value, rel=1e-5, abs=1e-12)
        if lambda2 == INF:
            tolerance = 1e-12 * max(np.abs(z).max(), 1.0)
            assert all(np.ptp(z[y == target]) <= tolerance for target in y)


@pytest.mark.parametrize("penalty", ["huber", "pseudo_huber"])
@pytest.mark.parametrize("seed", range(4))
def test_other_penalties(penalty, seed):
    rng = np.random.default_rng(seed)
    for _ in range(8):
        s, y, w, lambda1, lambda2 = draw(rng)
        s = (s - s.mean()) / max(1.0, np.ptp(s) / 5)
        for knee in (0.05, 1.0):
            options = {"penalty": penalty, "knee": knee}
            value, _ = Query(s, y, w).solve(lambda1, lambda2, penalty_=penalty, knee=knee)
            oracle, _ = reference.optimum(s, y, w, lambda1, lambda2, **options)
            # Clarabel's cones are less exact than its quadratic programs
            rel = 1e-8 if penalty == "huber" else 2e-7
            assert value == pytest.approx(oracle, rel=rel, abs=rel)


def test_a_huge_knee_is_the_square():
    s, y, w, _, _ = draw(np.random.default_rng(3))
    plain, _ = Query(s, y, w).solve(1.0, 1.0)
    huber, _ = Query(s, y, w).solve(1.0, 1.0, penalty_="huber", knee=1e6)
    assert huber == pytest.approx(plain, rel=1e-12)


def test_the_order_of_documents_does_not_reach_the_bits():
    rng = np.random.default_rng(1)
    for _ in range(50):
        y, s = rng.integers(0, 4, 500).astype(float), rng.normal(size=500)
        w = rng.lognormal(size=500)
        order = rng.permutation(500)
        here, there = Query(s, y, w), Query(s[order], y[order], w[order])
        assert here.solve(50.0, 20.0)[1][order].tolist() == there.solve(50.0, 20.0)[1].tolist()


@pytest.mark.parametrize("offset", [1e4, -1e6])
def test_a_common_offset_moves_the_solution_along(offset):
    rng = np.random.default_rng(2)
    y = rng.integers(0, 3, 40).astype(float)
    s = rng.normal(size=40)
    change = s - Query(s, y).solve(2.0, 3.0)[1]
    moved = s + offset - Query(s + offset, y).solve(2.0, 3.0)[1]
    np.testing.assert_allclose(moved, change, atol=1e-15 * abs(offset) * 10)


def test_turning_scores_and_grades_round_turns_the_solution_round():
    s, y, w, _, _ = draw(np.random.default_rng(5))
    z = Query(s, y, w).solve(2.0, 0.5)[1]
    np.testing.assert_allclose(-Query(-s, -y, w).solve(2.0, 0.5)[1], z, rtol=1e-12)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_scores_that_are_no_numbers_end_in_no_number(bad):
    with np.errstate(invalid="ignore"):
        value, _ = Query([0.0, bad, 1.0, 2.0], [0.0, 0.0, 1.0, 2.0]).solve(1.0, 1.0)
    assert not np.isfinite(value)


# --- hard margins ----------------------------------------------------------------------------


def test_hard_margins_by_hand():
    # 3, 0 must end 1 apart: 2 and 1 would be in the wrong order, so they meet at 1 and 2
    value, z = Query([3.0, 0.0], [0.0, 1.0]).solve(INF, 0.0)
    assert z == pytest.approx([1.0, 2.0])
    assert value == pytest.approx(4.0)


@pytest.mark.parametrize("seed", range(5))
def test_hard_margins_without_widths(seed):
    rng = np.random.default_rng(seed)
    for _ in range(5):
        s, y, w, _, _ = draw(rng)
        value, z = Query(s, y, w).solve(INF, 0.0)
        assert_optimum(value, s, y, w, INF, 0.0)
        near, other = Query(s, y, w).solve(1e9, 0.0)
        assert near == pytest.approx(value, rel=1e-5, abs=1e-12)
        np.testing.assert_allclose(other, z, atol=1e-6 * unit_of(s, y))


# --- the barrier -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_the_barrier_problem_is_solved(seed):
    rng = np.random.default_rng(seed)
    for _ in range(5):
        s, y, w, lambda1, lambda2 = draw(rng)
        s = (s - s.mean()) / max(1.0, np.ptp(s) / 5)
        lambda1, lambda2 = max(lambda1, 0.1), max(lambda2, 0.1)
        value, _ = Query(s, y, w).solve(lambda1, lambda2, barrier=True)
        oracle = reference.barrier_optimum(s, y, w, lambda1, lambda2, mu=64.0)
        assert value == pytest.approx(oracle, rel=1e-7, abs=1e-7)


def test_the_barrier_takes_equal_scores():
    value, z = Query(np.zeros(4), [0.0, 0.0, 1.0, 1.0]).solve(1.0, 1.0, barrier=True)
    assert np.isfinite(value)
    assert z[0] < 0 < z[2]


def test_the_barrier_widens_margins_that_are_met():
    s, y = np.array([0.0, 1.0, 3.0]), np.array([0.0, 1.0, 3.0])
    exact, barrier = (Query(s, y).solve(3.0, 3.0, barrier=on)[1] for on in (False, True))
    assert exact.tolist() == s.tolist()
    assert (np.diff(barrier) > np.diff(s)).all()
