"""Ranking data with a JSON object per line and document."""

import json
from pathlib import Path

import numpy as np

from rankwright.data import Format, RankingData


def read(path):
    """Read a file."""
    rows = [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]
    X, y, qid = (np.array([row[name] for row in rows]) for name in ("x", "y", "qid"))
    return RankingData.from_arrays(X.astype(np.float64), y, qid=qid)


def write(data, path):
    """Write a file."""
    query = data.qid[data.query_of_row()]
    rows = zip(np.asarray(data.X).tolist(), data.y.tolist(), query.tolist(), strict=True)
    lines = [json.dumps({"x": x, "y": y, "qid": qid}) + "\n" for x, y, qid in rows]
    Path(path).write_text("".join(lines), encoding="utf-8")


LINES = Format(
    description="A JSON object per line: query, grade and features.",
    extensions=(".samplelines",),
    read=read,
    write=write,
)
