"""Peak memory of training, each tool in a process of its own, and of training from a store.

*In memory*: a process holds the features (float32, mslr10k shape), trains a tiny model so that the
tool is loaded, and then the real one. The ratio is the peak that training adds, over the features.
Settings are those of the area trees. *From a store*: the features of the mslr30k shape are mapped
from a file, so only the anonymous memory that a fit adds counts.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from rankwright import RankingData, load, ranker, synthetic
from rankwright.data import save

from . import trees
from .contest import OURS, Results, Row
from .timing import bytes_of, in_new_process, peak_memory, reset_peak_memory, seconds_of

QUERIES, STORE_QUERIES, CATBOOST_TREES = 2000, 4000, 10
STORED: dict[str, dict[str, Any]] = {"memr": {}, "lambdamart": {"n_estimators": 3}}
TOOLS: dict[str, Callable[[RankingData], Callable[[], Any]]] = {
    OURS: lambda data: trees.ours("lambdamart", data),
    "LightGBM": lambda data: trees.lightgbm("lambdarank", data),
    "XGBoost": lambda data: trees.xgboost("rank:ndcg", data),
    # More trees of CatBoost add no memory.
    "CatBoost": lambda data: trees.catboost("LambdaMart", data, n_estimators=CATBOOST_TREES),
    "scikit-learn": trees.histogram_trees,
}


def run() -> Results:
    results = Results()
    for tool in TOOLS:
        try:
            seconds, added, features = in_new_process(_in_memory, tool, QUERIES)
        except Exception as error:
            results.add_failure(tool, error)
            continue
        task = f"Memory of boosted trees, features take {features / 2**20:.0f} MB"
        about = tool, trees.SETTINGS, seconds
        results.rows.append(Row(task, *about, megabytes=added / 2**20))
    megabytes = {row.tool: row.megabytes for row in results.rows}
    if "LightGBM" in megabytes:
        results.ratios["lambdamart_vs_lightgbm"] = megabytes[OURS] / megabytes["LightGBM"]
    with tempfile.TemporaryDirectory() as name:
        store = Path(name) / "data.store"
        save(synthetic("mslr30k", queries=STORE_QUERIES), store, format="store")
        for name in STORED:
            results.ratios[f"{name}_vs_features"] = in_new_process(_from_store, name, store)
    return results


def _in_memory(tool: str, queries: int) -> tuple[float, int, int]:
    """Return seconds, bytes that training adds, and bytes of the features."""
    data = synthetic("mslr10k", queries=queries)
    prepare = TOOLS[tool]
    prepare(data.select(np.arange(20)))()  # loads and compiles
    fit = prepare(data)
    before = reset_peak_memory()
    seconds = seconds_of(fit)
    return seconds, peak_memory() - before, data.X.nbytes


def _from_store(name: str, store: Path) -> float:
    """Return the peak of anonymous memory that a fit adds, over the size of the features."""
    data, model = load(store), ranker(name, **STORED[name])
    model.fit(data.select(np.arange(20)))  # loads and compiles
    samples, done = [bytes_of("RssAnon:")], threading.Event()

    def sample() -> None:  # Linux records no peak of anonymous memory
        while not done.is_set():
            samples.append(bytes_of("RssAnon:"))
            time.sleep(0.005)

    sampler = threading.Thread(target=sample)
    sampler.start()
    model.fit(data)
    done.set()
    sampler.join()
    return (max(samples) - samples[0]) / data.X.nbytes
