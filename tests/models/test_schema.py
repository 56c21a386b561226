import numpy as np
import pytest

from rankwright.core.checks import ArraySpec
from rankwright.errors import DataError
from rankwright.models.schema import FILL, Schema

SCHEMA = Schema(
    (ArraySpec("coef", "float64", ("features",)), FILL), {"kernel": ("rbf", "linear"), "note": ()}
)
ARRAYS = {"coef": np.zeros(3)}
TEXTS = {"kernel": "rbf", "note": "anything"}


def test_what_is_declared_passes_and_lengths_come_back():
    assert SCHEMA.check({**ARRAYS, "fill": np.ones(3)}, TEXTS) == {"features": 3}


@pytest.mark.parametrize(
    ("arrays", "texts", "sentence"),
    [
        ({}, TEXTS, "the array 'coef' is missing"),
        ({**ARRAYS, "fill": np.ones(2)}, TEXTS, r"'fill' has the shape \(2,\)"),
        (ARRAYS, {"note": ""}, "it has the texts 'note', where 'kernel', 'note' are expected"),
        (ARRAYS, {**TEXTS, "kernel": "x"}, "its kernel is 'x', not one of 'linear', 'rbf'"),
    ],
)
def test_what_is_not_declared_is_refused(arrays, texts, sentence):
    with pytest.raises(DataError, match=sentence):
        SCHEMA.check(arrays, texts, features=3)
