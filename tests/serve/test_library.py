"""A replaced model file is put in place when it is sound, and told of when it is not."""

import os
import shutil

import pytest
from served import client, documents, save_model

from rankwright.persist.container import ModelFileError
from rankwright.serve.library import Library
from rankwright.serve.settings import parse_models


@pytest.fixture
def files(tmp_path):
    save_model(tmp_path / "web.rw")
    save_model(tmp_path / "next.rw", seed=1)
    return tmp_path


def scores(web):
    told = {"documents": documents(3)[0]}
    return web.post("/v1/models/web/score", json=told).json()["scores"]


def look(web):
    seen = []
    web.service.library.reload(lambda slot: (seen.append(slot), web.service._saw_reload(slot)))
    return len(seen)


def test_a_replaced_file_is_served_after_the_next_look(files):
    web = client(files / "web.rw")
    before, after = scores(web), scores(client(f"web={files / 'next.rw'}"))
    assert look(web) == 0
    os.replace(files / "next.rw", files / "web.rw")
    assert scores(web) == before
    assert look(web) == 1
    assert scores(web) == after != before
    assert look(web) == 0
    assert web.get("/readyz").json()["models"][0]["reloads"] == 1


@pytest.mark.parametrize("fault", ["truncated", "foreign", "gone"])
def test_a_bad_file_leaves_the_model_in_place_and_is_told(files, fault):
    web = client(files / "web.rw")
    before, path = scores(web), files / "web.rw"
    whole = path.read_bytes()
    if fault == "truncated":
        path.write_bytes(whole[: len(whole) // 2])
    elif fault == "foreign":
        path.write_text("not a model")
    else:
        path.unlink()
    assert look(web) == 1
    assert look(web) == 0  # told once
    assert scores(web) == before
    ready = web.get("/readyz")
    assert ready.status_code == 200
    assert str(path) in ready.json()["models"][0]["reload_fault"]
    bad = 'rankwright_model_file_is_sound{model="web",version="default"} 0.0'
    assert bad in web.get("/metrics").text
    shutil.copy(files / "next.rw", path)
    assert look(web) == 1
    assert web.get("/readyz").json()["models"][0]["reload_fault"] is None
    assert scores(web) != before


def test_a_server_does_not_start_on_a_bad_file(tmp_path):
    (tmp_path / "web.rw").write_text("not a model")
    with pytest.raises(ModelFileError, match="is no model file"):
        Library(parse_models([str(tmp_path / "web.rw")]))
