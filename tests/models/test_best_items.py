import numpy as np
import pytest
from cases import each

from rankwright.models import best_items as module
from rankwright.models.best_items import best_items

USERS, ITEMS, FACTORS = 40, 300, 4


def vectors(kind="normal", seed=0):
    rng = np.random.default_rng(seed)
    U, level = rng.normal(size=(USERS, FACTORS)), rng.normal(size=USERS)
    V, b = rng.normal(size=(ITEMS, FACTORS)), rng.normal(size=ITEMS)
    if kind == "ties":
        return np.round(U), level, np.round(V), np.round(b)
    if kind == "near":  # float32 has no difference between these
        return U, level, V[0] + 1e-9 * V, 5.0 + 1e-10 * b
    if kind == "zeros":
        return 0.0 * U, level, 0.0 * V, 0.0 * b
    return (1e200 * U, level, V, b) if kind == "huge" else (U, level, V, b)


def rated_items(seed=3):
    rng = np.random.default_rng(seed)
    items = [np.flatnonzero(rng.random(ITEMS) < share) for share in np.linspace(0, 1, USERS)]
    return np.cumsum([0, *map(len, items)]), np.concatenate(items)


def one_by_one(user, n, parts, columns=None, rated=None):
    """Sort all items of each user in float64."""
    U, level, V, b = parts
    n = min(n, ITEMS if columns is None else len(columns))
    item, score = np.full((len(user), n), -1), np.full((len(user), n), -np.inf)
    for i, q in enumerate(user):
        own = [
            sum(U[q, f] * V[k, f] for f in range(FACTORS)) * (q >= 0) + b[k] for k in range(ITEMS)
        ]
        left = np.arange(ITEMS) if columns is None else columns
        if rated is not None and q >= 0:
            left = np.setdiff1d(left, rated[1][rated[0][q] : rated[0][q + 1]])
        best = sorted(left.tolist(), key=lambda k: (-own[k], k))[:n]
        item[i, : len(best)] = best
        score[i, : len(best)] = [own[k] + (level[q] if q >= 0 else 0.0) for k in best]
    return item, score


@each("kind", ["normal", "ties", "near", "zeros", "huge"])
@each("n", [1, 7, 299, 400])
def test_it_is_the_sorted_list_cut_off(kind, n):
    user = np.array([3, -1, 0, 39, 3])
    item, score = best_items(user, n, vectors(kind))
    expected, scores = one_by_one(user, n, vectors(kind))
    assert item.tolist() == expected.tolist()
    assert score == pytest.approx(scores, rel=1e-12)


@each("columns", [None, np.arange(5, 300, 7), np.array([11]), np.empty(0, np.int64)])
@each("filtered", [True, False])
def test_only_some_items_are_chosen_from(columns, filtered):
    user = np.arange(-1, USERS)
    rated = rated_items() if filtered else None
    item, score = best_items(user, 20, vectors(), columns=columns, rated=rated)
    expected, scores = one_by_one(user, 20, vectors(), columns, rated)
    assert item.tolist() == expected.tolist()
    assert score == pytest.approx(scores)


def test_any_block_and_number_of_threads_makes_the_same_bytes(monkeypatch):
    found = []
    for users_a_block in (1, 3, 1000):
        monkeypatch.setattr(module, "_BLOCK_BYTES", 4 * ITEMS * users_a_block)
        for n_jobs in (1, 2, 5):
            item, score = best_items(
                np.arange(USERS), 9, vectors("near"), rated=rated_items(), n_jobs=n_jobs
            )
            found.append(item.tobytes() + score.tobytes())
    assert len(set(found)) == 1


def test_no_users_are_given_no_items():
    item, score = best_items(np.empty(0, np.int64), 5, vectors())
    assert item.shape == score.shape == (0, 5)
