"""Splits keep queries whole; unshuffled they are RankLib's and LETOR's."""

import gzip
from itertools import chain, pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.same_data import assert_same

import rankwright
from rankwright.data.ranking_data import RankingData
from rankwright.data.split import (
    fold_files,
    k_folds,
    letor_folds,
    train_valid_test_split,
)
from rankwright.errors import DataError, UsageError


def queries(n, *, prefix="q", sizes=None):
    sizes = [1 + i % 3 for i in range(n)] if sizes is None else sizes
    qid = np.repeat([f"{prefix}{i}" for i in range(n)], sizes)
    X = np.arange(len(qid), dtype=float).reshape(-1, 1)
    return RankingData.from_arrays(X, np.zeros(len(qid)), qid=qid)


def ids(part):
    return None if part is None else part.qid.tolist()


def test_unshuffled_split_takes_train_first_and_test_last():
    split = train_valid_test_split(queries(10), sizes=(0.5, 0.3, 0.2), shuffle=False)
    assert [ids(part) for part in split] == [
        ["q0", "q1", "q2", "q3", "q4"],
        ["q5", "q6", "q7"],
        ["q8", "q9"],
    ]


def test_shuffled_split_has_the_asked_sizes_and_whole_queries():
    data = queries(50)
    split = train_valid_test_split(data)
    assert [part.n_queries for part in split] == [30, 10, 10]
    assert sorted(chain.from_iterable(map(ids, split))) == sorted(ids(data))
    rows = np.concatenate([part.X.ravel() for part in split])
    assert sorted(rows) == sorted(data.X.ravel())
    assert ids(split.train) != ids(data)[:30]


def test_the_split_is_that_of_version_0_2_0():
    def split(qid, **settings):
        found = train_valid_test_split(np.zeros((len(qid), 1)), qid=qid, **settings)
        return [ids(part) for part in found]

    train = [2, 3, 5, 7, 8, 10, 11, 13, 14, 16, 17, 19]
    assert split(range(20)) == [train, [0, 1, 4, 12], [6, 9, 15, 18]]
    assert split(range(20), random_state=7, sizes=(0.5, 0.25, 0.25)) == [
        [0, 1, 4, 6, 8, 12, 14, 16, 17, 19], [5, 7, 9, 15, 18], [2, 3, 10, 11, 13],
    ]  # fmt: skip
    named = [f"q{i}" for i in range(10)]
    train = ["q4", "q5", "q6", "q7", "q8", "q9"]
    assert split(named, random_state=3) == [train, ["q0", "q2"], ["q1", "q3"]]
    unsorted = [9, 4, 7, 1, 30, 2]
    assert split(unsorted, random_state=1, sizes=(0.5, 0, 0.5)) == [[9, 7, 2], None, [4, 1, 30]]
    random = np.random.default_rng(0)
    assert split(range(10), random_state=random) == [[0, 1, 2, 3, 6, 7], [5, 8], [4, 9]]


def test_valid_may_be_left_out_but_train_and_test_may_not():
    split = train_valid_test_split(queries(10), sizes=(0.7, 0, 0.3))
    assert split.valid is None
    assert (split.train.n_queries, split.test.n_queries) == (7, 3)
    with pytest.raises(DataError, match=r"2 queries are too few .* none would be left for test"):
        train_valid_test_split(queries(2))


@pytest.mark.parametrize("sizes", [(0.5, 0.5), (0.5, 0.4, 0.2), (1.2, -0.2, 0.0)])
def test_sizes_that_are_no_shares_are_refused(sizes):
    with pytest.raises(UsageError, match="three shares"):
        train_valid_test_split(queries(10), sizes=sizes)


def test_unshuffled_folds_rotate_as_letors_with_the_rest_in_the_last_part():
    folds = [tuple(map(ids, fold)) for fold in k_folds(queries(7), 3, shuffle=False)]
    s1, s2, s3 = ["q0", "q1"], ["q2", "q3"], ["q4", "q5", "q6"]
    assert folds == [(s1, s2, s3), (s2, s3, s1), (s3, s1, s2)]


