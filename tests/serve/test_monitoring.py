"""Keys, ids of requests, lines of the log, figures, and bodies that are too large."""

import json
import logging

from served import BODY, client, documents, sentence


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


def test_every_request_is_one_line_of_json_with_its_id(web, caplog):
    from rankwright.serve.monitoring import JsonLines

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
    for path in ("/metrics", "/openapi.json", "/v1/models", "/nowhere"):
        assert "an API key is required" in sentence(web.get(path), 401)
    assert "is required" in sentence(web.get("/v1/models", headers={"x-api-key": ""}), 401)
    for wrong in ("firs", "first2", "FIRST", "\u00fc"):
        for headers in (
            {"x-api-key": wrong.encode()},
            {"authorization": b"Bearer " + wrong.encode()},
        ):
            refused = sentence(web.get("/v1/models", headers=headers), 401)
            assert refused.startswith("the API key is not valid; ")
            assert wrong not in refused
    for right in ("first", "second", "third"):
        assert web.get("/v1/models", headers={"x-api-key": right}).status_code == 200
        bearer = {"authorization": f"Bearer {right}"}
        assert web.get("/v1/models", headers=bearer).status_code == 200
