import catboost
import lightgbm
import numpy as np
import pytest
import xgboost
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from small_data import small_data

import rankwright as rw
from rankwright.comparison.compare import compare
from rankwright.comparison.entries import entries_of, parse_entry, selection
from rankwright.comparison.result import Entry
from rankwright.data.ranking_data import RankingData
from rankwright.data.rankings import Ranking
from rankwright.data.split import Fold, k_folds
from rankwright.errors import DataError, RankwrightError
from rankwright.metrics.evaluation import evaluate
from rankwright.rankers.base import ranker


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gbdt", Entry("gbdt", "gbdt", {})),
        ("gbdt:n_estimators=5", Entry("gbdt:n_estimators=5", "gbdt", {"n_estimators": 5})),
        (
            "few=lambdamart:n-estimators=5:normalize=false",
            Entry("few", "lambdamart", {"n_estimators": 5, "normalize": False}),
        ),
        ("ranksvm:l2=auto", Entry("ranksvm:l2=auto", "ranksvm", {"l2": "auto"})),
        ("a=gbdt:model.max_bins=63", Entry("a", "gbdt", {"model__max_bins": 63})),
        ("gbdt:targets=[0,1,3]", Entry("gbdt:targets=[0,1,3]", "gbdt", {"targets": (0, 1, 3)})),
    ],
)
def test_an_entry_is_a_name_with_parameters(text, expected):
    assert parse_entry(text) == expected


@pytest.mark.parametrize(
    ("text", "label", "kind"),
    [
        ("bm25=column:BM25", "bm25", "column BM25"),
        ("column:7", "column:7", "column 7"),
        (" a = column:x=y:z ", "a", "column x=y:z"),
    ],
)
def test_a_column_is_named_in_text(text, label, kind):
    (found,) = entries_of(text)
    assert (found.label, found.ranker, found.scorer.kind) == (label, kind, kind)


def test_commas_part_entries_but_not_lists():
    found = entries_of("gbdt:targets=[0,1,3],ranksvm")
    assert [entry.label for entry in found] == ["gbdt:targets=[0,1,3]", "ranksvm"]


def test_rankers_and_names_may_be_mixed_and_named():
    found = entries_of({"a": ranker("gbdt", n_estimators=5), "b": "ranksvm:l2=0.1"})
    assert found == (Entry("a", "gbdt", {"n_estimators": 5}), Entry("b", "ranksvm", {"l2": 0.1}))
    (own,) = entries_of(ranker("gbdt", n_estimators=5))
    assert own == Entry("gbdt:n_estimators=5", "gbdt", {"n_estimators": 5})


def test_parts_and_functions_have_readable_labels():
    def squared(scores, grades):
        return 0.5 * float(((scores - grades) ** 2).sum()), scores - grades

    def first_grade(scores, grades):
        return float(grades[scores.argmax()])

    loss, model = rw.losses.from_function(squared), rw.models.Trees(n_estimators=3)
    given = [
        rw.Ranker(loss=loss, model=model, metric=first_grade),
        rw.Ranker(loss=rw.losses.ListNet(k=3), solver=rw.solvers.LBFGS(tol=1e-8)),
        rw.GBDT(model=model),
    ]
    found = entries_of(given)
    assert [entry.label for entry in found] == [
        "ranker:loss=from_function(squared):metric=first_grade:model=Trees(n_estimators=3)",
        "ranker:loss=ListNet(k=3):solver=LBFGS(tol=1e-08)",
        "gbdt:model=Trees(n_estimators=3)",
    ]
    assert found[0].parameters == {"loss": loss, "model": model, "metric": first_grade}


@pytest.mark.parametrize(
    ("name", "expected"),
    [("lambdamart", {"select_metric": "map"}), ("ranksvm", {"metric": "map"})],
)
def test_the_metric_that_selects_goes_where_a_ranker_has_it(name, expected):
    assert selection(name, "map") == expected
    assert ranker(name, **selection(name, "map")).selection_metric == "map"


class _OwnModel(rw.models.Linear):
    """A model of no package."""


