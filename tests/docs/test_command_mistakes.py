"""What newcomers get wrong on the command line; docs/mistakes.md promises the words checked here.

The command line runs in this process, through its own entry point; only two runs at once are two.
"""

import errno
import gzip
import os
import pickle
import subprocess
import sys
import warnings
import zipfile

import pytest
from mistake_page import says
from small_data import small_data

from rankwright.cli import main
from rankwright.data.files import save
from rankwright.persist.model_file import load_model
from rankwright.rankers.base import ranker
from rankwright.rankers.selection import Selection

GBDT = ("train", "gbdt", "--set", "n_estimators=2", "--set", "min_child_samples=2")
MODEL = "kept/m.rw"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Data and a model to work with, made once."""
    folder = tmp_path_factory.mktemp("mistakes")
    shape = {"queries": 8, "documents": 5}
    save(small_data(features=4, **shape), folder / "train.txt")
    save(small_data(features=4, seed=1, **shape), folder / "valid.txt")
    save(small_data(features=6, seed=1, **shape), folder / "wide.txt")
    names = ("price", "age", "length", "bm25")
    save(small_data(features=4, feature_names=names, **shape), folder / "train.csv")
    (folder / "kept").mkdir()
    made = ranker("gbdt", n_estimators=2, min_child_samples=2)
    made.fit(small_data(features=4, **shape)).save(folder / MODEL)
    named = small_data(features=4, feature_names=names, **shape)
    made.fit(named).save(folder / "kept" / "named.rw")
    return folder


@pytest.fixture
def run(folder, monkeypatch, capsys):
    """Run the entry point in the folder; return its exit status, output and complaints."""
    monkeypatch.chdir(folder)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["rankwright", *map(str, arguments)])
        code = 0
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            try:
                main.run()
            except SystemExit as ended:
                code = ended.code or 0
        done = capsys.readouterr()
        return code, done.out, done.err.strip()

    return run


@pytest.fixture
def reported(run, folder):
    """Run what must fail with the sentence of the page, and leave nothing behind."""

    def reported(did, *arguments):
        before = sorted(folder.rglob("*"))
        code, out, err = run(*arguments)
        assert (code, out) == (2, ""), err
        assert err.startswith("rankwright: ")
        assert "\n" not in err, "one sentence, no traceback"
        says(did, err)
        assert sorted(folder.rglob("*")) == before

    return reported


def train_on(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return (*GBDT, "--train", name)


@pytest.mark.parametrize(
    ("did", "name", "content"),
    [
        ("read LETOR text without qid:", "noqid.txt", "1 1:0.5 2:2\n0 1:0.1 2:3\n"),
        ("read a table without a column of query ids", "s.csv", "search,label,a\n1,0,2\n1,1,3\n"),
        ("gave labels as text", "words.csv", "qid,label,a\n1,good,2\n1,bad,3\n"),
        ("gave negative labels", "negative.txt", "-1 qid:1 1:2\n1 qid:1 1:3\n"),
        ("have text in a feature column", "c.csv", "qid,label,colour\n1,0,red\n1,1,blue\n"),
        ("used a column name twice", "twice.csv", "qid,label,a,a\n1,0,2,3\n1,1,3,4\n"),
        ("gave an empty file", "empty.txt", ""),
        ("left a header line in LETOR text", "header.txt", "label qid f1\n1 qid:1 1:2\n"),
        (
            "read a compressed file that was cut short",
            "cut.txt.gz",
            gzip.compress(b"1 qid:1 1:2\n" * 99, mtime=0)[:20],
        ),
        ("read a file in another encoding", "wide16.txt", "1 qid:1 1:2\n".encode("utf-16")),
        ("read a file in another encoding", "latin.csv", "qid,label,caf\xe9\n".encode("latin1")),
    ],
)
def test_data_that_cannot_be_meant(reported, folder, did, name, content):
    reported(did, *train_on(folder, name, content))


@pytest.mark.parametrize(
    ("did", "arguments"),
    [
        ("misspelt a file name", ("--train", "trian.txt")),
        ("gave an address on the web", ("--train", "https://example.com/train.txt")),
        ("gave a folder", ("--train", "kept")),
        ("gave validation data with columns that train lacks", ("--valid", "wide.txt")),
        ("misspelt a parameter", ("--set", "n_estimator=5")),
        ("used another tool's name of a parameter", ("--set", "eta=0.1")),
        ("gave a parameter of the wrong kind", ("--set", "n_estimators=ten")),
        ("gave early stopping as a word", ("--set", "early_stopping_rounds=abc")),
        ("gave a number as the metric that selects", ("--set", "metric=5")),
        ("set what has an option of its own", ("--set", "seed=3")),
        ("gave an option and its setting", ("--metric", "map", "--set", "metric=map")),
        ("gave a parameter out of range", ("--set", "learning_rate=-1")),
        ("wrote a setting without =", ("--set", "n_estimators:5")),
        ("misspelt a metric", ("--metric", "ndgc@10")),
        ("wrote ndcg10", ("--metric", "ndcg10")),
        ("wrote a metric's name in full", ("--metric", "precision@10")),
        ("asked for ndcg@0", ("--metric", "ndcg@0")),
        ("named a convention that is none", ("--convention", "letor")),
        ("asked for 0 threads", ("--threads", "0")),
        ("gave --save a folder that is not there", ("--save", "no/m.rw")),
    ],
)
def test_options_that_cannot_be_meant(reported, did, arguments):
    given = ("--train", "train.txt") if "--train" not in arguments else ()
    reported(did, *GBDT, *given, *arguments, *(() if "--save" in arguments else ("--save", "m.rw")))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--set", "n_jobs=2"), "n_jobs is set by --threads; write --threads 2."),
        (("--set", "convention=letor3"), "convention is set by --convention"),
        (("--set", "name=memr"), "GBDT has no parameter 'name'"),
        (("--model", "trees", "--set", "model=trees"), "model is given twice"),
    ],
)
def test_settings_that_have_another_place(run, arguments, words):
    status, _, complaints = run(*GBDT, "--train", "train.txt", *arguments)
    assert status == 2
    assert words in complaints


def test_a_misspelt_ranker(reported):
    reported("misspelt a ranker", "train", "lamdamart", "--train", "train.txt")


def test_missing_values_under_a_linear_model(reported, folder):
    (folder / "gap.csv").write_text("qid,label,a\n1,1,\n1,0,3\n")
    reported("have NaN under a linear model", "train", "ranksvm", "--train", "gap.csv")


def test_ids_from_0(reported, folder):
    command = train_on(folder, "zero.txt", "1 qid:1 0:2 1:1\n0 qid:1 0:3 1:1\n")
    reported("read ids from 0 as ids from 1", *command, "--read", "zero_based=false")


def test_a_place_where_i_may_not_write(reported, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_, **__: False)  # root may write anywhere
    reported(
        "gave --save a place where I may not write",
        *(*GBDT, "--train", "train.txt", "--save", "m.rw"),
    )


def test_save_to_a_pipe(reported, folder):
    if not (folder / "pipe").exists():
        os.mkfifo(folder / "pipe")
    reported("save to a device or pipe", *GBDT, "--train", "train.txt", "--save", "pipe")


def test_renamed_features(reported, folder):
    table = (folder / "train.csv").read_text().replace("price", "prices", 1)
    (folder / "renamed.csv").write_text(table)
    command = ("evaluate", "renamed.csv", "--load", "kept/named.rw")
    reported("renamed a feature before predicting", *command)


def test_a_column_that_is_gone_is_not_taken_for_zeros(run, folder):
    lines = (folder / "train.csv").read_text().splitlines()
    (folder / "narrow.csv").write_text(
        "\n".join(",".join(x for i, x in enumerate(line.split(",")) if i != 2) for line in lines)
    )
    code, _, err = run("evaluate", "narrow.csv", "--load", "kept/named.rw")
    assert code == 2
    assert "the feature 'price' of the fitted ranker is missing in X" in err


def test_a_model_where_data_is_expected_and_the_other_way_round(reported, run):
    reported("exchanged model and data", "rank", "train.txt", MODEL)
    reported("exchanged model and data", "evaluate", MODEL, "--load", "train.txt")
    code, _, err = run("evaluate", MODEL, "--feature", "1")
    assert code == 2
    assert "is a model file, where data is expected; are the two arguments swapped?" in err


def test_scores_of_another_number_of_lines(reported, folder):
    (folder / "scores.txt").write_text("1\n2\n3\n")
    did = "gave scores of another number of lines"
    reported(did, "evaluate", "train.txt", "--scores", "scores.txt")


def test_models_of_other_tools(reported, run, folder):
    (folder / "p.pkl").write_bytes(pickle.dumps({"a": 1}))
    reported("opened a pickle", "evaluate", "train.txt", "--load", "p.pkl")
    load_model(folder / MODEL).booster_.save_model(str(folder / "lightgbm.txt"))
    assert run("rank", "lightgbm.txt", "train.txt")[0] == 0
    (folder / "ranklib.txt").write_text("## Coordinate Ascent\n## Restart = 5\n1:0.5 2:0.5\n")
    assert run("rank", "ranklib.txt", "train.txt")[0] == 0


# --- what is said and goes on ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("did", "arguments"),
    [
        ("gave the training file as validation data", (*GBDT, "--valid", "train.txt")),
        (
            "set a penalty so large that nothing is learnt",
            ("train", "ranksvm", "--set", "l2=1e300"),
        ),
    ],
)
def test_what_is_worth_a_warning(run, did, arguments):
    code, _, err = run(*arguments, "--train", "train.txt")
    assert code == 0
    assert err.startswith("warning: ")
    says(did, err)
    assert run("-q", *arguments, "--train", "train.txt")[2] == ""


def test_the_same_grade_for_all(run, folder):
    code, _, err = run(*train_on(folder, "equal.txt", "1 qid:1 1:1\n1 qid:1 1:2\n"))
    assert code == 0
    says("gave the same grade to all", err)


@pytest.mark.parametrize(
    ("did", "rows"),
    [
        ("have data of one query alone", [(0, 1), (1, 1), (0, 1)]),
        (
            "have files whose order tells the grades",
            [(1, 1), (0, 1), (0, 1), (1, 2), (0, 2), (0, 2)],
        ),
        ("have grades in which 0 is the best", [(0, 1), (2, 1), (2, 1), (1, 2), (2, 2), (2, 2)]),
    ],
)
def test_what_inspect_remarks(run, folder, did, rows):
    lines = [f"{grade} qid:{query} 1:{place}\n" for place, (grade, query) in enumerate(rows)]
    (folder / "remarkable.txt").write_text("".join(lines))
    code, out, _ = run("inspect", "remarkable.txt")
    assert code == 0
    says(did, out)


@pytest.mark.parametrize("name", ["windows", "mark", "comment"])
def test_what_is_no_mistake(run, folder, name):
    plain = (folder / "train.txt").read_bytes()
    content = {
        "windows": plain.replace(b"\n", b"\r\n"),
        "mark": b"\xef\xbb\xbf" + plain,
        "comment": b"# label qid f1 f2\n" + plain,
    }[name]
    (folder / f"{name}.txt").write_bytes(content)
    code, _, err = run(*GBDT, "--train", f"{name}.txt", "--save", f"{name}.rw")
    assert (code, err) == (0, "")
    assert (folder / f"{name}.rw").read_bytes() == (folder / MODEL).read_bytes()


# --- accidents ---------------------------------------------------------------------------------


def start(folder, *arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "rankwright", *map(str, arguments)],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "NO_COLOR": "1"},
    )


def test_two_runs_write_one_model(folder, tmp_path):
    command = (*GBDT, "--train", "train.txt", "--save", tmp_path / "m.rw", "--seed")
    both = [start(folder, *command, seed) for seed in (1, 2)]
    for process in both:
        out, err = process.communicate(timeout=600)
        assert process.returncode == 0, err
        says("ran two trainings into one model file", out)
    assert [path.name for path in tmp_path.iterdir()] == ["m.rw"]
    assert load_model(tmp_path / "m.rw").random_state in (1, 2)


def test_a_full_disk(reported, folder, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(zipfile.ZipFile, "writestr", full)
    reported("ran out of disk space", *GBDT, "--train", "train.txt", "--save", "m.rw")


def test_ctrl_c_in_the_middle_keeps_the_best_so_far(run, folder, monkeypatch):
    seen = Selection.on_iteration

    def interrupted(self, t, *more):
        if t == 2:
            raise KeyboardInterrupt
        return seen(self, t, *more)

    monkeypatch.setattr(Selection, "on_iteration", interrupted)
    code, _, err = run(
        "train",
        "gbdt",
        "--set",
        "min_child_samples=2",
        "--train",
        "train.txt",
        "--save",
        "early.rw",
    )
    assert code == 130
    says("pressed Ctrl-C in the middle", err)
    assert load_model(folder / "early.rw").best_iteration_ == 1


def test_ctrl_c_before_there_is_a_model(run, folder, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("rankwright.data.files.load", interrupted)
    code, out, err = run(*GBDT, "--train", "train.txt", "--save", "none.rw")
    assert (code, out) == (130, "")
    says("pressed Ctrl-C before there was a model", err)
    assert "Traceback" not in err
    assert not (folder / "none.rw").exists()
