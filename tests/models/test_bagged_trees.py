import numpy as np
import pytest
from forests import as_bytes
from small_data import small_data

from rankwright.errors import UsageError
from rankwright.losses.squared import Squared
from rankwright.models.bagged_trees import BaggedTrees
from rankwright.rankers.base import Ranker, ranker
from rankwright.rankers.fitting import EvaluationHistory, run

DATA = small_data()


def rounds(forest, **more):
    return list(forest.rounds(Squared(), DATA, DATA, **more))


def fit(forest, **more):
    return rounds(forest, **more)[-1].model()


def test_a_forest_is_the_mean_of_its_bags():
    last = rounds(BaggedTrees(n_bags=4, num_leaves=8))[-1]
    np.testing.assert_allclose(last.model().scores(DATA.X), last.valid_scores, atol=1e-9)
    assert last.model().n_trees == 4


def test_bags_differ_and_the_seed_decides_them():
    a, b = fit(BaggedTrees(n_bags=3)), fit(BaggedTrees(n_bags=3), random_state=1)
    assert as_bytes(a) == as_bytes(fit(BaggedTrees(n_bags=3)))
    assert as_bytes(a) != as_bytes(b)


def test_more_bags_begin_with_the_same_ones():
    few, many = rounds(BaggedTrees(n_bags=2)), rounds(BaggedTrees(n_bags=5))
    assert (few[1].valid_scores == many[1].valid_scores).all()


def test_a_resumed_run_rebuilds_its_bags_and_continues_with_the_same_bytes():
    forest = BaggedTrees(n_bags=5, n_estimators=2)
    whole = rounds(forest)
    again = rounds(forest, resume=whole[2].state())
    for one, two in zip(whole, again, strict=True):
        assert as_bytes(one.model()) == as_bytes(two.model())
    assert (again[-1].valid_scores == whole[-1].valid_scores).all()


@pytest.mark.parametrize("threads", [2, 5])
def test_the_number_of_threads_changes_no_byte(threads):
    one = fit(BaggedTrees(n_bags=3), n_jobs=1)
    assert as_bytes(fit(BaggedTrees(n_bags=3), n_jobs=threads)) == as_bytes(one)


def test_a_forest_finds_the_order():
    model = fit(BaggedTrees(n_bags=30))
    assert np.corrcoef(model.scores(DATA.X), DATA.y)[0, 1] > 0.7


def test_a_forest_cannot_be_continued():
    model = fit(BaggedTrees(n_bags=2))
    with pytest.raises(UsageError, match="cannot be continued"):
        fit(BaggedTrees(n_bags=2), start=model)


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


def interrupted(gradients):
    """Run a fit that is interrupted at a gradient."""
    Interrupting.left = gradients
    forest = BaggedTrees(n_bags=6, n_estimators=3)
    return run(forest.rounds(Interrupting(), DATA), EvaluationHistory("ndcg@10", "standard", {}))


def test_an_interrupted_forest_keeps_its_whole_bags():
    result = interrupted(1 + 2 * 3 + 2)  # the constant, two bags, two rounds
    assert result.interrupted
    assert as_bytes(result.model) == as_bytes(fit(BaggedTrees(n_bags=2, n_estimators=3)))


def test_a_forest_interrupted_in_its_first_bag_keeps_nothing():
    with pytest.raises(KeyboardInterrupt):
        interrupted(3)


def test_a_bag_must_have_queries():
    with pytest.raises(UsageError, match=r"bag_fraction must be above 0, not 0\.0"):
        Ranker("squared", BaggedTrees(bag_fraction=0.0)).make_model()


def test_a_bag_minimises_a_loss_and_a_ranker_that_climbs_a_metric_is_none():
    with pytest.raises(UsageError, match="there is no loss 'adarank'"):
        ranker("random_forest", loss="adarank", n_bags=1).fit(DATA)
