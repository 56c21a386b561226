"""Progress: on a terminal bars, elsewhere a line per step, and one now and then over rounds."""

from io import StringIO
from types import SimpleNamespace

import pytest
from rich.console import Console

from rankwright.cli import console


def test_steps_are_counted(capsys):
    with console.step_progress("fits", 2) as step:
        step("gbdt: 1.20 s")
        step("memr: 0.30 s")
    assert capsys.readouterr().err == "1 of 2: gbdt: 1.20 s\n2 of 2: memr: 0.30 s\n"


def test_rounds_are_reported_every_ten_seconds(capsys, monkeypatch):
    clock = iter([100, 104, 110, 112, 130])  # of the rounds 1 to 5; before the first, kernels load
    monkeypatch.setattr(console, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    with console.round_progress("gbdt", 50) as reported:
        for t in range(1, 6):
            reported(t, f"loss {t}")
    assert capsys.readouterr().err == "gbdt: 3 of 50, loss 3\ngbdt: 5 of 50, loss 5\n"


def test_a_fit_that_is_done_at_once_prints_nothing(capsys):
    with console.round_progress("gbdt", None) as reported:
        reported(1, "loss 1")
    assert capsys.readouterr().err == ""


@pytest.fixture
def terminal(monkeypatch):
    screen = StringIO()
    monkeypatch.setattr(console, "err", Console(file=screen, force_terminal=True, width=100))
    return screen


def test_a_bar_of_a_terminal_shows_the_rounds(terminal):
    with console.round_progress("gbdt", 50) as reported:
        reported(2, "loss 2")
    shown = terminal.getvalue()
    assert "gbdt" in shown
    assert "2/50" in shown
    assert "loss 2" in shown
