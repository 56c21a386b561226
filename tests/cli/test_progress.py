"""Progress where there is no terminal: a line per step, and one now and then over rounds."""

from types import SimpleNamespace

from rankwright.cli import progress


def test_steps_are_counted(capsys):
    with progress.step_progress("fits", 2) as step:
        step("gbdt: 1.20 s")
        step("memr: 0.30 s")
    assert capsys.readouterr().err == "1 of 2: gbdt: 1.20 s\n2 of 2: memr: 0.30 s\n"


def test_rounds_are_told_every_ten_seconds(capsys, monkeypatch):
    clock = iter([100, 104, 111, 112, 130])  # of the rounds 1 to 5; before the first, kernels load
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    with progress.round_progress("gbdt", 50) as told:
        for t in range(1, 6):
            told(t, f"loss {t}")
    assert capsys.readouterr().err == "gbdt: 3 of 50, loss 3\ngbdt: 5 of 50, loss 5\n"


def test_a_fit_that_is_done_at_once_prints_nothing(capsys):
    with progress.round_progress("gbdt", None) as told:
        told(1, "loss 1")
    assert capsys.readouterr().err == ""
