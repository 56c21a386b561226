"""Text files of LightGBM and XGBoost, with a second file for the sizes of queries.

``train.txt`` has svmlight lines without ``qid:``, with feature ids from 0. ``train.txt.query`` has
the number of rows of each query, one per line. ``train.txt.weight`` and ``train.txt.position``,
with a value for each row, are read if they exist. Queries have no ids and are numbered from 0.
XGBoost has the sizes in ``train.txt.group``, and a weight per query in ``train.txt.weight``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rankwright.core.types import I64
from rankwright.data.formats import Format
from rankwright.data.frames import ids_of_text
from rankwright.data.letor import Letor
from rankwright.data.ranking_data import RankingData
from rankwright.data.streams import beside, error_at, number_at, open_bytes, text_lines
from rankwright.errors import DataError, quoted
from rankwright.registry import EXTENSIONS

_MOST_DIGITS = 12  # of the size of a query


class LightGBMText:
    """LightGBM's text without query ids, with their sizes in FILE.query (XGBoost: FILE.group)."""

    @staticmethod
    def has_no_query_ids(path: str | Path) -> bool:
        """Return whether the first line of ``path`` has no query id, so that sizes are needed."""
        if not Path(path).is_file():
            return False
        with open_bytes(path) as stream:
            lines = (line for line in stream if line.strip() and not line.startswith(b"#"))
            first = next(lines, b"")
        return b"qid:" not in first

    def read(self, path: str | Path, *, zero_based: bool = True, **options: Any) -> RankingData:
        """Read ``path`` and its files of sizes, weights and positions.

        Parameters
        ----------
        zero_based
            Whether feature ids start at 0, as in LightGBM, or at 1.
        **options
            ``dtype``, ``absent``, ``sparse``, ``n_features`` and ``n_jobs``, as for LETOR text.
        """
        sizes_file = beside(path, "query", "group")
        if sizes_file is None:
            raise DataError(f"{path}.query does not exist; it holds the sizes of the queries.")
        sizes = _read_sizes(sizes_file)
        data = Letor.read(path, zero_based=zero_based, group_sizes=sizes, **options)
        return _with_weights_and_positions(data, path, by_query=sizes_file.suffix == ".group")


# --- reading ---------------------------------------------------------------------------------


def _values(path: Path) -> Iterator[tuple[int, str]]:
    return ((line, text.strip()) for line, text in text_lines(path))


def _read_sizes(path: Path) -> I64:
    sizes = []
    for line, text in _values(path):
        if not (text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS):
            error_at(path, line, f"the size of a query is a whole number, not {quoted(text)}")
        sizes.append(int(text))
    return np.array(sizes, np.int64)


def _with_weights_and_positions(
    data: RankingData, path: str | Path, *, by_query: bool
) -> RankingData:
    """Add the weights of documents, or of queries if ``by_query``, and the positions."""
    weight_file, position_file = beside(path, "weight"), beside(path, "position")
    if weight_file is not None:
        weights = []
        for line, text in _values(weight_file):
            weights.append(number_at(text, weight_file, line, "the weight"))
            if not 0 <= weights[-1] < np.inf:
                error_at(weight_file, line, f"a weight is finite and 0 or more, not {text}")
        count, unit = (data.n_queries, "queries") if by_query else (data.n_documents, "documents")
        _check_length(weight_file, weights, count, unit)
        if by_query:
            data = replace(data, query_weight=np.array(weights))
        else:
            data = replace(data, sample_weight=np.array(weights))
    if position_file is not None:
        positions = [text for _, text in _values(position_file)]
        _check_length(position_file, positions, data.n_documents, "documents")
        data = replace(data, position=ids_of_text(positions))
    return data


def _check_length(path: Path, values: list[Any], count: int, unit: str) -> None:
    if len(values) != count:
        raise DataError(f"{path} has {len(values)} lines for {count} {unit}.")


LIGHTGBM = Format(
    description=(
        "LightGBM's text without query ids, their sizes in FILE.query (XGBoost: FILE.group)."
    ),
    extensions=EXTENSIONS["lightgbm"],
    read=LightGBMText().read,
    read_options=("zero_based", "dtype", "absent", "sparse", "n_features", "n_jobs"),
    recognises=LightGBMText.has_no_query_ids,
)
