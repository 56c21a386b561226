"""What tools/measure_rankers.py measured, as one small file: means, intervals, times, sizes."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from measure_rankers import CANDIDATES, SETS, Job, candidate, ranker_with, table_jobs


def summary(work: Path) -> str:
    """Return the contents of docs/choose/measured.json, from results in the folder ``work``."""
    found = {
        "sets": {name: data_set.about for name, data_set in SETS.items()},
        "table": list(_table(work)),
        "defaults": list(_defaults(work)),
    }
    return json.dumps(found, indent=1) + "\n"


def _result(job: Job, work: Path) -> dict[str, Any] | None:
    file = job.file(work)
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else None


def _table(work: Path) -> Iterator[dict[str, Any]]:
    """Yield a row for each ranker, model and set that was tried."""
    from rankwright.metrics.significance import bootstrap_interval

    found = {job: result for job in table_jobs() if (result := _result(job, work))}
    for job, result in found.items():
        row: dict[str, Any] = {"ranker": job.ranker, "model": job.model, "set": job.data_set}
        if "bytes" not in result:
            yield {**row, **result}
            continue
        values = np.array(result["ndcg@10"], float)
        values = values[~np.isnan(values)]
        interval = bootstrap_interval(values)
        row["queries"] = len(values)
        row["ndcg@10"] = [round(v, 4) for v in (interval.mean, interval.low, interval.high)]
        plain = found.get(Job(job.data_set, 1, "linear_regression", "least_squares"), {})
        if "bytes" in plain:
            result["train_ratio"] = result["train_seconds"] / plain["train_seconds"]
        for name in ("train_seconds", "train_ratio", "score_ms_per_1000", "bytes"):
            if name in result:
                row[name] = float(f"{result[name]:.3g}")
        yield row


def _defaults(work: Path) -> Iterator[dict[str, Any]]:
    """Yield what each value tried for a parameter gives, ranker by ranker."""
    asked = tomllib.loads(CANDIDATES.read_text(encoding="utf-8"))
    for entry in asked["try"]:
        for ranker in entry["rankers"]:
            yield from _default(work, entry.get("sets", asked["sets"]), ranker, entry)


def _default(
    work: Path, sets: list[str], ranker: str, entry: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """Yield the values that were tried on all sets, each beside the first."""
    parameter, model = entry["parameter"], entry["model"]
    results: dict[Any, list[Any]] = {value: [] for value in entry["values"]}
    for value, name in product(results, sets):
        results[value].append(_result(candidate(name, ranker, entry, value), work))
    whole = {
        value: [np.array(one["ndcg@10"], float) for one in found]
        for value, found in results.items()
        if all(one and "bytes" in one for one in found)
    }
    first = entry["values"][0]
    if first not in whole or len(whole) < 2:
        return
    made = ranker_with(ranker, model)
    given = getattr(made.make_model(), parameter, None)
    yield {
        "ranker": ranker,
        "model": model,
        "parameter": parameter,
        "sets": sets,
        "kept": made.get_params()[parameter] if given is None else given,
        "values": [
            {"value": value, **_beside(found, whole[first])} for value, found in whole.items()
        ],
    }


def _beside(found: list[Any], first: list[Any]) -> dict[str, Any]:
    """Return the mean over the sets, and the mean difference to the first value, as it may vary."""
    gains = [(a - b)[~np.isnan(a - b)] for a, b in zip(found, first, strict=True)]
    spread = np.sqrt(sum(gain.var() / len(gain) for gain in gains)) / len(gains)
    return {
        "mean": round(float(np.mean([np.nanmean(values) for values in found])), 4),
        "by_set": [round(float(np.nanmean(values)), 4) for values in found],
        "gain": round(float(np.mean([gain.mean() for gain in gains])), 4),
        "within": round(float(1.96 * spread), 4),
    }
