"""Contract of metrics: `check_metric` checks a metric, `metric_checks` lists the properties.

Short lists are evaluated in all orders of their documents. This verifies independently of the
metric that the ideal order is best, and that models are selected by the mean over the orders of
tied documents.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby, permutations, product
from typing import Any

import numpy as np

from rankwright.core.types import F64
from rankwright.data.ranking_data import RankingData
from rankwright.metrics.base import FunctionMetric, Metric
from rankwright.metrics.base import metric as metric_named
from rankwright.metrics.evaluation import Evaluator, evaluate, mean_over_queries
from rankwright.metrics.ranked import Ranked
from rankwright.testing.contract import (
    Check,
    graded,
    require,
    require_close,
    require_equal,
    run_checks,
    shuffled_within,
)

LISTS: list[tuple[float, ...]] = [
    (0,),
    (2,),
    (0, 1),
    (1, 1),
    (0, 0, 0),
    (2, 0, 1),
    (2, 2, 1, 0),
    (1, 0, 0, 2, 1),
]
LISTS += [(2, 0, 0, 1, 0, 2), (2, 2, 2, 2, 0, 1), (0.5, 1.5, 0, 2)]


def check_metric(metric: Any, *, convention: str = "standard") -> None:
    """Raise `ContractError` unless ``metric`` has the properties of all metrics.

    Parameters
    ----------
    metric : str, Metric or callable
        A name such as ``ndcg@10``, an object, or a function of the scores and grades of one query.
    convention : str, default "standard"
        Of a metric given by name.

    Examples
    --------
    >>> check_metric("ndcg@3")
    """
    metric = metric_named(metric, convention=convention)
    run_checks(f"metric '{metric!r}'", metric, metric_checks(metric))


def metric_checks(metric: Any) -> list[Check]:
    """Return the properties that ``metric`` must have.

    Returns
    -------
    list of callables
        Each takes the metric, and raises an error if the property does not hold.

    Examples
    --------
    >>> import rankwright as rw
    >>> metric = rw.metric("ndcg@3")
    >>> for check in rw.testing.metric_checks(metric)[:2]:
    ...     check(metric)
    """
    metric = metric_named(metric)
    checks: list[Check] = [
        check_value,
        check_ideal_order,
        check_row_order,
        check_degenerate_queries,
        check_query_weights,
        check_threads,
        check_selection,
    ]
    if not isinstance(metric, FunctionMetric):
        checks.append(check_bounds_over_ties)
        if metric.exact_ties:
            checks += [check_mean_over_ties, check_rows_of_ties]
    return checks


# --- what the checks share -----------------------------------------------------------------------


def many_lists(lists: Any, scores: Any) -> tuple[RankingData, F64]:
    """Return data with these lists of grades as queries, and their scores end to end."""
    return graded(lists), np.concatenate([np.asarray(s, np.float64) for s in scores])


def random_lists(n: int = 200, seed: int = 0, tied: bool = False) -> tuple[list[Any], list[Any]]:
    """Return grades and scores of ``n`` queries of up to 39 documents."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 40, n)
    lists = [rng.choice([0, 0, 0, 1, 2, 3], size).astype(np.float64) for size in sizes]
    scores = [rng.integers(0, 6, size) if tied else rng.permutation(size) for size in sizes]
    return lists, scores


