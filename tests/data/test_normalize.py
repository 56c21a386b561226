"""Normalisers against slow twins, RankLib's scores, LETOR's normalised OHSUMED."""

import lzma
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from reference import normalize as reference
from scipy import sparse

from rankwright.data.normalize import QueryMinMax, QuerySum, QueryZScore
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError

NAN = math.nan
NORMALIZERS = {"minmax": QueryMinMax, "zscore": QueryZScore, "sum": QuerySum}


def data_of(X, sizes, dtype=np.float64):
    X = np.asarray(X, dtype) if not sparse.issparse(X) else X
    return RankingData.from_arrays(X, None, group_sizes=sizes)


def normalised(name, data, **parameters):
    return NORMALIZERS[name](**parameters).fit(data).transform(data).X


def read_letor(path):
    """Features and qids of a LETOR file, without the readers under test elsewhere."""
    opener = lzma.open if path.suffix == ".xz" else open
    rows, qids = [], []
    with opener(path, "rt") as lines:
        for line in lines:
            _, qid, *pairs = line.partition("#")[0].split()
            entries = {int(f): v for f, _, v in (pair.partition(":") for pair in pairs)}
            rows.append([float(entries.get(f, "0").replace("NULL", "nan")) for f in range(1, 46)])
            qids.append(qid)
    return np.array(rows), np.array(qids)


# --- within a query ------------------------------------------------------------------------------


def test_minmax_scales_each_query_on_its_own_and_sends_a_constant_to_zero():
    data = data_of([[1, 7], [3, 7], [2, 7], [10, 1], [20, 2]], [3, 2])
    expected = [[0, 0], [1, 0], [0.5, 0], [0, 0], [1, 1]]
    np.testing.assert_array_equal(normalised("minmax", data), expected)


def test_zscore_divides_by_n_minus_one():
    data = data_of([[1.0], [2.0], [6.0]], [3])
    sd = math.sqrt((2**2 + 1**2 + 3**2) / 2)
    np.testing.assert_allclose(normalised("zscore", data).ravel(), np.array([-2, -1, 3]) / sd)


def test_zscore_leaves_constants_and_single_documents_alone():
    data = data_of([[5, 1], [5, 2], [9, 9]], [2, 1])
    half = math.sqrt(0.5)
    expected = [[5, -0.5 / half], [5, 0.5 / half], [9, 9]]
    np.testing.assert_allclose(normalised("zscore", data), expected)


def test_sum_makes_absolute_values_add_up_to_one_unless_all_are_zero():
    data = data_of([[1, 0], [-3, 0]], [2])
    np.testing.assert_array_equal(normalised("sum", data), [[0.25, 0], [-0.75, 0]])


@pytest.mark.parametrize("name", NORMALIZERS)
def test_missing_values_stay_missing_and_move_nothing(name):
    whole = normalised(name, data_of([[1.0], [3.0], [2.0]], [3])).ravel()
    gap = normalised(name, data_of([[1.0], [NAN], [3.0], [NAN], [2.0]], [5])).ravel()
    np.testing.assert_array_equal(gap, [whole[0], NAN, whole[1], NAN, whole[2]])


@pytest.mark.parametrize("name", NORMALIZERS)
def test_a_feature_that_is_always_missing_stays_so(name):
    assert np.isnan(normalised(name, data_of([[NAN], [NAN]], [2]))).all()


matrices = arrays.arrays(
    np.float32,
    st.tuples(st.integers(1, 12), st.integers(1, 3)),
    elements=st.one_of(
        st.floats(-100, 100, width=32), st.sampled_from([0.0, 1.0, -1.0, np.float32(NAN)])
    ),
)


@settings(max_examples=150, deadline=None)
@given(matrices, st.data(), st.sampled_from([*NORMALIZERS]))
def test_per_query_normalisers_equal_their_slow_twins(X, draw, name):
    X = X.astype(np.float64)
    cut = draw.draw(st.integers(0, len(X)))
    data = data_of(X, [cut, len(X) - cut])
    twin = reference.per_query(name, X, data.indptr)
    np.testing.assert_allclose(normalised(name, data), twin, rtol=1e-9, atol=1e-9)


