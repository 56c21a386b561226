import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rankwright.models.thresholds import not_above


@given(st.floats(-1e300, 1e300), st.floats(width=32, allow_nan=False))
def test_a_float32_compares_alike_with_a_number_and_the_float32_not_above_it(cut, x):
    below = not_above(np.array([cut]))
    assert below.dtype == np.float32
    assert (np.float32(x) <= below[0]) == (x <= cut)
