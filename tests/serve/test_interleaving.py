"""A server that interleaves models: its lists, its log, clicks, and the verdict on them."""

import http.client
import json
import random
import signal

import numpy as np
import pytest
from cases import each
from served import BODY, NAMES, NPY, documents, npy, sentence
from served import client as client_of
from server_process import serving

from rankwright import clicks
from rankwright.errors import UsageError
from rankwright.serve import interleaving
from rankwright.serve.settings import Settings

RANK, CLICK = "/v1/interleave/rank", "/v1/interleave/clicks"


@pytest.fixture
def shop(files, tmp_path):
    """A client of a server that interleaves two models, and its log."""
    web = experiment(files, tmp_path / "shown.jsonl")
    yield web
    web.service.experiment.close()


def experiment(files, path, models=("linear", "other"), **settings):
    settings = {"interleave": "team_draft", "interleave_k": 4, "impressions": path, **settings}
    web = client_of(*[files / f"{name}.rw" for name in models], **settings)
    web.log = path
    return web


def log_of(web):
    """Return the lines of the log, whole."""
    web.service.experiment.close()
    web.service.experiment.close = lambda: None
    return [json.loads(line) for line in web.log.read_text().splitlines()]


def asked(n, query="q", seed=0):
    return {"query": query, "documents": documents(n, seed)[0]}


def test_the_list_is_that_of_the_method_and_the_log_says_so(shop):
    body = asked(8)
    found = shop.post(RANK, json=body).json()
    scores = [
        shop.post(f"/v1/models/{name}/score", json=body).json()["scores"]
        for name in ("linear", "other")
    ]
    expected = clicks.interleave_scores(scores, clicks.TeamDraft(4), session=found["session"])
    assert [place["index"] for place in found["ranking"]] == expected.order.tolist()
    assert [place["rank"] for place in found["ranking"]] == [1, 2, 3, 4]
    assert [place["id"] for place in found["ranking"]] == [
        body["documents"][row]["id"] for row in expected.order
    ]
    assert [place["team"] for place in found["ranking"]] == expected.team.tolist()
    (line,) = log_of(shop)
    assert line.pop("time") > 1.7e9
    ids = [document["id"] for document in body["documents"]]
    assert line == {
        "session": found["session"],
        **expected.to_json("q", ids, ("linear", "other")),
        "clicked": [],
    }


def test_clicks_reach_the_verdict(shop):
    rng = random.Random(0)
    for number in range(40):
        found = shop.post(RANK, json=asked(6, f"q{number}", number)).json()
        for place in rng.sample(found["ranking"], 2):
            report = {"session": found["session"], "document": place["id"]}
            answer = shop.post(CLICK, json=report)
            assert answer.json() == {
                "session": found["session"],
                "position": place["rank"],
                "recorded": True,
            }
    assert len(log_of(shop)) == 120
    log = clicks.load_log(shop.log)
    assert log.n_sessions == 40
    assert log.click.sum() == 80
    assert log.interleaving.rankers == ("linear", "other")
    (pair,) = clicks.score_interleaving(log).pairs
    assert pair.wins + pair.losses + pair.ties == 40


def test_a_click_by_document_or_position_counts_once(shop):
    found = shop.post(RANK, json=asked(3)).json()
    session = {"session": found["session"]}
    first = {**session, "position": 2}
    same = {**session, "document": found["ranking"][1]["id"]}
    recorded = [shop.post(CLICK, json=one).json()["recorded"] for one in (first, same, first)]
    assert recorded == [True, False, False]
    lines = log_of(shop)
    assert [line["clicked"] for line in lines] == [[], [2]]
    text = shop.get("/metrics").text
    assert "rankwright_impressions_total 1.0" in text
    assert "rankwright_clicks_total 1.0" in text


def test_ids_that_are_numbers_are_found_again(shop):
    body = asked(3, query=7)
    for number, document in enumerate(body["documents"]):
        document["id"] = number
    found = shop.post(RANK, json=body).json()
    place = found["ranking"][0]
    answer = shop.post(CLICK, json={"session": found["session"], "document": place["id"]})
    assert answer.json()["position"] == 1
    log_of(shop)
    assert clicks.load_log(shop.log).query_ids.tolist() == [7]


@each(
    ("change", "why"),
    [
        ({"query": None}, "query is missing; the log of an experiment needs it."),
        ({"documents": [{"features": [0.5] * 6}]}, "documents[0] has no id; the log needs it."),
        (
            {"documents": [{"id": 1, "features": [0.5] * 6}, {"id": "1", "features": [0.5] * 6}]},
            "documents[1] has the id of another document.",
        ),
        ({"top": 3}, "the request: object contains unknown field top."),
        ({"documents": [{"id": 1, "features": [0.5]}]}, "documents[0] has 1 features, the model"),
    ],
)
def test_lists_that_cannot_be_logged_are_refused(shop, change, why):
    assert sentence(shop.post(RANK, json={**asked(2), **change}), 422).startswith(why)


@each(
    ("report", "status", "why"),
    [
        ({"session": "none", "position": 1}, 404, "the session is not known"),
        ({"position": 1}, 422, "the request: object missing required field session"),
        ({"position": 0}, 422, "position: expected int >= 1"),
        ({"position": 4}, 422, "position must be at most 3, the length of the list."),
        ({"document": "zz"}, 422, "the document is not in the list of the session."),
        ({}, 422, "give the document that was clicked, or its position."),
        ({"position": 1, "document": "d0"}, 422, "give the document that was clicked, or its"),
        ({"position": 1, "user": "x"}, 422, "the request: object contains unknown field user."),
    ],
)
def test_clicks_that_are_refused(shop, report, status, why):
    session = shop.post(RANK, json=asked(3)).json()["session"]
    body = report if "missing" in why else {"session": session, **report}
    assert why in sentence(shop.post(CLICK, json=body), status)


