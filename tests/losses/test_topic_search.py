"""Branch and bound against every order, and the integer programmes against every choice."""

from itertools import permutations, product

import numpy as np
import pytest
from cases import each

from rankwright.losses.topic_search import best_order, most_documents, search_topics


def a_case(seed, n=7, topics=3):
    rng = np.random.default_rng(seed)
    shares = (rng.random((4, topics)) < 0.5).astype(float)
    group, gain = rng.integers(0, 4, n), rng.integers(0, 3, n)
    v, b = rng.normal(size=n), np.array([0.0, 0.3, 1.0])[gain]
    return v, b, gain, group, shares


def feasible(group, shares, limit, top):
    return [
        o
        for o in permutations(range(len(group)), top)
        if (shares[group[list(o)]].sum(axis=0) <= limit).all()
    ]


@each("limit", [1, 2])
@each("seed", range(20))
def test_the_search_finds_the_worst_of_all_orders(seed, limit):
    v, b, gain, group, shares = a_case(seed)
    sizes = np.bincount(group, minlength=4)
    top = most_documents(sizes, shares, limit, 4)
    orders = feasible(group, shares, limit, top)
    assert orders
    assert top == 4 or not feasible(group, shares, limit, top + 1)
    a, c = 1 / np.log2(np.arange(7) + 2.0), 1 / np.arange(2.0, 9.0)

    def value(o):
        return sum(c[j] * v[i] - a[j] * b[i] for j, i in enumerate(o))

    position = np.full(7, -1)
    position[list(orders[-1])] = np.arange(top)
    ranked = np.argsort(-v)
    assert search_topics(ranked, v, b, gain, group, shares, limit, top, a, c, position)
    found = [int(np.flatnonzero(position == j)[0]) for j in range(top)]
    assert (position >= 0).sum() == top
    assert tuple(found) in orders
    assert value(found) == pytest.approx(max(map(value, orders)))


def test_a_search_that_is_cut_short_keeps_within_the_limits_and_says_so():
    rng = np.random.default_rng(0)
    n, top = 120, 10
    shares = (rng.random((100, 40)) < 0.1).astype(float)
    group, gain = rng.integers(0, 100, n), rng.integers(0, 3, n)
    v, b = rng.normal(size=n), gain / 4.0
    a, c = 1 / np.log2(np.arange(n) + 2.0), 1 / np.arange(2.0, n + 2.0)
    assert most_documents(np.bincount(group, minlength=100), shares, 1, top) == top
    kinds = np.unique(np.column_stack([group, gain]), axis=0)
    sizes = np.array([((group == g) & (gain == y)).sum() for g, y in kinds])
    start = best_order(kinds[:, 1] / 4.0, sizes, shares[kinds[:, 0]], 1, a[:top])
    position = np.full(n, -1)
    for rank, k in enumerate(start):
        alike = np.flatnonzero((group == kinds[k, 0]) & (gain == kinds[k, 1]) & (position < 0))
        position[alike[0]] = rank
    before = (c[position[position >= 0]] * v[position >= 0]).sum()
    before -= (a[position[position >= 0]] * b[position >= 0]).sum()
    done = search_topics(np.argsort(-v), v, b, gain, group, shares, 1, top, a, c, position)
    seated = position >= 0
    after = (c[position[seated]] * v[seated] - a[position[seated]] * b[seated]).sum()
    assert sorted(position[seated]) == list(range(top))
    assert (shares[group[seated]].sum(axis=0) <= 1).all()
    assert after > before
    assert not done


@pytest.mark.parametrize("seed", range(10))
def test_the_best_order_is_that_of_all_choices_of_classes(seed):
    rng = np.random.default_rng(seed)
    shares = (rng.random((5, 3)) < 0.5).astype(float)
    gain, sizes = rng.random(5), rng.integers(1, 3, 5)
    top = most_documents(sizes, shares, 1, 3)
    a = 1 / np.log2(np.arange(top) + 2.0)
    choices = [
        o
        for o in product(range(5), repeat=top)
        if (np.bincount(o, minlength=5) <= sizes).all() and (shares[list(o)].sum(axis=0) <= 1).all()
    ]
    best = max(a @ gain[list(o)] for o in choices)
    order = best_order(gain, sizes, shares, 1, a)
    assert tuple(order.tolist()) in choices
    assert a @ gain[order] == pytest.approx(best)
