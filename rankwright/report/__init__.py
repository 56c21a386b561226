"""Pages for people: one self-contained HTML file, no network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rankwright.comparison.result import Comparison


def write_report(comparison: Comparison, path: str | Path, *, title: str | None = None) -> None:
    """Write a comparison as one HTML page that needs nothing else.

    It has the table with intervals and tests, every query's value, learning curves, time and size,
    feature importance, and an explorer of queries.
    """
    from rankwright.report.page import write_page

    write_page(comparison, path, title=title)
