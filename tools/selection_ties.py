"""Measure what selecting rounds with ties averaged changes, against selecting by file order.

``python tools/selection_ties.py`` fits each ranker, as it stands, to the five folds of OHSUMED and
MQ2008 twice: valid data select the round by NDCG@10 with ties in file order, as version 0.1 did,
and averaged over their orders. Both are judged with ties averaged, on valid and, once, on test. A
fit that is in the folder of results is not done again; docs/selection-ties.json keeps the summary,
from which `make pages` fills a table of docs/metric-conventions.md.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
MEASURED = ROOT / "docs/selection-ties.json"
SETS = {"ohsumed": "OHSUMED", "mq2008": "MQ2008"}
RANKERS = ("intervalrank", "lambdamart", "gbdt", "rankboost", "frank")
SELECTS = {"file": "ndcg(ties=file)@10", "mean": "ndcg(ties=mean)@10"}
JUDGES = "ndcg(ties=mean)@10"
FOLDS = range(1, 6)


def fit(name: str, fold: int, ranker_name: str, ties: str, work: Path) -> dict[str, Any]:
    """Return the chosen round and the values of all queries of valid and test, kept in ``work``."""
    file = work / f"{name}-{fold}-{ranker_name}-{ties}.json"
    if not file.exists():
        from rankwright.comparison.entries import selection
        from rankwright.data.catalog import load
        from rankwright.metrics.evaluation import evaluate
        from rankwright.rankers.base import ranker

        train = load(f"{name}/fold{fold}/train")
        valid, test = (
            load(f"{name}/fold{fold}/{part}").with_n_features(train.n_features)
            for part in ("vali", "test")
        )
        made = ranker(ranker_name, **selection(ranker_name, SELECTS[ties]))
        made.fit(train, eval_set=valid)
        found: dict[str, Any] = {"round": made.best_iteration_}
        for part, data in (("valid", valid), ("test", test)):
            found[part] = evaluate(data, made.predict(data), JUDGES).per_query[JUDGES].tolist()
        work.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(found), encoding="utf-8")
    kept: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return kept


def summary(work: Path) -> Iterator[dict[str, Any]]:
    """Yield, for each set and ranker, rounds by fold, means, and intervals of the differences."""
    import numpy as np

    from rankwright.metrics.significance import bootstrap_interval

    for name, ranker_name in product(SETS, RANKERS):
        row: dict[str, Any] = {"set": name, "ranker": ranker_name}
        values: dict[str, Any] = {}
        for ties in SELECTS:
            folds = [fit(name, fold, ranker_name, ties, work) for fold in FOLDS]
            row[f"rounds_{ties}"] = [one["round"] for one in folds]
            for part in ("valid", "test"):
                values[part, ties] = np.concatenate([one[part] for one in folds])
                row[f"{part}_{ties}"] = round(float(values[part, ties].mean()), 4)
        for part in ("valid", "test"):
            found = bootstrap_interval(values[part, "mean"] - values[part, "file"])
            row[f"{part}_difference"] = [round(x, 4) for x in (found.mean, found.low, found.high)]
        yield row


def selection_table() -> str:
    """Return the checked-in summary as a Markdown table."""
    lines = [
        "| data | ranker | rounds, file order | rounds, averaged | valid | test | "
        "difference on valid | difference on test |",
        "|---" * 8 + "|",
    ]
    for row in json.loads(MEASURED.read_text(encoding="utf-8")):
        rounds = [" ".join(map(str, row[f"rounds_{ties}"])) for ties in SELECTS]
        values = [f"{row[f'{p}_file']:.4f} → {row[f'{p}_mean']:.4f}" for p in ("valid", "test")]
        changes = [
            "{:+.4f} ({:+.4f}, {:+.4f})".format(*row[f"{part}_difference"])
            for part in ("valid", "test")
        ]
        cells = [SETS[row["set"]], f"`{row['ranker']}`", *rounds, *values, *changes]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> int:
    """Measure what is missing, and write the summary."""
    words = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    words.add_argument("--work", type=Path, default=ROOT / "build/selection-ties")
    asked = words.parse_args()
    jobs = list(product(SETS, FOLDS, RANKERS, SELECTS))
    for number, job in enumerate(jobs, 1):
        found = fit(*job, asked.work)
        print(f"{number} of {len(jobs)}: {job}: round {found['round']}", flush=True)
    MEASURED.write_text(json.dumps(list(summary(asked.work)), indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
