"""Addresses and models of docs/how-to/serve.md; its curl lines run in tests/docs."""

import re
from pathlib import Path

from served import client
from small_data import small_data

import rankwright
from rankwright.serve.settings import parse_models

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "serve.md"


def test_the_models_of_the_page_are_understood():
    lines = re.findall(r"^(?:\$ )?rankwright serve (.+?)(?: &)?$", PAGE.read_text(), re.M)
    assert len(lines) == 3
    for line in lines:
        assert parse_models(line.partition(" --")[0].split())


def test_every_address_of_the_page_is_there(tmp_path):
    rankwright.ListNet().fit(small_data()).save(tmp_path / "web.rw")
    paths = client(tmp_path / "web.rw").get("/openapi.json").json()["paths"]
    for verb in ("rank", "score", "rank/batch", "score/batch"):
        assert f"/v1/models/{{name}}/{verb}" in paths
    assert not any(path.startswith("/v1/interleave") for path in paths)
    assert {"/v1/models", "/v1/models/{name}", "/healthz", "/readyz", "/metrics"} <= set(paths)
