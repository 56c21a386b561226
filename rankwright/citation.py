"""BibTeX for a paper: `cite` gives the entry of Rankwright, of a ranker, a loss or a metric.

The entries are in ``references.bib`` beside this file. Which of them belong to a part is what its
docstring cites, as in (`moon2010intervalrank`); a loss is that of the rankers that minimise it.
"""

from __future__ import annotations

import re
import sys
from functools import cache
from importlib.resources import files
from inspect import getdoc
from typing import Any

import rankwright
from rankwright import registry
from rankwright.errors import UsageError

_KINDS = ("rankers", "losses", "models", "solvers", "metrics")
_CITED = re.compile(r"[`\[]([a-z]+\d{4}[a-z]*)[`\]]")
_ENTRY = re.compile(r"^@\w+\{(\w+),.*?^\}", re.MULTILINE | re.DOTALL)


def cite(*names: Any) -> str:
    """Return BibTeX entries: without names that of Rankwright, else those of the papers of parts.

    Parameters
    ----------
    *names : str, or ranker, loss, model, solver or metric
        Registered names such as ``"intervalrank"``, ``"listnet"`` or ``"ndcg@10"``, keys such as
        ``"moon2010intervalrank"``, or objects. A `Ranker` made of parts stands for its parts.

    Examples
    --------
    >>> import rankwright as rw
    >>> print(rw.cite("listnet"))
    @inproceedings{cao2007listnet,
      author = {Cao, Zhe and Qin, Tao and Liu, Tie-Yan and Tsai, Ming-Feng and Li, Hang},
      title = {Learning to rank: from pairwise approach to listwise approach},
      booktitle = {ICML}, year = {2007}
    }
    """
    if not names:
        return _own_entry()
    keys = dict.fromkeys(key for name in names for key in keys_of(name))
    return "\n\n".join(references()[key] for key in keys)


def keys_of(part: Any) -> list[str]:
    """Return the keys of the papers of a part by name, or of an object; none is an error."""
    if not isinstance(part, str):
        return _keys_of_object(part)
    name = registry.ALIASES.get(part, part).partition("@")[0]
    if name in references():
        return [name]
    kinds = [kind for kind in _KINDS if name in registry.names(kind)]
    if not kinds:
        known = [known for kind in _KINDS for known in registry.names(kind)]
        raise UsageError(registry.unknown("part of Rankwright called", part, known))
    for kind in kinds:
        keys = keys_of_part(kind, name)
        if keys:
            return keys
    raise UsageError(
        f"{name} comes from no one paper; cite Rankwright itself: rankwright.cite() or "
        "`rankwright cite`."
    )


def keys_of_part(kind: str, name: str) -> list[str]:
    """Return the keys of the papers that a registered part comes from; there may be none."""
    part = registry.resolve(kind, name)
    if kind == "rankers":
        return _cited(getdoc(part))
    if kind == "losses":
        rankers = [r for r in registry.RANKERS if _loss_of(r) == name]
        keys = dict.fromkeys(key for r in rankers for key in keys_of_part("rankers", r))
        if keys:
            return list(keys)
    return _cited(getdoc(part), sys.modules[part.__module__].__doc__)  # a file holds one part


def keys_of_parts(loss: Any, model: Any, solver: Any) -> list[str]:
    """Return the keys of the papers of a ranker's parts, by name or object; there may be none."""
    keys: list[str] = []
    for part, kind in ((loss, "losses"), (model, "models"), (solver, "solvers")):
        name = part if isinstance(part, str) else registry.name_of(kind, type(part))
        keys += keys_of_part(kind, name) if name in registry.names(kind) else []
    return list(dict.fromkeys(keys))


def _loss_of(ranker: str) -> str | None:
    return getattr(registry.resolve("rankers", ranker), "loss_class", None)


def _keys_of_object(part: Any) -> list[str]:
    for kind in _KINDS:
        name = registry.name_of(kind, type(part))
        if name is None:
            continue
        if name != "ranker":
            return keys_of(name)
        keys = keys_of_parts(part.loss, part.model, part.solver)
        if keys:
            return keys
    raise UsageError(
        f"{type(part).__name__} is not known to come from a paper; name a ranker, a loss or a "
        "metric, such as 'intervalrank'."
    )


def _cited(*texts: str | None) -> list[str]:
    found = [key for text in texts for key in _CITED.findall(text or "")]
    return [key for key in dict.fromkeys(found) if key in references()]


@cache
def references() -> dict[str, str]:
    """Return every entry of references.bib by its key."""
    text = files("rankwright").joinpath("references.bib").read_text("utf-8")
    return {match[1]: match[0] for match in _ENTRY.finditer(text)}


def _own_entry() -> str:
    return (
        "@software{rankwright,\n"
        "  author = {{The Rankwright developers}},\n"
        "  title = {{Rankwright}: a learning-to-rank toolkit for {Python}},\n"
        f"  version = {{{rankwright.__version__}}}, year = {{2026}}\n"
        "}"
    )
