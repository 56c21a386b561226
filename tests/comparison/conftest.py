"""A comparison of three quick rankers, fitted once."""

import pytest
from compared import QUICK
from small_data import small_data

from rankwright.comparison.compare import compare


@pytest.fixture(scope="session")
def data():
    return small_data(queries=24, documents=10)


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def found(data, cache):
    return compare(data, QUICK, folds=3, cache=cache)
