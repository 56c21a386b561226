import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rankwright.data.ranking_data import RankingData
from rankwright.subproblems.pair_sums import GradeBlocks, wrong_pair_sums


def data_of(grades, sizes):
    return RankingData.from_arrays(np.zeros((len(grades), 1)), grades, group_sizes=sizes)


def test_blocks_hold_the_rows_of_a_grade_best_grade_first():
    blocks = GradeBlocks.of(data_of([0, 2, 0, 1, 5, 1, 1], [4, 0, 3]))
    in_blocks = [
        [blocks.rows[blocks.start[b] : blocks.start[b + 1]].tolist() for b in range(*span)]
        for span in zip(blocks.of_query[:-1], blocks.of_query[1:], strict=True)
    ]
    assert in_blocks == [[[1], [3], [0, 2]], [], [[4], [5, 6]]]


@settings(deadline=None)  # the first call compiles
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(-4, 4), st.integers(0, 3)), max_size=30))
def test_sums_are_those_over_all_wrong_pairs(documents):
    documents = [(0, 0, 1), *documents]
    grade, v, w = np.array(documents, float).T
    blocks = GradeBlocks.of(data_of(grade, [len(grade)]))
    grade, v, w = grade[blocks.rows], v[blocks.rows], w[blocks.rows]
    order = np.empty((2, len(v)), np.int64)
    found = np.full((4, len(v)), np.nan)
    wrong_pair_sums(0, blocks.of_query[1], blocks.start, v, w, order[0], order[1], *found)
    lower = (grade[:, None] > grade) & (v > v[:, None])
    higher = (grade[:, None] < grade) & (v < v[:, None])
    np.testing.assert_array_equal(found, [lower @ w, lower @ (w * v), higher @ w, higher @ (w * v)])
