"""The application: its versions, limits on time and size, health, OpenAPI document."""

import json
import logging

import msgspec
import pytest
from served import BODY, NAMES, client, documents, sentence

from rankwright.serve.schemas import RankAnswer, RankBatchAnswer, ScoreAnswer, ScoreBatchAnswer

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


# --- refusals --------------------------------------------------------------------------------


def test_a_body_over_the_limit_is_refused_announced_or_not(files):
    web = client(f"web={files / 'linear.rw'}", max_body=1000)
    url = "/v1/models/web/rank"
    assert sentence(web.post(url, content=b" " * 1001, headers=BODY), 413) == (
        "1001 bytes are more than the 1000 allowed."
    )
    chunks = (b" " * 100 for _ in range(20))
    why = sentence(web.post(url, content=chunks, headers=BODY), 413)
    assert why == "the request has more than the 1000 bytes allowed."


def test_a_body_that_is_not_json_by_its_own_word(web):
    headers = {"content-type": "text/plain"}
    why = sentence(web.post("/v1/models/web/rank", content=b"{}", headers=headers), 415)
    assert why == "send application/json or application/x-npy, not 'text/plain'."


def test_fields_in_the_address_of_a_json_request_are_refused(web):
    payload = {"documents": documents(3)[0]}
    why = sentence(web.post("/v1/models/web/rank?top=2", json=payload), 422)
    assert why == "with JSON, top is a field of the body, not of the address."
    assert web.post("/v1/models/web/rank?fresh=2", json=payload).status_code == 200


def test_a_request_that_takes_too_long_is_given_up(files):
    import threading

    web = client(f"web={files / 'linear.rw'}", seconds=0.2, threads=1, max_waiting=2)
    over = threading.Event()
    held = [web.service.submit(lambda: over.wait(30))]
    payload = {"documents": documents(1)[0]}
    try:
        answer = web.post("/v1/models/web/rank", json=payload)
        assert sentence(answer, 503) == "there was no answer within 0.2 s."
        assert answer.headers["retry-after"] == "1"
        held.append(web.service.submit(lambda: None))
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


def test_what_is_served_is_reported(web):
    (about,) = web.get("/v1/models").json()["models"]
    assert about["ranker"] == "listnet"
    assert about["feature_names"] == list(NAMES)
    assert web.get("/v1/models/web").json() == {"models": [about]}
    assert web.get("/v1/models/web@default").json() == {"models": [about]}


def test_the_openapi_document_holds_every_schema_it_refers_to(web):
    document = web.get("/openapi.json").json()
    held = document["components"]["schemas"]
    text = json.dumps(document)
    referred = {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert "Document" in referred
    assert referred <= set(held)
    assert "$defs" not in text
    asked = document["paths"]["/v1/models/{name}/rank/batch"]["post"]
    name, *fields = asked["parameters"]
    assert name["schema"]["enum"] == ["web", "web@default"]
    assert fields == []
    assert list(asked["requestBody"]["content"]) == ["application/json"]
    one = document["paths"]["/v1/models/{name}/score"]["post"]
    assert list(one["requestBody"]["content"]) == ["application/json", "application/x-npy"]
    assert [field["name"] for field in one["parameters"]] == ["name", "query"]


@pytest.mark.parametrize("asked", ["rank", "score", "rank/batch", "score/batch"])
def test_answers_are_those_of_the_schema(web, asked):
    """The structs document the answers; nothing else compares them with what is sent."""
    kinds = {
        "rank": RankAnswer,
        "score": ScoreAnswer,
        "rank/batch": RankBatchAnswer,
        "score/batch": ScoreBatchAnswer,
    }
    payload = {"documents": documents(3)[0], "query": "q"}
    if asked.startswith("rank"):
        payload["explain"] = 2
    if "batch" in asked:
        payload = {"queries": [payload, {"documents": []}]}
    content = web.post(f"/v1/models/web/{asked}", json=payload).content
    answer = msgspec.json.decode(content, type=kinds[asked])
    assert json.loads(msgspec.json.encode(answer)) == json.loads(content)
