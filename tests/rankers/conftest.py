"""Arrays whose queries are mixed, and the setting that routes qid."""

import numpy as np
import pytest
from sklearn import config_context
from small_data import small_data


@pytest.fixture(scope="module")
def arrays():
    data = small_data(queries=18, documents=10)
    rows = np.random.default_rng(0).permutation(data.n_documents)  # queries need not be together
    return data.X[rows], data.y[rows], np.repeat(data.qid, data.sizes)[rows]


@pytest.fixture
def routing():
    with config_context(enable_metadata_routing=True):
        yield
