import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from rankwright.core.dtypes import as_feature_matrix, as_float_vector, not_above
from rankwright.errors import DataError


def test_float32_and_float64_are_kept_without_a_copy():
    for dtype in (np.float32, np.float64):
        X = np.ones((2, 3), dtype)
        assert as_feature_matrix(X) is X


def test_integers_and_booleans_become_float64():
    assert as_feature_matrix([[1, 2]]).dtype == np.float64
    assert as_feature_matrix(np.array([[True]])).dtype == np.float64


def test_a_transposed_array_becomes_contiguous():
    assert as_feature_matrix(np.ones((3, 2)).T).flags.c_contiguous


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil"])
def test_any_sparse_form_becomes_csr(form):
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((5, 4)) < 0.5, rng.normal(size=(5, 4)), 0.0)
    X = sparse.coo_array(dense).asformat(form)
    got = as_feature_matrix(X)
    assert got.format == "csr"
    assert (got.toarray() == X.toarray()).all()


def test_duplicate_sparse_entries_are_added_without_touching_the_callers_matrix():
    X = sparse.csr_array((np.array([1.0, 2.0]), np.array([0, 0]), np.array([0, 2])), shape=(1, 2))
    assert as_feature_matrix(X).toarray().tolist() == [[3.0, 0.0]]
    assert X.nnz == 2


@pytest.mark.parametrize(
    ("X", "sentence"),
    [
        (np.array([[1.0, np.inf]]), "infinite at row 0, feature column 1"),
        (sparse.csr_array(np.array([[0.0, 1.0], [np.inf, 0]])), "row 1, feature column 0"),
        (np.array([["a", "b"]]), "holds .*'a'"),
        (np.array([[1.0, "2"]], object), "holds '2'"),
        (np.ones(3), "two dimensions"),
        (np.ones((2, 2, 2)), "of shape"),
    ],
)
def test_what_is_not_a_table_of_numbers_is_refused(X, sentence):
    with pytest.raises(DataError, match=sentence):
        as_feature_matrix(X)


def test_none_is_missing():
    assert np.isnan(as_feature_matrix(np.array([[None, 1]], object))[0, 0])


def test_a_vector_of_text_is_refused_with_its_row():
    with pytest.raises(DataError, match=r"y must be numbers; row 1 holds 'bad'"):
        as_float_vector([1, "bad"], "y", 2)


def test_a_vector_of_the_wrong_length_is_refused():
    with pytest.raises(DataError, match="y has 3 values, where 2 are expected"):
        as_float_vector([1, 2, 3], "y", 2)


@given(st.floats(-1e300, 1e300), st.floats(width=32, allow_nan=False))
def test_a_float32_compares_alike_with_a_number_and_the_float32_not_above_it(cut, x):
    found = not_above(np.array([cut]))
    assert found.dtype == np.float32
    assert (np.float32(x) <= found[0]) == (x <= cut)
