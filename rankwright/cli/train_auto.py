"""``rankwright train auto``: the rankers that suit the data are fitted, and the best is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rankwright.cli import console
from rankwright.errors import UsageError

if TYPE_CHECKING:
    from rankwright.data.ranking_data import RankingData
    from rankwright.rankers.auto import Chosen


def check(metric: str | None, convention: str, **options: Any) -> None:
    """Refuse options that go with a ranker of the user's choice, and names that there are not."""
    given = [f"--{name}" for name, value in options.items() if value]
    if given:
        raise UsageError(
            f"auto tries rankers with their default parameters and takes "
            f"no {' and no '.join(given)}: leave that out, or name a ranker in place of auto."
        )
    from rankwright.metrics.base import metric as measure
    from rankwright.metrics.convention import Convention

    Convention.preset(convention)
    if metric is not None:
        measure(metric, convention=convention)


def choose(data: RankingData, valid: RankingData | None, **common: Any) -> Chosen:
    """Return what `rankwright.auto` finds, with a bar over its fits."""
    from rankwright.cli.progress import round_progress
    from rankwright.rankers.auto import auto

    with round_progress("auto", None) as progress:

        def told(fit: int, fits: int, name: str, t: int, text: str) -> None:
            progress(fit, f"{name}, round {t}: {text}", fits)

        chosen = auto(data, eval_set=valid, on_progress=told, **common)
    console.say(chosen.why)
    return chosen
