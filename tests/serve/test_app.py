"""What a server answers: the models' own rankings, or a sentence on what is wrong."""

import json
import logging

import numpy as np
import pytest
from served import NAMES, client, documents, save_model, sentence

import rankwright
from rankwright.explanation.query import QueryView, explain_query

BODY = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    save_model(folder / "linear.rw")
    save_model(folder / "other.rw", seed=1)
    save_model(folder / "trees.rw", "lambdamart", n_estimators=5, num_leaves=4)
    return folder


@pytest.fixture
def web(files):
    return client(f"web={files / 'linear.rw'}")


def ranked(answer):
    assert answer.status_code == 200, answer.text
    return answer.json()["ranking"]


# --- rankings and scores ---------------------------------------------------------------------


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


def test_features_by_name_are_those_in_order(web):
    own, X = documents(5)
    named = [{"features": dict(reversed(list(zip(NAMES, row, strict=True))))} for row in X.tolist()]
    by_name = web.post("/v1/models/web/score", json={"documents": named}).json()["scores"]
    assert by_name == web.post("/v1/models/web/score", json={"documents": own}).json()["scores"]


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


# --- versions --------------------------------------------------------------------------------


def test_traffic_is_split_by_query_and_a_query_keeps_its_version(files):
    models = (f"web={files / 'linear.rw'}", f"web@next={files / 'other.rw'}:30%")
    web = client(*models)
    queries = [{"query": q, "documents": []} for q in range(1000)]
    first = web.post("/v1/models/web/score/batch", json={"queries": queries}).json()["results"]
    versions = [answer["version"] for answer in first]
    assert 250 < versions.count("next") < 350  # 300 expected, deviation 14.5
    again = client(*models)
    second = again.post("/v1/models/web/score/batch", json={"queries": queries}).json()["results"]
    assert first == second


def test_a_larger_share_keeps_those_who_had_the_version(files):
    queries = [{"query": q, "documents": []} for q in range(300)]
    had = set()
    for share in (10, 40, 90):
        web = client(f"web={files / 'linear.rw'}", f"web@next={files / 'other.rw'}:{share}%")
        payload = web.post("/v1/models/web/score/batch", json={"queries": queries}).json()[
            "results"
        ]
        has = {answer["query"] for answer in payload if answer["version"] == "next"}
        assert had < has
        had = has


def test_a_version_can_be_asked_for(files):
    web = client(f"web={files / 'linear.rw'}", f"web@next={files / 'other.rw'}:10%")
    payload = {"documents": documents(2)[0]}
    for version in ("default", "next"):
        answer = web.post(f"/v1/models/web@{version}/score", json=payload).json()
        assert answer["version"] == version
    why = sentence(web.post("/v1/models/web@nxt/score", json=payload), 404)
    assert why == "there is no version of web 'nxt'; did you mean next?"


def test_a_name_that_is_not_served(web):
    assert sentence(web.post("/v1/models/wep/rank", json={}), 404) == (
        "there is no model 'wep'; did you mean web?"
    )


# --- missing and unknown features ------------------------------------------------------------

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


