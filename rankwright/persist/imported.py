"""Models as returned by the readers of other libraries' files."""

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
        Names of the library and its objective.
    model : fitted model
    names : tuple of str or None
        Names of the features in the order of the columns; None if they have no names.
    rounds : int
        Number of boosting iterations.
    categories : mapping from names to Categories, or None
        Values of categorical features, in the order of the codes of the library.
    """

    library: str
    objective: str
    model: FittedModel
    names: tuple[str, ...] | None
    rounds: int
    categories: Mapping[str, Categories] | None = None

    def __post_init__(self) -> None:
        """Raise for a model without trees, which gives all documents the same score."""
        if not self.rounds:
            raise IncompatibleError("it has no tree; train it for one round or more.")


def distinct_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of features, which must be different."""
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise DataError(f"{count} of its features are called {quoted(name)}.")
    return tuple(names)


def category_list(values: Sequence[Any], *, ordered: bool = False) -> Categories:
    """Return the categories in a file, in the order of their codes: text, numbers or booleans."""
    is_plain = all(isinstance(value, bool | int | float | str) for value in values)
    if not is_plain or len(set(values)) < len(values):
        raise DataError("the categories of a feature must be a list of different values.")
    return Categories(tuple(values), ordered)
