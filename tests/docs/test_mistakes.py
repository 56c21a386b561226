"""What newcomers get wrong: docs/mistakes.md promises the words that are checked here."""

import errno
import gzip
import json
import os
import pickle
import re
import shlex
import subprocess
import sys
import warnings
import zipfile
from hashlib import sha256
from pathlib import Path

import lightgbm
import numpy as np
import pandas as pd
import pytest
from command import run, sentence
from sklearn import config_context
from sklearn.model_selection import GridSearchCV, cross_val_score
from small_data import small_data

import rankwright as rw
from rankwright.data.files import save
from rankwright.errors import RankwrightError
from rankwright.persist.container import read_parts
from rankwright.rankers.fitting import EvaluationHistory

PAGE = Path(__file__).resolve().parents[2] / "docs" / "mistakes.md"
_ROW = re.compile(r"^\| (?P<did>[^|`]+) \| `(?P<seen>[^`]+)` \| [^|]+ \|$", re.MULTILINE)
MISTAKES = {row["did"]: row["seen"] for row in _ROW.finditer(PAGE.read_text(encoding="utf-8"))}

N = 40
NAMES = ["price", "age", "length", "bm25"]
X = np.random.default_rng(0).normal(size=(N, 4))
Y = np.digitize(X[:, 0], [-0.4, 0.4])
QID = np.repeat(np.arange(8), 5)
FRAME = pd.DataFrame(X, columns=NAMES)


def check(did, text):
    """Check that ``text`` has the words that the page promises; … stands for anything."""
    pattern = ".*".join(map(re.escape, MISTAKES[did].split("…")))
    assert re.search(pattern, text), f"{did}: the page has {MISTAKES[did]!r}, not {text!r}"


def test_every_mistake_of_the_page_is_tried():
    tests = Path(__file__).read_text(encoding="utf-8")
    assert len(MISTAKES) >= 36
    assert [did for did in MISTAKES if f'"{did}"' not in tests] == []


# --- Python ------------------------------------------------------------------------------------


def gbdt(**parameters):
    return rw.GBDT(n_estimators=3, min_child_samples=2, **parameters)


def fit(X=X, y=Y, ranker=None, qid=QID, **more):
    return (ranker or gbdt()).fit(X, y, qid=qid, **more)


def cross_validate_rows():
    with config_context(enable_metadata_routing=True):
        cross_val_score(gbdt(), X, Y, cv=3, params={"qid": QID})


def write(name, content):
    Path(name).write_bytes(content)
    return name


def model_of_format(number):
    """Save a model whose receipt has another format and version."""
    fit().save("m.rw")
    receipt, parts = read_parts("m.rw")
    text = json.dumps({**receipt, "format": number, "rankwright": "9.9"}).encode()
    with zipfile.ZipFile("m.rw", "w") as archive:
        for part, content in {**parts, "receipt.json": text}.items():
            archive.writestr(part, content)
        archive.comment = sha256(text).hexdigest().encode()
    return "m.rw"


def pipe():
    os.mkfifo("pipe")
    return "pipe"


