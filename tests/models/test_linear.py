import cvxpy as cp
import numpy as np
import pytest
from cases import each
from scipy import sparse
from scipy.optimize import check_grad
from small_data import small_data

from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError
from rankwright.losses.interval import Interval
from rankwright.losses.ranknet import RankNet
from rankwright.losses.squared import Squared
from rankwright.models import missing
from rankwright.models.linear import PATH, Linear
from rankwright.models.linear_objective import LinearObjective
from rankwright.models.missing import fill_values, filled, product_with_gaps, without_gaps
from rankwright.rankers.fitting import last_model
from rankwright.solvers.lbfgs import LBFGS

DATA = small_data()


def fit(linear, data=DATA, loss=None, **more):
    return last_model(linear.rounds(loss or Squared(), data, **more))


def test_the_optimum_is_that_of_a_generic_solver():
    X, y = DATA.X * [1, -1, 1, 1, 1, 1], DATA.y
    data = RankingData.from_arrays(X, y, qid=DATA.query_of_row())
    w, b = cp.Variable(6), cp.Variable()
    objective = cp.sum_squares(X @ w + b - y) / 2 / data.n_queries + 0.05 * cp.sum_squares(w)
    cp.Problem(cp.Minimize(objective)).solve()
    fitted = fit(Linear(l2=0.1, scale=False), data, solver=LBFGS(tol=1e-9))
    np.testing.assert_allclose(fitted.coef, w.value, atol=1e-5)
    assert fitted.intercept == pytest.approx(b.value, abs=1e-5)


def test_the_gradient_agrees_with_finite_differences():
    bound, scale = Squared().bind(DATA), np.arange(1.0, 7.0)
    problem = LinearObjective(bound, DATA, Squared().traits, scale=scale, l2=0.1)

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
    expected = filled @ model.coef + model.intercept
    np.testing.assert_allclose(model.scores(data.X), expected, atol=1e-12)
    assert fit(Linear(missing="zero"), data).fill.tolist() == [0.0] * 6


def test_auto_yields_a_round_for_each_penalty():
    valid = small_data(seed=3)
    rounds = list(Linear(l2="auto").rounds(Squared(), DATA, valid))
    assert [r.number for r in rounds] == list(range(1, len(PATH) + 1))
    np.testing.assert_allclose(rounds[1].model().coef, fit(Linear(l2=PATH[1])).coef, atol=1e-4)
    for r in rounds:
        np.testing.assert_allclose(r.valid_scores, r.model().scores(valid.X))
        assert r.loss == r.model().solution.value


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


# --- intercept -------------------------------------------------------------------------------

SHIFTED = RankingData.from_arrays(DATA.X + np.arange(6.0), DATA.y + 3.0, qid=DATA.query_of_row())


@pytest.mark.parametrize("loss", [Squared(), Interval(calibration=1.0, targets="linear")], ids=str)
def test_the_levels_of_features_and_grades_only_move_the_intercept(loss):
    plain, shifted = fit(Linear(), loss=loss), fit(Linear(), SHIFTED, loss=loss)
    np.testing.assert_allclose(shifted.coef, plain.coef, atol=1e-4)
    level = plain.intercept + 3.0 - shifted.coef @ np.arange(6.0)
    assert shifted.intercept == pytest.approx(level, abs=1e-3)


def test_losses_that_are_shift_invariant_have_no_intercept():
    model = fit(Linear(), SHIFTED, loss=RankNet())
    assert model.intercept == 0.0
    assert "intercept" not in model.arrays()


@pytest.mark.parametrize("solver", ["tron", "online", "sgd"])
def test_every_solver_fits_the_intercept(solver):
    best = fit(Linear(l2=0.1, tol=1e-9), SHIFTED, solver="lbfgs")
    model = fit(Linear(l2=0.1), SHIFTED, solver=solver)
    exact = solver == "tron"
    np.testing.assert_allclose(model.coef, best.coef, atol=2e-3 if exact else 0.02)
    if solver != "sgd":  # whose steps in the intercept are as short as those in the weights
        assert model.solution.value <= best.solution.value * (1.0 + (1e-5 if exact else 0.01))
        assert model.intercept == pytest.approx(best.intercept, abs=2e-3 if exact else 0.1)


def test_sparse_features_stay_sparse_and_have_the_same_intercept():
    thin = RankingData.from_arrays(sparse.csr_array(SHIFTED.X), SHIFTED.y, qid=DATA.query_of_row())
    assert fit(Linear(), thin).intercept == pytest.approx(fit(Linear(), SHIFTED).intercept)


@pytest.mark.parametrize("solver", ["lbfgs", "online"])
def test_arrays_restore_the_intercept_and_a_start_continues_from_it(solver):
    model = fit(Linear(), SHIFTED, solver=solver)
    again = Linear.restore(model.arrays(), model.texts(), 6)
    assert again.intercept == model.intercept != 0.0
    assert (again.scores(SHIFTED.X) == model.scores(SHIFTED.X)).all()
    assert (model.contributions(SHIFTED.X)[:, -1] == model.intercept).all()
    further = fit(Linear(), SHIFTED, solver="lbfgs", start=again)
    assert further.solution.iterations <= 3 if solver == "lbfgs" else 20
    online = Linear().partial_fit(Squared(), SHIFTED, solver="online", start=again)
    assert online.intercept == pytest.approx(model.intercept, abs=0.2)
    damaged = {**online.arrays(), "online_w": np.zeros(6)}
    with pytest.raises(DataError, match="online_w"):
        Linear.restore(damaged, {}, 6)


# --- missing ---------------------------------------------------------------------------------


@each("as_matrix", [np.asarray, sparse.csr_array])
def test_scores_of_rows_with_gaps_are_those_of_the_filled_matrix(as_matrix, monkeypatch):
    monkeypatch.setattr(missing, "_ROWS_WITH_GAPS", 2)
    X = np.random.default_rng(4).normal(size=(9, 3))
    X[[1, 4, 4, 8, 5], [0, 1, 2, 2, 0]] = np.nan
    w, fill = np.array([1.0, -2.0, 0.0]), np.array([0.5, 0.25, 8.0])
    whole = np.where(np.isnan(X), fill, X)
    found = product_with_gaps(as_matrix(X), w, fill, "linear")
    np.testing.assert_allclose(found, whole @ w, rtol=1e-14)
    with pytest.raises(DataError, match="column 0 has missing values"):
        product_with_gaps(as_matrix(X), w, None, "linear")


def test_a_product_that_infinite_values_make_nan_is_no_gap():
    X = np.array([[np.inf, 1.0], [1.0, 1.0]])
    found = product_with_gaps(X, np.array([0.0, 1.0]), None, "linear")
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
    with pytest.raises(DataError, match=r"column 1 .* a factorization model .* drop these rows"):
        without_gaps(X, "factorization")
    with pytest.raises(UsageError, match="missing must be 'mean', 'zero' or None"):
        fill_values(X, "median")
