"""Training by RankLib's flags: each of its rankers, seeds, features, and its regression."""

import numpy as np
import pytest
from ranklib_runs import QUICK, figure, words

from rankwright.ranklib.command import run
from rankwright.ranklib.model_text import read_model_text


@pytest.mark.parametrize("number", QUICK)
def test_a_trained_model_tests_the_same_when_it_is_loaded(files, number, capsys):
    model = str(files / "model.txt")
    run(
        [
            *words(files, "-metric2T", "ERR@10"),
            "-ranker",
            str(number),
            *QUICK[number],
            "-save",
            model,
        ]
    )
    trained = capsys.readouterr().out
    assert f"Model saved to: {model}" in trained
    run(["-load", model, "-test", str(files / "test.txt"), "-metric2T", "ERR@10"])
    assert figure(capsys.readouterr().out, "test") == figure(trained, "test")
    assert figure(trained, "training") > 0.8  # feature 1 gives the grades


@pytest.mark.parametrize("number", [1, 5])
def test_networks_train_too(files, number, capsys):
    pytest.importorskip("torch")
    model = str(files / "model.txt")
    run([*words(files), "-ranker", str(number), "-epoch", "2", "-node", "3", "-save", model])
    assert read_model_text(model).body.hidden == [3]
    assert figure(capsys.readouterr().out, "test") > 0


def test_the_same_seed_gives_the_same_model(files):
    texts = []
    for seed in ("1", "1", "2"):
        path = files / "model.txt"
        run([*words(files), "-ranker", "8", *QUICK[8], "-seed", seed, "-save", str(path)])
        texts.append(path.read_text())
    assert texts[0] == texts[1] != texts[2]


def test_feature_limits_the_model_to_its_features(files):
    (files / "features").write_text("# two of three\n3\tbm25\n1\n")
    model = files / "model.txt"
    run([*words(files), "-ranker", "9", "-feature", str(files / "features"), "-save", str(model)])
    assert read_model_text(model).body.features.tolist() == [0, 1, 3]


def test_sparse_features_give_the_same_model(files):
    texts = []
    for more in ([], ["-sparse"]):
        path = files / "model.txt"
        run([*words(files), "-ranker", "6", "-tree", "3", "-save", str(path), *more])
        texts.append(path.read_text())
    assert texts[0] == texts[1]


def test_regression_in_ranklib_loses_the_last_feature(files, capsys):
    model = str(files / "model.txt")
    run([*words(files), "-ranker", "9", "-save", model])
    assert "RankLib leaves the last feature out" in capsys.readouterr().err
    right = dict(zip(*map(np.ndarray.tolist, _terms(model)), strict=True))
    run([*words(files), "-ranker", "9", "-save", model, "--strict"])
    slipped = dict(zip(*map(np.ndarray.tolist, _terms(model)), strict=True))
    assert slipped[0] == slipped[1]  # the constant is the first weight
    assert slipped[3] == pytest.approx(right[0], abs=0.1)  # and the last weight is the constant


def _terms(path):
    body = read_model_text(path).body
    return body.features, body.weights
