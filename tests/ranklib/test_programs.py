"""RankLib's other programs: combine, features and analyze."""

from dataclasses import replace

import numpy as np
import pytest
from ranklib_runs import QUICK, words

from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError
from rankwright.ranklib.command import run
from rankwright.ranklib.model_text import Ensembles, read_model_text
from rankwright.ranklib.programs import list_texts


def test_combine_joins_forests(files, capsys):
    folder = files / "models"
    folder.mkdir()
    for seed in ("1", "2"):
        target = str(folder / f"m{seed}")
        run([*words(files), "-ranker", "8", *QUICK[8], "-seed", seed, "-save", target])
    (folder / "m3.progress").write_text("not a model")
    run(["combine", str(folder), str(files / "all.txt")])
    body = read_model_text(files / "all.txt").body
    assert isinstance(body, Ensembles)
    assert len(body.ensembles) == 6
    assert "RankLib takes the first" in capsys.readouterr().err
    run(["combine", str(folder), str(files / "all.txt"), "--strict"])
    assert len(read_model_text(files / "all.txt").body.ensembles) == 2


def test_features_shuffles_and_splits_whole_lists(files):
    data, out = str(files / "train.txt"), files / "out"
    run(["features", "-input", data, "-output", str(out), "-shuffle", "-tts", "0.5", "-seed", "4"])
    parts = [(out / f"{part}.train.txt.shuffled").read_text() for part in ("train", "test")]
    assert "".join(parts) == (out / "train.txt.shuffled").read_text()
    ids = [[line.split()[1] for line in part.splitlines()] for part in parts]
    assert not set(ids[0]) & set(ids[1])
    assert len(set(ids[0]) | set(ids[1])) == 12


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["features", "-input", "f"], "-input and -output are needed"),
        (["features", "-k"], "'-k' is not understood"),
        (["analyze", "-base", "x"], "-all names a folder"),
        (["combine", "nowhere", "x"], "a folder of models and a file to write are needed"),
    ],
)
def test_what_is_wrong_with_other_programs_is_said(given, sentence):
    with pytest.raises(UsageError, match=sentence):
        run(given)


def test_a_file_where_a_folder_should_be_is_reported(files):
    given = ["-input", str(files / "train.txt"), "-output", str(files / "vali.txt"), "-k", "2"]
    with pytest.raises(DataError, match=r"vali.txt cannot be made"):
        run(["features", *given])


def test_only_forests_are_joined(files):
    folder = files / "models"
    folder.mkdir()
    run(words(files, "-ranker", "0", "-tree", "2", "-silent", "-save", str(folder / "mart.txt")))
    with pytest.raises(UsageError, match=r"mart.txt is no model of Random Forests"):
        run(["combine", str(folder), str(files / "joined.txt")])


def test_lists_are_written_as_ranklib_does_without_what_is_missing():
    X = np.array([[0.5, np.nan, -0.0], [1.0, 2.0, 3.0], [0.0, 0.0, 1e-5]], np.float32)
    data = RankingData.from_arrays(X, [2, 0, 1], group_sizes=[2, 1])
    first, second = list_texts(data)
    assert first == "2 qid:0 1:0.5 3:-0.0\n0 qid:0 1:1.0 2:2.0 3:3.0\n"
    assert second == "1 qid:1 1:0.0 2:0.0 3:1.0E-5\n"
    named = list_texts(replace(data, doc_id=np.array(["a", "", "c"], object)))
    assert [line.partition(" #")[2] for line in "".join(named).splitlines()] == [" a", "", " c"]
