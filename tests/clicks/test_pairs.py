import numpy as np
from click_sessions import random_log

from rankwright.clicks.pairs import PairTable
from rankwright.data.click_log import ClickLog


def test_pairs_are_found_in_other_logs():
    log = random_log()
    first, second = log.select(np.arange(10)), log.select(np.arange(10, 60))
    table, codes = PairTable.of(first)
    assert (table.codes(first) == codes).all()
    reordered = ClickLog.from_arrays(
        second.query_ids[second.query],
        second.document_ids[second.document],
        second.click,
        session_sizes=second.sizes,
    )
    names = list(zip(table.query, table.document, strict=True))
    for other in (second, reordered):
        query = np.repeat(other.query_ids[other.query], other.sizes)
        document = other.document_ids[other.document]
        for code, q, d in zip(table.codes(other), query, document, strict=True):
            own = (
                np.flatnonzero(table.query_ids == q)[0],
                np.flatnonzero(table.document_ids == d)[0],
            )
            assert code == (names.index(own) if own in names else table.n_pairs)


def test_a_number_and_its_text_are_one_id():
    numbers = ClickLog.from_arrays([7], [1, 2], [0, 1], session_sizes=[2])
    texts = ClickLog.from_arrays(["7"], ["2", "x"], [0, 1], session_sizes=[2])
    assert PairTable.of(numbers)[0].codes(texts).tolist() == [1, 2]
    assert PairTable.of(texts)[0].codes(numbers).tolist() == [2, 0]
