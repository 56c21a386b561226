"""R-precision: precision at the number of relevant documents."""

import pytest
from small_data import value_of_ranking


def test_it_is_precision_at_the_number_of_relevant_documents():
    assert value_of_ranking("rprec", 1, 0, 1, 0) == 1 / 2
    assert value_of_ranking("rprec", 0, 1, 1, 1) == pytest.approx(2 / 3)
