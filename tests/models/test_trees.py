import lightgbm as lgb
import numpy as np
import pytest
from cases import each
from forests import as_bytes
from scipy import sparse
from small_data import small_data

from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError
from rankwright.losses.squared import Squared
from rankwright.models.trees import Trees
from rankwright.rankers.base import Ranker, ranker

DATA = small_data()


def rounds(trees=None, data=DATA, valid=None, **more):
    return list((trees or Trees(n_estimators=5)).rounds(Squared(), data, valid, **more))


def fit(*args, **more):
    return rounds(*args, **more)[-1].model()


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
    assert model.offset == pytest.approx(DATA.y.mean())
    difference = model.scores(DATA.X) - model.booster.predict(DATA.X)
    assert np.ptp(difference) < 1e-12


@pytest.mark.parametrize("threads", [2, 5])
def test_the_number_of_threads_changes_no_byte(threads):
    weights = np.exp(np.random.default_rng(0).normal(size=DATA.n_documents) * 3)
    data = small_data(sample_weight=weights)
    assert as_bytes(fit(data=data, n_jobs=threads)) == as_bytes(fit(data=data, n_jobs=1))


def test_shuffled_rows_give_the_same_trees():
    rows = np.random.default_rng(1).permutation(DATA.n_documents)
    shuffled = RankingData.from_arrays(DATA.X[rows], DATA.y[rows], qid=DATA.query_of_row()[rows])
    assert as_bytes(fit(data=shuffled)) == as_bytes(fit())


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
    assert as_bytes(rest) == as_bytes(whole)


def test_rounds_count_on_from_the_rounds_of_the_start():
    found = rounds(Trees(n_estimators=3), start=fit(Trees(n_estimators=2)))
    assert [one.number for one in found] == [3, 4, 5]
    assert [one.model().n_trees for one in found] == [3, 4, 5]


def test_a_fraction_of_the_features_limits_each_tree():
    model = fit(Trees(n_estimators=8, colsample_bytree=0.34))
    frame = model.booster.trees_to_dataframe()
    used = frame.dropna(subset=["split_feature"]).groupby("tree_index").split_feature.nunique()
    assert (used <= 2).all()
    assert frame.split_feature.nunique() > 2


def test_each_round_has_its_model_and_its_scores():
    valid = small_data(seed=5)
    found = rounds(Trees(n_estimators=10), valid=valid)
    model = found[2].model()
    assert model.n_trees == 3
    np.testing.assert_allclose(model.scores(valid.X), found[2].valid_scores, atol=1e-12)
    losses = [Squared().bind(DATA).value(one.model().scores(DATA.X)) for one in found]
    np.testing.assert_allclose([one.loss for one in found[1:]], losses[:-1])


def test_a_resumed_run_rebuilds_its_rounds_and_continues_with_the_same_bytes():
    trees, valid = Trees(n_estimators=6, subsample=0.5), small_data(seed=5)
    whole = rounds(trees, valid=valid)
    states = [one.state() for one in trees.rounds(Squared(), DATA, valid)]
    again = rounds(trees, valid=valid, resume=states[2])
    for one, two in zip(whole, again, strict=True):
        assert as_bytes(one.model()) == as_bytes(two.model())
    assert [one.loss for one in again[3:]] == [one.loss for one in whole[3:]]
    assert (again[-1].valid_scores == whole[-1].valid_scores).all()


def test_damaged_trees_of_a_checkpoint_are_refused():
    state = next(Trees(n_estimators=2).rounds(Squared(), DATA)).state()
    for name, value in (
        ("counts", np.array([1, 1])),
        ("trees.left", np.zeros(13, np.int32)),
    ):
        with pytest.raises(DataError):
            rounds(resume={**state, name: value})


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


def test_arrays_restore_the_model():
    model = fit()
    again = Trees.restore(model.arrays(), model.texts(), model.n_features)
    assert as_bytes(again) == as_bytes(model)
    assert (again.scores(DATA.X) == model.scores(DATA.X)).all()


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


def test_trees_go_on_from_the_scores_that_one_long_run_has():
    data = small_data(queries=40)
    whole = rounds(Trees(n_estimators=9), data, valid=data)
    half = whole[4].model()
    again = rounds(Trees(n_estimators=4), data, start=half)
    assert as_bytes(again[-1].model()) == as_bytes(whole[-1].model())
    assert [one.loss for one in again] == [one.loss for one in whole[5:]]
    assert (half.running_scores(data.X) == whole[4].valid_scores).all()
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
    kinds = {"num_leaves": "whole number", "learning_rate": "number", "colsample_bytree": "number"}
    for name, kind in kinds.items():
        with pytest.raises(UsageError, match=f"{name} must be a {kind} or 'auto', not 'small'"):
            Ranker("squared", Trees(**{name: "small"})).make_model()


@each("name", ["lambdamart", "gbdt", "random_forest", "intervalrank"])
def test_features_that_are_zero_everywhere_make_one_score(name):
    data = RankingData.from_arrays(np.zeros((3, 2)), [0, 1, 2], qid=[7] * 3)
    scores = ranker(name).fit(data).predict(data)
    assert (scores == scores[0]).all()
