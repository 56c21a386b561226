import lightgbm as lgb
import numpy as np
import pytest
from cases import each
from scipy import sparse
from small_data import Onlooker, small_data

from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError
from rankwright.losses.squared import Squared
from rankwright.models.trees import Trees
from rankwright.rankers.base import Ranker, ranker

DATA = small_data()


def fit(trees=None, data=DATA, callback=None, **more):
    return (trees or Trees(n_estimators=5)).fit(
        Squared(), data, callback=callback or Onlooker(), **more
    )


def test_squared_error_gives_lightgbms_own_regression_trees():
    ours = fit(Trees(n_estimators=20, num_leaves=7, learning_rate=0.2, colsample_bytree=1.0))
    params = {
        "objective": "regression", "num_leaves": 7, "learning_rate": 0.2, "verbosity": -1,
        "deterministic": True, "force_row_wise": True,
    }  # fmt: skip
    theirs = lgb.train(params, lgb.Dataset(DATA.X, DATA.y), 20)
    np.testing.assert_allclose(ours.scores(DATA.X), theirs.predict(DATA.X), atol=1e-6)


def test_the_initial_score_is_the_mean_and_is_added_back():
    model = fit()
    assert model.initial == pytest.approx(DATA.y.mean())
    difference = model.scores(DATA.X) - model.booster.predict(DATA.X)
    assert np.ptp(difference) < 1e-12


@pytest.mark.parametrize("threads", [2, 5])
def test_the_number_of_threads_changes_no_byte(threads):
    weights = np.exp(np.random.default_rng(0).normal(size=DATA.n_documents) * 3)
    data = small_data(sample_weight=weights)
    assert fit(data=data, n_jobs=threads).text == fit(data=data, n_jobs=1).text


def test_shuffled_rows_give_the_same_trees():
    rows = np.random.default_rng(1).permutation(DATA.n_documents)
    shuffled = RankingData.from_arrays(DATA.X[rows], DATA.y[rows], qid=DATA.query_of_row()[rows])
    assert fit(data=shuffled).text == fit().text


def test_sparse_data_give_the_same_trees_as_dense():
    X = np.where(np.abs(DATA.X) > 1, DATA.X, 0.0)
    dense = RankingData.from_arrays(X, DATA.y, qid=DATA.query_of_row())
    thin = RankingData.from_arrays(sparse.csr_array(X), DATA.y, qid=DATA.query_of_row())
    np.testing.assert_allclose(fit(data=thin).scores(thin.X), fit(data=dense).scores(X), atol=1e-9)


@pytest.mark.parametrize(
    "trees",
    [
        Trees(n_estimators=6),
        Trees(n_estimators=6, colsample_bytree=0.5, subsample=0.7, query_fraction=0.8),
    ],
)
def test_continuing_ends_where_an_uninterrupted_run_does(trees):
    from dataclasses import replace

    whole = fit(trees)
    half = fit(replace(trees, n_estimators=2))
    rest = fit(replace(trees, n_estimators=4), start=half)
    assert rest.text == whole.text


def test_rounds_count_on_from_the_trees_of_the_start():
    class Counting(Onlooker):
        rounds = ()

        def on_iteration(self, t, *more):
            self.rounds = (*self.rounds, t)
            return super().on_iteration(t, *more)

    callback = Counting(keep=4)
    kept = fit(Trees(n_estimators=3), start=fit(Trees(n_estimators=2)), callback=callback)
    assert callback.rounds == (3, 4, 5)
    assert kept.n_trees == 4


def test_a_fraction_of_the_features_limits_each_tree():
    model = fit(Trees(n_estimators=8, colsample_bytree=0.34))
    frame = model.booster.trees_to_dataframe()
    used = frame.dropna(subset=["split_feature"]).groupby("tree_index").split_feature.nunique()
    assert (used <= 2).all()
    assert frame.split_feature.nunique() > 2


