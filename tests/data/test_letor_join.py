"""Blocks put together, and rows cut into queries."""

import numpy as np
import pytest
from scipy import sparse

from rankwright.data.letor import ReadOptions
from rankwright.data.letor_parts import Block, Layout, assemble, is_int64, joined


def block(X, starts, ids, doc_id=None):
    y = np.arange(X.shape[0], dtype=float)
    return Block(X, y, np.array(starts), ids, doc_id, np.empty((0, 4), np.int64))


def two_blocks():
    dense = np.array([[1.0, -0.0], [0.0, 2.0]])
    wide = sparse.csr_array(np.array([[0.0, 0.0, np.nan]]))
    return [
        block(dense, [0, 1], ["a", "b"], np.array(["x", "yy"])),
        block(wide, [0], ["b"]),
    ]


@pytest.mark.parametrize("layout", [Layout(3, sparse=False), Layout(3, sparse=True)])
def test_blocks_of_any_layout_become_one(layout):
    both = joined(two_blocks(), layout, ReadOptions())
    if layout.sparse:
        assert both.X.indptr.tolist() == [0, 2, 3, 4]
        assert both.X.indices.tolist() == [0, 1, 1, 2]
        assert both.X.data.tobytes() == np.array([1.0, -0.0, 2.0, np.nan]).tobytes()
        assert both.X.shape == (3, 3)
    else:
        expected = np.array([[1.0, -0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, np.nan]])
        assert both.X.tobytes() == expected.tobytes()
    assert both.y.tolist() == [0, 1, 0]
    assert both.run_starts.tolist() == [0, 1, 2]
    assert both.doc_id.tolist() == ["x", "yy", ""]


def test_features_beyond_a_blocks_own_are_missing_where_asked():
    both = joined(two_blocks(), Layout(3, sparse=False), ReadOptions(absent="missing"))
    assert np.isnan(both.X[:2]).tolist() == [[False, False, True]] * 2


def test_runs_that_meet_where_blocks_do_are_one_list():
    both = joined(two_blocks(), Layout(3, sparse=False), ReadOptions())
    for lists in ("by_id", "adjacent"):
        data = assemble(both, ReadOptions(lists=lists), None, integers=False)
        assert data.indptr.tolist() == [0, 1, 3]
        assert data.qid.tolist() == ["a", "b"]


def test_integers_are_those_that_python_writes_so():
    good = ["0", "7", "-7", str(2**63 - 1), str(-(2**63))]
    bad = ["", "-0", "+7", "07", "7.0", "1_0", "٣", str(2**63), str(-(2**63) - 1), "9" * 30]
    assert all(map(is_int64, good))
    assert not any(map(is_int64, bad))
