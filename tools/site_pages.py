"""Pages that the documentation site makes of the code: algorithms, the API, the papers.

`pages` returns them for tools/build_site.py; docs/conf.py takes the tables of names.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from inspect import getdoc, isclass, ismodule, signature
from itertools import groupby
from pathlib import Path
from typing import Any

from numpydoc.docscrape import NumpyDocString
from pybtex.database import Entry, parse_file
from pybtex.plugin import find_plugin

import rankwright
from rankwright import registry
from rankwright.data.formats import format_named
from rankwright.rankers.base import Ranker

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
SUBMODULES = [name for name in rankwright.__all__ if ismodule(getattr(rankwright, name))]


def pages() -> dict[str, str]:
    """Return every made page by its place below docs/."""
    when = tomllib.loads((DOCS / "when-to-use.toml").read_text(encoding="utf-8"))
    found = {"references.md": references_page()}
    for name in ("contributing", "security"):
        found[f"{name}.md"] = root_page(f"{name.upper()}.md")
    found["algorithms/index.md"] = algorithms_index(when)
    for name in registry.RANKERS:
        found[f"algorithms/{name}.md"] = algorithm_page(name, when[name])
    return found | api_pages()


def root_page(name: str) -> str:
    """Return a page of the checkout's own folder, its links seen from docs/."""
    return (ROOT / name).read_text(encoding="utf-8").replace("](docs/", "](")


# --- public names ------------------------------------------------------------------------------


def _own_names() -> dict[str, list[str]]:
    """Return the names that each module documents; one that two have belongs to the first."""
    errors = [n for n, c in vars(import_module("rankwright.errors")).items() if isclass(c)]
    public = [name for name in rankwright.__all__ if name not in SUBMODULES]
    found = {"rankwright": public, "rankwright.errors": errors}
    seen = {id(_object(module, name)) for module in found for name in found[module]}
    for short in SUBMODULES:
        module = f"rankwright.{short}"
        found[module] = [
            name for name in import_module(module).__all__ if id(_object(module, name)) not in seen
        ]
    return found


def _object(module: str, name: str) -> Any:
    return getattr(import_module(module), name)


OWN = _own_names()
NAMES = {f"{module}.{name}" for module in OWN for name in OWN[module]}
"""Full public names, each documented once."""

PLACES = {
    f"{part.__module__}.{part.__qualname__}": f"{module}.{name}"
    for module in OWN
    for name in OWN[module]
    if hasattr(part := _object(module, name), "__qualname__")
}
"""Where a class or function is documented, by the module that defines it."""

TYPES = {
    short: place
    for short, place in ((place.rpartition(".")[2], place) for place in PLACES.values())
    if short[0].isupper() and sum(p.endswith(f".{short}") for p in PLACES.values()) == 1
}
"""Where a class is documented, by its name alone; those that two modules have are left out."""


# --- docstrings --------------------------------------------------------------------------------

_UNDERLINE = re.compile(r"-{3,}")
_CODE = re.compile(r"(``.+?``|`[^`]+`)")
_KEY = re.compile(r"\[([a-z]+\d{4}[a-z]*)\]")


def restructured(lines: list[str]) -> list[str]:
    """Return a docstring as reStructuredText: what stands in it for itself is escaped.

    Blocks that are indented before the first section are formulas, and shown as they are.
    """
    first = next((i - 1 for i, line in enumerate(lines) if _UNDERLINE.fullmatch(line)), len(lines))
    found: list[str] = []
    for indented, block in groupby(lines[:first], key=lambda x: x.startswith("    ") or not x):
        block_lines = list(block)
        if indented and any(block_lines):
            found += ["", "::", "", *block_lines, ""]
        else:
            found += [_escaped(line) for line in block_lines]
    return found + [_escaped(line) for line in lines[first:]]


def _escaped(line: str) -> str:
    if line.lstrip().startswith((">>>", "...")):
        return line
    pieces = _CODE.split(line)
    for i in range(0, len(pieces), 2):  # the others are code
        text = re.sub(r"(?<!\\)\|", r"\\|", pieces[i])
        text = _KEY.sub(r"(`\1`)", text)
        text = re.sub(r"(?<=\w)@(?=\w)", r"\\@", text)  # no address of mail
        pieces[i] = re.sub(r"(?<=\w)_(?!\w)", r"\\_", text)
    return "".join(pieces)


