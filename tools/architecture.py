"""Draw which package imports which, in the layers of pyproject.toml: docs/architecture.svg.

An arrow stands for imports, thicker for more of them. Almost every package uses ``core``, ``data``,
``errors`` and ``registry``; arrows to them are left out. An import against the layers is an error,
not an arrow.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WIDTH, ROW, BOX_HEIGHT, MARGIN = 1180, 116, 54, 20
EVERYWHERE = {"core", "data"}
STYLE = """
  svg { font: 13px system-ui, sans-serif; color-scheme: light dark; }
  .card { fill: #ffffff; }
  .box { fill: #f4f1ea; stroke: #8a8172; }
  .name { font-weight: 600; fill: #1d1b18; }
  .about { fill: #5b554b; font-size: 11px; }
  .arrow { fill: none; stroke: #3a6ea5; opacity: .45; }
  .head { fill: #3a6ea5; }
  @media (prefers-color-scheme: dark) {
    .card { fill: #14181e; }
    .box { fill: #2a2824; stroke: #8a8172; }
    .name { fill: #f4f1ea; }
    .about { fill: #c9c1b3; }
    .arrow { stroke: #8fbce8; }
    .head { fill: #8fbce8; }
  }
"""


def architecture_svg() -> str:
    """Return the picture."""
    rows = layers()
    imports = package_imports(packages={name for row in rows for name in row})
    level = {name: depth for depth, row in enumerate(rows) for name in row}
    against = sorted(pair for pair in imports if level[pair[0]] > level[pair[1]])
    if against:
        raise SystemExit(f"{against[0][0]} imports {against[0][1]}, which is above it.")
    place = _places(rows)
    height = MARGIN * 2 + ROW * (len(rows) - 1) + BOX_HEIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        "<title>The packages of rankwright and who imports whom</title>",
        f"<style>{STYLE}</style>",
        f'<rect class="card" width="{WIDTH}" height="{height}" rx="12"/>',
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" markerUnits="userSpaceOnUse" orient="auto">'
        '<path class="head" d="M0 0 8 4 0 8z"/></marker></defs>',
    ]
    for (a, b), count in sorted(imports.items()):
        if b in EVERYWHERE:
            continue
        parts.append(_arrow(place[a], place[b], count, f"{a} imports {b} in {count} places"))
    for name, (x, y, width) in place.items():
        parts.append(_box(name, x, y, width))
    return "\n".join([*parts, "</svg>", ""])


def layers() -> list[list[str]]:
    """Return the packages of each layer, the command line first, as lint-imports checks them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    written = next(one["layers"] for one in contracts if one["name"] == "layers")
    return [re.findall(r"rankwright\.(\w+)", row) for row in written]


def package_imports(packages: set[str]) -> Counter[tuple[str, str]]:
    """Return how many imports lead from modules of one package to modules of another."""
    import grimp

    graph = grimp.build_graph("rankwright", exclude_type_checking_imports=True)
    found: Counter[tuple[str, str]] = Counter()
    for module in graph.modules:
        for other in graph.find_modules_directly_imported_by(module):
            pair = _package(module), _package(other)
            if pair[0] != pair[1] and set(pair) <= packages:
                found[pair] += 1
    return found


def _package(module: str) -> str:
    return f"{module}.".split(".")[1]


def _places(rows: list[list[str]]) -> dict[str, tuple[float, float, float]]:
    """Return left end, top and width of each package's box."""
    place = {}
    for depth, row in enumerate(rows):
        width = min(230.0, (WIDTH - 2 * MARGIN - 16 * (len(row) - 1)) / len(row))
        gap = (WIDTH - 2 * MARGIN - width * len(row)) / (len(row) + 1)
        for k, name in enumerate(row):
            place[name] = (MARGIN + gap + k * (width + gap), MARGIN + depth * ROW, width)
    return place


def _box(name: str, x: float, y: float, width: float) -> str:
    files = len(list((ROOT / "rankwright" / name).glob("*.py"))) - 1
    middle = x + width / 2
    about = f"{files} files" + (", used by all above" if name in EVERYWHERE else "")
    return (
        f'<rect class="box" x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{BOX_HEIGHT}" '
        f'rx="6"/><text class="name" x="{middle:.0f}" y="{y + 23:.0f}" text-anchor="middle">'
        f'{escape(name)}</text><text class="about" x="{middle:.0f}" y="{y + 41:.0f}" '
        f'text-anchor="middle">{about}</text>'
    )


def _arrow(
    start: tuple[float, float, float], end: tuple[float, float, float], count: int, title: str
) -> str:
    (ax, ay, aw), (bx, by, bw) = start, end
    a, b = ax + aw / 2, bx + bw / 2
    if ay == by:  # beside: over the boxes from top to top
        lift = ay - 14 - 0.04 * abs(a - b)
        path = f"M{a:.0f} {ay:.0f}C{a:.0f} {lift:.0f} {b:.0f} {lift:.0f} {b:.0f} {by:.0f}"
    else:
        top = ay + BOX_HEIGHT
        middle = (top + by) / 2
        path = f"M{a:.0f} {top:.0f}C{a:.0f} {middle:.0f} {b:.0f} {middle:.0f} {b:.0f} {by:.0f}"
    width = min(5.0, 0.8 + 0.35 * count**0.7)
    return (
        f'<path class="arrow" stroke-width="{width:.1f}" marker-end="url(#head)" d="{path}">'
        f"<title>{escape(title)}</title></path>"
    )
