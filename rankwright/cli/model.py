"""Model files as the verbs take them: ours, or a text model of RankLib."""

from __future__ import annotations

from collections.abc import Callable
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


def open_with(path: str | Path, read: Callable[[], RankingData]) -> tuple[Ranker, RankingData]:
    """Return the ranker of a model file, and the data that ``read`` gives, as wide as it takes."""
    ours = None if is_ranklib(path) else open_model(path)  # a fault is told before data is read
    data = read()
    ranker = ours or open_model(path, n_features=data.n_features)
    return ranker, data.with_n_features(ranker.n_features_in_)
