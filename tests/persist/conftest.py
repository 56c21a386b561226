"""Small models of other libraries, and files of them."""

import pytest
from other_models import NAMES, QID, SIZES, training_data


@pytest.fixture(scope="session")
def boosters():
    lightgbm = pytest.importorskip("lightgbm")
    xgboost = pytest.importorskip("xgboost")
    catboost = pytest.importorskip("catboost")
    X, y = training_data()
    data = lightgbm.Dataset(X, y, group=SIZES, feature_name=NAMES)
    params = {"objective": "lambdarank", "num_leaves": 5, "verbosity": -1}
    matrix = xgboost.DMatrix(X, y, feature_names=NAMES)
    matrix.set_group(SIZES)
    pool = catboost.Pool(X, y, group_id=QID, feature_names=NAMES)
    quiet = {"verbose": 0, "allow_writing_files": False}
    yeti = {"loss_function": "YetiRank", "iterations": 3, "depth": 3}
    return {
        "model.txt": lightgbm.train(params, data, 3),
        "model.json": xgboost.train({"objective": "rank:ndcg", "max_depth": 3}, matrix, 3),
        "model.ubj": xgboost.train({"objective": "rank:ndcg", "max_depth": 3}, matrix, 3),
        "catboost.json": catboost.CatBoost({**yeti, **quiet}).fit(pool),
        "nested.json": catboost.CatBoost({**yeti, **quiet, "grow_policy": "Lossguide"}).fit(pool),
    }


@pytest.fixture(scope="session")
def files(boosters, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    for name, model in boosters.items():
        more = {"format": "json"} if name in ("catboost.json", "nested.json") else {}
        model.save_model(folder / name, **more)
    return folder
