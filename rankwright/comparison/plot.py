"""A comparison drawn with matplotlib: means, differences by query, metric at k, learning curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwright.clicks.figures import (
    COLOURS,
    add_legend,
    import_matplotlib,
    line_style,
    new_axes,
    plain_axes,
)
from rankwright.comparison.pooled import pooled_values
from rankwright.errors import UsageError
from rankwright.metrics.base import named_metrics
from rankwright.registry import unknown

if TYPE_CHECKING:
    from rankwright.comparison.result import Comparison


KINDS = ("metrics", "differences", "metric_at_k", "curves")
_MOST_MARKS = 20  # of a learning curve


def plot(
    found: Comparison,
    kind: str,
    *,
    metric: str | None = None,
    rankers: Sequence[str] | str | None = None,
    ks: Sequence[int] | None = None,
    ax: Any = None,
) -> Any:
    """Draw one kind of plot and return its Axes; `Comparison.plot` describes the parameters."""
    if kind not in KINDS:
        raise UsageError(unknown("kind of plot called", str(kind), KINDS))
    if ks is not None and kind != "metric_at_k":
        raise UsageError(f"ks are cut-offs of kind='metric_at_k'; kind='{kind}' has none.")
    chosen = [rankers] if isinstance(rankers, str) else list(rankers or found.rankers)
    for label in chosen:
        if label not in found.rankers:
            raise UsageError(unknown("ranker in this comparison called", label, found.rankers))
    if kind in ("metrics", "differences"):
        metric = metric or found.metrics[0]
        if metric not in found.metrics:
            raise UsageError(unknown("metric in this comparison called", metric, found.metrics))
    import_matplotlib()
    if kind == "metrics":
        return _metrics(found, str(metric), chosen, ax)
    if kind == "differences":
        return _differences(found, str(metric), chosen, ax)
    if kind == "metric_at_k":
        return _metric_at_k(found, metric or "ndcg", chosen, list(ks or range(1, 21)), ax)
    return _curves(found, metric, chosen, ax)


def _metrics(found: Comparison, metric: str, chosen: list[str], ax: Any) -> Any:
    ax = new_axes(ax, height=1.2 + 0.36 * len(chosen))
    for place, label in enumerate(chosen):
        at = found.intervals[label][metric]
        error = [[at.mean - at.low], [at.high - at.mean]]
        is_baseline = label == found.baseline and not found.all_pairs
        colour = "0.35" if is_baseline else COLOURS[0]
        ax.errorbar(at.mean, place, xerr=error, fmt="o", color=colour, capsize=3, markersize=5)
    if not found.all_pairs:
        mean = found.intervals[found.baseline][metric].mean
        ax.axvline(mean, color="0.35", linewidth=0.8, linestyle=(0, (4, 3)), zorder=0)
    ax.set_yticks(range(len(chosen)), chosen)
    ax.set_ylim(len(chosen) - 0.5, -0.5)
    ax.set_xlabel(f"{metric}, mean over {len(found.qid):,} test queries with 95 % interval")
    ax.grid(axis="x", color="0.9", linewidth=0.6)
    return plain_axes(ax)


def _differences(found: Comparison, metric: str, chosen: list[str], ax: Any) -> Any:
    base = found.per_query[found.baseline][metric]
    others = [label for label in chosen if label != found.baseline]
    if not others:
        raise UsageError(f"{found.baseline} is the baseline; differences need another ranker.")
    ax = new_axes(ax)
    better = "better" if found.maximise[metric] else "worse"
    for number, label in enumerate(others):
        change = found.per_query[label][metric] - base
        change = np.sort(change[~np.isnan(change)])[::-1]
        place = np.arange(1, len(change) + 1)
        if len(others) == 1:
            colours = np.where((change > 0) == found.maximise[metric], COLOURS[0], COLOURS[1])
            ax.bar(place, change, width=1.0, color=colours, linewidth=0)
        else:
            ax.step(place, change, where="mid", label=label, **line_style(number, mark=False))
    ax.axhline(0.0, color="0.2", linewidth=0.8)
    ax.set_xlim(0.5, len(base) + 0.5)
    ax.set_xlabel("test queries, sorted by difference")
    who = (
        f"{others[0]} − {found.baseline}" if len(others) == 1 else f"difference to {found.baseline}"
    )
    ax.set_ylabel(f"{metric}: {who}\n(above 0: {better})")
    ax.grid(axis="y", color="0.9", linewidth=0.6)
    ax.set_axisbelow(True)
    if len(others) > 1:
        add_legend(ax)
    return plain_axes(ax)


def _metric_at_k(found: Comparison, metric: str, chosen: list[str], ks: list[int], ax: Any) -> Any:
    if "@" in metric:
        raise UsageError(f"'{metric}' has a cut-off; metric_at_k takes it without, such as ndcg.")
    means = _means_at(found, metric, chosen, ks)
    ax = new_axes(ax)
    for number, label in enumerate(chosen):
        ax.plot(ks, means[label], label=label, **line_style(number))
    return _with_legend(ax, "cut-off k", f"{metric}@k, mean over {len(found.qid):,} test queries")


def _means_at(
    found: Comparison, metric: str, chosen: list[str], ks: list[int]
) -> dict[str, list[float]]:
    """Return the mean of the metric at every cut-off, by label."""
    at = named_metrics([f"{metric}@{k}" for k in ks], convention=found.convention)
    tests = [
        replace(fold.test, X=np.empty((fold.test.n_documents, 0)), feature_names=None)
        for fold in found.folds
    ]
    pooled = pooled_values(tests, {label: found.scores[label] for label in chosen}, at)
    return {label: [pooled.mean(label, name) for name in at] for label in chosen}


def _curves(found: Comparison, metric: str | None, chosen: list[str], ax: Any) -> Any:
    curves = {label: found.learning_curve(label, metric) for label in chosen}
    drawn = {label: curve for label, curve in curves.items() if curve and len(curve["rounds"]) > 1}
    if not drawn:
        what = f" of {metric}" if metric else ""
        raise UsageError(
            f"none of {', '.join(chosen)} has a learning curve{what}: these need rounds, and a "
            "validation set in the folds."
        )
    names = {curve["metric"] for curve in drawn.values()}
    if len(names) > 1:
        raise UsageError(
            f"the learning curves are of {', '.join(sorted(names))}; choose one with metric=..."
        )
    ax = new_axes(ax)
    for number, (label, curve) in enumerate(drawn.items()):
        style = line_style(number)
        every = max(1, len(curve["rounds"]) // _MOST_MARKS)
        valid = {**style, "linestyle": "solid", "markevery": every}
        ax.plot(curve["rounds"], curve["valid"], label=label, **valid)
        if "train" in curve:
            train = {"color": style["color"], "linewidth": 1.0, "linestyle": (0, (4, 1.6))}
            ax.plot(curve["rounds"], curve["train"], **train)
    if any("train" in curve for curve in drawn.values()):
        ax.plot([], [], color="0.4", linewidth=1.4, label="validation (solid)")
        ax.plot([], [], color="0.4", linewidth=1.0, linestyle=(0, (4, 1.6)), label="train (dashed)")
    return _with_legend(ax, "iteration", f"{names.pop()}, mean over folds")


def _with_legend(ax: Any, x: str, y: str) -> Any:
    """Label the axes of curves over whole numbers and add their legend."""
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.grid(color="0.9", linewidth=0.6)
    add_legend(ax)
    return plain_axes(ax)
