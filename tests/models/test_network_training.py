"""Adam's schedules, states and batches, on a problem small enough to follow."""

import numpy as np
import pytest
import torch
from small_data import Onlooker

from rankwright.core.types import CheckpointState
from rankwright.errors import UsageError
from rankwright.models.network_training import Adam, AdamState


class Parabola:
    """Batch b pulls w to b; the whole is least at the mean of the batches."""

    def __init__(self, n_batches=3):
        self.parameters = [torch.full((2, 2), 9.0, requires_grad=True), torch.zeros(1)]
        self.decayed = [True, False]
        self.n_batches, self.visited, self.begun = n_batches, [], []

    def begin_epoch(self, t, order):
        self.begun.append(t)

    def batch_grad(self, t, batch):
        self.visited.append((t, batch))
        gradients = [parameter.detach() - batch for parameter in self.parameters]
        return sum(float((s**2).sum()) / 2 for s in gradients), gradients

    def epoch_value(self, t, values):
        return sum(values)

    def watched_scores(self, callback):
        return None, None


def test_every_batch_is_visited_once_an_epoch_in_an_order_of_its_own():
    problem = Parabola(8)
    Adam(epochs=2).solve(problem, Onlooker())
    first, second = ([b for t, b in problem.visited if t == epoch] for epoch in (0, 1))
    assert sorted(first) == sorted(second) == list(range(8))
    assert first != second
    assert problem.begun == [0, 1]


def test_the_first_step_is_as_long_as_the_rate_whatever_the_gradient():
    problem = Parabola(1)
    Adam(epochs=1, learning_rate=0.5).solve(problem, Onlooker())
    assert problem.parameters[0].detach().numpy() == pytest.approx(8.5)


def test_it_comes_near_to_the_least_value():
    problem = Parabola(3)
    Adam(epochs=400, learning_rate=0.1, schedule="cosine").solve(problem, Onlooker())
    assert problem.parameters[0].detach().numpy() == pytest.approx(1.0, abs=0.05)


def test_decay_pulls_matrices_to_zero_and_biases_not():
    plain, pulled = Parabola(1), Parabola(1)
    Adam(epochs=1, learning_rate=0.1).solve(plain, Onlooker())
    Adam(epochs=1, learning_rate=0.1, weight_decay=0.5).solve(pulled, Onlooker())
    lost = (plain.parameters[0] - pulled.parameters[0]).detach().numpy()
    assert lost == pytest.approx(0.1 * 0.5 * 9.0)
    assert (plain.parameters[1] == pulled.parameters[1]).all()


@pytest.mark.parametrize(
    ("schedule", "rates"),
    [
        ("constant", [1.0, 1.0, 1.0, 1.0]),
        ("linear", [1.0, 0.75, 0.5, 0.25]),
        ("cosine", [1.0, 0.5 + 0.5**1.5, 0.5, 0.5 - 0.5**1.5]),
        ("step", [1.0, 1.0, 0.1, 0.01]),
    ],
)
def test_schedules_over_four_epochs(schedule, rates):
    adam = Adam(epochs=4, learning_rate=2.0, schedule=schedule)
    assert [adam.rate(t) for t in range(4)] == pytest.approx([2.0 * rate for rate in rates])


class Keeping(Onlooker):
    """Keeps the state of every epoch."""

    def __init__(self, states, **more):
        super().__init__(**more)
        self.states = states

    def save_state(self, t, state, added=None):
        self.states.append(AdamState.restore(state()))


def test_a_state_goes_through_arrays_and_goes_on_as_if_never_stopped():
    adam = Adam(epochs=5, schedule="linear", learning_rate=0.1)
    whole, states = Parabola(), []
    end = adam.solve(whole, Keeping(states))
    assert [state.epoch for state in states] == [1, 2, 3, 4, 5]
    again = adam.solve(Parabola(), Onlooker(kept=CheckpointState(2, states[1].arrays(), ())))
    assert again.steps == end.steps == 15
    for name, array in end.arrays().items():
        np.testing.assert_array_equal(again.arrays()[name], array)


def test_a_state_remembers_the_best_round():
    adam, states = Adam(epochs=5, learning_rate=0.1), []
    adam.solve(Parabola(), Keeping(states, keep=2))
    again = adam.solve(
        Parabola(), Onlooker(keep=2, kept=CheckpointState(4, states[3].arrays(), ()))
    )
    np.testing.assert_array_equal(again.best[0], states[1].weights[0])


def test_ctrl_c_before_the_first_epoch_ends_is_not_swallowed():
    class Impatient(Onlooker):
        def on_iteration(self, *_):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Adam(epochs=2).solve(Parabola(), Impatient())


def test_the_state_of_another_network_is_refused():
    state = Adam(epochs=1).solve(Parabola(), Onlooker())
    other = Parabola()
    other.parameters[0] = torch.zeros(3, 2)
    with pytest.raises(UsageError, match="that of another network"):
        Adam(epochs=2).solve(other, Onlooker(kept=CheckpointState(1, state.arrays(), ())))


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"epochs": 0}, "epochs must be 1 or more, not 0"),
        ({"learning_rate": 0.0}, "learning_rate must be above 0"),
        ({"weight_decay": -1.0}, "weight_decay must be 0 or more"),
        ({"schedule": "sine"}, "schedule must be one of constant, cosine, linear, step"),
    ],
)
def test_a_wrong_setting_is_reported(parameters, sentence):
    with pytest.raises(UsageError, match=sentence):
        Adam(**parameters).solve(Parabola(), Onlooker())
