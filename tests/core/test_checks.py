"""Arrays from outside: every property that a spec declares is checked, and the error names it."""

import numpy as np
import pytest
from scipy import sparse

from rankwright.core import checks
from rankwright.core.checks import ArraySpec, check_arrays, check_csr, check_offsets, extremes
from rankwright.errors import DataError

SPECS = (
    ArraySpec("coef", "float64", ("features",)),
    ArraySpec("begin", "int32 int64", ("users+1",), offsets="entries"),
    ArraySpec("item", "i", ("entries",), below="features"),
    ArraySpec("level", "f", ("users", 2), low=0.0, high=1.0, optional=True),
    ArraySpec("fill", "f", ("features",), finite=False, optional=True),
    ArraySpec("cuts", "float64", ("cuts",), monotone=True, optional=True),
    ArraySpec("names", "U", ("features",), optional=True),
)


def good():
    return {
        "coef": np.array([0.5, -1.0, 2.0]),
        "begin": np.array([0, 1, 1, 4]),
        "item": np.array([2, 0, 1, 2]),
        "level": np.array([[0.0, 1.0], [0.5, 0.5], [1.0, 0.0]]),
        "fill": np.array([np.nan, 0.0, np.inf]),
        "cuts": np.array([-1.0, -1.0, 3.0]),
        "names": np.array(["a", "b", "c"]),
    }


def test_good_arrays_pass_and_tell_their_dimensions():
    found = check_arrays(SPECS, good(), "m.rw", features=3)
    assert found == {"features": 3, "users": 3, "entries": 4, "cuts": 3}


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("coef", None, "the array 'coef' is missing"),
        ("else", np.zeros(1), "'else', which is not expected"),
        ("coef", np.zeros(3, np.float32), "has the type float32; float64 is expected"),
        ("coef", np.zeros(3, ">f8"), "has the type >f8; float64 is expected"),
        ("begin", np.zeros(4), "has the type float64; int32 or int64 is expected"),
        ("item", np.zeros(4, np.uint8), "has the type uint8; integers is expected"),
        ("coef", np.zeros(4), "has the shape (4,); (features) is expected with features = 3"),
        ("coef", np.zeros((3, 1)), "has the shape (3, 1)"),
        ("begin", np.zeros(0, int), "has the shape (0,); (users+1)"),
        ("level", np.zeros((3, 3)), "has the shape (3, 3); (users, 2)"),
        ("item", np.array([2, 0, 1]), "'begin' goes from 0 to 4; it must go from 0 to 3"),
        ("coef", np.array([0, np.nan, 0]), "has nan at number 1; its values must be finite"),
        ("coef", np.array([0, 0, -np.inf]), "has -inf at number 2"),
        ("item", np.array([2, 0, 3, 2]), "has 3 at number 2; its values must be 0 or more and 2"),
        ("item", np.array([2, 0, -1, 2]), "has -1 at number 2"),
        ("level", np.full((3, 2), 1.5), "has 1.5 at number 0; its values must be finite and 0.0"),
        ("begin", np.array([0, 3, 1, 4]), "'begin' falls from 3 to 1 at number 2"),
        ("begin", np.array([1, 1, 1, 4]), "'begin' goes from 1 to 4"),
        ("cuts", np.array([0.0, -1.0]), "falls at number 1, to -1.0"),
        ("cuts", np.array([0.0, np.nan]), "nan"),
    ],
)
def test_an_error_names_the_source_the_array_and_the_value(name, value, said):
    arrays = good() | {name: value}
    if value is None:
        del arrays[name]
    with pytest.raises(DataError) as error:
        check_arrays(SPECS, arrays, "m.rw", features=3)
    assert str(error.value).startswith("m.rw: ")
    assert said in str(error.value)


def test_optional_arrays_may_be_absent():
    needed = {name: good()[name] for name in ("coef", "begin", "item")}
    assert check_arrays(SPECS, needed, features=3)["users"] == 3


def test_an_empty_dimension_holds_no_number_to_point_at():
    arrays = {"at": np.array([0])}
    with pytest.raises(DataError, match="'at' has 0 at number 0"):
        check_arrays([ArraySpec("at", "i", ("n",), below="rows")], arrays, rows=0)


def test_values_and_falls_are_found_in_every_block(monkeypatch):
    monkeypatch.setattr(checks, "_BLOCK", 4)
    for at in range(11):
        values = np.arange(11.0)
        values[at] = -1.0
        assert extremes(values)[0] == -1.0
        assert checks.first_fall(values) == (at or None)
        values[at] = np.nan
        assert np.isnan(extremes(values)).all()
    assert extremes(np.empty(0)) == (0, -1)


def test_offsets_of_nothing_are_refused():
    with pytest.raises(DataError, match="it is empty; it must go from 0 to 0"):
        check_offsets(np.empty(0, int), 0, "it")


def csr(rows=40, columns=9):
    rng = np.random.default_rng(0)
    values = rng.random((rows, columns))
    return sparse.csr_array(np.where(rng.random(values.shape) < 0.4, values, 0.0))


def test_a_sound_matrix_passes_sorted_or_not_and_with_room_to_spare():
    X = csr()
    check_csr(X)
    X.indices[: X.indptr[1]] = X.indices[: X.indptr[1]][::-1].copy()
    check_csr(X)
    X.data, X.indices = np.append(X.data, 9.0), np.append(X.indices, np.int32(-5))
    check_csr(X)
    check_csr(sparse.csr_array((0, 5)))
    check_csr(sparse.csr_array((3, 0)))


def test_any_column_out_of_range_is_refused():
    for at in range(csr().nnz):
        for value in (-1, 9, 2**31 - 1, -(2**31)):
            X = csr()
            X.indices[at] = value
            row = np.searchsorted(X.indptr, at, side="right") - 1
            with pytest.raises(DataError, match=f"^X is not a CSR matrix: row {row} has column "):
                check_csr(X)


def test_row_offsets_and_lengths_are_refused_before_they_are_followed():
    for at, value in ((0, 1), (0, -1), (5, -1), (5, 10**6), (40, 0), (40, 10**6), (40, -1)):
        X = csr()
        X.indptr[at] = value
        with pytest.raises(DataError, match=r"^store is not a CSR matrix: its indptr"):
            check_csr(X, "store")
    X = csr()
    X.indptr = X.indptr[:-1]
    with pytest.raises(DataError, match="40 row offsets for 40 rows"):
        check_csr(X)
    X = csr()
    X.data = X.data[:-1]
    with pytest.raises(DataError, match="column numbers for"):
        check_csr(X)
    X = csr()
    X.indices = X.indices.astype(float)
    with pytest.raises(DataError, match="its indices has the type float64"):
        check_csr(X)
    X = csr()
    X.indices = X.indices[:, None]
    with pytest.raises(DataError, match="its indices has the shape"):
        check_csr(X)
