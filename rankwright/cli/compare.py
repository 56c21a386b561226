"""``rankwright compare``: rankers on the same folds, with intervals, tests and a report.

``rankwright demo`` does so for a panel of rankers on embedded data.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankwright.cli import console
from rankwright.cli.console import step_progress
from rankwright.cli.options import (
    ConventionOption,
    OncePerOption,
    ReadOption,
    SeedOption,
    ThreadsOption,
    read_options,
)
from rankwright.errors import DataError, UsageError

if TYPE_CHECKING:
    from rich.table import Table

    from rankwright.comparison.result import Comparison


def compare(
    data: Annotated[
        str,
        typer.Argument(help="A file, a folder of LETOR folds, or the name of a data set."),
    ],
    rankers: Annotated[
        str,
        typer.Option(
            help="Such as gbdt,lambdamart:num_leaves=7,small=ranksvm:l2=0.1 (name=ranker:key=value)"
            "; auto is what rankwright.auto chooses in each fold, bm25=column:BM25 a feature, "
            "other=run:RUN.txt a TREC run, mine=model:model.rw a fitted model."
        ),
    ],
    tune: Annotated[
        int,
        typer.Option(
            metavar="N", help="Tune each ranker with N trials on the validation set; 0: no tuning."
        ),
    ] = 0,
    metrics: Annotated[
        str, typer.Option(help="Metrics to report; wins and losses are counted by the first.")
    ] = "ndcg@10,ndcg@5,ndcg@1,map",
    select: Annotated[
        str, typer.Option(help="The metric for model selection on the validation set.")
    ] = "ndcg@10",
    convention: ConventionOption = "standard",
    baseline: Annotated[
        str | None,
        typer.Option(
            help="The ranker to test the others against, by default the first; all: every pair."
        ),
    ] = None,
    test: Annotated[
        str, typer.Option(help="Paired test over queries: randomisation, t or wilcoxon.")
    ] = "randomisation",
    correction: Annotated[
        str, typer.Option(help="For several tests: holm, bh (Benjamini-Hochberg) or none.")
    ] = "holm",
    folds: Annotated[int, typer.Option(help="Number of folds, where the data has none.")] = 5,
    fail_if_worse: Annotated[
        float | None,
        typer.Option(
            metavar="[MARGIN]",
            help="Exit 1 if a ranker is significantly worse than the baseline by the first metric; "
            "with a margin, if the interval of the difference also lies beyond it.",
        ),
    ] = None,
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "-o",
            "--output",
            help="Write a report (.html), a table (.tex, .md, .csv) or all figures (.json); may be "
            "given several times.",
        ),
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option(help="Cache folder of fitted models; one per user by default."),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            help="Number of fits in parallel, each in its process; one per fold by default."
        ),
    ] = None,
    read: ReadOption = None,
    seed: SeedOption = 0,
    threads: ThreadsOption = None,
    json: console.JsonOption = False,
) -> None:
    """Compare rankers: metrics and differences with intervals, paired tests, wins, time and size.

    Models are selected on the validation part of a fold; test data is used once. Fits are cached:
    adding a ranker fits that one alone, and a comparison that was killed resumes where it was. A
    ranker that cannot take the data is named with the reason; exit 2 only if none can.
    """
    from rankwright.comparison.compare import compare as run
    from rankwright.comparison.tables import check_suffix
    from rankwright.data.streams import check_target

    _check_margin(fail_if_worse, baseline)
    for path in output or ():
        check_suffix(path)
        check_target(path, "-o")
    with step_progress("compare", None) as report:
        found = run(
            data,
            rankers,
            metrics=metrics,
            convention=convention,
            select=select,
            baseline=baseline,
            test=test,
            correction=None if correction == "none" else correction,
            folds=folds,
            tune=tune,
            read=read_options(read),
            cache=cache,
            jobs=jobs,
            report=report,
            random_state=seed,
            n_jobs=threads,
        )
    for path in output or ():
        found.write(path)
    if json:
        console.print_json({**found.as_json(), "written": [str(path) for path in output or ()]})
    else:
        _print(found)
        for path in output or ():
            console.show(f"written: {path}")
    if fail_if_worse is not None:
        _fail_if_worse(found, fail_if_worse)


class OptionalMargin(OncePerOption):
    """A command whose ``--fail-if-worse`` may lack its number, for which Typer has no option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, with a margin of 0 where none follows."""
        option = "--fail-if-worse"
        given = list(args)
        for at, word in enumerate(given):
            following = given[at + 1] if at + 1 < len(given) else ""
            if word == option and not _is_number(following):
                given[at] = f"{option}=0"
        return super().parse_args(ctx, given)


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _check_margin(margin: float | None, baseline: str | None) -> None:
    if margin is None:
        return
    if not 0.0 <= margin < float("inf"):
        raise UsageError(f"the margin of --fail-if-worse must be a number from 0, not {margin}.")
    if baseline == "all":
        raise UsageError("--fail-if-worse needs one baseline; name it with --baseline NAME.")


def _fail_if_worse(found: Comparison, margin: float) -> None:
    """Exit 1 if an entry is significantly worse; raise if that cannot be decided."""
    from rankwright.comparison.tables import difference

    metric = found.metrics[0]
    worse = found.worse(margin)
    beyond = f" by more than {margin:g}" if margin else ""
    for test in worse:
        typer.echo(
            f"rankwright: {test.ranker} is significantly worse than {test.baseline}{beyond}: "
            f"{metric} {difference(found, test.ranker, metric)}, p = {test.adjusted:.2g}.",
            err=True,
        )
    if worse:
        raise typer.Exit(1)
    for label, reason in found.failures.items():
        raise DataError(f"--fail-if-worse cannot decide, as {label} could not be run: {reason}")
    others = [label for label in found.rankers if label != found.baseline]
    tests = [found.test(label, metric) for label in others]
    if not tests or any(test is None or test.adjusted != test.adjusted for test in tests):
        raise DataError(
            f"--fail-if-worse cannot decide: {metric} has no test against {found.baseline}; it "
            "needs another ranker, and two queries with a value."
        )


def say_compiling(found: Comparison) -> None:
    """Say how long kernels were compiled; the seconds of fits are without it."""
    if found.compile_seconds >= 0.05:
        console.say(
            f"Compiling took {found.compile_seconds:.1f} s, once; the seconds of fits are without."
        )


def comparison_table(found: Comparison) -> Table:
    """Return the means with their intervals, wins, time and size."""
    from rich.markup import escape
    from rich.table import Table

    from rankwright.comparison.tables import rows

    head, *body = rows(found)
    table = Table(box=None, pad_edge=False)
    table.add_column(head[0], overflow="fold")
    for name in head[1:]:
        table.add_column(name, justify="right")
    for label, *cells in body:
        values = [_dimmed(cell) for cell in cells]
        table.add_row(escape(label), *values)
    return table


def _print(found: Comparison) -> None:
    console.out.print(comparison_table(found))
    for line in (*found.differences(), *found.remarks()):
        console.show(line)
    console.show(found.about())
    say_compiling(found)


def _dimmed(cell: str) -> str:
    value, newline, interval = cell.partition("\n")
    return f"{value}\n[dim]{interval}[/]" if newline else value


# --- demo ------------------------------------------------------------------------------------


def demo(
    report: Annotated[Path, typer.Option("-o", "--report", help="HTML file of the report.")] = Path(
        "report.html"
    ),
    seed: Annotated[int, typer.Option(help="Random seed of the data and of every ranker.")] = 0,
    json: console.JsonOption = False,
) -> None:
    """Compare rankers of every family on handwritten digits; print a table and write a report."""
    from rankwright.comparison.demo import TITLE, panel, run_demo
    from rankwright.comparison.report import write_report
    from rankwright.data.streams import check_target

    check_target(report, "-o")
    with TemporaryDirectory() as cache:  # the demo shows fits, not what a cache holds
        with step_progress("demo", len(panel())) as step:
            found, floors = run_demo(cache, seed=seed, report=step)
        write_report(found, report, title=TITLE)
    if json:
        means = {
            label: {name: interval.mean for name, interval in intervals.items()}
            for label, intervals in found.intervals.items()
        }
        console.print_json({"metrics": {**floors, **means}, "report": str(report)})
        return
    console.out.print(demo_table(found, floors))
    console.show(found.about())
    say_compiling(found)
    console.show(f"Report: {report}")
    console.show("For your own data: rankwright train auto --train FILE --save model.rw")


def demo_table(found: Comparison, floors: dict[str, dict[str, float]]) -> Table:
    """Return the table of the comparison, and below it what a ranker must beat."""
    table = comparison_table(found)
    for name, means in floors.items():
        table.add_row(f"[dim]{name}[/]", *(f"[dim]{means[m]:.4f}[/]" for m in found.metrics))
    return table