def test_folds_without_valid_test_on_each_part_in_turn():
    folds = [tuple(map(ids, fold)) for fold in k_folds(queries(4), 2, valid=False, shuffle=False)]
    assert folds == [(["q2", "q3"], None, ["q0", "q1"]), (["q0", "q1"], None, ["q2", "q3"])]


@settings(max_examples=50, deadline=None)
@given(st.integers(3, 9), st.integers(9, 40), st.booleans(), st.booleans(), st.integers(0, 5))
def test_every_query_is_tested_once_and_never_trained_on_in_its_fold(k, n, valid, shuffle, seed):
    data = queries(n)
    tested = []
    for fold in k_folds(data, k, valid=valid, shuffle=shuffle, seed=seed):
        parts = [ids(part) for part in fold if part is not None]
        assert sorted(chain.from_iterable(parts)) == sorted(ids(data))
        tested += ids(fold.test)
        if shuffle:
            assert n // k <= len(ids(fold.test)) <= n // k + 1
    assert sorted(tested) == sorted(ids(data))


def test_folds_depend_neither_on_ids_nor_on_the_order_of_rows_within_queries():
    sizes = [4, 2, 3, 5, 1, 2, 2, 3]
    data, renamed = queries(8, sizes=sizes), queries(8, sizes=sizes, prefix="other-")
    turned = RankingData.from_arrays(
        np.concatenate([data.select([q]).X[::-1] for q in range(8)]), None, group_sizes=sizes
    )
    number = {id_: i for i, id_ in enumerate(ids(data))}
    for a, b, c in zip(*(k_folds(d, 4, seed=3) for d in (data, renamed, turned)), strict=True):
        for one, other, third in zip(a, b, c, strict=True):
            assert ids(other) == [f"other-{id_[1:]}" for id_ in ids(one)]
            assert ids(third) == [number[id_] for id_ in ids(one)]


def test_too_many_and_too_few_folds_are_refused():
    with pytest.raises(DataError, match="4 queries cannot be cut into 5 folds"):
        k_folds(queries(4), 5)
    with pytest.raises(UsageError, match="k must be 3 or more for train, valid and test"):
        k_folds(queries(4), 2)


def test_unshuffled_folds_are_ranklibs(golden_dir):
    log = (golden_dir / "ranklib/cv/kcv3.log").read_text()
    theirs = [line.partition("=")[2].replace('"', "").split() for line in log.splitlines()]
    theirs = [row for row in theirs if row and row[0].startswith("10")]
    data = queries(60)
    folds = list(k_folds(data, 3, valid=False, shuffle=False))
    ours = [[f"{1000 + int(id_[1:])}" for id_ in ids(fold.train)] for fold in folds]
    ours += [[f"{1000 + int(id_[1:])}" for id_ in ids(fold.test)] for fold in folds]
    assert ours == theirs


# --- the public split --------------------------------------------------------------------------


def parts_of(split):
    return [None if part is None else set(part.qid.tolist()) for part in split]


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=80),
    st.sampled_from([(0.6, 0.2, 0.2), (0.5, 0.0, 0.5), (0.34, 0.33, 0.33)]),
    st.integers(0, 3),
    st.randoms(use_true_random=False),
)
def test_the_split_is_by_whole_queries_and_the_order_of_rows_does_not_matter(
    qid, sizes, seed, random
):
    qid = np.array(qid)
    n = len(np.unique(qid))
    X, y = np.arange(len(qid), dtype=float)[:, None], np.arange(len(qid)) % 3
    cuts = [0, *np.rint(np.cumsum(sizes)[:2] * n).astype(int), n]
    wanted = [b - a for a, b in pairwise(cuts)]
    if any(count == 0 and share for count, share in zip(wanted, sizes, strict=True)):
        with pytest.raises(DataError, match="too few for sizes"):
            train_valid_test_split(X, y, qid=qid, sizes=sizes, random_state=seed)
        return
    split = train_valid_test_split(X, y, qid=qid, sizes=sizes, random_state=seed)
    rows = []
    for part, count in zip(split, wanted, strict=True):
        assert (part is None) == (count == 0)
        if part is not None:
            assert part.n_queries == count
            mine = part.X.ravel().astype(int)
            assert part.y.tolist() == y[mine].tolist()
            assert np.repeat(part.qid, part.sizes).tolist() == qid[mine].tolist()
            rows += mine.tolist()
    assert sorted(rows) == list(range(len(qid)))
    mixed = random.sample(range(len(qid)), len(qid))
    other = train_valid_test_split(
        X[mixed] * 0, y[mixed], qid=qid[mixed], sizes=sizes, random_state=seed
    )
    assert parts_of(other) == parts_of(split)


