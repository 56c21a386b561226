"""Linear rankers: RankSVM and MEMR against LIBLINEAR on all pairs; sparse data.

*Pairs*: the mq2007 shape on one thread. LIBLINEAR gets the differences of all pairs of a query, and
RankSVM has the same objective (squared hinge, same l2, unscaled features); listing the pairs counts
for LIBLINEAR. *Sparse*: a topic of the RCV1 shape (781,265 x 47,236, 0.16 % of the entries), the
domination loss and L1, against scikit-learn's L1 logistic regression (LIBLINEAR) with a C for about
as many weights, found on a tenth of the documents; seconds of one thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.svm import LinearSVC

from rankwright import RankingData, ranker, synthetic
from rankwright.losses import Domination
from rankwright.losses.domination_columns import Columns
from rankwright.solvers.coordinate import Coordinate, largest_l1

from .contest import OURS, Contender, Results, Row, contest
from .data_sets import ndcg, sparse_texts
from .timing import in_new_process, peak_memory, reset_peak_memory

ROUNDS, L2 = 3, 1e-3
SHARE, TOLERANCE = 0.1, 1e-4  # of the least l1 that makes all weights 0
DOCUMENTS = 781_265


def run() -> Results:
    pairs = _pairs(synthetic("mq2007"))
    pairs.set_ratio("memr_vs_liblinear", "scikit-learn", f"{OURS}, MEMR")
    pairs.set_ratio("ranksvm_vs_liblinear", "scikit-learn", OURS)
    pairs.add(_sparse())
    pairs.ratios["memory_vs_matrix"] = in_new_process(_memory)
    return pairs


# --- dense features ------------------------------------------------------------------------------


def _ours(tool: str, name: str, train: RankingData, test: RankingData, **params: Any) -> Contender:
    settings = ", ".join(f"{key}={value}" for key, value in params.items())
    return Contender(
        tool,
        f"{name}, {settings}",
        lambda: lambda: ranker(name, **params).fit(train),
        lambda model: ndcg(test, model.predict(test)),
    )


def _pairs(data: RankingData) -> Results:
    contenders = [
        _ours(OURS, "ranksvm", data, data, l2=L2, scale=False, n_jobs=1),
        _ours(f"{OURS}, MEMR", "memr", data, data, n_jobs=1),
        Contender(
            "scikit-learn",
            f"LinearSVC on all pairs, l2={L2}, 1 thread",
            lambda: lambda: liblinear_on_pairs(data),
            lambda w: ndcg(data, data.X @ w),
            rounds=1,
            warm_up=False,
        ),
    ]
    return contest("Pairs, mq2007 shape", contenders, rounds=ROUNDS, measure="NDCG@10 on train")


def liblinear_on_pairs(data: RankingData) -> np.ndarray:
    """Return the weights of RankSVM by LIBLINEAR on the differences of all pairs."""
    differences = []
    for lo, hi in zip(data.indptr[:-1], data.indptr[1:], strict=True):
        grade, rows = data.y[lo:hi], data.X[lo:hi]
        better, worse = np.nonzero(grade[:, None] > grade)
        differences.append(rows[better] - rows[worse])
    pairs = np.concatenate(differences)
    sign = np.where(np.arange(len(pairs)) % 2, 1, -1)  # a classifier needs both classes
    pairs *= sign[:, None].astype(pairs.dtype)
    svm = LinearSVC(C=1.0 / (L2 * data.n_queries), fit_intercept=False, dual=False, tol=1e-3)
    return svm.fit(pairs, sign).coef_[0]


# --- sparse features -----------------------------------------------------------------------------


def _sparse() -> Results:
    X, y = sparse_texts(DOCUMENTS)
    part = np.arange(0, X.shape[0], 10)
    _domination(X[part[:100]], y[part[:100]])  # compiles
    C = _matching_c(X[part], y[part], np.count_nonzero(_domination(X[part], y[part])))
    results, seconds = Results(), {}
    fits: dict[str, Callable[[], np.ndarray]] = {
        OURS: lambda: _domination(X, y),
        "scikit-learn": lambda: _l1_logistic(X, y, C),
    }
    settings = {
        OURS: "domination loss, coordinate descent",
        "scikit-learn": f"LogisticRegression, L1, C={C:.3g}",
    }
    for tool, fit in fits.items():
        start = time.thread_time()
        w = fit()
        seconds[tool] = time.thread_time() - start
        about = f"{settings[tool]}, {np.count_nonzero(w):,} weights, 1 thread"
        quality = float(average_precision_score(y, X @ w))
        results.rows.append(
            Row(
                f"Sparse linear ranker, {X.nnz:,} non-zeros",
                tool,
                about,
                seconds[tool],
                quality,
                "average precision on train",
            )
        )
    results.ratios["sparse_time_vs_liblinear"] = seconds[OURS] / seconds["scikit-learn"]
    return results


def _domination(X: Any, y: np.ndarray) -> np.ndarray:
    n = X.shape[0]
    data = RankingData(np.empty((n, 0)), y, np.array([0, n]), np.array([0]))
    columns = Columns.of(sparse.csc_matrix(X), data.indptr, n_jobs=1)
    problem = Domination().bind(data, n_jobs=1).by_column(columns, n_jobs=1)
    largest = largest_l1(problem)
    problem.l1 = SHARE * largest
    return Coordinate(tol=TOLERANCE * largest).solve(problem).w


def _matching_c(X: Any, y: np.ndarray, weights: int) -> float:
    """Return the C for which LIBLINEAR on all documents has about as many weights."""
    low, high = 1e-2, 1e3
    for _ in range(8):
        middle = (low * high) ** 0.5
        more = np.count_nonzero(_l1_logistic(X, y, middle)) > weights
        low, high = (low, middle) if more else (middle, high)
    return (low * high) ** 0.5 / 10.0  # C multiplies a sum over documents: a tenth of them here


def _l1_logistic(X: Any, y: np.ndarray, C: float) -> np.ndarray:
    return LogisticRegression(l1_ratio=1.0, solver="liblinear", C=C).fit(X, y > 0).coef_[0]


def _memory() -> float:
    """Return the peak of memory of a fit, over that of the matrix."""
    X, y = sparse_texts(DOCUMENTS // 10)
    _domination(X[:1000], y[:1000])  # compiles
    X = sparse.csc_matrix(X)
    matrix = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    before = reset_peak_memory()
    _domination(X, y)
    return 1.0 + (peak_memory() - before) / matrix
