"""What a run of RankLib prints and writes: rounds, scores, rankings and models."""

import numpy as np
import pytest
from ranklib_runs import figure, words

from rankwright.errors import UsageError
from rankwright.rankers.fitting import EvaluationHistory
from rankwright.ranklib.command import run


def test_silent_leaves_the_rounds_out(files, capsys):
    run([*words(files), "-ranker", "0", "-tree", "3"])
    assert "#iter   | NDCG@10-T | NDCG@10-V | " in capsys.readouterr().out
    run([*words(files), "-ranker", "0", "-tree", "3", "-silent"])
    shown = capsys.readouterr().out
    assert "#iter" not in shown
    assert "NDCG@10 on test data: " in shown


def test_models_of_folds_score_each_its_part(files, capsys):
    data = str(files / "test.txt")
    for number, weight in ((1, "1.0"), (2, "-1.0")):
        (files / f"f{number}").write_text(f"## Coordinate Ascent\n1:{weight}")
    out = files / "scores.txt"
    loads = ["-load", str(files / "f1"), "-load", str(files / "f2")]
    run([*loads, "-rank", data, "-score", str(out)])
    scores = np.array([float(line.split("\t")[2]) for line in out.read_text().splitlines()])
    lines = (files / "test.txt").read_text().splitlines()
    x = np.array([float(line.split()[2].partition(":")[2]) for line in lines], np.float32)
    np.testing.assert_array_equal(scores[:18], x[:18])  # 6 lists of 6 in two parts
    np.testing.assert_array_equal(scores[18:], -x[18:])
    capsys.readouterr()
    run([*loads, "-test", data, "-test", data, "-metric2T", "NDCG@10"])
    both = figure(capsys.readouterr().out, "test")
    each = []
    for number in (1, 2):
        run(["-load", str(files / f"f{number}"), "-test", data, "-metric2T", "NDCG@10"])
        each.append(figure(capsys.readouterr().out, "test"))
    assert both == pytest.approx(np.mean(each), abs=1e-4)


def test_a_score_file_is_evaluated_without_a_model(files, capsys):
    data = files / "test.txt"
    grades = [line.split()[0] for line in data.read_text().splitlines()]
    (files / "scores").write_text("\n".join(grades) + "\n")
    run(["-test", str(data), "-score", str(files / "scores"), "-metric2T", "NDCG@10"])
    assert figure(capsys.readouterr().out, "test") == 1.0


def test_rank_needs_a_place_to_write(files):
    (files / "m").write_text("## Coordinate Ascent\n1:1.0")
    with pytest.raises(UsageError, match="give -score FILE or -indri FILE"):
        run(["-load", str(files / "m"), "-rank", str(files / "test.txt")])


def test_load_and_save_alone_turn_a_model_into_the_other_form(files, capsys):
    text, ours, back = (files / name for name in ("m.txt", "m.rankwright", "back.txt"))
    text.write_text(
        "## RankBoost\n## Iteration = 2\n## No. of threshold candidates = 10\n1:0.5:2.0"
    )
    run(["-load", str(text), "-save", str(ours)])
    run(["-load", str(ours), "-save", str(back)])
    assert back.read_text() == text.read_text()
    run(["-load", str(ours), "-test", str(files / "test.txt")])
    assert "ERR@10 on test data: " in capsys.readouterr().out


@pytest.fixture
def interrupted(monkeypatch):
    """Press Ctrl-C in the third round of the first fit; count the rounds."""
    rounds, evaluate = [], EvaluationHistory.__call__

    def watched(self, round_):
        rounds.append(round_.number)
        if round_.number == 3:
            raise KeyboardInterrupt
        return evaluate(self, round_)

    monkeypatch.setattr(EvaluationHistory, "__call__", watched)
    return rounds


@pytest.mark.usefixtures("interrupted")
def test_ctrl_c_saves_the_best_model_so_far(files, capsys):
    with pytest.raises(SystemExit) as ended:
        run([*words(files), "-ranker", "0", "-tree", "9", "-save", str(files / "model.txt")])
    assert ended.value.code == 130
    assert "note: interrupted: this is the best model so far." in capsys.readouterr().err
    assert 1 <= (files / "model.txt").read_text().count("<tree ") <= 2


def test_ctrl_c_ends_a_cross_validation(files, capsys, interrupted):
    arguments = ["-train", str(files / "train.txt"), "-ranker", "0", "-tree", "9", "-kcv", "3"]
    with pytest.raises(KeyboardInterrupt):
        run(arguments)
    assert interrupted == [1, 2, 3]
