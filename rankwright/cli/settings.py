"""Options that verbs share, such as ``--read key=value`` and ``--set key=value``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankwright.errors import UsageError
from rankwright.key_values import parse_settings

if TYPE_CHECKING:
    from rankwright.rankers.base import Ranker


def _counted(threads: int | None) -> int | None:
    """Refuse a number of threads that cannot be, before anything is read."""
    if threads is not None:
        from rankwright.core.parallel import thread_count

        thread_count(threads)
    return threads


ModelOption = Annotated[str | None, typer.Option("--model", help="Model family, such as trees.")]
ConventionOption = Annotated[
    str, typer.Option("--convention", help="How metrics are computed; one of `list conventions`.")
]
FormatOption = Annotated[
    str | None,
    typer.Option("--format", help="Format of the data; by default from the file extension."),
]
SeedOption = Annotated[int, typer.Option("--seed", help="Random seed.")]
ThreadsOption = Annotated[
    int | None,
    typer.Option("--threads", callback=_counted, help="Threads; all cores by default."),
]

ReadOption = Annotated[
    list[str] | None,
    typer.Option(
        "--read",
        metavar="KEY=VALUE",
        help="Any option of the reader, such as zero_based=true; may be repeated.",
    ),
]

_OPTIONS = {
    **dict.fromkeys(("random_state", "seed"), "--seed"),
    **dict.fromkeys(("n_jobs", "threads"), "--threads"),
    "convention": "--convention",
}


def read_options(read: list[str] | None, **named: Any) -> dict[str, Any]:
    """Return what a reader is told: by ``--read``, and by options of their own."""
    given = {name: value for name, value in named.items() if value is not None}
    return {**given, **parse_settings(read or [], "--read")}


def ranker_settings(settings: list[str] | None, **given: Any) -> dict[str, Any]:
    """Return the parameters that ``--set`` and options such as ``--model`` give a ranker."""
    own = {name: value for name, value in given.items() if value is not None}
    parsed = parse_settings(settings or [])
    for name in parsed:
        if name in _OPTIONS:
            option = _OPTIONS[name]
            raise UsageError(f"{name} is set by {option}; write {option} {parsed[name]}.")
        if name in own:
            raise UsageError(f"{name} is given twice, by --{name} and by --set; leave one out.")
    return {**own, **parsed}


def checked_ranker(name: str, /, **parameters: Any) -> Ranker:
    """Return a ranker whose parts, parameters and metrics are sound, before any data is read."""
    from rankwright.metrics.base import metric
    from rankwright.rankers.base import ranker

    made = ranker(name, **parameters)
    model = made.make_model()
    made.solver_for(model)
    if made.has_loss:
        made.make_loss()
    for measure in {made.metric, made.selection_metric}:
        metric(measure, convention=made.convention)
    return made
