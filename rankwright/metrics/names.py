"""Metrics by their names: ``ndcg@10``, ``ndcg@1:5,map``, ``err(max=5)@10``.

A name is a key of the registry, parameters in parentheses, and a cut-off, or a range of them,
behind ``@``; a trailing minus, as in XGBoost, makes an empty query 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from typing import Any

from rankwright.errors import UsageError
from rankwright.metrics.base import Metric
from rankwright.metrics.convention import Convention, checked_gains
from rankwright.metrics.function import from_function
from rankwright.registry import METRICS, plugins, resolve

_NAME = re.compile(
    r"""(?P<key>[A-Za-z]\w*)
        (?:\((?P<parameters>[^()]*)\))?
        (?:@(?P<first>\d+)(?::(?P<last>\d+))?)?
        (?P<minus>-?)""",
    re.VERBOSE,
)
_COMMA = re.compile(r",(?![^(]*\))")  # not between parentheses
AnyMetric = str | Metric | Callable[..., float]
"""A metric by name, as an object, or as a function of the scores and grades of one query."""

AnyMetrics = AnyMetric | Iterable[AnyMetric] | Mapping[str, AnyMetric]
"""One metric or several; a mapping gives them the names that results have."""

_HELP = "write it like ndcg@10, ndcg@1:5, err(max=4)@10 or p(min_grade=2)@5"

_ELSEWHERE = {
    "precision": "p",
    "prec": "p",
    "ap": "map",
    "average_precision": "map",
    "mean_average_precision": "map",
    "map_cut": "map",
    "rr": "mrr",
    "recip_rank": "mrr",
    "reciprocal_rank": "mrr",
    "hits": "hit",
    "success": "hit",
    "normalized_dcg": "ndcg",
    "normalised_dcg": "ndcg",
    "ndcg_cut": "ndcg",
    "roc_auc": "auc",
    "tau": "kendall",
    "r_precision": "rprec",
    "set_p": "p",
    "set_recall": "recall",
    "set_f": "f1",
}


def metric(
    name: AnyMetric,
    *,
    convention: str | Convention = "standard",
    label_gain: Iterable[float] | None = None,
) -> Metric:
    """Return the metric called ``name``.

    Parameters
    ----------
    name : str, Metric or callable
        A name such as ``ndcg@10``, ``err(max=5)@10`` or ``ndcg(gain=linear,max_per_group=2)@5``; a
        function of the scores and grades of one query (`rankwright.metrics.from_function`); or a
        metric, which is returned as it is.
    convention : str or Convention
        Where parameters come from that the name leaves out.
    label_gain : sequence of float
        The gain of grade 0, 1, 2, ... in ndcg or dcg, as LightGBM's parameter of that name; the
        same as ``gain`` in the name of the metric, as in ``ndcg(gain=0:1:3:7)@10``.

    Examples
    --------
    >>> metric("NDCG(gain=linear)@5")
    ndcg(gain=linear)@5
    >>> metric("ndcg@10", label_gain=[0, 1, 3, 10])
    ndcg(gain=0:1:3:10)@10
    """
    if isinstance(name, str):
        found = list(_parsed(name, Convention.named(convention)))
        if len(found) != 1:
            raise UsageError(f"'{name}' names {len(found)} metrics, where one is expected.")
        made = found[0][1]
    else:
        made = _metric_of(name)
    if label_gain is None:
        return made
    if not has_gain(made):
        raise UsageError(f"{made!r} has no gain of a grade; leave label_gain out, or use ndcg@10.")
    changes: dict[str, Any] = {"gain": checked_gains(label_gain)}
    return replace(made, **changes)


def has_gain(metric: Metric) -> bool:
    """Whether documents earn a gain by their grade, which ``label_gain`` may change."""
    return any(field.name == "gain" for field in fields(metric))


def metric_name(given: AnyMetric, made: Metric) -> str:
    """Return what a metric is called: as the caller spelled it, or else by itself."""
    return given if isinstance(given, str) else repr(made)


def named_metrics(
    names: AnyMetrics, *, convention: str | Convention = "standard"
) -> dict[str, Metric]:
    """Return metrics by name as the caller spelled it; ``ndcg@1:3`` stands for three."""
    chosen = Convention.named(convention)
    found: dict[str, Metric] = {}
    several = isinstance(names, Iterable) and not isinstance(names, str)
    listed: Iterable[Any] = names if several else [names]  # type: ignore[assignment]
    if isinstance(names, Mapping):
        found = {str(name): metric(item, convention=chosen) for name, item in names.items()}
        listed = []
    for item in listed:
        for name, built in _named(item, chosen):
            if found.setdefault(name, built) != built:
                raise UsageError(
                    f"two metrics are called '{name}'; give a function another name with "
                    "from_function(f, name=...)."
                )
    if not found:
        raise UsageError(f"there is no metric to compute; {_HELP}.")
    return found


def _named(item: AnyMetric, convention: Convention) -> Iterator[tuple[str, Metric]]:
    if isinstance(item, str):
        for name in _COMMA.split(item):
            yield from _parsed(name.strip(), convention)
    else:
        built = _metric_of(item)
        yield repr(built), built


def _metric_of(given: Any) -> Metric:
    """Return a metric or a function as a metric."""
    if isinstance(given, Metric):
        return given
    if callable(given) and not isinstance(given, type):
        return from_function(given)
    what = f"the class {given.__name__}" if isinstance(given, type) else repr(given)
    raise UsageError(
        "a metric is a name, a Metric or a function of the scores and grades of one query, "
        f"not {what}; {_HELP}."
    )


def _parsed(name: str, convention: Convention) -> Iterator[tuple[str, Metric]]:
    match = _NAME.fullmatch(name.strip())
    if match is None:
        raise UsageError(f"'{name}' is not the name of a metric; {_HELP}.")
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
    """Return ``key``, or say how a metric is spelled here that comes with a cut-off or in full."""
    if key in METRICS or key in plugins("metrics"):
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
