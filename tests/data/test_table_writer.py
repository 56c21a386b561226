"""Parts of one table must fit together."""

import io

import numpy as np
import pytest

from rankwright.data.delimited import DelimitedSink
from rankwright.data.ranking_data import PartsDifferError, RankingData
from rankwright.data.tables import TableWriter


def part(qid, **more):
    return RankingData.from_arrays(np.ones((1, 1)), [0], qid=[qid], **more)


@pytest.mark.parametrize(
    ("first", "second", "column"),
    [
        (part(1), part("a"), "qid"),
        (part(1), part(2, doc_id=["d"]), "doc_id"),
        (part(1, doc_id=["d"]), part(2, doc_id=[3]), "doc_id"),
        (part(1, feature_names=["x"]), part(2), "x|f1"),
    ],
)
def test_parts_with_other_columns_are_refused(first, second, column):
    writer = TableWriter(DelimitedSink(io.BytesIO(), ","), keeps_id_types=True)
    writer.append(first)
    with pytest.raises(PartsDifferError, match=f"differ in column '({column})'"):
        writer.append(second)


def test_text_of_any_width_is_one_type():
    stream = io.BytesIO()
    writer = TableWriter(DelimitedSink(stream, ","), keeps_id_types=True)
    writer.append(part("a"))
    writer.append(part("longer"))
    assert stream.getvalue().splitlines()[1:] == [b'"a",0,1', b'"longer",0,1']


def test_a_query_comes_once():
    writer = TableWriter(DelimitedSink(io.BytesIO(), ","), keeps_id_types=True)
    writer.append(part(1))
    with pytest.raises(PartsDifferError, match="query 1 appears twice"):
        writer.append(part(1))


def test_a_feature_that_looks_like_something_else_is_warned_about():
    writer = TableWriter(DelimitedSink(io.BytesIO(), ","), keeps_id_types=True)
    with pytest.warns(UserWarning, match="'Weight' is read as the sample_weight"):
        writer.append(part(1, feature_names=["Weight"]))
