"""Send a server damaged requests: each gets an answer or a 4xx with a sentence, never a 5xx.

The application runs in the process itself, with models of several families behind it, so that what
ends the process or hangs is seen at once. An input is a line with address and headers, and a body.
"""

from __future__ import annotations

import io
import json
import random
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from damage import Attack, mutated
from small_data import small_data

import rankwright
from rankwright.errors import UsageError

MODELS: dict[str, dict[str, Any]] = {
    "lambdamart": {"n_estimators": 3, "num_leaves": 4},
    "ranknet": {"model": "linear"},
    "rankboost": {"n_rounds": 3},
    "prank": {},
}
NPY, ARROW = "application/x-npy", "application/vnd.apache.arrow.stream"
VALUES = (None, True, -1, 0, 1, 2**31, 2**63, 2**64, 1e308, -0.0, "", "a", "\ud800", [], {}, [[]])
WORDS = ("NaN", "Infinity", "-Infinity", "1e999", '"\\ud800"', "[" * 2000, '{"a":' * 500)


def write(folder: Path) -> Sequence[Path]:
    """Save the models and write a request of each kind for each."""
    data = small_data(queries=8, documents=6, features=3, feature_names=list("abc"))
    found = []
    for name, parameters in MODELS.items():
        rankwright.ranker(name, **parameters).fit(data).save(folder / f"{name}.rw")
        documents = [
            {"id": f"d{i}", "group": f"g{i % 2}", "features": dict(zip("abc", row, strict=True))}
            for i, row in enumerate(data.X[:4].tolist())
        ]
        one = {"query": "q", "documents": documents, "top": 3, "per_group": 1, "explain": 2}
        listed = {"documents": [{"features": [0.5, 1, 2]}, {"features": [1, 0, 0]}]}
        for verb, body in {
            "rank": one,
            "score": listed,
            "rank/batch": {"queries": [one, listed]},
            "score/batch": {"queries": [listed, listed]},
        }.items():
            path = folder / f"{name}-{verb.replace('/', '-')}.request"
            head = {"path": f"/v1/models/{name}/{verb}", "content-type": "application/json"}
            path.write_bytes(f"{json.dumps(head)}\n{json.dumps(body)}".encode())
            found.append(path)
        found += _binary(folder, name, data.X[:4])
    path = folder / "interleaved.request"
    head = {"path": "/v1/interleave/rank", "content-type": "application/json"}
    interleaved = {"query": "q", "documents": documents}
    path.write_bytes(f"{json.dumps(head)}\n{json.dumps(interleaved)}".encode())
    return [*found, path]


def _binary(folder: Path, name: str, X: Any) -> list[Path]:
    """Write requests with arrays: npy of both precisions, Arrow by vectors and by names."""
    import pyarrow as pa

    rank = f"/v1/models/{name}/rank"
    roles = {"id": list("pqrs"), "group": [0, 1, 0, 1], "query": ["q", "q", "r", "r"]}
    one = {**roles, "query": ["q"] * 4}
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), X.shape[1])
    named = {key: pa.array(X[:, k]) for k, key in enumerate("abc")}
    coded = {**roles, "id": pa.array(roles["id"]).dictionary_encode()}
    requests = {
        "npy": (f"{rank}?query=q&top=2", NPY, _npy(X)),
        "npy4": (f"/v1/models/{name}/score", NPY, _npy(X.astype("<f4").T.copy().T)),
        "vectors": (f"{rank}?per_group=1&explain=1", ARROW, _arrow({**one, "features": vectors})),
        "named": (f"{rank}/batch?top=1", ARROW, _arrow({**coded, **named})),
    }
    found = []
    for kind, (address, encoding, body) in requests.items():
        path = folder / f"{name}-{kind}.request"
        head = {"path": address, "content-type": encoding}
        path.write_bytes(json.dumps(head).encode() + b"\n" + body)
        found.append(path)
    return found


def _npy(X: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, X)
    return stream.getvalue()


def _arrow(columns: dict[str, Any]) -> bytes:
    import pyarrow as pa

    table, stream = pa.table(columns), io.BytesIO()
    with pa.ipc.new_stream(stream, table.schema) as sink:
        sink.write_table(table)
    return stream.getvalue()


