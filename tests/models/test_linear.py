import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import check_grad
from small_data import Onlooker, small_data

from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError
from rankwright.losses.squared import Squared
from rankwright.models.linear import PATH, Linear
from rankwright.models.linear_problem import LinearProblem

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
    linear = Linear(l2=0.1, scale=False, nonnegative=nonnegative, tol=1e-9)
    np.testing.assert_allclose(fit(linear, data).coef, w.value, atol=1e-5)


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
    with pytest.raises(UsageError, match="adam does not solve for the weights"):
        fit(Linear(), solver="adam")
    with pytest.raises(
        UsageError, match="tron does not support bounds; for nonnegative=True use lbfgs"
    ):
        fit(Linear(nonnegative=True), solver="tron")
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


def test_auto_without_valid_data_is_told():
    with pytest.raises(UsageError, match="l2='auto' is chosen on validation data"):
        fit(Linear(l2="auto"))


def test_contributions_add_up_to_the_score():
    model = fit(Linear())
    np.testing.assert_allclose(model.contributions(DATA.X).sum(1), model.scores(DATA.X))


def test_arrays_restore_the_model():
    model = fit(Linear(missing="mean"), with_holes())
    again = Linear.restore(model.arrays(), model.texts(), 6)
    assert (again.scores(with_holes().X) == model.scores(with_holes().X)).all()
