"""Why one document is above another: parts that sum to the lead, swaps that do swap."""

from dataclasses import replace

import numpy as np
import pytest
from cases import each
from explained import DATA, RANKERS, fitted_of

import rankwright
from rankwright.data.ranking_data import RankingData
from rankwright.explanation import explain
from rankwright.explanation.pair import PairExplanation, Part, Swap
from rankwright.explanation.query import Place

IN_FLOAT32 = replace(DATA, X=DATA.X.astype(np.float32))


@pytest.mark.parametrize("family", RANKERS)
@each("docs", [(1, 5), (2, 3), (7, 4)])
def test_the_parts_of_a_pair_sum_to_its_lead(family, docs):
    fitted = fitted_of(family)
    found = explain(fitted, DATA, query=DATA.qid[2], docs=docs)
    begin = DATA.indptr[2]
    scores = fitted.predict(DATA)[[begin + docs[0] - 1, begin + docs[1] - 1]]
    assert found.lead == pytest.approx(abs(scores[0] - scores[1]))
    total = sum(part.part for part in found.parts) + found.rest
    assert total == pytest.approx(found.lead, abs=1e-6)


def test_a_pair_prints_no_line_for_what_rounding_leaves():
    places = [Place("a", 1, 0.3, 1.0), Place("b", 2, 0.0, 0.0)]
    parts = [Part("x", 1.0, 0.0, 0.2), Part("y", 1.0, 0.0, 0.1)]
    exact = PairExplanation("q", *places, 0.3, parts, 0.0, "weights", [])
    assert 0.3 - (0.2 + 0.1) != 0.0
    assert "everything else" not in str(exact)
    assert "+0.1  everything else" in str(replace(exact, lead=0.4))


def test_the_smallest_swap_is_printed_last():
    places = [Place("a", 1, 0.3, 1.0), Place("b", 2, 0.0, 0.0)]
    found = PairExplanation("q", *places, 0.3, [], 0.0, "weights", [])
    of_number = Swap("a", "age", 2.0, -1.5, 0.25)
    of_category = Swap("b", "town", "Rome", "Oslo", 1.0)
    for swaps, line in (
        ([], "no value of a single feature in the data swaps them"),
        (
            [of_number, of_category],
            "they swap when age of a goes from 2 to -1.5 (0.25 standard deviations)",
        ),
        ([of_category], "they swap when town of b goes from Rome to Oslo"),
    ):
        assert str(replace(found, swaps=swaps)).splitlines()[-1] == f"  {line}"


def test_a_classifier_has_weights_by_grade_and_swaps_all_the_same():
    fitted = rankwright.ranker("classification").fit(DATA)
    found = explain(fitted, DATA, query=DATA.qid[0], docs=(1, 2))
    assert found.method == "Shapley values over sampled orders"
    assert found.swaps


def test_a_linear_pair_is_split_by_weights():
    fitted = fitted_of("linear")
    found = explain(fitted, DATA, query=DATA.qid[0], docs=(1, 2))
    for part in found.parts:
        weight = fitted.coef_[int(part.feature) - 1]
        assert part.part == pytest.approx(weight * (part.upper - part.lower))


@pytest.mark.parametrize("family", RANKERS)
@each("data", [DATA, IN_FLOAT32])
@each("docs", [(1, 5), (2, 3), (7, 4)])
def test_every_stated_swap_does_swap(family, docs, data):
    fitted = fitted_of(family)
    found = explain(fitted, data, query=data.qid[1], docs=docs)
    assert [swap.size for swap in found.swaps] == sorted(swap.size for swap in found.swaps)
    begin = int(data.indptr[1])
    upper, lower = (begin + int(place.document) - 1 for place in (found.upper, found.lower))
    for swap in found.swaps:
        X = data.X.copy()
        row = begin + int(swap.document) - 1
        assert row in (upper, lower)
        assert X[row, int(swap.feature) - 1] == pytest.approx(swap.value)
        X[row, int(swap.feature) - 1] = swap.needed
        scores = fitted.predict(replace(data, X=X))
        assert scores[lower] > scores[upper]


@pytest.mark.parametrize("family", RANKERS)
def test_no_nearer_value_of_the_data_swaps(family):
    """Against brute force over all values of three queries, which are fewer than 64."""
    data = DATA.select(np.arange(3))
    ranker = fitted_of(family)
    pair = explain(ranker, data, query=data.qid[1], docs=(1, 5))
    sizes = {(swap.document, swap.feature): swap.size for swap in pair.swaps}
    begin = int(data.indptr[1])
    upper, lower = (begin + int(place.document) - 1 for place in (pair.upper, pair.lower))
    for row, other in ((upper, lower), (lower, upper)):
        sign = np.sign(ranker.predict(data)[other] - ranker.predict(data)[row])
        for column in range(data.n_features):
            swapping = []
            for value in np.unique(data.X[:, column]):
                X = data.X.copy()
                X[row, column] = value
                scores = ranker.predict(replace(data, X=X))
                if sign * (scores[row] - scores[other]) > 0.0:
                    swapping.append(abs(value - data.X[row, column]) / data.X[:, column].std())
            stated = sizes.get((str(row - begin + 1), str(column + 1)))
            assert stated == (pytest.approx(min(swapping)) if swapping else None)


def test_integrated_gradients_of_a_network_by_many_small_steps():
    """(1) as a sum over 2,000 steps of finite differences, feature by feature."""
    fitted = fitted_of("network")
    found = explain(fitted, DATA, query=DATA.qid[0], docs=(1, 2))
    A, B = (DATA.X[int(place.document) - 1] for place in (found.upper, found.lower))
    t = (np.arange(2_000) + 0.5) / 2_000
    points = B + np.outer(t, A - B)
    for part in found.parts:
        step = np.zeros(6)
        step[int(part.feature) - 1] = 1e-5
        gradient = (fitted.predict(points + step) - fitted.predict(points - step)) / 2e-5
        column = int(part.feature) - 1
        assert part.part == pytest.approx((A - B)[column] * gradient.mean(), abs=1e-5)
    assert abs(found.rest) < 1e-9


def test_swaps_are_scaled_by_the_columns_of_the_names():
    X = DATA.X * np.array([1.0, 100.0, 1.0, 1.0, 1.0, 1.0])
    names = list("abcdef")
    data = RankingData.from_arrays(X, DATA.y, qid=DATA.query_of_row(), feature_names=names)
    turned = replace(data, X=np.ascontiguousarray(X[:, ::-1]), feature_names=tuple(names[::-1]))
    fitted = rankwright.ranker("listmle").fit(data)
    pair = [explain(fitted, d, query=0, docs=[1, 2]).to_dict() for d in (data, turned)]
    assert pair[0] == pair[1]
