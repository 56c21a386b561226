"""LETOR text counts its feature ids from 0 or from 1: one base for a model and all its files.

The base belongs to the training data. It is decided by the whole file, kept with the model, applied
to every file that the model scores or is validated on, and a file that contradicts it is refused.
"""

import json

import numpy as np
import pytest
from command import run, run_json, sentence

import rankwright as rw
from rankwright.data import save
from rankwright.errors import DataError

ZERO_BASED = ("--read", "zero_based=true", "--read", "n_features=4")
rng = np.random.default_rng(5)


def lines(X, y, first_id, per_query=6):
    """Return LETOR lines without the features that are 0."""
    return "".join(
        f"{grade} qid:{row // per_query} "
        + " ".join(f"{first_id + j}:{value!r}" for j, value in enumerate(values) if value)
        + f" # d{row}\n"
        for row, (values, grade) in enumerate(zip(X.tolist(), y.tolist(), strict=True))
    )


def made(rows):
    X = rng.normal(size=(rows, 4)).round(3)
    y = np.digitize(X[:, 1] - 2.0 * X[:, 3], [-1.0, 1.0])
    return X, y


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Files of one source with ids 0 to 3; in those for test and validation feature 0 is 0."""
    folder = tmp_path_factory.mktemp("ids")
    X, y = made(60)
    (folder / "train.txt").write_text(lines(X, y, 0))
    (folder / "from-one.txt").write_text(lines(X, y, 1))
    X, y = made(30)
    X[:, 0] = 0.0
    (folder / "new.txt").write_text(lines(X, y, 0))
    three = lines(X[:, 1:], y, 0)  # ids 0 to 2
    (folder / "narrow.txt").write_text(three)
    run("train", "ranksvm", "--train", folder / "train.txt", "--save", folder / "zero.rw")
    run("train", "ranksvm", "--train", folder / "from-one.txt", "--save", folder / "one.rw")
    return folder


def expected_scores(files):
    ranker = rw.load_model(files / "zero.rw")
    return ranker.predict(rw.load(files / "new.txt", zero_based=True, n_features=4))


def test_the_files_differ_by_their_base_alone(files):
    zero, one = (rw.load_model(files / name) for name in ("zero.rw", "one.rw"))
    np.testing.assert_array_equal(zero.coef_, one.coef_)
    assert "1:" in (files / "new.txt").read_text()
    assert " 0:" not in (files / "new.txt").read_text()


# --- the command line --------------------------------------------------------------------------


def test_rank_reads_a_file_with_the_base_of_the_model(files, tmp_path):
    run("rank", files / "zero.rw", files / "new.txt", "-o", tmp_path / "new.scores")
    np.testing.assert_array_equal(np.loadtxt(tmp_path / "new.scores"), expected_scores(files))


@pytest.mark.parametrize(
    "command",
    [
        ("evaluate", "new.txt", "--load", "zero.rw"),
        ("explain", "zero.rw", "new.txt", "--query", "1"),
        ("explain", "zero.rw", "new.txt", "--query", "1", "--docs", "d7", "d9"),
    ],
)
def test_a_model_scores_files_with_its_own_base(files, command, monkeypatch):
    monkeypatch.chdir(files)
    assert run_json(*command) == run_json(*command, *ZERO_BASED)


@pytest.mark.parametrize("option", ["--valid", "--test"])
def test_train_reads_all_its_files_with_one_base(files, option):
    command = ("train", "ranksvm", "--train", files / "train.txt", option, files / "new.txt")
    part = option.removeprefix("--")
    assert run_json(*command)[part] == run_json(*command, *ZERO_BASED)[part]


def test_train_decides_the_base_by_all_files_together(files):
    """The training file names no id 0, the test file does."""
    command = ("train", "ranksvm", "--train", files / "new.txt", "--test", files / "train.txt")
    assert run_json(*command)["test"] == run_json(*command, *ZERO_BASED)["test"]


@pytest.mark.parametrize(
    "command",
    [
        ("rank", "one.rw", "narrow.txt"),
        ("evaluate", "narrow.txt", "--load", "one.rw"),
        ("explain", "one.rw", "narrow.txt", "--query", "1"),
    ],
)
def test_a_file_that_contradicts_the_base_of_the_model_is_refused(files, command, monkeypatch):
    """The model was trained on ids from 1; the file names id 0."""
    monkeypatch.chdir(files)
    said = sentence(*command)
    assert said.startswith("narrow.txt")
    assert "zero_based" in said or "id 0" in said or "feature 0" in said


def test_inspect_reads_a_file_whose_first_line_does_not_name_id_0(files, tmp_path):
    first, *rest = (files / "train.txt").read_text().splitlines(keepends=True)
    turned = tmp_path / "turned.txt"
    turned.write_text(first.replace(" 0:", " 1:", 1).split(" 1:")[0] + " 1:0.5\n" + "".join(rest))
    profile = json.loads(run("inspect", turned, "--json").stdout)
    assert profile["data"][0]["features"] == 4


# --- Python ------------------------------------------------------------------------------------


@pytest.mark.parametrize("reloaded", [False, True])
def test_a_ranker_knows_the_base_of_the_data_it_was_fitted_to(files, reloaded):
    """Data of a file that shows no base is scored with that of the ranker, or refused."""
    ranker = rw.RankSVM().fit(rw.load(files / "train.txt"))
    if reloaded:
        ranker.save(files / "python.rw")
        ranker = rw.load_model(files / "python.rw")
    data = rw.load(files / "new.txt", n_features=4)
    try:
        scores = ranker.predict(data)
    except DataError as error:
        assert "zero_based" in str(error)  # noqa: PT017
    else:
        np.testing.assert_array_equal(scores, expected_scores(files))


def test_a_ranker_refuses_data_of_another_base(files):
    ranker = rw.RankSVM().fit(rw.load(files / "from-one.txt"))
    with pytest.raises(DataError, match="zero_based"):
        ranker.predict(rw.load(files / "narrow.txt", n_features=4))


def test_a_model_of_a_store_knows_the_base_of_its_source(files, tmp_path):
    save(rw.load(files / "train.txt"), tmp_path / "train.store")
    ranker = rw.RankSVM().fit(rw.load(tmp_path / "train.store"))
    assert ranker.first_feature_id_ == 0
    with pytest.raises(DataError, match="zero_based"):
        ranker.predict(rw.load(files / "new.txt", n_features=4))


def test_a_table_warns_that_it_does_not_keep_ids_from_0(files, tmp_path):
    with pytest.warns(UserWarning, match=r"columns f1, f2, ... are the feature ids 0, 1, ..."):
        save(rw.load(files / "train.txt"), tmp_path / "train.csv")
    save(rw.load(files / "from-one.txt"), tmp_path / "one.csv")


def test_a_validation_set_has_the_base_of_the_training_data(files):
    train = rw.load(files / "train.txt")
    expected = rw.load(files / "new.txt", zero_based=True, n_features=4)
    right = rw.LambdaMART(n_estimators=5, min_child_samples=2).fit(train, eval_set=expected)
    try:
        found = rw.LambdaMART(n_estimators=5, min_child_samples=2).fit(
            train, eval_set=rw.load(files / "new.txt", n_features=4)
        )
    except DataError as error:
        assert "zero_based" in str(error)  # noqa: PT017
    else:
        assert found.evals_result_ == right.evals_result_


@pytest.mark.parametrize("how", ["whole", "compressed", "in parts"])
def test_the_whole_file_decides_where_ids_start(tmp_path, how):
    import gzip

    text = b"1 qid:1 2:5 3:1\n0 qid:1 0:1 1:2\n"
    path = tmp_path / ("data.txt.gz" if how == "compressed" else "data.txt")
    path.write_bytes(gzip.compress(text) if how == "compressed" else text)
    if how == "in parts":
        from rankwright.data.letor import Letor

        (data,) = Letor.read_parts(path)
    else:
        data = rw.load(path)
    np.testing.assert_array_equal(data.X, [[0, 0, 5, 1], [1, 2, 0, 0]])