def tie_patterns(n: int) -> list[tuple[int, ...]]:
    """Return ways to give ``n`` documents up to three different scores."""
    patterns = [s for s in product(range(3), repeat=n) if max(s) == len(set(s)) - 1]
    return patterns if n < 6 else patterns[:: len(patterns) // 20]


def orders_of_ties(grades: Sequence[float], scores: Sequence[float]) -> Iterator[list[float]]:
    """Yield the grades, best score first, in every order of the tied documents."""
    ranked = sorted(zip(scores, grades, strict=True), key=lambda pair: -pair[0])
    ties = [[g for _, g in group] for _, group in groupby(ranked, key=lambda pair: pair[0])]
    for orders in product(*map(permutations, ties)):
        yield [g for order in orders for g in order]


def values_of(metric: Metric, data: RankingData, s: Any, **options: Any) -> F64:
    """Return the value of each query."""
    return evaluate(data, s, {"it": metric}, **options).per_query["it"]


def of_strict_orders(metric: Metric, orders: Any) -> F64:
    """Return the value of lists of grades in their order."""
    orders = list(orders)
    return values_of(metric, *many_lists(orders, [range(len(orders[0]), 0, -1)] * len(orders)))


# --- properties ----------------------------------------------------------------------------------


def check_value(metric: Metric) -> None:
    """The methods per_query, values and evaluate agree within bounds; the scores are unchanged."""
    lists, scores = random_lists(50, tied=True)
    data, s = many_lists(lists, scores)
    before, out = s.copy(), np.full(len(lists), np.inf)
    metric.per_query(s, data, out)
    values = values_of(metric, data, s)
    require_equal(out, values, ("per_query", "the result of evaluate"))
    ties = str(metric.setting("ties")).replace("mean", "file")
    again = metric.values(Ranked(metric.judge(data), s, ties))
    require_equal(again, values, ("values", "the result of evaluate"))
    require_equal(s, before, ("the array of scores after use", "before"))
    require(not np.isinf(values).any(), "a value is infinite.")
    low, high = metric.bounds
    outside = (values < low - 1e-12) | (values > high + 1e-12)
    require(not outside.any(), f"a value lies outside its bounds, {low:g} to {high:g}.")


def check_ideal_order(metric: Metric) -> None:
    """No order of the documents is better than the order by grade."""
    for grades in LISTS:
        orders = list(permutations(grades))
        values = of_strict_orders(metric, orders)
        ideal = values[orders.index(tuple(sorted(grades)[::-1]))]
        if np.isnan(ideal):
            require(np.isnan(values).all(), f"of grades {grades} some orders have no value.")
            continue
        best = values.max() if metric.maximise else values.min()
        better = best > ideal + 1e-15 if metric.maximise else best < ideal - 1e-15
        order = orders[int(values.argmax() if metric.maximise else values.argmin())]
        require(not better, f"grades in the order {order} have {best:.9g}, the ideal {ideal:.9g}.")


def check_row_order(metric: Metric) -> None:
    """The order of rows has no effect if no scores are tied."""
    data, s = many_lists(*random_lists(50))
    mixed = shuffled_within(data, 1)
    after = values_of(metric, replace(data, y=data.y[mixed]), s[mixed])
    require_equal(after, values_of(metric, data, s), ("the value of shuffled rows", "before"))


def check_degenerate_queries(metric: Metric) -> None:
    """Queries without documents and with one document have values."""
    data = RankingData.from_arrays(np.zeros((4, 1)), [0, 2, 1, 1], group_sizes=[0, 1, 1, 2, 0])
    values = values_of(metric, data, [0.1, 0.2, 0.3, 0.3])
    empty = np.full(2, metric.value_when_empty())
    names = ("the value of a query without documents", "value_when_empty()")
    require_equal(values[[0, 4]], empty, names)
    require(not np.isinf(values).any(), "a value is infinite.")
    low, high = metric.bounds
    outside = (values < low - 1e-12) | (values > high + 1e-12)
    require(not outside.any(), f"a value lies outside its bounds, {low:g} to {high:g}.")


def check_query_weights(metric: Metric) -> None:
    """The mean weighs queries by query_weight and omits queries with the value NaN."""
    lists, scores = random_lists(50)
    data, s = many_lists(lists, scores)
    weight = np.random.default_rng(3).choice([0.5, 1.0, 3.0], len(lists))
    evaluator = Evaluator(replace(data, query_weight=weight), {"it": metric})
    per_query = values_of(metric, data, s)
    require_equal(
        evaluator(s).per_query["it"], per_query, ("the value of a weighted query", "before")
    )
    mask = ~np.isnan(per_query)
    names = "the summary", f"the weighted {metric.summary} of values"
    mean = mean_over_queries(
        metric, per_query[mask], weight[mask], evaluator.weights("it")[1][mask]
    )
    require_close(evaluator(s)["it"], mean, names, rtol=1e-12)


def check_threads(metric: Metric) -> None:
    """The number of threads changes no bit."""
    rng = np.random.default_rng(0)
    n = 20_000
    data = RankingData.from_arrays(
        np.zeros((n, 1)), rng.integers(0, 4, n), qid=np.sort(rng.integers(0, 300, n))
    )
    s = rng.integers(0, 200, n).astype(np.float64)
    single, *threaded = (values_of(metric, data, s, n_jobs=n_jobs) for n_jobs in (1, 2, 5))
    for values in threaded:
        require(single.tobytes() == values.tobytes(), "the values of several threads differ.")


def check_selection(metric: Metric) -> None:
    """The metric that selects models averages ties, unless its name has another rule."""
    selects = metric.for_selection()
    require(selects.maximise == metric.maximise, "it points the other way.")
    expected = metric.ties or "mean"
    rule = selects.setting("ties")
    require(rule == expected, f"its rule for ties is {rule!r}, not {expected!r}.")


def check_mean_over_ties(metric: Metric) -> None:
    """The value that selects models is the mean over the orders of tied documents."""
    selects = replace(metric, ties="mean")
    require(not selects.own_ties, "ties=mean does not average its ties.")
    for grades in LISTS:
        patterns = tie_patterns(len(grades))
        data, s = many_lists([grades] * len(patterns), patterns)
        expected = [
            of_strict_orders(metric, orders_of_ties(grades, pattern)).mean() for pattern in patterns
        ]
        names = (f"the value of tied documents of grades {grades}", "the mean over their orders")
        require_close(values_of(selects, data, s), expected, names, rtol=1e-6, atol=1e-12)


def check_bounds_over_ties(metric: Metric) -> None:
    """The values for the worst and the best order of ties are the least and the most."""
    least, most = (np.min, np.max) if metric.maximise else (np.max, np.min)
    for grades in LISTS:
        patterns = tie_patterns(len(grades))
        data, s = many_lists([grades] * len(patterns), patterns)
        judged = metric.judge(data)
        tied = [of_strict_orders(metric, orders_of_ties(grades, p)) for p in patterns]
        for ties, expected in (("worst", least), ("best", most)):
            values = metric.values(Ranked(judged, s, ties, strict=True), mean=False)
            names = (f"the {ties} value of grades {grades}", "that of all orders of ties")
            require_close(values, [expected(t) for t in tied], names, rtol=1e-12, atol=1e-14)


def check_rows_of_ties(metric: Metric) -> None:
    """The order of rows changes nothing in the value that selects models, ties or not."""
    selects = replace(metric, ties="mean")
    data, s = many_lists(*random_lists(50, tied=True))
    mixed = shuffled_within(data, 1)
    after = values_of(selects, replace(data, y=data.y[mixed]), s[mixed])
    names = ("the value of shuffled rows", "before")
    require_close(after, values_of(selects, data, s), names, rtol=1e-7, atol=1e-12)