def test_the_best_round_is_kept():
    callback = Onlooker(valid=small_data(seed=5), keep=3)
    model = fit(Trees(n_estimators=10), callback=callback)
    assert model.n_trees == 3
    np.testing.assert_allclose(model.scores(callback.valid.X), callback.valid_scores[2], atol=1e-12)
    np.testing.assert_allclose(model.scores(DATA.X), callback.train_scores[2], atol=1e-12)


def test_the_watch_may_end_the_run():
    assert fit(Trees(n_estimators=10), callback=Onlooker(stop_at=4)).n_trees == 4


def test_ctrl_c_keeps_the_trees_so_far():
    class Interrupting(Onlooker):
        def on_iteration(self, t, *more):
            if t == 4:
                raise KeyboardInterrupt
            return super().on_iteration(t, *more)

    callback = Interrupting()
    assert fit(Trees(n_estimators=10), callback=callback).n_trees == 3
    assert callback.interrupted


def test_lists_and_grades_beyond_lightgbms_limits():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(10_500, 3)), rng.integers(0, 200, 10_500)
    data = RankingData.from_arrays(X, y, group_sizes=[10_500])
    assert fit(Trees(n_estimators=2), data=data).n_trees == 2


def test_missing_values_and_categories_are_learnt_from():
    rng = np.random.default_rng(0)
    category = rng.integers(0, 6, 600).astype(float)
    hole = np.where(rng.random(600) < 0.5, np.nan, 0.0)
    y = (category % 2) + np.isnan(hole)
    data = RankingData.from_arrays(
        np.column_stack([category, hole]), y, group_sizes=[30] * 20, feature_names=["kind", "hole"]
    )
    model = fit(Trees(n_estimators=60, learning_rate=0.3, categorical_feature=["kind"]), data=data)
    assert np.abs(model.scores(data.X) - y).max() < 0.05


def test_monotone_features_never_turn():
    model = fit(Trees(n_estimators=30, monotone_constraints={0: -1, 1: 1}))
    grid = np.zeros((50, 6))
    for column, sign in ((0, -1), (1, 1)):
        line = grid.copy()
        line[:, column] = np.linspace(-3, 3, 50)
        assert (np.diff(model.scores(line)) * sign >= 0).all()


def test_shap_values_add_up_to_the_score():
    model = fit()
    np.testing.assert_allclose(model.contributions(DATA.X).sum(1), model.scores(DATA.X), atol=1e-9)


def test_importance_finds_the_features_that_matter():
    model = fit(Trees(n_estimators=20))
    for kind in ("gain", "split"):
        assert (model.importance(kind) == model.booster.feature_importance(kind)).all()
        assert set(np.argsort(-model.importance(kind))[:2]) == {0, 1}


def test_arrays_and_texts_restore_the_model():
    model = fit()
    again = Trees.restore(model.arrays(), model.texts(), model.n_features)
    assert (again.scores(DATA.X) == model.scores(DATA.X)).all()


@pytest.mark.parametrize(
    ("line", "damaged"),
    [
        ("num_tree_per_iteration=1", "num_tree_per_iteration=0"),
        ("num_class=1", "num_class=9"),
        ("max_feature_idx=5", "max_feature_idx=1"),
        ("max_feature_idx=5\n", ""),
        ("Column_0 ", ""),
        ("label_index=0", "label_index=0\nmax_feature_idx=1"),
    ],
)
def test_a_head_that_lightgbm_would_believe_is_refused(line, damaged):
    model = fit()
    text = model.text.replace(line, damaged, 1)
    assert text != model.text
    with pytest.raises(DataError, match="the text of the trees has"):
        Trees.restore(model.arrays(), {"lightgbm": text}, model.n_features)


def test_the_booster_has_the_sizes_of_its_trees_whatever_the_text_says():
    model = fit()
    text = model.text.replace("tree_sizes=", "tree_sizes=1000000 ", 1)
    again = Trees.restore(model.arrays(), {"lightgbm": text}, model.n_features)
    assert (again.booster.predict(DATA.X) == model.booster.predict(DATA.X)).all()