# --- refusals --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "status", "why"),
    [
        (b"", 400, "Invalid JSON: EOF"),
        (b"\xff\xfe", 400, "Invalid JSON"),
        (b"[" * 100_000, 400, "recursion limit exceeded"),
        (b'{"documents":' + b'[{"features":' * 50_000, 400, "recursion limit exceeded"),
        (b"[]", 422, "the request must be an object"),
        (b"{}", 422, "documents is missing"),
        (b'{"documents": 3}', 422, "documents must be a valid array"),
        (b'{"documents": [], "topp": 3}', 422, "topp is not a field of a request"),
        (b'{"documents": [], "top": 0}', 422, "top must be greater than or equal to 1"),
        (b'{"documents": [], "top": "3"}', 422, "top must be a valid integer"),
        (b'{"documents": [], "top": 9999999999}', 422, "top must be less than or equal to"),
        (b'{"documents": [], "per_group": 1' + b"0" * 30 + b"}", 422, "per_group must be less"),
        (b'{"documents": [], "query": 1' + b"0" * 30 + b"}", 422, "query must be less than"),
        (b'{"documents": [], "query": 1' + b"0" * 9999 + b"}", 400, "number out of range"),
        (b'{"documents": [], "query": 1.5}', 422, "query must be a text or a whole number"),
        (b'{"documents": [7]}', 422, r"documents\[0\] must be an object"),
        (b'{"documents": [{"features": 7}]}', 422, r"documents\[0\].features must be"),
        (b'{"documents": [{"features": [1,2]}]}', 422, "has 2 features, the model has 6"),
        (b'{"documents": [{"features": [1,2,NaN,4,5,6]}]}', 422, r"features\[2\] must be a finite"),
        (b'{"documents": [{"features": [1,2,1e999,4,5,6]}]}', 422, "must be a finite number"),
        (b'{"documents": [{"features": [1,2,-Infinity,4,5,6]}]}', 422, "must be a finite number"),
        (b'{"documents": [{"features": [1,2,"3",4,5,6]}]}', 422, r"features\[2\] must be a number"),
        (b'{"documents": [{"features": [1,2,true,4,5,6]}]}', 422, "must be a number"),
        (b'{"documents": [{"features": [1,2,[3],4,5,6]}]}', 422, "must be a number"),
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
def test_what_cannot_be_ranked_is_refused_with_a_sentence(tmp_path, body, status, why):
    import re

    fitted = save_model(tmp_path / "web.rw")
    fitted.model_.coef[:] = 10.0
    fitted.save(tmp_path / "web.rw")
    web = client(tmp_path / "web.rw")
    payload = sentence(web.post("/v1/models/web/rank", content=body, headers=BODY), status)
    assert re.search(why, payload), payload
    assert web.get("/healthz").status_code == 200


def test_a_body_over_the_limit_is_refused_told_or_not(files):
    web = client(f"web={files / 'linear.rw'}", max_body=1000)
    url = "/v1/models/web/rank"
    assert sentence(web.post(url, content=b" " * 1001, headers=BODY), 413) == (
        "1001 bytes are more than the 1000 allowed."
    )
    chunks = (b" " * 100 for _ in range(20))
    why = sentence(web.post(url, content=chunks, headers=BODY), 413)
    assert why == "the request has more than the 1000 bytes allowed."


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
        f"documents times features come to {6 * columns}, more than the {4 * columns} allowed; "
        "send fewer documents at a time."
    )


def test_a_body_that_is_not_json_by_its_own_word(web):
    headers = {"content-type": "text/plain"}
    why = sentence(web.post("/v1/models/web/rank", content=b"{}", headers=headers), 415)
    assert why == "send application/json, not 'text/plain'."


def test_a_request_that_takes_too_long_is_given_up(files):
    import threading

    web = client(f"web={files / 'linear.rw'}", seconds=0.2, threads=1, max_waiting=2)
    over = threading.Event()
    held = [web.service.workers._submit(lambda _: over.wait(30), b"")]
    payload = {"documents": documents(1)[0]}
    try:
        answer = web.post("/v1/models/web/rank", json=payload)
        assert sentence(answer, 503) == "there was no answer within 0.2 s."
        assert answer.headers["retry-after"] == "1"
        held.append(web.service.workers._submit(lambda _: None, b""))
        why = sentence(web.post("/v1/models/web/rank", json=payload), 503)
        assert why == "2 requests are waiting; try again later."
        assert web.get("/healthz").status_code == 200
    finally:
        over.set()
    for future in held:
        future.result(timeout=30)
    assert web.post("/v1/models/web/rank", json=payload).status_code == 200


def test_an_error_of_ours_is_a_500_with_its_traceback_in_the_log(web, monkeypatch, caplog):
    def broken(*_, **__):
        raise ZeroDivisionError("on purpose")

    monkeypatch.setattr("rankwright.serve.app.score_queries", broken)
    with caplog.at_level(logging.INFO, "rankwright.serve"):
        why = sentence(web.post("/v1/models/web/rank", json={"documents": []}), 500)
    assert why == "the server failed; its log has the request's id."
    assert any(record.exc_info for record in caplog.records)


# --- health, figures, the OpenAPI page -------------------------------------------------------


def test_health_and_readiness(web):
    assert web.get("/healthz").json() == {"status": "ok"}
    state = {"name": "web", "version": "default", "reloads": 0, "reload_fault": None}
    assert web.get("/readyz").json() == {"status": "ready", "models": [state]}
    web.service.middleware.draining = True
    answer = web.get("/readyz")
    assert (answer.status_code, answer.json()["status"]) == (503, "draining")
    assert answer.headers["connection"] == "close"
    assert web.get("/healthz").status_code == 200


