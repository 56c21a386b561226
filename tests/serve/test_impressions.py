"""The log of impressions: whole lines or none, whatever the disk does, and files put aside."""

import errno
import json
import os
import time

import pytest
from cases import each

from rankwright.errors import UsageError
from rankwright.serve import impressions
from rankwright.serve.impressions import ImpressionLog


@pytest.fixture
def lost():
    return []


@pytest.fixture
def opened(tmp_path, lost):
    """A log, and what closes it at the end."""
    made = []

    def make(path=tmp_path / "shown.jsonl", max_size=1 << 20):
        made.append(ImpressionLog(path, max_size, lambda *reason: lost.append(reason)))
        return made[-1]

    yield make
    for log in made:
        if log._thread.is_alive():
            log.close()


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_lines_are_appended_to_what_is_there(opened, lost):
    for turn in range(2):
        log = opened()
        log.append({"turn": turn, "text": "two\nlines \u00e9"})
        log.close()
    assert lines_of(log.path) == [{"turn": n, "text": "two\nlines \u00e9"} for n in range(2)]
    assert lost == []


def test_half_a_line_of_a_crash_is_cut_off(opened, tmp_path):
    path = tmp_path / "shown.jsonl"
    for half in (b'{"session": "x", "qu', b'{"se'):
        path.write_bytes(b'{"session": "w"}\n' + half)
        log = opened()
        log.append({"session": "y"})
        log.close()
        assert lines_of(path) == [{"session": "w"}, {"session": "y"}]


@each("content", [b"first line\nlast line", b'{"a": 1}\n{"a": 2}', b"PK\x03\x04\n\x00{"])
def test_the_end_of_another_file_is_not_cut_off(opened, tmp_path, content):
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(UsageError, match="does not end as a log of impressions"):
        opened(path)
    assert path.read_bytes() == content


def test_a_file_without_lines_is_not_touched(opened, tmp_path, monkeypatch):
    monkeypatch.setattr(impressions, "_TAIL", 100)
    path = tmp_path / "shown.jsonl"
    path.write_bytes(b"x" * 1000)
    with pytest.raises(UsageError, match="does not end as a log of impressions"):
        opened()
    assert path.stat().st_size == 1000


def test_two_servers_do_not_write_to_one_file(opened):
    pytest.importorskip("fcntl")
    opened()
    with pytest.raises(UsageError, match="another server writes to"):
        opened()


def test_a_folder_that_is_not_there(opened, tmp_path):
    with pytest.raises(UsageError, match="cannot be written: No such file"):
        opened(tmp_path / "none" / "shown.jsonl")


def test_a_full_file_is_put_aside(opened, tmp_path):
    log = opened(max_size=100)
    for number in range(30):
        log.append({"number": number, "text": "x" * 50})
        while log._waiting.qsize():
            time.sleep(0.001)
    log.close()
    found = sorted(tmp_path.glob("shown*.jsonl"))
    assert len(found) > 5
    numbers = [line["number"] for path in found for line in lines_of(path)]
    assert sorted(numbers) == list(range(30))


def test_a_link_stays_when_its_file_is_put_aside(opened, tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "shown.jsonl").symlink_to(tmp_path / "disk" / "log.jsonl")
    log = opened(max_size=10)
    for number in range(2):
        log.append({"number": number, "text": "x" * 50})
        while log._waiting.qsize():
            time.sleep(0.001)
    log.close()
    assert (tmp_path / "shown.jsonl").is_symlink()
    assert len(list((tmp_path / "disk").glob("log*.jsonl"))) > 1


def test_a_file_that_cannot_be_opened_anew_is_tried_again(opened, tmp_path, lost, monkeypatch):
    """Such as for want of file descriptors, when the old one is full and was put aside."""
    log = opened(max_size=10)
    log._write([b'{"session": 1}\n'])

    def refused(path):
        raise UsageError(f"{path} cannot be written: Too many open files.")

    with monkeypatch.context() as patched:
        patched.setattr(impressions, "_open_log", refused)
        log._write([b'{"session": 2}\n'])
    assert lost == [("disk", 1)]
    log._write([b'{"session": 3}\n'])
    assert lines_of(log.path) == [{"session": 3}]
    log.path.rename(tmp_path / "moved")  # by somebody else
    log._write([b'{"session": 4}\n'])
    assert lines_of(log.path) == [{"session": 4}]
    assert lost == [("disk", 1)]


@pytest.mark.parametrize("taken", [0, 10, 25])
def test_a_full_disk_loses_lines_and_never_halves_one(opened, lost, monkeypatch, taken):
    log = opened()
    log.append({"first": 1})
    while not log._size:
        time.sleep(0.001)
    write = os.write

    def full(file, content):
        if file != log._file:
            return write(file, content)
        if not taken:
            write(file, content[:7])  # what a disk may leave behind
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(file, content[:taken])

    with monkeypatch.context() as patched:
        patched.setattr(impressions.os, "write", full)
        log._write([b'{"second": 2}\n', b'{"third": 3}\n', b'{"fourth": 4}\n'])
    log.append({"last": 5})
    log.close()
    whole = [{"second": 2}] if taken == 25 else []
    assert lines_of(log.path) == [{"first": 1}, *whole, {"last": 5}]
    assert lost == [("disk", 3 - len(whole))]


def test_lines_that_come_too_fast_are_counted(opened, lost, monkeypatch):
    monkeypatch.setattr(impressions, "_MAX_WAITING", 3)
    monkeypatch.setattr(ImpressionLog, "_run", lambda _: None)
    log = opened()
    for number in range(5):
        log.append({"number": number})
    assert lost == [("queue", 1), ("queue", 1)]
    os.close(log._file)
