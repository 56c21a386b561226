"""Coordinate descent on the domination loss: growth, LIBLINEAR's time, and memory.

A topic of the ``rcv1`` shape (781,265 x 47,236, 0.16 % dense) is fitted on one core, against
scikit-learn's L1 logistic regression (LIBLINEAR) on the same matrix and labels. Each has its own
penalty and the C of LIBLINEAR is searched on a tenth of the documents for about as many weights as
ours keep there; both numbers are printed. Both run in one thread, and times are those of that
thread, so that a busy machine does not decide. ``RANKWRIGHT_BENCH_QUERIES`` makes a smaller set.
"""

from __future__ import annotations

import os
import time
import warnings
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics import average_precision_score

from rankwright.data.ranking_data import RankingData
from rankwright.data.synthetic_data import SHAPES, synthetic
from rankwright.losses.domination import Domination
from rankwright.losses.domination_columns import Columns
from rankwright.solvers.coordinate import Coordinate, largest_l1

from .contest import version
from .findings import OURS, Curve, Findings, Record
from .timing import apart, least, memory_in_use, peak_memory, slope

QUERIES = int(os.environ.get("RANKWRIGHT_BENCH_QUERIES", SHAPES["rcv1"].queries))
SHARE, TOLERANCE = 0.1, 1e-4  # of the least l1 that makes all weights 0
NON_ZEROS = (10_000, 100_000, 1_000_000, 10_000_000)


def run() -> Findings:
    found = Findings()
    found.add(_growth())
    found.add(_against_liblinear())
    base, peak, matrix = apart(_memory)
    found.figures["memory_vs_matrix"] = (peak - base) / matrix
    return found


# --- growth ----------------------------------------------------------------------------------


