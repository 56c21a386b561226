"""A test of many cases runs all of them, and names the one that fails."""

import inspect

import pytest
from cases import case, each


def test_every_combination_is_run_and_fixtures_are_passed_on():
    seen = []

    @each("a", [1, 2])
    @each(("b", "c"), [(3, 4), (5, 6)])
    def test(fixture, a, b, c):
        seen.append((fixture, a, b, c))

    assert list(inspect.signature(test).parameters) == ["fixture"]
    test(fixture=0)
    assert seen == [(0, 1, 3, 4), (0, 1, 5, 6), (0, 2, 3, 4), (0, 2, 5, 6)]


def test_the_case_that_fails_is_named():
    @each("n", range(3))
    def test(n):
        assert n < 2

    with pytest.raises(AssertionError) as found:
        test()
    assert found.value.__notes__ == ["case: {'n': 2}"]
    with pytest.raises(pytest.fail.Exception) as found, case("ndcg", 10), pytest.raises(KeyError):
        pass
    assert found.value.__notes__ == ["case: ndcg, 10"]


def test_no_cases_are_no_test():
    with pytest.raises(AssertionError, match="no value of n"):
        each("n", [])
