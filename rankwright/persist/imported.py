"""What the readers of other libraries' models return."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rankwright.core.types import FittedModel
from rankwright.errors import DataError, quoted


@dataclass(frozen=True, eq=False, kw_only=True)
class ImportedModel:
    """A model of another library.

    Attributes
    ----------
    library, objective : str
        By their own names.
    model : fitted model
    names : tuple of str or None
        The features in the order of the columns; None where they have no names.
    rounds : int
        Number of boosting iterations.
    """

    library: str
    objective: str
    model: FittedModel
    names: tuple[str, ...] | None
    rounds: int


def distinct_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of features, of which no two may be the same."""
    name, often = Counter(names).most_common(1)[0]
    if often > 1:
        raise DataError(f"{often} of its features are called {quoted(name)}.")
    return tuple(names)
