"""Every table and figure run again, a file of results each: what ``make reproduce`` does.

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
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import date
from math import inf
from pathlib import Path
from typing import Any

from rankwright import __version__
from rankwright.data.streams import atomic_text, make_folder
from rankwright.errors import DataError
from reproducibility.average_rank import run_ranks
from reproducibility.experiment import SOLVES, Column, Experiment, Study
from reproducibility.experiment_file import file_digest, names
from reproducibility.figure import FigureResult, run_curves
from reproducibility.folds_run import Report, fits, load_folds
from reproducibility.table import Cell, TableResult, more_is_better, run_table
from reproducibility.timing import run_timing

Progress = Callable[[str, int], AbstractContextManager[Report]]
"""Takes a name and the number of steps, and gives what is reported a line after each step."""


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
        from reproducibility.topic_data import load_topics
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
    from reproducibility.experiment_file import experiment

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


# --- the page --------------------------------------------------------------------------------
# The page of all reproductions: the paper's figure, ours, its interval and the verdict.


Result = Mapping[str, Any]

_HEAD = """# Reproduction

Tables and figures of the papers, reproduced by `make reproduce`. Everything
is chosen on the valid part of each fold, and test is looked at once. A cell has our figure, its
95 % bootstrap interval over test queries (of times: the least and the most) and, after "paper",
what the paper prints. *Within* is a printed figure inside our interval: with few test queries
intervals are wide, and the two may still differ. Outside it ours is *better* or *worse*. What a
paper claims of its rows is counted in our figures, column by column: a claim that holds in none may
still be within the intervals. An experiment's file in `reproducibility/tables/` says what stands in
for data that is not public. Figures run before 2026-11-16 are those of version 0.1, which selected
on validation data, and measured under the standard convention, with ties in the order of the file.
"""
_WIDEST = 6


def page(results: Mapping[str, Result], experiments: Mapping[str, Result]) -> str:
    """Return the page in Markdown: an overview, then a section for each result.

    Parameters
    ----------
    results
        By the name of their experiment, as `reproducibility.reproduction` keeps them.
    experiments
        What is said of all experiments, run or not, as
        `reproducibility.experiment.overview` gives it.
    """
    lines = [_HEAD, "| experiment | what it shows | run on | verdict |", "|---|---|---|---|"]
    for name, about in experiments.items():
        title = about["title"]
        if name in results:
            found = results[name]
            held = _held(about, found)
            said = f"{overall(found)}; {held}" if held else overall(found)
            lines.append(f"| [{name}](#{name}) | {title} | {found['ran']} | {said} |")
        else:
            lines.append(f"| {name} | {title} | not run | |")
    for name, about in experiments.items():
        if name in results:
            lines += ["", *_section(name, results[name], about)]
    return "\n".join(lines) + "\n"


def overall(found: Result) -> str:
    """Return the verdict of an experiment in a few words."""
    compared = [row for row in found["rows"] if row["verdict"]]
    if compared:
        counts = Counter(row["verdict"] for row in compared)
        each = ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
        higher = sum(row["ours"] > row["paper"] for row in compared)
        lower = sum(row["ours"] < row["paper"] for row in compared)
        said = (
            f"{len(compared)} printed figures: {each}; ours is higher in {higher}, lower in {lower}"
        )
    elif found["printed_on"]:
        said = "printed figures are of other data"
    else:
        said = "no printed figures"
    return said + (f"; {len(found['missed'])} expected figures missed" if found["missed"] else "")


def outcome(claim: Result, found: Result) -> tuple[bool, str]:
    """Return whether a paper's claim holds in all of our figures, and a sentence on where not.

    Columns without a figure of the row, such as those of a file that changed since, do not count.
    """
    row, missed, counted = claim["row"], [], 0
    for column in claim["columns"]:
        figures = _figures(found, column)
        if row not in figures:
            continue
        counted += 1
        others = figures.keys() - {row} if not claim.get("against") else claim["against"]
        above = {name: figures[name] for name in others if figures.get(name, -inf) >= figures[row]}
        if above:
            first = max(sorted(above), key=lambda name: above[name])
            more = f" and {len(above) - 1} more" if len(above) > 1 else ""
            values = f"{first} {_number(above[first])}{more} against {_number(figures[row])}"
            missed.append(f"{column} ({values})")
    said = f"The paper: {claim['says']}. Here that holds in {counted - len(missed)} of {counted}"
    where = f", and not in {', '.join(missed)}." if missed else "."
    return not missed and counted > 0, f"{said} columns{where}"


def _figures(found: Result, column: str) -> dict[str, float]:
    return {
        row["row"]: row["ours"]
        for row in found["rows"]
        if row["column"] == column and row["ours"] is not None
    }


def _held(about: Result, found: Result) -> str:
    """Return how many claims of the paper hold in all of their columns."""
    claims = about.get("claims") or ()
    whole = sum(outcome(claim, found)[0] for claim in claims)
    return f"{whole} of {len(claims)} of the paper's claims hold" if claims else ""


def _section(name: str, found: Result, about: Result) -> Iterator[str]:
    yield f"## {name}"
    yield ""
    yield f"{found['title']} (`{found['paper']}`). Verdict: {overall(found)}."
    if found["printed_on"]:
        yield (
            f"The paper's figures are of {found['printed_on']}: they stand beside ours to compare "
            "rows with each other."
        )
    if about.get("digest") != found.get("digest"):
        yield ""
        yield "**These figures are of an earlier version of the experiment's file.**"
    if about.get("note"):
        yield ""
        yield about["note"].strip()
    if about.get("claims"):
        yield ""
        yield from (f"- {outcome(claim, found)[1]}" for claim in about["claims"])
    yield from _tables(found)
    if found["contrasts"]:
        yield ""
        yield from (f"- {sentence}" for sentence in found["contrasts"])
    if found["missed"]:
        yield ""
        yield from (f"- Missed: {sentence}." for sentence in found["missed"])
    yield ""
    yield (
        f"Run on {found['ran']} with rankwright {found['version']}, seed {found['seed']}, in "
        f"{_duration(found['seconds'])}: `make reproduce TABLE={name}`"
    )


def _tables(found: Result) -> Iterator[str]:
    by_place = {(row["row"], row["column"]): row for row in found["rows"]}
    row_names = list(dict.fromkeys(row["row"] for row in found["rows"]))
    for group in found["columns"]:
        for columns in _cut(group["names"]):
            shown = [r for r in row_names if any((r, column) in by_place for column in columns)]
            yield ""
            yield f"**{group['study']}**, {group['group']}:"
            yield ""
            yield "| | " + " | ".join(columns) + " |"
            yield "|---" * (len(columns) + 1) + "|"
            for row in shown:
                cells = [_cell(by_place.get((row, column))) for column in columns]
                yield f"| {row} | " + " | ".join(cells) + " |"


def _cut(columns: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(columns), _WIDEST):
        yield columns[start : start + _WIDEST]


def _cell(row: Result | None) -> str:
    if row is None:
        return ""
    parts = []
    if row["ours"] is not None:
        parts.append(f"**{_number(row['ours'])}**")
        if row["low"] is not None:
            parts.append(f"{_number(row['low'])}–{_number(row['high'])}")
    if row["paper"] is not None:
        verdict = f", {row['verdict']}" if row["verdict"] else ""
        parts.append(f"paper {row['paper']:g}{verdict}")
    return "<br>".join(parts)


def _number(value: float) -> str:
    return f"{value:.4f}" if abs(value) < 1 else f"{value:.4g}"


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} minutes"