class _OwnRanker(rw.RankSVM):
    """A ranker of no package."""


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("gbdt,gbdt", "'gbdt' is listed twice"),
        ("gbdt:n_estimators", "takes key=value, not 'n_estimators'"),
        ("gbdt:n_estimator=3", "GBDT has no parameter 'n_estimator'; did you mean n_estimators"),
        ("lambdamrt", "no ranker 'lambdamrt'"),
        ("gbdt:convention=letor4", "convention is set for the whole comparison"),
        ([], "no ranker to compare"),
        ("gbdt:model.max_bin=63", "Trees has no parameter 'max_bin'; it is called max_bins here"),
        (rw.Ranker(loss=sum), "is not a loss: it has no bind"),
        (rw.Ranker(model=_OwnModel()), "_OwnModel has no registered name"),
        (_OwnRanker(), "_OwnRanker has no registered name"),
        ([3], "must be a name, a ranker, an estimator or fitted model .*, not int"),
        ([rw.MEMR], r"MEMR is a class; write MEMR\(\)"),
        ({"a": [[1.0]]}, "an array of scores, not list"),
        ({"a": np.zeros((2, 2))}, "has one dimension"),
        ({"a": np.array(["x"])}, "must hold numbers"),
        ("a=run:", "'run:' is followed by the name of a TREC run"),
        ("a=run:none.txt", "none.txt"),
        ("a=model:none.rw", "none.rw"),
        ([Ridge(), Ridge(alpha=2.0)], "'Ridge' is listed twice; give one another name"),
        (3, "must be names or rankers, not int"),
    ],
)
def test_wrong_entries_are_reported_in_a_sentence(given, sentence):
    with pytest.raises(RankwrightError, match=sentence):
        entries_of(given)


# --- scorers ---------------------------------------------------------------------------------
# Entries that are no named rankers: against fitting and scoring them by hand, fold by fold.


LGB = {"n_estimators": 8, "min_child_samples": 3, "verbose": -1, "n_jobs": 1}
XGB = {"n_estimators": 8, "max_depth": 3, "n_jobs": 1}


@pytest.fixture(scope="module")
def data():
    names = [f"d{row}" for row in range(240)]
    return small_data(queries=24, documents=10, doc_id=names)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


def scores_by_hand(data, by_hand):
    return [by_hand(*fold) for fold in k_folds(data, 3, seed=0)]


def codes(part):
    return np.repeat(np.arange(part.n_queries), part.sizes)


# --- estimators that are fitted in each fold ---------------------------------------------------


def ridge(train, valid, test):
    return Ridge().fit(train.X, train.y).predict(test.X)


def expected_grade(train, valid, test):
    fitted = RandomForestClassifier(10, random_state=0).fit(train.X, train.y)
    chances = fitted.predict_proba(test.X)
    return [sum(g * p for g, p in zip((0, 1, 2), row, strict=True)) for row in chances]


def pipeline(train, valid, test):
    fitted = make_pipeline(StandardScaler(), LogisticRegression()).fit(train.X, train.y)
    return fitted.predict_proba(test.X) @ [0, 1, 2]


def predicted_grade(train, valid, test):
    return LinearSVC(random_state=0).fit(train.X, train.y).predict(test.X)


def lgbm_ranker(train, valid, test):
    fitted = lightgbm.LGBMRanker(**LGB, random_state=0, early_stopping_rounds=2)
    fitted.fit(
        train.X, train.y, group=train.sizes,
        eval_X=valid.X, eval_y=valid.y, eval_group=[valid.sizes],
    )  # fmt: skip
    return fitted.predict(test.X)


def xgb_ranker(train, valid, test):
    fitted = xgboost.XGBRanker(**XGB, random_state=0, early_stopping_rounds=2)
    fitted.fit(
        train.X, train.y, qid=codes(train), eval_set=[(valid.X, valid.y)], eval_qid=[codes(valid)],
        verbose=False,
    )  # fmt: skip
    return fitted.predict(test.X)


def xgb_regressor(train, valid, test):
    fitted = xgboost.XGBRegressor(**XGB, random_state=0, early_stopping_rounds=2)
    fitted.fit(train.X, train.y, eval_set=[(valid.X, valid.y)], verbose=False)
    return fitted.predict(test.X)


def catboost_ranker(train, valid, test):
    fitted = catboost.CatBoostRanker(
        iterations=5, random_state=0, allow_writing_files=False, thread_count=1
    )
    pool = catboost.Pool(valid.X, valid.y, group_id=codes(valid))
    fitted.fit(train.X, train.y, group_id=codes(train), eval_set=pool, verbose=False)
    return fitted.predict(test.X)