def markdown(text: str) -> str:
    """Return the text of a module's docstring as Markdown, formulas as blocks of code."""
    found: list[str] = []
    for indented, block in groupby(text.strip().splitlines(), key=_indented()):
        block_lines = list(block)
        if indented:
            while not block_lines[-1].strip():
                block_lines.pop()
            found += ["```text", *_aligned(block_lines), "```", ""]
        else:
            found += [_markdown_line(line) for line in block_lines]
    return "\n".join(found)


_NUMBER = re.compile(r"\s{4,}(\(\w+\))$")


def _aligned(block: list[str]) -> list[str]:
    """Return a block of formulas without its indentation, its numbers next to the longest line."""
    lines = [line.removeprefix("    ") for line in block]
    width = max(len(_NUMBER.sub("", line)) for line in lines)
    return [_NUMBER.sub(lambda m: " " * (width + 4 - m.start()) + m[1], line) for line in lines]


def _indented() -> Any:
    """Return a test of lines that remembers whether an empty one ends an indented block."""
    inside = False

    def test(line: str) -> bool:
        nonlocal inside
        if line.strip():
            inside = line.startswith("    ")
        return inside

    return test


def _markdown_line(line: str) -> str:
    pieces = _CODE.split(line)
    for i, piece in enumerate(pieces):
        key = piece.strip("`")
        if i % 2 and key in citation_labels():
            pieces[i] = _citation(key)
        elif i % 2 and key in NAMES | PLACES.keys():
            pieces[i] = f"{{py:obj}}`{PLACES.get(key, key)}`"
        elif i % 2 and key in registry.RANKERS:
            pieces[i] = f"[`{key}`](/algorithms/{key}.md)"
        elif i % 2 == 0:
            text = re.sub(r"([<>_\[\]$])", r"\\\1", _KEY.sub(r"{{\1}}", piece))
            text = re.sub(r"(?<![*\s])\*(?!\*)", r"\\*", text)
            pieces[i] = re.sub(r"\{\{(\w+)\}\}", lambda m: f"({_citation(m[1])})", text)
    return "".join(pieces)


def _citation(key: str) -> str:
    return f"[{citation_labels()[key]}](#{key})"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _summary(part: Any) -> str:
    """Return the first line of a docstring."""
    return (getdoc(part) or "").partition("\n")[0]


def _documented(part: Any) -> list[tuple[list[str], str]]:
    """Return the names and the meaning of each entry among the parameters of a docstring."""
    entries = NumpyDocString(getdoc(part) or "")["Parameters"]
    return [([n.strip() for n in one.name.split(",")], " ".join(one.desc)) for one in entries]


# --- papers ------------------------------------------------------------------------------------


@cache
def _bibliography() -> dict[str, Entry]:
    return dict(parse_file(ROOT / "rankwright/references.bib").entries)


@cache
def citation_labels() -> dict[str, str]:
    """Return author and year by the key of a paper, as text refers to it."""
    return {key: _label(entry) for key, entry in _bibliography().items()}


def _label(entry: Entry) -> str:
    people = entry.persons["author"]
    names = [" ".join([*person.prelast_names, *person.last_names]).strip("{}") for person in people]
    who = f"{names[0]} et al." if len(names) > 2 else " and ".join(names)
    return f"{who}, {entry.fields.get('year', 'undated')}"


@cache
def _reference(key: str) -> str:
    """Return a paper as a line of Markdown."""
    style = find_plugin("pybtex.style.formatting", "unsrt")()
    backend = find_plugin("pybtex.backends", "markdown")()
    (formatted,) = style.format_entries([_bibliography()[key]])
    return " ".join(formatted.text.render(backend).split())


def _cited_keys(*texts: str | None) -> list[str]:
    """Return the keys of the papers that docstrings cite, such as `burges2010overview`."""
    keys = re.findall(r"[`\[]([a-z]+\d{4}[a-z]*)[`\]]", "\n".join(text or "" for text in texts))
    return [key for key in dict.fromkeys(keys) if key in _bibliography()]


