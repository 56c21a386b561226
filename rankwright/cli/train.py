"""``rankwright train``: fit a ranker to a file, choose on valid, look at test once, save."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankwright.cli import console
from rankwright.cli.settings import ReadOption
from rankwright.key_values import parse_settings

if TYPE_CHECKING:
    from rankwright.data.ranking_data import RankingData
    from rankwright.rankers.base import Ranker

REPORTED = ("ndcg@1", "ndcg@5", "ndcg@10", "map")
ROUNDS = ("n_bags", "n_trees", "epochs", "n_rounds", "n_generations")  # what rounds are called


def train(
    ranker: Annotated[str, typer.Argument(help="`rankwright list rankers` shows the names.")],
    train: Annotated[str, typer.Option("--train", help="Training data.")],
    valid: Annotated[str | None, typer.Option(help="Chooses the round and what is auto.")] = None,
    test: Annotated[str | None, typer.Option(help="Evaluated once, at the end.")] = None,
    model: Annotated[str | None, typer.Option(help="Model family, such as trees.")] = None,
    metric: Annotated[
        str | None, typer.Option(help="What is optimised and selects the model.")
    ] = None,
    convention: Annotated[str, typer.Option(help="How metrics are computed.")] = "standard",
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A parameter, as key=value; repeatable.")
    ] = None,
    read: ReadOption = None,
    save: Annotated[Path | None, typer.Option(help="Write the model file here.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything drawn.")] = 0,
    threads: Annotated[int | None, typer.Option(help="Threads; all cores by default.")] = None,
    json: console.JsonOption = False,
) -> None:
    """Train a ranker; prints its metrics on valid and test, with their convention."""
    from rankwright.data.files import load
    from rankwright.rankers.base import ranker as make

    chosen = {"model": model, "metric": metric}
    fitted = make(
        ranker,
        **{name: value for name, value in chosen.items() if value is not None},
        **parse_settings(settings or []),
        convention=convention,
        seed=seed,
        n_threads=threads,
    )
    fitted.make_model()  # a wrong parameter is told before anything is read
    options = parse_settings(read or [], "--read")
    data = load(train, **options)
    parts = {
        name: load(path, **options).with_n_features(data.n_features)
        for name, path in (("valid", valid), ("test", test))
        if path is not None
    }
    began = time.perf_counter()
    interrupted = _fit_with_progress(fitted, data, parts.get("valid"))
    seconds = time.perf_counter() - began
    if save is not None:
        fitted.save(save)
    results = {name: measures_of(fitted, part) for name, part in parts.items()}
    if json:
        console.print_json(
            {
                "saved": None if save is None else str(save),
                "ranker": fitted.name,
                "model": fitted.model,
                "seconds": seconds,
                "resumed_from": None,
                "best_iteration": fitted.best_iteration_,
                "valid": results.get("valid", {}),
                "test": results.get("test", {}),
            }
        )
    else:
        _print_results(fitted, results, seconds, save)
    if interrupted:
        console.say("interrupted: this is the best model so far.")
        raise typer.Exit(130)


def _fit_with_progress(ranker: Ranker, data: RankingData, valid: RankingData | None) -> bool:
    """Fit; Ctrl-C keeps the best model so far. Return whether the run was interrupted."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    model = ranker.make_model()
    total = next((getattr(model, name) for name in ROUNDS if hasattr(model, name)), None)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[text]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console.err, transient=True) as bar:
        task = bar.add_task(ranker.name, total=total, text="")

        def progress(t: int, text: str) -> None:
            bar.update(task, completed=t, text=text)

        ranker.fit(data, eval_set=valid, progress=progress)
    return ranker.interrupted_


def measures_of(ranker: Ranker, data: RankingData) -> dict[str, float]:
    """Return the selection metric and the usual ones."""
    from rankwright.metrics.evaluate import evaluate

    selected = ranker.select_metric or ranker.metric
    names = list(dict.fromkeys([selected, *REPORTED]))
    return dict(evaluate(data, ranker.predict(data), names, convention=ranker.convention))


def _print_results(
    ranker: Ranker, results: dict[str, dict[str, float]], seconds: float, save: Path | None
) -> None:
    from rich.table import Table

    if results:
        table = Table(box=None, pad_edge=False)
        table.add_column("")
        names = next(iter(results.values()))
        for name in names:
            table.add_column(name, justify="right")
        for part, values in results.items():
            table.add_row(part, *(f"{value:.4f}" for value in values.values()))
        console.out.print(table)
        console.out.print(f"convention {ranker.convention}")
    what: dict[str, Any] = {"rounds": ranker.best_iteration_, "seconds": f"{seconds:.2f}"}
    about = ", ".join(f"{name} {value}" for name, value in what.items())
    console.out.print(f"{ranker.name} on {ranker.model}: {about}")
    if save is not None:
        console.out.print(f"saved {save}", soft_wrap=True)
