"""What newcomers get wrong in Python; docs/mistakes.md promises the words that are checked here."""

import errno
import json
import os
import pickle
import re
import sys
import warnings
import zipfile
from hashlib import sha256
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from mistake_page import mistakes, pattern
from sklearn import config_context
from sklearn.model_selection import GridSearchCV, cross_val_score

import rankwright as rw
from rankwright.errors import MissingExtraError, RankwrightError
from rankwright.persist.container import ModelFileError

N = 40
NAMES = ["price", "age", "length", "bm25"]


@pytest.fixture
def X():  # noqa: N802
    return np.random.default_rng(0).normal(size=(N, 4))


@pytest.fixture
def y(X):
    return np.digitize(X[:, 0], [-0.4, 0.4])


@pytest.fixture
def frame(X):
    return pd.DataFrame(X, columns=NAMES)


QID = np.repeat(np.arange(8), 5)


def gbdt(**parameters):
    return rw.GBDT(n_estimators=3, min_child_samples=2, **parameters)


def reported(did):
    """Expect the sentence that the page has for this mistake, as one of our own errors."""
    return pytest.raises(RankwrightError, match=pattern(did))


def warned(did):
    return pytest.warns(UserWarning, match=pattern(did))


def test_every_mistake_of_the_page_is_tried():
    here = Path(__file__).parent
    tried = "".join(path.read_text(encoding="utf-8") for path in here.glob("test_*mistakes.py"))
    assert len(mistakes()) >= 36
    assert [did for did in mistakes() if f'"{did}"' not in tried] == []


# --- queries -----------------------------------------------------------------------------------


def test_forgot_qid_in_fit(X, y):
    with warned("forgot qid in fit"):
        gbdt().fit(X, y)


def test_forgot_qid_in_evaluate(X, y):
    with warned("forgot qid in evaluate"):
        rw.evaluate(y, X[:, 0], "ndcg@10")


def test_forgot_qid_under_query_folds(X, y):
    with reported("forgot qid under QueryFolds"):
        cross_val_score(gbdt(), X, y, cv=rw.QueryFolds())


def test_forgot_qid_in_score(X, y):
    ranker = gbdt().fit(X, y, qid=QID)
    with reported("forgot qid in score"):
        ranker.score(X, y)


def test_forgot_qid_in_cross_validation(X, y):
    with warned("forgot qid in cross-validation"):
        cross_val_score(gbdt(), X, y, cv=2)


def test_forgot_qid_in_grid_search(X, y):
    with warned("forgot qid in GridSearchCV"):
        GridSearchCV(gbdt(), {"learning_rate": [0.1]}, cv=2).fit(X, y)


def test_queries_cut_by_folds_of_rows(X, y):
    with (
        config_context(enable_metadata_routing=True),
        warned("cut queries with cv=3 of scikit-learn"),
    ):
        cross_val_score(gbdt(), X, y, cv=3, params={"qid": QID})


def test_clicks_among_the_features(frame, y):
    with warned("left clicks among the features"):
        gbdt().fit(frame.assign(clicks=1.0, impressions=2.0), y, qid=QID)


def test_names_of_features_for_an_array(X, y):
    with reported("gave features= for an array"):
        gbdt().fit(X, y, qid=QID, features=["price"])


def test_a_callback_of_lightgbm(X, y):
    import lightgbm

    with reported("gave a callback of LightGBM"):
        gbdt().fit(X, y, qid=QID, callbacks=[lightgbm.log_evaluation()])


def test_too_few_gains(X, y):
    with reported("gave too few gains in label_gain"):
        rw.LambdaMART(label_gain=[0, 1]).fit(X, np.minimum(y, 2), qid=QID)


def test_sizes_of_queries_that_do_not_add_up(X, y):
    with reported("gave sizes of queries that do not add up"):
        gbdt().fit(X, y, group_sizes=[5] * 7)


def test_sizes_of_queries_as_qid(X, y):
    with reported("gave sizes of queries as qid"):
        gbdt().fit(X, y, qid=[5] * 8)


def test_group_as_in_lightgbm(X, y):
    with reported("wrote group= as in LightGBM"):
        gbdt().fit(X, y, group=[5] * 8)


@pytest.mark.parametrize("name", ["groups", "eval_qid", "valid", "early_stopping_rounds", "colour"])
def test_other_arguments_that_fit_does_not_take(X, y, name):
    with pytest.raises(RankwrightError, match=f"fit takes no argument '{name}': "):
        gbdt().fit(X, y, qid=QID, **{name: 1})


def test_each_document_its_own_query(X, y):
    with warned("gave each document its own qid"):
        rw.LinearRegression().fit(X, y, qid=np.arange(N))


