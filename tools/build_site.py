"""Build the documentation site: docs/, the pages that the code makes, and Sphinx over both.

``python tools/build_site.py [FOLDER]`` writes build/site, or FOLDER; a warning is an error. Sources
are put together in a folder beside it, so that nothing made is written into docs/.
"""

from __future__ import annotations

import shutil
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

from site_pages import pages
from sphinx.cmd.build import main as sphinx

DOCS = Path(__file__).resolve().parents[1] / "docs"
SHOWN = (".md", ".svg", ".png")


def main() -> int:
    """Put the sources together and build; return Sphinx's exit status."""
    site = Path(sys.argv[1] if len(sys.argv) > 1 else DOCS.parent / "build/site").resolve()
    sources = site.with_name(f"{site.name}-sources")
    write(sources, with_navigation(written_pages() | pages()))
    doctrees = site.with_name(f"{site.name}-doctrees")
    shutil.rmtree(site, ignore_errors=True)
    options = ["--fail-on-warning", "--keep-going", "--quiet", "--fresh-env", "--jobs", "2"]
    return sphinx(
        ["-b", "html", "-c", str(DOCS), "-d", str(doctrees), *options, str(sources), str(site)]
    )


def written_pages() -> dict[str, str | bytes]:
    """Return the pages and pictures of docs/ by their place."""
    found = {}
    for path in sorted(DOCS.rglob("*")):
        if path.suffix in SHOWN:
            text = path.read_text("utf-8") if path.suffix == ".md" else path.read_bytes()
            found[path.relative_to(DOCS).as_posix()] = text
    return found


def with_navigation(found: dict[str, str | bytes]) -> dict[str, str | bytes]:
    """Return the pages with the contents of each section, as docs/navigation.toml names them."""
    sections = tomllib.loads((DOCS / "navigation.toml").read_text("utf-8"))
    for page, parts in sections.items():
        for title, patterns in parts.items():
            names = [name for pattern in patterns for name in _matching(pattern, found)]
            entries = [f"/{name.rpartition('.')[0]}" for name in names if name != page]
            caption = [] if title == "pages" else [f":caption: {title}"]
            if entries:
                tree = [
                    "",
                    "```{toctree}",
                    ":hidden:",
                    ":maxdepth: 1",
                    *caption,
                    "",
                    *entries,
                    "```",
                ]
                found[page] += "\n".join([*tree, ""])
    return found


def _matching(pattern: str, found: dict[str, str | bytes]) -> list[str]:
    """Return the page of that name, or all that a pattern with * fits, which may be none."""
    if "*" not in pattern:
        return [pattern]
    return sorted((name for name in found if fnmatch(name, pattern)), key=str.lower)


def write(folder: Path, found: dict[str, str | bytes]) -> None:
    """Make ``folder`` hold these files alone; what has not changed keeps its time."""
    for path in [*folder.rglob("*")]:
        if path.is_file() and path.relative_to(folder).as_posix() not in found:
            path.unlink()
    for name, text in found.items():
        path, content = folder / name, text.encode() if isinstance(text, str) else text
        if not path.exists() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


if __name__ == "__main__":
    sys.exit(main())
