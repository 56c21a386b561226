"""MEMR and RankSVM against LIBLINEAR on every pair, on the shape of MQ2007; growth and memory.

Times are minima of interleaved fits on one thread, listing the pairs included on LIBLINEAR's side.
RankSVM is held to LIBLINEAR's own objective (same l2, unscaled features). Growth is the slope of
log time against log rows, from 1e5 documents to the whole mslr30k shape (3.8 million x 136), and
memory the most that a fit adds to the process beside the feature matrix, as a share of it.
"""

from __future__ import annotations

import math
import time
from functools import partial

import numpy as np

from rankwright import RankingData, ranker, synthetic
from reproducibility.peers import LiblinearPairs

from .contest import version
from .data_sets import ndcg
from .findings import OURS, Curve, Findings, Record
from .timing import least, memory_in_use, peak_memory, slope

L2, ROUNDS = 1e-3, 3
GROWTH = (840, 3_000, 10_000, 31_531)  # queries of about 120 documents


def run() -> Findings:
    found = _against_pairs()
    found.add(_growth())
    return found


def _against_pairs() -> Findings:
    data = synthetic("mq2007")
    fits = {
        "memr": lambda: ranker("memr", n_jobs=1).fit(data),
        "memr_lbfgs": lambda: ranker("memr", solver="lbfgs", n_jobs=1).fit(data),
        "memr_two": lambda: ranker("memr", n_jobs=2).fit(data),
        "mr": lambda: ranker("mr", n_jobs=1).fit(data),
        "ranksvm": lambda: ranker("ranksvm", l2=L2, scale=False, n_jobs=1).fit(data),
        "liblinear": lambda: LiblinearPairs(l2=L2).fit(data),
    }
    seconds, made = dict.fromkeys(fits, math.inf), {}
    for turn in range(ROUNDS + 1):
        for name, fit in fits.items():
            if turn > 1 and name in ("mr", "liblinear"):
                continue
            started = time.perf_counter()
            made[name] = fit()
            if turn > 0:
                seconds[name] = min(seconds[name], time.perf_counter() - started)
    reached = {name: ndcg(data, one.predict(data)) for name, one in made.items()}
    objective = {name: _objective(data, made[name].coef_) for name in ("ranksvm", "liblinear")}
    figures = {
        "memr_vs_liblinear": seconds["liblinear"] / seconds["memr"],
        "memr_ndcg10_minus_liblinear": reached["memr"] - reached["liblinear"],
        "tron_time_vs_lbfgs": seconds["memr"] / seconds["memr_lbfgs"],
        "memr_vs_mr": seconds["mr"] / seconds["memr"],
        "memr_two_threads_speedup": seconds["memr"] / seconds["memr_two"],
        "ranksvm_vs_liblinear": seconds["liblinear"] / seconds["ranksvm"],
        "ranksvm_objective_vs_liblinear": objective["ranksvm"] / objective["liblinear"],
    }
    reported = {  # the contender's name, package and settings
        "ranksvm": (OURS, "rankwright", f"ranksvm, l2={L2}, unscaled, 1 thread"),
        "liblinear": ("scikit-learn", "scikit-learn", f"LinearSVC on every pair, l2={L2}"),
        "memr": (f"{OURS}, MEMR", "rankwright", "memr, 1 thread"),
        "memr_two": (f"{OURS}, MEMR, two threads", "rankwright", "memr, 2 threads"),
        "memr_lbfgs": (f"{OURS}, MEMR by L-BFGS", "rankwright", "memr, solver=lbfgs, 1 thread"),
        "mr": (f"{OURS}, MR", "rankwright", "mr, 1 thread"),
    }
    records = [
        Record(
            "Linear rankers, mq2007 shape", peer, version(package), settings, seconds[name],
            reached[name], "NDCG@10 on train",
        )
        for name, (peer, package, settings) in reported.items()
    ]  # fmt: skip
    return Findings(figures, records)


def _growth() -> Findings:
    rows, seconds, memory = [], [], math.nan
    for queries in GROWTH:
        data = synthetic("mslr30k", queries=queries)
        ranker("memr").fit(data.select(np.arange(100)))  # compiles
        fit = partial(ranker("memr", max_iter=3).fit, data)
        before = memory_in_use()
        seconds.append(least({"memr": fit}, 3, warm_up=False)["memr"])
        rows.append(float(data.n_documents))
        memory = 1.0 + (peak_memory() - before) / data.X.nbytes
    grown = slope(rows, seconds)
    line = Curve(
        "MEMR, mslr30k shape", "rows", OURS, version("rankwright"), rows, seconds, grown,
        "linear, 3 iterations, all cores",
    )  # fmt: skip
    return Findings({"growth_exponent": grown, "peak_memory_vs_features": memory}, curves=[line])


def _objective(data: RankingData, w: np.ndarray) -> float:
    """RankSVM's objective by listing the pairs."""
    s, total = data.X @ w, 0.0
    for lo, hi in zip(data.indptr[:-1], data.indptr[1:], strict=True):
        wrong = 1.0 - (s[lo:hi, None] - s[None, lo:hi])
        better = data.y[lo:hi, None] > data.y[None, lo:hi]
        total += float((np.maximum(wrong, 0.0)[better] ** 2).sum())
    return total / data.n_queries + 0.5 * L2 * float(w @ w)