def test_random_states_differ_and_unshuffled_queries_stay_in_order():
    data = queries(40)
    parts = [parts_of(train_valid_test_split(data, random_state=seed)) for seed in (1, 1, 2)]
    assert parts[0] == parts[1] != parts[2]
    plain = train_valid_test_split(data, sizes=(0.5, 0.25, 0.25), shuffle=False)
    assert [id_ for part in plain for id_ in ids(part)] == ids(data)
    unsorted = train_valid_test_split(
        np.zeros((3, 1)), None, qid=["c", "a", "b"], sizes=(1 / 3, 1 / 3, 1 / 3), shuffle=False
    )
    assert [ids(part) for part in unsorted] == [["c"], ["a"], ["b"]]


def test_frames_arrays_and_data_are_split_alike():
    qid = np.repeat(["u", "v", "w", "x", "y"], 2)
    frame = pd.DataFrame({"f": np.arange(10.0), "grade": [0, 1] * 5, "query": qid})
    frame["doc"] = list("abcdefghij")
    by_name = train_valid_test_split(frame, "grade", qid="query", doc_id="doc")
    by_polars = train_valid_test_split(pl.from_pandas(frame), "grade", qid="query", doc_id="doc")
    by_array = train_valid_test_split(
        frame[["f"]], frame["grade"], qid=frame["query"], doc_id=frame["doc"]
    )
    by_size = train_valid_test_split(frame[["f"]], frame["grade"], group_sizes=[2] * 5)
    data = RankingData.from_frame(frame, qid="query", label="grade", doc_id="doc")
    by_data = train_valid_test_split(data)
    for split in (by_polars, by_array, by_data):
        for part, expected in zip(split, by_name, strict=True):
            for name in ("X", "y", "qid", "doc_id"):
                np.testing.assert_array_equal(getattr(part, name), getattr(expected, name))
            assert part.feature_names == ("f",)
    assert [part.X.tolist() for part in by_size] == [part.X.tolist() for part in by_name]


def test_mistakes_in_a_split_are_answered_with_a_sentence():
    X, y, qid = np.zeros((4, 1)), [0, 1, 0, 1], [1, 1, 2, 2]
    with pytest.raises(DataError, match="give the query of each row as qid="):
        train_valid_test_split(X, y)
    with pytest.raises(UsageError, match="RankingData and click logs have their own qid"):
        train_valid_test_split(queries(5), qid=qid)
    with pytest.raises(UsageError, match="both names of columns of a frame"):
        train_valid_test_split(X, "grade", qid="query")
    with pytest.raises(UsageError, match="both names of columns of a frame"):
        train_valid_test_split(pd.DataFrame({"f": [1.0], "grade": [1]}), "grade", qid=[1])
    with pytest.raises(UsageError, match="sizes must be three shares"):
        train_valid_test_split(X, y, qid=qid, sizes=(0.8, 0.2))


# --- LETOR's folders -----------------------------------------------------------------------------


def write_part(path, qids, width=2, opener=open):
    path.parent.mkdir(parents=True, exist_ok=True)
    features = " ".join(f"{f}:{f}" for f in range(1, width + 1))
    with opener(path, "wt") as file:
        file.writelines(f"1 qid:{qid} {features}\n" for qid in qids)


def names(part):
    return [str(qid) for qid in part.qid]


