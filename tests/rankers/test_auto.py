"""`auto`: the outline of data, the candidates it names, the best of them, and the reason."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from small_data import small_data

import rankwright
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError
from rankwright.rankers import auto as module
from rankwright.rankers import auto as outlines
from rankwright.rankers.auto import Candidate, Outline, auto, candidates
from rankwright.rankers.base import Ranker

QUICK = (("memr", "linear"), ("gbdt", "trees"))


@pytest.fixture
def quick(monkeypatch):
    """Two candidates that are fitted in no time."""
    monkeypatch.setattr(outlines, "_suited", lambda _: iter(QUICK))


def names(**differs):
    plain = Outline(
        queries=500, documents=20_000, features=50, filled=0.9, missing=False, grades=3,
        ratings=False,
    )  # fmt: skip
    return [each.ranker for each in candidates(replace(plain, **differs))]


def ratings(users=20, items=8):
    """Every user rates every item, and likes those of high number."""
    X = sparse.csr_matrix(np.tile(np.eye(items), (users, 1)))
    y = np.tile(np.arange(items) // 2, users)
    return RankingData.from_arrays(X, y, qid=np.repeat(np.arange(users), items))


# --- the outline -----------------------------------------------------------------------------


def test_the_outline_counts_what_decides():
    X = np.array([[1.0, 0.0], [0.0, 0.0], [np.nan, 2.0]])
    found = Outline.of(RankingData.from_arrays(X, [0, 2, 2], qid=[1, 1, 2]))
    assert found == Outline(2, 3, 2, 0.5, True, 2, False)


def test_a_sparse_matrix_has_the_same_outline_as_a_dense_one():
    data = small_data(queries=3)
    data.X[data.X < 0] = 0.0
    assert Outline.of(replace(data, X=sparse.csr_matrix(data.X))) == Outline.of(data)


def test_one_item_per_row_is_a_rating():
    data = ratings()
    assert Outline.of(data).ratings
    doubled = replace(data, X=data.X * 2.0)
    assert not Outline.of(doubled).ratings
    assert str(Outline.of(data)) == "20 users with 160 ratings of 8 items"


@pytest.mark.parametrize(
    ("differs", "words"),
    [
        ({}, "30 queries of about 20 documents, 6 features, 3 grades"),
        ({"queries": 1}, "1 query of about 600 documents"),
        ({"missing": True}, "missing values"),
        ({"filled": 0.013}, "6 features of which 1.3% are not zero"),
    ],
)
def test_the_outline_in_words(differs, words):
    assert words in str(replace(Outline.of(small_data()), **differs))


# --- the candidates --------------------------------------------------------------------------


def test_every_outline_has_one_to_four_candidates_that_exist():
    from rankwright import registry

    for missing in (False, True):
        for filled, features in ((0.9, 50), (0.01, 5_000)):
            for queries in (1, 20, 200, 100_000):
                for each in (False, True):
                    found = names(
                        missing=missing, filled=filled, features=features, queries=queries,
                        documents=30 * queries, ratings=each,
                    )  # fmt: skip
                    assert 1 <= len(set(found)) == len(found) <= 4
                    assert set(found) <= set(registry.RANKERS)


def test_missing_values_leave_models_of_trees():
    for name in names(missing=True):
        assert rankwright.ranker(name).model_name in ("trees", "forest")


def test_many_sparse_features_of_many_documents_leave_linear_models():
    assert names(filled=0.01, features=5_000) == ["domination", "pamir"]
    assert "intervalrank" in names(filled=0.01, features=5_000, documents=5_000)
    assert "domination" not in names(filled=0.01, features=50)


def test_few_queries_long_lists_and_size_decide():
    assert names(queries=20, documents=1_000) == ["memr", "listnet", "intervalrank"]
    assert names(queries=20, documents=20_000) == ["memr", "domination", "gbdt"]
    assert names(documents=15_000) == ["memr", "xendcg", "coordinate_ascent", "gbdt"]
    assert names(documents=50_000) == ["memr", "xendcg", "lambdamart", "gbdt"]
    assert names(queries=10_000, documents=1_000_000) == ["memr", "xendcg", "lambdamart"]


def test_ratings_are_for_recommenders():
    assert names(ratings=True) == ["cofirank", "mmmf"]


# --- choosing --------------------------------------------------------------------------------


@pytest.mark.usefixtures("quick")
def test_the_best_on_valid_is_kept_as_its_own_fit_would_be():
    train, valid = small_data(), small_data(seed=1)
    found = auto(train, eval_set=valid)
    alone = {name: rankwright.ranker(name).fit(train, eval_set=valid) for name, _ in QUICK}
    values = {name: fitted.score(valid) for name, fitted in alone.items()}
    assert {each.ranker: each.value for each in found.candidates} == pytest.approx(values)
    best = max(values, key=values.get)
    assert found.ranker.name == best
    np.testing.assert_array_equal(found.ranker.predict(valid), alone[best].predict(valid))


@pytest.mark.usefixtures("quick")
def test_a_metric_that_falls_is_minimised():
    train, valid = small_data(), small_data(seed=1)
    found = auto(train, eval_set=valid, metric="pair_error")
    least = min(found.candidates, key=lambda each: each.value)
    assert found.ranker.name == least.ranker


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("queries", [30, 100])
def test_without_valid_the_best_on_held_out_queries_is_fitted_to_all(queries, monkeypatch):
    data = small_data(queries=queries, documents=8)
    monkeypatch.setattr(module._Trial, "best", lambda self: self.tried[0])
    found = auto(data)
    assert found.ranker.name == "memr"
    alone = rankwright.MEMR().fit(data)
    np.testing.assert_array_equal(found.ranker.predict(data), alone.predict(data))


@pytest.mark.usefixtures("quick")
def test_trees_are_fitted_again_with_the_rounds_that_were_best(monkeypatch):
    monkeypatch.setattr(module._Trial, "best", lambda self: self.tried[1])
    data = small_data(queries=100, documents=8)
    fold = module.train_valid_test(data, (0.8, 0.0, 0.2), seed=0)
    rounds = rankwright.GBDT().fit(fold.train, eval_set=fold.test).best_iteration_
    assert auto(data).ranker.booster_.num_trees() == rounds


@pytest.mark.usefixtures("quick")
def test_the_choice_is_the_same_for_any_number_of_threads():
    found = [auto(small_data(), n_jobs=threads) for threads in (1, 2)]
    assert found[0].why == found[1].why
    assert found[0].candidates == found[1].candidates
    np.testing.assert_array_equal(*(each.ranker.predict(small_data()) for each in found))


@pytest.mark.usefixtures("quick")
def test_the_reason_names_the_data_the_choice_and_all_values():
    found = auto(small_data(), eval_set=small_data(seed=1))
    assert found.why.startswith("30 queries of about 20 documents, 6 features, 3 grades: ")
    for each in found.candidates:
        assert f"{each.ranker} {each.value:.4f}" in found.why
    assert f"{found.ranker.name} ({dict(QUICK)[found.ranker.name]})" in found.why


@pytest.mark.usefixtures("quick")
def test_arrays_are_taken_as_by_fit():
    data = small_data()
    qid = np.repeat(np.arange(30), 20)
    assert auto(data.X, data.y, qid=qid).why == auto(data).why


@pytest.mark.usefixtures("quick")
def test_too_few_queries_to_hold_any_out_leave_the_first_candidate():
    found = auto(small_data(queries=3))
    assert found.ranker.name == "memr"
    assert "not validated: no validation data given" in found.why
    assert [each.value for each in found.candidates] == [None, None]


def test_a_candidate_that_cannot_take_the_data_is_left_out(monkeypatch):
    suited = (("prank", ""), ("gbdt", ""))
    monkeypatch.setattr(outlines, "_suited", lambda _: iter(suited))
    data = small_data()
    data.X[0, 0] = np.nan
    found = auto(data, eval_set=data)
    assert found.ranker.name == "gbdt"
    assert found.candidates[0] == Candidate("prank", "", None)


def test_ratings_find_a_recommender():
    found = auto(ratings(), eval_set=ratings())
    assert found.ranker.name in ("cofirank", "mmmf")
    assert "20 users with 160 ratings" in found.why


@pytest.mark.usefixtures("quick")
def test_ctrl_c_keeps_the_best_so_far():
    def reported(fit, _fits, name, _t, _text):
        if name == "gbdt":
            assert fit == 1
            raise KeyboardInterrupt

    found = auto(small_data(), eval_set=small_data(seed=1), on_progress=reported)
    assert found.candidates[0].value is not None
    assert found.ranker.name in ("memr", "gbdt")
    assert found.ranker.interrupted_


@pytest.mark.usefixtures("quick")
def stop_at(monkeypatch, number):
    """Let the ``number``-th fit be interrupted before its first round."""
    usual, fits = Ranker.fit, []

    def fit(self, *data, **more):
        fits.append(self.name)
        if len(fits) == number:
            raise KeyboardInterrupt
        return usual(self, *data, **more)

    monkeypatch.setattr(Ranker, "fit", fit)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("metric", ["ndcg@10", "pair_error"])
def test_ctrl_c_at_the_beginning_of_a_fit_keeps_those_before(metric, monkeypatch):
    stop_at(monkeypatch, 8)  # two of five folds of the second candidate are fitted
    found = auto(small_data(queries=20), metric=metric)
    assert found.ranker.name == "memr"
    assert found.ranker.interrupted_
    assert [each.value is None for each in found.candidates] == [False, True]


@pytest.mark.usefixtures("quick")
def test_ctrl_c_while_the_best_is_fitted_again_keeps_its_last_fit(monkeypatch):
    stop_at(monkeypatch, 11)
    found = auto(small_data(queries=20))
    assert found.ranker.interrupted_
    assert all(each.value is not None for each in found.candidates)


@pytest.mark.usefixtures("quick")
def test_ctrl_c_before_anything_is_fitted_leaves_nothing(monkeypatch):
    stop_at(monkeypatch, 1)
    with pytest.raises(KeyboardInterrupt):
        auto(small_data(queries=20))


def test_a_metric_that_is_not_there_is_reported():
    with pytest.raises(UsageError, match="there is no metric"):
        auto(small_data(), metric="nccg@10")


# --- nothing to rank -------------------------------------------------------------------------


DEGENERATE = {
    "one grade": (np.ones(24), np.arange(24) // 4, "all documents have the grade 1"),
    "one document": (np.arange(24) % 3, np.arange(24), "every query has one document.*qid"),
    "one grade a query": (np.arange(24) // 4 % 3, np.arange(24) // 4, "within each query all"),
}


@pytest.mark.parametrize(("y", "qid", "sentence"), DEGENERATE.values(), ids=DEGENERATE)
def test_data_with_nothing_to_rank_is_refused(quick, y, qid, sentence):
    X = np.random.default_rng(0).normal(size=(24, 2))
    with pytest.raises(DataError, match=f"nothing to rank: {sentence}"):
        auto(X, y, qid=qid)
    usual = np.arange(24) % 3, np.arange(24) // 4
    with pytest.raises(DataError, match=f"nothing to rank in the validation set: {sentence}"):
        auto(X, usual[0], qid=usual[1], eval_set=(X, y, qid))


def test_one_query_with_two_grades_is_something_to_rank(quick):
    X = np.random.default_rng(0).normal(size=(24, 2))
    y = np.zeros(24)
    y[0] = 1
    assert auto(X, y, qid=np.arange(24) // 4).ranker.name in ("memr", "gbdt")


@pytest.mark.parametrize(("y", "qid", "sentence"), DEGENERATE.values(), ids=DEGENERATE)
def test_compare_warns_that_there_is_nothing_to_rank(y, qid, sentence, tmp_path):
    X = np.random.default_rng(0).normal(size=(24, 2))
    data = RankingData.from_arrays(X, y, qid=qid)
    with pytest.warns(UserWarning, match=f"nothing to rank in the test queries.*{sentence}"):
        rankwright.compare(data, "listnet", folds=3, cache=tmp_path, jobs=1)