def search(train, valid, test):
    fitted = GridSearchCV(Ridge(), {"alpha": [0.1, 100.0]}, cv=GroupKFold(2))
    return fitted.fit(train.X, train.y, groups=codes(train)).predict(test.X)


@pytest.mark.parametrize(
    ("estimator", "by_hand"),
    [
        (Ridge(), ridge),
        (RandomForestClassifier(10), expected_grade),
        (make_pipeline(StandardScaler(), LogisticRegression()), pipeline),
        (LinearSVC(), predicted_grade),
        (lightgbm.LGBMRanker(**LGB, early_stopping_rounds=2), lgbm_ranker),
        (xgboost.XGBRanker(**XGB, early_stopping_rounds=2), xgb_ranker),
        (xgboost.XGBRegressor(**XGB, early_stopping_rounds=2), xgb_regressor),
        (catboost.CatBoostRanker(iterations=5, allow_writing_files=False, thread_count=1),
         catboost_ranker),
        (GridSearchCV(Ridge(), {"alpha": [0.1, 100.0]}, cv=GroupKFold(2)), search),
    ],
    ids=lambda given: getattr(given, "__name__", ""),
)  # fmt: skip
def test_an_estimator_is_fitted_in_each_fold(estimator, by_hand, data, cache, capfd):
    found = compare(data, estimator, folds=3, cache=cache, metrics="ndcg@10")
    (label,) = found.rankers
    assert label == type(estimator).__name__
    for ours, expected in zip(found.scores[label], scores_by_hand(data, by_hand), strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-12)
    assert found.fits == 3
    assert found.seconds[label] > 0
    assert (found.sizes[label], found.models, found.notes) == (None, {}, {})
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize("last", [Ridge(), rw.MEMR()], ids=["ridge", "ranker"])
def test_a_pipeline_chooses_columns_by_name(last, data, cache):
    kinds = np.random.default_rng(0).integers(0, 2, data.n_documents).astype(float)
    named = RankingData.from_arrays(
        np.column_stack([data.X, kinds]), data.y, qid=np.repeat(data.qid, data.sizes),
        feature_names=[*"abcdef", "kind"], categories={"kind": ["new", "old"]},
    )  # fmt: skip
    columns = ColumnTransformer(
        [("scaled", StandardScaler(), ["b", "a"]), ("kind", OneHotEncoder(), ["kind"])]
    )
    entries = {"fitted in each fold": make_pipeline(columns, last)}
    found = compare(named, entries, folds=3, cache=cache, metrics="ndcg@10")
    assert found.failures == {}
    by_place = ColumnTransformer(
        [("scaled", StandardScaler(), [1, 0]), ("kind", OneHotEncoder(), [6])]
    )
    expected = []
    for train, _, test in k_folds(named, 3):
        made = make_pipeline(by_place, clone(last))
        with config_context(enable_metadata_routing=True):
            qid = {"qid": np.repeat(train.qid, train.sizes)} if isinstance(last, rw.MEMR) else {}
            made.fit(train.X, train.y, **qid)
        expected.append(made.predict(test.X))
    for ours, theirs in zip(found.scores["fitted in each fold"], expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)
    frame = named.to_frame().drop(columns=["qid", "label"])
    with config_context(enable_metadata_routing=True):
        qid = {"qid": np.repeat(named.qid, named.sizes)} if isinstance(last, rw.MEMR) else {}
        fitted = make_pipeline(columns, clone(last)).fit(frame, named.y, **qid)
    with pytest.warns(UserWarning, match="fitted before this comparison"):
        scored = compare(named, {"fitted": fitted}, folds=3, cache=cache, metrics="ndcg@10")
    assert scored.failures == {}


