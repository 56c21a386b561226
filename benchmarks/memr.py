"""MEMR and RankSVM against LIBLINEAR on every pair, on the shape of MQ2007; growth and memory.

Times are minima of interleaved fits on one thread, listing the pairs included on LIBLINEAR's side.
RankSVM is held to LIBLINEAR's own objective (same l2, unscaled features). Growth is the slope of
log time against log rows, from 1e5 documents to the whole mslr30k shape (3.8 million x 136), and
memory the most that a fit adds to the process beside the feature matrix, as a share of it.
"""

from __future__ import annotations

import math
import time
from pathlib import Path

import numpy as np

from rankwright import RankingData, evaluate, ranker, synthetic
from rankwright.experiments.peers import LiblinearPairs

L2, ROUNDS = 1e-3, 3
GROWTH = (840, 3_000, 10_000, 31_531)  # queries of about 120 documents


def run() -> dict[str, float]:
    return {**_against_pairs(), **_growth()}


def _against_pairs() -> dict[str, float]:
    data = synthetic("mq2007")
    fits = {
        "memr": lambda: ranker("memr", n_threads=1).fit(data),
        "memr_lbfgs": lambda: ranker("memr", solver="lbfgs", n_threads=1).fit(data),
        "memr_two": lambda: ranker("memr", n_threads=2).fit(data),
        "mr": lambda: ranker("mr", n_threads=1).fit(data),
        "ranksvm": lambda: ranker("ranksvm", l2=L2, scale=False, n_threads=1).fit(data),
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
    ndcg = {name: _ndcg(data, one.predict(data)) for name, one in made.items()}
    objective = {name: _objective(data, made[name].coef_) for name in ("ranksvm", "liblinear")}
    return {
        "memr_vs_liblinear": seconds["liblinear"] / seconds["memr"],
        "memr_ndcg10_minus_liblinear": ndcg["memr"] - ndcg["liblinear"],
        "tron_time_vs_lbfgs": seconds["memr"] / seconds["memr_lbfgs"],
        "memr_vs_mr": seconds["mr"] / seconds["memr"],
        "memr_two_threads_speedup": seconds["memr"] / seconds["memr_two"],
        "ranksvm_vs_liblinear": seconds["liblinear"] / seconds["ranksvm"],
        "ranksvm_objective_vs_liblinear": objective["ranksvm"] / objective["liblinear"],
    }


def _growth() -> dict[str, float]:
    rows, seconds, memory = [], [], math.nan
    for queries in GROWTH:
        data = synthetic("mslr30k", queries=queries)
        ranker("memr").fit(data.select(np.arange(100)))  # compiles
        before = _reset_peak()
        started = time.perf_counter()
        ranker("memr", max_iterations=3).fit(data)
        seconds.append(time.perf_counter() - started)
        rows.append(data.n_documents)
        memory = 1.0 + (_peak() - before) / data.X.nbytes
    slope = np.polyfit(np.log(rows), np.log(seconds), 1)[0]
    return {"growth_exponent": float(slope), "peak_memory_vs_features": memory}


def _ndcg(data: RankingData, scores: np.ndarray) -> float:
    return evaluate(data, scores, "ndcg@10")["ndcg@10"]


def _objective(data: RankingData, w: np.ndarray) -> float:
    """RankSVM's objective by listing the pairs."""
    s, total = data.X @ w, 0.0
    for lo, hi in zip(data.indptr[:-1], data.indptr[1:], strict=True):
        wrong = 1.0 - (s[lo:hi, None] - s[None, lo:hi])
        better = data.y[lo:hi, None] > data.y[None, lo:hi]
        total += float((np.maximum(wrong, 0.0)[better] ** 2).sum())
    return total / data.n_queries + 0.5 * L2 * float(w @ w)


def _reset_peak() -> int:
    """Forget the most memory used so far and return what is in use (Linux)."""
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def _peak() -> int:
    return _status("VmHWM")


def _status(name: str) -> int:
    line = next(x for x in Path("/proc/self/status").read_text().splitlines() if name in x)
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    for name, value in run().items():
        print(f"{name:40s} {value:.4f}")
