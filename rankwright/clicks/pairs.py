"""The (query, document) pairs of a click log, which parameters of click models belong to."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwright.core.types import F64, I64, AnyArray
from rankwright.data.click_log import ClickLog, places_of_ids
from rankwright.errors import DataError


class PairTable(NamedTuple):
    """The (query, document) pairs of a log, ordered by both.

    Attributes
    ----------
    query_ids, document_ids : array
    query, document : (P,) int32
        Codes of each pair, indices of ``query_ids`` and ``document_ids``.
    """

    query_ids: AnyArray
    document_ids: AnyArray
    query: NDArray[np.int32]
    document: NDArray[np.int32]

    @classmethod
    def of(cls, log: ClickLog) -> tuple[PairTable, I64]:
        """Return the pairs of a log, and the pair of each impression."""
        pairs = log.pairs()
        return cls(log.query_ids, log.document_ids, pairs.query, pairs.document), pairs.code

    @property
    def n_pairs(self) -> int:
        """Number of pairs."""
        return len(self.query)

    def codes(self, log: ClickLog) -> I64:
        """Return the pair of each impression of another log; `n_pairs` for an unknown pair."""
        pairs = log.pairs()
        query = places_of_ids(log.query_ids, self.query_ids)[pairs.query]
        document = places_of_ids(log.document_ids, self.document_ids)[pairs.document]
        n = len(self.document_ids) + 1  # a document code of -1 differs from any pair
        keys = self.query.astype(np.int64) * n + self.document
        code = np.searchsorted(keys, query * n + document)
        is_known = np.append(keys, -1)[code] == query * n + document
        is_known &= (query >= 0) & (document >= 0)
        return np.where(is_known, code, self.n_pairs)[pairs.code]


def sums_of(code: AnyArray, values: AnyArray, n: int = 0) -> F64:
    """Return the sum of the values of each code, for at least ``n`` codes."""
    return np.bincount(code, values, n).astype(np.float64)


def check_log(log: Any) -> None:
    """Raise if the argument is not a click log."""
    if not isinstance(log, ClickLog):
        raise DataError(
            f"a ClickLog is expected, not {type(log).__name__}; clicks.load_log reads a file, and "
            "clicks.concatenate_logs joins several logs."
        )
