"""HTML pages that need nothing else: one template, with the style and script that all share."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

from rankwright.data.streams import atomic_text

_SHARED = "rankwright.comparison"  # the package whose templates have the frame of all pages


def write_page(path: str | Path, package: str, name: str, **values: Any) -> None:
    """Fill the template ``name``.html of ``package`` and write the page, whole or not at all.

    The template may extend ``page.html``, the frame of all pages.
    Style and script (theme and tips) of all pages come before ``name``.css and ``name``.js, where
    the package has them.
    """
    from jinja2 import ChoiceLoader, Environment, PackageLoader, select_autoescape

    templates = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader(_SHARED)]),
        autoescape=select_autoescape(),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    values["style"] = _text(_SHARED, "page.css") + _text(package, f"{name}.css")
    values["script"] = _text(_SHARED, "page.js") + _text(package, f"{name}.js")
    html = templates.get_template(f"{name}.html").render(**values)
    with atomic_text(path) as page:
        page.write(html)


def _text(package: str, name: str) -> str:
    """Return a file of the templates of ``package``, empty where there is none."""
    found = files(package).joinpath("templates", name)
    return found.read_text("utf-8") if found.is_file() else ""
