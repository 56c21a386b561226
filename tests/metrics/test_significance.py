"""Tests over per-query values: against SciPy, exact enumeration and their own definitions."""

from dataclasses import astuple
from itertools import product

import numpy as np
import pytest
from scipy import stats

from rankwright.errors import DataError
from rankwright.metrics.significance import (
    benjamini_hochberg,
    bootstrap_interval,
    holm,
    paired_t,
    randomisation,
    welch_t,
    wilcoxon,
)

A = np.array([0.9, 0.4, 0.7, 0.8, 0.3, 0.6])
B = np.array([0.5, 0.45, 0.6, 0.5, 0.2, 0.65])


def test_paired_t_is_the_mean_difference_over_its_standard_error():
    d = A - B
    t = d.mean() / (d.std(ddof=1) / np.sqrt(len(d)))
    found = paired_t(A, B)
    assert found.statistic == pytest.approx(t)
    assert found.p_value == pytest.approx(2 * stats.t.sf(abs(t), len(d) - 1))
    assert (found.difference, found.n) == (pytest.approx(d.mean()), 6)


def test_welch_t_allows_different_numbers_of_queries():
    found = welch_t(A, B[:4])
    error = np.sqrt(A.var(ddof=1) / 6 + B[:4].var(ddof=1) / 4)
    assert found.statistic == pytest.approx((A.mean() - B[:4].mean()) / error)
    assert found.n == 10


def test_wilcoxon_is_scipys_of_rounded_differences():
    assert wilcoxon(A, B).p_value == stats.wilcoxon(np.round(A - B, 12)).pvalue
    raw = stats.wilcoxon(A, B).pvalue  # equal differences are ranked apart
    assert wilcoxon(A, B).p_value == pytest.approx(raw, abs=0.1)


def test_randomisation_of_few_queries_tries_every_swap():
    d = A - B
    means = [abs(np.mean(d * signs)) for signs in product((1, -1), repeat=len(d))]
    exact = np.mean(np.array(means) >= abs(d.mean()) - 1e-12)
    assert randomisation(A, B).p_value == pytest.approx(exact)


def test_randomisation_of_many_queries_is_near_t_and_the_seed_decides():
    rng = np.random.default_rng(0)
    a, b = rng.normal(0.5, 0.1, 200), rng.normal(0.51, 0.1, 200)
    found = randomisation(a, b, seed=3)
    assert found.p_value == pytest.approx(paired_t(a, b).p_value, abs=0.02)
    assert randomisation(a, b, seed=3) == found
    assert randomisation(a, b, seed=4) != found


def test_randomisation_of_many_queries_is_scipys():
    rng = np.random.default_rng(1)
    a, b = rng.random(61), rng.random(61) + 0.08
    reported = stats.permutation_test(
        (a, b),
        lambda a, b, axis: (a - b).mean(axis=axis),
        permutation_type="samples",
        n_resamples=20_000,
        vectorized=True,
        random_state=np.random.default_rng(2),
    )
    assert randomisation(a, b).p_value == pytest.approx(reported.pvalue, abs=0.015)
    assert 0.01 < reported.pvalue < 0.5


def test_queries_left_out_on_one_side_are_left_out_on_both():
    a, b = np.append(A, [np.nan, 0.1]), np.append(B, [0.3, np.nan])
    assert paired_t(a, b) == paired_t(A, B)


@pytest.mark.parametrize("test", [paired_t, welch_t, wilcoxon, randomisation])
def test_equal_systems_do_not_differ(test):
    assert test(A, A).p_value == 1.0


def test_a_difference_without_variance_is_certain():
    assert paired_t([1.0, 1.5], [0.5, 1.0]).p_value == 0
    assert welch_t([1.0, 1.0], [0.5, 0.5]).statistic == np.inf


def test_a_bootstrap_interval_holds_the_mean_and_the_seed_decides():
    values = np.random.default_rng(1).random(400)
    found = bootstrap_interval(values, seed=5)
    assert found.low < found.mean < found.high
    assert found.mean == pytest.approx(values.mean())
    normal = 1.96 * values.std() / 20
    assert found.high - found.low == pytest.approx(2 * normal, rel=0.05)
    assert bootstrap_interval(values, seed=5) == found
    narrow = bootstrap_interval(values, level=0.5, seed=5)
    assert found.low < narrow.low < narrow.high < found.high


def test_holm_multiplies_the_smallest_most_and_never_steps_down():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm({"x": 0.02, "y": 0.01}) == pytest.approx({"x": 0.02, "y": 0.02})


@pytest.mark.parametrize(
    ("a", "b", "sentence"),
    [([1, 2], [1, 2, 3], "the same queries"), ([1, np.nan], [1, 2], "two queries or more, not 1")],
)
def test_what_cannot_be_compared_is_refused(a, b, sentence):
    with pytest.raises(DataError, match=sentence):
        paired_t(a, b)


