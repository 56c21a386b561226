"""Categories: features whose values are names, stored as numbers with the names kept beside.

A column of the type category (pandas ``category``, polars ``Categorical`` and ``Enum``, an Arrow
dictionary) is in ``RankingData.X`` as codes 0, 1, ..., NaN where it is missing; `Categories` says
what each code stands for. Codes of two data sets are brought together by value, never by code. The
categories of an unordered column are sorted, so that their order in a frame changes nothing; those
of an ordered one keep its order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwright.core.types import F64, AnyArray
from rankwright.errors import DataError, quoted

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Categories:
    """What the codes 0, 1, ... of a feature stand for.

    Attributes
    ----------
    values : tuple
        Texts, numbers or booleans; the place of each is its code.
    ordered : bool
        Whether the order of the values has a meaning, as small < medium < large has: trees then
        split the codes as numbers.
    """

    values: tuple[Any, ...]
    ordered: bool = False

    @classmethod
    def of(cls, values: Iterable[Any], *, ordered: bool = False) -> Categories:
        """Return the categories of these values, sorted unless they are ``ordered``."""
        plain = dict.fromkeys(plain_value(value) for value in values)
        plain.pop(None, None)
        return cls(tuple(plain if ordered else sorted(plain, key=_order)), ordered)

    def codes(self, values: Sequence[Any]) -> F64:
        """Return the code of each value; NaN where it is missing, or not among the categories."""
        known: dict[Any, float] = {value: float(code) for code, value in enumerate(self.values)}
        return np.array([known.get(plain_value(value), np.nan) for value in values], np.float64)

    def value(self, code: float) -> Any:
        """Return what a code stands for, None where it is missing or none of the codes."""
        known = code == code and 0 <= code < len(self.values)
        return self.values[int(code)] if known else None

    def column(self, codes: AnyArray) -> AnyArray:
        """Return the value of each code, None where it is missing."""
        values = np.empty(len(self.values) + 1, object)
        values[:-1] = self.values
        return values[self.whole(codes)]

    def whole(self, codes: AnyArray) -> AnyArray:
        """Return the codes as whole numbers, -1 where a value is missing."""
        known = (codes >= 0) & (codes < len(self.values))
        return np.where(known, np.where(known, codes, 0), -1).astype(np.int64)

    def recoded(self, codes: AnyArray, there: Categories) -> AnyArray:
        """Return codes of ``there`` as codes of these categories, by value."""
        return np.append(self.codes(there.values), np.nan)[there.whole(codes)].astype(codes.dtype)

    def __len__(self) -> int:
        return len(self.values)

    def __str__(self) -> str:
        shown = ", ".join(repr(value) for value in self.values[:_SHOWN])
        return f"{shown}, ..." if len(self.values) > _SHOWN else shown


@dataclass(frozen=True, slots=True, eq=False)
class CategoryColumn:
    """A column of a table to be written: codes and what they stand for."""

    codes: AnyArray
    categories: Categories

    @property
    def dtype(self) -> Any:
        """The type of the values."""
        return np.dtype(object)

    def tolist(self) -> list[Any]:
        """Return the values, None where one is missing."""
        found: list[Any] = self.categories.column(self.codes).tolist()
        return found

    def __len__(self) -> int:
        return len(self.codes)


AllCategories = Mapping[str, Categories]
"""Name of a feature -> its categories."""


def plain_value(value: Any) -> Any:
    """Return a category as a text, number or boolean, which files can hold; None if missing."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or value != value or type(value).__name__ in ("NAType", "NaTType"):
        return None
    return value if isinstance(value, bool | int | float | str) else str(value)


def _order(value: Any) -> tuple[bool, Any]:
    return isinstance(value, str), value


def checked_categories(given: Any, names: Sequence[str] | None) -> dict[str, Categories] | None:
    """Return categories by the name of their feature, as data and model files keep them."""
    found = {
        str(name): own if isinstance(own, Categories) else Categories(tuple(own))
        for name, own in dict(given or {}).items()
    }
    for name in found:
        if names is None or name not in names:
            raise DataError(f"there are categories of {quoted(name)}, which is no feature by name.")
    return {name: found[name] for name in names or () if name in found} or None


def joined(several: Sequence[AllCategories | None]) -> dict[str, Categories] | None:
    """Return for each feature the categories that any of ``several`` has."""
    found: dict[str, Categories] = {}
    for own in several:
        for name, here in (own or {}).items():
            before = found.get(name, here)
            both = before.ordered and here.ordered
            if before != here:
                here = Categories.of((*before.values, *here.values), ordered=both)
            found[name] = here
    return found or None


def recoded(
    X: Any,
    names: Sequence[str] | None,
    there: AllCategories | None,
    here: AllCategories | None,
    where: str,
) -> Any:
    """Return features whose columns ``names`` have the categories ``there`` in those of ``here``.

    A column that has categories ``here`` alone is taken to hold their codes.
    """
    columns = list(names or ())
    for name in there or ():
        if name in columns and name not in (here or {}):
            raise DataError(
                f"column {quoted(name)} of {where} is a category, and the ranker was fitted to it "
                "as a number; give it as a number."
            )
    differ = [
        name
        for name, own in (there or {}).items()
        if name in columns and here[name] != own  # type: ignore[index]
    ]
    if not differ:
        return X
    assert there is not None
    assert here is not None
    changed = X.toarray() if hasattr(X, "toarray") else X.copy()
    for name in differ:
        column = columns.index(name)
        changed[:, column] = here[name].recoded(changed[:, column], there[name])
    return changed


def as_json(categories: AllCategories | None) -> dict[str, Any]:
    """Return categories as JSON holds them."""
    return {
        name: {"values": list(own.values), "ordered": own.ordered}
        for name, own in (categories or {}).items()
    }


def from_json(held: Any, names: Sequence[str] | None) -> dict[str, Categories] | None:
    """Return categories from what JSON holds; what `as_json` did not write is a ValueError."""
    found = {}
    for name, own in dict(held or {}).items():
        values = own["values"]
        plain = isinstance(values, list) and all(
            isinstance(value, bool | int | float | str) for value in values
        )
        if not plain or len(set(values)) < len(values):
            raise ValueError(f"categories of {name} that are no list of different values")
        found[name] = Categories(tuple(values), bool(own["ordered"]))
    return checked_categories(found, names)