RENAMED = FRAME.rename(columns={"price": "prices"})
WIDE = np.c_[X, X[:, :2]]
IN_PYTHON = [
    ("forgot qid in fit", lambda: gbdt().fit(X, Y)),
    ("forgot qid in evaluate", lambda: rw.evaluate(Y, X[:, 0], "ndcg@10")),
    ("forgot qid under QueryFolds", lambda: cross_val_score(gbdt(), X, Y, cv=rw.QueryFolds())),
    ("forgot qid in score", lambda: fit().score(X, Y)),
    ("forgot qid in cross-validation", lambda: cross_val_score(gbdt(), X, Y, cv=2)),
    (
        "forgot qid in GridSearchCV",
        lambda: GridSearchCV(gbdt(), {"learning_rate": [0.1]}, cv=2).fit(X, Y),
    ),
    ("cut queries with cv=3 of scikit-learn", cross_validate_rows),
    ("left clicks among the features", lambda: fit(FRAME.assign(clicks=1.0, impressions=2.0))),
    ("gave features= for an array", lambda: fit(features=["price"])),
    ("gave a callback of LightGBM", lambda: fit(callbacks=[lightgbm.log_evaluation()])),
    (
        "gave too few gains in label_gain",
        lambda: fit(y=np.minimum(Y, 2), ranker=rw.LambdaMART(label_gain=[0, 1])),
    ),
    (
        "gave sizes of queries that do not add up",
        lambda: gbdt().fit(X, Y, group_sizes=[5] * 7),
    ),
    ("gave sizes of queries as qid", lambda: fit(qid=[5] * 8)),
    ("wrote group= as in LightGBM", lambda: gbdt().fit(X, Y, group=[5] * 8)),
    (
        "gave each document a different qid",
        lambda: fit(ranker=rw.LinearRegression(), qid=np.arange(N)),
    ),
    ("gave labels as text", lambda: fit(y=np.array(["good", "bad"] * (N // 2)))),
    ("gave labels as text", lambda: fit(y=np.array(["good", "1"] * (N // 2)))),
    ("gave negative labels", lambda: fit(y=np.where(Y == 0, -1.0, Y))),
    ("gave negative labels", lambda: fit(y=np.where(Y == 0, np.nan, Y))),
    ("gave the same grade to all", lambda: fit(y=np.ones(N))),
    ("gave the same grade to all", lambda: fit(y=np.ones(N), ranker=rw.RankSVM())),
    (
        "used counts up to 200 as grades",
        lambda: fit(y=Y * 100, ranker=rw.LambdaMART(n_estimators=2)),
    ),
    ("used counts as grades", lambda: fit(y=Y * 1000).score(X, Y * 1000, qid=QID)),
    ("forgot y", lambda: gbdt().fit(X, qid=QID)),
    ("gave X and y of different lengths", lambda: fit(y=Y[:-1])),
    ("left the label column in X", lambda: fit(FRAME.assign(label=Y))),
    (
        "gave qid as a Series in another order than X",
        lambda: fit(FRAME, qid=pd.Series(QID).sample(frac=1, random_state=0)),
    ),
    ("renamed a feature before predicting", lambda: fit(FRAME).predict(RENAMED)),
    ("renamed a feature before predicting", lambda: fit(FRAME, eval_set=(RENAMED, Y, QID))),
    ("predict with fewer columns", lambda: fit().predict(X[:, :3])),
    (
        "gave validation data with columns that train lacks",
        lambda: fit(eval_set=(WIDE, Y, QID)),
    ),
    ("gave validation data without qid", lambda: fit(eval_set=(X, Y))),
    ("gave validation data without qid", lambda: fit(eval_set=[(X, Y)])),
    (
        "have NaN under a linear model",
        lambda: fit(np.where(X > 1, np.nan, X), ranker=rw.RankSVM()),
    ),
    (
        "have text in a feature column",
        lambda: fit(FRAME.assign(colour=["red", "blue"] * (N // 2))),
    ),
    (
        "have text in a feature column",
        lambda: fit(FRAME.assign(colour=pd.array(["red", "blue"] * (N // 2)))),
    ),
    (
        "left an id among the features",
        lambda: rw.RankingData.from_arrays(np.arange(4 * N).reshape(N, 4) + 2**60, Y, qid=QID),
    ),
    ("used a column name twice", lambda: fit(pd.DataFrame(X, columns=["a", "b", "c", "a"]))),
    ("gave a single row or column as X", lambda: fit().predict(X[0])),
    ("gave a path to fit", lambda: gbdt().fit("train.txt")),
    ("misspelt a ranker", lambda: rw.ranker("lamdamart")),
    ("misspelt a class", lambda: rw.LambdaMart),
    ("misspelt a parameter", lambda: rw.GBDT(n_estimator=5)),
    ("used another tool's name of a parameter", lambda: rw.GBDT(eta=0.1)),
    ("gave a parameter of the wrong kind", lambda: fit(ranker=rw.GBDT(n_estimators="ten"))),
    ("gave a parameter out of range", lambda: fit(ranker=gbdt(learning_rate=-1))),
    ("misspelt a metric", lambda: fit(ranker=gbdt(metric="ndgc@10"))),
    ("asked for ndcg@0", lambda: fit(ranker=gbdt(metric="ndcg@0"))),
    ("misspelt a convention", lambda: fit(ranker=gbdt(convention="letor"))),
    ("asked for 0 threads", lambda: fit(ranker=gbdt(n_jobs=0))),
    (
        "set a penalty so large that nothing is learnt",
        lambda: fit(ranker=rw.RankSVM(l2=1e300)),
    ),
    (  # too few documents for the default leaves
        "set a penalty so large that nothing is learnt",
        lambda: fit(X[:30], Y[:30], rw.GBDT(n_estimators=3), QID[:30]),
    ),
    ("predict before fit", lambda: gbdt().predict(X)),
    ("misspelt a file name", lambda: [write("train.txt", b"1 qid:1 1:2\n"), rw.load("trian.txt")]),
    ("gave an address on the web", lambda: rw.load("https://example.com/train.txt")),
    ("gave an address on the web", lambda: rw.load_model("https://example.com/train.txt")),
    ("opened a model of another version", lambda: rw.load_model(model_of_format(99))),
    ("opened a pickle", lambda: rw.load_model(write("m", pickle.dumps({"a": 1})))),
    ("opened a binary model of CatBoost", lambda: rw.load_model(write("m", b"CBM1\0\0"))),
    ("exchanged model and data", lambda: rw.load_model(write("m", b"1 qid:1 1:0.5\n"))),
    ("save into a folder that is not there", lambda: fit().save("no/m.rw")),
    ("save to a device or pipe", lambda: fit().save(pipe())),
]
WORDS_IN_PYTHON = [  # mistakes that the page does not list
    *(
        (f"fit takes no argument '{name}': ", lambda name=name: fit(**{name: 1}))
        for name in ("groups", "eval_qid", "valid", "early_stopping_rounds", "colour")
    ),
    ("qid='qid' names a column, but X is not a frame", lambda: fit(qid="qid")),
    ("y and qid must both be names of columns", lambda: fit(FRAME.assign(label=Y), "label")),
    (
        "n_estimators must be a whole number, 1 or more, not 2.5",
        lambda: fit(ranker=rw.GBDT(n_estimators=2.5)),
    ),
    ("n_estimators must be 1 or more, not 0", lambda: fit(ranker=rw.GBDT(n_estimators=0))),
    (
        "learning_rate must be a number or 'auto', not 'fast'",
        lambda: fit(ranker=rw.GBDT(learning_rate="fast")),
    ),
    (
        "scale must be true or false, not 'yes'",
        lambda: fit(ranker=rw.RankSVM(model=rw.models.Linear(scale="yes"))),
    ),
    (
        "l2 must be a number or 'auto', not 'big'",
        lambda: fit(ranker=rw.RankSVM(model=rw.models.Linear(l2="big"))),
    ),
    ("XGBoost", lambda: rw.load_model(write("m", b'{"learner": {}}'))),
    ("JSON", lambda: rw.load_model(write("m", b"{}"))),
    ("is empty", lambda: rw.load_model(write("m", b""))),
    ("not a model", lambda: rw.load_model(write("m", b"?"))),
    ("is a folder; name the model file in it", lambda: rw.load_model(".")),
]


def message(action):
    """Return the error of an action, or its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            action()
        except (RankwrightError, AttributeError) as error:
            return str(error)
    return "\n".join(str(one.message) for one in caught)


@pytest.mark.parametrize(("did", "action"), IN_PYTHON)
def test_a_mistake_in_python(did, action, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check(did, message(action))


@pytest.mark.parametrize(("words", "action"), WORDS_IN_PYTHON)
def test_another_mistake_in_python(words, action, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert words in message(action)


@pytest.mark.parametrize(
    ("did", "number"),
    [("ran out of disk space", errno.ENOSPC), ("save where I may not write", errno.EACCES)],
)
def test_a_disk_that_takes_no_more(tmp_path, monkeypatch, did, number):
    path = tmp_path / "m.rw"
    path.write_bytes(b"an older model")

    def full(*_):
        raise OSError(number, "the system's word for it")

    monkeypatch.setattr(zipfile.ZipFile, "writestr", full)
    check(did, message(lambda: fit().save(path)))
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [b"an older model"]


def test_a_disk_that_is_full_in_the_middle_of_a_file(tmp_path):
    """The system refuses to make a file longer than 100 bytes."""
    resource = pytest.importorskip("resource")
    ranker, limits = fit(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        check("ran out of disk space", message(lambda: ranker.save(tmp_path / "m.rw")))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(tmp_path.iterdir()) == []


def draw_figure():
    rw.compare(small_data(), "gbdt,linear_regression", folds=3).plot("metrics")


def use_dask():
    from rankwright.distributed.cluster import connected

    connected()


def serve():
    from rankwright.serve import serve

    serve(["m.rw"], settings=None, listening=None)


def tune():
    data = rw.RankingData.from_arrays(X, Y, qid=QID)
    rw.tune("gbdt", data, data, trials=1)


def export():
    from rankwright.export.folder import export_model

    export_model(fit(), "onnx", "export")


EXTRAS = [
    ("neural", "torch", lambda: fit(ranker=rw.RankNet(model="network"))),
    ("tune", "optuna", tune),
    ("plot", "matplotlib", draw_figure),
    ("onnx", "onnx", export),
    ("serve", "starlette", serve),
    ("serve", "uvicorn", serve),
    ("serve", "prometheus_client", serve),
    ("dask", "distributed", use_dask),
]


@pytest.mark.parametrize(("extra", "package", "action"), EXTRAS)
def test_an_extra_that_is_not_installed(extra, package, action, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    text = message(action)
    check("have not installed an extra", text)
    assert f"pip install 'rankwright[{extra}]'" in text


# --- no mistakes in Python ---------------------------------------------------------------------


def test_columns_of_a_frame_go_by_their_names():
    part = QID[0] != QID
    valid = FRAME[part], Y[part], QID[part]
    ranker = fit(FRAME, eval_set=[(valid[0][NAMES[::-1]], *valid[1:])])
    wide = FRAME[NAMES[::-1]].assign(other=1.0)
    np.testing.assert_array_equal(ranker.predict(wide), ranker.predict(FRAME))
    assert ranker.curve_ == fit(FRAME, eval_set=valid).curve_


def test_rows_of_a_query_may_stand_apart():
    order = np.random.default_rng(1).permutation(N)
    apart = fit(X[order], Y[order], qid=QID[order])
    np.testing.assert_array_equal(apart.predict(X), fit().predict(X))


def test_numbers_of_numpy_are_numbers():
    theirs = fit(ranker=gbdt(num_leaves=np.int64(4), learning_rate=np.float32(0.5)))
    ours = fit(ranker=gbdt(num_leaves=4, learning_rate=0.5))
    np.testing.assert_array_equal(theirs.predict(X), ours.predict(X))


def test_ndcg_in_capitals_or_without_a_cut_off():
    whole = fit(ranker=gbdt(metric="ndcg")).score(X, Y, qid=QID)
    assert fit(ranker=gbdt(metric="NDCG@5")).score(X, Y, qid=QID) == whole


# --- the command line --------------------------------------------------------------------------

TRAIN = "train gbdt --set n_estimators=2 --set min_child_samples=2"
SMALL = f"{TRAIN} --train train.txt --save m.rw"
FILES = {
    "noqid.txt": b"1 1:0.5 2:2\n0 1:0.1 2:3\n",
    "search.csv": b"search,label,a\n1,0,2\n1,1,3\n",
    "words.csv": b"qid,label,a\n1,good,2\n1,bad,3\n",
    "negative.txt": b"-1 qid:1 1:2\n1 qid:1 1:3\n",
    "colour.csv": b"qid,label,colour\n1,0,red\n1,1,blue\n",
    "twice.csv": b"qid,label,a,a\n1,0,2,3\n1,1,3,4\n",
    "empty.txt": b"",
    "header.txt": b"label qid f1\n1 qid:1 1:2\n",
    "cut.txt.gz": gzip.compress(b"1 qid:1 1:2\n" * 99, mtime=0)[:20],
    "utf-16.txt": "1 qid:1 1:2\n".encode("utf-16"),
    "latin.csv": "qid,label,caf\xe9\n".encode("latin1"),
    "zero.txt": b"1 qid:1 0:2 1:1\n0 qid:1 0:3 1:1\n",
    "gap.csv": b"qid,label,a\n1,1,\n1,0,3\n",
    "scores.txt": b"1\n2\n3\n",
    "p.pkl": pickle.dumps({"a": 1}),
    "equal.txt": b"1 qid:1 1:1\n1 qid:1 1:2\n",
    "one-query.txt": b"0 qid:1 1:0\n1 qid:1 1:1\n0 qid:1 1:2\n",
    "sorted.txt": b"".join(b"%d qid:%d 1:%d\n" % (not i % 3, i // 3, i) for i in range(60)),
    "reversed.txt": b"".join(b"%d qid:%d 1:%d\n" % (2 * (i % 3 > 0), i // 3, i) for i in range(6)),
}
ON_THE_COMMAND_LINE = [
    ("read LETOR text without qid:", f"{TRAIN} --train noqid.txt"),
    ("read a table without a column of query ids", f"{TRAIN} --train search.csv"),
    ("gave labels as text", f"{TRAIN} --train words.csv"),
    ("gave negative labels", f"{TRAIN} --train negative.txt"),
    ("have text in a feature column", f"{TRAIN} --train colour.csv"),
    ("used a column name twice", f"{TRAIN} --train twice.csv"),
    ("gave an empty file", f"{TRAIN} --train empty.txt"),
    ("left a header line in LETOR text", f"{TRAIN} --train header.txt"),
    ("read a compressed file that was cut short", f"{TRAIN} --train cut.txt.gz"),
    ("read a file in another encoding", f"{TRAIN} --train utf-16.txt"),
    ("read a file in another encoding", f"{TRAIN} --train latin.csv"),
    ("read ids from 0 as ids from 1", f"{TRAIN} --train zero.txt --read zero_based=false"),
    ("have NaN under a linear model", "train ranksvm --train gap.csv"),
    ("misspelt a file name", f"{TRAIN} --train trian.txt"),
    ("gave an address on the web", f"{TRAIN} --train https://example.com/train.txt"),
    ("gave a folder", f"{TRAIN} --train kept"),
    ("gave validation data with columns that train lacks", f"{SMALL} --valid wide.txt"),
    ("misspelt a ranker", "train lamdamart --train train.txt"),
    ("misspelt a parameter", f"{SMALL} --set n_estimator=5"),
    ("used another tool's name of a parameter", f"{SMALL} --set eta=0.1"),
    ("gave a parameter of the wrong kind", f"{SMALL} --set n_estimators=ten"),
    ("gave early stopping as a word", f"{SMALL} --set early_stopping_rounds=abc"),
    ("gave a number as the metric that selects", f"{SMALL} --set metric=5"),
    ("set a parameter that has an option", f"{SMALL} --set seed=3"),
    ("gave an option and its setting", f"{SMALL} --metric map --set metric=map"),
    ("gave a parameter out of range", f"{SMALL} --set learning_rate=-1"),
    ("wrote a setting without =", f"{SMALL} --set n_estimators:5"),
    ("misspelt a metric", f"{SMALL} --metric ndgc@10"),
    ("asked for ndcg@0", f"{SMALL} --metric ndcg@0"),
    ("misspelt a convention", f"{SMALL} --convention letor"),
    ("asked for 0 threads", f"{SMALL} --threads 0"),
    ("gave --save a folder that is not there", f"{TRAIN} --train train.txt --save no/m.rw"),
    ("save to a device or pipe", f"{TRAIN} --train train.txt --save pipe"),
    ("renamed a feature before predicting", "evaluate renamed.csv --load kept/named.rw"),
    ("exchanged model and data", "rank train.txt kept/m.rw"),
    ("exchanged model and data", "evaluate kept/m.rw --load train.txt"),
    ("gave scores of another number of lines", "evaluate train.txt --scores scores.txt"),
    ("opened a pickle", "evaluate train.txt --load p.pkl"),
]
WORDS_ON_THE_COMMAND_LINE = [  # mistakes that the page does not list
    ("n_jobs is set by --threads; write --threads 2.", f"{SMALL} --set n_jobs=2"),
    ("convention is set by --convention", f"{SMALL} --set convention=letor3"),
    ("GBDT has no parameter 'name'", f"{SMALL} --set name=memr"),
    ("model is given twice", f"{SMALL} --model trees --set model=trees"),
    (
        "is a model file, where data is expected; are the two arguments swapped?",
        "evaluate kept/m.rw --feature 1",
    ),
    (
        "the feature 'price' of the fitted ranker is missing in X",
        "evaluate narrow.csv --load kept/named.rw",
    ),
]
WARNED = [
    ("gave the training file as validation data", f"{TRAIN} --train train.txt --valid train.txt"),
    (
        "set a penalty so large that nothing is learnt",
        "train ranksvm --set l2=1e300 --train train.txt",
    ),
    ("gave the same grade to all", f"{TRAIN} --train equal.txt"),
]
REMARKED = [
    ("have data of a single query", "inspect one-query.txt"),
    ("have files whose order tells the grades", "inspect sorted.txt"),
    ("have grades in which 0 is the best", "inspect reversed.txt"),
]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Data and models to work with."""
    folder = tmp_path_factory.mktemp("mistakes")
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
    os.mkfifo(folder / "pipe")
    (folder / "kept").mkdir()
    shape = {"queries": 8, "documents": 5}
    plain, named = small_data(features=4, **shape), small_data(4, 5, 4, feature_names=NAMES)
    save(plain, folder / "train.txt")
    save(small_data(features=6, seed=1, **shape), folder / "wide.txt")
    ranker = rw.GBDT(n_estimators=2, min_child_samples=2)
    ranker.fit(plain).save(folder / "kept" / "m.rw")
    ranker.fit(named).save(folder / "kept" / "named.rw")
    save(named, folder / "train.csv")
    table = pd.read_csv(folder / "train.csv")
    table.rename(columns={"price": "prices"}).to_csv(folder / "renamed.csv", index=False)
    table.drop(columns="price").to_csv(folder / "narrow.csv", index=False)
    return folder


@pytest.fixture
def folder(files, monkeypatch):
    monkeypatch.chdir(files)
    return files


@pytest.mark.parametrize(("did", "words"), ON_THE_COMMAND_LINE)
def test_a_mistake_on_the_command_line_is_one_sentence_and_leaves_nothing(did, words, folder):
    before = sorted(folder.rglob("*"))
    check(did, sentence(*shlex.split(words)))
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize(("expected", "words"), WORDS_ON_THE_COMMAND_LINE)
def test_another_mistake_on_the_command_line(expected, words, folder):
    assert expected in sentence(*shlex.split(words))


@pytest.mark.parametrize(("did", "words"), WARNED)
def test_a_warning_on_the_command_line(did, words, folder):
    done = run(*shlex.split(words))
    assert done.stderr.startswith("warning: ")
    check(did, done.stderr)
    assert run("-q", *shlex.split(words)).stderr == ""


@pytest.mark.parametrize(("did", "words"), REMARKED)
def test_a_remark_of_inspect(did, words, folder):
    check(did, run(*shlex.split(words)).stdout)


def test_a_place_where_i_may_not_write(folder, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_, **__: False)  # root may write anywhere
    check("gave --save a place where I may not write", sentence(*shlex.split(SMALL)))


def test_a_full_disk(folder, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(zipfile.ZipFile, "writestr", full)
    check("ran out of disk space", sentence(*shlex.split(SMALL)))


def test_two_runs_write_one_model(folder, tmp_path):
    command = [sys.executable, "-m", "rankwright", *shlex.split(TRAIN), "--train", "train.txt"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    both = [
        subprocess.Popen([*command, "--save", tmp_path / "m.rw", "--seed", seed], **pipes)
        for seed in "12"
    ]
    for process in both:
        out, err = process.communicate(timeout=600)
        assert process.returncode == 0, err
        check("ran two trainings into one model file", out)
    assert [path.name for path in tmp_path.iterdir()] == ["m.rw"]
    assert rw.load_model(tmp_path / "m.rw").random_state in (1, 2)


def test_ctrl_c_in_the_middle_keeps_the_best_so_far(folder, tmp_path, monkeypatch):
    record = EvaluationHistory.__call__

    def interrupted(self, round_):
        if round_.number == 2:
            raise KeyboardInterrupt
        return record(self, round_)

    monkeypatch.setattr(EvaluationHistory, "__call__", interrupted)
    words = "train gbdt --set min_child_samples=2 --train train.txt --save"
    done = run(*shlex.split(words), tmp_path / "early.rw", code=130)
    check("pressed Ctrl-C in the middle", done.stderr)
    assert rw.load_model(tmp_path / "early.rw").best_iteration_ == 1


def test_ctrl_c_before_there_is_a_model(folder, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("rankwright.data.files.load", interrupted)
    done = run(*shlex.split(SMALL), code=130)
    check("pressed Ctrl-C before there was a model", done.stderr)
    assert "Traceback" not in done.stderr
    assert not (folder / "m.rw").exists()


@pytest.mark.parametrize("name", ["windows", "mark", "comment"])
def test_other_line_ends_a_mark_and_a_comment_are_no_mistakes(name, folder, tmp_path):
    plain = (folder / "train.txt").read_bytes()
    content = {
        "windows": plain.replace(b"\n", b"\r\n"),
        "mark": b"\xef\xbb\xbf" + plain,
        "comment": b"# label qid f1 f2\n" + plain,
    }[name]
    (tmp_path / "data.txt").write_bytes(content)
    models = []
    for text in (folder / "train.txt", tmp_path / "data.txt"):
        words = ["--train", text, "--save", tmp_path / "m.rw"]
        assert run(*shlex.split(TRAIN), *words).stderr == ""
        models.append((tmp_path / "m.rw").read_bytes())
    assert models[0] == models[1]


def test_models_of_other_tools_are_no_mistakes(folder, tmp_path):
    rw.load_model(folder / "kept" / "m.rw").booster_.save_model(str(tmp_path / "lightgbm.txt"))
    (tmp_path / "ranklib.txt").write_text("## Coordinate Ascent\n## Restart = 5\n1:0.5 2:0.5\n")
    for name in ("lightgbm.txt", "ranklib.txt"):
        run("rank", tmp_path / name, "train.txt")
