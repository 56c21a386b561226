"""Model files as the verbs take them, and the data beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rankwright.model_files import is_ranklib, load_model

if TYPE_CHECKING:
    from rankwright.data.ranking_data import RankingData
    from rankwright.rankers.base import Ranker


def feature_names(ranker: Ranker) -> Sequence[str]:
    """Return what a table calls the features of a ranker: its own names, or ``f1`` to ``fd``."""
    from rankwright.data.frames import default_names

    names = getattr(ranker, "feature_names_in_", None)
    return default_names(ranker.n_features_in_) if names is None else list(names)


def open_with(
    paths: Sequence[str | Path], read: Callable[[], RankingData]
) -> tuple[list[Ranker], RankingData]:
    """Return the rankers of model files, and the data that ``read`` gives, as wide as the first.

    A fault of a model file of ours is told before the data is read.
    """
    ours = {path: load_model(path) for path in paths if not is_ranklib(path)}
    data = read()
    rankers: list[Ranker] = []
    for path in paths:
        rankers.append(ours.get(path) or load_model(path, n_features=data.n_features))
        data = data.with_n_features(rankers[0].n_features_in_)
    return rankers, data
