"""Rankings and scores are the models' own; what cannot be ranked is refused with a sentence."""

import re

import numpy as np
import pandas as pd
import pytest
from served import BODY, NAMES, client, documents, save_model, sentence

import rankwright
from rankwright.explanation.query import QueryView, explain_query


def ranked(answer):
    assert answer.status_code == 200, answer.text
    return answer.json()["ranking"]


@pytest.mark.parametrize("name", ["linear", "trees"])
def test_scores_and_rankings_are_those_of_the_ranker(files, name):
    own, X = documents(30)
    fitted = rankwright.load_model(files / f"{name}.rw")
    web = client(files / f"{name}.rw")
    scores = web.post(f"/v1/models/{name}/score", json={"documents": own}).json()
    assert scores["scores"] == fitted.predict(X).tolist()
    found = ranked(web.post(f"/v1/models/{name}/rank", json={"documents": own, "top": 7}))
    assert [place["index"] for place in found] == fitted.rank(X, top=7).order.tolist()
    assert [place["rank"] for place in found] == list(range(1, 8))
    assert [place["id"] for place in found] == [f"d{place['index']}" for place in found]
    assert [place["score"] for place in found] == sorted(scores["scores"])[::-1][:7]


def test_a_blend_is_served_as_any_other_model(tmp_path):
    members = {"members": ("memr", "linear_regression"), "folds": 2}
    fitted = save_model(tmp_path / "b.rw", "blend", **members)
    own, X = documents(6)
    web = client(tmp_path / "b.rw")
    scores = web.post("/v1/models/b/score", json={"documents": own}).json()["scores"]
    assert scores == fitted.predict(X).tolist()
    found = ranked(web.post("/v1/models/b/rank", json={"documents": own, "explain": 2}))
    assert [place["index"] for place in found] == fitted.rank(X).order.tolist()


def test_features_by_name_are_those_in_order(web):
    own, X = documents(5)
    named = [{"features": dict(reversed(list(zip(NAMES, row, strict=True))))} for row in X.tolist()]
    by_name = web.post("/v1/models/web/score", json={"documents": named}).json()["scores"]
    assert by_name == web.post("/v1/models/web/score", json={"documents": own}).json()["scores"]


def test_truth_values_are_one_and_zero(web):
    rows = [[True, 2.0, False, 4, 5, 6], [1, 2, 0, 4, 5, 6]]
    named = [{"features": dict(zip(NAMES, row, strict=True))} for row in rows]
    for sent in ([{"features": row} for row in rows], named):
        first, second = web.post("/v1/models/web/score", json={"documents": sent}).json()["scores"]
        assert first == second


def test_features_without_names_go_by_number_from_1(tmp_path):
    from small_data import small_data

    rankwright.ListNet().fit(small_data(features=2)).save(tmp_path / "m.rw")
    web = client(tmp_path / "m.rw")
    payload = [{"features": {"2": 5.0, "1": 3.0}}, {"features": [3.0, 5.0]}]
    first, second = web.post("/v1/models/m/score", json={"documents": payload}).json()["scores"]
    assert first == second


def test_a_limit_per_group(files, web):
    own, X = documents(20)
    group = [row % 3 for row in range(20)]
    payload = [{**document, "group": g} for document, g in zip(own, group, strict=True)]
    found = ranked(web.post("/v1/models/web/rank", json={"documents": payload, "per_group": 2}))
    fitted = rankwright.load_model(files / "linear.rw")
    assert [p["index"] for p in found] == fitted.rank(X, group=group, per_group=2).order.tolist()


@pytest.mark.parametrize("name", ["linear", "trees"])
def test_explanations_are_those_of_explain(files, name):
    own, X = documents(6)
    fitted = rankwright.load_model(files / f"{name}.rw")
    web = client(f"web={files / name}.rw")
    body = {"documents": own, "query": "q", "explain": 2, "top": 3}
    data = rankwright.RankingData.from_arrays(X, None, qid=["q"] * 6, feature_names=NAMES)
    expected = explain_query(QueryView.of(fitted, data, "q")).documents
    for place, standing in zip(
        ranked(web.post("/v1/models/web/rank", json=body)), expected[:3], strict=True
    ):
        assert place["explanation"]["above_mean"] == standing.above_mean
        assert place["explanation"]["parts"] == dict(list(standing.parts.items())[:2])


