"""Tables are cut where queries end, and query ids that come back are seen."""

import numpy as np
import pyarrow as pa
import pytest

from rankwright.data import tabular
from rankwright.data.tables import Arrow, Parquet, Runs


def test_an_id_that_was_left_before_comes_back():
    runs = Runs()
    assert not runs.come_back(np.array([1, 1, 2]))
    assert not runs.come_back(np.array([], np.int64))
    assert not runs.come_back(np.array([2, 3]))  # goes on from the block before
    assert runs.come_back(np.array([3, 1]))


@pytest.mark.parametrize("form", [Parquet, Arrow])
def test_parts_end_where_queries_do(form, tmp_path, monkeypatch):
    monkeypatch.setattr(tabular, "_ROWS_PER_BATCH", 2)
    qid = [1, 1, 1, 2, 3, 3]
    table = pa.table({"qid": qid, "label": [0.0] * 6, "f": [float(i) for i in range(6)]})
    path = tmp_path / "t"
    if form is Parquet:
        pa.parquet.write_table(table, path)
    else:
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=2)
    parts = list(form().read_parts(path))
    assert [part.qid.tolist() for part in parts] == [[1], [2], [3]]
    assert np.concatenate([part.X[:, 0] for part in parts]).tolist() == list(range(6))
