"""Model files as the verbs take them: ours, or a text model of RankLib."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rankwright.data.ranking_data import RankingData
    from rankwright.rankers.base import Ranker

_RANKLIB = b"## "


def is_ranklib(path: str | Path) -> bool:
    """Whether a file begins as RankLib's models do."""
    path = Path(path)
    if not path.is_file():
        return False
    with path.open("rb") as stream:
        return stream.read(len(_RANKLIB)) == _RANKLIB


def open_model(path: str | Path, *, n_features: int | None = None) -> Ranker:
    """Return the ranker of a model file; RankLib's is widened to ``n_features`` of the data."""
    if is_ranklib(path):
        from rankwright.ranklib.as_ranker import load_ranklib

        return load_ranklib(path, n_features=n_features)
    from rankwright.persist.model_file import load_model

    return load_model(path)


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
    ours = {path: open_model(path) for path in paths if not is_ranklib(path)}
    data = read()
    rankers: list[Ranker] = []
    for path in paths:
        rankers.append(ours.get(path) or open_model(path, n_features=data.n_features))
        data = data.with_n_features(rankers[0].n_features_in_)
    return rankers, data