def test_an_estimator_stands_beside_our_rankers_and_is_tested_against_them(data, cache, tmp_path):
    given = {"ours": "linear_regression", "ridge": Ridge(), "far": Ridge(alpha=1e9)}
    found = compare(data, given, folds=3, cache=cache, metrics="ndcg@10")
    values = [
        evaluate(fold.test, scores, "ndcg@10").per_query["ndcg@10"]
        for fold, scores in zip(found.folds, found.scores["far"], strict=True)
    ]
    np.testing.assert_array_equal(found.per_query["far"]["ndcg@10"], np.concatenate(values))
    ours = found.per_query["ours"]["ndcg@10"]
    assert found.test("far", "ndcg@10").wins == int((np.concatenate(values) > ours + 1e-12).sum())
    assert found.rankers == ("ours", "ridge", "far")
    again = compare(data, given, folds=3, cache=cache, metrics="ndcg@10")
    assert again.fits == 6  # ours is in the cache, others are fitted anew
    assert again.runs["far"][0].parameters["alpha"] == 1e9


def test_the_given_estimator_is_left_as_it_was(data, cache):
    given = Ridge(solver="sag")
    compare(data, given, folds=3, cache=cache, metrics="map")
    assert not hasattr(given, "coef_")
    assert given.random_state is None


def test_weights_and_sparse_features_reach_the_estimator(cache):
    plain = small_data(queries=12, documents=8)
    weight = np.random.default_rng(0).random(plain.n_documents)
    X = sparse.csr_array(np.where(plain.X > 0.5, plain.X, 0.0))
    data = RankingData.from_arrays(
        X, plain.y, qid=codes(plain), sample_weight=weight, query_weight=np.arange(1.0, 13.0)
    )
    estimators = {"ridge": Ridge(), "lgb": lightgbm.LGBMRegressor(**LGB)}
    found = compare(data, estimators, folds=3, cache=cache, metrics="map")
    for number, (train, _, test) in enumerate(k_folds(data, 3, seed=0)):
        weights = train.sample_weight * np.repeat(train.query_weight, train.sizes)
        fitted = Ridge().fit(sparse.csr_matrix(train.X), train.y, sample_weight=weights)
        expected = fitted.predict(sparse.csr_matrix(test.X))
        np.testing.assert_allclose(found.scores["ridge"][number], expected)


@pytest.mark.filterwarnings("ignore:Found .eval_at. in params")
def test_learning_curves_of_other_libraries_are_kept(data, cache):
    given = {
        "lgb": lightgbm.LGBMRanker(**LGB, metric="ndcg", eval_at=[5], early_stopping_rounds=3),
        "xgb": xgboost.XGBRanker(**XGB, eval_metric="ndcg@5", early_stopping_rounds=3),
    }
    found = compare(data, given, folds=3, cache=cache, metrics="ndcg@5")
    for label in given:
        for run in found.runs[label]:
            values = run.curve["valid ndcg@5"]
            assert run.best_iteration == 1 + int(np.argmax(values))
        assert found.learning_curve(label)["metric"] == "ndcg@5"


class Broken(Ridge):
    def fit(self, X, y, sample_weight=None):
        raise RuntimeError("it does not work\nat all")


class Endless(Ridge):
    def predict(self, X):
        return np.full(len(X), np.inf)


class Wide(Ridge):
    def predict(self, X):
        return np.zeros((len(X), 2))


@pytest.mark.parametrize(
    ("estimator", "sentence"),
    [
        (Broken(), "RuntimeError: it does not work"),
        (Endless(), "its scores are not all finite numbers"),
        (Wide(), r"its predictions have the shape \(80, 2\) where one score for each of 80"),
    ],
)
def test_an_estimator_that_fails_is_named_and_the_others_go_on(estimator, sentence, data, cache):
    found = compare(data, {"it": estimator, "ridge": Ridge()}, folds=3, cache=cache)
    assert found.rankers == ("ridge",)
    with pytest.raises(DataError, match=sentence):
        raise DataError(found.failures["it"])


# --- fitted models -----------------------------------------------------------------------------


