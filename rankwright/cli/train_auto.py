"""``rankwright train auto``: the rankers that suit the data are fitted, and the best is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rankwright.cli import console
from rankwright.errors import UsageError

if TYPE_CHECKING:
    from rankwright.data.ranking_data import RankingData
    from rankwright.rankers.auto import Chosen


def check(metric: str | None, convention: str, **options: Any) -> None:
    """Refuse a metric that there is not, and options that go with a ranker of the user's choice."""
    given = [f"--{name}" for name, value in options.items() if value]
    if given:
        raise UsageError(
            f"auto tries rankers as they stand and takes no {' and no '.join(given)}: leave that "
            "out, or name a ranker in place of auto."
        )
    if metric is not None:
        from rankwright.metrics.evaluate import metric as measure

        measure(metric, convention=convention)


def choose(data: RankingData, valid: RankingData | None, **common: Any) -> Chosen:
    """Return what `rankwright.auto` finds, with a bar over its fits."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from rankwright.rankers.auto import auto

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[text]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console.err, transient=True) as bar:
        task = bar.add_task("auto", total=None, text="")

        def told(fit: int, fits: int, name: str, t: int, text: str) -> None:
            bar.update(task, completed=fit, total=fits, text=f"{name}, round {t}: {text}")

        chosen = auto(data, eval_set=valid, told=told, **common)
    console.say(chosen.why)
    return chosen
