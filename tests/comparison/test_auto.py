"""`auto`: the outline of data, the candidates it names, what is chosen of them, and the reason."""

import time
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from small_data import small_data

import rankwright as rw
from rankwright import registry
from rankwright.comparison import auto as module
from rankwright.comparison.auto import Candidate, Outline, auto, candidates
from rankwright.data.content import content_digest
from rankwright.data.query_folds import deal_queries
from rankwright.data.ranking_data import RankingData, concatenate
from rankwright.errors import DataError, UsageError
from rankwright.metrics.evaluation import evaluate
from rankwright.rankers.base import Ranker

TREES = {"n_estimators": 6, "min_child_samples": 5}
QUICK = (("memr", "linear", "straight"), ("gbdt", "boosted trees", "branches", TREES))


def curved_data(queries=60, documents=8, seed=0):
    """Grades follow a line in one feature and a bend in another, which members see unequally."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(queries * documents, 6))
    utility = X[:, 0] + np.abs(X[:, 1]) + rng.normal(size=len(X))
    y = np.digitize(utility, np.quantile(utility, [1 / 3, 2 / 3]))
    return RankingData.from_arrays(X, y, qid=np.repeat(np.arange(queries), documents))


DATA = curved_data()


@pytest.fixture
def quick(monkeypatch):
    """Two candidates that are fitted in no time."""
    suit(monkeypatch, *QUICK)


def suit(monkeypatch, *suited):
    monkeypatch.setattr(module, "_suited", lambda _: iter(suited))


def plain(**differs):
    usual = Outline(
        queries=500, documents=15_000, features=50, filled=0.9, missing=False, grades=3,
        ratings=False,
    )  # fmt: skip
    return replace(usual, **differs)


def names(**differs):
    return [each.ranker for each in candidates(plain(**differs))]


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


def test_every_outline_has_candidates_that_exist_each_once():
    for missing in (False, True):
        for filled, features in ((0.9, 50), (0.01, 5_000)):
            for queries in (1, 20, 200, 100_000):
                for length in (30, 1_000):
                    found = names(
                        missing=missing, filled=filled, features=features, queries=queries,
                        documents=length * queries,
                    )  # fmt: skip
                    assert len(found) == len(set(found)) >= 2
                    assert set(found) <= set(registry.RANKERS)


def test_small_data_has_a_candidate_of_every_family():
    pytest.importorskip("torch")
    families = [each.family for each in candidates(plain())]
    assert set(families) == {"linear", "boosted trees", "forest", "network", "coordinate ascent"}
    firsts = [each.ranker for each in candidates(plain())][:5]
    assert firsts == ["memr", "gbrank", "random_forest", "ranknet", "coordinate_ascent"]


def test_without_torch_there_are_no_networks(monkeypatch):
    monkeypatch.setattr(module, "find_spec", lambda _: None)
    assert "ranknet" not in names()


def test_missing_values_and_categories_leave_models_of_trees():
    for differs in ({"missing": True}, {"categories": 1}):
        for name in names(**differs):
            assert rw.ranker(name).model_name in ("trees", "forest")


def test_sparse_features_long_lists_and_size_decide():
    assert names(filled=0.01, features=5_000, documents=30_000) == ["domination", "pamir"]
    assert "intervalrank" in names(filled=0.01, features=5_000)
    long = names(queries=20, documents=20_000)
    assert not {"gbrank", "ranknet", "lambdamart"} & set(long)
    assert {"memr", "gbdt", "domination"} <= set(long)
    assert "coordinate_ascent" not in names(documents=50_000)
    assert "ranknet" not in names(queries=10_000, documents=1_000_000)


def test_ratings_are_for_recommenders():
    assert names(ratings=True) == ["cofirank", "mmmf"]


# --- choosing --------------------------------------------------------------------------------


@pytest.mark.usefixtures("quick")
def test_the_values_are_those_of_folds_and_the_result_is_fitted_to_all():
    found = auto(DATA)
    for each in found.candidates:
        made = rw.ranker(each.ranker, **each.parameters)
        scored = rw.out_of_fold(made, DATA, 5, choose_rounds=True)
        (value,) = evaluate(DATA, scored.scores, "ndcg@10").values()
        assert each.value == pytest.approx(value)
        assert each.low < each.value < each.high
        assert each.seconds > 0.0
    memr, gbdt = found.candidates
    assert memr.weight + gbdt.weight == pytest.approx(1.0)
    assert isinstance(found.ranker, rw.Blend)
    assert found.ranker.weights_ == pytest.approx({"memr": memr.weight, "gbdt": gbdt.weight})
    rounds = rw.out_of_fold(rw.GBDT(**TREES), DATA, 5, choose_rounds=True).rounds_for(60)
    alone = [rw.MEMR().fit(DATA), rw.GBDT(**{**TREES, "n_estimators": rounds}).fit(DATA)]
    factors = found.ranker.model_.factors
    expected = sum(f * one.predict(DATA) for f, one in zip(factors, alone, strict=True))
    np.testing.assert_allclose(found.ranker.predict(DATA), expected, rtol=1e-12)


@pytest.mark.usefixtures("quick")
def test_validation_queries_are_dealt_to_folds_with_the_others():
    valid = curved_data(queries=20, seed=1)
    found = auto(DATA, eval_set=valid)
    pooled = auto(concatenate([DATA, valid], shared_ids=True))
    np.testing.assert_array_equal(found.ranker.predict(DATA), pooled.ranker.predict(DATA))
    assert "5 folds of 80 queries" in found.why
    weighted = DATA._replace(query_weight=np.linspace(1.0, 2.0, 60))
    other = auto(weighted, eval_set=valid)  # the weights of the training queries are kept
    assert (other.ranker.predict(DATA) != found.ranker.predict(DATA)).any()


@pytest.mark.usefixtures("quick")
def test_queries_that_are_in_both_sets_are_taken_once():
    alone = auto(DATA)
    for valid in (DATA, DATA.select(np.arange(7))):
        np.testing.assert_array_equal(
            auto(DATA, eval_set=valid).ranker.predict(DATA), alone.ranker.predict(DATA)
        )


@pytest.mark.usefixtures("quick")
def test_a_single_model_is_chosen_where_no_blend_is_wanted():
    found = auto(DATA, ensemble=False)
    best = max(found.candidates, key=lambda each: each.value)
    assert found.ranker.name == best.ranker
    assert [each.weight for each in found.candidates if each.weight] == [1.0]
    falls = auto(DATA, ensemble=False, metric="pair_error")
    least = min(falls.candidates, key=lambda each: each.value)
    assert falls.ranker.name == least.ranker


def test_one_ranker_is_kept_where_it_is_clearly_better_than_the_blend(monkeypatch):
    suit(monkeypatch, QUICK[0], ("prank", "other", "", {"n_passes": 1}))
    rng = np.random.default_rng(0)
    usual = rw.PRank.fit
    monkeypatch.setattr(
        rw.PRank,
        "fit",
        lambda self, X, *more, **named: usual(
            self, X._replace(y=rng.permutation(X.y)), *more, **named
        ),
    )
    found = auto(small_data(queries=60, documents=8))  # a line rules its grades
    assert found.ranker.name == "memr"
    assert found.candidates[0].weight == 1.0


def test_the_first_of_a_family_stands_for_it_unless_another_is_clearly_better(monkeypatch):
    like = {**TREES, "num_leaves": 14}
    suit(monkeypatch, QUICK[0], ("gbdt", "trees", "", TREES), ("xendcg", "trees", "", like))
    alike = auto(DATA)
    assert [each.weight > 0 for each in alike.candidates] == [True, True, False]
    weak = {"n_estimators": 1, "num_leaves": 2}
    suit(monkeypatch, QUICK[0], ("gbdt", "trees", "", weak), ("xendcg", "trees", "", TREES))
    better = auto(DATA)
    assert better.candidates[2].low > better.candidates[1].value
    assert [each.weight > 0 for each in better.candidates] == [True, False, True]


# --- the value of the choice -------------------------------------------------------------------


LINEAR = [(name, name, "") for name in ("memr", "linear_regression", "listnet")]


def noise(seed, queries=60):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, queries * 10).astype(float)
    X = rng.normal(size=(queries * 10, 8))
    return RankingData.from_arrays(X, y, qid=np.repeat(np.arange(queries), 10))


def test_the_choice_is_valued_on_queries_that_it_was_made_without(monkeypatch):
    suit(monkeypatch, *LINEAR)
    data = noise(0)
    found = auto(data, ensemble=False)
    per_query = np.array(
        [
            evaluate(data, rw.out_of_fold(name, data, 5).scores, "ndcg@10").per_query["ndcg@10"]
            for name, _, _ in LINEAR
        ]
    )
    by_hand = np.empty(60)
    for test in deal_queries(data, 5):
        others = np.setdiff1d(np.arange(60), test)
        by_hand[test] = per_query[per_query[:, others].mean(axis=1).argmax(), test]
    assert found.value == pytest.approx(by_hand.mean())
    assert found.value <= max(each.value for each in found.candidates)
    error = by_hand.std(ddof=1) / np.sqrt(60)
    assert found.high - found.low == pytest.approx(2 * 1.96 * np.sqrt(2.0) * error, rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("ensemble", [False, True])
def test_the_interval_of_the_choice_covers_the_truth_where_there_is_nothing_to_learn(
    monkeypatch, ensemble
):
    suit(monkeypatch, *LINEAR)
    many = noise(10**6, queries=20_000)
    scores = np.random.default_rng(1).normal(size=many.n_documents)
    truth = evaluate(many, scores, "ndcg@10")["ndcg@10"]
    found = [auto(noise(seed), ensemble=ensemble) for seed in range(200)]
    leads = np.array([each.value for each in found]) - truth
    assert abs(leads.mean()) < 2.5 * leads.std() / np.sqrt(200)
    assert np.mean([each.low <= truth <= each.high for each in found]) >= 0.92


@pytest.mark.usefixtures("quick")
def test_few_queries_are_dealt_more_than_once():
    found = auto(small_data(queries=20, documents=10))
    assert "5 folds of 20 queries, dealt 2 times" in found.why


@pytest.mark.usefixtures("quick")
def test_the_choice_is_the_same_for_any_number_of_threads():
    found = [auto(DATA, n_jobs=threads) for threads in (1, 2)]
    values = [[(each.value, each.weight) for each in one.candidates] for one in found]
    assert values[0] == values[1]
    np.testing.assert_array_equal(*(each.ranker.predict(DATA) for each in found))


@pytest.mark.usefixtures("quick")
def test_the_reason_names_the_data_the_choice_all_values_and_the_time():
    found = auto(DATA)
    assert found.why.startswith("60 queries of about 8 documents, 6 features, 3 grades: a blend of")
    for each in found.candidates:
        assert f"{each.ranker} ({each.weight:.2f})" in found.why
        assert f"{each.ranker} {each.value:.4f}" in found.why
    expected = f"{found.value:.4f}, 95 % interval [{found.low:.4f}, {found.high:.4f}]"
    assert f"Expected ndcg@10 of this choice on new queries: {expected}" in found.why
    for name in ("value", "low", "high"):
        assert found.to_dict()[name] == getattr(found, name)
    assert found.why.endswith(f"{found.seconds:.1f} seconds.")
    one = auto(DATA, ensemble=False)
    assert f"{one.ranker.name} (" in one.why


@pytest.mark.usefixtures("quick")
def test_arrays_are_taken_as_by_fit():
    again = auto(DATA.X, DATA.y, qid=DATA.query_of_row())
    np.testing.assert_array_equal(again.ranker.predict(DATA), auto(DATA).ranker.predict(DATA))


@pytest.mark.usefixtures("quick")
def test_too_few_queries_to_hold_any_out_leave_the_first_candidate():
    found = auto(small_data(queries=3))
    assert found.ranker.name == "memr"
    assert "chosen without evaluation: too few queries for folds; give validation" in found.why
    assert not found.evaluated
    assert not found.to_dict()["evaluated"]
    assert [each.value for each in found.candidates] == [None, None]


def test_a_candidate_that_cannot_take_the_data_is_left_out(monkeypatch):
    suit(monkeypatch, ("prank", "linear", ""), QUICK[1])
    data = DATA._replace(X=DATA.X.copy())
    data.X[0, 0] = np.nan
    found = auto(data)
    assert found.ranker.name == "gbdt"
    assert found.candidates[0] == Candidate("prank", "linear", "")
    assert "Not tried to the end: prank" in found.why
    suit(monkeypatch, ("prank", "linear", ""))
    with pytest.raises(DataError, match="missing"):
        auto(data)


def test_ratings_find_a_recommender():
    found = auto(ratings(), eval_set=ratings().select(slice(15)))
    assert found.ranker.name in ("cofirank", "mmmf")
    assert "20 users with 160 ratings" in found.why
    assert "on the validation set, which chose" in found.why
    assert found.value is None


# --- large data ------------------------------------------------------------------------------


def test_large_data_is_searched_by_halving(monkeypatch):
    monkeypatch.setattr(module, "_HALVED", 400)
    monkeypatch.setattr(module, "_SAMPLE", 100)
    like = [("gbdt", "trees", "", {**TREES, "num_leaves": n}) for n in (2, 3, 4, 5)]
    suit(monkeypatch, QUICK[0], *like)
    usual, fits = Ranker.fit, []

    def fit(self, data, *more, **named):
        fits.append((getattr(self, "num_leaves", 0), data.n_queries))
        return usual(self, data, *more, **named)

    monkeypatch.setattr(Ranker, "fit", fit)
    found = auto(DATA)
    sizes = sorted({size for _, size in fits})
    # of 12 and 50 sampled queries, and of all, a fifth is held out; of the others again a fifth
    # chooses how many trees
    assert sizes == [7, 9, 32, 38, 40, 48, 60]
    for size, many in zip(sizes, (4, 4, 2, 1, 2, 1, 1), strict=True):
        trees = {leaves for leaves, queries in fits if leaves and queries == size}
        assert len(trees) <= many
    assert "on queries held out" in found.why
    assert [each.share < 1 for each in found.candidates].count(True) == 3
    assert found.why.count("on a sample") == 3
    assert found.ranker.score(DATA) > 0.7


# --- the time limit --------------------------------------------------------------------------


class Clock:
    """Time that goes on by what each fit takes."""

    def __init__(self, monkeypatch, seconds):
        self.now = 0.0
        monkeypatch.setattr(time, "perf_counter", lambda: self.now)
        usual = Ranker.fit

        def fit(ranker, *data, progress, **named):
            for t in range(10):
                self.now += seconds[ranker.name] / 10
                progress(t, "")
            return usual(ranker, *data, **named)

        monkeypatch.setattr(Ranker, "fit", fit)


@pytest.mark.parametrize(
    ("limit", "tried", "blend"),
    [
        (1000, ["memr", "linear_regression", "listnet"], True),
        (45, ["memr", "linear_regression"], True),
        (16, ["memr"], False),
        (0.5, ["memr"], False),
    ],
)
def test_the_time_limit_is_kept_the_last_fits_included(monkeypatch, limit, tried, blend):
    suit(monkeypatch, ("memr", "a", ""), ("linear_regression", "b", ""), ("listnet", "c", ""))
    monkeypatch.setattr(module, "best_alone", lambda *_: None)
    clock = Clock(monkeypatch, {"memr": 1.0, "linear_regression": 3.0, "listnet": 20.0})
    found = auto(DATA, time_limit=limit)
    assert [each.ranker for each in found.candidates if each.value is not None] == tried
    assert isinstance(found.ranker, rw.Blend) == blend
    assert clock.now <= max(limit, 1.0) + 1e-9  # one fit in any case
    assert ("Ended by the time limit" in found.why) == (limit < 1000)
    assert ("fitted to 40% of the queries, not to all" in found.why) == (limit < 1)
    assert ("on a sample. " in found.why) == (limit < 1)
    assert found.evaluated
    assert (found.value is None) == (limit < 1)


def test_a_short_time_limit_evaluates_a_cheap_candidate_first(monkeypatch):
    suit(monkeypatch, ("gbrank", "a", ""), ("random_forest", "b", ""), ("gbdt", "a", "", TREES))
    monkeypatch.setattr(module, "_LOOK", 100)
    clock = Clock(monkeypatch, {"gbrank": 5.0, "random_forest": 5.0, "gbdt": 1.0})
    found = auto(DATA, time_limit=12)  # one fit to all data seems possible, a trial on them not
    assert found.ranker.name == "gbdt"
    assert found.evaluated
    by_name = {each.ranker: each for each in found.candidates}
    assert 0.0 < by_name["gbdt"].share < 1.0
    assert by_name["gbrank"].value is by_name["random_forest"].value is None
    assert found.value is None
    assert clock.now <= 12.0
    assert "Ended by the time limit. " in found.why
    assert found.ranker.data_digest_ == content_digest(DATA)


def test_the_sample_of_a_time_limit_grows_while_time_allows(monkeypatch):
    suit(monkeypatch, ("memr", "a", ""))
    monkeypatch.setattr(module, "_LOOK", 30)
    sizes = []
    clock = Clock(monkeypatch, {"memr": 10.0})
    timed = Ranker.fit

    def fit(self, data, **named):
        sizes.append(data.n_queries)
        return timed(self, data, **named)

    monkeypatch.setattr(Ranker, "fit", fit)
    found = auto(DATA, time_limit=70)
    assert sizes[:2] == [8, 12]
    assert found.evaluated
    assert clock.now <= 70.0


def test_the_time_limit_is_kept_where_there_are_no_folds(monkeypatch):
    clock = Clock(monkeypatch, {"cofirank": 3.0, "mmmf": 30.0})
    other = ratings()._replace(y=ratings().y[::-1].copy())
    found = auto(ratings(), eval_set=other, time_limit=10)
    assert found.ranker.name == "cofirank"
    assert clock.now <= 12.0
    assert "Ended by the time limit" in found.why


def test_a_time_limit_is_a_number_above_0():
    with pytest.raises(UsageError, match="time_limit must be above 0, not 0"):
        auto(DATA, time_limit=0)


# --- Ctrl-C ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("quick")
def test_ctrl_c_in_a_fit_keeps_the_best_so_far():
    def reported(_fit, fits, name, t, _text):
        assert fits == 5 + 10
        if name == "gbdt" and t == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as ended:
        auto(DATA, on_progress=reported)
    found = ended.value.chosen
    assert found.ranker.name == "memr"
    assert found.ranker.interrupted_
    assert "Ended by Ctrl-C; the ranker is fitted to 80% of the queries, not to all" in found.why


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
@pytest.mark.parametrize(("number", "valued"), [(3, []), (7, ["memr"]), (16, ["memr", "gbdt"])])
def test_ctrl_c_between_fits_keeps_those_before(number, valued, monkeypatch):
    stop_at(monkeypatch, number)
    with pytest.raises(KeyboardInterrupt) as ended:
        auto(DATA)
    found = ended.value.chosen
    assert [each.ranker for each in found.candidates if each.value is not None] == valued
    assert found.ranker.interrupted_
    assert found.evaluated == bool(valued)
    assert ("chosen without evaluation" in found.why) != found.evaluated
    assert found.ranker.name in ("memr", "gbdt")
    assert found.ranker.score(DATA) > 0.6


@pytest.mark.usefixtures("quick")
def test_ctrl_c_before_anything_is_fitted_leaves_nothing(monkeypatch):
    stop_at(monkeypatch, 1)
    with pytest.raises(KeyboardInterrupt):
        auto(DATA)


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
    assert auto(X, y, qid=np.arange(24) // 4).ranker.name in ("memr", "gbdt", "blend")


@pytest.mark.parametrize(("y", "qid", "sentence"), DEGENERATE.values(), ids=DEGENERATE)
def test_compare_warns_that_there_is_nothing_to_rank(y, qid, sentence, tmp_path):
    X = np.random.default_rng(0).normal(size=(24, 2))
    data = RankingData.from_arrays(X, y, qid=qid)
    with pytest.warns(UserWarning, match=f"nothing to rank in the test queries.*{sentence}"):
        rw.compare(data, "listnet", folds=3, cache=tmp_path, jobs=1)
