"""Why a document moved between two models: where it stood, and what it passed."""

import numpy as np
import pytest
from explained import DATA, fitted_of

from rankwright.explanation import explain
from rankwright.explanation.movement import _some


def test_two_models_and_a_document_that_moved():
    before, after = fitted_of("linear"), fitted_of("trees")
    found = explain(after, DATA, query=DATA.qid[3], docs=[4], against=before)
    rows = slice(DATA.indptr[3], DATA.indptr[4])
    places = []
    for fitted, standing in ((before, found.standing[0]), (after, found.standing[1])):
        s = fitted.predict(DATA)[rows]
        assert standing == pytest.approx((s[3] - s.mean()) / s.std(), abs=1e-6)
        places.append(np.argsort(np.argsort(-s)) + 1)
    assert (found.before.rank, found.after.rank) == (places[0][3], places[1][3])
    passed = (places[0] < places[0][3]) & (places[1] > places[1][3])
    passed_by = (places[0] > places[0][3]) & (places[1] < places[1][3])
    assert {int(name) - 1 for name in found.passed} == set(np.flatnonzero(passed))
    assert {int(name) - 1 for name in found.passed_by} == set(np.flatnonzero(passed_by))


def test_five_names_are_listed_and_the_rest_are_counted():
    names = list("abcdefg")
    assert _some(names[:5]) == "a, b, c, d, e"
    assert _some(names[:6]) == "a, b, c, d, e and 1 more"
    assert _some(names) == "a, b, c, d, e and 2 more"
