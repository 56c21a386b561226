"""A LETOR fold is known by its three files, and loaded by part."""

import gzip

import pytest
from reference.same_data import assert_same

import rankwright
from rankwright.data.ranking_data import RankingData
from rankwright.data.split import fold_files
from rankwright.errors import UsageError

LETOR = "0 qid:1 1:1.5 2:2\n2 qid:1 1:0.1 2:3\n1 qid:2 1:7 2:8\n"


def test_a_folder_is_a_fold_when_it_has_all_three_files(tmp_path):
    for name in ("train.txt", "vali.txt.xz"):
        (tmp_path / name).touch()
    assert fold_files(tmp_path) == {}
    (tmp_path / "test.txt").touch()
    names = {part: file.name for part, file in fold_files(tmp_path).items()}
    assert names == {"train": "train.txt", "vali": "vali.txt.xz", "test": "test.txt"}


def test_of_a_fold_one_part_is_loaded_and_never_all_by_accident(tmp_path):
    (tmp_path / "train.txt").write_text(LETOR)
    (tmp_path / "vali.txt").write_text("1 qid:3 1:1 2:1 3:1\n")
    (tmp_path / "test.txt.gz").write_bytes(gzip.compress(b"1 qid:4 1:1\n"))
    with pytest.raises(UsageError, match=r"holds train\.txt, vali\.txt, test\.txt\.gz; name one"):
        rankwright.load(tmp_path)
    X = [[1.5, 2], [0.1, 3], [7, 8]]
    wanted = RankingData.from_arrays(X, [0, 2, 1], qid=[1, 1, 2])
    assert_same(rankwright.load(tmp_path, part="train"), wanted)
    assert rankwright.load(tmp_path, part="test").qid.tolist() == [4]
    whole = rankwright.load(tmp_path, part="all")
    assert whole.qid.tolist() == [1, 2, 3, 4]
    assert whole.n_features == 3