def test_boosters_and_fitted_rankers_are_only_scored(data, cache):
    xgb_data = xgboost.DMatrix(data.X, data.y, qid=codes(data))
    lgb_data = lightgbm.Dataset(data.X, data.y, group=data.sizes)
    lgb_parameters = {"objective": "lambdarank", "verbose": -1, "min_child_samples": 3}
    fitted = {
        "xgboost": xgboost.train({"objective": "rank:ndcg"}, xgb_data, 4),
        "lightgbm": lightgbm.train(lgb_parameters, lgb_data, 4),
        "sklearn": Ridge().fit(data.X, data.y),
        "ours": rw.MEMR().fit(data),
    }
    with pytest.warns(
        UserWarning, match="was fitted before this comparison and is only"
    ) as reported:
        found = compare(data, fitted, folds=3, cache=cache, metrics="ndcg@10")
    assert len(reported) == 4
    assert (found.fits, found.seconds["ours"]) == (0, None)
    assert set(found.notes) == set(fitted)
    assert "ours: fitted before this comparison, only scored here" in str(found)
    for number, fold in enumerate(found.folds):
        expected = {
            "xgboost": fitted["xgboost"].predict(xgboost.DMatrix(fold.test.X)),
            "lightgbm": fitted["lightgbm"].predict(fold.test.X),
            "sklearn": fitted["sklearn"].predict(fold.test.X),
            "ours": fitted["ours"].predict(fold.test),
        }
        for label, scores in expected.items():
            np.testing.assert_array_equal(found.scores[label][number], scores)


def test_an_imported_model_its_booster_and_the_library_refitted_in_one(data, cache, tmp_path):
    given = {}
    for name, fitted in {
        "lgb": lightgbm.LGBMRanker(**LGB, random_state=0).fit(data.X, data.y, group=data.sizes),
        "xgb": xgboost.XGBRanker(**XGB, random_state=0).fit(data.X, data.y, qid=codes(data)),
    }.items():
        booster = getattr(fitted, "booster_", None) or fitted.get_booster()
        path = tmp_path / {"lgb": "lgb.txt", "xgb": "xgb.json"}[name]
        booster.save_model(path)
        given[f"{name} imported"] = rw.load_model(path)
        given[f"{name} file"] = f"model:{path}"
        given[f"{name} booster"] = booster
        given[f"{name} fitted"] = fitted
    given["lgb again"] = lightgbm.LGBMRanker(**LGB)
    given["xgb again"] = xgboost.XGBRanker(**XGB)
    with pytest.warns(UserWarning, match="was fitted before this comparison"):
        found = compare(data, given, folds=3, cache=cache, metrics="ndcg@10")
    assert found.rankers == tuple(given)
    assert found.failures == {}
    assert found.fits == 6  # of the two that are fitted again
    for number, fold in enumerate(found.folds):
        for name in ("lgb", "xgb"):
            expected = given[f"{name} fitted"].predict(fold.test.X)
            for how in ("imported", "file", "booster", "fitted"):
                np.testing.assert_array_equal(found.scores[f"{name} {how}"][number], expected)
    by_hand = {
        "lgb again": lambda train, test: (
            lightgbm.LGBMRanker(**LGB, random_state=0)
            .fit(train.X, train.y, group=train.sizes)
            .predict(test.X)
        ),
        "xgb again": lambda train, test: (
            xgboost.XGBRanker(**XGB, random_state=0)
            .fit(train.X, train.y, qid=codes(train))
            .predict(test.X)
        ),
    }
    for label, scores in by_hand.items():
        for ours, fold in zip(found.scores[label], found.folds, strict=True):
            np.testing.assert_array_equal(ours, scores(fold.train, fold.test))
    result = found.test("lgb again", "ndcg@10")
    assert result.losses > result.wins  # of what had seen the test queries


def test_a_ranker_fitted_to_the_train_part_alone_is_not_suspected(data, cache, tmp_path):
    fold = next(iter(k_folds(data, 3)))
    fitted = rw.MEMR().fit(fold.train, eval_set=fold.valid)
    fitted.save(tmp_path / "model.rw")
    found = compare(fold, {"mine": f"model:{tmp_path / 'model.rw'}"}, cache=cache)  # no warning
    np.testing.assert_array_equal(found.scores["mine"][0], fitted.predict(fold.test))
    assert found.entries[0].ranker == "model file model.rw"


# --- scores that are there already -------------------------------------------------------------


def test_a_column_is_a_feature_by_name_or_number(cache):
    names = [f"f{k}" for k in range(6)]
    data = small_data(queries=12, documents=8, feature_names=names)
    found = compare(data, "a=column:f1,column:2", folds=3, cache=cache, metrics="map")
    for number, fold in enumerate(found.folds):
        for label in ("a", "column:2"):
            np.testing.assert_array_equal(found.scores[label][number], fold.test.X[:, 1])
    found = compare(data, "a=column:BM25,b=column:f0", folds=3, cache=cache, metrics="map")
    assert "there is no feature 'BM25'" in found.failures["a"]