def damage(path: Path, target: Path, rng: random.Random) -> None:
    """Change values in the body, or its bytes, and now and then the address or its headers."""
    first, _, body = path.read_bytes().partition(b"\n")
    head = json.loads(first)
    if rng.random() < 0.1:
        head[rng.choice(["path", "content-type", "x-request-id", "accept-encoding"])] = rng.choice(
            ["", "/v1/models/lambdamart@default/rank", "application/xml", "/v1/models/%00/rank"]
        )
    if head.get("content-type") != "application/json" and rng.random() < 0.5:
        body = _with_odd_numbers(body, rng)
    elif body.startswith(b"{") and rng.random() < 0.6:
        content = json.loads(body)
        for _ in range(rng.randint(1, 3)):
            content = _changed(content, rng)
        body = json.dumps(content).encode()
        if rng.random() < 0.2:
            body = body.replace(b"null", rng.choice(WORDS).encode(), 1)
    else:
        body = mutated(body, rng)
    target.write_bytes(json.dumps(head).encode() + b"\n" + body)


def _with_odd_numbers(body: bytes, rng: random.Random) -> bytes:
    """Return a binary body in which a few aligned words, such as lengths and offsets, are odd."""
    changed = bytearray(body)
    for _ in range(rng.randint(1, 4)):
        size = rng.choice([2, 4, 8])
        at = rng.randrange(0, max(size, len(changed) - size), size)
        word = rng.choice([0, 1, 2, 7, 255, 2**31 - 1, 2**31, 2**62, 2**63, 2**64 - 1])
        changed[at : at + size] = (word % (1 << 8 * size)).to_bytes(size, "little")
    return bytes(changed)


def _changed(content: Any, rng: random.Random) -> Any:
    """Return the content with one value in it replaced, removed, repeated or put elsewhere."""
    if isinstance(content, dict) and content and rng.random() < 0.8:
        key = rng.choice(list(content))
        if rng.random() < 0.2:
            return {name: value for name, value in content.items() if name != key}
        if rng.random() < 0.1:
            return {**content, rng.choice(["", "x", "documents", "\0", "a" * 5000]): content[key]}
        return {**content, key: _changed(content[key], rng)}
    if isinstance(content, list) and content and rng.random() < 0.8:
        at = rng.randrange(len(content))
        if rng.random() < 0.2:
            return content * rng.choice([0, 2, 300])
        return [*content[:at], _changed(content[at], rng), *content[at + 1 :]]
    return rng.choice(VALUES)


@cache
def _client(folder: Path) -> Any:
    from fastapi.testclient import TestClient

    from rankwright.serve.app import Service
    from rankwright.serve.model_store import ModelStore
    from rankwright.serve.settings import Settings, parse_models

    files = sorted(map(str, folder.glob("*.rw")))
    limits = Settings(
        reload_seconds=0,
        threads=1,
        max_body=1 << 20,
        seconds=60,
        interleave="team_draft",
        impressions=folder / "shown.jsonl",
    )
    service = Service(ModelStore(parse_models(files)), limits)
    client = TestClient(service.middleware, raise_server_exceptions=False)
    return client.__enter__()  # one event loop for all requests


def use(path: Path) -> None:
    """Send a request."""
    first, _, body = path.read_bytes().partition(b"\n")
    head = json.loads(first)
    address = head.pop("path")
    answer = _client(path.parent).post(f"/{address.lstrip('/')}", content=body, headers=head)
    if answer.status_code >= 500:
        raise AssertionError(f"{answer.status_code} {answer.text[:500]}")
    if answer.status_code != 200:
        content = answer.json()
        if set(content) != {"error", "request_id"} or "\n" in content["error"]:
            raise AssertionError(f"{answer.status_code} {answer.text[:500]}")
        raise UsageError(content["error"])
    json.loads(answer.content, parse_constant=_refuse)


def _refuse(word: str) -> None:
    raise AssertionError(f"{word} is not JSON")


ATTACK = Attack("requests to a server of four models", write, damage, use)
