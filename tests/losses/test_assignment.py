"""The assignment against SciPy's, and with groups against every choice of documents."""

from itertools import permutations

import numpy as np
import pytest
from cases import each
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from rankwright.losses.assignment import by_assignment
from rankwright.losses.position_orders import by_groups, by_seats, metric_costs, sorted_prices


@settings(max_examples=60, deadline=None)
@given(
    rows=st.integers(1, 12),
    more=st.integers(0, 6),
    digits=st.integers(0, 6),
    seed=st.integers(0, 2**32 - 1),
)
def test_the_cost_is_scipys_and_no_column_is_taken_twice(rows, more, digits, seed):
    cost = np.random.default_rng(seed).normal(size=(rows, rows + more)).round(digits)
    column = by_assignment(cost, np.zeros(rows + more))
    assert len(set(column.tolist())) == rows
    best = cost[linear_sum_assignment(cost)].sum()
    assert cost[np.arange(rows), column].sum() == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_any_prices_will_do_and_those_of_the_answer_prove_it(seed):
    rng = np.random.default_rng(seed)
    cost, prices = rng.normal(size=(30, 30)), rng.normal(size=30)
    column = by_assignment(cost, prices)
    rows = (cost - prices).min(axis=1)  # the dual: u_i + v_j <= cost_ij, equal where assigned
    assert cost[np.arange(30), column] == pytest.approx(rows + prices[column], abs=1e-12)


def test_sorted_documents_are_the_answer_where_only_scores_count():
    rng = np.random.default_rng(0)
    v, c = np.sort(rng.normal(size=20))[::-1].copy(), 1 / np.arange(2.0, 22.0)
    cost, prices = metric_costs(v, np.zeros(20), np.zeros(20), c, 20), sorted_prices(v, c)
    rows = (cost - prices).min(axis=1)
    np.testing.assert_allclose(rows + prices, -c * v, atol=1e-15)


@each("limit", [1, 2])
@each("seed", range(15))
def test_groups_are_held_to_their_limit_at_the_least_cost(limit, seed):
    rng = np.random.default_rng(seed)
    n, n_groups = 7, 3
    group = np.append(np.arange(n_groups), rng.integers(0, n_groups, n - n_groups))
    top = int(min(4, np.minimum(np.bincount(group, minlength=n_groups), limit).sum()))
    v, b = np.sort(rng.normal(size=n))[::-1].copy(), rng.choice([0.0, 0.2, 1.0], n)
    a, c = 1 / np.log2(np.arange(n) + 2.0), 1 / np.arange(2.0, n + 2.0)
    if limit == 1:
        position = by_groups(v, b, group, top, a, c)
    else:
        position = by_seats(v, b, group, limit, top, a, c)
    taken = np.argsort(position)[n - top :]
    assert sorted(position[taken].tolist()) == list(range(top))
    assert np.bincount(group[taken]).max() <= limit

    def cost(order):
        return sum(a[j] * b[i] - c[j] * v[i] for j, i in enumerate(order))

    allowed = [
        o for o in permutations(range(n), int(top)) if np.bincount(group[list(o)]).max() <= limit
    ]
    assert cost(taken) == pytest.approx(min(map(cost, allowed)), abs=1e-12)
