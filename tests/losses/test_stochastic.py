"""The mean of a loss over noisy scores: its limits, its noise and its state."""

import numpy as np
import pytest

import rankwright as rw
from rankwright.core.types import Traits
from rankwright.errors import UsageError
from rankwright.losses import Stochastic
from rankwright.testing.contract import graded

DATA = graded([[2, 0, 1], [1, 0, 0, 3]])
S = np.array([0.3, -0.2, 1.0, 0.5, 0.1, -1.0, 0.0])


def test_many_samples_come_near_to_the_expected_loss():
    """Under Gumbel noise of any scores, s_1 + e_1 leads with the probability of a softmax."""
    inner = rw.losses.from_function(lambda s, y: (float(s[0] < s[1]), s - y), smooth=False)
    value = Stochastic(inner, samples=20_000)([1.0, 0.0], [1, 0])
    assert value == pytest.approx(1 / (1 + np.e), abs=0.01)


def test_little_noise_is_the_loss_itself():
    loss = rw.losses.UniqueSoftmax()
    noisy = Stochastic(loss, scale=1e-12)
    assert noisy.bind(DATA).value(S) == pytest.approx(loss.bind(DATA).value(S), rel=1e-9)


def test_both_noises_follow_the_iteration_and_the_state():
    loss = Stochastic(rw.losses.XENDCG(), samples=2)
    assert loss.traits == Traits(convex=True, stochastic=True)
    bound, grads = loss.bind(DATA), np.empty((3, 7))
    for t, grad in zip((4, 5, 4), grads, strict=True):
        bound.set_iteration(t)
        bound.grad(S, grad)
    assert (grads[0] == grads[2]).all()
    assert (grads[0] != grads[1]).any()
    other, again = loss.bind(DATA), np.empty(7)
    other.load_state(bound.state())
    other.grad(S, again)
    assert (again == grads[2]).all()


def test_the_loss_may_have_positions_and_any_model_takes_it():
    data = rw.synthetic("mq2008", queries=10)
    data = data._replace(position=np.arange(data.n_documents) % 5)
    ranker = rw.Ranker(loss=Stochastic("dual_softmax", samples=2), model="trees", n_jobs=2)
    assert np.isfinite(ranker.fit(data).predict(data)).all()


def test_a_saved_ranker_knows_the_loss_inside(tmp_path):
    data = rw.synthetic("mq2008", queries=10)
    loss = Stochastic(rw.losses.ListNet(target="gain"), samples=2)
    rw.Ranker(loss=loss, model="linear").fit(data).save(tmp_path / "model.rw")
    again = rw.load_model(tmp_path / "model.rw")
    assert repr(again.loss) == repr(loss)
    again.fit(data)


def test_what_is_no_loss_is_refused():
    with pytest.raises(UsageError, match="there is no loss 'lambdarnk'"):
        Stochastic("lambdarnk").bind(DATA)
    with pytest.raises(UsageError, match="stochastic's samples must be 1 or more, not 0"):
        Stochastic(samples=0).bind(DATA)