def references_page() -> str:
    """Return every paper that a docstring may cite, each with an anchor."""
    lines = ["# References", "", "Papers that the code and these pages cite, by their key in", ""]
    lines[-1] = "`rankwright/references.bib`, which has the BibTeX entries."
    for key in sorted(_bibliography()):
        lines += ["", f"({key})=", f"## {citation_labels()[key]}", "", f"{_reference(key)} `{key}`"]
    return "\n".join(lines) + "\n"


# --- one page per algorithm --------------------------------------------------------------------

FAMILIES = {
    "trees": "Boosted trees",
    "linear": "Linear models",
    "structured": "Structured SVMs",
    "neural": "Networks",
    "boosting": "Boosting of features and rules, and direct search",
    "ratings": "Ratings of items by users",
    "base": "Any loss with any model",
}
"""Modules of rankwright/rankers and what their rankers have in common."""


def algorithms_index(when: dict[str, str]) -> str:
    """Return the list of all rankers by family."""
    lines = ["# Algorithms", "", "A page for each ranker: when to use it, what it minimises, its"]
    lines += ["parameters and an example. [Choosing a ranker](../choose.md) compares them on data."]
    for family, title in FAMILIES.items():
        lines += ["", f"## {title}", "", "| ranker | when to use it |", "|---|---|"]
        for name in sorted(registry.RANKERS):
            ranker = registry.resolve("rankers", name)
            if ranker.__module__.endswith(f".{family}"):
                lines.append(
                    f"| [{ranker.__name__}]({name}.md) | {_cell(_markdown_line(when[name]))} |"
                )
    return "\n".join(lines) + "\n"


def algorithm_page(name: str, when: str) -> str:
    """Return the page of a ranker: when to use it, equations, example, parameters, papers."""
    ranker = registry.resolve("rankers", name)
    doc = NumpyDocString(getdoc(ranker) or "")
    about = "\n".join([*doc["Summary"], "", *doc["Extended Summary"]])
    lines = [f"# {ranker.__name__}", "", markdown(about), ""]
    lines += [f"In Python {{py:obj}}`rankwright.{ranker.__name__}`, on the command line `{name}`."]
    lines += ["", "## When to use it", "", _markdown_line(when.strip())]
    lines += ["", *_objective(ranker)]
    lines += ["", "## Example", "", "```python", example(name), "```"]
    lines += ["", *_parameters(ranker)]
    lines += ["", *_definition(ranker)]
    part = registry.resolve(*_part(ranker))
    keys = _cited_keys(ranker.__doc__, part.__doc__, sys.modules[part.__module__].__doc__)
    if keys:
        lines += ["", "## References", "", *(f"- {_reference(key)}" for key in keys)]
    return "\n".join(lines) + "\n"


def _part(ranker: type[Ranker]) -> tuple[str, str]:
    """Return kind and name of the part that states the problem: the loss, or else the model."""
    return ("losses", ranker.loss_class) if ranker.loss_class else ("models", ranker().model_name)


@cache
def equations() -> dict[str, dict[str, dict[str, str]]]:
    """Return the main equations by kind and name of the part, from docs/equations.toml."""
    return tomllib.loads((DOCS / "equations.toml").read_text(encoding="utf-8"))


def _objective(ranker: type[Ranker]) -> Iterator[str]:
    """Yield what is minimised, as equations."""
    kind, name = _part(ranker)
    found = equations()[kind][name]
    yield from ("## What it minimises" if kind == "losses" else "## The model", "")
    yield from ("$$", found["tex"].strip(), "$$", "", found["where"].strip())


def _definition(ranker: type[Ranker]) -> Iterator[str]:
    """Yield the problem as the module of the loss, or of the model, states it."""
    kind, name = _part(ranker)
    part = registry.resolve(kind, name)
    what = "loss" if kind == "losses" else "model"
    yield f"## Definition of the {what}"
    yield ""
    yield f"From the source of {{py:obj}}`rankwright.{kind}.{part.__name__}`:"
    yield ""
    yield markdown(sys.modules[part.__module__].__doc__ or "")


