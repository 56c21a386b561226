"""Input that would lead kernels astray, which check no bounds, is refused in a sentence.

All of it is tried in one child process, which a crash would end.
"""

import inspect
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse
from small_data import small_data

from rankwright import Ranker, registry
from rankwright.core.dtypes import as_feature_matrix
from rankwright.data.ranking_data import RankingData
from rankwright.errors import RankwrightError
from rankwright.losses import from_function, loss
from rankwright.models import Linear, Trees

DATA = small_data(queries=5, documents=6, features=4)
USED: list[str] = []


def test_no_damaged_input_is_used_or_ends_the_process():
    folders = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    child = subprocess.run(
        [sys.executable, "-X", "faulthandler", __file__],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(folders)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert child.returncode == 0, child.stderr


def refused(what, function, *arguments, **options):
    """Note the call unless it raises an error of ours; any other ends the child."""
    try:
        function(*arguments, **options)
    except RankwrightError:
        return
    USED.append(what)


# --- arrays of wrong length --------------------------------------------------------------------


METHODS = (
    "value",
    "grad",
    "grad_curv",
    "grad_queries",
    "hess_vec",
    "targets",
    "with_targets",
    "convex_part",
    "concave_part",
    "load_state",
)


def try_losses():
    n = DATA.n_documents
    grouped = RankingData.from_arrays(
        DATA.X, DATA.y, group_sizes=DATA.sizes, group=np.arange(n) % 3
    )
    every = [loss(name) for name in registry.names("losses")]
    for one in [*every, from_function(lambda s, y: (float(s @ y), y))]:
        bound = one.bind(grouped)
        bound.grad(np.zeros(n), np.zeros(n))
        for name in METHODS:
            method = getattr(bound, name, None)
            if method is None:
                continue
            if name == "load_state":
                wrong = {key: array[:-1] for key, array in bound.state().items()}
                if wrong:
                    refused(f"{one} {name}", method, wrong)
                continue
            names = [key for key in inspect.signature(method).parameters if key not in ("lo", "hi")]
            queries = [0, 2] if name == "grad_queries" else []
            for wrong in range(len(names)):
                for shape in ((0,), (n - 1,), (n + 1,), (n, 1), ()):
                    arrays = [np.zeros(n) for _ in names]
                    arrays[wrong] = np.zeros(shape)
                    refused(f"{one} {name} {shape}", method, *queries, *arrays)
            if queries:
                for lo, hi in ((-1, 2), (0, 6), (3, 2)):
                    refused(f"{one} {lo}:{hi}", method, lo, hi, np.zeros(n), np.zeros(n))


def try_scores():
    """Scores that overflowed give some number, and end neither the process nor never."""
    rng = np.random.default_rng(0)
    np.seterr(all="ignore")
    n = DATA.n_documents
    for name in registry.names("losses"):
        bound = loss(name).bind(DATA)
        for wrong in (np.nan, np.inf, -np.inf, 1e308, -1e308):
            for share in (0.1, 1.0):
                scores = np.where(rng.random(n) < share, wrong, rng.normal(size=n))
                bound.grad(scores, np.zeros(n))
                bound.grad_queries(1, 3, scores, np.zeros(n))


def try_ranking_data():
    n, arrays = DATA.n_documents, {"y": DATA.y, "indptr": DATA.indptr, "qid": DATA.qid}
    RankingData(DATA.X, **arrays)
    boundaries = ([0, 40], [0, 6, 3, 30], [1, 30], [0, -6, 30], [], [0], [0, 2**62, 30])
    wrong = [{"indptr": np.array(given, np.int64)} for given in boundaries]
    wrong += [{"indptr": DATA.indptr.astype(float)}, {"indptr": DATA.indptr.tolist()}]
    wrong += [{"y": DATA.y[:-1]}, {"y": DATA.y[:, None]}, {"y": DATA.y.astype(object)}]
    wrong += [{"X": DATA.X[:-1]}, {"X": DATA.X[:, 0]}, {"X": DATA.X.astype(int)}]
    wrong += [{"X": DATA.X.tolist()}, {"X": sparse.csc_array(DATA.X)}]
    wrong += [{"qid": DATA.qid[:-1]}, {"feature_names": ("a",)}]
    wrong += [{"query_weight": np.ones(4)}, {"query_weight": np.ones(n)}]
    for name in ("sample_weight", "doc_id", "group", "position", "row"):
        wrong += [{name: np.ones(n - 1, np.int64)}, {name: np.ones(5, np.int64)}]
    for change in wrong:
        refused(f"RankingData {change}", RankingData, **{"X": DATA.X, **arrays, **change})


# --- sparse matrices ---------------------------------------------------------------------------


def try_sparse_matrices():
    X = sparse.csr_array(np.where(DATA.X > 0, DATA.X, 0.0))
    fitted = [
        Ranker(loss="ranknet", model=model).fit(X, DATA.y, qid=DATA.query_of_row())
        for model in (Linear(max_iter=1), Trees(n_estimators=1))
    ]
    for bad in [*wrong_copies(X), *wrong_copies(sparse.csr_array(X.astype(np.float32)))]:
        refused("from_arrays", RankingData.from_arrays, bad, DATA.y, qid=DATA.query_of_row())
        refused("RankingData", RankingData, bad, DATA.y, DATA.indptr, DATA.qid)
        for ranker in fitted:
            refused("predict", ranker.predict, bad)
            refused("rank", ranker.rank, bad)
    for bad in wrong_copies(sparse.csc_array(X)):
        refused("csc", as_feature_matrix, bad)
    for at, value in ((0, -1), (3, 10**6), (5, -(2**31))):
        blocks = sparse.bsr_array(X, blocksize=(2, 2))
        blocks.indices[at] = value
        refused("bsr", as_feature_matrix, blocks)
        for axis in ("row", "col"):
            places = sparse.coo_array(X).copy()
            getattr(places, axis)[at] = value
            refused(f"coo {axis}", as_feature_matrix, places)


def wrong_copies(X):
    """Yield copies of a CSR or CSC matrix with a number in its arrays that is out of range."""
    for array, numbers in (("indices", range(0, X.nnz, 7)), ("indptr", range(len(X.indptr)))):
        for at in numbers:
            for value in (-1, 10**9, -(2**31)):
                bad = X.copy()
                getattr(bad, array)[at] = value
                yield bad


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    try_losses()
    try_scores()
    try_ranking_data()
    try_sparse_matrices()
    sys.exit("used: " + ", ".join(USED) if USED else 0)
