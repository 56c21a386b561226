import numpy as np
from click_sessions import random_log

from rankwright.clicks.sessions import CellCounter, PairTable, by_query
from rankwright.data.click_log import ClickLog


def test_pairs_keep_their_numbers_while_the_table_grows():
    log = random_log()
    table, other = PairTable(), PairTable()
    first, second = log.select(np.arange(10)), log.select(np.arange(10, 60))
    codes = np.concatenate([table.codes(first, grow=True), table.codes(second, grow=True)])
    assert (table.codes(log) == codes).all()
    assert (codes < len(table)).all()
    other.codes(first, grow=True)
    unknown = other.codes(second) == len(other)
    named = {(q, d) for q, d in zip(other.query, other.document, strict=True)}
    query = np.repeat(second.query, second.sizes)
    for q, d, new in zip(query, second.document, unknown, strict=True):
        code_q = np.flatnonzero(other.query_ids == second.query_ids[q])
        code_d = np.flatnonzero(other.document_ids == second.document_ids[d])
        known = len(code_q) and len(code_d) and (code_q[0], code_d[0]) in named
        assert new != bool(known)


def test_a_number_and_its_text_are_one_id():
    numbers = ClickLog.from_arrays([7], [1, 2], [0, 1], session_sizes=[2])
    texts = ClickLog.from_arrays(["7"], ["2", "x"], [0, 1], session_sizes=[2])
    table = PairTable()
    table.codes(numbers, grow=True)
    assert table.codes(texts).tolist() == [1, 2]
    assert table.query_ids.dtype == np.int64  # looking up changes nothing
    table.codes(texts, grow=True)
    assert table.codes(texts).tolist() == [1, 2]
    assert table.codes(numbers).tolist() == [0, 1]


def test_cells_add_up_impressions_of_parts():
    log = random_log(sessions=200)
    counter = CellCounter(lambda part: part.position.astype(np.int64) - 1)
    for part in log.parts(impressions=50):
        counter.add(part)
    cells = counter.cells()
    counts = log.counts()
    found = {
        (counter.table.query[u], counter.table.document[u], k + 1): (n, c)
        for u, k, n, c in zip(cells.pair(), cells.context, cells.shown, cells.clicked, strict=True)
    }
    names = counter.table.query_ids, counter.table.document_ids
    assert len(found) == len(counts.query)
    for (q, d, r), (n, c) in found.items():
        at = (
            (log.query_ids[counts.query] == names[0][q])
            & (log.document_ids[counts.document] == names[1][d])
            & (counts.position == r)
        )
        assert counts.impressions[at].tolist() == [n]
        assert counts.clicks[at].tolist() == [c]


def test_ranges_hold_whole_queries():
    log, bounds = by_query(random_log(sessions=300, queries=7))
    assert (np.diff(log.query) >= 0).all()
    assert bounds[0] == 0
    assert bounds[-1] == log.n_sessions
    for cut in bounds[1:-1]:
        assert log.query[cut] != log.query[cut - 1]
