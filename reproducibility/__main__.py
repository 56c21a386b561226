"""``python -m reproducibility NAME``: run the experiments of the papers again."""

from __future__ import annotations

import argparse
import inspect
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from reproducibility import deck, dorm, intervalrank, losses, memr, sparse
from reproducibility.protocol import Run, progress
from reproducibility.report import Report

Experiment = Callable[[Run], Report]


def experiments() -> dict[str, Experiment]:
    """Return all experiments by name."""
    by_name: dict[str, Experiment] = {}
    for script in (deck, dorm, intervalrank, losses, memr, sparse):
        by_name.update(script.EXPERIMENTS)
    return dict(sorted(by_name.items()))


def title(experiment: Experiment) -> str:
    """Return the first line of an experiment's docstring."""
    return inspect.getdoc(experiment).splitlines()[0].rstrip(".")  # type: ignore[union-attr]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status: 1 if an experiment failed."""
    every = experiments()
    parser = argparse.ArgumentParser(prog="python -m reproducibility", description=__doc__)
    parser.add_argument(
        "experiment", choices=["all", "list", *every], metavar="NAME",
        help="an experiment, 'all', or 'list' for all names",
    )  # fmt: skip
    parser.add_argument(
        "--data", type=Path, default=os.environ.get("RANKWRIGHT_DATA"), metavar="DIR",
        help="folder of the data sets; by default RANKWRIGHT_DATA",
    )  # fmt: skip
    parser.add_argument(
        "--results", type=Path, default=Path("build/reproduction"), metavar="DIR",
        help="folder for a CSV file of each experiment; by default build/reproduction",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, help="number of threads; by default all cores")
    options = parser.parse_args(arguments)
    if options.experiment == "list":
        for name, experiment in every.items():
            say(f"{name:20}  {title(experiment)}")
        return 0
    if options.data is None:
        parser.error("pass --data DIR, or set RANKWRIGHT_DATA to the folder of the data sets")
    run = Run(Path(options.data), options.seed, options.threads)
    names = list(every) if options.experiment == "all" else [options.experiment]
    return max([run_experiment(name, every[name], run, options.results) for name in names])


def run_experiment(name: str, experiment: Experiment, run: Run, results: Path) -> int:
    """Run an experiment, print its tables and write its CSV file; return 1 if it failed."""
    began = time.perf_counter()
    try:
        report = experiment(run)
    except Exception as error:  # the other experiments are wanted whatever happened to this one
        progress(f"{name} failed: {type(error).__name__}: {error}")
        return 1
    report.show(title(experiment))
    say(f"{report.write(results)} written after {time.perf_counter() - began:.0f} s")
    return 0


def say(line: str) -> None:
    """Print a line."""
    sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    raise SystemExit(main())
