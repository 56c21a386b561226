"""Click logs as the kernels of click models take them: sessions by query, or counts of cells.

Parameters of a pair of query and document are numbered by a `PairTable`, which grows as parts of a
log go by. Models whose click probability depends on the pair and a context alone (a position, or a
position and the click before it) are fitted on `Cells`: impressions and clicks of each pair in each
context, however many sessions there are. Others take `Sessions`, grouped by query, so that threads
that work through different queries write to different pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rankwright.core.jit import kernel
from rankwright.core.parallel import query_ranges
from rankwright.core.types import F64, I64, AnyArray
from rankwright.data.click_log import ClickLog
from rankwright.errors import DataError

_DOCUMENT_BITS = 32
_CONTEXT_BITS = 32
_ID_KINDS = "iu"


class LogParts(Protocol):
    """A log that comes in parts of whole sessions, as often as asked: `ClickLog`, `LogFile`."""

    def parts(self) -> Iterable[ClickLog]:
        """Return the parts, from the first."""


# --- kernels ---------------------------------------------------------------------------------


@kernel
def previous_clicks(indptr, position, click, out):  # type: ignore[no-untyped-def]
    """Write the position of the click before each impression in its session, 0 without any."""
    for s in range(len(indptr) - 1):
        before = 0
        for i in range(indptr[s], indptr[s + 1]):
            out[i] = before
            if click[i]:
                before = position[i]


@kernel
def _sort_by_pair(indptr, pair, context, click, weight, place, kept, shown, clicked):  # type: ignore[no-untyped-def]
    """Copy impressions to the places of their pair; ``place[p]`` is the next one of pair p."""
    for s in range(len(indptr) - 1):
        for i in range(indptr[s], indptr[s + 1]):
            at = place[pair[i]]
            place[pair[i]] = at + 1
            kept[at] = context[i]
            shown[at] = weight[s]
            clicked[at] = weight[s] if click[i] else 0.0


@kernel
def _add_up_cells(starts, context, shown, clicked, seen, slot, size):  # type: ignore[no-untyped-def]
    """Add up the impressions of each pair in equal contexts, in place; ``size[p]`` are left."""
    for p in range(len(starts) - 1):
        end = starts[p]
        for i in range(starts[p], starts[p + 1]):
            c = context[i]
            if seen[c] != p:
                seen[c] = p
                slot[c] = end
                context[end], shown[end], clicked[end] = c, shown[i], clicked[i]
                end += 1
            else:
                shown[slot[c]] += shown[i]
                clicked[slot[c]] += clicked[i]
        size[p] = end - starts[p]


# --- API -------------------------------------------------------------------------------------


class PairTable:
    """The (query, document) pairs that parameters belong to, numbered as they appear.

    Attributes
    ----------
    query, document : (P,) int64
        Codes of each pair, into ``query_ids`` and ``document_ids``.
    """

    def __init__(self) -> None:
        self._queries, self._documents = _Ids(), _Ids()
        self.query = self.document = np.empty(0, np.int64)
        self._keys = self._codes = np.empty(0, np.int64)  # sorted by key

    @classmethod
    def restored(
        cls, query_ids: AnyArray, document_ids: AnyArray, query: I64, document: I64
    ) -> PairTable:
        """Return the table of these pairs."""
        table = cls()
        table._queries.codes(query_ids, grow=True)
        table._documents.codes(document_ids, grow=True)
        table.query, table.document = query, document
        keys = (query << _DOCUMENT_BITS) + document
        order = np.argsort(keys, kind="stable")
        table._keys, table._codes = keys[order], order
        return table

    @property
    def query_ids(self) -> AnyArray:
        """The ids of queries."""
        return self._queries.names()

    @property
    def document_ids(self) -> AnyArray:
        """The ids of documents."""
        return self._documents.names()

    def __len__(self) -> int:
        return len(self.query)

    def codes(self, log: ClickLog, *, grow: bool = False) -> I64:
        """Return the number of the pair of each impression.

        Pairs that are not there are added if the table may ``grow``; else their number is the
        length of the table, one above the last.
        """
        pairs = log.pairs()
        query = self._queries.codes(log.query_ids, grow=grow)[pairs.query]
        document = self._documents.codes(log.document_ids, grow=grow)[pairs.document]
        keys = (query << _DOCUMENT_BITS) + document
        at = np.searchsorted(self._keys, keys)
        known = (query >= 0) & (document >= 0) & (at < len(self._keys))
        known[known] = self._keys[at[known]] == keys[known]
        code = np.full(len(keys), len(self), np.int64)
        code[known] = self._codes[at[known]]
        if grow and not known.all():
            new = ~known
            code[new] = np.arange(len(self), len(self) + int(new.sum()))
            self.query = np.concatenate((self.query, query[new]))
            self.document = np.concatenate((self.document, document[new]))
            everything = np.concatenate((self._keys, keys[new]))
            order = np.argsort(everything, kind="stable")
            self._codes = np.concatenate((self._codes, code[new]))[order]
            self._keys = everything[order]
        return code[pairs.code]

    def query_codes(self, log: ClickLog) -> I64:
        """Return the number of the query of each session; all queries must be there."""
        return self._queries.codes(log.query_ids, grow=False)[log.query]


class _Ids:
    """Names numbered as they appear. The text of a whole number and the number are one name."""

    def __init__(self) -> None:
        self._number: dict[Any, int] = {}
        self._text = False
        self._last: tuple[AnyArray, bool, I64] | None = None

    def names(self) -> AnyArray:
        found = np.empty(len(self._number), object)
        found[:] = list(self._number)
        if not len(found):
            return found
        plain = np.array(list(self._number))
        return plain if plain.dtype.kind in "iuU" else found

    def codes(self, ids: AnyArray, *, grow: bool) -> I64:
        """Return the number of each id, -1 where it is not there and may not be added."""
        if self._last is not None and self._last[0] is ids and (self._last[1] or not grow):
            return self._last[2]  # as the parts of one log do it
        listed = self._as_here(ids, grow)
        number = self._number
        if grow:
            found = [number.setdefault(one, len(number)) for one in listed]
        else:
            found = [number.get(one, -1) for one in listed]
        codes = np.array(found, np.int64)
        self._last = ids, grow, codes
        return codes

    def _as_here(self, ids: AnyArray, grow: bool) -> list[Any]:
        """Return ids as the names here are: numbers, or texts once one is no number."""
        text = ids.dtype.kind not in _ID_KINDS
        if grow and not self._number:
            self._text = text
        listed: list[Any] = ids.tolist()
        if text == self._text:
            return listed
        if not text:
            return [str(one) for one in listed]
        if not grow:
            return [_number_of(one) for one in listed]
        self._number = {str(one): code for one, code in self._number.items()}
        self._text = True
        return listed


def _number_of(name: Any) -> Any:
    """Return the whole number that a text writes; anything else as it is."""
    plain = isinstance(name, str) and name.removeprefix("-").isdecimal()
    return int(name) if plain and str(int(name)) == name else name


class Sessions(NamedTuple):
    """Sessions grouped by query.

    Attributes
    ----------
    indptr : (S + 1,) int64
    pair : (n,) int64
        Parameters of each impression's query and document.
    position : (n,) int32
    click : (n,) bool
    weight : (S,) float64
    """

    indptr: I64
    pair: I64
    position: NDArray[np.int32]
    click: NDArray[np.bool_]
    weight: F64

    @classmethod
    def of(cls, log: ClickLog, table: PairTable, *, grow: bool) -> Sessions:
        """Return the sessions of a log in its own order."""
        weight = np.ones(log.n_sessions) if log.weight is None else log.weight
        return cls(log.indptr, table.codes(log, grow=grow), log.position, log.click, weight)


def by_query(log: ClickLog) -> tuple[ClickLog, I64]:
    """Return the log query by query, and session numbers that cut it into ranges of queries."""
    if (np.diff(log.query) < 0).any():
        log = log.select(np.argsort(log.query, kind="stable"))
    first = np.flatnonzero(np.concatenate(([True], log.query[1:] != log.query[:-1])))
    starts = np.concatenate((first, [log.n_sessions])) if log.n_sessions else np.array([0])
    return log, starts[query_ranges(log.indptr[starts])]


class Cells(NamedTuple):
    """Impressions and clicks of each pair in each context, pair after pair.

    Attributes
    ----------
    indptr : (P + 1,) int64
        The cells of each pair.
    context : (m,) int64
    shown, clicked : (m,) float64
    """

    indptr: I64
    context: I64
    shown: F64
    clicked: F64

    def pair(self) -> I64:
        """Return the pair of each cell."""
        return np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))


class CellCounter:
    """Adds up the cells of the parts of a log.

    Parameters
    ----------
    context_of
        Returns the context of each impression of a part, a number from 0.
    """

    def __init__(self, context_of: Callable[[ClickLog], I64]) -> None:
        self.table = PairTable()
        self._context_of = context_of
        self._keys = np.empty(0, np.int64)
        self._sums = np.empty((2, 0))
        self._waiting: list[tuple[I64, AnyArray]] = []

    def add(self, log: ClickLog) -> None:
        """Add the impressions of a part."""
        pair, context = self.table.codes(log, grow=True), self._context_of(log)
        keys, sums = _part_cells(log, pair, context, len(self.table))
        self._waiting.append((keys, sums))
        if sum(len(keys) for keys, _ in self._waiting) > len(self._keys):
            self._merge()

    def _merge(self) -> None:
        keys = np.concatenate([self._keys, *(keys for keys, _ in self._waiting)])
        sums = np.concatenate([self._sums, *(sums for _, sums in self._waiting)], axis=1)
        self._waiting = []
        self._keys, number = np.unique(keys, return_inverse=True)
        merged = [np.bincount(number, values, len(self._keys)) for values in sums]
        self._sums = np.array(merged, np.float64).reshape(2, -1)

    def cells(self) -> Cells:
        """Return what was added up."""
        self._merge()
        pair, context = self._keys >> _CONTEXT_BITS, self._keys & ((1 << _CONTEXT_BITS) - 1)
        indptr = np.searchsorted(pair, np.arange(len(self.table) + 1))
        return Cells(indptr.astype(np.int64), context, self._sums[0], self._sums[1])


def _part_cells(log: ClickLog, pair: I64, context: I64, n_pairs: int) -> tuple[I64, AnyArray]:
    """Return a key for each cell of a part, and its impressions and clicks."""
    n, n_contexts = log.n_impressions, int(context.max()) + 1 if len(context) else 0
    starts = np.concatenate(([0], np.cumsum(np.bincount(pair, minlength=n_pairs)))).astype(np.int64)
    kept, shown, clicked = np.empty(n, np.int64), np.empty(n), np.empty(n)
    weight = np.ones(log.n_sessions) if log.weight is None else log.weight
    _sort_by_pair(
        log.indptr, pair, context, log.click, weight, starts[:-1].copy(), kept, shown, clicked
    )
    size = np.empty(n_pairs, np.int64)
    seen, slot = np.full(n_contexts, -1, np.int64), np.empty(n_contexts, np.int64)
    _add_up_cells(starts, kept, shown, clicked, seen, slot, size)
    at = np.arange(size.sum()) + np.repeat(starts[:-1] - (np.cumsum(size) - size), size)
    keys = (np.repeat(np.arange(n_pairs), size) << _CONTEXT_BITS) + kept[at]
    return keys, np.stack((shown[at], clicked[at]))


def parts_of(log: LogParts | Sequence[ClickLog]) -> Iterable[ClickLog]:
    """Return the parts of a log, of a log in a file, or of several logs."""
    if hasattr(log, "parts"):
        return log.parts()
    if isinstance(log, Sequence) and all(isinstance(one, ClickLog) for one in log):
        return (part for one in log for part in one.parts())
    raise DataError(
        f"a click log is expected, not {type(log).__name__}: a ClickLog, several in a list, or "
        "what clicks.open_log returns."
    )
