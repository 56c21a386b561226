"""What the readers of other libraries' models return."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rankwright.core.types import FittedModel
from rankwright.data.frames import Categories
from rankwright.errors import DataError, IncompatibleError, quoted


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
    categories : mapping from names to Categories, or None
        Of features that were columns of the type category, in the codes of the library.
    """

    library: str
    objective: str
    model: FittedModel
    names: tuple[str, ...] | None
    rounds: int
    categories: Mapping[str, Categories] | None = None

    def __post_init__(self) -> None:
        """Refuse a model that gives every document the same score."""
        if not self.rounds:
            raise IncompatibleError("it has no tree; train it for one round or more.")


def distinct_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of features, of which no two may be the same."""
    name, often = Counter(names).most_common(1)[0]
    if often > 1:
        raise DataError(f"{often} of its features are called {quoted(name)}.")
    return tuple(names)


def category_list(values: Sequence[Any], *, ordered: bool = False) -> Categories:
    """Return the categories that a file lists by code; they are texts, numbers or booleans."""
    plain = all(isinstance(value, bool | int | float | str) for value in values)
    if not plain or len(set(values)) < len(values):
        raise DataError("the categories of a feature are no list of different values.")
    return Categories(tuple(values), ordered)
