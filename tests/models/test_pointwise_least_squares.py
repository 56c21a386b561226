"""Linear regression in closed form, against scikit-learn's and RankLib's."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn import linear_model
from small_data import small_data

from rankwright import load, ranker
from rankwright.data.ranking_data import RankingData
from rankwright.errors import IncompatibleError, UsageError
from rankwright.losses.listnet import ListNet
from rankwright.losses.squared import Squared
from rankwright.models import pointwise
from rankwright.models.pointwise import LeastSquares


def last_round(data, loss=None, start=None, **parameters):
    return list(LeastSquares(**parameters).rounds(loss or Squared(), data, start=start))[-1]


def fit(data, **parameters):
    return last_round(data, **parameters).model()


def test_it_is_the_least_squares_line_with_an_intercept():
    data = small_data()
    X = data.X + 100.0  # without an intercept, such a level would spoil the weights
    peer = linear_model.LinearRegression().fit(X, data.y)
    assert fit(replace(data, X=X)).coef == pytest.approx(peer.coef_, rel=1e-6, abs=1e-9)


def test_weights_of_documents_and_queries_multiply():
    data = small_data()
    rng = np.random.default_rng(0)
    weighted = replace(
        data, sample_weight=rng.random(data.n_documents), query_weight=rng.random(data.n_queries)
    )
    whole = weighted.sample_weight * np.repeat(weighted.query_weight, data.sizes)
    peer = linear_model.LinearRegression().fit(data.X, data.y, sample_weight=whole)
    assert fit(weighted).coef == pytest.approx(peer.coef_, rel=1e-6, abs=1e-9)


def test_a_query_of_one_grade_counts_as_any_other():
    """Other models leave it out of the squared loss; the line through the grades does not."""
    data = small_data(queries=6)
    flat = replace(data, y=np.where(data.query_of_row() == 2, 2.0, data.y))
    peer = linear_model.LinearRegression().fit(flat.X, flat.y)
    assert fit(flat).coef == pytest.approx(peer.coef_, rel=1e-6, abs=1e-9)
    without = flat.select(np.array([0, 1, 3, 4, 5]))
    assert fit(flat).coef != pytest.approx(fit(without).coef, rel=1e-3)


def test_l2_is_by_query_and_the_value_is_the_penalised_mean():
    data, l2 = small_data(), 0.5
    found = last_round(data, l2=l2, scale=False)
    peer = linear_model.Ridge(alpha=l2 * data.n_queries).fit(data.X, data.y)
    assert found.model().coef == pytest.approx(peer.coef_, rel=1e-6)
    errors = data.y - peer.predict(data.X)
    value = 0.5 * errors @ errors / data.n_queries + 0.5 * l2 * peer.coef_ @ peer.coef_
    assert found.loss == pytest.approx(value, rel=1e-8)


def test_scaled_penalties_do_not_depend_on_the_unit_of_a_feature():
    data = small_data()
    metres = replace(data, X=data.X * np.array([1000.0, 1, 1, 1, 1, 1]))
    a, b = fit(data, l2=1.0).coef, fit(metres, l2=1.0).coef
    assert a == pytest.approx(b * np.array([1000.0, 1, 1, 1, 1, 1]), rel=1e-6)


def test_directions_without_a_difference_get_no_weight():
    data = small_data()
    X = np.column_stack([data.X, np.full(data.n_documents, 3.0), data.X[:, 0]])
    coef = fit(replace(data, X=X), l2=0.0).coef
    assert coef[6] == 0.0
    assert coef[0] == pytest.approx(coef[7], rel=1e-6)  # two equal features share their weight
    assert X @ coef == pytest.approx(data.X @ fit(data, l2=0.0).coef, rel=1e-6, abs=1e-6)


def test_sparse_features_give_the_same_weights():
    data = small_data()
    X = np.where(np.abs(data.X) > 0.8, data.X, 0.0)
    dense, thin = fit(replace(data, X=X)), fit(replace(data, X=sparse.csr_array(X)))
    assert thin.coef == pytest.approx(dense.coef, rel=1e-6, abs=1e-9)


def test_auto_keeps_the_l2_that_is_best_on_valid():
    chosen = ranker("linear_regression", l2="auto").fit(small_data(), eval_set=small_data(seed=1))
    assert len(chosen.curve_["loss"]) == 10
    with pytest.raises(UsageError, match="l2='auto' is chosen on validation data"):
        ranker("linear_regression", l2="auto").fit(small_data())


def test_a_negative_penalty_is_reported():
    with pytest.raises(UsageError, match=r"l2 must be 0 or more, not -1\.0"):
        ranker("linear_regression", l2=-1.0).fit(small_data())


def test_it_takes_the_squared_loss_alone_and_no_start():
    data = small_data()
    sentence = "needs a squared distance to fixed targets; loss 'listnet' is not one"
    with pytest.raises(IncompatibleError, match=sentence):
        last_round(data, ListNet())
    with pytest.raises(UsageError, match="leave init_model out"):
        last_round(data, start=fit(data))


def test_the_weights_are_ranklibs_but_for_the_feature_that_it_drops(golden_dir):
    """RankLib 2.18 leaves the last feature out and writes the intercept as its weight."""
    folder = golden_dir / "ranklib"
    data = load(folder / "train.txt")
    line = (folder / "linear_regression" / "model.txt").read_text().splitlines()[-1]
    theirs = {name: float(w) for name, w in (pair.split(":") for pair in line.split())}
    fitted = fit(replace(data, X=np.ascontiguousarray(data.X[:, :11])))
    varying = [theirs[str(feature)] for feature in range(1, 11)]
    assert fitted.coef[:10] == pytest.approx(varying, rel=1e-5)
    assert fitted.coef[10] == 0.0  # a constant: theirs shares the intercept with it
    intercept = theirs["12"] + theirs["11"] * data.X[0, 10]
    ours = data.y.mean() - data.X[:, :10].mean(axis=0) @ fitted.coef[:10]
    assert intercept == pytest.approx(ours, rel=1e-4)


@pytest.mark.parametrize("l2", [1e-10, 0.1])
def test_many_sparse_features_have_the_solution_of_dense_ones(monkeypatch, l2):
    """By scikit-learn's Ridge instead of eigenvectors."""
    monkeypatch.setattr(pointwise, "_MANY", 20)
    rng = np.random.default_rng(0)
    X = sparse.random(600, 60, 0.1, random_state=0, format="csr").toarray()
    X[:, 7], X[:, 8], X[:, 9] = 0.0, 1.5, X[:, 10]  # no difference, and no difference between two
    data = RankingData.from_arrays(
        X,
        rng.integers(0, 4, 600),
        group_sizes=[20] * 30,
        query_weight=rng.random(30),
        sample_weight=rng.random(600),
    )
    dense, wide = (
        last_round(data._replace(X=matrix), l2=l2) for matrix in (X, sparse.csr_array(X))
    )
    coef = dense.model().coef
    np.testing.assert_allclose(wide.model().coef, coef, rtol=1e-8, atol=1e-9 * np.abs(coef).max())
    assert wide.loss == pytest.approx(dense.loss, rel=1e-10)
