"""The integer programmes for overlapping topics, against every order and every choice."""

from itertools import permutations, product

import numpy as np
import pytest
from cases import each

from rankwright.errors import UsageError
from rankwright.losses import topic_search
from rankwright.losses.topic_search import best_order, most_documents


@each("limit", [1, 2])
@each("n", [5, 6, 7])
@each("seed", range(8))
def test_the_best_of_all_orders_is_found(seed, n, limit):
    rng = np.random.default_rng(seed)
    topics = (rng.random((n, 3)) < 0.5) * rng.choice([0.5, 1.0], (n, 3))
    ones = np.ones(n, np.int64)
    top = most_documents(ones, topics, limit, 4)

    def orders(ranks):
        return [
            list(o)
            for o in permutations(range(n), ranks)
            if (topics[list(o)].sum(axis=0) <= limit).all()
        ]

    assert orders(top)
    assert top == 4 or not orders(top + 1)
    for size in (1.0, 1e-7, 1e12):
        worth = size * rng.normal(size=(n, top))
        order = best_order(worth, ones, topics, limit).tolist()
        assert order in orders(top)
        best = max(worth[o, np.arange(top)].sum() for o in orders(top))
        assert worth[order, np.arange(top)].sum() == pytest.approx(best, rel=1e-9, abs=1e-10 * size)


@pytest.mark.parametrize("seed", range(10))
def test_the_best_order_is_that_of_all_choices_of_classes(seed):
    rng = np.random.default_rng(seed)
    topics = (rng.random((5, 3)) < 0.5).astype(float)
    gain, sizes = rng.random(5), rng.integers(1, 3, 5)
    top = most_documents(sizes, topics, 1, 3)
    a = 1 / np.log2(np.arange(top) + 2.0)
    choices = [
        o
        for o in product(range(5), repeat=top)
        if (np.bincount(o, minlength=5) <= sizes).all() and (topics[list(o)].sum(axis=0) <= 1).all()
    ]
    best = max(a @ gain[list(o)] for o in choices)
    order = best_order(np.outer(gain, a), sizes, topics, 1)
    assert tuple(order.tolist()) in choices
    assert a @ gain[order] == pytest.approx(best)


def test_no_rank_can_be_taken_if_every_document_exceeds_the_limit():
    topics = np.full((3, 1), 2.0)
    assert most_documents(np.ones(3, np.int64), topics, 1, 3) == 0
    assert best_order(np.empty((3, 0)), np.ones(3, np.int64), topics, 1).tolist() == []


def test_a_search_that_takes_too_long_is_an_error(monkeypatch):
    rng = np.random.default_rng(0)
    topics = (rng.random((60, 30)) < 0.1).astype(float)
    monkeypatch.setattr(topic_search, "TIME_LIMIT", 0.0)
    with pytest.raises(UsageError, match="was not found in 0 seconds"):
        best_order(rng.normal(size=(60, 8)), np.ones(60, np.int64), topics, 1)
