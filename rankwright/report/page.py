"""A comparison as a page: content into the template, style and script beside it in one file."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from rankwright.data.streams import atomic_text
from rankwright.report.content import report_content

if TYPE_CHECKING:
    from rankwright.comparison.result import Comparison


def write_page(comparison: Comparison, path: str | Path, *, title: str | None = None) -> None:
    """Write the page to ``path``, whole or not at all."""
    from jinja2 import Environment, PackageLoader, select_autoescape

    content = report_content(comparison)
    pages = Environment(
        loader=PackageLoader("rankwright.report"),
        autoescape=select_autoescape(),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    html = pages.get_template("report.html").render(
        title=title or f"{len(comparison.rankers)} rankers on {comparison.name}",
        content=content,
        json=_in_script(content),
        style=_part("report.css"),
        script=_part("report.js"),
    )
    with atomic_text(path) as stream:
        stream.write(html)


def _in_script(content: object) -> str:
    """Return JSON that cannot end the script element it stands in."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _part(name: str) -> str:
    return files("rankwright.report").joinpath("templates", name).read_text("utf-8")
