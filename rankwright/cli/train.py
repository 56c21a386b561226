"""``rankwright train``: fit a ranker, select on validation data, evaluate on test data, save."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankwright.cli import console
from rankwright.cli.console import round_progress
from rankwright.cli.options import (
    ConventionOption,
    DaskOption,
    EveryOption,
    FolderOption,
    FormatOption,
    ModelOption,
    PartsOption,
    ReadOption,
    ResumeOption,
    SeedOption,
    ThreadsOption,
    checked_ranker,
    checkpoint_of,
    client_of,
    load_evaluation_data,
    on_workers,
    ranker_settings,
    read_options,
    score_and_save,
    set_option,
    with_common_feature_ids,
)
from rankwright.errors import DataError, UsageError

if TYPE_CHECKING:
    from rankwright.comparison.auto import Chosen
    from rankwright.data.click_log import ClickLog
    from rankwright.data.ranking_data import RankingData
    from rankwright.distributed.partitions import Partitions
    from rankwright.persist.checkpoint import Checkpoint
    from rankwright.rankers.base import Ranker


_SHOWN_POSITIONS = 10
ROUNDS = (
    "n_bags",
    "n_estimators",
    "epochs",
    "n_rounds",
    "n_generations",
)  # of the models: the number of iterations


def train(
    context: typer.Context,
    ranker: Annotated[
        str,
        typer.Argument(help="One of `rankwright list rankers`, or auto to choose one by the data."),
    ],
    train: Annotated[
        str,
        typer.Option(
            "--train",
            help="Training data; with --clicks the features of the documents of the log.",
        ),
    ],
    valid: Annotated[
        str | None,
        typer.Option(help="Validation data: selects the best iteration and what is set to auto."),
    ] = None,
    test: Annotated[str | None, typer.Option(help="Test data, evaluated once at the end.")] = None,
    model: ModelOption = None,
    metric: Annotated[
        str | None, typer.Option(help="The metric to optimise and to select the model by.")
    ] = None,
    convention: ConventionOption = "standard",
    settings: Annotated[
        list[str] | None, set_option("A parameter of the ranker, such as n_estimators=200")
    ] = None,
    format: FormatOption = None,  # noqa: A002
    read: ReadOption = None,
    clicks: Annotated[
        str | None,
        typer.Option(
            metavar="LOG",
            help="A click log: learn from clicks in place of the grades of --train, whose "
            "documents are found by query and document id.",
        ),
    ] = None,
    propensity: Annotated[
        str | None,
        typer.Option(
            metavar="WHAT",
            help="With --clicks: how much users look at each position. joint: learn it together "
            "with relevance (default); a method of `rankwright clicks propensity`, such as pbm; "
            "a file that it saved; none: take clicks as grades.",
        ),
    ] = None,
    read_clicks: Annotated[
        list[str] | None,
        typer.Option(
            "--read-clicks",
            metavar="KEY=VALUE",
            help="Any option of the reader of the log, such as session=visit or format=ubi.",
        ),
    ] = None,
    save: Annotated[Path | None, typer.Option(help="Write the model file here.")] = None,
    checkpoint: FolderOption = None,
    every: EveryOption = None,
    resume: ResumeOption = False,
    seed: SeedOption = 0,
    threads: ThreadsOption = None,
    dask: DaskOption = None,
    n_parts: PartsOption = None,
    json: console.JsonOption = False,
) -> None:
    """Train a ranker; print its metrics on validation and test data, with their convention."""
    from rankwright.core.jit import Stopwatch
    from rankwright.data.files import load, load_documents
    from rankwright.data.streams import check_target

    common: dict[str, Any] = {"convention": convention, "random_state": seed, "n_jobs": threads}
    if metric is not None:
        common["metric"] = metric
    if ranker == "auto":
        given = {"model": model, "checkpoint": checkpoint, "dask": dask, "clicks": clicks}
        _check_auto(metric, convention, **given)
        of_auto = _auto_settings(settings)
    else:
        own = ranker_settings(settings, model=model, metric=metric)
        fitted = checked_ranker(ranker, **{**common, **own})
    _check_clicks(clicks, propensity=propensity, read_clicks=read_clicks, dask=dask)
    check_target(save, "--save")
    _warn_of_equal_files(train, valid=None if clicks is None else valid, test=test)
    saved_state = checkpoint_of(checkpoint, every, resume)
    options = read_options(read, format=format)
    options = with_common_feature_ids(options, train, valid, test)
    client = client_of(context, dask, n_parts)
    read_train = load if clicks is None else load_documents  # which need no grades
    data: Any = (
        read_train(train, **options)
        if client is None
        else on_workers(client, train, n_parts, options)
    )
    parts = load_evaluation_data(data.n_features, options, valid=valid, test=test)
    if clicks is not None:
        data = _load_clicks(clicks, data, read_clicks)
    watch = Stopwatch()
    why: dict[str, Any] = {}
    if ranker == "auto":
        chosen = _choose_auto(data, parts.pop("valid", None), **common, **of_auto)
        fitted, why = chosen.ranker, chosen.to_dict()
    else:
        _fit_with_progress(fitted, data, parts.get("valid"), saved_state, propensity)
    seconds, compiling = watch.seconds, watch.compile_seconds
    results = score_and_save(fitted, parts, save)
    if json:
        record = _record(fitted, results, seconds, compiling, save)
        console.print_json({**record, **why})
    else:
        _print_results(fitted, results, seconds, compiling, save)
        if why and not why["evaluated"]:
            console.show(f"{fitted.name} was chosen without evaluation")
    if fitted.interrupted_:
        console.say("interrupted: this is the best model so far.")
        raise typer.Exit(130)


def _fit_with_progress(
    ranker: Ranker,
    data: RankingData | ClickLog | Partitions,
    valid: RankingData | None,
    checkpoint: Checkpoint | None,
    propensity: str | None,
) -> None:
    """Fit, here or where the parts of the data are; Ctrl-C keeps the best model so far."""
    from rankwright.data.click_log import ClickLog
    from rankwright.data.ranking_data import RankingData
    from rankwright.rankers.fitting import keeping_best

    model = ranker.make_model()
    total = next((getattr(model, name) for name in ROUNDS if hasattr(model, name)), None)
    with round_progress(ranker.name, total) as progress, keeping_best(ranker):
        if isinstance(data, RankingData):
            ranker.fit(data, eval_set=valid, progress=progress, checkpoint=checkpoint)
        elif isinstance(data, ClickLog):
            known = _propensity(propensity, data, ranker.n_jobs)
            with warnings.catch_warnings():  # --propensity none asks for clicks as grades
                warnings.filterwarnings("ignore", "clicks are taken as grades")
                ranker.fit(
                    data, propensity=known, eval_set=valid, progress=progress, checkpoint=checkpoint
                )
        else:
            from rankwright.distributed import fit

            fit(ranker, data, valid, progress=progress, checkpoint=checkpoint)


def _warn_of_equal_files(train: str, **others: str | None) -> None:
    """Warn that metrics on the training file itself are not those on other data.

    A fit to grades reports validation data that equals the training data by itself.
    """
    for name, path in others.items():
        if path == train:
            console.say(
                f"warning: --{name} is the training file, so its metrics are too optimistic; use "
                "other queries for it."
            )


# --- train --clicks: from a log in place of grades ------------------------------------------


def _check_clicks(clicks: str | None, dask: str | None, **options: Any) -> None:
    """Refuse options of a log where there is none, and a log on a cluster."""
    given = [f"--{name.replace('_', '-')}" for name, value in options.items() if value]
    if clicks is None and given:
        raise UsageError(f"{' and '.join(given)}: for a click log; give it by --clicks LOG.")
    if clicks is not None and dask is not None:
        raise UsageError("--clicks and --dask: a fit to clicks runs in one process.")


def _load_clicks(path: str, features: RankingData, read: list[str] | None) -> ClickLog:
    from rankwright.data.click_files import load_log

    if features.doc_id is None:
        raise DataError(
            "--train has no document ids, by which the documents of --clicks are found in it."
        )
    return load_log(path, features=features, **read_options(read))


def _propensity(what: str | None, log: ClickLog, n_jobs: int | None) -> Any:
    """Return what `Ranker.fit` takes."""
    from rankwright.clicks.position_bias import Propensity
    from rankwright.clicks.propensity import METHODS, estimate_propensity

    if what is None or what == "joint":
        return "joint"
    if what == "none":
        return None
    if what in METHODS:
        return estimate_propensity(log, what, groups=0, n_jobs=n_jobs)
    if not Path(what).exists():
        raise UsageError(
            f"--propensity {what}: there is no such file, and no such method; known: joint, none, "
            f"{', '.join(METHODS)}."
        )
    return Propensity.load(what)


# --- what is said of a fit -------------------------------------------------------------------


def _record(
    ranker: Ranker,
    results: dict[str, dict[str, float]],
    seconds: float,
    compiling: float,
    save: Path | None,
) -> dict[str, Any]:
    """Return what ``--json`` reports of a fit."""
    return {
        "saved": None if save is None else str(save),
        "ranker": ranker.name,
        "model": ranker.model_name,
        "seconds": seconds,
        "compile_seconds": compiling,
        "resumed_from": ranker.resumed_from_,
        "best_iteration": ranker.best_iteration_,
        **({"propensity": ranker.propensity_.to_dict()} if _has_propensity(ranker) else {}),
        "valid": results.get("valid", {}),
        "test": results.get("test", {}),
    }


def _print_results(
    ranker: Ranker,
    results: dict[str, dict[str, float]],
    seconds: float,
    compiling: float,
    save: Path | None,
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
        console.show(f"convention {ranker.convention}")
    what: dict[str, Any] = {"rounds": ranker.best_iteration_, "seconds": f"{seconds:.2f}"}
    if compiling >= 0.05:
        what["seconds of compiling"] = f"{compiling:.2f}"
    if ranker.resumed_from_ is not None:
        what["resumed from round"] = ranker.resumed_from_
    about = ", ".join(f"{name} {value}" for name, value in what.items())
    console.show(f"{ranker.name} on {ranker.model_name}: {about}")
    if _has_propensity(ranker):
        found = ranker.propensity_
        shown = " ".join(f"{value:.2f}" for value in found.examination[:_SHOWN_POSITIONS])
        more = " ..." if found.n_positions > _SHOWN_POSITIONS else ""
        console.show(f"examination of positions 1, 2, ... ({found.method}): {shown}{more}")
    if save is not None:
        console.show(f"saved {save}")


def _has_propensity(ranker: Ranker) -> bool:
    return getattr(ranker, "propensity_", None) is not None


# --- train auto: the rankers that suit the data are fitted, and the best is kept -------------


def _check_auto(metric: str | None, convention: str, **options: Any) -> None:
    """Refuse options that need a ranker named by the user, and unknown metrics and conventions."""
    given = [f"--{name}" for name, value in options.items() if value]
    if given:
        raise UsageError(
            f"auto tries rankers with their default parameters and takes "
            f"no {' and no '.join(given)}: leave that out, or name a ranker in place of auto."
        )
    from rankwright.metrics.base import metric as parse_metric
    from rankwright.metrics.convention import Convention

    Convention.named(convention)
    if metric is not None:
        parse_metric(metric, convention=convention)


def _auto_settings(settings: list[str] | None) -> dict[str, Any]:
    """Return the parameters of auto itself, which are all that ``--set`` may give."""
    from rankwright.comparison.entries import checked_auto_options

    return checked_auto_options(ranker_settings(settings), "--set")


def _choose_auto(data: RankingData, valid: RankingData | None, **common: Any) -> Chosen:
    """Return what `rankwright.auto` finds, with a bar over its fits."""
    from rankwright.comparison.auto import AutoInterrupted, auto

    with round_progress("auto", None) as progress:

        def on_progress(fit: int, fits: int, name: str, t: int, text: str) -> None:
            progress(fit, f"{name}, round {t}: {text}", fits)

        try:
            chosen = auto(data, eval_set=valid, on_progress=on_progress, **common)
        except AutoInterrupted as ended:
            chosen = ended.chosen
    console.say(chosen.why)
    return chosen
