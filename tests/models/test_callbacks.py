"""Ctrl-C ends a fit by rounds and keeps what is there; before the first round it is Ctrl-C."""

import pytest
from small_data import Onlooker

from rankwright.models.callbacks import until_interrupted


def test_after_the_first_round_the_watch_is_reported_and_the_fit_goes_on_to_its_end():
    callback, rounds = Onlooker(), []
    with until_interrupted(callback, rounds):
        rounds.append("one")
        raise KeyboardInterrupt
    assert callback.interrupted


def test_before_the_first_round_nothing_is_there_to_keep():
    callback = Onlooker()
    with pytest.raises(KeyboardInterrupt), until_interrupted(callback, []):
        raise KeyboardInterrupt
    assert not callback.interrupted