@pytest.mark.parametrize(
    ("trees", "sentence"),
    [
        (Trees(monotone_constraints=[1]), "monotone_constraints has 1 signs for 6 features"),
        (Trees(monotone_constraints={"price": 1}), "no feature 'price'"),
        (Trees(categorical_feature=[9]), "no feature 9"),
        (Trees(leaves="newtn"), "no leaves 'newtn'; did you mean newton"),
        (Trees(direction="bfgs"), "no direction 'bfgs'; did you mean lbfgs"),
    ],
)
def test_wrong_columns_and_words_are_reported(trees, sentence):
    with pytest.raises(UsageError, match=sentence):
        fit(trees)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"reg_lambda": -1.0}, "reg_lambda must be 0 or more, not -1.0"),
        ({"reg_alpha": -1.0}, "reg_alpha must be 0 or more, not -1.0"),
        ({"min_child_weight": -0.1}, "min_child_weight must be 0 or more, not -0.1"),
        ({"min_child_samples": -1}, "min_child_samples must be 0 or more, not -1"),
        ({"num_leaves": 200_000}, "num_leaves must be from 2 to 131,072, not 200000"),
        ({"max_bins": 1}, "max_bins must be 2 or more, not 1"),
        ({"max_depth": 0}, "max_depth must be 1 or more, not 0; leave it out for no limit"),
        ({"subsample": 80.0}, "subsample must be a share above 0, up to 1 for all, not 80.0"),
        ({"colsample_bytree": 0.0}, "colsample_bytree must be a share above 0"),
    ],
)
def test_what_lightgbm_would_not_take_is_reported_before_there_are_data(parameters, sentence):
    made = Ranker("squared", Trees(**parameters))
    with pytest.raises(UsageError, match=sentence):
        made.make_model()
    with pytest.raises(UsageError, match=sentence):
        fit(Trees(**parameters))


def test_trees_go_on_from_the_scores_that_one_long_run_has():
    data = small_data(queries=40)
    callback = Onlooker()
    whole = fit(Trees(n_estimators=9), data, callback)
    half = fit(Trees(n_estimators=5), data)
    again = Onlooker()
    assert fit(Trees(n_estimators=4), data, again, start=half).text == whole.text
    assert again.values == callback.values[5:]
    assert (half.running_scores(data.X) == callback.train_scores[4]).all()
    np.testing.assert_allclose(half.running_scores(data.X), half.scores(data.X), rtol=1e-12)


def test_what_is_auto_goes_by_documents_and_queries():
    """Equation (1): a = 0 for small data, 1 for large, 1/2 at their geometric mean."""
    middle = (20_000 * 100_000) ** 0.5
    for documents, queries, a in (
        (1, 1, 0.0), (20_000, 900, 0.0), (10**6, 200, 0.0), (10**6, 10**4, 1.0),
        (round(middle), 10**4, 0.5), (10**6, round(middle / 100), 0.5),
    ):  # fmt: skip
        found = Trees().resolve(documents, queries)
        assert found.num_leaves == round(7 * (31 / 7) ** a)
        assert found.learning_rate == pytest.approx(0.05 * 2**a, rel=1e-2)
        assert found.colsample_bytree == pytest.approx(0.5 ** (1 - a), rel=1e-2)
    given = Trees(num_leaves=5, learning_rate=0.3, colsample_bytree=0.9)
    assert given.resolve(10, 10) == given


def test_words_other_than_auto_are_refused():
    for name in ("num_leaves", "learning_rate", "colsample_bytree"):
        with pytest.raises(UsageError, match=f"{name} must be a number or 'auto', not 'small'"):
            fit(Trees(**{name: "small"}))


@each("name", ["lambdamart", "gbdt", "random_forest", "intervalrank"])
def test_features_that_are_zero_everywhere_make_one_score(name):
    data = RankingData.from_arrays(np.zeros((3, 2)), [0, 1, 2], qid=[7] * 3)
    scores = ranker(name).fit(data).predict(data)
    assert (scores == scores[0]).all()
