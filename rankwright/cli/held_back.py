"""Valid and test data, held back from a fit: read beside train, measured when it is done."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankwright.core.memory import Gauge
    from rankwright.data.ranking_data import RankingData
    from rankwright.rankers.base import Ranker

REPORTED = ("ndcg@1", "ndcg@5", "ndcg@10", "map")


def load_held_back(
    n_features: int, options: dict[str, Any], **paths: str | None
) -> dict[str, RankingData]:
    """Read the files that are given, by their names, as wide as the training data."""
    from rankwright.data.files import load

    return {
        name: load(path, **options).with_n_features(n_features)
        for name, path in paths.items()
        if path is not None
    }


def score_and_save(
    ranker: Ranker, parts: dict[str, RankingData], save: Path | None, gauge: Gauge | None
) -> dict[str, dict[str, float]]:
    """Return the measures on each part; Ctrl-C while scoring loses no model.

    Under a bound on memory the model is saved last: a run that passes the bound saves nothing.
    """
    if save is not None and gauge is None:
        ranker.save(save)
    try:
        return {name: measures_of(ranker, part) for name, part in parts.items()}
    finally:
        if gauge is not None:
            gauge.check()
            if save is not None:
                ranker.save(save)


def measures_of(ranker: Ranker, data: RankingData) -> dict[str, float]:
    """Return the selection metric and the usual ones."""
    from rankwright.metrics.evaluation import evaluate

    selected = ranker.select_metric or ranker.metric
    names = list(dict.fromkeys([selected, *REPORTED]))
    return dict(evaluate(data, ranker.predict(data), names, convention=ranker.convention))