def test_fold_folders_are_read_when_asked_for(tmp_path):
    for fold in (1, 2):
        for part in ("train", "vali", "test"):
            write_part(tmp_path / f"Fold{fold}/{part}.txt", [f"{fold}{part}"])
    folds = letor_folds(tmp_path)
    assert len(folds) == 2
    (tmp_path / "Fold1/test.txt").write_text("nonsense\n")
    assert [names(part) for part in folds[1]] == [["2train"], ["2vali"], ["2test"]]
    with pytest.raises(DataError, match=r"test\.txt"):
        folds[0]


def test_parts_are_combined_in_rotation_whatever_their_compression(tmp_path):
    for i in range(1, 5):
        opener, ending = (gzip.open, ".gz") if i == 2 else (open, "")
        write_part(tmp_path / f"S{i}.txt{ending}", [f"a{i}", f"b{i}"], opener=opener)
    folds = [[names(part) for part in fold] for fold in letor_folds(tmp_path)]
    assert folds[0] == [["a1", "b1", "a2", "b2"], ["a3", "b3"], ["a4", "b4"]]
    assert folds[3] == [["a4", "b4", "a1", "b1"], ["a2", "b2"], ["a3", "b3"]]


def test_parts_get_the_width_of_the_widest(tmp_path):
    for i, width in enumerate([2, 4, 3], start=1):
        write_part(tmp_path / f"S{i}.txt", [str(i)], width=width)
    assert {part.n_features for part in letor_folds(tmp_path)[0]} == {4}


def test_an_id_0_in_one_part_decides_for_all(tmp_path):
    for part, text in enumerate(("1 qid:1 1:1\n", "1 qid:2 0:2\n", "1 qid:3 2:3\n"), start=1):
        (tmp_path / f"S{part}.txt").write_text(text)
    parts = letor_folds(tmp_path)[0]
    assert [part.X.tolist() for part in parts] == [[[0, 1, 0]], [[2, 0, 0]], [[0, 0, 3]]]


def test_a_folder_without_folds_and_a_fold_without_vali_are_refused(tmp_path):
    with pytest.raises(DataError, match="neither folders Fold1"):
        letor_folds(tmp_path)
    write_part(tmp_path / "Fold1/train.txt", ["1"])
    with pytest.raises(DataError, match=r"vali\.txt does not exist"):
        letor_folds(tmp_path)
    with pytest.raises(DataError, match="is not a folder"):
        letor_folds(tmp_path / "nowhere")


def test_parts_of_ohsumed_make_the_official_folds(data_dir, ohsumed):
    from_parts = letor_folds(data_dir / "OHSUMED_LETOR3/QueryLevelNorm")
    official = letor_folds(ohsumed)
    assert len(from_parts) == len(official) == 5
    for ours, theirs in zip(from_parts[1], official[1], strict=True):
        assert names(ours) == names(theirs)
        np.testing.assert_array_equal(ours.X, theirs.X)
        np.testing.assert_array_equal(ours.y, theirs.y)


def test_letor_cut_ohsumed_into_unshuffled_folds(data_dir):
    fold = letor_folds(data_dir / "OHSUMED_LETOR3/QueryLevelNorm")[0]
    whole = queries(106)
    for ours, official in zip(next(k_folds(whole, 5, shuffle=False)), fold, strict=True):
        assert [str(int(id_[1:]) + 1) for id_ in ids(ours)] == names(official)


# --- a LETOR fold is known by its three files, and loaded by part ----------------------------


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
    with pytest.raises(UsageError, match=r"has train\.txt, vali\.txt, test\.txt\.gz; choose"):
        rankwright.load(tmp_path)
    X = [[1.5, 2], [0.1, 3], [7, 8]]
    wanted = RankingData.from_arrays(X, [0, 2, 1], qid=[1, 1, 2])
    assert_same(rankwright.load(tmp_path, part="train"), wanted)
    assert rankwright.load(tmp_path, part="test").qid.tolist() == [4]
    whole = rankwright.load(tmp_path, part="all")
    assert whole.qid.tolist() == [1, 2, 3, 4]
    assert whole.n_features == 3
