"""Names and categories of other libraries' models: no two may be the same."""

import pytest

from rankwright.errors import DataError
from rankwright.persist.imported import category_list, distinct_names


def test_names_stay_as_they_are_unless_two_are_the_same():
    assert distinct_names(["age", "clicks"]) == ("age", "clicks")
    with pytest.raises(DataError, match="2 of its features are called 'age'"):
        distinct_names(["age", "clicks", "age"])


def test_categories_are_texts_numbers_or_booleans():
    found = category_list(["red", 3, True], ordered=True)
    assert found.values == ("red", 3, True)
    assert found.ordered


@pytest.mark.parametrize("values", [["a", "a"], [1, True], [None], [["a"]]])
def test_what_is_no_list_of_different_values_is_refused(values):
    with pytest.raises(DataError, match="must be a list of different values"):
        category_list(values)
