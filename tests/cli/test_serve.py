"""``rankwright serve``: what it refuses before it serves."""

import socket
import sys

import pytest
from command import run, sentence


@pytest.fixture
def model(tmp_path):
    from small_data import small_data

    import rankwright

    rankwright.ListNet().fit(small_data()).save(tmp_path / "web.rw")
    return tmp_path / "web.rw"


def test_help_says_how_models_are_named():
    assert "NAME@VERSION=FILE:10%" in run("serve", "--help", COLUMNS="200").stdout


def test_a_file_that_is_no_model(tmp_path):
    (tmp_path / "web.rw").write_text("nothing")
    assert "is not a model file" in sentence("serve", tmp_path / "web.rw", alone=True)
    assert "does not exist" in sentence("serve", tmp_path / "none.rw")


def test_a_port_that_is_taken(model):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"cannot listen on 127.0.0.1, port {port}" in sentence(
            "serve", model, "--port", port
        )


def test_a_certificate_that_is_none(model, tmp_path):
    (tmp_path / "cert.pem").write_text("nothing")
    reported = sentence("serve", model, "--tls-cert", tmp_path / "cert.pem", "--port", 0)
    assert "cert.pem cannot be used" in reported


def test_an_extra_that_is_not_installed(monkeypatch):
    from rankwright.errors import MissingExtraError
    from rankwright.serve import serve
    from rankwright.serve.settings import Listening, Settings

    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(MissingExtraError, match=r"needs uvicorn.*rankwright\[serve\]"):
        serve(["m.rw"], settings=Settings(), listening=Listening())
