"""JRank against a kernel perceptron in the dual, written out."""

import numpy as np
import pytest

from rankwright import CofiRank, JRank
from rankwright.data.ratings import ratings_of_triples
from rankwright.errors import UsageError
from rankwright.metrics.evaluation import evaluate
from rankwright.models import perceptron

USER = [0, 0, 0, 1, 1, 2, 2, 2, 3, 3]
ITEM = [0, 1, 2, 0, 1, 1, 2, 3, 0, 3]
RATING = [4.0, 3.0, 1.0, 4.0, 2.0, 1.0, 4.0, 3.0, 0.0, 2.0]
DATA = ratings_of_triples(USER, ITEM, RATING)


def kernel_of_items():
    R = np.zeros((4, 4))
    for user in range(4):
        rows = [k for k in range(10) if USER[k] == user]
        for k in rows:
            R[user, ITEM[k]] = RATING[k] - np.mean([RATING[j] for j in rows])
    length = np.linalg.norm(R, axis=0)
    mean = R.sum(axis=0) / np.bincount(ITEM)
    t = (mean - mean.mean()) / mean.std()
    K = R.T @ R / np.outer(length, length) + np.outer(t, t)
    extent, Q = np.linalg.eigh(K)
    z = R @ (Q[:, ::-1][:, :2] * np.sqrt(extent[::-1][:2]))
    return K, z / np.linalg.norm(z, axis=1, keepdims=True)


def dual_perceptron(K, grade, visits, averaging):
    """PRank with c = 1 in the weights of the examples; return the scores of all of them."""
    alpha, total, b, t = np.zeros(len(K)), np.zeros(len(K)), np.zeros(grade.max()), 0
    for i in visits:
        side = np.where(grade[i] > np.arange(len(b)), 1.0, -1.0)
        wrong = side * (K[i] @ alpha - b) <= 0.0
        alpha[i] += side[wrong].sum()
        b -= np.where(wrong, side, 0.0)
        total += alpha
        t += 1
    return K @ (total / t if averaging else alpha)


@pytest.mark.parametrize("averaging", [True, False])
@pytest.mark.parametrize("users", [("all",), ("each",), ("all", "each"), ("all", "each", "alike")])
def test_it_is_the_kernel_perceptron(users, averaging, monkeypatch):
    seen, steps = [], perceptron.prank_steps

    def recorded(visits, *args):
        seen.append((visits.copy(), args))
        steps(visits, *args)

    monkeypatch.setattr(perceptron, "prank_steps", recorded)
    own = {"users": users, "n_factors": None, "n_tastes": 2, "threshold_step": 1.0}
    fitted = JRank(**own, n_passes=3, averaging=averaging).fit(DATA)
    K_I, z = kernel_of_items()
    K_U = sum({"all": np.ones((4, 4)), "each": np.eye(4), "alike": z @ z.T}[name] for name in users)
    grade = np.array(RATING, int)
    # Visits number rows in the order of the fit: found again by what each row holds.
    visits = np.concatenate([rows for rows, _ in seen])
    scores = fitted.predict(DATA)
    rows = order_of_the_fit()
    expected = dual_perceptron(
        K_U[np.ix_(USER, USER)] * K_I[np.ix_(ITEM, ITEM)], grade, rows[visits], averaging
    )
    caller = DATA.in_caller_order(scores)
    np.testing.assert_allclose(caller, expected, atol=1e-9)


def order_of_the_fit():
    """Return the triple that each row of the fit is."""
    from rankwright.data.content import in_content_order

    rows, _ = in_content_order(DATA)
    place = np.arange(10) if DATA.row is None else DATA.row
    return place[rows]


def ratings(seed=0, users=60, items=20):
    rng = np.random.default_rng(seed)
    film = np.random.default_rng(7).normal(size=(2, items))
    liking = rng.normal(size=(users, 2)) @ film
    user, item = np.nonzero(rng.random((users, items)) < 0.6)
    rating = np.clip(np.round(2 + liking[user, item] + 0.2 * rng.normal(size=len(user))), 0, 4)
    held = np.arange(len(user)) % 4 == 0
    return [
        ratings_of_triples(user[rows], item[rows], rating[rows], items=range(items))
        for rows in (~held, held)
    ]


def test_it_learns_taste_beyond_what_all_like():
    train, test = ratings()
    found = {
        name: evaluate(test, made.fit(train).predict(test), "ndcg@10")["ndcg@10"]
        for name, made in {
            "joint": JRank(users=("all", "each", "alike")),
            "common": JRank(users=("all",)),
            "factors": CofiRank(),
        }.items()
    }
    assert found["joint"] > found["common"] + 0.05
    assert found["joint"] > found["factors"] - 0.05


def test_a_stranger_is_scored_by_what_all_like():
    fitted = JRank().fit(DATA)
    strangers = ratings_of_triples([9, 9], [0, 1], [0.0, 0.0], items=range(4))
    np.testing.assert_allclose(fitted.predict(strangers), fitted.model_.item_bias[:2])
    alone = JRank(users=("each",)).fit(DATA)
    np.testing.assert_array_equal(alone.predict(strangers), [0.0, 0.0])


def test_it_recommends_what_a_user_has_not_rated():
    fitted = JRank().fit(DATA)
    items, scores = fitted.recommend(0, n=3)
    assert [str(item) for item in items] == ["3"]
    model = fitted.model_
    row = int(model.numbers_of(np.array([0]))[0])
    one = model.item_bias[3] + model.item_factors[3] @ model.user_factors[row]
    assert scores == pytest.approx([one + model.user_level[row]])


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"users": ("al",)}, "no kernel of users 'al'; did you mean all"),
        ({"users": ()}, "users names one or more of all, each, alike"),
        ({"n_factors": 0}, "n_factors must be 1 or more, not 0"),
        ({"n_tastes": 0}, "n_tastes must be 1 or more, not 0"),
    ],
)
def test_wrong_settings_are_refused(params, message):
    with pytest.raises(UsageError, match=message):
        JRank(**params).fit(DATA)


def test_users_cannot_be_added_later_and_it_starts_anew():
    fitted = JRank().fit(DATA)
    with pytest.raises(UsageError, match="fit again with their ratings"):
        fitted.fold_in(DATA)
    with pytest.raises(UsageError, match="leave init_model out"):
        JRank().fit(DATA, init_model=fitted)
