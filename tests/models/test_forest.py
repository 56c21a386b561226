import numpy as np
import pytest
from small_data import Onlooker, small_data

from rankwright.errors import UsageError
from rankwright.losses.squared import Squared
from rankwright.models.forest import Forest
from rankwright.rankers.base import ranker

DATA = small_data()


def fit(forest, callback=None, **more):
    return forest.fit(Squared(), DATA, callback=callback or Onlooker(), **more)


def test_a_forest_is_the_mean_of_its_bags():
    callback = Onlooker()
    model = fit(Forest(n_bags=4, num_leaves=8), callback)
    np.testing.assert_allclose(model.scores(DATA.X), callback.train_scores[-1], atol=1e-9)
    assert model.n_trees == 4


def test_bags_differ_and_the_seed_decides_them():
    a, b = fit(Forest(n_bags=3)), fit(Forest(n_bags=3), random_state=1)
    assert a.text == fit(Forest(n_bags=3)).text
    assert a.text != b.text


def test_more_bags_begin_with_the_same_ones():
    few, many = Onlooker(), Onlooker()
    fit(Forest(n_bags=2), few)
    fit(Forest(n_bags=5), many)
    assert (few.train_scores[1] == many.train_scores[1]).all()


@pytest.mark.parametrize("threads", [2, 5])
def test_the_number_of_threads_changes_no_byte(threads):
    assert fit(Forest(n_bags=3), n_jobs=threads).text == fit(Forest(n_bags=3), n_jobs=1).text


def test_a_forest_finds_the_order():
    model = fit(Forest(n_bags=30))
    assert np.corrcoef(model.scores(DATA.X), DATA.y)[0, 1] > 0.7


def test_a_forest_cannot_be_continued():
    model = fit(Forest(n_bags=2))
    with pytest.raises(UsageError, match="cannot be continued"):
        fit(Forest(n_bags=2), start=model)


class Interrupting(Squared):
    """A loss that is interrupted at the n-th gradient, as by Ctrl-C."""

    left = 0

    def bind(self, data, *, n_jobs=None):
        bound = Squared.bind(self, data, n_jobs=n_jobs)
        usual = bound.grad_curv

        def grad_curv(*arguments):
            type(self).left -= 1
            if type(self).left == 0:
                raise KeyboardInterrupt
            return usual(*arguments)

        bound.grad_curv = grad_curv
        return bound


def test_an_interrupted_forest_keeps_its_whole_bags():
    forest, Interrupting.left = (
        Forest(n_bags=6, n_estimators=3),
        1 + 2 * 3 + 2,
    )  # constant, bags, rounds
    callback = Onlooker()
    model = forest.fit(Interrupting(), DATA, callback=callback)
    assert callback.interrupted
    assert model.text == fit(Forest(n_bags=2, n_estimators=3)).text


def test_a_forest_interrupted_in_its_first_bag_keeps_nothing():
    Interrupting.left = 3
    with pytest.raises(KeyboardInterrupt):
        Forest(n_bags=6, n_estimators=3).fit(Interrupting(), DATA, callback=Onlooker())


def test_a_bag_must_have_queries():
    with pytest.raises(UsageError, match=r"bag_fraction must be above 0, not 0\.0"):
        fit(Forest(bag_fraction=0.0))


def test_a_bag_minimises_a_loss_and_a_ranker_that_climbs_a_metric_is_none():
    with pytest.raises(UsageError, match="there is no loss 'adarank'"):
        ranker("random_forest", loss="adarank", n_bags=1).fit(DATA)
