import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rankwright.data.ranking_data import RankingData
from rankwright.losses.pair_sums import GradeBlocks, add_partners, find_wrong_pairs


def data_of(grades, sizes):
    return RankingData.from_arrays(np.zeros((len(grades), 1)), grades, group_sizes=sizes)


def test_blocks_hold_the_rows_of_a_grade_best_grade_first():
    blocks = GradeBlocks.of(data_of([0, 2, 0, 1, 5, 1, 1], [4, 0, 3]))
    in_blocks = [
        [blocks.rows[blocks.start[b] : blocks.start[b + 1]].tolist() for b in range(*span)]
        for span in zip(blocks.of_query[:-1], blocks.of_query[1:], strict=True)
    ]
    assert in_blocks == [[[1], [3], [0, 2]], [], [[4], [5, 6]]]


documents = st.lists(
    st.tuples(st.integers(0, 6), st.integers(-4, 4), st.integers(0, 3)), max_size=30
)


@settings(deadline=None)  # the first call compiles
@given(documents, st.sampled_from([0.0, 1.0, 1.5]))
def test_sums_are_those_over_all_wrong_pairs(documents, margin):
    documents = [(0, 0, 1), *documents]
    grade, v, x = np.array(documents, float).T
    blocks = GradeBlocks.of(data_of(grade, [len(grade)]))
    grade, v, x = grade[blocks.rows], v[blocks.rows], x[blocks.rows]
    pairs = blocks.new_pairs()
    find_wrong_pairs(0, blocks.of_query[1], blocks.start, v, margin, pairs)
    lower, higher, both = np.full((3, len(v)), np.nan)
    add_partners(0, blocks.of_query[1], blocks.start, pairs, x, lower, higher)
    add_partners(0, blocks.of_query[1], blocks.start, pairs, x, both, both)
    wrong = (grade[:, None] > grade) & (v[:, None] < v + margin)
    np.testing.assert_array_equal(lower, wrong @ x)
    np.testing.assert_array_equal(higher, wrong.T @ x)
    np.testing.assert_array_equal(both, lower + higher)


def test_queries_keep_out_of_each_others_way():
    rng = np.random.default_rng(0)
    sizes = [0, 5, 1, 0, 9, 4]
    grade, v = rng.integers(0, 3, 19).astype(float), rng.normal(size=19)
    blocks = GradeBlocks.of(data_of(grade, sizes))
    grade, v, pairs = grade[blocks.rows], v[blocks.rows], blocks.new_pairs()
    query = np.repeat(np.arange(6), sizes)
    found = np.full(19, np.nan)
    spans = list(zip(blocks.of_query[:-1], blocks.of_query[1:], strict=True))
    for first, last in spans:
        find_wrong_pairs(first, last, blocks.start, v, 0.5, pairs)
    for first, last in spans[::-1]:
        add_partners(first, last, blocks.start, pairs, np.ones(19), found, found)
    wrong = (grade[:, None] > grade) & (v[:, None] < v + 0.5) & (query[:, None] == query)
    np.testing.assert_array_equal(found, (wrong | wrong.T).sum(axis=1))


def test_the_weight_of_all_pairs_of_a_query():
    blocks = GradeBlocks.of(data_of([0, 2, 0, 1, 5, 5, 1, 1], [4, 0, 1, 3]))
    w = np.array([1, 2, 3, 4, 1, 1, 2, 3.0])[blocks.rows]
    # 2 x 4 + (2 + 4) x (1 + 3), nothing, nothing, 1 x (2 + 3)
    np.testing.assert_array_equal(blocks.pair_weight(w), [32, 0, 0, 5])
