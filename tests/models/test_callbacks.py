"""Ctrl-C ends a fit by rounds and keeps what is there; before the first round it is Ctrl-C."""

import pytest
from small_data import Onlooker, small_data

from rankwright.losses import loss
from rankwright.models.callbacks import until_interrupted
from rankwright.models.passive_aggressive import PassiveAggressiveLinear
from rankwright.models.prank import PRankLinear


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


class Impatient(Onlooker):
    """Presses Ctrl-C when it is shown the third round."""

    def on_iteration(self, t, *more):
        if t == 3:
            raise KeyboardInterrupt
        return super().on_iteration(t, *more)


@pytest.mark.parametrize("model", [PRankLinear(), PassiveAggressiveLinear(n_steps=1000)])
def test_models_that_go_step_by_step_keep_the_last_whole_round(model):
    data, impatient, patient = small_data(queries=6), Impatient(), Onlooker(stop_at=2)
    kept = model.fit(loss("pair_hinge"), data, callback=impatient)
    assert impatient.interrupted
    assert (kept.coef == model.fit(loss("pair_hinge"), data, callback=patient).coef).all()
