"""Imported models score as LightGBM, XGBoost and CatBoost themselves do, to the last bit."""

import json

import lightgbm
import numpy as np
import pytest
from other_models import CATEGORY, QID, SIZES, rows, training_data
from scipy import sparse

import rankwright as rw

xgboost = pytest.importorskip("xgboost")
catboost = pytest.importorskip("catboost")

X, Y = training_data()


def _equal(ranker, theirs, Z):
    np.testing.assert_array_equal(ranker.predict(Z), np.asarray(theirs, np.float64))


def _in_all_forms(ranker, predict, Z):
    """Compare on float64, float32 and sparse rows."""
    _equal(ranker, predict(Z), Z)
    with np.errstate(over="ignore", under="ignore"):
        single = Z.astype(np.float32)
    single = single[~np.isinf(single).any(axis=1)]
    _equal(ranker, predict(single), single)
    few = np.where(np.random.default_rng(3).random(Z.shape) < 0.5, 0.0, Z)
    _equal(ranker, predict(sparse.csr_matrix(few)), sparse.csr_array(few))


# --- LightGBM ------------------------------------------------------------------------------------

LIGHTGBM = {
    "lambdarank": {"objective": "lambdarank"},
    "xendcg": {"objective": "rank_xendcg"},
    "regression": {"objective": "regression"},
    "no average": {"objective": "regression", "boost_from_average": False},
    "categories": {"objective": "lambdarank", "categorical_feature": [CATEGORY], "cat_smooth": 1},
    "zeros": {"objective": "regression", "zero_as_missing": True},
    "no missing": {"objective": "regression", "use_missing": False},
    "dart": {"objective": "lambdarank", "boosting": "dart", "drop_rate": 0.5},
    "forest": {"objective": "regression", "boosting": "rf", "bagging_freq": 1,
               "bagging_fraction": 0.5},
    "deep": {"objective": "regression", "num_leaves": 200, "min_data_in_leaf": 1},
    "stumps": {"objective": "regression", "min_data_in_leaf": 400},
}  # fmt: skip


def _lightgbm(params, rounds=12):
    params = {"num_leaves": 15, "min_data_in_leaf": 5, "verbosity": -1, "num_threads": 1, **params}
    category = params.pop("categorical_feature", "auto")
    data = lightgbm.Dataset(X, Y, group=SIZES, categorical_feature=category)
    return lightgbm.train(params, data, rounds)


@pytest.mark.parametrize("name", LIGHTGBM)
def test_lightgbm(name, tmp_path):
    booster = _lightgbm(LIGHTGBM[name])
    path = tmp_path / "model.txt"
    booster.save_model(path)
    ranker = rw.load_model(path)
    dump = booster.trees_to_dataframe()["threshold"].dropna()
    cuts = [float(t) for t in dump if "||" not in str(t)][:20]
    _in_all_forms(ranker, booster.predict, rows(cuts))
    Z = rows(cuts, infinite=True)
    np.testing.assert_array_equal(ranker.model_.scores(Z), booster.predict(Z))
    _equal(rw.import_model(booster), booster.predict(Z[:50]), Z[:50])
    ranker.save(tmp_path / "model.rw")
    _equal(rw.load_model(tmp_path / "model.rw"), booster.predict(X), X)


def test_lightgbm_scores_before_the_sigmoid_of_a_binary_objective():
    booster = lightgbm.train(
        {"objective": "binary", "verbosity": -1}, lightgbm.Dataset(X, Y > 1), 5
    )
    _equal(rw.import_model(booster), booster.predict(X, raw_score=True), X)


def test_lightgbm_stops_at_its_best_iteration(tmp_path):
    rng = np.random.default_rng(0)
    params = {"objective": "lambdarank", "learning_rate": 0.5, "verbosity": -1, "num_leaves": 4}
    train = lightgbm.Dataset(X, Y, group=SIZES)
    valid = lightgbm.Dataset(X, rng.permutation(Y), group=SIZES, reference=train)
    stop = lightgbm.early_stopping(5, verbose=False)
    booster = lightgbm.train(
        params, train, 40, valid_sets=[valid], callbacks=[stop], keep_training_booster=True
    )
    assert 0 < booster.best_iteration < booster.num_trees()
    ranker = rw.import_model(booster)
    assert ranker.best_iteration_ == booster.best_iteration
    _equal(ranker, booster.predict(X), X)
    booster.save_model(tmp_path / "best.txt")
    _equal(rw.load_model(tmp_path / "best.txt"), booster.predict(X), X)
    booster.save_model(tmp_path / "all.txt", num_iteration=-1)
    whole = lightgbm.Booster(model_file=tmp_path / "all.txt")
    _equal(rw.load_model(tmp_path / "all.txt"), whole.predict(X), X)
    assert not np.array_equal(whole.predict(X), booster.predict(X))


