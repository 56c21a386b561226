"""Pages that the documentation site makes of the code: one per algorithm, and the API.

A hook of MkDocs (`mkdocs.yml`); nothing is written into docs/.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Iterator, Mapping
from inspect import getdoc, signature
from itertools import groupby
from pathlib import Path
from typing import Any

from griffe import Docstring, DocstringSectionKind
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from rankwright import _PUBLIC, registry
from rankwright.rankers.base import Ranker

DOCS = Path(__file__).resolve().parents[1] / "docs"
PARTS = {"losses": "Losses", "models": "Models", "solvers": "Solvers", "metrics": "Metrics",
         "formats": "Formats"}  # fmt: skip


# --- the hook --------------------------------------------------------------------------------


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the made pages where the navigation has their placeholders."""
    made = {
        "generated/algorithms": [f"algorithms/{name}.md" for name in sorted(registry.RANKERS)],
        "generated/api": [f"api/{name}.md" for name in ("public", *PARTS)],
    }
    config.nav = _filled(config.nav, made)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the made pages to those of docs/."""
    for uri, text in pages().items():
        files.append(File.generated(config, uri, content=text))
    return files


def pages() -> dict[str, str]:
    """Return every made page by its place below docs/."""
    when = tomllib.loads((DOCS / "when-to-use.toml").read_text(encoding="utf-8"))
    found = {"api/public.md": public_page()}
    for name in registry.RANKERS:
        found[f"algorithms/{name}.md"] = algorithm_page(name, when[name])
    for kind, title in PARTS.items():
        found[f"api/{kind}.md"] = part_page(kind, title)
    return found


def _filled(nav: Any, made: Mapping[str, list[str]]) -> Any:
    if isinstance(nav, list):
        return [_filled(entry, made) for entry in nav]
    if isinstance(nav, dict):
        return {title: _filled(entry, made) for title, entry in nav.items()}
    return made.get(nav, nav)


# --- one page per algorithm ------------------------------------------------------------------


def algorithm_page(name: str, when: str) -> str:
    """Return the page of a ranker: what it is, when to use it, equations, parameters, figures."""
    ranker = registry.resolve("rankers", name)
    lines = [f"# {name}", "", *_first_paragraphs(ranker)]
    lines += ["", f"In Python `rankwright.{ranker.__name__}`, on the command line `{name}`."]
    lines += ["", "## When to use it", "", when.strip()]
    lines += ["", *_mathematics(ranker), "", *_parameters(ranker)]
    figures = list(_figures(name))
    if figures:
        lines += ["", "## Measured", "", *figures]
    return "\n".join(lines) + "\n"


def _first_paragraphs(part: Any) -> list[str]:
    """Return the text of a docstring before its sections."""
    sections = Docstring(getdoc(part) or "").parse("numpy", warnings=False)
    text = [s.value for s in sections if s.kind is DocstringSectionKind.text][:1]
    return "\n".join(text).splitlines()


def _mathematics(ranker: type[Ranker]) -> Iterator[str]:
    """Yield the problem as the loss's module states it; of a model, where there is no loss."""
    kind, name = ("losses", ranker.loss_class) if ranker.loss_class else ("models", _model(ranker))
    module = sys.modules[registry.resolve(kind, name).__module__]
    what = "loss" if kind == "losses" else "model"
    yield f"## Definition: {what} `{name}`"
    yield ""
    yield "```text"
    yield (module.__doc__ or "").strip()
    yield "```"


def _model(ranker: type[Ranker]) -> str:
    """Return the name of a ranker's default model."""
    return ranker().model_name


def _parameters(ranker: type[Ranker]) -> Iterator[str]:
    """Yield a table of the parameters with their defaults, as the ranker's docstring has them."""
    defaults = {
        name: parameter.default
        for name, parameter in signature(ranker.__init__).parameters.items()
        if name != "self"
    }
    yield "## Parameters"
    yield ""
    yield (
        f"The model is `{_model(ranker)}`; `model=` takes another one, as an object of "
        "`rankwright.models` or by its name. Parameters of the model that are not here go to "
        "it: `model=models.Trees(max_bins=63)`, on the command line `--set model.max_bins=63`."
    )
    yield ""
    yield "| parameters with their defaults | meaning |"
    yield "|---|---|"
    found = [(name, default, _about(ranker, name)) for name, default in defaults.items()]
    for about, group in groupby(found, key=lambda one: one[2]):
        names = ", ".join(f"`{name}={default!r}`" for name, default, _ in group)
        yield f"| {_cell(names)} | {_cell(about)} |"


def _about(part: Any, name: str) -> str:
    """Return what a docstring says of a parameter."""
    for section in Docstring(getdoc(part) or "").parse("numpy", warnings=False):
        if section.kind is DocstringSectionKind.parameters:
            for one in section.value:
                if name in (word.strip() for word in one.name.split(",")):
                    return str(one.description)
    return ""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _figures(name: str) -> Iterator[str]:
    """Yield a table of what reproductions measured for this ranker."""
    rows = []
    for path in sorted((DOCS / "reproduction").glob("*.json")):
        found = json.loads(path.read_text(encoding="utf-8"))
        mine = {row for row, ranker in found["rankers"].items() if ranker == name}
        for row in found["rows"]:
            if row["row"] in mine and row["ours"] is not None:
                place = f"[{path.stem}](../reproduction.md#{path.stem})"
                interval = f"{row['low']:.4g} to {row['high']:.4g}"
                paper = "" if row["paper"] is None else f"{row['paper']:g}"
                rows.append(
                    f"| {place} | {row['row']} | {row['column']} | {row['ours']:.4g} | {interval} "
                    f"| {paper} |"
                )
    if rows:
        yield "| experiment | row | measure | ours | 95 % interval | paper |"
        yield "|---|---|---|---|---|---|"
        yield from rows


# --- the API ---------------------------------------------------------------------------------


def public_page() -> str:
    """Return the page of the public names that are no rankers, and of what all rankers do."""
    rankers = {registry.resolve("rankers", name).__name__ for name in registry.RANKERS}
    lines = ["# Public names", "", "What `import rankwright` offers, besides the rankers."]
    for name, module in sorted(_PUBLIC.items(), key=lambda item: item[0].lower()):
        if name not in rankers:
            path, _, attribute = module.partition(":")
            lines += ["", f"::: {path}.{attribute or name}"]
    lines += ["", "## Every ranker", "", "::: rankwright.rankers.base.Ranker"]
    lines += ["    options: { heading_level: 3 }", "", "## Errors", "", "::: rankwright.errors"]
    lines += ["    options: { heading_level: 3, show_root_heading: false }", ""]
    return "\n".join(lines)


def part_page(kind: str, title: str) -> str:
    """Return the page of every registered part of a kind, by its name."""
    lines = [f"# {title}", ""]
    for name in sorted(registry.KINDS[kind]):
        module, _, attribute = registry.KINDS[kind][name].partition(":")
        lines += [f"## {name}", "", f"::: {module}.{attribute}"]
        lines += ["    options: { heading_level: 3, members: false, show_bases: false }", ""]
    return "\n".join(lines)