@settings(max_examples=150, deadline=None)
@given(matrices, st.sampled_from(["minmax", "sum"]))
def test_sparse_equals_dense_bit_for_bit(X, name):
    X = X if name != "minmax" else np.abs(X)
    data = data_of(X, [len(X) // 2, len(X) - len(X) // 2], np.float32)
    stored = data_of(sparse.csr_array(X), [len(X) // 2, len(X) - len(X) // 2])
    result = normalised(name, stored)
    assert sparse.issparse(result)
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result.toarray(), normalised(name, data))


def test_minmax_keeps_a_negative_feature_sparse_where_every_document_has_it():
    X = sparse.csr_array(np.array([[-2.0, 0.0], [-4.0, 5.0]]))
    np.testing.assert_array_equal(normalised("minmax", data_of(X, [2])).toarray(), [[1, 0], [0, 1]])


def test_minmax_refuses_a_sparse_matrix_whose_zeros_would_move_naming_the_query():
    X = sparse.csr_array(np.array([[1.0, 0.0], [0.0, 0.0], [0.0, -1.0], [0.0, 0.0]]))
    with pytest.raises(DataError, match=r"query 1, feature column 1\).*densify=True"):
        normalised("minmax", data_of(X, [2, 2]))
    dense = normalised("minmax", data_of(X, [2, 2]), densify=True)
    np.testing.assert_array_equal(dense, [[1, 0], [0, 0], [0, 0], [0, 1]])


def test_zscore_refuses_sparse_matrices_unless_densify_is_set():
    X = np.array([[0.0, 2.0], [1.0, 0.0], [4.0, 0.0]])
    stored = data_of(sparse.csr_array(X), [3])
    with pytest.raises(DataError, match="densify=True"):
        QueryZScore().fit(stored).transform(stored)
    np.testing.assert_array_equal(
        normalised("zscore", stored, densify=True), normalised("zscore", data_of(X, [3]))
    )


# --- all of them ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NORMALIZERS)
def test_the_type_stays_and_the_input_does_not_change(name):
    rng = np.random.default_rng(2)
    X = rng.lognormal(0, 3, (70, 5)).astype(np.float32)
    X[rng.random(X.shape) < 0.05] = NAN
    data = data_of(X, np.full(7, 10), np.float32)
    assert normalised(name, data).dtype == np.float32
    np.testing.assert_array_equal(data.X, X)


# --- what other tools did ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("theirs", "ours", "parameters"),
    [("linear", "minmax", {"ranklib": True}), ("zscore", "zscore", {}), ("sum", "sum", {})],
)
def test_ranklib_scores_are_reproduced_to_the_last_bit(golden_dir, theirs, ours, parameters):
    X, qid = read_letor(golden_dir / "ranklib/test.txt")
    data = RankingData.from_arrays(X[:, :12].astype(np.float32), None, qid=qid)
    model = (golden_dir / f"ranklib/norm/{theirs}.model.txt").read_text().splitlines()[-1]
    weights = {int(f): float(w) for f, _, w in (pair.partition(":") for pair in model.split())}
    x = normalised(ours, data, **parameters).astype(np.float64)
    scores = np.full(data.n_documents, weights[0])
    for f in range(1, 13):
        scores = scores + weights[f] * x[:, f - 1]  # RankLib adds in this order, in double
    lines = (golden_dir / f"ranklib/norm/{theirs}.scores.txt").read_text().splitlines()
    np.testing.assert_array_equal(scores, [float(line.split("\t")[2]) for line in lines])


def test_without_ranklibs_slip_a_negative_feature_still_reaches_one():
    data = data_of([[-4.0], [-2.0]], [2])
    np.testing.assert_array_equal(normalised("minmax", data).ravel(), [0, 1])
    np.testing.assert_array_equal(normalised("minmax", data, ranklib=True).ravel(), [0, 0.5])


@pytest.mark.parametrize("part", [1, 2, 3, 4, 5])
def test_minmax_turns_raw_ohsumed_into_letors_normalised_one(data_dir, part):
    """LETOR first read NULL as 0 in the BM25 features and as the query's minimum in the others."""
    raw, qid = read_letor(data_dir / f"OHSUMED_LETOR3/Feature-null/S{part}.txt.xz")
    official, _ = read_letor(data_dir / f"OHSUMED_LETOR3/QueryLevelNorm/S{part}.txt.xz")
    bm25 = np.array([11, 12, 26, 27, 41, 42]) - 1
    raw[:, bm25] = np.nan_to_num(raw[:, bm25], nan=0.0)
    ours = normalised("minmax", RankingData.from_arrays(raw, None, qid=qid))
    ours = np.nan_to_num(ours, nan=0.0)  # the minimum becomes 0
    assert np.abs(ours - official).max() <= 0.5000001e-6  # half a unit of the sixth digit