def test_rankers_of_the_scikit_learn_interfaces():
    ours = lightgbm.LGBMRanker(n_estimators=5, verbose=-1).fit(X, Y, group=SIZES)
    _equal(rw.import_model(ours), ours.predict(X), X)
    ours = xgboost.XGBRanker(n_estimators=5, n_jobs=1).fit(X, Y, qid=QID)
    _equal(rw.import_model(ours), ours.predict(X), X)
    ours = catboost.CatBoostRanker(iterations=5, verbose=0, allow_writing_files=False)
    ours.fit(catboost.Pool(X, Y, group_id=QID))
    _equal(rw.import_model(ours), ours.predict(X), X)


# --- XGBoost -------------------------------------------------------------------------------------

XGBOOST = {
    "ndcg": {"objective": "rank:ndcg"},
    "pairwise": {"objective": "rank:pairwise", "base_score": 0.1},
    "map": {"objective": "rank:map", "lambdarank_pair_method": "topk"},
    "regression": {"objective": "reg:squarederror"},
    "base": {"objective": "reg:squarederror", "base_score": 0.3},
    "deep": {"objective": "reg:squarederror", "max_depth": 30, "min_child_weight": 0},
    "pruned": {"objective": "reg:squarederror", "tree_method": "exact", "gamma": 3.0},
    "leaves": {"objective": "reg:squarederror", "grow_policy": "lossguide", "max_leaves": 9},
    "stumps": {"objective": "reg:squarederror", "gamma": 1e9},
    "dart": {"objective": "rank:ndcg", "booster": "dart", "rate_drop": 0.5},
    "parallel": {"objective": "reg:squarederror", "num_parallel_tree": 3, "subsample": 0.5},
    "categories": {"objective": "reg:squarederror", "max_cat_to_onehot": 1},
    "one category": {"objective": "reg:squarederror", "max_cat_to_onehot": 100},
    "logistic": {"objective": "binary:logistic", "base_score": 0.3},
    "poisson": {"objective": "count:poisson"},
}
TYPES = ["c" if column == CATEGORY else "q" for column in range(6)]


def _xgboost(name, rounds=12):
    params = {"max_depth": 4, "nthread": 1, "eta": 0.3, **XGBOOST[name]}
    categories = "categor" in name
    y = Y > 1 if name in ("map", "logistic") else Y
    data = xgboost.DMatrix(
        X, y, feature_types=TYPES if categories else None, enable_categorical=categories
    )
    data.set_group(SIZES)
    return xgboost.train(params, data, rounds)


def _margin(booster):
    types = booster.feature_types

    def predict(Z):
        data = xgboost.DMatrix(Z, feature_types=types, enable_categorical=types is not None)
        return booster.predict(data, output_margin=True)

    return predict


@pytest.mark.parametrize("name", XGBOOST)
def test_xgboost(name, tmp_path):
    booster = _xgboost(name)
    for end in ("json", "ubj"):
        booster.save_model(tmp_path / f"model.{end}")
    ranker = rw.load_model(tmp_path / "model.json")
    trees = json.loads((tmp_path / "model.json").read_text())["learner"]["gradient_booster"]
    trees = trees.get("gbtree", trees)["model"]["trees"]
    cuts = np.array([t for tree in trees for t in tree["split_conditions"]][:30], np.float32)
    Z = rows(cuts)
    Z = Z[np.abs(np.nan_to_num(Z)).max(axis=1) < 1e38]  # XGBoost refuses what is infinite there
    if "categor" in name:  # and numbers that are no category
        assert any(1 in tree["split_type"] for tree in trees)
        Z = Z[~((Z[:, CATEGORY] < 0) | (Z[:, CATEGORY] >= 1e6))]
    _in_all_forms(ranker, _margin(booster), Z)
    theirs = _margin(booster)(Z)
    _equal(rw.load_model(tmp_path / "model.ubj"), theirs, Z)
    _equal(rw.import_model(booster), theirs, Z)
    ranker.save(tmp_path / "model.rw")
    _equal(rw.load_model(tmp_path / "model.rw"), theirs, Z)


