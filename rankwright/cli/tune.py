"""``rankwright tune``: choose a ranker's parameters on valid data, with Optuna."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankwright.cli import console
from rankwright.cli.settings import ReadOption, ranker_settings
from rankwright.key_values import parse_settings

if TYPE_CHECKING:
    from rankwright.experiments.tune import Trial, Tuning

_SHOWN = 5


def tune(
    ranker: Annotated[str, typer.Argument(help="`rankwright list rankers` shows the names.")],
    train: Annotated[str, typer.Option("--train", help="Training data.")],
    valid: Annotated[str, typer.Option(help="Judges every trial.")],
    test: Annotated[str | None, typer.Option(help="Evaluated once, at the end.")] = None,
    model: Annotated[str | None, typer.Option(help="Model family, such as trees.")] = None,
    metric: Annotated[
        str | None, typer.Option(help="What is optimised and judges a trial.")
    ] = None,
    convention: Annotated[str, typer.Option(help="How metrics are computed.")] = "standard",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="A parameter that stays, as key=value; repeatable."),
    ] = None,
    trials: Annotated[int, typer.Option(help="Trials in all, earlier runs included.")] = 20,
    timeout: Annotated[
        float | None, typer.Option(help="Seconds after which no trial is begun.")
    ] = None,
    storage: Annotated[
        str | None,
        typer.Option(help="Keep trials here, to go on later: a file, or sqlite:///trials.db."),
    ] = None,
    study: Annotated[
        str | None, typer.Option(help="Name within the storage; the ranker's by default.")
    ] = None,
    read: ReadOption = None,
    save: Annotated[Path | None, typer.Option(help="Write the best model here.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything drawn.")] = 0,
    threads: Annotated[int | None, typer.Option(help="Threads; all cores by default.")] = None,
    json: console.JsonOption = False,
) -> None:
    """Tune a ranker: the first trial stands at its defaults, those that fall behind are pruned."""
    from rankwright.cli.progress import step_progress
    from rankwright.data.files import load
    from rankwright.data.target import check_target
    from rankwright.experiments.tune import tune as search
    from rankwright.rankers.base import ranker as make

    fixed = ranker_settings(settings, model=model, metric=metric)
    made = make(ranker, **fixed, convention=convention, seed=seed, n_threads=threads)
    made.make_model()  # a wrong parameter is told before anything is read
    check_target(save, "--save")
    options = parse_settings(read or [], "--read")
    data = load(train, **options)
    judge = load(valid, **options).with_n_features(data.n_features)
    judged = None if test is None else load(test, **options).with_n_features(data.n_features)
    with step_progress(f"tune {made.name}", trials) as told:
        found = search(
            made,
            data,
            judge,
            trials=trials,
            timeout=timeout,
            fixed=fixed,
            storage=storage,
            study=study,
            report=lambda trial: told(_line(trial)),
            seed=seed,
        )
    if save is not None:
        found.ranker.save(save)
    results: dict[str, Any] = {}
    if judged is not None:
        from rankwright.cli.train import measures_of

        results = measures_of(found.ranker, judged)
    if json:
        console.print_json(_record(found, results, save))
    else:
        _print_result(found, results, save)


def _line(trial: Trial) -> str:
    value = "" if trial.value is None else f" {trial.value:.4f}"
    return f"{trial.state}{value}, {_settings(trial.parameters)}"


def _settings(parameters: Any) -> str:
    texts = {k: f"{v:.4g}" if isinstance(v, float) else str(v) for k, v in parameters.items()}
    return " ".join(f"{name}={text}" for name, text in texts.items())


def _record(found: Tuning, test: dict[str, Any], save: Path | None) -> dict[str, Any]:
    return {
        "saved": None if save is None else str(save),
        "ranker": found.ranker.name,
        "model": found.ranker.model,
        "metric": found.metric,
        "convention": found.convention,
        "parameters": dict(found.parameters),
        "valid": {found.metric: found.value},
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


def _print_result(found: Tuning, test: dict[str, Any], save: Path | None) -> None:
    from rich.table import Table

    finished = [trial for trial in found.trials if trial.state == "complete"]
    best = sorted(finished, key=lambda trial: abs((trial.value or 0.0) - found.value))
    table = Table(box=None, pad_edge=False)
    table.add_column("trial", justify="right")
    table.add_column(f"valid {found.metric}", justify="right")
    table.add_column("parameters", overflow="fold")
    for trial in best[:_SHOWN]:
        table.add_row(str(trial.number + 1), f"{trial.value:.4f}", _settings(trial.parameters))
    console.out.print(table)
    pruned = sum(trial.state == "pruned" for trial in found.trials)
    failed = [trial for trial in found.trials if trial.state == "failed"]
    console.out.print(
        f"{found.ranker.name} on {found.ranker.model}: {len(found.trials)} trials, "
        f"{pruned} pruned, {len(failed)} failed, {found.seconds:.2f} s; "
        f"convention {found.convention}",
        soft_wrap=True,
    )
    if failed:
        console.say(f"a trial failed: {failed[0].sentence}")
    for name, value in test.items():
        console.out.print(f"test {name} {value:.4f}")
    console.out.print(
        "best: " + " ".join(f"--set {name}={value}" for name, value in found.parameters.items()),
        soft_wrap=True,
        markup=False,
    )
    if save is not None:
        console.out.print(f"saved {save}", soft_wrap=True, markup=False)
