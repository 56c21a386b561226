"""The kernels: what they count, what they read, and which lines they leave to Python."""

import numpy as np
import pytest

from rankwright.data import letor_kernels as kernels

LINES = b"""\
# comment
1 qid:7 1:0.0 3:-0 2:5 # x

0 qid:007 4:NaN
2 qid:7 1:4.9e-324
"""


def chunks(text, cuts):
    return np.frombuffer(text, np.uint8), np.array(cuts)


def test_a_survey_counts_what_arrays_need():
    text, cuts = chunks(LINES, [0, len(LINES)])
    counts = np.empty((1, kernels.SURVEYED), np.int64)
    kernels.survey(0, 1, cuts, text, counts)
    (count,) = counts
    assert count[kernels.LINES] == 5
    assert count[kernels.ROWS] == 3
    assert count[kernels.VALUES] == 4  # all but 0.0
    assert count[kernels.HIGHEST_ID] == 4
    assert count[kernels.FEATURES_AT] == LINES.index(b"1 qid:7")
    assert count[kernels.OTHER_IDS] == 1  # 007
    assert count[kernels.COMMENTS] == 1


def test_lines_are_counted_quickly_where_none_is_blank_or_comment():
    content = b"1 qid:1 1:1\n" * 5
    text, cuts = chunks(content + b"\n#\n" + content, [0, 24, 60, 60 + 3 + 60])
    lines, others = np.empty(3, np.int64), np.empty(3, np.int64)
    kernels.count_lines(0, 3, cuts, text, lines, others)
    assert lines.tolist() == [2, 3, 7]
    assert others.tolist() == [0, 0, 2]


@pytest.mark.parametrize("sparse", [False, True])
def test_a_line_that_is_not_sure_is_left_with_its_place(sparse):
    text, cuts = chunks(LINES, [0, len(LINES)])
    first = np.zeros((1, 2), np.int64)
    y, spans = np.full(3, -1.0), np.zeros((3, 4), np.int64)
    out = np.zeros(4 if sparse else 12)
    indices, ends = (np.zeros(4, np.int32), np.zeros(4, np.int32)) if sparse else (None, None)
    rules = (True, 1, 4, np.inf, False)
    kernels.parse(0, 1, cuts, text, 1000, first, rules, y, out, indices, ends, spans)
    assert y.tolist()[:2] == [1.0, 0.0]
    assert spans[2, :2].tolist() == [1000 + LINES.index(b"2 qid"), kernels.LEFT_TO_PYTHON]
    assert spans[0].tolist() == [1000 + LINES.index(b"7"), 1, 1000 + LINES.index(b"x"), 1]
    assert spans[1, 3] == kernels.NO_COMMENT
    if sparse:
        assert ends.tolist() == [0, 2, 3, 4]
        assert indices[:3].tolist() == [1, 2, 3]
        assert out[:2].tolist() == [5.0, -0.0]
    else:
        assert out[:4].tolist() == [0.0, 5.0, -0.0, 0.0]
    assert np.isnan(out[2 if sparse else 7])


def test_a_long_line_in_descending_order_is_sorted():
    n = 5000
    line = b"1 qid:1 " + b" ".join(b"%d:%d" % (k, k) for k in range(n, 0, -1)) + b"\n"
    text, cuts = chunks(line, [0, len(line)])
    y, spans, out = np.empty(1), np.zeros((1, 4), np.int64), np.zeros(n)
    indices, ends = np.zeros(n, np.int32), np.zeros(2, np.int32)
    rules = (True, 1, n, np.inf, False)
    first = np.zeros((1, 2), np.int64)
    kernels.parse(0, 1, cuts, text, 0, first, rules, y, out, indices, ends, spans)
    assert indices.tolist() == list(range(n))
    assert out.tolist() == list(range(1, n + 1))


def test_runs_of_equal_ids_are_marked():
    ids = [b"a", b"a", b"ab", b"ac", b"ac", b"a"]
    content = b" ".join(ids) + b"\n"
    ends = np.cumsum([len(name) + 1 for name in ids])
    lengths = np.array([len(name) for name in ids])
    spans = np.stack([ends - lengths - 1, lengths, lengths * 0, lengths * 0], axis=1)
    marks = np.empty(6, np.bool_)
    kernels.mark_runs(np.frombuffer(content, np.uint8), spans, marks)
    assert marks.tolist() == [True, False, True, True, False, True]
