from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from cases import each
from scipy import sparse
from scipy.optimize import check_grad
from small_data import Onlooker, small_data

from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError
from rankwright.losses.squared import Squared
from rankwright.models import linear
from rankwright.models.linear import PATH, Linear, WeightRounds, fill_values, filled, without_gaps
from rankwright.models.linear_problem import LinearProblem
from rankwright.solvers.lbfgs import LBFGS

DATA = small_data()


def fit(linear, data=DATA, callback=None, **more):
    return linear.fit(Squared(), data, callback=callback or Onlooker(), **more)


@pytest.mark.parametrize("nonnegative", [False, True])
def test_the_optimum_is_that_of_a_generic_solver(nonnegative):
    X, y = DATA.X * [1, -1, 1, 1, 1, 1], DATA.y
    data = RankingData.from_arrays(X, y, qid=DATA.query_of_row())
    w = cp.Variable(6)
    objective = cp.sum_squares(X @ w - y) / 2 / data.n_queries + 0.05 * cp.sum_squares(w)
    cp.Problem(cp.Minimize(objective), [w >= 0] if nonnegative else []).solve()
    solver = LBFGS(nonnegative=nonnegative, tol=1e-9)
    fitted = fit(Linear(l2=0.1, scale=False), data, solver=solver)
    np.testing.assert_allclose(fitted.coef, w.value, atol=1e-5)


def test_the_gradient_agrees_with_finite_differences():
    bound = Squared().bind(DATA)
    problem = LinearProblem(DATA.X, DATA.indptr, bound, 30.0, l2=0.1, deviation=np.arange(1.0, 7.0))

    def gradient(v):
        out = np.empty(6)
        problem.grad(v, out)
        return out

    assert check_grad(problem.value, gradient, np.linspace(-1, 1, 6)) < 1e-4


def test_a_solver_that_does_not_fit_is_named():
    with pytest.raises(UsageError, match="there is no solver 'trom'; did you mean tron"):
        fit(Linear(), solver="trom")
    with pytest.raises(UsageError, match="lbfgs does not support l1; use solver='coordinate'"):
        fit(Linear(l1=0.1), solver="lbfgs")


def test_scaling_makes_the_unit_of_a_feature_irrelevant():
    units = np.array([1.0, 1000.0, 1e-3, 1.0, 1.0, 1.0])
    other = RankingData.from_arrays(DATA.X * units, DATA.y, qid=DATA.query_of_row())
    a, b = fit(Linear(l2=1.0)), fit(Linear(l2=1.0), other)
    np.testing.assert_allclose(a.coef, b.coef * units, rtol=1e-3, atol=1e-6)


def test_sparse_and_dense_data_give_the_same_weights():
    thin = RankingData.from_arrays(sparse.csr_array(DATA.X), DATA.y, qid=DATA.query_of_row())
    np.testing.assert_allclose(fit(Linear(), thin).coef, fit(Linear()).coef, atol=1e-6)


@pytest.mark.parametrize("threads", [2, 5])
def test_the_number_of_threads_changes_no_byte(threads):
    data = small_data(queries=900, documents=40)
    one = fit(Linear(), data, n_jobs=1).coef.tobytes()
    assert fit(Linear(), data, n_jobs=threads).coef.tobytes() == one


def with_holes():
    X = DATA.X.copy()
    X[::7, 2] = np.nan
    return RankingData.from_arrays(X, DATA.y, qid=DATA.query_of_row())


def test_missing_values_are_refused_unless_a_stand_in_is_chosen():
    data = with_holes()
    with pytest.raises(DataError, match=r"column 2 has missing values.*missing='mean'"):
        fit(Linear(), data)
    mean = np.nanmean(data.X[:, 2])
    model = fit(Linear(missing="mean"), data)
    filled = np.where(np.isnan(data.X), mean, data.X)
    np.testing.assert_allclose(model.scores(data.X), filled @ model.coef, atol=1e-12)
    assert fit(Linear(missing="zero"), data).fill.tolist() == [0.0] * 6


def test_auto_tries_a_path_and_keeps_what_the_watch_likes_best():
    callback = Onlooker(valid=small_data(seed=3), keep=2)
    model = fit(Linear(l2="auto"), callback=callback)
    assert len(callback.values) > 5
    np.testing.assert_allclose(model.coef, fit(Linear(l2=PATH[1])).coef, atol=1e-4)


def test_auto_without_valid_data_is_reported():
    with pytest.raises(UsageError, match="l2='auto' is chosen on validation data"):
        fit(Linear(l2="auto"))


def test_contributions_add_up_to_the_score():
    model = fit(Linear())
    np.testing.assert_allclose(model.contributions(DATA.X).sum(1), model.scores(DATA.X))


def test_arrays_restore_the_model():
    model = fit(Linear(missing="mean"), with_holes())
    again = Linear.restore(model.arrays(), model.texts(), 6)
    assert (again.scores(with_holes().X) == model.scores(with_holes().X)).all()


# --- missing ---------------------------------------------------------------------------------


