"""Options of the LETOR reader that cannot be are refused before any file is opened."""

import numpy as np
import pytest

from rankwright.data.letor import ReadOptions
from rankwright.errors import UsageError


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"dtype": "int8"}, "dtype must be one of 'float64', 'float32', not 'int8'"),
        ({"absent": "none"}, "absent must be one of 'zero', 'missing', not 'none'"),
        ({"lists": "x"}, "lists must be one of 'by_id', 'adjacent', not 'x'"),
        ({"zero_based": "no"}, "zero_based must be one of 'auto', True, False, not 'no'"),
        ({"absent": "missing", "sparse": True}, "makes a dense table; leave out sparse=True"),
        ({"n_features": -1}, "n_features must be 0 or more, not -1"),
        ({"max_feature_id": 2**31}, "max_feature_id must be from 1 to"),
    ],
)
def test_wrong_options_are_refused(options, sentence):
    with pytest.raises(UsageError, match=sentence):
        ReadOptions(**options)


def test_types_may_be_given_as_numpy_has_them():
    assert ReadOptions(dtype=np.float32).dtype == "float32"
