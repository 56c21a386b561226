"""A failed property is one sentence that names the part, the promise and the row."""

import numpy as np
import pytest

from rankwright.errors import ContractError
from rankwright.testing.contract import (
    graded,
    require_close,
    require_equal,
    run_checks,
    shuffled_within,
)


def check_sum(part):
    """The sum is 3.

    More is said here.
    """
    require_equal(sum(part), 3, ("the sum", "the promise"))


def test_a_failure_names_part_promise_and_numbers():
    run_checks("list 'a'", [1, 2], [check_sum])
    with pytest.raises(ContractError) as found:
        run_checks("list 'b'", [1, 1], [check_sum])
    assert str(found.value) == (
        "list 'b' breaks the contract 'The sum is 3': the sum is 2, and the promise is 3."
    )


def test_an_error_of_the_part_itself_is_one_too():
    with pytest.raises(ContractError, match="breaks the contract 'The sum is 3': TypeError: "):
        run_checks("list 'c'", [None], [check_sum])


def test_the_first_row_that_differs_is_named():
    require_close([1.0, np.nan], [1.0, np.nan], ("a", "b"))
    require_close([1.0], [1.001], ("a", "b"), rtol=0.01)
    with pytest.raises(ContractError, match="a is 2 at row 1, and b is 3"):
        require_close([1.0, 2.0, 5.0], [1.0, 3.0, 6.0], ("a", "b"))
    with pytest.raises(ContractError, match=r"a has the shape \(1,\), b \(2,\)"):
        require_close([1.0], [1.0, 2.0], ("a", "b"))


def test_rows_are_shuffled_within_their_queries():
    data = graded([[2, 1, 0], [], [1, 0]])
    rows = shuffled_within(data, seed=1)
    assert sorted(rows[:3]) == [0, 1, 2]
    assert sorted(rows[3:]) == [3, 4]
    assert any((shuffled_within(data, seed) != np.arange(5)).any() for seed in range(3))