@each("as_matrix", [np.asarray, sparse.csr_array])
def test_scores_of_rows_with_gaps_are_those_of_the_filled_matrix(as_matrix, monkeypatch):
    monkeypatch.setattr(linear, "_ROWS_WITH_GAPS", 2)
    X = np.random.default_rng(4).normal(size=(9, 3))
    X[[1, 4, 4, 8, 5], [0, 1, 2, 2, 0]] = np.nan
    w, fill = np.array([1.0, -2.0, 0.0]), np.array([0.5, 0.25, 8.0])
    whole = np.where(np.isnan(X), fill, X)
    found = linear.product_with_gaps(as_matrix(X), w, fill, "linear")
    np.testing.assert_allclose(found, whole @ w, rtol=1e-14)
    with pytest.raises(DataError, match="column 0 has missing values"):
        linear.product_with_gaps(as_matrix(X), w, None, "linear")


def test_a_product_that_infinite_values_make_nan_is_no_gap():
    X = np.array([[np.inf, 1.0], [1.0, 1.0]])
    found = linear.product_with_gaps(X, np.array([0.0, 1.0]), None, "linear")
    assert np.isnan(found[0])
    assert found[1] == 1.0


X = np.array([[1.0, 0.0, np.nan], [3.0, np.nan, np.nan], [5.0, 4.0, np.nan]])


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_gaps_get_the_mean_of_what_is_known_or_zero(form):
    mean = fill_values(form(X), "mean")
    assert mean.tolist() == [3.0, 2.0, 0.0]
    whole = filled(form(X), mean, "linear")
    dense = whole.toarray() if sparse.issparse(whole) else whole
    assert dense.tolist() == [[1, 0, 0], [3, 2, 0], [5, 4, 0]]
    assert fill_values(form(X), "zero").tolist() == [0.0, 0.0, 0.0]
    assert np.isnan(X).sum() == 4  # the caller's data is left alone


def test_whole_data_is_not_copied():
    whole = np.ones((4, 2))
    assert filled(whole, None, "linear") is without_gaps(whole, "factorization") is whole


def test_the_sentence_names_the_column_and_the_way_out():
    with pytest.raises(DataError, match=r"column 1 has missing .* a kernel model .*missing='mean'"):
        filled(X, None, "kernel")
    with pytest.raises(DataError, match=r"column 1 .* a factorization model .* leave those rows"):
        without_gaps(X, "factorization")
    with pytest.raises(UsageError, match="missing must be 'mean', 'zero' or None"):
        fill_values(X, "median")


# --- weight rounds ---------------------------------------------------------------------------
# Rounds of weights: what the callback is shown, and which of them are kept.


ROUNDS_DATA, VALID = small_data(queries=4, documents=3), small_data(queries=2, documents=3, seed=1)
ROUNDS = [np.eye(6)[k] for k in range(3)]


def test_each_round_is_shown_with_its_loss_and_its_scores():
    callback = Onlooker(valid=VALID)
    rounds = WeightRounds(ROUNDS_DATA, callback, None, n_jobs=1)
    assert [rounds.see(coef, -float(k)) for k, coef in enumerate(ROUNDS)] == [False] * 3
    assert callback.values == [0.0, -1.0, -2.0]
    for k in range(3):
        assert (callback.train_scores[k] == ROUNDS_DATA.X[:, k]).all()
        assert (callback.valid_scores[k] == VALID.X[:, k]).all()
    assert len(rounds) == 3


def test_the_round_that_the_watch_likes_best_is_kept():
    rounds = WeightRounds(ROUNDS_DATA, Onlooker(keep=2), None, n_jobs=1)
    for coef in ROUNDS:
        rounds.see(coef, 0.0)
    assert rounds.best() == 2
    assert (rounds.fitted().coef == ROUNDS[1]).all()


def test_scores_that_are_known_are_shown_as_they_are_and_only_where_they_are_wanted():
    callback, known = Onlooker(), np.arange(12.0)
    WeightRounds(ROUNDS_DATA, callback, None, n_jobs=1).see(ROUNDS[0], 0.0, known)
    assert callback.train_scores[0] is known
    callback = Onlooker()
    callback.wants_train = False
    assert not WeightRounds(ROUNDS_DATA, callback, None, n_jobs=1).see(ROUNDS[0], 0.0, known)
    assert (callback.train_scores, callback.valid_scores) == ([None], [None])


def test_the_watch_may_end_the_run():
    assert WeightRounds(ROUNDS_DATA, Onlooker(stop_at=1), None, n_jobs=1).see(ROUNDS[0], 0.0)


def test_gaps_of_train_and_valid_get_the_means_of_train():
    X, other = ROUNDS_DATA.X.copy(), VALID.X.copy()
    X[0, 0] = other[0, 0] = np.nan
    callback = Onlooker(valid=replace(VALID, X=other))
    rounds = WeightRounds(replace(ROUNDS_DATA, X=X), callback, "mean", n_jobs=1)
    rounds.see(ROUNDS[0], 0.0)
    mean = ROUNDS_DATA.X[1:, 0].mean()
    assert callback.train_scores[0][0] == callback.valid_scores[0][0] == pytest.approx(mean)
    assert rounds.fitted().fill[0] == pytest.approx(mean)
