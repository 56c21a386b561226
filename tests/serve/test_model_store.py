"""A replaced model file is put in place when it is sound, and reported when it is not."""

import os
import shutil

import pytest
from served import client, documents, save_model

from rankwright.persist.container import ModelFileError
from rankwright.serve.model_store import ModelStore
from rankwright.serve.settings import parse_models


@pytest.fixture
def files(tmp_path):
    save_model(tmp_path / "web.rw")
    save_model(tmp_path / "next.rw", seed=1)
    return tmp_path


def scores(web):
    payload = {"documents": documents(3)[0]}
    return web.post("/v1/models/web/score", json=payload).json()["scores"]


def look(web):
    seen = []
    web.service.store.reload(lambda loaded: (seen.append(loaded), web.service._on_reload(loaded)))
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


@pytest.mark.parametrize("error", ["truncated", "foreign", "gone"])
def test_a_bad_file_leaves_the_model_in_place_and_is_reported(files, error):
    web = client(files / "web.rw")
    before, path = scores(web), files / "web.rw"
    whole = path.read_bytes()
    if error == "truncated":
        path.write_bytes(whole[: len(whole) // 2])
    elif error == "foreign":
        path.write_text("not a model")
    else:
        path.unlink()
    assert look(web) == 1
    assert look(web) == 0  # reported once
    assert scores(web) == before
    ready = web.get("/readyz")
    assert ready.status_code == 200
    assert "cannot be used" in ready.json()["models"][0]["reload_fault"]
    for address in ("/readyz", "/v1/models"):  # where the file lies is for the log alone
        assert str(path.parent) not in web.get(address).text
    assert str(path) in web.service.store.models[0].error
    bad = 'rankwright_model_file_is_valid{model="web",version="default"} 0.0'
    assert bad in web.get("/metrics").text
    shutil.copy(files / "next.rw", path)
    assert look(web) == 1
    assert web.get("/readyz").json()["models"][0]["reload_fault"] is None
    assert scores(web) != before


def test_a_server_does_not_start_on_a_bad_file(tmp_path):
    (tmp_path / "web.rw").write_text("not a model")
    with pytest.raises(ModelFileError, match="is not a model file"):
        ModelStore(parse_models([str(tmp_path / "web.rw")]))


def picks(files, shares, n=4000):
    words = [f"web@{version}={files / 'web.rw'}:{share}%" for version, share in shares.items()]
    store = ModelStore(parse_models(words))
    return [store.pick("web", str(query)).version.version for query in range(n)]


def test_versions_answer_in_proportion_to_their_shares(files):
    shares = {"a": 50, "b": 30, "c": 20}
    found = picks(files, shares)
    for version, share in shares.items():
        deviation = (share / 100 * (1 - share / 100) / len(found)) ** 0.5
        assert abs(found.count(version) / len(found) - share / 100) < 4 * deviation


def test_a_version_that_alone_grows_takes_from_the_others_and_loses_no_query(files):
    before = picks(files, {"a": 60, "b": 30, "c": 10})
    after = picks(files, {"a": 40, "b": 20, "c": 40})
    changed = {(old, new) for old, new in zip(before, after, strict=True) if old != new}
    assert changed == {("a", "c"), ("b", "c")}


def test_a_file_that_breaks_in_an_unforeseen_way_does_not_hide_the_others(files, monkeypatch):
    shutil.copy(files / "web.rw", files / "other.rw")
    web = client(f"web={files / 'web.rw'}", f"other={files / 'other.rw'}")
    from rankwright.serve import model_store

    load = model_store.load_and_try

    def broken(path):
        if path.name == "web.rw":
            raise MemoryError("no room")
        return load(path)

    monkeypatch.setattr(model_store, "load_and_try", broken)
    shutil.copy(files / "next.rw", files / "web.rw")
    shutil.copy(files / "next.rw", files / "other.rw")
    assert look(web) == 2
    one, two = web.service.store.models
    assert "cannot be loaded" in one.error
    assert (two.error, two.reloads) == (None, 1)
