from itertools import pairwise

import numpy as np
import pytest
from cases import each
from hypothesis import given
from hypothesis import strategies as st

from rankwright.core.order import in_order_of, limit_per_group, ranking, shown

scores = st.lists(
    st.one_of(st.integers(-3, 3).map(float), st.just(float("nan")), st.just(-0.0)), max_size=60
)


def by_python(s, key=None):
    """Python's own stable sort: NaN last, larger score first, smaller key first."""
    rule = [
        (np.isnan(v), 0.0 if np.isnan(v) else -v, 0 if key is None else key[i])
        for i, v in enumerate(s)
    ]
    return sorted(range(len(s)), key=lambda i: rule[i])


def test_equal_scores_keep_the_order_of_the_rows():
    order = ranking(np.array([1.0, 2.0, 1.0, 2.0]), np.array([0, 4]))
    assert order.tolist() == [1, 3, 0, 2]


def test_a_smaller_key_goes_first_among_equal_scores():
    s, key = np.array([1.0, 1.0, 2.0]), np.array([5.0, 3.0, 9.0])
    assert ranking(s, np.array([0, 3]), key=key).tolist() == [2, 1, 0]


def test_nan_counts_as_the_lowest_score():
    s = np.array([np.nan, -np.inf, 0.0])
    assert ranking(s, np.array([0, 3])).tolist() == [2, 1, 0]


def test_queries_are_ordered_one_after_the_other():
    s = np.array([1.0, 2.0, 5.0, 3.0, 4.0])
    assert ranking(s, np.array([0, 2, 2, 5])).tolist() == [1, 0, 2, 4, 3]


@given(scores)
def test_agrees_with_a_stable_sort(s):
    assert ranking(np.array(s), np.array([0, len(s)])).tolist() == by_python(s)


@given(scores, st.randoms())
def test_agrees_with_a_stable_sort_by_key(s, random):
    key = [random.randint(0, 2) for _ in s]
    order = ranking(np.array(s), np.array([0, len(s)]), key=np.array(key, float))
    assert order.tolist() == by_python(s, key)


@each("n", [127, 128, 129, 257, 700])
@each("odd", [None, np.nan, -np.inf, -0.0])
def test_long_lists_agree_with_a_stable_sort(n, odd):
    """Longer than a run that is sorted by counting; with NaN, by insertion."""
    s = np.random.default_rng(n).integers(-9, 9, n).astype(float)
    if odd is not None:
        s[::7] = odd
    s = np.concatenate([s, -s])
    order = ranking(s, np.array([0, n, 2 * n]))
    assert order[:n].tolist() == by_python(s[:n])
    assert (order[n:] - n).tolist() == by_python(s[n:])


@pytest.mark.parametrize("threads", [2, 5])
def test_the_number_of_threads_changes_nothing(threads):
    s = np.random.default_rng(0).integers(0, 50, 100_000).astype(float)
    indptr = np.arange(0, 100_001, 50)
    one = ranking(s, indptr, n_jobs=1)
    assert (ranking(s, indptr, n_jobs=threads) == one).all()


def test_limit_per_group_keeps_the_best_of_each_group_in_each_query():
    order = np.array([2, 0, 1, 5, 4, 3])
    group = np.array([0, 0, 0, 1, 0, 1])
    kept, indptr = limit_per_group(order, np.array([0, 3, 6]), group, 1)
    assert kept.tolist() == [2, 5, 4]
    assert indptr.tolist() == [0, 1, 3]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=30), st.integers(1, 3))
def test_limit_per_group_agrees_with_counting(groups, limit):
    order = np.random.default_rng(1).permutation(len(groups))
    kept, _ = limit_per_group(order, np.array([0, len(groups)]), np.array(groups), limit)
    count = dict.fromkeys(groups, 0)
    expected = []
    for i in order:
        count[groups[i]] += 1
        if count[groups[i]] <= limit:
            expected.append(i)
    assert kept.tolist() == expected


@given(scores, st.integers(1, 12), st.integers(0, 60))
def test_the_first_ranks_are_the_beginnings_of_the_ranking(values, top, cut):
    s, indptr = np.array(values, float), np.array([0, min(cut, len(values)), len(values)])
    whole = ranking(s, indptr)
    found, bounds = shown(s, indptr, top=top)
    expected = [whole[a : min(a + top, b)].tolist() for a, b in pairwise(indptr)]
    assert [found[a:b].tolist() for a, b in pairwise(bounds)] == expected


def test_documents_in_order_of_a_number_keep_their_order_where_it_is_equal():
    rng = np.random.default_rng(0)
    number, documents = rng.integers(0, 9, 400), rng.permutation(400)[:300]
    expected = documents[np.argsort(number[documents], kind="stable")]
    assert in_order_of(number, documents).tolist() == expected.tolist()


def test_overlapping_topics_are_limited_from_the_best_document_down():
    """Two queries; the first document of topics 0 and 1 leaves no room for others of them."""
    topics = np.array([[1, 1], [1, 0], [0, 1], [0, 0], [1, 0], [0, 1]], float)
    order, indptr = np.arange(6), np.array([0, 4, 6])
    kept, bounds = limit_per_group(order, indptr, topics, 1)
    assert kept.tolist() == [0, 3, 4, 5]
    assert bounds.tolist() == [0, 2, 4]
    assert limit_per_group(order, indptr, 0.5 * topics, 1)[0].tolist() == [0, 1, 2, 3, 4, 5]


def test_greedy_within_overlapping_topics_has_its_share_of_the_best_choice():
    for seed in range(30):
        rng = np.random.default_rng(seed)
        topics = (rng.random((7, 4)) < 0.4).astype(float)
        s = rng.random(7)
        kept, _ = limit_per_group(np.argsort(-s), np.array([0, 7]), topics, 1)
        choices = [np.array([(x >> i) & 1 for i in range(7)], bool) for x in range(2**7)]
        allowed = [c for c in choices if (topics[c].sum(axis=0) <= 1).all()]
        best = max(s[c].sum() for c in allowed)
        m = max(topics.sum(axis=1).max(), 1.0)
        assert best / m - 1e-12 <= s[kept].sum() <= best + 1e-12
