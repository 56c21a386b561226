"""CofiRank and MMMF: ratings in three forms, cold users, recommendations, features of items."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from cases import each
from scipy import sparse

from rankwright import MMMF, CofiRank, JRank, RankingData
from rankwright.data.ratings import ratings_of_frame, ratings_of_triples
from rankwright.errors import DataError, IncompatibleError, UsageError
from rankwright.metrics.evaluation import evaluate
from rankwright.persist.model_file import load_model
from rankwright.rankers.base import NotFittedError

EXACT = {"tol": 1e-9, "max_iter": 2000}


def stars(users=60, items=20, share=0.6, seed=0, tastes=2):
    """Ratings from 1 to 5 stars by users ann0, ann1, … of films f0, f1, …, in a frame."""
    rng = np.random.default_rng(seed)
    film = np.random.default_rng(7).normal(size=(tastes, items))
    liking = rng.normal(size=(users, tastes)) @ film
    user, item = np.nonzero(rng.random((users, items)) < share)
    rating = np.clip(np.round(3 + liking[user, item] + 0.2 * rng.normal(size=len(user))), 1, 5)
    return pd.DataFrame(
        {"user": [f"ann{u}" for u in user], "item": [f"f{i}" for i in item], "rating": rating}
    )


FRAME = stars()
DATA = ratings_of_frame(FRAME)
HELD = FRAME.index % 4 == 0
TRAIN, TEST = ratings_of_frame(FRAME[~HELD]), ratings_of_frame(FRAME[HELD])


def ndcg(data, scores):
    return evaluate(data, scores, "ndcg@10", convention="sklearn")["ndcg@10"]


@pytest.fixture(scope="module", params=[CofiRank, MMMF], ids=["cofirank", "mmmf"])
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def fitted():
    return CofiRank(l2=0.3, n_factors=4).fit(DATA)


def test_it_learns_taste_beyond_what_all_like(kind):
    ranker = kind().fit(TRAIN)
    popular = np.bincount(TRAIN.X.indices, TRAIN.y) / np.bincount(TRAIN.X.indices)
    names = dict(zip(TRAIN.feature_names, popular, strict=True))
    by_mean = np.array([names[item] for item in TEST.doc_id])
    assert ndcg(TEST, ranker.predict(TEST)) > ndcg(TEST, by_mean) + 0.05


@pytest.mark.parametrize("params", [{"loss": "ranknet"}, {"loss": "listnet", "levels": 3}])
def test_any_loss_can_take_its_place(params):
    assert ndcg(TEST, CofiRank(**params).fit(TRAIN).predict(TEST)) > 0.9


def test_the_loss_of_the_paper_runs_by_its_name_alone():
    ranker = CofiRank(loss="position_svm").fit(TRAIN)
    popular = np.bincount(TRAIN.X.indices, TRAIN.y) / np.bincount(TRAIN.X.indices)
    names = dict(zip(TRAIN.feature_names, popular, strict=True))
    by_mean = np.array([names[item] for item in TEST.doc_id])
    assert ndcg(TEST, ranker.predict(TEST)) > ndcg(TEST, by_mean)
    curve = CofiRank(loss="position_svm", l2=0.01, n_rounds=4).fit(TRAIN).curve_["loss"]
    assert (np.diff(curve) <= 1e-3 * np.array(curve[:-1])).all()


def test_no_message_about_the_loss_of_the_paper_leads_to_another():
    with pytest.raises(IncompatibleError, match=r"'position_svm' has kinks.*method='alternating'"):
        CofiRank(loss="position_svm", method="joint").fit(TRAIN)
    with pytest.raises(IncompatibleError, match=r"'position_svm' is not one. Use bundle"):
        CofiRank(loss="position_svm", solver="lbfgs", method="alternating").fit(TRAIN)
    for way in ({"method": "alternating"}, {"solver": "bundle"}):  # what they say does
        CofiRank(loss="position_svm", l2=0.1, n_rounds=1, **way).fit(TRAIN)


def test_ratings_frames_and_matrices_are_the_same(fitted):
    scores = fitted.predict(DATA)
    assert (CofiRank(l2=0.3, n_factors=4).fit(FRAME).predict(DATA) == scores).all()
    polars = CofiRank(l2=0.3, n_factors=4).fit(pl.from_pandas(FRAME))
    assert (polars.predict(DATA) == scores).all()
    row, column = DATA.query_of_row(), DATA.X.indices
    matrix = sparse.coo_array((DATA.y + 1, (row, column)), (DATA.n_queries, DATA.n_features))
    of_matrix = CofiRank(l2=0.3, n_factors=4).fit(matrix.tocsr())
    same = RankingData.from_arrays(DATA.X, DATA.y, qid=row)
    assert of_matrix.predict(same) == pytest.approx(scores, abs=1e-6)


def test_pairs_of_user_and_item_are_scored_in_the_callers_order(fitted):
    mixed = FRAME.sample(frac=1, random_state=1)[["item", "user"]]
    pairs = zip(np.repeat(DATA.qid, DATA.sizes), DATA.doc_id, strict=True)
    by_pair = dict(zip(pairs, fitted.predict(DATA), strict=True))
    expected = [by_pair[user, item] for item, user in mixed.itertuples(index=False)]
    assert fitted.predict(mixed).tolist() == expected
    ranked = mixed.iloc[fitted.rank(mixed)]
    first = ranked[ranked.user == mixed.user.iloc[0]]
    assert [by_pair[u, i] for i, u in first.itertuples(index=False)] == sorted(
        (by_pair[u, i] for i, u in first.itertuples(index=False)), reverse=True
    )


def test_strangers_and_strange_items_have_what_is_known_without_them(fitted):
    bias = dict(zip(fitted.feature_names_in_, fitted.model_.item_bias, strict=True))
    pairs = pd.DataFrame({"user": ["bob", "bob", "ann3"], "item": ["f2", "f9", "new"]})
    assert fitted.predict(pairs).tolist() == [bias["f2"], bias["f9"], 0.0]
    other = ratings_of_frame(
        FRAME.assign(item=FRAME.item.replace("f2", "new")).query("user == 'ann3'")
    )
    scores = fitted.predict(other)
    kept = other.doc_id != "new"
    assert scores[~kept].tolist() == [0.0] * int((~kept).sum())
    known = dict(zip(*fitted.recommend("ann3", 20, rated=True), strict=True))
    assert scores[kept] == pytest.approx([known[item] for item in other.doc_id[kept]])


def test_features_without_users_are_scored_by_the_biases(fitted):
    assert fitted.predict(DATA.X) == pytest.approx(DATA.X @ fitted.model_.item_bias)
    user = np.repeat(DATA.qid, DATA.sizes)
    assert (fitted.predict(DATA.X, qid=user) == fitted.predict(DATA)).all()


def test_items_come_back_as_they_were_given(tmp_path):
    """Numbers stay numbers, an item without a rating too; a model file has texts."""
    number = FRAME.assign(item=FRAME["item"].str[1:].astype(int) + 100)
    items, _ = CofiRank(n_factors=2).fit(number).recommend("ann5", 4)
    assert items.dtype.kind == "i"
    assert set(items.tolist()) <= set(number["item"])

    data = ratings_of_frame(number, items=[*range(100, 120), 500])
    ranker = CofiRank(n_factors=2).fit(data)
    assert ranker.items_.tolist() == [*range(100, 120), 500]
    ranker.save(tmp_path / "cofirank.rw")
    read = load_model(tmp_path / "cofirank.rw").recommend("ann5", 4)[0]
    assert read.tolist() == [str(item) for item in ranker.recommend("ann5", 4)[0]]

    texts = ratings_of_frame(number.assign(item=number["item"].astype(str)))
    assert all(isinstance(item, str) for item in CofiRank().fit(texts).recommend("ann5", 4)[0])
    matrix = sparse.csr_array(np.array([[3.0, 0.0, 5.0], [1.0, 4.0, 0.0], [2.0, 5.0, 1.0]]))
    assert CofiRank(n_factors=1).fit(matrix).recommend(0, 3)[0].tolist() == [1]


def test_recommendations_are_the_best_that_were_not_rated(fitted):
    items, scores = fitted.recommend("ann5", 4)
    rated = set(FRAME.item[FRAME.user == "ann5"])
    assert not rated & set(items)
    rest = sorted(set(FRAME.item) - rated)
    all_scores = fitted.predict(pd.DataFrame({"user": "ann5", "item": rest}))
    best = np.argsort(-all_scores)[:4]
    assert items.tolist() == [rest[i] for i in best]
    assert scores == pytest.approx(all_scores[best])
    assert len(fitted.recommend("ann5", 100)[0]) == 20 - len(rated)
    assert len(fitted.recommend("ann5", 100, rated=True)[0]) == 20
    assert len(fitted.recommend("unknown", 3)[0]) == 3


def test_recommendations_for_all_are_those_of_each(fitted):
    found = fitted.recommend_all(n=12)
    assert sorted(found.users) == sorted(set(FRAME.user))
    assert found.items.shape == found.scores.shape == (60, 12)
    for user, items, scores in zip(*found, strict=True):
        own = fitted.recommend(user, 12)
        left = scores > -np.inf
        assert items[left].tolist() == own[0].tolist()
        assert scores[left].tobytes() == own[1].tobytes()
        assert set(items[~left]) <= {None}
    assert (found.scores == -np.inf).any()
    frame = found.to_frame()
    assert frame.columns.tolist() == ["user", "rank", "item", "score"]
    own = frame[frame.user == "ann5"]
    assert own["item"].tolist() == fitted.recommend("ann5", 12)[0].tolist()
    assert own["rank"].tolist() == [*range(1, len(own) + 1)]
    some = fitted.recommend_all(["ann5", "unknown"], 3)
    assert some.items[0].tolist() == own["item"].tolist()[:3]
    assert some.items[1].tolist() == fitted.recommend("unknown", 3)[0].tolist()


def test_items_can_be_chosen_from_and_left_out(fitted):
    every = fitted.recommend("ann5", 100, rated=True)[0].tolist()
    chosen = fitted.recommend("ann5", 100, rated=True, items=["f3", "f9", "f1"])[0].tolist()
    assert chosen == [item for item in every if item in ("f3", "f9", "f1")]
    rest = fitted.recommend("ann5", 100, rated=True, filter_items=["f3", "new"])[0].tolist()
    assert rest == [item for item in every if item != "f3"]
    both = fitted.recommend_all(["ann5"], 5, items=every[:4], filter_items=every[:2], rated=True)
    assert both.items.tolist() == [every[2:4]]
    with pytest.raises(DataError, match="item 'new' is not among the items of the ranker"):
        fitted.recommend("ann5", items=["f3", "new"])
    with pytest.raises(UsageError, match="n must be 1 or more, not 0"):
        fitted.recommend_all(n=0)
    number = FRAME.assign(item=FRAME["item"].str[1:].astype(int))
    found = CofiRank(l2=0.3, n_factors=4).fit(number).recommend_all(n=20)
    assert found.items.dtype.kind == "i"
    assert ((found.items == -1) == (found.scores == -np.inf)).all()


@each("n", [0, 2.5, "2", None])
def test_a_number_of_items_that_is_none_is_reported(fitted, n):
    with pytest.raises(UsageError, match=r"n must be .*1 or more, not "):
        fitted.recommend_all(n=n)
    assert fitted.recommend_all(["ann5"], 2.0).items.shape == (1, 2)


@each("none", [sparse.csr_array((3, 4)), FRAME.iloc[:0]])
def test_no_ratings_at_all_are_reported(fitted, none):
    for learn in (CofiRank().fit, fitted.fold_in):
        with pytest.raises(DataError, match="there are no ratings"):
            learn(none)


@each("many", ["users", "items", "filter_items"])
@each("one", ["f3", 3, np.array("f3"), np.array([["f3"]])])
def test_one_name_is_not_taken_for_a_list_of_letters(fitted, many, one):
    with pytest.raises(UsageError, match=f"{many} must be a list of names, not "):
        fitted.recommend_all(**{many: one})


@each("cls", [CofiRank, MMMF, JRank])
def test_a_user_of_another_type_is_refused_and_not_taken_for_a_new_one(cls):
    number = FRAME.assign(user=FRAME.user.str[3:].astype(int))
    fitted = cls(n_factors=2).fit(number)
    for user in ("5", b"5"):
        says = r"user b?.5. has the type \w+, unlike the users in fit, for example \d+; pass user"
        with pytest.raises(DataError, match=says):
            fitted.recommend(user)
        with pytest.raises(DataError, match=says):
            fitted.recommend_all([7, user])
    with pytest.raises(DataError, match="has the type str"):
        fitted.predict(FRAME)
    assert fitted.recommend(5.0)[0].tolist() == fitted.recommend(np.int8(5))[0].tolist()
    with pytest.raises(DataError, match="user 5 has the type int, unlike the users in fit"):
        cls(n_factors=2).fit(FRAME).recommend(5)


@each("user", [[7, 3], (7,), np.array([7]), None])
def test_recommend_takes_one_user(fitted, user):
    with pytest.raises(UsageError, match=r"recommend takes one user, not .*recommend_all takes"):
        fitted.recommend(user)


@each("users", [[[7, 3]], [[7], [3, 4]], np.array([7, [3]], object), [(7, 3)]])
def test_users_in_a_list_of_lists_are_refused(fitted, users):
    with pytest.raises(UsageError, match="users must be a list of names, not "):
        fitted.recommend_all(users)


def test_a_new_user_of_a_model_without_biases_is_warned_about():
    fitted = MMMF(n_factors=2).fit(FRAME)
    with pytest.warns(UserWarning, match="user bob is new to the model.* same score; call"):
        fitted.recommend("bob")


@each("kind", [np.uint8, np.uint64, np.int16])
def test_items_of_any_whole_numbers_leave_a_place_for_none(kind):
    ids = FRAME["item"].str[1:].astype(int).to_numpy()
    top = np.iinfo(kind).max - 20 if kind == np.uint64 else 0
    number = FRAME.assign(item=ids.astype(kind) + kind(top))
    found = CofiRank(l2=0.3, n_factors=4).fit(number).recommend_all(n=20)
    names = CofiRank(l2=0.3, n_factors=4).fit(FRAME.assign(item=ids)).recommend_all(n=20)
    left = names.items >= 0
    assert found.items[left].tolist() == [item + top for item in names.items[left].tolist()]
    assert set(found.items[~left].tolist()) == {None if top else -1}


@each("kind", [np.int64, np.int8, np.uint16])
def test_a_matrix_of_whole_numbers_is_that_of_floats(kind):
    stars = np.array([[3, 0, 5], [1, 4, 0], [2, 5, 1]])
    of_whole = CofiRank(n_factors=1, l2=0.1).fit(sparse.csr_array(stars.astype(kind)))
    of_floats = CofiRank(n_factors=1, l2=0.1).fit(sparse.csr_array(stars.astype(float)))
    for found, expected in zip(of_whole.recommend_all(), of_floats.recommend_all(), strict=True):
        assert found.tolist() == expected.tolist()
    of_whole.fold_in(sparse.csr_array(np.array([[0, 2, 1]], kind)))
    assert of_whole.recommend(0, 3)[0].tolist() == [0]


def test_a_new_user_is_folded_in(kind):
    ranker = kind(**EXACT).fit(DATA)
    before = ranker.predict(DATA)
    double = FRAME[FRAME.user == "ann7"].assign(user="twin")
    assert ranker.fold_in(double) is ranker
    old = ranker.recommend("ann7", 20, rated=True)
    new = ranker.recommend("twin", 20, rated=True)
    assert new[1] == pytest.approx(old[1], abs=0.02)
    assert ranker.recommend("twin", 20)[0].tolist() == ranker.recommend("ann7", 20)[0].tolist()
    assert (ranker.predict(DATA) == before).all()


def test_a_cold_users_ratings_are_on_the_scale_of_the_others(kind, tmp_path):
    mild = FRAME.assign(rating=FRAME.rating.where(FRAME.user != "ann7", FRAME.rating.clip(2, 4)))
    ranker = kind(levels=5, loss="all_threshold", **EXACT) if kind is CofiRank else kind(**EXACT)
    ranker.fit(mild).save(tmp_path / "r.rw")
    double = mild[mild.user == "ann7"].assign(user="twin")
    for one in (ranker, load_model(tmp_path / "r.rw")):
        one.fold_in(double)
        new, old = (one.recommend(user, 20, rated=True)[1] for user in ("twin", "ann7"))
        assert new == pytest.approx(old, abs=0.02)


def test_saved_and_loaded_it_knows_its_users(kind, tmp_path):
    ranker = kind().fit(DATA)
    ranker.save(tmp_path / "r.rw")
    again = load_model(tmp_path / "r.rw")
    assert (again.predict(DATA) == ranker.predict(DATA)).all()
    assert again.recommend("ann1")[0].tolist() == ranker.recommend("ann1")[0].tolist()
    again.fold_in(FRAME[FRAME.user == "ann1"].assign(user="new"))
    ranker.fold_in(FRAME[FRAME.user == "ann1"].assign(user="new"))
    assert (again.recommend("new")[1] == ranker.recommend("new")[1]).all()


def test_users_that_no_file_can_name_are_reported(tmp_path):
    days = pd.to_datetime(["2020-01-01"] * 3 + ["2020-01-02"] * 3)
    frame = pd.DataFrame({"user": days, "item": list("abcabc"), "rating": [1, 2, 3, 3, 2, 1]})
    ranker = CofiRank(n_factors=1).fit(
        RankingData.from_arrays(np.tile(np.eye(3), (2, 1)), frame.rating, qid=days.to_numpy())
    )
    with pytest.raises(UsageError, match="users must be named by numbers or texts"):
        ranker.save(tmp_path / "r.rw")


def test_an_item_without_ratings_is_scored_by_its_features():
    films = np.random.default_rng(7).normal(size=(2, 20)).T  # what `stars` makes ratings of
    items = [f"f{i}" for i in range(20)]
    cold = FRAME.item.isin(["f3", "f11", "f17"])
    train = ratings_of_frame(FRAME[~cold], items=items)
    ranker = CofiRank().fit(train, item_features=films)
    assert ranker.n_features_in_ == 20
    blind = CofiRank().fit(train)
    held = ratings_of_frame(FRAME[cold], items=items)
    assert (blind.predict(held) == 0.0).all()
    assert ndcg(held, ranker.predict(held)) > 0.99
    assert set(ranker.recommend("ann2", 20)[0]) >= {"f3", "f11", "f17"}
    with pytest.raises(DataError, match="a row for each of the 20 items"):
        CofiRank().fit(train, item_features=films[:5])


def test_valid_ratings_of_fewer_items_choose_the_penalty():
    few = ratings_of_frame(FRAME[HELD & FRAME.item.isin(["f1", "f2", "f4", "f5", "f8"])])
    ranker = CofiRank().fit(TRAIN, eval_set=few)
    curve = ranker.curve_["valid ndcg@10"]
    assert ranker.best_iteration_ == int(np.argmax(curve)) + 1
    assert ndcg(few, ranker.predict(few)) == pytest.approx(max(curve))


def test_levels_are_equal_parts_of_the_scale():
    frame = pd.DataFrame(
        {"user": 1, "item": list("abcdef"), "rating": [0.0, 4.9, 5.0, 14.9, 15.0, 20.0]}
    )
    ones = frame.assign(rating=[0, 0, 1, 2, 3, 3])
    rough = CofiRank(levels=4, l2=0.1, n_factors=1).fit(frame)
    whole = CofiRank(l2=0.1, n_factors=1).fit(ones)
    assert rough.predict(frame[["user", "item"]]) == pytest.approx(
        whole.predict(ones[["user", "item"]])
    )
    with pytest.raises(UsageError, match="levels must be 2 or more"):
        CofiRank(levels=1).fit(frame)


def test_what_is_no_rating_is_reported(fitted):
    with pytest.raises(UsageError, match="give ratings as RankingData"):
        CofiRank().fit(np.ones((4, 2)))
    with pytest.raises(DataError, match="no column 'user'"):
        CofiRank().fit(FRAME.rename(columns={"user": "who"}))
    with pytest.raises(NotFittedError, match="not fitted yet"):
        CofiRank().recommend("ann1")


def test_on_jester_it_orders_unseen_jokes_better_than_their_means_do(data_dir):
    table = np.loadtxt(data_dir / "Jester1" / "jester-data-1.csv.xz", delimiter=",")[:, 1:]
    user, joke = np.nonzero(table != 99)
    jester = ratings_of_triples(user + 1, joke + 1, table[user, joke])
    users = jester.select(np.flatnonzero(jester.sizes >= 90)[:1000])
    known = np.random.default_rng(0).random(users.n_documents) < 0.5
    who = np.repeat(users.qid, users.sizes)
    train, test = (
        RankingData.from_arrays(users.X[rows], users.y[rows], qid=who[rows])
        for rows in (known, ~known)
    )
    means = np.bincount(train.X.indices, train.y) / np.bincount(train.X.indices)
    assert ndcg(test, CofiRank().fit(train).predict(test)) > ndcg(test, test.X @ means) + 0.02


def test_a_model_without_users_is_refused():
    for made in (CofiRank(model="linear"), MMMF(model="trees")):
        with pytest.raises(IncompatibleError, match="a vector for each user and item, which model"):
            made.fit(stars(users=10, items=5))
