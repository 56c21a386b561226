"""The first two sentences of a report: which ranker is best, how sure that is, and what to do."""

from __future__ import annotations

import math

from rankwright.comparison.result import Comparison, PairedTest


def conclusion(comparison: Comparison) -> tuple[str, str]:
    """Return what the headline metric says of the rankers, and what to do about it.

    Every figure is one of the comparison's own. Only its tests are called significant or not, so
    two rankers of which none is the baseline are never said to differ.
    """
    metric = comparison.metrics[0]
    means = {label: comparison.intervals[label][metric].mean for label in comparison.rankers}
    known = {label: mean for label, mean in means.items() if not math.isnan(mean)}
    if not known:
        return (
            f"No test query has a value of {metric}, so the rankers cannot be compared by it.",
            "Check the grades of the test data, or choose another metric.",
        )
    sign = 1 if comparison.maximise[metric] else -1
    order = sorted(known, key=lambda label: -sign * known[label])  # of equals the first listed
    best = order[0]
    if len(order) == 1:
        return _alone(comparison, best)
    if best != comparison.baseline:
        return _against_baseline(comparison, best, order)
    return _baseline_is_best(comparison, order)


def _alone(comparison: Comparison, label: str) -> tuple[str, str]:
    found = comparison.intervals[label][comparison.metrics[0]]
    return (
        f"{label} reaches {comparison.metrics[0]} {found.mean:.4f} on {comparison.name} "
        f"({found.level:.0%} interval {found.low:.4f} to {found.high:.4f}, "
        f"{_queries(comparison)}).",
        "There is no other ranker to compare it with; add a simple one, such as "
        "linear_regression, to see how much it gains.",
    )


def _against_baseline(comparison: Comparison, best: str, order: list[str]) -> tuple[str, str]:
    metric, baseline = comparison.metrics[0], comparison.baseline
    test = comparison.test(best, metric)
    if baseline not in order or test is None:
        first = f"{best} is best on {comparison.name} by {metric} ({_mean(comparison, best)})"
        return (
            f"{first}, but it was not tested against {baseline}.",
            f"Compare it with a baseline before using {best}.",
        )
    shown = (
        f"on {comparison.name}: {metric} {_mean(comparison, best)} against "
        f"{_mean(comparison, baseline)} of the baseline {baseline}"
    )
    if test.significant:
        first = f"{best} is best {shown}, a statistically significant difference "
        return (
            f"{first}({_p(test)}, {_queries(comparison)}).",
            f"Use {best}{_next_best(comparison, order)}.",
        )
    return (
        f"{best} is first {shown}, but the difference is not statistically significant "
        f"({_p(test)}, {_queries(comparison)}).",
        f"Keep {baseline} or choose by cost{_cost(comparison, best, baseline)}, and compare on "
        "more queries to decide.",
    )


def _baseline_is_best(comparison: Comparison, order: list[str]) -> tuple[str, str]:
    metric, best, second = comparison.metrics[0], order[0], order[1]
    test = comparison.test(second, metric)
    first = (
        f"The baseline {best} is best on {comparison.name}: {metric} {_mean(comparison, best)} "
        f"against {_mean(comparison, second)} of {second}, the next best"
    )
    if test is None:
        return f"{first}; this difference was not tested.", f"Keep {best}."
    if test.significant:
        return (
            f"{first}, a statistically significant difference ({_p(test)}, "
            f"{_queries(comparison)}).",
            f"Keep {best}; none of the other rankers improves on it.",
        )
    return (
        f"{first}, but this difference is not statistically significant ({_p(test)}, "
        f"{_queries(comparison)}).",
        f"Keep {best} unless {second} is cheaper to run{_cost(comparison, second, best)}, and "
        "compare on more queries to decide.",
    )


# --- parts of sentences --------------------------------------------------------------------------


def _mean(comparison: Comparison, label: str) -> str:
    return f"{comparison.intervals[label][comparison.metrics[0]].mean:.4f}"


def _p(test: PairedTest) -> str:
    return "p < 0.001" if test.adjusted < 0.001 else f"p = {test.adjusted:.3f}"


def _queries(comparison: Comparison) -> str:
    count = len(comparison.qid)
    return f"{count:,} test quer{'y' if count == 1 else 'ies'}"


def _cost(comparison: Comparison, label: str, other: str) -> str:
    """Return how long the two train, where that differs enough to matter."""
    own, others = comparison.seconds[label], comparison.seconds[other]
    if own is None or others is None or min(own, others) <= 0 or 0.5 <= own / others <= 2:
        return ""
    return f" ({label} trains in {_seconds(own)}, {other} in {_seconds(others)})"


def _next_best(comparison: Comparison, order: list[str]) -> str:
    """Return the cost of the best, and the second, of which the tests say nothing, if it is new."""
    best, second = order[:2]
    if second == comparison.baseline:
        return _cost(comparison, best, second)
    own, others = comparison.seconds[best], comparison.seconds[second]
    trains = "" if own is None else f", which trains in {_seconds(own)}"
    about = _mean(comparison, second) + ("" if others is None else f", {_seconds(others)}")
    test = comparison.test(best, comparison.metrics[0], against=second)
    if test is None:
        compared = "was not tested against it"
    elif test.significant:
        compared = f"is significantly worse ({_p(test)})"
    else:
        compared = f"is not significantly worse ({_p(test)})"
    return f"{trains}; the next best, {second} ({about}), {compared}"


def _seconds(seconds: float) -> str:
    return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:,.0f} s"
