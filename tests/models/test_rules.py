"""Rules over columns: where they are cut, and the steepest of them against trying all."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from rankwright.models.rules import RuleTable

GAP = np.nan


def test_equal_widths_leave_out_rules_that_all_or_none_meet():
    X = np.array([[0.0, 3.0], [10.0, 3.0], [9.0, 3.0]])
    rising, constant = RuleTable.of(X, 5).cuts
    assert rising == pytest.approx([2.0, 4.0, 6.0, 8.0])
    assert len(constant) == 0


def test_all_values_but_the_highest_are_thresholds():
    assert RuleTable.of(np.array([[2.0], [7.0], [2.0], [5.0]]), "all").cuts[0].tolist() == [2, 5]


def test_a_column_with_gaps_has_a_rule_that_there_is_a_value():
    table = RuleTable.of(np.array([[GAP], [1.0], [GAP], [1.0]]), 10)
    assert table.cuts[0].tolist() == [-np.inf]
    rule = table.steepest(np.array([1.0, -2.0, 1.0, -2.0]))
    assert (rule.threshold, rule.derivative) == (-np.inf, -4.0)
    assert table.meets(rule).tolist() == [0, 1, 0, 1]


def test_nothing_is_steepest_where_all_is_level():
    assert RuleTable.of(np.ones((4, 2)), 10).steepest(np.arange(4.0)) is None
    table = RuleTable.of(np.array([[0.0], [1.0]]), 10)
    assert table.steepest(np.zeros(2)) is None
    assert table.steepest(np.array([-1.0, 1.0]), falling=False) is None


@given(st.integers(0, 10_000), st.sampled_from([2, 5, "all"]), st.booleans())
def test_the_steepest_rule_is_that_of_trying_all(seed, n_candidates, falling):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(13, 3)).round(1)
    X[rng.random(X.shape) < 0.2] = np.nan
    g = rng.normal(size=13)
    table = RuleTable.of(X, n_candidates)
    sums = [g[X[:, f] > cut].sum() for f in range(3) for cut in table.cuts[f]]
    sizes = np.abs(sums) if falling else -np.array(sums)
    rule = table.steepest(g, falling=falling)
    if rule is None:
        assert max(sizes, default=0.0) <= 1e-12
        return
    assert abs(rule.derivative) == pytest.approx(max(sizes))
    assert (table.meets(rule) == (X[:, rule.feature] > rule.threshold)).all()
    for threads in (2, 5):
        assert table.steepest(g, falling=falling, n_jobs=threads) == rule


def test_sparse_and_dense_columns_have_the_same_rules():
    X = np.array([[0.0, 2.0], [1.0, 0.0], [0.0, -1.0]])
    dense, thin = RuleTable.of(X, "all"), RuleTable.of(sparse.csr_array(X), "all")
    assert (dense.codes == thin.codes).all()
