"""Click logs as the kernels of click models take them: sessions by query, or counts of cells.

Parameters of a pair of query and document are numbered by a `PairTable`. Models whose click
probability depends only on the pair and a context (a position, or a position and the click before
it) are fitted on `Cells`: impressions and clicks of each pair in each context, however many
sessions there are. Others take `Sessions`, grouped by query, so that threads that work on different
queries write to different pairs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwright.core.jit import kernel
from rankwright.core.parallel import query_ranges
from rankwright.core.types import F64, I64, AnyArray
from rankwright.data.click_log import ClickLog
from rankwright.errors import DataError

_ID_KINDS = "iu"
_DOCUMENT_BITS = 32
_CONTEXT_BITS = 32


# --- kernels ---------------------------------------------------------------------------------


@kernel
def previous_clicks(indptr, position, click, out):
    """Write the position of the click before each impression in its session, 0 without any."""
    for s in range(len(indptr) - 1):
        before = 0
        for i in range(indptr[s], indptr[s + 1]):
            out[i] = before
            if click[i]:
                before = position[i]


# --- API -------------------------------------------------------------------------------------


class PairTable(NamedTuple):
    """The (query, document) pairs of a log that parameters belong to, ordered by both.

    Attributes
    ----------
    query_ids, document_ids : array
    query, document : (P,) int32
        Codes of each pair, into ``query_ids`` and ``document_ids``.
    """

    query_ids: AnyArray
    document_ids: AnyArray
    query: NDArray[np.int32]
    document: NDArray[np.int32]

    @classmethod
    def of(cls, log: ClickLog) -> tuple[PairTable, I64]:
        """Return the pairs of a log, and the number of the pair of each impression."""
        pairs = log.pairs()
        return cls(log.query_ids, log.document_ids, pairs.query, pairs.document), pairs.code

    @property
    def n_pairs(self) -> int:
        """Number of pairs."""
        return len(self.query)

    def codes(self, log: ClickLog) -> I64:
        """Return the number of the pair of each impression; `n_pairs` for an unknown pair."""
        pairs = log.pairs()
        query = _places(self.query_ids, log.query_ids)[pairs.query]
        document = _places(self.document_ids, log.document_ids)[pairs.document]
        known = _keys(self.query, self.document)
        keys = _keys(query, document)
        code = np.searchsorted(known, keys)
        found = (query >= 0) & (document >= 0) & (code < self.n_pairs)
        found[found] = known[code[found]] == keys[found]
        return np.where(found, code, self.n_pairs)[pairs.code]


def _keys(query: AnyArray, document: AnyArray) -> I64:
    keys: I64 = (query.astype(np.int64) << _DOCUMENT_BITS) + document
    return keys


def _places(known: AnyArray, ids: AnyArray) -> I64:
    """Return the place of each id among the known ones, -1 if it is not there.

    A whole number and its text are the same id, because a log may be read from another format.
    """
    if known is ids:
        return np.arange(len(ids))
    names, others = known.tolist(), ids.tolist()
    if (known.dtype.kind in _ID_KINDS) != (ids.dtype.kind in _ID_KINDS):
        names, others = [str(name) for name in names], [str(name) for name in others]
    place: dict[Any, int] = {name: number for number, name in enumerate(names)}
    return np.array([place.get(name, -1) for name in others], np.int64)


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
    def of(cls, log: ClickLog, pair: I64) -> Sessions:
        """Return the sessions of a log in its own order."""
        weight = np.ones(log.n_sessions) if log.weight is None else log.weight
        return cls(log.indptr, pair, log.position, log.click, weight)


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

    @classmethod
    def of(cls, log: ClickLog, pair: I64, n_pairs: int, context: I64) -> Cells:
        """Return the cells of a log, from the pair and the context of each impression."""
        keys, cell = np.unique((pair << _CONTEXT_BITS) + context, return_inverse=True)
        weight = log.impression_weights()
        shown = sums_of(cell, weight, len(keys))
        clicked = sums_of(cell, weight * log.click, len(keys))
        indptr = np.searchsorted(keys >> _CONTEXT_BITS, np.arange(n_pairs + 1))
        mask = (1 << _CONTEXT_BITS) - 1
        return cls(indptr.astype(np.int64), keys & mask, shown, clicked)


def sums_of(code: AnyArray, values: AnyArray, n: int = 0) -> F64:
    """Return the sum of the values of each code, for ``n`` codes or more."""
    return np.bincount(code, values, n).astype(np.float64)


def check_log(log: Any) -> None:
    """Refuse anything but a click log."""
    if not isinstance(log, ClickLog):
        raise DataError(
            f"a ClickLog is expected, not {type(log).__name__}; clicks.load_log reads a file, and "
            "clicks.concatenate_logs joins several logs."
        )
