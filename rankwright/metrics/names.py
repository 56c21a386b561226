"""Measures by their names: ``ndcg@10``, ``ndcg@1:5,map``, ``err(max=5)@10``.

A name is a key of the registry, parameters in parentheses, and a cut-off, or a range of them,
behind ``@``; a trailing minus, as in XGBoost, makes an empty query 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from rankwright.errors import UsageError
from rankwright.metrics.base import Metric
from rankwright.metrics.convention import Convention
from rankwright.registry import METRICS, resolve

_NAME = re.compile(
    r"""(?P<key>[A-Za-z]\w*)
        (?:\((?P<parameters>[^()]*)\))?
        (?:@(?P<first>\d+)(?::(?P<last>\d+))?)?
        (?P<minus>-?)""",
    re.VERBOSE,
)
_COMMA = re.compile(r",(?![^(]*\))")  # not between parentheses
_HELP = "write it like ndcg@10, ndcg@1:5, err(max=4)@10 or p(min_grade=2)@5"

_ELSEWHERE = {
    "precision": "p",
    "prec": "p",
    "ap": "map",
    "average_precision": "map",
    "mean_average_precision": "map",
    "rr": "mrr",
    "reciprocal_rank": "mrr",
    "hits": "hit",
    "success": "hit",
    "normalized_dcg": "ndcg",
    "normalised_dcg": "ndcg",
    "ndcg_cut": "ndcg",
    "roc_auc": "auc",
    "tau": "kendall",
    "r_precision": "rprec",
}


def metric(name: str, *, convention: str | Convention = "standard") -> Metric:
    """Return the measure called ``name``.

    Parameters
    ----------
    name : str
        Such as ``ndcg@10``, ``err(max=5)@10`` or ``ndcg(gain=linear,max_per_group=2)@5``.
    convention : str or Convention
        Where parameters come from that the name leaves out.

    Examples
    --------
    >>> metric("NDCG(gain=linear)@5")
    ndcg(gain=linear)@5
    """
    found = list(_measures(name, Convention.named(convention)))
    if len(found) != 1:
        raise UsageError(f"'{name}' names {len(found)} measures, where one is expected.")
    return found[0][1]


def measures(
    names: str | Metric | Iterable[str | Metric], *, convention: str | Convention = "standard"
) -> dict[str, Metric]:
    """Return measures by name as the caller spelled it; ``ndcg@1:3`` stands for three."""
    chosen = Convention.named(convention)
    listed = [names] if isinstance(names, (str, Metric)) else list(names)
    found: dict[str, Metric] = {}
    for item in listed:
        if isinstance(item, Metric):
            found[repr(item)] = item
        else:
            for name in _COMMA.split(item):
                found.update(_measures(name.strip(), chosen))
    if not found:
        raise UsageError(f"there is no measure to compute; {_HELP}.")
    return found


def _measures(name: str, convention: Convention) -> Iterator[tuple[str, Metric]]:
    match = _NAME.fullmatch(name.strip())
    if match is None:
        raise UsageError(f"'{name}' is not the name of a measure; {_HELP}.")
    kind = resolve("metrics", _key(name, match["key"].lower()))
    parameters = dict(_parameters(name, match["parameters"] or ""))
    if match["minus"]:
        parameters.setdefault("empty", "0")
    if match["last"] is None:
        k = None if match["first"] is None else int(match["first"])
        yield name, kind.build(parameters, k, convention)
        return
    first, last = int(match["first"]), int(match["last"])
    if first > last:
        raise UsageError(f"'{name}' counts down; write the lower cut-off first.")
    head = name.partition("@")[0]
    for k in range(first, last + 1):
        yield f"{head}@{k}{match['minus']}", kind.build(parameters, k, convention)


def _key(name: str, key: str) -> str:
    """Return ``key``, or say how a measure is spelled here that comes with a cut-off or in full."""
    if key in METRICS:
        return key
    head, digits = re.fullmatch(r"(.*?)_?(\d*)", key).groups()  # type: ignore[union-attr]
    ours = _ELSEWHERE.get(head, head)
    if ours in METRICS and digits:
        raise UsageError(f"there is no metric '{name}'; the cut-off is written {ours}@{digits}.")
    if ours in METRICS:
        raise UsageError(f"there is no metric '{name}'; it is called {ours} here, as in {ours}@10.")
    return key


def _parameters(name: str, text: str) -> Iterator[tuple[str, str]]:
    for part in text.split(","):
        if part.strip():
            key, equals, value = part.partition("=")
            if not equals:
                raise UsageError(f"'{name}': '{part.strip()}' has no value; {_HELP}.")
            yield key.strip(), value.strip()
