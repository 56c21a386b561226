"""What every bound loss is held to before a model asks it for anything."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from small_data import small_data

from rankwright.core.types import Traits
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, IncompatibleError
from rankwright.losses import ListNet, Squared
from rankwright.losses.base import bound_loss
from rankwright.models import Trees

DATA = small_data(queries=5, documents=8)


@dataclass(frozen=True)
class Theirs:
    """Half the squared distance of scores from grades, with no more than is promised."""

    traits: Traits
    has: tuple = ()

    def bind(self, data, *, n_jobs=None):
        def grad(s, out):
            out[:] = s - data.y
            return float(0.5 * ((s - data.y) ** 2).sum())

        more = {name: lambda *_: None for name in self.has}
        return SimpleNamespace(value=lambda s: grad(s, np.empty(len(s))), grad=grad, **more)


@pytest.mark.parametrize("method", ["grad_queries", "hess_vec", "targets"])
def test_a_method_that_a_fit_needs_is_there_before_any_work(method):
    with pytest.raises(IncompatibleError) as error:
        bound_loss(Theirs(Traits()), DATA, needs=[method])
    assert f"what bind of loss 'Theirs' returns, has no {method}(), which this fit" in str(
        error.value
    )
    assert hasattr(bound_loss(Theirs(Traits(), (method,)), DATA, needs=[method]), method)


def test_what_has_neither_value_nor_gradient_is_no_bound_loss():
    nothing = SimpleNamespace(traits=Traits(), bind=lambda *_, **__: None)
    with pytest.raises(IncompatibleError, match=r"NoneType, what bind .* has no value\(\)"):
        bound_loss(nothing, DATA)


def test_trees_take_a_loss_that_has_a_gradient_alone():
    """Without a curvature, trees use the curvature of a square."""
    alone = Theirs(Traits(shift_invariant=False))
    rounds = list(Trees(n_estimators=5, min_child_samples=2).rounds(alone, DATA))
    assert rounds[-1].model().offset == pytest.approx(DATA.y.mean())
    losses = [round_.loss for round_ in rounds]
    assert losses == sorted(losses, reverse=True)


def test_a_loss_is_called_with_scores_and_labels():
    scores, labels = np.array([1.0, 2.0, 0.0, 0.5, 0.2, 3.0]), [0, 1, 2, 0, 1, 2]
    qid, weight = ["b", "a", "b", "a", "b", "c"], [1.0, 2.0, 0.0, 1.0, 3.0, 1.0]
    loss = Squared()
    error = np.where(np.array(qid) == "c", 0.0, np.array(weight) * (scores - labels))
    value = 0.5 * (error * (scores - labels)).sum() / 2  # query c has no order
    assert loss(scores, labels, qid=qid, sample_weight=weight) == pytest.approx(value, rel=1e-12)
    gradient = loss.gradient(scores, labels, qid=qid, sample_weight=weight)
    np.testing.assert_allclose(gradient, error / 2, rtol=1e-12)


def test_without_qid_all_documents_belong_to_one_query():
    scores, labels = [1.0, 2.0, 0.0, 0.5], [0, 1, 2, 1]
    whole = ListNet()(scores, labels, qid=[7, 7, 7, 7])
    assert ListNet()(scores, labels) == whole
    halves = ListNet()(scores, labels, group=[2, 2])
    parts = [ListNet()(scores[:2], labels[:2]), ListNet()(scores[2:], labels[2:])]
    assert halves == pytest.approx(np.mean(parts), rel=1e-12)
    with pytest.raises(DataError, match=r"one number per document; their shape is \(1, 4\)"):
        ListNet()([scores], labels)


@pytest.mark.parametrize("loss", [ListNet(), Squared()])
def test_products_with_the_hessian_leave_the_losses_of_queries(loss):
    bound, s = loss.bind(DATA), np.linspace(0.0, 1.0, DATA.n_documents)
    bound.grad(s, np.empty(len(s)))
    before = bound.per_query.copy()
    bound.hess_vec(s, np.empty(len(s)))
    np.testing.assert_array_equal(bound.per_query, before)


def test_some_queries_are_computed_in_the_thread_of_the_caller(monkeypatch):
    """Networks ask for queries in threads of the pool, which must not wait for the pool."""
    monkeypatch.setattr("rankwright.losses.base.map_ranges", lambda *_, **__: pytest.fail("pool"))
    empty = RankingData.from_arrays(np.zeros((3, 1)), [0, 1, 1], group_sizes=[2, 1])
    for bound, size in ((ListNet().bind(DATA), 4), (ListNet().bind(empty), 1)):
        n = bound.layout.begin[-1]
        bound.grad_queries(0, size, np.zeros(n), np.empty(n))