def test_a_batch_is_its_queries_one_by_one(web):
    queries = [{"query": n, "documents": documents(n, seed=n)[0]} for n in (3, 1, 0, 5)]
    for verb in ("rank", "score"):
        payload = web.post(f"/v1/models/web/{verb}/batch", json={"queries": queries}).json()
        alone = [web.post(f"/v1/models/web/{verb}", json=query).json() for query in queries]
        assert payload == {"results": alone}


LACKING = {"documents": [{"features": {"a": 1.0, "b": None}}]}
EXTRA = {"documents": [{"features": {**dict.fromkeys(NAMES, 1.0), "z": 2.0}}]}


def test_a_missing_feature_is_refused(web):
    why = sentence(web.post("/v1/models/web/rank", json=LACKING), 422)
    assert why.startswith("documents[0] has no feature 'b'; send it, or start")


def test_a_missing_feature_is_nan_where_the_server_says_so(files):
    web = client(f"web={files / 'trees.rw'}", missing="nan")
    X = np.array([[1.0, *[np.nan] * 5]])
    expected = rankwright.load_model(files / "trees.rw").predict(X).tolist()
    assert web.post("/v1/models/web/score", json=LACKING).json()["scores"] == expected


def test_a_model_that_takes_no_nan_says_so(files):
    web = client(f"web={files / 'linear.rw'}", missing="nan")
    assert "missing" in sentence(web.post("/v1/models/web/score", json=LACKING), 422)


def test_an_unknown_feature_is_refused_or_left_out(files, web):
    why = sentence(web.post("/v1/models/web/score", json=EXTRA), 422)
    assert why.startswith("documents[0]: the model has no feature 'z'; leave it out")
    lenient = client(f"web={files / 'linear.rw'}", unknown="ignore")
    plain = {"documents": [{"features": [1.0] * 6}]}
    assert (
        lenient.post("/v1/models/web/score", json=EXTRA).json()
        == web.post("/v1/models/web/score", json=plain).json()
    )


@pytest.fixture(scope="module")
def of_large_weights(tmp_path_factory):
    """A server whose model gives large features a score beyond all numbers."""
    path = tmp_path_factory.mktemp("large") / "web.rw"
    fitted = save_model(path)
    fitted.model_.coef[:] = 10.0
    fitted.save(path)
    return client(path)


@pytest.mark.parametrize(
    ("body", "status", "why"),
    [
        (b"", 400, "the body is not JSON: Input data was truncated"),
        (b"\xff\xfe", 400, "the body is not JSON: JSON is malformed"),
        (b'{"documents": [], "query": "\xff"}', 400, "the body is not JSON: 'utf-8' codec"),
        (b"[]", 422, "the request: expected object, got array"),
        (b"{}", 422, "the request: object missing required field documents"),
        (b'{"documents": 3}', 422, "documents: expected array, got int"),
        (b'{"documents": [], "topp": 3}', 422, "the request: object contains unknown field topp"),
        (b'{"documents": [], "top": 0}', 422, "top: expected int >= 1"),
        (b'{"documents": [], "top": "3"}', 422, r"top: expected int \| null, got str"),
        (b'{"documents": [], "top": 9999999999}', 422, "top: expected int <= 2147483647"),
        (b'{"documents": [], "per_group": 1' + b"0" * 30 + b"}", 422, "per_group: "),
        (b'{"documents": [], "query": 1' + b"0" * 30 + b"}", 422, "query: expected int <="),
        (b'{"documents": [], "query": 1' + b"0" * 9999 + b"}", 422, "query: integer value out of"),
        (b'{"documents": [], "query": 1.5}', 422, r"query: expected int \| str \| null, got float"),
        (b'{"documents": [7]}', 422, r"documents\[0\]: expected object, got int"),
        (b'{"documents": [{"features": 7}]}', 422, r"documents\[0\].features: expected"),
        (b'{"documents": ' + b'[{"features": ' * 50_000, 422, r"documents\[0\].features\[0\]: exp"),
        (b'{"documents": [{"features": [1,2]}]}', 422, "has 2 features, the model has 6"),
        (b'{"documents": [{"features": [1,2,NaN,4,5,6]}]}', 400, "JSON is malformed"),
        (b'{"documents": [{"features": [1,2,1e999,4,5,6]}]}', 422, r"features\[2\]: number out of"),
        (b'{"documents": [{"features": [1,2,-Infinity,4,5,6]}]}', 400, "JSON is malformed"),
        (b'{"documents": [{"features": [1,2,"3",4,5,6]}]}', 422, r"features\[2\] must be a number"),
        (b'{"documents": [{"features": [1,2,[3],4,5,6]}]}', 422, r"features\[2\]: expected"),
        (b'{"documents": [{"features": {"a": "x"}}]}', 422, r"documents\[0\].features.a must be"),
        (b'{"documents": [{"features": [1,2,null,4,5,6]}]}', 422, "has no feature 'c'"),
        (b'{"documents": [{"features": [1,2,3,4,5,6]}], "per_group": 1}', 422, "needs a group"),
        (
            b'{"documents": [{"features": [1.7e308,1.7e308,1.7e308,1.7e308,1.7e308,-1.7e308]}]}',
            422,
            r"documents\[0\] has no finite score",
        ),
    ],
)
def test_what_cannot_be_ranked_is_refused_with_a_sentence(of_large_weights, body, status, why):
    web = of_large_weights
    payload = sentence(web.post("/v1/models/web/rank", content=body, headers=BODY), status)
    assert re.search(why, payload), payload
    assert web.get("/healthz").status_code == 200


