import numpy as np
import pytest
from scipy import sparse

from rankwright.errors import DataError, UsageError
from rankwright.models.missing import fill_values, filled, without_gaps

X = np.array([[1.0, 0.0, np.nan], [3.0, np.nan, np.nan], [5.0, 4.0, np.nan]])


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_gaps_get_the_mean_of_what_is_known_or_zero(form):
    mean = fill_values(form(X), "mean")
    assert mean.tolist() == [3.0, 2.0, 0.0]
    whole = filled(form(X), mean, "linear")
    dense = whole.toarray() if sparse.issparse(whole) else whole
    assert dense.tolist() == [[1, 0, 0], [3, 2, 0], [5, 4, 0]]
    assert fill_values(form(X), "zero").tolist() == [0.0, 0.0, 0.0]
    assert np.isnan(X).sum() == 4  # the caller's data is left alone


def test_whole_data_is_not_copied():
    whole = np.ones((4, 2))
    assert filled(whole, None, "linear") is without_gaps(whole, "factorization") is whole


def test_the_sentence_names_the_column_and_the_way_out():
    with pytest.raises(DataError, match=r"column 1 has missing .* a kernel model .*missing='mean'"):
        filled(X, None, "kernel")
    with pytest.raises(DataError, match=r"column 1 .* a factorization model .* leave those rows"):
        without_gaps(X, "factorization")
    with pytest.raises(UsageError, match="missing must be 'mean', 'zero' or None"):
        fill_values(X, "median")
