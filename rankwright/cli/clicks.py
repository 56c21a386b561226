"""``rankwright clicks``: look at click logs, fit click models, and evaluate rankers on them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankwright.cli import console
from rankwright.cli.options import (
    EstimatorOption,
    PropensityOption,
    ReadOption,
    ThreadsOption,
    open_with_documents,
    propensity_options,
    read_options,
    set_option,
)
from rankwright.comparison.key_values import parse_settings
from rankwright.errors import UsageError

if TYPE_CHECKING:
    from rankwright.clicks.base import ClickModel, ClickScores

app = typer.Typer(
    name="clicks",
    help="Look at click logs, fit click models to them, and evaluate rankers on them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)

_SHOWN_POSITIONS = 20
_PICTURES = ("png", "svg", "pdf")

LogArgument = Annotated[str, typer.Argument(help="A click log.")]
LogFormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        help="Format of the log: csv, tsv, parquet, arrow, jsonl or ubi; by default from the "
        "file extension.",
    ),
]


@app.command()
def inspect(
    log: LogArgument,
    format: LogFormatOption = None,  # noqa: A002
    read: ReadOption = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw examination by position (.png, .svg or .pdf)."),
    ] = None,
    json: console.JsonOption = False,
) -> None:
    """Show click rates by position, and report what in a log will mislead.

    Examination is relative to the first position, by a position-based model.
    """
    from rankwright.clicks.inspect import inspect_log
    from rankwright.data.click_files import load_log

    check_picture(plot)
    profile = inspect_log(load_log(log, **read_options(read, format=format)))
    if plot is not None:
        write_picture(profile.plot().figure, plot)
    if json:
        console.print_json(profile.to_dict())
        return
    console.show(str(profile))
    if plot is not None:
        console.say(f"wrote {plot}")


@app.command()
def fit(
    name: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="gctr, rctr, dctr, pbm, ubm, cascade, dcm, sdbn or dbn.",
        ),
    ],
    log: LogArgument,
    test: Annotated[
        str | None, typer.Option("--test", help="Another log, to evaluate the model on.")
    ] = None,
    set_: Annotated[
        list[str] | None, set_option("A parameter of the model, such as smoothing=2")
    ] = None,
    format: LogFormatOption = None,  # noqa: A002
    read: ReadOption = None,
    threads: ThreadsOption = None,
    json: console.JsonOption = False,
) -> None:
    """Fit a click model to a log, and print how well it predicts clicks."""
    from rankwright.clicks.models import model
    from rankwright.data.click_files import load_log

    options = read_options(read, format=format)
    train = load_log(log, **options)
    fitted = model(name, **parse_settings(set_ or []), n_jobs=threads).fit(train)
    scores = {"train": fitted.evaluate(train)}
    if test is not None:
        scores["test"] = fitted.evaluate(load_log(test, **options))
    if json:
        console.print_json(_record(fitted, scores))
        return
    _print_fit(fitted, scores)


@app.command()
def propensity(
    log: LogArgument,
    method: Annotated[
        str,
        typer.Option(
            help="randomised, for shuffled lists; harvest or pbm, if documents were shown at "
            "several positions; dual, with --features."
        ),
    ] = "dual",
    features: Annotated[
        str | None,
        typer.Option(
            metavar="DATA", help="Features of the documents of each query, with document ids."
        ),
    ] = None,
    save: Annotated[
        str | None,
        typer.Option(
            help="Write it to this file, for `rankwright train --clicks LOG --propensity FILE`."
        ),
    ] = None,
    format: LogFormatOption = None,  # noqa: A002
    read: ReadOption = None,
    threads: ThreadsOption = None,
    json: console.JsonOption = False,
) -> None:
    """Estimate how much users look at each position, relative to the first, with intervals."""
    from rankwright.clicks.propensity import WITH_FEATURES, estimate_propensity
    from rankwright.data.click_files import load_log
    from rankwright.data.files import load_documents
    from rankwright.data.streams import check_target

    if method in WITH_FEATURES and features is None:
        raise UsageError(
            f"--method {method} finds position bias from features: give --features DATA, or, where "
            "documents were shown at several positions, another method, such as pbm."
        )
    check_target(None if save is None else Path(save), "--save")
    table = None if features is None else load_documents(features)
    held = load_log(log, features=table, **read_options(read, format=format))
    found = estimate_propensity(held, method, n_jobs=threads)
    if save is not None:
        found.save(save)
    if json:
        console.print_json(found.to_dict())
        return
    console.show("position  examination (95 %)", "bold")
    for k, value in enumerate(found.examination):
        between = ""
        if found.low is not None and found.high is not None:
            between = f" [{found.low[k]:.3f}, {found.high[k]:.3f}]"
        console.show(f"{k + 1:8d}  {value:.3f}{between}")
    if save is not None:
        console.say(f"wrote {save}")


@app.command()
def evaluate(
    log: LogArgument,
    models: Annotated[
        list[str], typer.Argument(metavar="MODEL...", help="Model files of fitted rankers.")
    ],
    features: Annotated[
        str,
        typer.Option(
            "--features",
            metavar="DATA",
            help="Features of the documents of each query, with document ids; grades are not "
            "needed.",
        ),
    ],
    metric: Annotated[str, typer.Option(help="ctr@k, clicks@k or dcg@k, per session.")] = "ctr@5",
    estimator: EstimatorOption = "dr",
    temperature: Annotated[
        float,
        typer.Option(help="Lists sampled from Plackett-Luce; 0: the highest scores first."),
    ] = 0.0,
    propensity: PropensityOption = None,
    click_model: Annotated[
        str | None,
        typer.Option(
            "--click-model", help="For dr and cascade_dr: the name of a click model to fit."
        ),
    ] = None,
    logged: Annotated[
        str,
        typer.Option(help="What probabilities in the log are: slot, conditional, or none: ignore."),
    ] = "slot",
    limit: Annotated[float | None, typer.Option(help="The highest weight.")] = None,
    unit: Annotated[str, typer.Option(help="What the interval is over: query or session.")] = (
        "query"
    ),
    min_support: Annotated[
        float, typer.Option(help="The least share of its lists that the log must have shown.")
    ] = 0.9,
    format: LogFormatOption = None,  # noqa: A002
    read: ReadOption = None,
    threads: ThreadsOption = None,
    json: console.JsonOption = False,
) -> None:
    """Estimate what rankers would earn in clicks, from the log of another, with intervals.

    Of several models each is compared with the first. What the log cannot say is refused with the
    reason; exit 2 only if that is so of all models.
    """
    from rankwright.clicks.policy_evaluation import SupportError, compare_policies
    from rankwright.data.click_files import load_log

    if click_model is not None and estimator not in ("dr", "cascade_dr"):
        raise UsageError(
            f"--click-model is for the estimators dr and cascade_dr, not for {estimator}."
        )
    rankers, data = open_with_documents(models, features, {})
    names = models if len(set(models)) == len(models) else [
        f"{number}: {name}" for number, name in enumerate(models, 1)
    ]  # fmt: skip
    held = load_log(log, **read_options(read, format=format)).with_features(data)
    found = compare_policies(
        held,
        dict(zip(names, rankers, strict=True)),
        metric,
        estimator=estimator,
        temperature=temperature,
        model=click_model,
        logged=None if logged == "none" else logged,
        limit=limit,
        unit=unit,
        min_support=min_support,
        n_jobs=threads,
        **propensity_options(propensity, estimator),
    )
    if not found.values:
        raise SupportError(next(iter(found.refused.values())))
    if json:
        console.print_json(found.to_dict())
        return
    console.show(str(found))


def check_picture(path: Path | None) -> None:
    """Refuse a path of ``--plot`` that cannot be written as a picture."""
    from rankwright.data.streams import check_target

    check_target(path, "--plot")
    if path is not None and _picture_format(path) not in _PICTURES:
        raise UsageError(f"{path}: pictures are written as .png, .svg or .pdf.")


def write_picture(figure: Any, path: Path) -> None:
    """Write a figure of matplotlib to a file, whole or not at all."""
    from rankwright.data.streams import atomic_path

    with atomic_path(path) as temporary:
        figure.savefig(temporary, format=_picture_format(path), bbox_inches="tight", dpi=150)


def _picture_format(path: Path) -> str:
    return path.suffix.lower().lstrip(".")


def _print_fit(fitted: ClickModel, scores: dict[str, ClickScores]) -> None:
    for name, one in scores.items():
        console.show(
            f"{name}: log-likelihood {one.log_likelihood:.6f} per impression, "
            f"{one.session_log_likelihood:.6f} per session; perplexity {one.perplexity:.6f}, "
            f"{one.conditional_perplexity:.6f} given the clicks above"
        )
    if hasattr(fitted, "n_iter_"):
        end = "converged" if fitted.converged_ else "stopped before it converged"  # type: ignore[attr-defined]
        console.show(f"EM {end} after {fitted.n_iter_} iterations")
    for name, values in fitted.parameters_.items():
        if name not in fitted.of_pairs:
            listed = [f"{value:.4f}" for value in values]
            more = ", ..." if len(listed) > _SHOWN_POSITIONS else ""
            console.show(f"{name}: {', '.join(listed[:_SHOWN_POSITIONS])}{more}")
    if fitted.of_pairs:
        console.show(f"{', '.join(fitted.of_pairs)} of {fitted.pairs_.n_pairs:,} pairs")


def _record(fitted: ClickModel, scores: dict[str, ClickScores]) -> dict[str, Any]:
    shared = [name for name in fitted.parameters_ if name not in fitted.of_pairs]
    return {
        "model": fitted.name,
        "params": fitted.get_params(),
        "pairs": fitted.pairs_.n_pairs,
        "parameters": {name: fitted.parameters_[name] for name in shared},
        "scores": {name: one.to_dict() for name, one in scores.items()},
    }
