"""The worst order by classes and by the first relevant document, against all assignments."""

from itertools import permutations
from types import SimpleNamespace

import numpy as np
import pytest
from cases import each
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from rankwright.losses.position_orders import (
    ASSIGN,
    CLASSES,
    by_classes,
    by_first_relevant,
    n_states,
    share,
    size_of_workspace,
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
    s = rng.normal(size=n).round(0 if tied else 9)
    kind, gain = rng.integers(0, kinds, n), np.sort(rng.random(kinds))
    a, c = np.append(rng.random(min(cut, n)), np.zeros(max(n - cut, 0))), 1 / np.arange(2.0, n + 2)
    states, _ = n_states(np.bincount(kind, minlength=kinds), min(cut, n))
    worth, choice = np.empty((2, states)), np.empty((min(cut, n) + 1, states), np.int8)
    position = np.empty(n, np.int64)
    order = np.argsort(-s, kind="stable")
    by_classes(order, s, kind, gain, cut, a, c, worth, choice, position)
    assert sorted(position.tolist()) == list(range(n))
    value = np.outer(s, c) - np.outer(gain[kind], a)
    best = value[linear_sum_assignment(value, maximize=True)].sum()
    assert value[np.arange(n), position].sum() == pytest.approx(best, abs=1e-9)


@each("cut", [1, 3, 10])
@each("seed", range(8))
def test_the_first_relevant_document_is_put_where_it_hurts_most(seed, cut):
    rng = np.random.default_rng(seed)
    n = 6
    s, c, relevant = rng.normal(size=n), 1 / np.arange(2.0, n + 2), rng.random(n) < 0.5
    relevant[0] = True

    def value(order):
        first = 1 + min(rank for rank, i in enumerate(order) if relevant[i])
        return sum(c[j] * s[i] for j, i in enumerate(order)) - (1 / first if first <= cut else 0)

    position = np.empty(n, np.int64)
    by_first_relevant(np.argsort(-s), s, relevant, cut, 1.0, c, position)
    best = max(map(value, permutations(range(n))))
    assert value(np.argsort(position)) == pytest.approx(best, abs=1e-12)


def test_documents_that_could_trade_places_share_what_their_ranks_are_worth():
    s, kind = np.array([1.0, 1.0, 1.0, 0.0]), np.array([0, 1, 1, 0])
    a, c = np.array([1.0, 1.0, 0.5, 0.0]), np.array([8.0, 4.0, 2.0, 1.0])
    out = np.empty(4)
    share(np.arange(4), s, kind, a, c, np.array([0, 1, 2, 3]), out)
    # Ranks 1 and 2 are alike, so document 0 has (8 + 4) / 2; the two of kind 1 have the rest.
    assert out.tolist() == [6.0, 4.0, 4.0, 1.0]


def test_the_workspace_is_for_the_largest_query_of_classes_alone():
    kind = np.array([0, 0, 1, 0, 1, 2, 0, 1, 2, 3])
    method = np.array([CLASSES, CLASSES, ASSIGN])
    lists = SimpleNamespace(
        method=method, kind=kind, begin=np.array([0, 3, 6, 10]), cut=np.array([9, 2, 9])
    )
    # At each cut a state says how many documents of each class stand in the first ranks.
    larger = max(n_states(np.array([2, 1]), 3)[0], n_states(np.array([1, 1, 1]), 2)[0])
    assert size_of_workspace(lists) == (larger, 3)
    lists.method = np.full(3, ASSIGN)
    assert size_of_workspace(lists) == (1, 0)
