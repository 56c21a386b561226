"""Files of data: every format that is read, stores, click logs, and compiled kernels."""

import logging
import os
import shutil
import warnings
from dataclasses import replace
from functools import cache

import numpy as np
from click_sessions import random_log
from damage import Attack
from scipy import sparse
from small_data import small_data

import rankwright as rw
from rankwright import clicks
from rankwright.core import kernel_cache
from rankwright.core.jit import kernel
from rankwright.core.kernels import copy_values
from rankwright.data.files import load, save
from rankwright.data.inspect import inspect
from rankwright.data.rankings import Ranking
from rankwright.data.store import Store
from rankwright.data.trec import write_qrels

METRICS = "ndcg(gain=linear)@10,map,mrr"


def folder_of(folder, name, files):
    """Write an input that is a folder of files; return it."""
    (folder / name).mkdir()
    for file, content in files.items():
        (folder / name / file).write_bytes(content)
    return folder / name


# --- ranking data ------------------------------------------------------------------------------


@cache
def all_columns():
    """Return data with every optional array."""
    rows = np.arange(48)
    return small_data(
        queries=8,
        documents=6,
        features=3,
        doc_id=np.char.add("d", rows.astype(str)),
        group=rows % 3,
        position=rows % 6 + 1,
        sample_weight=1.0 + rows % 2,
        query_weight=np.arange(1.0, 9.0),
        feature_names=["a", "b", "c"],
    )


