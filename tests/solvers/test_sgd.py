"""Stochastic gradient steps: near the optimum for any loss, whatever the size of its gradient."""

import numpy as np
import pytest
from small_data import small_data

from rankwright import losses
from rankwright.rankers.base import Ranker
from rankwright.solvers.sgd import SGD

DATA, VALID = small_data(), small_data(seed=1)
BEST = np.array([1.0, -2.0, 0.5])


class Mean:
    """Parts factor/2 |w - c_k|^2, minimised at the mean of the c_k."""

    size, n_parts, strength = 3, 60, 0.0

    def __init__(self, factor=1.0):
        self.factor = factor
        noise = np.random.default_rng(0).normal(size=(60, 3))
        self.centres = BEST + noise - noise.mean(axis=0)
        self.passes, self.batches = [], []

    def grad(self, w, out):
        return self._grad(np.arange(60), w, out)

    def part_grad(self, parts, w, out):
        self.batches.append(parts)
        return self._grad(parts, w, out)

    def begin_pass(self, t, w):
        self.passes.append(t)

    def _grad(self, parts, w, out):
        far = w - self.centres[parts]
        out[:] = self.factor * far.mean(axis=0)
        return 0.5 * self.factor * np.mean(np.sum(far**2, axis=1))


def test_the_optimum_is_found_and_how_near_is_reported():
    found = SGD(learning_rate=0.5, tol=1e-4).solve(Mean())
    np.testing.assert_allclose(found.w, BEST, atol=0.02)
    assert found.optimality == pytest.approx(np.abs(found.w - BEST).max())
    assert found.value == pytest.approx(0.5 * np.mean(np.sum((found.w - Mean().centres) ** 2, 1)))


def test_the_first_step_has_the_length_of_the_rate_in_every_weight():
    found = SGD(learning_rate=0.3, batch_size=60, max_iter=1).solve(Mean())
    np.testing.assert_allclose(np.abs(found.w), 0.3)


def test_the_size_of_the_loss_does_not_matter():
    small, large = (SGD(max_iter=5).solve(Mean(factor)) for factor in (1e-3, 1e3))
    np.testing.assert_allclose(small.w, large.w)


def test_each_pass_sees_every_part_once_in_an_order_of_its_own():
    problem = Mean()
    SGD(max_iter=2, batch_size=8, tol=0.0).solve(problem)
    assert problem.passes == [0, 1]
    assert [len(batch) for batch in problem.batches] == [8] * 7 + [4] + [8] * 7 + [4]
    first, second = np.concatenate(problem.batches[:8]), np.concatenate(problem.batches[8:])
    assert sorted(first) == sorted(second) == list(range(60))
    assert (first != second).any()


def test_the_mean_is_nearer_than_the_last_weights():
    off = {
        averaging: sum(
            np.abs(
                SGD(averaging=averaging, random_state=seed, learning_rate=1.0).solve(Mean()).w
                - BEST
            )
            for seed in range(5)
        ).sum()
        for averaging in (True, False)
    }
    assert off[True] < 0.5 * off[False]


def test_it_stops_when_the_weights_stand_still():
    assert SGD(tol=0.01, learning_rate=0.3).solve(Mean()).stopped == "the weights no longer change"


def test_a_start_at_the_optimum_stays_near():
    found = SGD(learning_rate=0.01).solve(Mean(), BEST)
    np.testing.assert_allclose(found.w, BEST, atol=0.02)


# --- under a ranker --------------------------------------------------------------------------


def valid_score(loss, solver):
    return Ranker(loss, solver=solver).fit(DATA).score(VALID)


@pytest.mark.parametrize(
    "loss", ["lambdarank", losses.PairHinge(form="hinge"), "xendcg", "ranknet"], ids=str
)
def test_any_loss_ranks_about_as_well_as_ranknet_at_its_optimum(loss):
    best = valid_score("ranknet", "lbfgs")
    assert valid_score(loss, "sgd") > best - 0.005


def test_lambdarank_on_mq2008_is_about_as_good_as_ranknet(mq2008):
    import rankwright

    train, valid = (rankwright.load(mq2008 / "Fold1" / f"{part}.txt") for part in ("train", "vali"))
    scores = {
        loss: Ranker(loss, solver=solver).fit(train).score(valid)
        for loss, solver in (("lambdarank", "sgd"), ("ranknet", "lbfgs"))
    }
    assert scores["lambdarank"] > scores["ranknet"] - 0.01
