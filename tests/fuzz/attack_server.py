"""Requests to a server: each gets an answer, or a 4xx with a sentence, and never a 5xx.

The application runs in the process itself, with models of several families behind it, so that a
crash or a hang is noticed at once. An input is a folder with address and headers, and a body.
"""

import json
from functools import cache

import numpy as np
from damage import Attack
from served import NPY, client, npy
from small_data import small_data

import rankwright as rw
from rankwright.errors import UsageError

MODELS = {
    "lambdamart": {"n_estimators": 3, "num_leaves": 4},
    "ranknet": {"model": "linear"},
    "rankboost": {"n_rounds": 3},
    "prank": {},
}
JSON = {"content-type": "application/json"}


def write_requests(folder):
    """Save the models and write a request of each kind for each."""
    data = small_data(queries=8, documents=6, features=3, feature_names=list("abc"))
    (folder.parent / "models").mkdir()
    for name, parameters in MODELS.items():
        rw.ranker(name, **parameters).fit(data).save(folder.parent / "models" / f"{name}.rw")
    rows = data.X[:4]
    documents = [
        {"id": f"d{i}", "group": f"g{i % 2}", "features": dict(zip("abc", row, strict=True))}
        for i, row in enumerate(rows.tolist())
    ]
    one = {"query": "q", "documents": documents, "top": 3, "per_group": 1, "explain": 2}
    listed = {"documents": [{"features": [0.5, 1, 2]}, {"features": [1, 0, 0]}]}
    bodies = {
        "rank": ("rank", JSON, one),
        "score": ("score", JSON, listed),
        "rank-batch": ("rank/batch", JSON, {"queries": [one, listed]}),
        "score-batch": ("score/batch", JSON, {"queries": [listed, listed]}),
        "npy": ("rank?query=q&top=2", NPY, npy(rows)),
        "npy4": ("score", NPY, npy(np.asfortranarray(rows.astype("<f4")))),
    }
    for name in MODELS:
        for kind, (verb, headers, body) in bodies.items():
            _write(folder / f"{name}-{kind}", f"/v1/models/{name}/{verb}", headers, body)
    interleaved = {"query": "q", "documents": documents}
    _write(folder / "interleaved", "/v1/interleave/rank", JSON, interleaved)
    return sorted(folder.iterdir())


def _write(folder, address, headers, body):
    folder.mkdir()
    (folder / "head.json").write_text(json.dumps({"address": address, "headers": headers}))
    (folder / "body").write_bytes(body if isinstance(body, bytes) else json.dumps(body).encode())


def use_request(path):
    """Send a request, if the client can make one of a damaged head."""
    web = _client(path.parents[1] / "models")
    try:
        head = json.loads((path / "head.json").read_bytes())
        headers = {str(k): str(v).encode() for k, v in head["headers"].items()}
        body = (path / "body").read_bytes()
        request = web.build_request("POST", head["address"], content=body, headers=headers)
    except Exception:  # whatever the client refuses to send
        return
    answer = web.send(request)
    assert answer.status_code < 500, f"{answer.status_code} {answer.text[:500]}"
    if answer.status_code != 200:
        content = answer.json()
        assert set(content) == {"error", "request_id"}, content
        assert "\n" not in content["error"]
        raise UsageError(content["error"])
    json.loads(answer.content, parse_constant=_refuse)


def _refuse(word):
    raise AssertionError(f"{word} is not JSON")


@cache
def _client(models):
    found = client(
        *sorted(models.glob("*.rw")),
        threads=1,
        max_body=1 << 20,
        interleave="team_draft",
        impressions=models / "shown.jsonl",
    )
    return found.__enter__()  # one event loop for all requests


REQUESTS = Attack(write_requests, use_request)