DRAWS = {
    "few grades": lambda rng, size: rng.beta(0.5, 5, size),
    "near 1": lambda rng, size: np.where(rng.random(size) < 0.5, 1, rng.beta(3, 2, size)),
    "reciprocal rank": lambda rng, size: 1 / rng.geometric(0.5, size),
    "p@1": lambda rng, size: (rng.random(size) < 0.8) * 1.0,
    "difference": lambda rng, size: (rng.random(size) < 0.5) * rng.normal(0.02, 0.2, size),
}


@pytest.mark.parametrize("n", [10, 20])
@pytest.mark.parametrize("name", DRAWS)
def test_intervals_of_few_queries_cover_the_mean(name, n):
    """Intervals from percentiles of the bootstrap cover 0.85 to 0.94 here."""
    rng = np.random.default_rng(1)
    true = DRAWS[name](rng, 1_000_000).mean()
    bounds = (-1.0, 1.0) if name == "difference" else (0.0, 1.0)
    found = [
        bootstrap_interval(values, rounds=500, bounds=bounds)
        for values in DRAWS[name](rng, (500, n))
    ]
    covered = np.mean([one.low <= true <= one.high for one in found])
    assert 0.925 <= covered <= 1.0
    assert all(bounds[0] <= one.low <= one.mean <= one.high <= bounds[1] for one in found)


def test_intervals_of_weighted_means_cover_them():
    rng = np.random.default_rng(1)

    def draw(size):
        weight = rng.lognormal(0.0, 1.0, size)
        return rng.beta(0.5, 1.5, size) ** (1 / (1 + 0.3 * np.log(weight).clip(-1, 1))), weight

    values, weight = draw(1_000_000)
    true = np.average(values, weights=weight)
    found = []
    for _ in range(500):
        values, weight = draw(20)
        found.append(bootstrap_interval(values, query_weight=weight, rounds=500, bounds=(0, 1)))
        assert found[-1].mean == pytest.approx(np.average(values, weights=weight))
    covered = np.mean([one.low <= true <= one.high for one in found])
    assert 0.92 <= covered <= 0.98


def test_weights_of_one_and_queries_of_weight_0_change_nothing():
    values = np.random.default_rng(2).random(12)
    plain = bootstrap_interval(values)
    threes = bootstrap_interval(values, query_weight=np.full(12, 3.0))
    assert astuple(threes) == pytest.approx(astuple(plain))
    more, weight = np.append(values, 9.0), np.append(np.ones(12), 0.0)
    assert bootstrap_interval(more, query_weight=weight) == plain


def test_intervals_of_one_query_two_queries_and_equal_values():
    one = bootstrap_interval([0.5, np.nan])
    assert one.mean == 0.5
    assert np.isnan([one.low, one.high]).all()
    assert np.isnan(bootstrap_interval([np.nan]).mean)
    two = bootstrap_interval([0.4, 0.5], bounds=(0, 1))
    assert (two.low, two.high) == (0.0, 1.0)  # Student's t with one degree of freedom: 12.7 errors
    zero = bootstrap_interval(np.zeros(10))
    assert (zero.low, zero.high) == (0.0, 0.0)
    perfect = bootstrap_interval(np.ones(10), bounds=(0, 1))
    exact = stats.binomtest(10, 10).proportion_ci(0.95).low
    assert (perfect.low, perfect.high) == (pytest.approx(exact), 1.0)


@pytest.mark.filterwarnings("ignore:Sample size too small")  # of SciPy before 1.15
def test_wilcoxon_leaves_equal_queries_out_and_ranks_past_rounding():
    """Four gains of 0.1 and a loss of 0.3: ranks 2.5 four times, and 5."""
    a = np.array([0.3, 0.4, 0.5, 0.9, 0.1, 0.7, 0.7])
    b = np.array([0.2, 0.3, 0.4, 0.8, 0.4, 0.7, 0.7])
    assert len({*(a - b)[:4].tolist()}) > 1  # not equal as they are computed
    found = wilcoxon(a, b)
    assert found.statistic == 5.0
    assert found.p_value == stats.wilcoxon([1, 1, 1, 1, -3, 0, 0]).pvalue
    assert wilcoxon(a, a).p_value == 1.0


def test_benjamini_and_hochbergs_rule_is_scipys():
    assert benjamini_hochberg([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.04, 0.04])  # by hand
    for m in (1, 2, 7):
        p = np.random.default_rng(m).random(m)
        assert benjamini_hochberg(p) == pytest.approx(stats.false_discovery_control(p))
    assert benjamini_hochberg({"a": 0.5, "b": 0.02}) == {"a": 0.5, "b": 0.04}
