"""The worst order by classes and by the first relevant document, against all assignments."""

from itertools import permutations

import numpy as np
import pytest
from cases import each
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from rankwright.losses.position_orders import (
    by_classes,
    by_first_relevant,
    mean_over_equals,
    sort_ranks_of_ties,
    sorted_documents,
)


@settings(max_examples=80, deadline=None)
@given(
    n=st.integers(1, 40),
    kinds=st.integers(1, 5),
    cut=st.integers(1, 12),
    tied=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_classes_reach_the_value_of_the_assignment(n, kinds, cut, tied, seed):
    rng = np.random.default_rng(seed)
    v = np.sort(rng.normal(size=n).round(0 if tied else 9))[::-1].copy()
    _, kind = np.unique(rng.integers(0, kinds, n), return_inverse=True)
    b = np.sort(rng.random(kinds))[kind]
    a, c = np.append(rng.random(min(cut, n)), np.zeros(max(n - cut, 0))), 1 / np.arange(2.0, n + 2)
    a = np.sort(a)[::-1].copy()
    position = by_classes(v, b, kind, cut, a, c)
    assert sorted(position.tolist()) == list(range(n))
    worth = np.outer(v, c) - np.outer(b, a)
    best = worth[linear_sum_assignment(worth, maximize=True)].sum()
    assert worth[np.arange(n), position].sum() == pytest.approx(best, abs=1e-9)
    order = sorted_documents(v, kind)
    v, b, position = v[order], b[order], position[order]
    sort_ranks_of_ties(v, position)  # an order as bad, the lowest gain first
    worth = np.outer(v, c) - np.outer(b, a)
    assert worth[np.arange(n), position].sum() == pytest.approx(best, abs=1e-9)
    assert (np.diff(position)[np.diff(v) == 0] > 0).all()


@each("cut", [1, 3, 10])
@each("seed", range(8))
def test_the_first_relevant_document_is_put_where_it_hurts_most(seed, cut):
    rng = np.random.default_rng(seed)
    n = 6
    v, c = np.sort(rng.normal(size=n))[::-1].copy(), 1 / np.arange(2.0, n + 2)
    relevant = rng.random(n) < 0.5
    relevant[0] = True

    def value(order):
        first = 1 + min(rank for rank, i in enumerate(order) if relevant[i])
        return sum(c[j] * v[i] for j, i in enumerate(order)) - (1 / first if first <= cut else 0)

    position = by_first_relevant(v, relevant.astype(float), cut, 1.0, c)
    best = max(map(value, permutations(range(n))))
    assert value(np.argsort(position)) == pytest.approx(best, abs=1e-12)


def test_documents_of_equal_score_are_sorted_by_gain_and_share_the_mean_of_their_ranks():
    s, kind = np.array([1.0, 0.0, 1.0, 1.0]), np.array([1, 0, 0, 1])
    order = sorted_documents(s, kind)
    assert order.tolist() == [2, 0, 3, 1]
    out = np.empty(4)
    mean_over_equals(order, s, kind, np.array([8.0, 4.0, 2.0, 1.0]), out)
    assert out.tolist() == [3.0, 1.0, 8.0, 3.0]
