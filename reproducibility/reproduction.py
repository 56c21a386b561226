"""Every table and figure run again, a file of results each: what ``rankwright reproduce all`` does.

A result is a JSON object: the table's rows as ``reproduce --json`` has them, each with a verdict
where the paper has a figure too, and when, how long and with which seed it was run. A result that
was made from the same experiment file with the same seed is not made again, so that a run that was
killed goes on where it was.

The verdict of a figure compares the printed one with the 95 % interval of ours: ``within`` where it
lies inside, else ``better`` or ``worse``; ``higher`` or ``lower`` where neither is better, as in
counts of iterations. Figures that were printed for other data have none.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from rankwright import __version__
from rankwright.data.target import atomic_text, make_folder
from rankwright.errors import DataError
from reproducibility.average_rank import run_ranks
from reproducibility.curves import FigureResult, run_curves
from reproducibility.experiment import (
    SOLVES,
    Column,
    Experiment,
    Study,
    file_digest,
    names,
)
from reproducibility.folds_run import Report, fits, load_folds
from reproducibility.table import Cell, TableResult, more_is_better, run_table
from reproducibility.timing import run_timing

Progress = Callable[[str, int], AbstractContextManager[Report]]
"""Takes a name and the number of steps, and gives what is told a line after each step."""


def run_experiment(
    experiment: Experiment,
    data_folder: Path | None,
    *,
    progress: Progress,
    n_jobs: int | None = None,
    seed: int = 0,
) -> TableResult | FigureResult:
    """Read an experiment's data and run it, whatever its kind."""
    if experiment.kind == "topics":
        from reproducibility.topic_folds import load_topics
        from reproducibility.topics_run import run_topics, steps

        topics = load_topics(experiment, data_folder, seed=seed)
        with progress(experiment.name, steps(experiment, topics)) as report:
            return run_topics(experiment, topics, report=report, n_jobs=n_jobs, seed=seed)
    folds = load_folds(experiment, data_folder, seed=seed)
    count = fits(experiment, folds)
    run: Callable[..., TableResult | FigureResult] = run_table
    if experiment.kind == "ranks":
        run = run_ranks
    elif experiment.kind == "time":
        run = run_timing
        count = sum(study.repeats + 1 for study in experiment.studies) * len(experiment.rows)
    elif experiment.kind == "figure":
        run = run_curves
        count += sum(bool(study.trees) for study in experiment.studies) * len(experiment.rows)
    with progress(experiment.name, count) as report:
        return run(experiment, folds, report=report, n_jobs=n_jobs, seed=seed)


# --- results ---------------------------------------------------------------------------------


def summary(result: TableResult | FigureResult, *, seconds: float, seed: int) -> dict[str, Any]:
    """Return what is kept of a result: its figures, their verdicts, and how it was made."""
    table = result.table if isinstance(result, FigureResult) else result
    experiment = table.experiment
    columns = {c.name: (study, c) for study in experiment.studies for c in study.columns}
    return {
        "table": experiment.name,
        "title": experiment.title,
        "paper": experiment.paper,
        "printed_on": experiment.printed_on,
        "digest": experiment.digest,
        "seed": seed,
        "version": __version__,
        "ran": date.today().isoformat(),
        "seconds": round(seconds, 1),
        "columns": [
            {"study": study.name, "group": group.title, "names": [c.name for c in group.columns]}
            for study in experiment.studies
            for group in study.groups
        ],
        "rankers": {row.name: row.ranker for row in experiment.rows},
        "missed": table.missed(),
        "contrasts": [one.sentence for one in table.contrasts],
        "rows": [
            {
                "row": cell.row,
                "column": cell.column,
                **{key: _rounded(getattr(cell, key)) for key in ("paper", "ours", "low", "high")},
                "verdict": None if experiment.printed_on else verdict(cell, *columns[cell.column]),
            }
            for cell in table.cells
        ],
    }


def verdict(cell: Cell, study: Study, column: Column) -> str | None:
    """Return how the paper's figure stands to the interval of ours, if there are both."""
    if cell.paper is None or cell.low is None or cell.high is None:
        return None
    if cell.low <= cell.paper <= cell.high:
        return "within"
    higher = cell.low > cell.paper
    if column.metric in SOLVES:
        return "higher" if higher else "lower"
    return "better" if higher == more_is_better(study, column) else "worse"


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")


# --- the folder of results -------------------------------------------------------------------


@dataclass(frozen=True)
class Results:
    """A folder with a JSON file for each experiment that was run."""

    folder: Path

    def keep(self, found: Mapping[str, Any]) -> None:
        """Write one result, a line for each figure."""
        head = {key: value for key, value in found.items() if key != "rows"}
        figures = [json.dumps(row, ensure_ascii=False) for row in found["rows"]]
        text = json.dumps(head, indent=1, ensure_ascii=False).removesuffix("\n}")
        rows = ",\n  ".join(figures)
        make_folder(self.folder)
        with atomic_text(self.folder / f"{found['table']}.json") as stream:
            stream.write(f'{text},\n "rows": [\n  {rows}\n ]\n}}\n')

    def read(self) -> dict[str, dict[str, Any]]:
        """Return all results by the name of their experiment; a broken file is named."""
        found = {}
        for path in sorted(self.folder.glob("*.json")):
            try:
                found[path.stem] = json.loads(path.read_text(encoding="utf-8"))
            except (OSError, ValueError) as fault:
                raise DataError(f"{path} is no result of reproduce: {fault}. Remove it.") from None
        return found

    def missing(self, seed: int) -> Iterator[str]:
        """Yield the names of experiments that have no result by their present file and seed."""
        there = self.read()
        for name, path in names().items():
            kept = there.get(name, {})
            if (kept.get("digest"), kept.get("seed")) != (file_digest(path), seed):
                yield name


def run_all(
    results: Results,
    data_folder: Path | None,
    *,
    progress: Progress,
    failed: Callable[[str, str], None],
    n_jobs: int | None = None,
    seed: int = 0,
) -> None:
    """Run every experiment that has no result yet; tell of one that fails, and go on.

    Parameters
    ----------
    failed
        Called with the name of an experiment and the sentence that says why it failed.
    """
    from reproducibility.experiment import experiment

    for name in list(results.missing(seed)):
        started = time.perf_counter()
        try:
            result = run_experiment(
                experiment(name), data_folder, progress=progress, n_jobs=n_jobs, seed=seed
            )
        except Exception as fault:  # whatever it is, the other experiments are still wanted
            failed(name, str(fault) or type(fault).__name__)
            continue
        results.keep(summary(result, seconds=time.perf_counter() - started, seed=seed))
