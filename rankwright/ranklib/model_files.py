"""Model files by what they hold: ours, RankLib's, LightGBM's, XGBoost's or CatBoost's."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rankwright.rankers.base import Ranker

_RANKLIB = b"## "


def load_model(
    path: str | Path,
    *,
    n_features: int | None = None,
    categories: Sequence[str] | None = None,
) -> Ranker:
    """Read a model file as a fitted ranker, whichever tool wrote it.

    Parameters
    ----------
    path : str or Path
        A file of `Ranker.save`, whose ranker scores as the saved one did; a model of LightGBM
        (text), XGBoost (JSON or UBJSON) or CatBoost (JSON), which scores as that library does (see
        `import_model`); or a text model of RankLib.
    n_features : int or None, default None
        Number of features of the data, for a model of RankLib, whose text names only those that it
        uses.
    categories : list of str, optional
        For a model of LightGBM, the names of the columns of the type category in its training
        frame. Without them, these columns take the codes of the categories.

    Examples
    --------
    >>> import rankwright as rw
    >>> data = rw.load("digits/train", queries=8, documents=12)
    >>> ranker = rw.MEMR().fit(data)
    >>> ranker.save("model.rw")
    >>> same = rw.load_model("model.rw").predict(data) == ranker.predict(data)
    >>> bool(same.all())
    True
    """
    if is_ranklib(path) and categories is None:
        from rankwright.ranklib.conversion import load_ranklib

        return load_ranklib(path, n_features=n_features)
    from rankwright.persist.model_file import load_model as load_own

    return load_own(path, categories=categories)


def is_ranklib(path: str | Path) -> bool:
    """Whether a file begins as RankLib's models do."""
    path = Path(path)
    if not path.is_file():
        return False
    try:
        with path.open("rb") as stream:
            return stream.read(len(_RANKLIB)) == _RANKLIB
    except OSError:  # such as of /proc/self/mem; whoever reads it as data or a model says so
        return False


def is_model(path: str | Path) -> bool:
    """Whether a file begins as one that `load_model` reads."""
    from rankwright.persist.other_libraries import library_of

    if not Path(path).is_file():  # a device may never end, and a pipe cannot be read twice
        return False
    return zipfile.is_zipfile(path) or is_ranklib(path) or library_of(path) is not None
