"""Domination rank: variants, penalties chosen on valid, and the view of sparsity."""

import numpy as np
import pytest
from scipy import sparse
from small_data import small_data

from rankwright.data.ranking_data import RankingData
from rankwright.errors import IncompatibleError, UsageError
from rankwright.losses.domination import Domination as Loss
from rankwright.metrics.evaluation import evaluate
from rankwright.models import Trees
from rankwright.models.linear import PATH
from rankwright.persist.model_file import load_model
from rankwright.rankers.base import ranker
from rankwright.solvers import Coordinate


def text_like(seed, queries=12, documents=40, features=60):
    """Sparse features of which four matter."""
    rng = np.random.default_rng(seed)
    n = queries * documents
    X = sparse.csr_array(sparse.random(n, features, 0.2, random_state=seed))
    utility = 2 * X[:, [0]] + 2 * X[:, [1]] + X[:, [2]] + X[:, [3]]
    utility = utility.toarray().ravel() + 0.3 * rng.normal(size=n)
    y = np.digitize(utility, np.quantile(utility, [0.7, 0.9]))
    return RankingData.from_arrays(X, y, group_sizes=[documents] * queries)


DATA, VALID = text_like(0), text_like(1)


@pytest.mark.parametrize(
    ("params", "loss"),
    [
        ({}, Loss()),
        ({"variant": "multi"}, Loss()),
        ({"variant": "base"}, Loss(tiers=(1.0,))),
        ({"variant": "base", "tiers": (2.0,)}, Loss(tiers=(2.0,))),
        ({"variant": "margin"}, Loss(margin="linear")),
        ({"variant": "margin", "margin_scale": 0.1}, Loss(margin="linear", margin_scale=0.1)),
        ({"variant": "margin", "margin": "gain"}, Loss(margin="gain")),
    ],
)
def test_variants_are_losses(params, loss):
    assert ranker("domination", **params).make_loss() == loss


def test_an_unknown_variant_is_reported():
    with pytest.raises(UsageError, match="variant must be base, multi or margin, not 'plain'"):
        ranker("domination", variant="plain").fit(DATA)


def test_it_is_solved_by_coordinates_to_its_tolerance_and_is_sparse():
    fitted = ranker("domination", l1=0.02, tol=1e-7).fit(DATA)
    assert fitted.solution_.optimality <= 1e-7
    assert 0 < np.count_nonzero(fitted.coef_) < 30
    assert (fitted.coef_[:4] > 0).all()


def test_lbfgs_finds_the_same_weights_without_l1():
    a = ranker("domination", l1=0.0, l2=0.01, tol=1e-8).fit(DATA)
    b = ranker("domination", l1=0.0, l2=0.01, tol=1e-8, solver="lbfgs").fit(DATA)
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-5)


def test_scaled_features_are_penalised_alike():
    wide = RankingData(sparse.csr_array(DATA.X * 10.0), DATA.y, DATA.indptr, DATA.qid)
    a, b = (ranker("domination", scale=True, l1=0.02).fit(data) for data in (DATA, wide))
    np.testing.assert_allclose(a.coef_, 10 * b.coef_, atol=1e-4)


def test_l1_auto_walks_down_a_path_and_keeps_the_best_on_valid():
    fitted = ranker("domination", l1="auto").fit(DATA, eval_set=VALID)
    path = fitted.sparsity_
    values = [point["valid ndcg@10"] for point in path]
    kept = [point["kept"] for point in path]
    penalties = [point["l1"] for point in path]
    assert penalties == sorted(penalties, reverse=True)
    assert kept[0] < 5 < kept[-1]
    assert fitted.best_iteration_ == int(np.argmax(values)) + 1
    chosen = path[fitted.best_iteration_ - 1]
    assert chosen["kept"] == np.count_nonzero(fitted.coef_)
    assert evaluate(VALID, fitted.predict(VALID), "ndcg@10")["ndcg@10"] == pytest.approx(
        chosen["valid ndcg@10"]
    )
    alone = ranker("domination", l1=chosen["l1"]).fit(DATA)
    np.testing.assert_allclose(alone.coef_, fitted.coef_, atol=1e-3)


def test_the_view_of_sparsity_is_saved(tmp_path):
    fitted = ranker("domination", l1="auto").fit(DATA, eval_set=VALID)
    fitted.save(tmp_path / "path.rw")
    assert load_model(tmp_path / "path.rw").sparsity_ == fitted.sparsity_


def test_l2_auto_is_tried_with_the_given_l1():
    fitted = ranker("domination", l1=0.01, l2="auto").fit(DATA, eval_set=VALID)
    assert {point["l1"] for point in fitted.sparsity_} == {0.01}
    assert [point["l2"] for point in fitted.sparsity_] == list(PATH)


@pytest.mark.parametrize(
    ("params", "valid", "error", "sentence"),
    [
        ({"l1": "auto"}, False, UsageError, "l1='auto' is chosen on validation data"),
        ({"l1": "auto", "l2": "auto"}, True, UsageError, "l1 and l2 cannot both be 'auto'"),
        ({"l1": 0.1, "solver": "lbfgs"}, True, UsageError, "lbfgs does not support l1"),
        ({"l1": -1.0}, True, UsageError, "l1 must be 0 or more"),
        ({"solver": Coordinate(step="newton")}, True, UsageError, "step must be log1p or bound"),
    ],
)
def test_what_does_not_fit_is_reported(params, valid, error, sentence):
    with pytest.raises(error, match=sentence):
        ranker("domination", **params).fit(DATA, eval_set=VALID if valid else None)


def test_a_loss_without_columns_is_reported():
    with pytest.raises(IncompatibleError, match="steps along single features"):
        ranker("listmle", solver="coordinate").fit(small_data())


def test_trees_take_the_loss_too():
    fitted = ranker("domination", model=Trees(n_estimators=10)).fit(DATA)
    assert fitted.curve_["loss"][-1] < fitted.curve_["loss"][0]
