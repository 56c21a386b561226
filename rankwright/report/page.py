"""The report page: rankers side by side, with intervals and every query's value."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwright.data.target import atomic_text

if TYPE_CHECKING:
    from rankwright.data.ranking_data import RankingData
    from rankwright.experiments.demo import Row

_BINS = 20


def write_report(
    path: str | Path, *, title: str, data: RankingData, rows: Sequence[Row], metric: str
) -> None:
    """Write one self-contained HTML page on ``rows``, with the spread of ``metric`` per query."""
    from jinja2 import Environment, PackageLoader, select_autoescape

    pages = Environment(
        loader=PackageLoader("rankwright.report"),
        autoescape=select_autoescape(),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    html = pages.get_template("panel.html").render(
        title=title,
        metric=metric,
        metrics=list(rows[0].evaluation),
        convention=rows[0].evaluation.convention.name,
        empty=rows[0].evaluation.empty_queries,
        data=data,
        rows=[_row(row, metric) for row in rows],
    )
    with atomic_text(path) as stream:
        stream.write(html)


def _row(row: Row, metric: str) -> dict[str, Any]:
    intervals = {name: row.interval(name) for name in row.evaluation}
    values = row.evaluation.per_query[metric]
    counts, _ = np.histogram(values[np.isfinite(values)], bins=_BINS, range=(0.0, 1.0))
    return {
        "name": row.name,
        "about": row.about,
        "means": dict(row.evaluation),
        "intervals": intervals,
        "bars": (counts / max(1, counts.max())).round(4).tolist(),
        "counts": counts.tolist(),
    }