def write_formats(folder):
    """Write a folder for each format, named by it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about columns that a format does not hold
        for name in ("arrow", "csv", "letor", "parquet", "tsv"):
            save(all_columns(), folder_of(folder, name, {}) / "file", format=name)
    run = folder_of(folder, "trec", {})
    Ranking.of(all_columns(), all_columns().X[:, 0]).to_trec(run / "file")
    write_qrels(all_columns(), run / "qrels.txt")
    rows = b"".join(b"%d 1:0.5 2:%d\n" % (row % 3, row) for row in range(8))
    folder_of(folder, "lightgbm", {"file": rows, "file.query": b"4\n4\n"})
    return sorted(folder.iterdir())


def use_formats(path):
    """Read the file of a folder by its format, and use the data."""
    if path.name == "trec":
        rw.evaluate_run(path / "file", path / "qrels.txt", METRICS)
    else:
        use_data(load(path / "file", format=path.name))


def use_data(data):
    """Inspect, evaluate, train on and rank ranking data."""
    data.to_frame("pyarrow")
    inspect(data)
    for model in (
        rw.models.Linear(missing="zero", max_iter=1),
        rw.models.Trees(n_estimators=1, num_leaves=3),
    ):
        ranker = rw.Ranker(loss="ranknet", model=model)
        scores = ranker.fit(data).predict(data)
        ranker.rank(data, top=2).to_frame()
    rw.evaluate(data, np.nan_to_num(scores), METRICS)


def write_stores(folder):
    """Write a store of dense and one of sparse features."""
    X = sparse.csr_array(np.where(all_columns().X > 0.3, all_columns().X, 0.0))
    Store().write(all_columns(), folder / "dense.store")
    Store().write(replace(all_columns(), X=X), folder / "sparse.store")
    return [folder / "dense.store", folder / "sparse.store"]


def use_stores(path):
    """Open a store, whole and in part, and use the data."""
    use_data(Store().read(path))
    use_data(Store().read_queries(path, 1, 5))


FORMATS = Attack(write_formats, use_formats)
STORES = Attack(write_stores, use_stores)


# --- feature logs of search engines, with judgment lists ---------------------------------------

_FEATURES = b'[{"name":"a","value":1.5},{"name":"b"}]'
_HIT = b'{"_id":"%s","fields":{"_ltrlog":[{"qid:1":' + _FEATURES + b"}]}}"
_HITS = b'{"hits":{"hits":[%s,%s]}}' % (_HIT % b"d1", _HIT % b"d2")
_DOCS = b'{"id":"d1","[features]":"a=1.5,b=0.0"},{"id":"d2","[features]":"b=2.0"}'
_CHILD = b'{"id":"id:n:t::d1","fields":{"matchfeatures":{"a":1.5,"b":0}}}'
_LOGS = {
    "plugin": _HITS + b"\n" + _HITS,
    "msearch": b'{"responses":[' + _HITS + b"]}",
    "solr": b'{"responseHeader":{"params":{"q":"rambo"}},"response":{"docs":[' + _DOCS + b"]}}",
    "vespa": b'{"qid":1,"root":{"children":[' + _CHILD + b"]}}",
}
_JUDGED = b"# qid:1: rambo*2\n\n3 qid:1 # d1 rambo\n0 qid:1 1:0.5 # d2\n"


def write_feature_logs(folder):
    """Write a log of each engine with a judgment list."""
    return [
        folder_of(folder, name, {"log.jsonl": log, "judged.txt": _JUDGED})
        for name, log in _LOGS.items()
    ]


def use_feature_log(path):
    """Join a log to its judgment list."""
    load(path / "log.jsonl", judgments=path / "judged.txt")


FEATURE_LOGS = Attack(write_feature_logs, use_feature_log)


# --- click logs --------------------------------------------------------------------------------

_INTERLEAVED = b'"teams":[0,1],"interleaving":{"method":"team_draft","rankers":["A","B"],"k":2},'
_CLICK_LOGS = {
    "table.csv": b"session,query,document,position,click\n1,a,x,1,0\n1,a,y,2,1\n2,b,x,1,1\n",
    "sessions.jsonl": b'{"query":"a","documents":["x","y"],"clicks":[0,1],"time":3}\n' * 3,
    "impressions.jsonl": b"".join(
        b'{"session":%d,"query":"a","document":"x%d","click":%d}\n' % (i // 2, i, i % 2)
        for i in range(4)
    ),
    "reported.jsonl": (
        b'{"session":"s","query":"a","documents":["x","y"],' + _INTERLEAVED + b'"clicked":[]}\n'
        b'{"session":"s","clicked":[2]}\n'
    ),
    "interleaved.jsonl": b"".join(
        b'{"query":"%d",' % query + _INTERLEAVED + b'"documents":["x","y"],"clicks":[0,1]}\n'
        for query in range(2)
    ),
    "log.ubi": (
        b'{"query_id":"1","user_query":"a","query_response_object_ids":["x","y"]}\n'
        b'{"action_name":"click","query_id":"1","event_attributes":{"object":{"object_id":"y"}}}\n'
    ),
}


def write_click_logs(folder):
    """Write a log of each format."""
    for name, content in _CLICK_LOGS.items():
        (folder / name).write_bytes(content)
    clicks.save_log(random_log(sessions=8), folder / "table.parquet")
    return sorted(folder.iterdir())


def use_click_log(path):
    """Read a log, look at it, score it and fit models to it."""
    log = clicks.load_log(path, format=path.suffix.lstrip("."))
    if log.interleaving is not None:
        clicks.score_interleaving(log)
    clicks.inspect_log(log)
    clicks.DBN(max_iter=2).fit(log).evaluate(log)
    clicks.PBM(max_iter=2).fit(log)


CLICK_LOGS = Attack(write_click_logs, use_click_log)


# --- the cache of compiled kernels -------------------------------------------------------------
#
# Its files hold pickles and machine code and belong to the user, so they are damaged as by a disk
# or a killed writer, under digests that no longer match.


def _compiled(folder):
    """Return `copy_values` as a kernel whose code is kept in a folder."""
    os.environ["RANKWRIGHT_CACHE"] = str(folder)
    kernel_cache.kernels_folder.cache_clear()
    copied = np.zeros(2)
    function = kernel(copy_values.py_func)
    function(np.array([1.0, 2.0]), copied)
    assert copied.tolist() == [1.0, 2.0]
    return function


def write_kernels(folder):
    """Compile a kernel and return the files that Numba wrote."""
    _compiled(folder / "kernels")
    return sorted(folder.rglob("*.nb[ci]"))


def use_kernel(path):
    """Call a kernel whose folder has this file; if it is damaged, the kernel is compiled again."""
    logging.disable()
    (written,) = (folder for folder in path.parents if (folder / "whole").is_dir())
    used = written / "in-use"
    shutil.rmtree(used, ignore_errors=True)
    shutil.copytree(written / "whole" / "kernels", used)
    (target,) = used.rglob(path.name)
    shutil.copy(path, target)
    _compiled(used)


KERNELS = Attack(write_kernels, use_kernel)