def test_a_missing_value_ranks_last(cache):
    data = small_data(queries=12, documents=8)
    data.X[::8, 0] = np.nan
    found = compare(data, "column:1", folds=3, cache=cache, metrics="map")
    for fold, scores in zip(found.folds, found.scores["column:1"], strict=True):
        assert np.flatnonzero(scores == scores.min()).tolist() == list(range(0, len(scores), 8))
        kept = ~np.isnan(fold.test.X[:, 0])
        np.testing.assert_array_equal(scores[kept], fold.test.X[kept, 0])


def test_an_array_is_in_the_callers_order_of_rows(cache):
    """Rows come shuffled, so that queries are scattered."""
    plain = small_data(queries=12, documents=8)
    order = np.random.default_rng(1).permutation(plain.n_documents)
    X, y, qid = plain.X[order], plain.y[order], codes(plain)[order]
    data = RankingData.from_arrays(X, y, qid=qid)
    found = compare(data, {"mine": X[:, 2]}, folds=3, cache=cache, metrics="map")
    for fold, scores in zip(found.folds, found.scores["mine"], strict=True):
        np.testing.assert_array_equal(scores, fold.test.X[:, 2])


def test_an_array_for_given_folds_holds_their_test_parts(data, cache):
    folds = list(k_folds(data, 3))
    scores = np.concatenate([fold.test.X[:, 0] for fold in folds])
    found = compare(folds, {"mine": scores}, cache=cache, metrics="map")
    for fold, ours in zip(folds, found.scores["mine"], strict=True):
        np.testing.assert_array_equal(ours, fold.test.X[:, 0])
    for wrong in (scores[:-1], np.append(scores, 0.0)):
        with pytest.raises(DataError, match=f"the array has {len(wrong)} scores for 240 rows"):
            compare(folds, {"mine": wrong}, cache=cache)


def test_an_array_of_another_length_is_refused(data, cache):
    with pytest.raises(DataError, match="the array has 239 scores for 240 rows; give one for each"):
        compare(data, {"mine": np.zeros(239)}, folds=3, cache=cache)


def test_a_run_is_matched_by_query_and_document(data, cache, tmp_path):
    scores = np.random.default_rng(2).random(data.n_documents)
    Ranking.of(data, scores).to_trec(tmp_path / "run.txt")
    found = compare(
        data, {"run": f"run:{tmp_path / 'run.txt'}", "array": scores}, folds=3, cache=cache
    )
    for of_run, of_array in zip(found.scores["run"], found.scores["array"], strict=True):
        np.testing.assert_array_equal(of_run, of_array)
    assert found.notes == {}


def test_documents_that_a_run_lacks_rank_last_and_others_are_left_out(cache, tmp_path):
    data = RankingData.from_arrays(
        np.zeros((6, 1)), [1, 0, 2, 0, 1, 0], qid=[1, 1, 1, 2, 2, 2], doc_id=list("abcdef")
    )
    lines = [
        "1 Q0 b 1 -3.5 x",
        "1 Q0 a 2 -4.5 x",
        "1 Q0 zzz 3 -9 x",
        "2 Q0 e 1 7 x",
        "3 Q0 a 1 1 x",
    ]
    (tmp_path / "run.txt").write_text("\n".join(lines))
    found = compare(
        Fold(data, None, data), f"it=run:{tmp_path / 'run.txt'}", cache=cache, metrics="p@1,map"
    )
    b, a, c = found.scores["it"][0][[1, 0, 2]]
    assert b > a > c
    assert found.per_query["it"]["p@1"].tolist() == [0.0, 1.0]
    assert found.notes["it"] == "the run has no score for 3 of 6 test documents, which rank last"


def test_a_run_of_other_documents_is_an_error(data, cache, tmp_path):
    (tmp_path / "run.txt").write_text("q9 Q0 d1 1 0.5 x\n")
    with pytest.raises(DataError, match="has no document of the test queries by its query and"):
        compare(data, f"it=run:{tmp_path / 'run.txt'}", folds=3, cache=cache)
