"""The digits by name."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from rankwright.data import catalog
from rankwright.data.catalog import digits
from rankwright.errors import UsageError


def test_digits_come_whole_or_in_parts():
    whole = catalog.load("digits")
    assert whole.n_queries == 150
    valid = catalog.load("digits/valid")
    np.testing.assert_array_equal(valid.X, digits().valid.X)
    assert valid.qid[0] == "valid-1"


def test_options_reach_the_digits_and_others_are_refused():
    assert catalog.load("digits/test", queries=3, documents=20, seed=4).n_documents == 60
    with pytest.raises(UsageError, match="no option 'dtype'; they take queries, documents, seed"):
        catalog.load("digits", dtype="float32")


def test_unknown_names_bring_the_nearest():
    with pytest.raises(UsageError, match="no data set 'digit'; did you mean digits"):
        catalog.load("digit")


def test_every_name_is_described_and_every_set_listed():
    assert set(catalog.descriptions()) == {name for name in catalog.NAMES if "/" not in name}


# --- the demo data follows its protocol: 50 x 100, grade = class, no document in two parts ---


def test_each_part_has_fifty_queries_of_a_hundred_documents():
    for part in digits():
        assert part.n_queries == 50
        assert (part.sizes == 100).all()
        assert part.n_features == 64


def test_a_grade_is_the_digit_and_the_features_are_its_pixels():
    source = load_digits()
    for part in digits():
        np.testing.assert_array_equal(part.y, source.target[part.doc_id])
        np.testing.assert_array_equal(part.X, source.data[part.doc_id])
    assert part.feature_names == tuple(source.feature_names)


def test_no_document_is_in_two_parts_nor_twice_in_a_query():
    train, valid, test = (set(part.doc_id.tolist()) for part in digits())
    assert not train & valid
    assert not train & test
    assert not valid & test
    for part in digits():
        rows = part.doc_id.reshape(50, 100)
        assert all(len(set(query.tolist())) == 100 for query in rows)


def test_parts_and_queries_have_their_own_ids():
    assert [str(part.qid[0]) for part in digits()] == ["train-1", "valid-1", "test-1"]


def test_the_seed_decides():
    assert digits(seed=1).test.doc_id.tolist() == digits(seed=1).test.doc_id.tolist()
    assert digits(seed=1).test.doc_id.tolist() != digits(seed=2).test.doc_id.tolist()


def test_more_documents_than_a_part_has_rows_are_refused():
    with pytest.raises(UsageError, match="449 documents at most"):
        digits(documents=500)
    with pytest.raises(UsageError, match="1 or more"):
        digits(queries=0)
