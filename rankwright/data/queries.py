"""Things that are made of queries: how many, one by its id, one after the other."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from rankwright.core.types import AnyArray
from rankwright.errors import DataError

Q = TypeVar("Q")
_SHOWN = 3  # ids that an error message names


class UnknownQueryError(DataError, KeyError):
    """A query id is not in the data."""

    __str__ = Exception.__str__  # KeyError shows the sentence in quotes


class ByQuery(Generic[Q]):
    """Length, iteration and indexing by query, for a class with query ids ``qid``.

    ``len`` is the number of queries, iteration yields one after the other, and ``things[qid]`` is
    the query with that id: neither a query number nor a slice.
    """

    __slots__ = ()

    qid: AnyArray
    instead_of_slices: ClassVar[str]  # what an error message recommends

    @abstractmethod
    def _query(self, number: int) -> Q:
        """Return the query of this number, from 0."""

    def __len__(self) -> int:
        return len(self.qid)

    def __iter__(self) -> Iterator[Q]:
        return map(self._query, range(len(self.qid)))

    def __contains__(self, query: object) -> bool:
        return self._find(query) is not None

    def __getitem__(self, query: Any) -> Q:
        number = self._find(query)
        if number is None:
            raise UnknownQueryError(self._not_there(query))
        return self._query(number)

    def _id(self, number: int) -> Any:
        """Return the id of a query, numbers and texts as Python's own."""
        value = self.qid[number]
        return value.item() if self.qid.dtype.kind in "biufU" else value

    def _find(self, query: Any) -> int | None:
        """Return the number of the query with this id."""
        if _is_many(query):
            return None
        if self.qid.dtype.kind == "O":  # any objects, tuples too
            return next((n for n, known in enumerate(self.qid.tolist()) if known == query), None)
        if np.ndim(query):
            return None
        found = np.flatnonzero(np.asarray(self.qid == query))
        return int(found[0]) if len(found) else None

    def _not_there(self, query: Any) -> str:
        if _is_many(query):
            what = f"{type(self).__name__}[...] takes the id of one query, not {query!r}"
            return f"{what}; {self.instead_of_slices}."
        ids = self.qid.tolist()
        near = get_close_matches(str(query), [str(known) for known in ids], n=1)
        alike = [known for known in ids if near and str(known) == near[0]]
        if alike:
            return f"there is no query {query!r}; did you mean {alike[0]!r}?"
        shown = ", ".join(repr(known) for known in ids[:_SHOWN])
        more = ", ..." if len(ids) > _SHOWN else ""
        return f"there is no query {query!r}; the ids of the {len(ids)} queries are {shown}{more}."


def _is_many(query: Any) -> bool:
    """Whether this asks for several queries, as a slice or a list would."""
    return isinstance(query, slice | list) or (isinstance(query, np.ndarray) and query.ndim > 0)
