"""The words after ``rankwright serve``."""

from pathlib import Path

import pytest

from rankwright.errors import UsageError
from rankwright.serve.settings import Listening, Settings, Version, parse_models, with_keys


def test_models_are_named_by_their_file_or_by_the_caller():
    assert parse_models(["dir/web.rw", "shop=a=b.rw"]) == [
        Version("web", "default", Path("dir/web.rw"), 1.0),
        Version("shop", "default", Path("a=b.rw"), 1.0),
    ]


def test_a_version_without_a_share_takes_what_is_left():
    shares = {v.version: v.share for v in parse_models(["w=a", "w@b=b:10%", "w@c=c:2.5%"])}
    assert shares == pytest.approx({"default": 0.875, "b": 0.1, "c": 0.025})
    assert [v.share for v in parse_models(["w=a", "w@b=b"])] == [0.5, 0.5]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ([], "at least one model"),
        (["=a.rw"], "is not a model"),
        (["we b.rw"], "is not a model"),
        (["w=a", "w=b"], "two files for w@default"),
        (["w=a:50%", "w@b=b:40%"], "add up to 90%"),
        (["w=a", "w@b=b:120%"], "add up to 120%"),
        (["w=a:10%"], "add up to 10%"),
    ],
)
def test_what_makes_no_sense_is_refused(words, why):
    with pytest.raises(UsageError, match=why):
        parse_models(words)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"missing": "zero"}, "--missing is error or nan, not 'zero'"),
        ({"unknown": "nan"}, "--unknown is error or ignore"),
        ({"max_documents": 0}, "--max-documents must be above 0"),
        ({"max_values": 0}, "--max-values must be above 0"),
        ({"seconds": -1.0}, "--seconds must be above 0"),
        ({"seconds": float("inf")}, "--seconds must be a finite number"),
        ({"threads": 0}, "threads must be 1 or more"),
    ],
)
def test_settings_out_of_range(settings, why):
    with pytest.raises(UsageError, match=why):
        Settings(**settings)


def test_a_private_key_needs_its_certificate():
    with pytest.raises(UsageError, match="--tls-key needs --tls-cert"):
        Listening(tls_key=Path("key.pem"))


def test_a_key_file_saved_on_windows_lets_its_first_key_in(tmp_path):
    (tmp_path / "keys").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    settings = with_keys(Settings(), tmp_path / "keys")
    assert [settings.lets_in(key) for key in ("one", "two", "three")] == [True, True, False]


@pytest.mark.parametrize("held", ["", " , ", ",", "\n"])
def test_a_variable_without_a_key_starts_no_server_that_is_open_to_all(monkeypatch, held):
    monkeypatch.setenv("RANKWRIGHT_API_KEYS", held)
    with pytest.raises(UsageError, match="RANKWRIGHT_API_KEYS is set and holds no API key"):
        with_keys(Settings(), None)


def test_an_empty_key_file_is_refused_whatever_the_environment_holds(tmp_path, monkeypatch):
    monkeypatch.setenv("RANKWRIGHT_API_KEYS", "one, two")
    assert with_keys(Settings(), None).lets_in("two")
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(UsageError, match="holds no API key"):
        with_keys(Settings(), tmp_path / "empty")


def test_key_files_that_hold_no_key(tmp_path):
    with pytest.raises(UsageError, match="cannot be read"):
        with_keys(Settings(), tmp_path / "none")
    (tmp_path / "empty").write_text("\n \n")
    with pytest.raises(UsageError, match="holds no API key"):
        with_keys(Settings(), tmp_path / "empty")
