"""``rankwright serve`` answers with files of other libraries, as these score them themselves."""

import http.client
import json

import lightgbm
import numpy as np
import pytest
from other_models import QID, SIZES, training_data
from served import client
from server_process import serving

import rankwright as rw

X, Y = training_data()
NAMES = ["price", "clicks", "tiny", "age", "kind", "side"]


def _lightgbm(folder):
    data = lightgbm.Dataset(X, Y, group=SIZES, feature_name=NAMES)
    booster = lightgbm.train({"objective": "lambdarank", "verbosity": -1}, data, 5)
    booster.save_model(folder / "model.txt")
    return folder / "model.txt", booster.predict


def _xgboost(folder):
    xgboost = pytest.importorskip("xgboost")
    data = xgboost.DMatrix(X, Y, feature_names=NAMES)
    data.set_group(SIZES)
    booster = xgboost.train({"objective": "rank:ndcg", "max_depth": 3}, data, 5)
    booster.save_model(folder / "model.ubj")
    return folder / "model.ubj", lambda Z: booster.predict(xgboost.DMatrix(Z, feature_names=NAMES))


def _catboost(folder):
    catboost = pytest.importorskip("catboost")
    quiet = {"verbose": 0, "allow_writing_files": False, "thread_count": 1}
    model = catboost.CatBoost({"loss_function": "YetiRank", "iterations": 5, **quiet})
    model.fit(catboost.Pool(X, Y, group_id=QID, feature_names=NAMES))
    model.save_model(folder / "model.json", format="json")
    return folder / "model.json", model.predict


def test_a_live_server_scores_files_of_three_libraries_as_they_do(tmp_path):
    predict, served = {}, []
    for name, make in (("lgb", _lightgbm), ("xgb", _xgboost), ("cat", _catboost)):
        path, predict[name] = make(tmp_path)
        served.append(f"{name}={path}")
    Z = X[:30]
    given = [
        {"id": str(row), "features": {name: None if np.isnan(x) else x
                                      for name, x in zip(NAMES, Z[row].tolist(), strict=True)}}
        for row in range(len(Z))
    ]  # fmt: skip
    body = json.dumps({"query": "q", "documents": given}).encode()
    with serving(*served, "--missing", "nan") as server:
        link = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        for name, theirs in predict.items():
            link.request(
                "POST", f"/v1/models/{name}/rank", body, {"content-type": "application/json"}
            )
            answer = link.getresponse()
            reported = json.loads(answer.read())
            assert answer.status == 200, reported
            expected = np.asarray(theirs(Z), np.float64)
            order = np.argsort(-expected, kind="stable")
            assert [one["score"] for one in reported["ranking"]] == expected[order].tolist()
            scores = {one["id"]: one["score"] for one in reported["ranking"]}
            assert scores == {str(row): score for row, score in enumerate(expected.tolist())}
        link.close()


@pytest.mark.parametrize("library", ["LightGBM", "XGBoost"])
def test_categories_of_a_frame_are_sent_by_value(library, tmp_path):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    town = pd.Categorical(
        rng.choice(["York", "Bonn", "Aarhus"], len(Y)), ["York", "Bonn", "Aarhus"]
    )
    frame = pd.DataFrame({"price": rng.normal(size=len(Y)), "town": town})
    y = np.digitize(frame["price"] + 2 * (town.codes == 1), [0.0, 1.0, 2.0])
    sent = pd.DataFrame(
        {"price": [0.5] * 4, "town": pd.Categorical(["Aarhus", "Bonn", "Oslo", None])}
    )
    if library == "LightGBM":
        params = {"objective": "lambdarank", "verbosity": -1, "min_data_per_group": 1}
        booster = lightgbm.train(params, lightgbm.Dataset(frame, y, group=SIZES), 5)
        theirs = booster.predict(sent)
        path = tmp_path / "model.rw"
        rw.import_model(booster, categories=["town"]).save(path)
    else:
        xgboost = pytest.importorskip("xgboost")
        data = xgboost.DMatrix(frame, y, enable_categorical=True)
        data.set_group(SIZES)
        booster = xgboost.train({"objective": "rank:ndcg", "max_cat_to_onehot": 1}, data, 5)
        seen = sent.assign(town=sent["town"].cat.set_categories(town.categories))
        theirs = booster.predict(xgboost.DMatrix(seen, enable_categorical=True))
        path = tmp_path / "model.json"
        booster.save_model(path)
    given = [
        {"features": {"price": 0.5, "town": value}} for value in ("Aarhus", "Bonn", "Oslo", None)
    ]
    answer = client(f"web={path}", missing="nan").post(
        "/v1/models/web/score", json={"query": "q", "documents": given}
    )
    assert answer.status_code == 200, answer.text
    assert answer.json()["scores"] == np.asarray(theirs, np.float64).tolist()
    assert len(set(theirs.tolist())) >= 2
