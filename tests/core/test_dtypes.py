import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from rankwright.core.dtypes import (
    as_feature_matrix,
    as_float_vector,
    as_groups,
    as_vector,
)
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
        (np.array([["1.5"]]), "holds '1.5'"),
        (np.array([[b"1.5"]]), "holds b'1.5'"),
        (
            np.array([[1.0, {"foo": "bar"}]], object),
            "column 1 holds .*argument must be a str",
        ),
        (np.ones(3), "two dimensions"),
        (np.ones((2, 2, 2)), "of shape"),
    ],
)
def test_what_is_not_a_table_of_numbers_is_refused(X, sentence):
    with pytest.raises(DataError, match=sentence):
        as_feature_matrix(X)


def test_none_is_missing():
    assert np.isnan(as_feature_matrix(np.array([[None, 1]], object))[0, 0])


def test_pandas_na_is_missing():
    X = pd.DataFrame({"seen": pd.array([True, None], "boolean"), "age": [1.0, 2.0]})
    np.testing.assert_array_equal(as_feature_matrix(X), [[1, 1], [np.nan, 2]])


@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.float64])
def test_masked_features_are_missing(dtype):
    hidden = np.ma.masked_array(np.ones((2, 2), dtype), mask=[[True, False], [False, False]])
    found = as_feature_matrix(hidden)
    np.testing.assert_array_equal(found, [[np.nan, 1], [1, 1]])
    assert found.dtype == (np.float32 if dtype == np.float32 else np.float64)
    whole = as_feature_matrix(np.ma.masked_array(np.ones((2, 2), dtype)))
    np.testing.assert_array_equal(whole, np.ones((2, 2)))


def test_a_masked_value_of_a_vector_is_refused_with_its_row():
    hidden = np.ma.masked_array([1.0, 2.0], mask=[False, True])
    for take in (as_float_vector, as_vector, as_groups):
        with pytest.raises(DataError, match="the value of y at row 1 is masked; leave out such"):
            take(hidden, "y", 2)
    assert as_float_vector(np.ma.masked_array([1.0, 2.0]), "y", 2).tolist() == [1, 2]


def test_a_value_of_another_type_is_a_type_error_too():
    for read in (
        lambda: as_feature_matrix(np.array([[1.0, {}]], object)),
        lambda: as_float_vector([1.0, {}], "y", 2),
    ):
        with pytest.raises(TypeError, match=r"argument must be .* string.* number") as found:
            read()
        assert isinstance(found.value, DataError)


def test_text_in_bytes_is_no_number_either():
    with pytest.raises(DataError, match="y must be numbers; row 0 holds b'1'"):
        as_float_vector(np.array([b"1"]), "y", 1)


def test_a_vector_of_text_is_refused_with_its_row():
    with pytest.raises(DataError, match=r"y must be numbers; row 1 holds 'bad'"):
        as_float_vector([1, "bad"], "y", 2)


def test_a_vector_of_the_wrong_length_is_refused():
    with pytest.raises(DataError, match="y has 3 values, where 2 are expected"):
        as_float_vector([1, 2, 3], "y", 2)