def test_other_bodies(shop):
    body = npy(documents(5)[1])
    refused = "send application/json, not 'application/x-npy'."
    assert sentence(shop.post(f"{RANK}?query=q", content=body, headers=NPY), 415) == refused
    assert sentence(shop.post(CLICK, content=b"", headers=NPY), 415) == refused


def test_an_empty_list_is_not_logged(shop):
    assert shop.post(RANK, json=asked(0)).json()["ranking"] == []
    assert log_of(shop) == []


@pytest.mark.parametrize("limit", ["_MAX_SESSIONS", "_MAX_CHARACTERS"])
def test_old_sessions_are_forgotten(shop, monkeypatch, limit):
    ids = sum(len(str(document["id"])) for document in asked(3)["documents"])
    each = {"_MAX_SESSIONS": 1, "_MAX_CHARACTERS": ids}
    monkeypatch.setattr(interleaving, limit, 2 * each[limit])
    made = [shop.post(RANK, json=asked(3)).json()["session"] for _ in range(3)]
    status = [shop.post(CLICK, json={"session": one, "position": 1}).status_code for one in made]
    assert status == [404, 200, 200]


def test_models_with_other_features_take_their_own_by_name(tmp_path):
    from small_data import small_data

    import rankwright

    for names, file in ((NAMES, "a.rw"), (("x", *NAMES[1:]), "b.rw")):
        data = small_data(feature_names=names)
        rankwright.ListNet().fit(data).save(tmp_path / file)
    settings = {"interleave": "team_draft", "impressions": tmp_path / "shown.jsonl"}
    web = client_of(tmp_path / "a.rw", tmp_path / "b.rw", **settings)
    names = ("x", *NAMES)
    listed = [{"id": n, "features": dict.fromkeys(names, float(n))} for n in range(3)]
    answer = web.post(RANK, json={"query": "q", "documents": listed})
    assert len(answer.json()["ranking"]) == 3
    for one in listed:
        del one["features"]["x"]
    why = sentence(web.post(RANK, json={"query": "q", "documents": listed}), 422)
    assert why.startswith("documents[0] has no feature 'x'")
    web.service.experiment.close()


def test_versions_and_several_models(files, tmp_path):
    path = tmp_path / "shown.jsonl"
    settings = {"interleave": "probabilistic", "impressions": path}
    web = client_of(
        f"web={files / 'linear.rw'}", f"web@next={files / 'other.rw'}", files / "trees.rw",
        **settings,
    )  # fmt: skip
    web.log = path
    assert len(web.post(RANK, json=asked(4)).json()["ranking"]) == 4
    (line,) = log_of(web)
    assert line["interleaving"]["rankers"] == ["web@default", "web@next", "trees@default"]
    assert np.shape(line["credits"]) == (4, 3)


def test_a_lost_line_does_not_fail_a_ranking(shop):
    log = shop.service.experiment.log

    def fail(_):
        log._on_lost("disk", 1)

    log.append = fail
    assert shop.post(RANK, json=asked(3)).status_code == 200
    lost = 'rankwright_impression_lines_lost_total{reason="disk"} 1.0'
    assert lost in shop.get("/metrics").text


def test_a_server_without_an_experiment_has_no_such_address(web):
    assert web.post(RANK, json=asked(3)).status_code == 404


@each(
    ("settings", "why"),
    [
        ({"interleave": "team_draft"}, "--interleave METHOD and --impressions FILE go together"),
        ({"impressions": "x"}, "--interleave METHOD and --impressions FILE go together"),
        ({"interleave_k": 0}, "--interleave-k must be above 0"),
    ],
)
def test_settings_that_make_no_experiment(settings, why):
    with pytest.raises(UsageError, match=why):
        Settings(**settings)


@each(
    ("models", "method", "why"),
    [
        (("linear",), "team_draft", "there is nothing to interleave"),
        (("linear", "other", "trees"), "optimised", "optimised interleaves two rankers, not 3"),
        (("linear", "other"), "teamdraft", "did you mean team_draft"),
    ],
)
def test_models_that_cannot_be_interleaved(files, tmp_path, models, method, why):
    with pytest.raises(UsageError, match=why):
        experiment(files, tmp_path / "x.jsonl", models, interleave=method)
    assert not (tmp_path / "x.jsonl").exists()


def test_the_document_of_the_experiment(shop):
    paths = shop.get("/openapi.json").json()["paths"]
    for address in (RANK, CLICK):
        assert list(paths[address]["post"]["requestBody"]["content"]) == ["application/json"]


def test_a_server_that_stops_has_logged_every_list_that_it_gave(files, tmp_path):
    shown = tmp_path / "shown.jsonl"
    models = [files / "linear.rw", files / "other.rw"]
    given = []
    with serving(*models, "--interleave", "team_draft", "--impressions", shown) as server:
        link = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        for number in range(20):
            link.request("POST", RANK, json.dumps(asked(5, f"q{number}")).encode(), BODY)
            given.append(json.loads(link.getresponse().read())["session"])
        report = json.dumps({"session": given[3], "position": 2}).encode()
        link.request("POST", CLICK, report, BODY)
        assert json.loads(link.getresponse().read())["recorded"]
        link.close()
        server.process.send_signal(signal.SIGTERM)
        assert server.end() == 0
    lines = [json.loads(line) for line in shown.read_text().splitlines()]
    assert [line["session"] for line in lines] == [*given, given[3]]
    log = clicks.load_log(shown)
    assert (log.n_sessions, int(log.click.sum())) == (20, 1)
