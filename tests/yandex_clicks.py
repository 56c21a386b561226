"""The Yandex sample of click sessions as a log."""

import lzma

import numpy as np

from rankwright.clicks import ClickLog


def yandex_log(path):
    """Read a table with the columns session, query, docs and clicked (positions from 1)."""
    queries, documents, clicks = [], [], []
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        next(lines)  # the names of the columns
        for line in lines:
            _, query, shown, clicked, _ = line.rstrip("\n").split("\t")
            queries.append(query)
            documents.append(np.array(shown.split(","), np.int64))
            clicks.append(np.isin(np.arange(1, len(documents[-1]) + 1), _positions(clicked)))
    sizes = [len(shown) for shown in documents]
    return ClickLog.from_arrays(
        queries, np.concatenate(documents), np.concatenate(clicks), session_sizes=sizes
    )


def _positions(clicked):
    return [int(position) for position in clicked.split(",")] if clicked else []