def test_lists_and_batches_over_the_limit_are_refused(files):
    web = client(f"web={files / 'linear.rw'}", max_documents=3, max_queries=2)
    payload = {"documents": documents(4)[0]}
    assert sentence(web.post("/v1/models/web/rank", json=payload), 413) == (
        "documents: 4 are more than the 3 allowed."
    )
    batch = {"queries": [{"documents": []}] * 3}
    assert sentence(web.post("/v1/models/web/score/batch", json=batch), 413) == (
        "3 queries are more than the 2 allowed."
    )
    second = {"queries": [{"documents": []}, payload]}
    why = sentence(web.post("/v1/models/web/score/batch", json=second), 413)
    assert why.startswith("queries[1].documents: 4")


def test_documents_times_features_have_a_limit_over_all_lists(files):
    columns = len(documents(1)[0][0]["features"])
    web = client(f"web={files / 'linear.rw'}", max_values=4 * columns)
    url, two = "/v1/models/web/score/batch", {"documents": documents(2)[0]}
    assert web.post(url, json={"queries": [two, two]}).status_code == 200
    why = sentence(web.post(url, json={"queries": [two, two, two]}), 413)
    assert why == (
        f"the request has {6 * columns} documents times features, more than the {4 * columns} "
        "allowed; send fewer documents at a time."
    )


def test_a_model_without_trees_is_explained_too(tmp_path):
    from small_data import small_data

    data = small_data(features=2)
    flat = rankwright.RankingData.from_arrays(np.ones_like(data.X), data.y, qid=data.query_of_row())
    rankwright.GBDT(n_estimators=3).fit(flat).save(tmp_path / "flat.rw")
    body = {"documents": [{"features": [1.0, 2.0]}], "explain": 1}
    (place,) = ranked(client(tmp_path / "flat.rw").post("/v1/models/flat/rank", json=body))
    assert place["explanation"]["above_mean"] == 0.0


def test_a_model_without_features_is_not_explained(tmp_path):
    rng = np.random.default_rng(0)
    users, items = np.divmod(np.arange(24), 4)
    ratings = pd.DataFrame({"user": users, "item": items, "rating": rng.integers(1, 6, 24)})
    rankwright.ranker("cofirank", max_iter=3).fit(ratings).save(tmp_path / "rated.rw")
    body = {"documents": [{"features": row} for row in np.eye(4).tolist()]}
    rated = client(tmp_path / "rated.rw")
    assert len(ranked(rated.post("/v1/models/rated/rank", json=body))) == 4
    refused = rated.post("/v1/models/rated/rank", json={**body, "explain": 1})
    assert sentence(refused, 422) == "cofirank has no features to explain its rankings by."