def example(name: str) -> str:
    """Return code that fits the ranker to data that comes with the package."""
    ranker = registry.resolve("rankers", name)
    given = {"ranker": 'loss="listnet", model="trees"', "blend": '["memr", "gbdt"], folds=3'}
    parts = given.get(name, "")
    call = f"rw.{ranker.__name__}({parts})"
    if not ranker.__module__.endswith(".ratings"):
        return f"""\
import rankwright as rw

train = rw.load("digits/train", queries=20, documents=40)
test = rw.load("digits/test", queries=20, documents=40)
ranker = {call}.fit(train)
print(rw.evaluate(test, ranker.predict(test), "ndcg@10"))"""
    return f"""\
import numpy as np
import rankwright as rw
from scipy import sparse

rng = np.random.default_rng(0)
user, item = np.divmod(rng.choice(40 * 50, size=800, replace=False), 50)
stars = np.clip(np.round(item / 16 + rng.normal(1.5, 1.0, size=800)), 1, 5)
X = sparse.csr_array((np.ones(800), (np.arange(800), item)))  # a 1 in the column of the item
ranker = {call}.fit(X, stars, qid=user)
print(rw.evaluate(stars, ranker.predict(X, qid=user), "ndcg@10", qid=user))"""


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
        f"The model is `{ranker().model_name}`; `model=` takes another one, as an object of "
        "`rankwright.models` or by its name. Parameters of the model that are not here go to "
        "it: `model=models.Trees(max_bins=63)`, on the command line `--set model.max_bins=63`."
    )
    yield ""
    yield "| parameter and default | meaning |"
    yield "|---|---|"
    for names, about in _documented(ranker):
        shown = "<br>".join(f"`{name}={defaults[name]!r}`" for name in names)
        yield f"| {_cell(shown)} | {_cell(_markdown_line(about))} |"


# --- the API -----------------------------------------------------------------------------------

TITLES = {
    "rankwright": "Main functions and rankers",
    "rankwright.clicks": "Clicks",
    "rankwright.data": "Data",
    "rankwright.losses": "Losses",
    "rankwright.metrics": "Metrics",
    "rankwright.models": "Models",
    "rankwright.solvers": "Solvers",
    "rankwright.testing": "Checks of your own parts",
    "rankwright.errors": "Errors",
}


def api_pages() -> dict[str, str]:
    """Return a page for each public name, and an index of each module."""
    found = {"api/index.md": api_index(), "api/formats/index.rst": formats_page()}
    for module in TITLES:
        folder = f"api/{_short(module)}"
        found[f"{folder}/index.md"] = module_index(module)
        for name in OWN[module]:
            found[f"api/{_file(module, name)}.rst"] = name_page(module, name)
    return found


def _short(module: str) -> str:
    return module.rpartition(".")[2]


def _file(module: str, name: str) -> str:
    """Return the place of a name's page; no two differ by capitals alone, as some disks ask."""
    same = [
        other
        for other in OWN[module]
        if other.lower() == name.lower() and isclass(_object(module, other))
    ]
    return f"{_short(module)}/{name}{'-function' if same and name not in same else ''}"


def api_index() -> str:
    """Return the first page of the API: its modules, and the rankers all at once."""
    lines = [
        "# API reference",
        "",
        "Everything below can be relied on; what is not here is internal",
    ]
    lines += ["and may change without notice.", "", "| module | what it has |", "|---|---|"]
    for module, title in TITLES.items():
        lines.append(f"| [`{module}`]({_short(module)}/index.md) | {title} |")
    lines.append(
        "| [formats](formats/index.rst) | Readers and writers of files, and their options |"
    )
    return "\n".join(lines) + "\n"


def module_index(module: str) -> str:
    """Return the table of the names of a module."""
    lines = [f"# {TITLES[module]}", "", f"```python\n{_import(module)}\n```"]
    rankers = {registry.resolve("rankers", name).__name__ for name in registry.RANKERS}
    named = sorted({*OWN[module], *getattr(import_module(module), "__all__", ())})
    named = [name for name in named if module != "rankwright" or name not in SUBMODULES]
    groups = {"": named}
    if module == "rankwright":
        groups = {
            "Functions": [n for n in named if not isclass(_object(module, n))],
            "Classes": [n for n in named if isclass(_object(module, n)) and n not in rankers],
            "Rankers": [n for n in named if n in rankers],
        }
    for title, names in groups.items():
        lines += ["", f"## {title}"] if title else []
        lines += ["", "| name | what it is |", "|---|---|"]
        lines += [_index_row(module, name) for name in sorted(names, key=str.lower)]
    return "\n".join(lines) + "\n"