def _growth() -> Findings:
    """Return the time of a sweep over all columns, for more and more non-zeros."""
    counts, seconds = [], []
    for goal in NON_ZEROS:
        X, y = _random(goal)
        count = X.nnz
        problem = _problem(X, y)
        problem.l1 = SHARE * largest_l1(problem)
        w, columns = np.zeros(problem.size), np.arange(problem.size)
        problem.grad(w, np.empty(problem.size))
        problem.sweep(w, columns)  # compiles; makes the first steps
        rounds = max(3, 3_000_000 // count)

        def sweeps(
            problem: Any = problem, w: Any = w, columns: Any = columns, n: int = rounds
        ) -> None:
            for _ in range(n):
                problem.sweep(w, columns)

        counts.append(float(count))
        seconds.append(least({"": sweeps}, 3, warm_up=False, clock=time.thread_time)[""] / rounds)
    grown = slope(counts, seconds)
    about = "one sweep over all columns, 1 thread"
    curve = Curve("Domination loss by coordinate descent", "non-zeros", OURS,
                  version("rankwright"), counts, seconds, grown, about)  # fmt: skip
    return Findings({"growth_exponent_of_an_epoch": grown}, curves=[curve])


def _random(count: int) -> tuple[Any, np.ndarray]:
    """Documents of 50 words, common and rare; new words come as in text (Heaps' law)."""
    rng = np.random.default_rng(0)
    n = count // 50
    d = int(20 * n**0.5)
    words = (d * rng.random(count) ** 2).astype(np.int32)
    values = rng.random(count).astype(np.float32)
    X = sparse.csr_array((values, words, np.arange(0, count + 1, 50)), shape=(n, d))
    X.sum_duplicates()
    return sparse.csc_array(X), (rng.random(n) < 0.03).astype(float)


# --- against LIBLINEAR -------------------------------------------------------------------------


def _against_liblinear() -> Findings:
    data = synthetic("rcv1", queries=QUERIES)
    X = sparse.csr_matrix(data.X)
    some = np.arange(0, X.shape[0], 10)
    kept = np.count_nonzero(_ours(sparse.csc_matrix(X[some]), data.y[some]))
    C = _cap(X[some], data.y[some], kept)
    start = time.thread_time()
    w = _ours(sparse.csc_matrix(X), data.y)
    ours = time.thread_time() - start
    start = time.thread_time()
    theirs_w = _liblinear(X, data.y, C)
    theirs = time.thread_time() - start
    kept, theirs_kept = np.count_nonzero(w), np.count_nonzero(theirs_w)
    reached = [float(average_precision_score(data.y > 0, X @ one)) for one in (w, theirs_w)]
    measure = "average precision on train"
    task = f"Sparse linear ranker, {X.shape[0]:,} x {X.shape[1]:,}, {X.nnz:,} non-zeros"
    return Findings(
        {"time_vs_liblinear": ours / theirs, "weights_vs_liblinear": kept / max(1, theirs_kept)},
        [
            Record(
                task, OURS, version("rankwright"),
                f"domination loss, coordinate descent, {kept:,} weights, 1 thread", ours,
                reached[0], measure,
            ),
            Record(
                task, "scikit-learn", version("scikit-learn"),
                f"LogisticRegression, L1, LIBLINEAR, C={C:.3g}, {theirs_kept:,} weights, 1 thread",
                theirs, reached[1], measure,
            ),
        ],
    )  # fmt: skip


def _ours(X: Any, y: np.ndarray) -> np.ndarray:
    problem = _problem(X, y)
    top = largest_l1(problem)
    problem.l1 = SHARE * top
    return Coordinate(tol=TOLERANCE * top).solve(problem).w


def _problem(X: Any, y: np.ndarray) -> Any:
    n = X.shape[0]
    data = RankingData(np.empty((n, 0)), y, np.array([0, n]), np.array([0]))
    columns = Columns.of(X, data.indptr, n_jobs=1)
    return Domination().bind(data, n_jobs=1).by_column(columns, n_jobs=1)


def _cap(X: Any, y: np.ndarray, kept: int) -> float:
    """Return the C at which LIBLINEAR keeps about as many weights, per document."""
    low, high = 1e-2, 1e3
    for _ in range(8):
        middle = (low * high) ** 0.5
        more = np.count_nonzero(_liblinear(X, y, middle)) > kept
        low, high = (low, middle) if more else (middle, high)
    return (
        low * high
    ) ** 0.5 / 10.0  # C multiplies a sum over documents, of which all are ten times


def _liblinear(X: Any, y: np.ndarray, C: float) -> np.ndarray:
    from sklearn.linear_model import LogisticRegression

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # names of parameters change between releases
        model = LogisticRegression(penalty="l1", solver="liblinear", C=C, fit_intercept=True)
        return model.fit(X, y > 0).coef_[0]


# --- memory ----------------------------------------------------------------------------------


def _memory() -> tuple[int, int, int]:
    """Return bytes in use before there is a matrix, at the peak of a fit, and of the matrix."""
    _ours(*_random(10_000))  # compiled code is no data
    base = memory_in_use()
    shape = SHAPES["rcv1"]
    n, d = QUERIES * shape.documents // shape.queries, shape.features
    X = _even_columns(n, d, int(0.0016 * n * d))
    _ours(X, (np.random.default_rng(0).random(n) < 0.03).astype(float))
    return base, peak_memory(), X.data.nbytes + X.indices.nbytes + X.indptr.nbytes


def _even_columns(n: int, d: int, count: int) -> Any:
    """Return a CSC matrix made in place: frequent and rare columns, entries at even steps."""
    rng = np.random.default_rng(0)
    share = (np.arange(1, d + 1) / d) ** -0.6
    sizes = np.clip((count * share / share.sum()).astype(int), 1, n // 2)
    indptr = np.concatenate(([0], np.cumsum(sizes))).astype(np.int32)
    indices, values = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], np.float32)
    for j, size in enumerate(sizes.tolist()):
        step = n // size
        indices[indptr[j] : indptr[j + 1]] = np.arange(size) * step + j % step
    rng.random(out=values, dtype=np.float32)
    return sparse.csc_matrix((values, indices, indptr), shape=(n, d))