def test_what_is_served_is_reported(web):
    (about,) = web.get("/v1/models").json()["models"]
    assert about["ranker"] == "listnet"
    assert about["feature_names"] == list(NAMES)
    assert web.get("/v1/models/web").json() == {"models": [about]}
    assert web.get("/v1/models/web@default").json() == {"models": [about]}


def test_figures_count_requests_queries_and_documents(web):
    web.post("/v1/models/web/rank", json={"documents": documents(4)[0]})
    web.post("/v1/models/web/rank", content=b"{", headers=BODY)
    web.get("/nowhere/at/all")
    lines = web.get("/metrics").text.splitlines()
    route = 'route="/v1/models/{name}/rank"'
    assert f'rankwright_requests_total{{{route},status="200"}} 1.0' in lines
    assert f'rankwright_requests_total{{{route},status="400"}} 1.0' in lines
    assert 'rankwright_requests_total{route="other",status="404"} 1.0' in lines
    assert f"rankwright_request_seconds_count{{{route}}} 2.0" in lines
    assert 'rankwright_documents_total{model="web",version="default"} 4.0' in lines


def test_the_openapi_document_holds_every_schema_it_refers_to(web):
    document = web.get("/openapi.json").json()
    held = document["components"]["schemas"]
    text = json.dumps(document)
    referred = {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert "Document" in referred
    assert referred <= set(held)
    assert "$defs" not in text
    (name,) = document["paths"]["/v1/models/{name}/rank/batch"]["post"]["parameters"]
    assert name["schema"]["enum"] == ["web", "web@default"]


# --- keys, ids, logs -------------------------------------------------------------------------


def test_every_request_is_one_line_of_json_with_its_id(web, caplog):
    from rankwright.serve.middleware import JsonLines

    with caplog.at_level(logging.INFO, "rankwright.serve"):
        own = web.post(
            "/v1/models/web/rank",
            json={"documents": documents(4)[0]},
            headers={"x-request-id": "mine-1"},
        )
        other = web.get("/healthz", headers={"x-request-id": "has a space"})
    assert own.headers["x-request-id"] == "mine-1"
    assert other.headers["x-request-id"] != "has a space"
    ours = [record for record in caplog.records if record.name == "rankwright.serve"]
    first, second = (json.loads(JsonLines().format(record)) for record in ours)
    assert first["request_id"] == "mine-1"
    assert first["status"] == 200
    assert first["documents"] == 4
    assert second["path"] == "/healthz"


def test_a_key_is_wanted_where_there_are_some(files, tmp_path, monkeypatch):
    from rankwright.serve.settings import Settings, with_keys

    (tmp_path / "keys").write_text("first\n\nsecond\n")
    monkeypatch.setenv("RANKWRIGHT_API_KEYS", "third")
    keys = with_keys(Settings(), tmp_path / "keys").keys
    web = client(f"web={files / 'linear.rw'}", keys=keys)
    assert web.get("/healthz").status_code == 200
    assert web.get("/readyz").status_code == 200
    assert web.get("/docs").status_code == 200  # it asks for the key, and says nothing else
    for path in ("/metrics", "/openapi.json", "/v1/models", "/nowhere"):
        assert "API key" in sentence(web.get(path), 401)
    for wrong in ("", "firs", "first2", "FIRST", "\u00fc"):
        headers = {"x-api-key": wrong.encode()}
        assert web.get("/v1/models", headers=headers).status_code == 401
    for right in ("first", "second", "third"):
        assert web.get("/v1/models", headers={"x-api-key": right}).status_code == 200
        bearer = {"authorization": f"Bearer {right}"}
        assert web.get("/v1/models", headers=bearer).status_code == 200


def test_a_model_without_trees_is_explained_too(tmp_path):
    from small_data import small_data

    data = small_data(features=2)
    flat = rankwright.RankingData.from_arrays(np.ones_like(data.X), data.y, qid=data.query_of_row())
    rankwright.GBDT(n_estimators=3).fit(flat).save(tmp_path / "flat.rw")
    body = {"documents": [{"features": [1.0, 2.0]}], "explain": 1}
    (place,) = ranked(client(tmp_path / "flat.rw").post("/v1/models/flat/rank", json=body))
    assert place["explanation"]["above_mean"] == 0.0
