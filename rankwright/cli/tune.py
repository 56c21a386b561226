"""``rankwright tune``: choose a ranker's parameters on validation data or folds, with Optuna."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankwright.cli import console
from rankwright.cli.console import step_progress
from rankwright.cli.options import (
    ConventionOption,
    DaskOption,
    FormatOption,
    ModelOption,
    ReadOption,
    SeedOption,
    ThreadsOption,
    checked_ranker,
    client_of,
    load_evaluation_data,
    ranker_settings,
    read_options,
    score_and_save,
    set_option,
    with_common_feature_ids,
)
from rankwright.comparison.key_values import parse_space
from rankwright.errors import UsageError

if TYPE_CHECKING:
    from rankwright.comparison.tune import Trial, Tuning

_SHOWN = 5


def tune(
    context: typer.Context,
    ranker: Annotated[str, typer.Argument(help="`rankwright list rankers` shows the names.")],
    train: Annotated[str, typer.Option("--train", help="Training data.")],
    valid: Annotated[
        str | None,
        typer.Option(help="Validation data: scores each trial; without it, --folds does."),
    ] = None,
    folds: Annotated[
        int | None,
        typer.Option(help="Without --valid: cross-validate in this many folds; 5 by default."),
    ] = None,
    test: Annotated[str | None, typer.Option(help="Test data, evaluated once at the end.")] = None,
    model: ModelOption = None,
    metric: Annotated[
        str | None, typer.Option(help="The metric to optimise and to score trials by.")
    ] = None,
    convention: ConventionOption = "standard",
    settings: Annotated[list[str] | None, set_option("A parameter that is not searched")] = None,
    space: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=LOW:HIGH",
            help="What to search instead of the ranker's own space: num_leaves=7:63, "
            "learning_rate=0.01:0.3:log, reg_lambda=0,1,10; repeatable.",
        ),
    ] = None,
    trials: Annotated[
        int, typer.Option(help="Total number of trials, earlier runs included.")
    ] = 20,
    timeout: Annotated[
        float | None, typer.Option(help="Timeout in seconds: no trial starts after it.")
    ] = None,
    storage: Annotated[
        str | None,
        typer.Option(help="Optuna storage, to resume later: a file, or sqlite:///t.db."),
    ] = None,
    study: Annotated[
        str | None, typer.Option(help="Name of the Optuna study; the ranker's by default.")
    ] = None,
    format: FormatOption = None,  # noqa: A002
    read: ReadOption = None,
    save: Annotated[Path | None, typer.Option(help="Write the best model here.")] = None,
    seed: SeedOption = 0,
    threads: ThreadsOption = None,
    dask: DaskOption = None,
    at_once: Annotated[
        int | None,
        typer.Option(min=1, help="With --dask: trials at a time; one a worker thread by default."),
    ] = None,
    json: console.JsonOption = False,
) -> None:
    """Tune a ranker: the first trial has the default parameters, poor trials are pruned.

    With --dask whole trials run on the workers, several at a time; none of them is pruned.
    """
    from rankwright.comparison.tune import checked_folds, checked_space
    from rankwright.comparison.tune import tune as search
    from rankwright.data.files import load

    fixed = ranker_settings(settings, model=model, metric=metric)
    made = checked_ranker(ranker, **fixed, convention=convention, random_state=seed, n_jobs=threads)
    searched = parse_space(space) if space else None
    checked_space(made, trials, space=searched, fixed=fixed)
    checked_folds(folds, valid is not None)
    _check_targets(save, storage)
    options = with_common_feature_ids(read_options(read, format=format), train, valid, test)
    elsewhere = _elsewhere(context, dask, at_once)
    data = load(train, **options)
    parts = load_evaluation_data(data.n_features, options, valid=valid, test=test)
    validation = parts.pop("valid", None)
    with step_progress(f"tune {made.name}", trials) as on_step:
        found = search(
            made,
            data,
            validation,
            space=searched,
            folds=folds,
            trials=trials,
            timeout=timeout,
            fixed=fixed,
            storage=storage,
            study=study,
            report=lambda trial: on_step(_line(trial)),
            random_state=seed,
            **elsewhere,
        )
    results = score_and_save(found.ranker, parts, save).get("test", {})
    if json:
        console.print_json(_record(found, results, save, validation is None))
    else:
        _print_result(found, results, save, validation is None)


def _check_targets(save: Path | None, storage: str | None) -> None:
    """Say that a file cannot be written before the trials, not after."""
    from rankwright.data.streams import check_target

    check_target(save, "--save")
    if storage is not None and "://" not in storage:
        check_target(storage, "--storage")


def _elsewhere(context: typer.Context, dask: str | None, at_once: int | None) -> dict[str, Any]:
    """Return what runs trials on a cluster, and how many at a time; nothing without one."""
    if dask is None and at_once is not None:
        raise UsageError("--at-once needs --dask, the cluster whose workers run the trials.")
    client = client_of(context, dask)
    if client is None:
        return {}
    from rankwright.distributed.cluster import executor

    count = at_once or sum(client.nthreads().values())
    console.say(f"{count} trials at a time; --at-once {count} gives the same ones elsewhere.")
    return {"executor": executor(client), "at_once": count}


def _line(trial: Trial) -> str:
    value = "" if trial.value is None else f" {trial.value:.4f}"
    return f"{trial.state}{value}, {_settings(trial.parameters)}"


def _settings(parameters: Any) -> str:
    texts = {k: f"{v:.4g}" if isinstance(v, float) else str(v) for k, v in parameters.items()}
    return " ".join(f"{_dotted(name)}={text}" for name, text in texts.items())


def _dotted(name: str) -> str:
    """Return a parameter as ``--set`` takes it: ``model.num_leaves`` for ``model__num_leaves``."""
    return name.replace("__", ".")


def _typed(value: Any) -> str:
    """Return a value as ``--set`` reads it: ``8,4`` for a tuple of two."""
    if isinstance(value, list | tuple) and len(value) > 1:
        return ",".join(map(str, value))
    return str(list(value) if isinstance(value, tuple) else value)


def _record(
    found: Tuning, test: dict[str, Any], save: Path | None, judged_by_folds: bool
) -> dict[str, Any]:
    return {
        "saved": None if save is None else str(save),
        "ranker": found.ranker.name,
        "model": found.ranker.model_name,
        "metric": found.metric,
        "convention": found.convention,
        "parameters": dict(found.parameters),
        ("folds" if judged_by_folds else "valid"): {found.metric: found.value},
        "test": test,
        "seconds": found.seconds,
        "trials": [
            {
                "number": trial.number,
                "state": trial.state,
                "parameters": dict(trial.parameters),
                "value": trial.value,
                "seconds": trial.seconds,
                "sentence": trial.sentence,
            }
            for trial in found.trials
        ],
    }


def _print_result(
    found: Tuning, test: dict[str, Any], save: Path | None, judged_by_folds: bool
) -> None:
    from rich.table import Table

    finished = [trial for trial in found.trials if trial.state == "complete"]
    best = sorted(finished, key=lambda trial: abs((trial.value or 0.0) - found.value))
    table = Table(box=None, pad_edge=False)
    table.add_column("trial", justify="right")
    table.add_column(f"{'folds' if judged_by_folds else 'valid'} {found.metric}", justify="right")
    table.add_column("parameters", overflow="fold")
    for trial in best[:_SHOWN]:
        table.add_row(str(trial.number + 1), f"{trial.value:.4f}", _settings(trial.parameters))
    console.out.print(table)
    pruned = sum(trial.state == "pruned" for trial in found.trials)
    failed = [trial for trial in found.trials if trial.state == "failed"]
    console.show(
        f"{found.ranker.name} on {found.ranker.model_name}: {len(found.trials)} trials, "
        f"{pruned} pruned, {len(failed)} failed, {found.seconds:.2f} s; "
        f"convention {found.convention}"
    )
    if failed:
        console.say(f"a trial failed: {failed[0].sentence}")
    for name, value in test.items():
        console.show(f"test {name} {value:.4f}")
    settings = (f"--set {_dotted(name)}={_typed(v)}" for name, v in found.parameters.items())
    console.show(f"best: {' '.join(settings)}")
    if save is not None:
        console.show(f"saved {save}")
