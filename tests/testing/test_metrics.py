"""`check_metric` names the property that a metric breaks."""

from dataclasses import replace

import numpy as np
import pytest

from rankwright.errors import ContractError
from rankwright.metrics.base import metric
from rankwright.metrics.ndcg import NDCG
from rankwright.metrics.ranked import Ranked
from rankwright.testing import check_metric, metric_checks


def first_is_best(scores, grades):
    return float(grades[scores.argmax()] == grades.max())


def test_check_metric_takes_a_name_an_object_and_a_function():
    check_metric("ndcg@5", convention="letor4")
    check_metric(metric("map"))
    check_metric(first_is_best)


@pytest.mark.parametrize(
    ("broken", "sentence"),
    [
        (
            lambda s, y: -float(y[s.argmax()]),
            "'No order of the documents is better than the order by grade': grades in the order",
        ),
        (lambda s, y: float(y[0]), "better than the order by grade|order of rows has no effect"),
        (lambda s, y: "good", "DataError: the metric 'lambda' returned 'good' for query 0"),
    ],
)
def test_check_metric_names_the_property_that_fails(broken, sentence):
    with pytest.raises(ContractError, match=sentence):
        check_metric(broken)


class NearMeanOfTies(NDCG):
    def compute(self, ranked, mean, out):
        by_row = np.empty_like(out)
        super().compute(ranked, False, by_row)
        super().compute(ranked, mean, out)
        out += 0.01 * (by_row - out)


class TiesByRow(NDCG):
    def compute(self, ranked, mean, out):
        super().compute(ranked, False, out)


class BoundsByRow(NDCG):
    def values(self, ranked, *, mean=False):
        return super().values(Ranked(ranked.judged, ranked.scores, "file"), mean=mean)


class OtherByThreads(NDCG):
    def compute(self, ranked, mean, out):
        super().compute(ranked, mean, out)
        out += 1e-12 * ranked.judged.n_jobs


class OtherWhenEmpty(NDCG):
    def settled(self, judged):
        mask, values = super().settled(judged)
        return mask, values + 0.25


class InfiniteWhereSingle(NDCG):
    def compute(self, ranked, mean, out):
        super().compute(ranked, mean, out)
        out[ranked.judged.sizes == 1] = np.inf


class SelectsByFile(NDCG):
    def for_selection(self):
        return replace(self, ties="file")


@pytest.mark.parametrize(
    ("broken", "named"),
    [
        (NearMeanOfTies, "check_mean_over_ties"),
        (TiesByRow, "check_mean_over_ties"),
        (TiesByRow, "check_rows_of_ties"),
        (BoundsByRow, "check_bounds_over_ties"),
        (OtherByThreads, "check_threads"),
        (OtherWhenEmpty, "check_degenerate_queries"),
        (InfiniteWhereSingle, "check_degenerate_queries"),
        (SelectsByFile, "check_selection"),
    ],
)
def test_each_property_is_missed_where_it_is_broken(broken, named):
    check = {one.__name__: one for one in metric_checks(broken(k=5))}[named]
    check(NDCG(k=5))
    with pytest.raises(ContractError):
        check(broken(k=5))