def test_xgboost_stops_at_the_best_iteration_where_its_own_predict_does(tmp_path):
    rng = np.random.default_rng(0)
    model = xgboost.XGBRanker(
        n_estimators=40, learning_rate=0.5, early_stopping_rounds=5, n_jobs=1, eval_metric="ndcg@3"
    ).fit(X, Y, qid=QID, eval_set=[(X, rng.permutation(Y))], eval_qid=[QID], verbose=False)
    booster = model.get_booster()
    assert model.best_iteration + 1 < booster.num_boosted_rounds()
    _equal(rw.import_model(model), model.predict(X), X)
    _equal(rw.import_model(booster), _margin(booster)(X), X)
    assert not np.array_equal(model.predict(X), _margin(booster)(X))
    model.save_model(tmp_path / "ranker.json")
    booster.save_model(tmp_path / "booster.ubj")
    _equal(rw.load_model(tmp_path / "ranker.json"), model.predict(X), X)
    _equal(rw.load_model(tmp_path / "booster.ubj"), _margin(booster)(X), X)


# --- CatBoost ------------------------------------------------------------------------------------

CATBOOST = {
    "yetirank": {"loss_function": "YetiRank"},
    "queryrmse": {"loss_function": "QueryRMSE", "depth": 10},
    "rmse": {"loss_function": "RMSE", "nan_mode": "Max"},
    "no average": {"loss_function": "RMSE", "boost_from_average": False, "depth": 1},
    "lossguide": {"loss_function": "QueryRMSE", "grow_policy": "Lossguide", "max_leaves": 20},
    "depthwise": {"loss_function": "RMSE", "grow_policy": "Depthwise", "nan_mode": "Max"},
    "logloss": {"loss_function": "Logloss"},
}


def _catboost(name, data=X, rounds=12):
    params = {"depth": 4, "iterations": rounds, "thread_count": 1, **CATBOOST[name]}
    y = Y > 1 if name == "logloss" else Y
    pool = catboost.Pool(data, y, group_id=QID)
    return catboost.CatBoost({**params, "verbose": 0, "allow_writing_files": False}).fit(pool)


@pytest.mark.parametrize("name", CATBOOST)
def test_catboost(name, tmp_path):
    model = _catboost(name)
    path = tmp_path / "model.json"
    model.save_model(path, format="json")
    ranker = rw.load_model(path)
    found = json.loads(path.read_text())["features_info"]["float_features"]
    cuts = [border for feature in found for border in feature["borders"] or ()][::7]
    Z = rows(np.array(cuts, np.float32))
    _equal(ranker, model.predict(Z), Z)
    with np.errstate(over="ignore", under="ignore"):
        single = Z.astype(np.float32)
    single = single[~np.isinf(single).any(axis=1)]
    _equal(ranker, model.predict(single), single)
    few = sparse.csr_matrix(np.where(np.random.default_rng(3).random(X.shape) < 0.5, 0.0, X))
    _equal(ranker, model.predict(few), sparse.csr_array(few))
    _equal(rw.import_model(model), model.predict(Z), Z)
    ranker.save(tmp_path / "model.rw")
    _equal(rw.load_model(tmp_path / "model.rw"), model.predict(Z), Z)
    Z = rows(cuts, infinite=True)
    np.testing.assert_array_equal(ranker.model_.scores(Z), model.predict(Z))


def test_catboost_with_a_scale_and_a_bias():
    model = _catboost("yetirank")
    model.set_scale_and_bias(0.3, 0.7)
    _equal(rw.import_model(model), model.predict(X), X)


def test_catboost_trained_without_gaps_scores_them():
    whole = np.nan_to_num(X)
    model = _catboost("queryrmse", whole)
    _equal(rw.import_model(model), model.predict(X), X)