# --- grades ------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [["good", "bad"], ["good", "1"]])
def test_labels_as_text(X, words):
    with reported("gave labels as text"):
        gbdt().fit(X, np.array(words * (N // 2)), qid=QID)


@pytest.mark.parametrize("bad", [-1.0, np.nan])
def test_negative_or_missing_labels(X, y, bad):
    with reported("gave negative labels"):
        gbdt().fit(X, np.where(y == 0, bad, y), qid=QID)


@pytest.mark.parametrize("kind", [rw.GBDT, rw.RankSVM])
def test_the_same_grade_for_all(X, kind):
    with warned("gave the same grade to all"):
        kind().fit(X, np.ones(N), qid=QID)


def test_counts_as_grades(X, y):
    ranker = gbdt().fit(X, y * 1000, qid=QID)
    with reported("used counts as grades"):
        ranker.score(X, y * 1000, qid=QID)


def test_forgot_y(X):
    with reported("forgot y"):
        gbdt().fit(X, qid=QID)


def test_lengths_of_x_and_y(X, y):
    with reported("gave X and y of different lengths"):
        gbdt().fit(X, y[:-1], qid=QID)


def test_the_label_among_the_features(frame, y):
    with reported("left the label column in X"):
        gbdt().fit(frame.assign(label=y), y, qid=QID)


def test_a_series_in_another_order(frame, y):
    shuffled = pd.Series(QID).sample(frac=1, random_state=0)
    with reported("gave qid as a Series in another order than X"):
        gbdt().fit(frame, y, qid=shuffled)


def test_a_name_of_a_column_where_there_are_none(X, y):
    with pytest.raises(RankwrightError, match="qid='qid' names a column, but X is not a frame"):
        gbdt().fit(X, y, qid="qid")


def test_one_column_by_name_and_one_as_an_array(frame, y):
    with pytest.raises(RankwrightError, match="y and qid must both be names of columns"):
        gbdt().fit(frame.assign(label=y), "label", qid=QID)


# --- features ----------------------------------------------------------------------------------


def test_a_feature_renamed_before_predicting(frame, y):
    ranker = gbdt().fit(frame, y, qid=QID)
    with reported("renamed a feature before predicting"):
        ranker.predict(frame.rename(columns={"price": "prices"}))


def test_fewer_columns_to_predict(X, y):
    ranker = gbdt().fit(X, y, qid=QID)
    with reported("predict with fewer columns"):
        ranker.predict(X[:, :3])


def test_valid_data_with_more_columns(X, y):
    with reported("gave validation data with columns that train lacks"):
        gbdt().fit(X, y, qid=QID, eval_set=(np.c_[X, X[:, :2]], y, QID))


def test_valid_data_with_a_name_that_train_lacks(frame, y):
    with reported("renamed a feature before predicting"):
        other = frame.rename(columns={"price": "prices"})
        gbdt().fit(frame, y, qid=QID, eval_set=(other, y, QID))


@pytest.mark.parametrize("wrapped", [False, True])
def test_valid_data_without_qid(X, y, wrapped):
    with reported("gave validation data without qid"):
        gbdt().fit(X, y, qid=QID, eval_set=[(X, y)] if wrapped else (X, y))


def test_missing_values_under_a_linear_model(X, y):
    X[3, 1] = np.nan
    with reported("have NaN under a linear model"):
        rw.RankSVM().fit(X, y, qid=QID)


@pytest.mark.parametrize("kind", [list, pd.array])
def test_text_in_a_column(frame, y, kind):
    with reported("have text in a feature column"):
        gbdt().fit(frame.assign(colour=kind(["red", "blue"] * (N // 2))), y, qid=QID)


def test_an_id_among_the_features(y):
    with warned("left an id among the features"):
        rw.RankingData.from_arrays(np.arange(4 * N).reshape(N, 4) + 2**60, y, qid=QID)


def test_a_column_name_used_twice(X, y):
    with reported("used a column name twice"):
        gbdt().fit(pd.DataFrame(X, columns=["a", "b", "c", "a"]), y, qid=QID)


def test_a_single_row(X, y):
    ranker = gbdt().fit(X, y, qid=QID)
    with reported("gave a single row or column as X"):
        ranker.predict(X[0])


def test_a_path_in_place_of_data():
    with reported("gave a path to fit"):
        gbdt().fit("train.txt")


# --- names and settings ------------------------------------------------------------------------


def test_a_misspelt_ranker():
    with reported("misspelt a ranker"):
        rw.ranker("lamdamart")


def test_a_misspelt_class():
    with pytest.raises(AttributeError, match=pattern("misspelt a class")):
        rw.LambdaMart  # noqa: B018


def test_a_misspelt_parameter():
    with reported("misspelt a parameter"):
        rw.GBDT(n_estimator=5)


def test_another_tools_name_of_a_parameter():
    with reported("used another tool's name of a parameter"):
        rw.GBDT(eta=0.1)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"n_estimators": "ten"}, "n_estimators must be a whole number, not 'ten'"),
        ({"n_estimators": 2.5}, "n_estimators must be a whole number, not 2.5"),
        ({"n_estimators": 0}, "n_estimators must be 1 or more, not 0"),
        ({"learning_rate": "fast"}, "learning_rate must be a number or 'auto', not 'fast'"),
        ({"learning_rate": -1}, "learning_rate must be above 0, not -1"),
        ({"model": rw.models.Linear(scale="yes")}, "scale must be true or false, not 'yes'"),
        ({"model": rw.models.Linear(l2="big")}, "l2 must be 0 or more, or 'auto', not big"),
    ],
)
def test_a_parameter_of_the_wrong_kind(X, y, parameters, words):
    with pytest.raises(RankwrightError, match=re.escape(words)):
        rw.GBDT(**parameters).fit(X, y, qid=QID)


def test_numbers_of_numpy_are_numbers(X, y):
    theirs = gbdt(num_leaves=np.int64(4), learning_rate=np.float32(0.5)).fit(X, y, qid=QID)
    ours = gbdt(num_leaves=4, learning_rate=0.5).fit(X, y, qid=QID)
    assert (theirs.predict(X) == ours.predict(X)).all()


@pytest.mark.parametrize(
    ("did", "metric"),
    [
        ("misspelt a metric", "ndgc@10"),
        ("wrote ndcg10", "ndcg10"),
        ("wrote a metric's name in full", "precision@10"),
        ("asked for ndcg@0", "ndcg@0"),
    ],
)
def test_the_name_of_a_metric(X, y, did, metric):
    with reported(did):
        gbdt(metric=metric).fit(X, y, qid=QID)


def test_a_convention_that_is_none(X, y):
    with reported("named a convention that is none"):
        gbdt(convention="letor").fit(X, y, qid=QID)


def test_no_threads(X, y):
    with reported("asked for 0 threads"):
        gbdt(n_jobs=0).fit(X, y, qid=QID)


def test_a_penalty_so_large_that_nothing_is_learnt(X, y):
    with warned("set a penalty so large that nothing is learnt"):
        rw.RankSVM(l2=1e300).fit(X, y, qid=QID)


def test_too_few_documents_for_the_default_leaves(X, y):
    with warned("set a penalty so large that nothing is learnt"):
        rw.GBDT(n_estimators=3).fit(X[:30], y[:30], qid=QID[:30])


def test_predict_before_fit(X):
    with reported("predict before fit"):
        gbdt().predict(X)


# --- files and models --------------------------------------------------------------------------


def test_a_misspelt_file(tmp_path):
    (tmp_path / "train.txt").write_text("1 qid:1 1:2\n")
    with reported("misspelt a file name"):
        rw.load(tmp_path / "trian.txt")


@pytest.mark.parametrize("read", [rw.load, rw.load_model])
def test_an_address(read):
    with reported("gave an address on the web"):
        read("https://example.com/train.txt")


def test_a_model_of_another_version(X, y, tmp_path):
    path = tmp_path / "m.rw"
    gbdt().fit(X, y, qid=QID).save(path)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    receipt = {**json.loads(parts["receipt.json"]), "format": 99, "rankwright": "9.9"}
    parts["receipt.json"] = json.dumps(receipt).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
        archive.comment = sha256(parts["receipt.json"]).hexdigest().encode()
    with reported("opened a model of another version"):
        rw.load_model(path)


def test_files_of_other_tools_are_named(tmp_path):
    path = tmp_path / "m"
    foreign = {
        "opened a pickle": pickle.dumps({"a": 1}),
        "opened a binary model of CatBoost": b"CBM1\0\0",
        "exchanged model and data": b"1 qid:1 1:0.5\n",
    }
    for did, content in foreign.items():
        path.write_bytes(content)
        with reported(did):
            rw.load_model(path)
    some = {b'{"learner": {}}': "XGBoost", b"{}": "JSON", b"": "is empty", b"?": "not a model"}
    for content, words in some.items():
        path.write_bytes(content)
        with pytest.raises(ModelFileError, match=words):
            rw.load_model(path)
    with pytest.raises(ModelFileError, match="is a folder; name the model file in it"):
        rw.load_model(tmp_path)


def test_save_into_a_folder_that_is_not_there(X, y, tmp_path):
    with reported("save into a folder that is not there"):
        gbdt().fit(X, y, qid=QID).save(tmp_path / "no" / "m.rw")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("did", "number"),
    [("ran out of disk space", errno.ENOSPC), ("save where I may not write", errno.EACCES)],
)
def test_a_disk_that_takes_no_more(X, y, tmp_path, monkeypatch, did, number):
    path = tmp_path / "m.rw"
    path.write_bytes(b"an older model")

    def full(*_):
        raise OSError(number, "the system's word for it")

    monkeypatch.setattr(zipfile.ZipFile, "writestr", full)
    with reported(did):
        gbdt().fit(X, y, qid=QID).save(path)
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [
        ("m.rw", b"an older model")
    ]


def test_a_disk_that_is_full_in_the_middle_of_a_file(X, y, tmp_path):
    """The system refuses to make a file longer than 100 bytes."""
    resource = pytest.importorskip("resource")
    ranker = gbdt().fit(X, y, qid=QID)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        with reported("ran out of disk space"):
            ranker.save(tmp_path / "m.rw")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(tmp_path.iterdir()) == []


def test_save_to_a_pipe(X, y, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with reported("save to a device or pipe"):
        gbdt().fit(X, y, qid=QID).save(pipe)
    assert pipe.is_fifo()


def absent(monkeypatch, *packages):
    for package in packages:
        for name in [m for m in sys.modules if m == package or m.startswith(package + ".")]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, package, None)


def test_torch_is_not_installed(X, y, monkeypatch):
    absent(monkeypatch, "torch")
    with reported("have not installed an extra") as fault:
        rw.RankNet(model="network").fit(X, y, qid=QID)
    assert "pip install 'rankwright[neural]'" in str(fault.value)


def test_optuna_is_not_installed(X, y, monkeypatch):
    from rankwright.comparison.tune import tune

    absent(monkeypatch, "optuna")
    data = rw.RankingData.from_arrays(X, y, qid=QID)
    with pytest.raises(MissingExtraError, match=r"pip install 'rankwright\[tune\]'"):
        tune("gbdt", data, data, trials=1)


def test_matplotlib_is_not_installed(monkeypatch):
    from rankwright.figures import import_matplotlib

    absent(monkeypatch, "matplotlib")
    with pytest.raises(MissingExtraError, match=r"pip install 'rankwright\[plot\]'"):
        import_matplotlib()


def test_pyarrow_is_not_installed(monkeypatch, tmp_path):
    absent(monkeypatch, "pyarrow", "pyarrow.parquet")
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(MissingExtraError, match=r"pip install 'rankwright\[parquet\]'"):
        rw.load(tmp_path / "a.parquet")


def test_onnx_is_not_installed(X, y, monkeypatch, tmp_path):
    from rankwright.export.folder import export_model

    absent(monkeypatch, "onnx")
    with pytest.raises(MissingExtraError, match=r"pip install 'rankwright\[onnx\]'"):
        export_model(gbdt().fit(X, y, qid=QID), "onnx", tmp_path / "e")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("package", ["fastapi", "uvicorn", "prometheus_client"])
def test_what_serves_is_not_installed(monkeypatch, package):
    from rankwright.serve import serve

    absent(monkeypatch, package)
    with pytest.raises(MissingExtraError, match=r"pip install 'rankwright\[serve\]'"):
        serve(["m.rw"], settings=None, listening=None)


def test_dask_is_not_installed(monkeypatch):
    from rankwright.distributed.cluster import connected

    absent(monkeypatch, "dask", "distributed")
    with pytest.raises(MissingExtraError, match=r"pip install 'rankwright\[dask\]'"):
        connected()


# --- what is no mistake ------------------------------------------------------------------------


def test_columns_of_a_frame_go_by_their_names(frame, y):
    ranker = gbdt().fit(frame, y, qid=QID, eval_set=[(frame[NAMES[::-1]], y, QID)])
    expected = ranker.predict(frame)
    wide = frame[NAMES[::-1]].assign(other=1.0)
    np.testing.assert_array_equal(ranker.predict(wide), expected)
    right = gbdt().fit(frame, y, qid=QID, eval_set=(frame, y, QID))
    assert ranker.curve_ == right.curve_


def test_rows_of_a_query_may_stand_apart(X, y):
    order = np.random.default_rng(1).permutation(N)
    apart = gbdt().fit(X[order], y[order], qid=QID[order])
    together = gbdt().fit(X, y, qid=QID)
    np.testing.assert_array_equal(apart.predict(X), together.predict(X))


def test_ndcg_in_capitals_or_without_a_cut_off(X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        whole = gbdt(metric="ndcg").fit(X, y, qid=QID).score(X, y, qid=QID)
        assert gbdt(metric="NDCG@5").fit(X, y, qid=QID).score(X, y, qid=QID) == whole
