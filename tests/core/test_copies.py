import numpy as np

from rankwright.core.copies import copy_values, take

SOURCE = np.array([3.0, 1.0, 2.0])


def test_values_are_copied_and_what_is_behind_them_stays():
    target = np.zeros(5)
    copy_values(SOURCE, target[1:])
    assert target.tolist() == [0.0, 3.0, 1.0, 2.0, 0.0]


def test_places_may_repeat_and_leave_some_out():
    target = np.zeros(4)
    take(SOURCE, np.array([2, 0, 2]), target)
    assert target.tolist() == [2.0, 3.0, 2.0, 0.0]