def _import(module: str) -> str:
    return "import rankwright as rw" if module == "rankwright" else f"from {module} import ..."


def _index_row(module: str, name: str) -> str:
    part = _object(module, name)
    place = f"{module}.{name}"
    if place not in NAMES:  # documented under another module
        place = PLACES[f"{part.__module__}.{part.__qualname__}"]
    file = _file(*place.rsplit(".", 1))
    about = _summary(part) if hasattr(part, "__qualname__") else _CONSTANTS[name]
    return f"| [`{name}`](../{file}.rst) | {_cell(_markdown_line(about))} |"


_CONSTANTS = {"CONVENTIONS": "Every named convention of metrics, by its name."}


def name_page(module: str, name: str) -> str:
    """Return the page of a public name, which autodoc fills."""
    part = _object(module, name)
    lines = [name, "=" * len(name), "", f".. currentmodule:: {module}", ""]
    if isclass(part):
        lines += [f".. autoclass:: {name}", "   :members:"]
        lines += _inherited(part) if issubclass(part, Ranker) and part is not Ranker else []
    elif callable(part):
        lines.append(f".. autofunction:: {name}")
        lines += _result_class(part)
    else:
        lines += [f".. data:: {name}", "", f"   {_CONSTANTS[name]}"]
    lines += ["", *_see_also(module, part)]
    return "\n".join(lines) + "\n"


def _inherited(ranker: type[Ranker]) -> Iterator[str]:
    """Yield the list of what a ranker has from `Ranker`, whose page says more."""
    yield from ("", ".. rubric:: Methods and attributes of every ranker", "")
    for name, member in sorted(vars(Ranker).items()):
        own = name.startswith("_") or name in vars(ranker)
        if not own and hasattr(member, "__get__") and getdoc(member):  # no plain class attribute
            about = " ".join(restructured([_summary(member)]))
            yield f"- :py:obj:`{name} <rankwright.Ranker.{name}>`: {about}"


def _result_class(function: Any) -> list[str]:
    """Return the class of what a function returns, where no other page has it."""
    for one in NumpyDocString(getdoc(function) or "")["Returns"]:
        found = getattr(sys.modules[function.__module__], one.type or one.name, None)
        if isclass(found) and found.__module__.startswith("rankwright."):
            place = f"{found.__module__}.{found.__qualname__}"
            if place not in PLACES:
                return ["", f".. autoclass:: {place}", "   :members:"]
    return []


def _see_also(module: str, part: Any) -> Iterator[str]:
    """Yield links between a ranker, its page, and the loss that it minimises."""
    if not isclass(part):
        return
    key = registry.name_of("rankers", part)
    if module == "rankwright" and key in registry.RANKERS:
        yield f"Equations, papers and an example: :doc:`/algorithms/{key}`."
        if part.loss_class:
            loss = registry.resolve("losses", part.loss_class).__name__
            yield f"Its loss is :py:class:`rankwright.losses.{loss}`."
    if module == "rankwright.losses":
        key = registry.name_of("losses", part)
        users = [n for n in registry.RANKERS if registry.resolve("rankers", n).loss_class == key]
        if key and users:
            names = _listed(registry.resolve("rankers", n).__name__ for n in users)
            yield f"Rankers that minimise it: {names}."


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f":py:class:`rankwright.{name}`" for name in names)


def formats_page() -> str:
    """Return the readers and writers of files, by the name that ``format=`` takes."""
    lines = ["Formats", "=======", "", "What ``format=`` of `rankwright.load` takes; options go to"]
    lines[-1] += " ``rankwright.load`` and, on the command line, to ``--read``."
    for name in sorted(registry.FORMATS):
        chosen = format_named(name)
        lines += ["", name, "-" * len(name), "", chosen.description, ""]
        for title, words in (
            ("File extensions", chosen.extensions),
            ("Options of the reader", chosen.read_options),
            ("Options of the writer", chosen.write_options),
        ):
            if words:
                lines += [f"{title}: {', '.join(f'``{word}``' for word in words)}", ""]
    return "\n".join(lines) + "\n"
