"""What RankLib's ``-score``, ``-indri`` and ``-idv`` write; a file appears whole or not at all."""

from __future__ import annotations

from collections.abc import Sequence

from rankwright.core.order import shown
from rankwright.core.types import F64
from rankwright.data.ranking_data import RankingData
from rankwright.data.streams import atomic_text
from rankwright.ranklib.java_numbers import java_double, rounded
from rankwright.ranklib.measures import mean


def write_scores(data: RankingData, scores: F64, path: str) -> None:
    """Write ``query number score`` lines, documents numbered from 0 in each list."""
    values = scores.tolist()
    with atomic_text(path) as target:
        for q, query in enumerate(data.qid.tolist()):
            start, end = data.indptr[q : q + 2].tolist()
            for row in range(start, end):
                target.write(f"{query}\t{row - start}\t{java_double(values[row])}\n")


def write_ranking(data: RankingData, scores: F64, path: str) -> None:
    """Write each list, best first, as ``query Q0 name rank score indri``; equal scores as read."""
    order, indptr = shown(scores, data.indptr)
    names = [""] * data.n_documents if data.doc_id is None else data.doc_id.tolist()
    with atomic_text(path) as target:
        for q, query in enumerate(data.qid.tolist()):
            rows = order[indptr[q] : indptr[q + 1]].tolist()
            for rank, row in enumerate(rows, 1):
                score = rounded(float(scores[row]), 5)
                target.write(f"{query} Q0 {names[row]} {rank} {score} indri\n")


def write_values(label: str, names: Sequence[object], values: F64, path: str) -> None:
    """Write ``measure   query   value`` lines, and the mean as that of ``all``."""
    with atomic_text(path) as target:
        for name, value in zip(names, values.tolist(), strict=True):
            target.write(f"{label}   {name}   {java_double(value)}\n")
        target.write(f"{label}   all   {java_double(mean(values))}\n")
