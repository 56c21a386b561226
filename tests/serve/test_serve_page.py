"""What docs/how-to/serve.md shows is what the server takes and gives."""

import json
import re
from pathlib import Path

from served import client
from small_data import small_data

import rankwright
from rankwright.serve.settings import parse_models

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "serve.md"


def test_the_request_of_the_page_gets_an_answer_of_its_shape(tmp_path):
    asked, told = map(json.loads, re.findall(r"```json\n(.*?)```", PAGE.read_text(), re.S))
    names = ["bm25", "clicks"]
    rankwright.ListNet().fit(small_data(features=2, feature_names=names)).save(tmp_path / "web.rw")
    answer = client(tmp_path / "web.rw").post("/v1/models/web/rank", json=asked).json()
    assert set(answer) == set(told)
    assert [set(place) for place in answer["ranking"]] == [set(p) for p in told["ranking"]]


def test_the_models_of_the_page_are_understood():
    lines = re.findall(r"^\$ rankwright serve (.+)$", PAGE.read_text(), re.M)
    assert len(lines) == 2
    for line in lines:
        assert parse_models(line.split())


def test_every_address_of_the_page_is_there(tmp_path):
    rankwright.ListNet().fit(small_data()).save(tmp_path / "web.rw")
    paths = client(tmp_path / "web.rw").get("/openapi.json").json()["paths"]
    for verb in ("rank", "score", "rank/batch", "score/batch"):
        assert f"/v1/models/{{name}}/{verb}" in paths
    assert {"/v1/models", "/v1/models/{name}", "/healthz", "/readyz", "/metrics"} <= set(paths)
