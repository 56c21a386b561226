"""Ctrl-C ends a fit by rounds and keeps what is there; before the first round it is Ctrl-C."""

import pytest
from small_data import Onlooker, small_data

from rankwright.losses import loss
from rankwright.models.interrupt import until_interrupted
from rankwright.models.passive_aggressive import PassiveAggressiveLinear
from rankwright.models.prank import PRankLinear


def test_after_the_first_round_the_watch_is_told_and_the_fit_goes_on_to_its_end():
    watch, rounds = Onlooker(), []
    with until_interrupted(watch, rounds):
        rounds.append("one")
        raise KeyboardInterrupt
    assert watch.interrupted


def test_before_the_first_round_nothing_is_there_to_keep():
    watch = Onlooker()
    with pytest.raises(KeyboardInterrupt), until_interrupted(watch, []):
        raise KeyboardInterrupt
    assert not watch.interrupted


class Impatient(Onlooker):
    """Presses Ctrl-C when it is shown the third round."""

    def seen(self, t, *more):
        if t == 3:
            raise KeyboardInterrupt
        return super().seen(t, *more)


@pytest.mark.parametrize("model", [PRankLinear(), PassiveAggressiveLinear(n_steps=1000)])
def test_models_that_go_step_by_step_keep_the_last_whole_round(model):
    data, impatient, patient = small_data(queries=6), Impatient(), Onlooker(stop_at=2)
    kept = model.fit(loss("pair_hinge"), data, watch=impatient)
    assert impatient.interrupted
    assert (kept.coef == model.fit(loss("pair_hinge"), data, watch=patient).coef).all()
