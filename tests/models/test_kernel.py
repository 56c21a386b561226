from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import pairwise_kernels, polynomial_kernel, rbf_kernel
from small_data import small_data

from rankwright.core.parameters import check_parameters
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError
from rankwright.losses import loss
from rankwright.models.kernel import Kernel, inverse_root, named_kernel
from rankwright.models.linear import PATH
from rankwright.persist.model_file import load_model
from rankwright.rankers.linear import RankSVM

DATA = small_data(queries=4, documents=10, features=3)
HINGE = loss("pair_hinge")
EXACT = {"tol": 1e-10, "max_iter": 5000}


def rounds(data=DATA, chosen=HINGE, valid=None, **options):
    """Return the rounds of a model; parameters of `Kernel.rounds` are passed to it."""
    given = {name: options.pop(name, None) for name in ("solver", "start", "n_jobs")}
    model = Kernel(**{"l2": 0.1, **options})
    check_parameters(model)
    return list(model.rounds(chosen, data, valid, random_state=3, **given))


def fit(data=DATA, chosen=HINGE, **options):
    return rounds(data, chosen, **options)[-1].model()


def scaled(data):
    return data.X / data.X.std(axis=0)


def by_representer(K, data, l2):
    """Scores that minimise the squared pair hinge with penalty l2/2 a'Ka, written out in cvxpy."""
    a = cp.Variable(len(K))
    s = K @ a
    query = data.query_of_row()
    pairs = [
        (i, j)
        for i in range(len(K))
        for j in range(len(K))
        if query[i] == query[j] and data.y[i] > data.y[j]
    ]
    better, worse = (list(side) for side in zip(*pairs, strict=True))
    hinges = cp.sum_squares(cp.pos(1 - s[better] + s[worse]))
    bound, at = HINGE.bind(data), np.zeros(len(K))
    factor = bound.value(at) / len(pairs)  # what the loss gives a pair that is a margin short
    root = np.linalg.cholesky(K + 1e-10 * np.eye(len(K)))
    penalty = l2 / 2 * cp.sum_squares(root.T @ a)
    cp.Problem(cp.Minimize(factor * hinges / data.n_queries + penalty)).solve(
        cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11
    )
    return K @ a.value


@pytest.mark.parametrize("thin", [False, True])
def test_named_kernels_are_those_of_scikit_learn(thin):
    numbers = {"gamma": 0.3, "degree": 2, "coef0": 0.7}
    A, B = (small_data(queries=3, features=3, seed=seed).X for seed in (1, 2))
    if thin:
        A, B = sparse.csr_array(A), sparse.csr_array(B)
    for name in ("rbf", "linear", "polynomial"):
        expected = pairwise_kernels(A, B, metric=name, filter_params=True, **numbers)
        assert named_kernel(name, A, B, **numbers) == pytest.approx(expected, abs=1e-13)


def test_an_intercept_is_fitted_unless_shifts_change_nothing():
    higher = replace(DATA, y=DATA.y + 7.0)
    first, second = (fit(data, loss("squared"), **EXACT) for data in (DATA, higher))
    assert second.scores(DATA.X) == pytest.approx(first.scores(DATA.X) + 7.0, abs=1e-5)
    assert second.intercept != 0.0
    assert fit(higher).intercept == 0.0


@pytest.mark.parametrize(
    ("params", "kernel"),
    [
        ({"kernel": "rbf", "gamma": 0.4}, lambda A: rbf_kernel(A, gamma=0.4)),
        (
            {"kernel": "polynomial", "degree": 2, "coef0": 0.7, "gamma": 0.3},
            lambda A: polynomial_kernel(A, degree=2, gamma=0.3, coef0=0.7),
        ),
        ({"kernel": "linear"}, lambda A: A @ A.T),
    ],
)
def test_the_scores_are_those_of_the_representer_theorem(params, kernel):
    fitted = fit(l2=0.05, **params, **EXACT)
    expected = by_representer(kernel(scaled(DATA)), DATA, 0.05)
    assert fitted.exact
    assert fitted.scores(DATA.X) == pytest.approx(expected, abs=2e-5 * np.abs(expected).max())


def test_a_linear_kernel_is_a_linear_model():
    linear = RankSVM(l2=0.1, **EXACT).fit(DATA)
    kernel = fit(kernel="linear", **EXACT)
    new = small_data(queries=3, features=3, seed=5)
    assert kernel.scores(new.X) == pytest.approx(linear.predict(new.X), abs=1e-6)


def test_all_documents_as_landmarks_are_exact():
    exact, sampled = fit(**EXACT), fit(exact_below=0, n_landmarks=40, **EXACT)
    assert sampled.scores(DATA.X) == pytest.approx(exact.scores(DATA.X), abs=1e-8)


def test_more_landmarks_come_nearer_to_exact():
    exact = fit(**EXACT).scores(DATA.X)
    error = [
        np.abs(fit(exact_below=0, n_landmarks=m, **EXACT).scores(DATA.X) - exact).max()
        for m in (5, 20, 36)
    ]
    assert error[0] > error[1] > error[2]


def test_threads_and_the_order_of_rows_change_nothing():
    data = small_data(queries=130, documents=20, features=3)
    few = {"exact_below": 100, "n_landmarks": 30}
    one, five = (fit(data, n_jobs=n, **few) for n in (1, 5))
    assert (one.scores(data.X, n_jobs=1) == five.scores(data.X, n_jobs=5)).all()
    rows = np.random.default_rng(0).permutation(data.n_documents)
    mixed = RankingData.from_arrays(data.X[rows], data.y[rows], qid=data.query_of_row()[rows])
    other = fit(mixed, **few)
    assert (other.weights == one.weights).all()


def test_it_says_whether_it_is_exact():
    assert repr(fit()) == "rbf kernel, exact: all 40 documents"
    thin = fit(exact_below=39, n_landmarks=7)
    assert repr(thin) == "rbf kernel, Nystroem: 7 of 40 documents"
    assert len(thin.weights) == 7
    assert not thin.exact


@pytest.mark.parametrize("name", ["rbf", "polynomial", "linear"])
def test_sparse_and_dense_features_give_the_same_scores(name):
    X = np.where(np.abs(DATA.X) > 0.7, DATA.X, 0.0)
    dense = fit(replace(DATA, X=X), kernel=name, **EXACT)
    thin = fit(replace(DATA, X=sparse.csr_array(X)), kernel=name, **EXACT)
    assert thin.scores(sparse.csr_array(X)) == pytest.approx(dense.scores(X), abs=1e-6)


def test_a_function_and_a_matrix_are_kernels_too():
    named = fit(kernel="rbf", gamma=0.4, **EXACT)
    new = small_data(queries=3, features=3, seed=5)
    own = fit(kernel=lambda A, B: rbf_kernel(A, B, gamma=0.4), **EXACT)
    assert own.scores(new.X) == pytest.approx(named.scores(new.X), abs=1e-6)
    A, deviation = scaled(DATA), DATA.X.std(axis=0)
    matrix = fit(replace(DATA, X=rbf_kernel(A, gamma=0.4)), kernel="precomputed", **EXACT)
    between = rbf_kernel(new.X / deviation, A, gamma=0.4)
    assert matrix.scores(between) == pytest.approx(named.scores(new.X), abs=1e-6)


def test_columns_of_a_precomputed_kernel_follow_the_callers_rows():
    order = np.random.default_rng(0).permutation(40)
    K, qid = rbf_kernel(DATA.X[order]), DATA.query_of_row()[order]
    mixed = RankingData.from_arrays(K, DATA.y[order], qid=qid)
    straight = fit(replace(DATA, X=rbf_kernel(DATA.X)), kernel="precomputed", **EXACT)
    fitted = fit(mixed, kernel="precomputed", **EXACT)
    scores = straight.scores(rbf_kernel(DATA.X))
    assert fitted.scores(K) == pytest.approx(scores[order], abs=1e-6)
    few = fit(mixed, kernel="precomputed", exact_below=0, n_landmarks=40, **EXACT)
    assert few.scores(K) == pytest.approx(scores[order], abs=1e-6)


@pytest.mark.parametrize("kind", ["rbf", "precomputed"])
@pytest.mark.parametrize("thin", [False, True])
def test_saved_and_loaded_it_scores_the_same(kind, thin, tmp_path):
    X = rbf_kernel(DATA.X) if kind == "precomputed" else DATA.X
    X = sparse.csr_array(X) if thin else X
    fitted = RankSVM(model=Kernel(kernel=kind, missing="mean")).fit(replace(DATA, X=X))
    fitted.save(tmp_path / "k.rw")
    again = load_model(tmp_path / "k.rw")
    assert (again.predict(X) == fitted.predict(X)).all()
    assert repr(again.model_) == repr(fitted.model_)


def test_missing_values_are_filled_or_refused():
    X = DATA.X.copy()
    X[3, 1] = np.nan
    with pytest.raises(DataError, match="which a kernel model does not take"):
        fit(replace(DATA, X=X))
    whole = X.copy()
    whole[3, 1] = np.nanmean(X[:, 1])
    filled = fit(replace(DATA, X=X), missing="mean", **EXACT)
    other = fit(replace(DATA, X=whole), **EXACT)
    assert filled.scores(X) == pytest.approx(other.scores(whole), abs=1e-6)


def test_valid_data_choose_the_penalty_and_rows_keep_their_places():
    valid = small_data(queries=4, documents=10, features=3, seed=9)
    found = rounds(valid=valid, l2="auto")
    assert [each.number for each in found] == list(range(1, len(PATH) + 1))
    assert found[1].model().scores(valid.X) == pytest.approx(found[1].valid_scores, abs=1e-9)


def test_any_loss_and_a_warm_start():
    for name in ("listnet", "squared", "retarget", "ranknet"):
        first = fit(chosen=loss(name), l2=0.01, **EXACT)
        again = fit(chosen=loss(name), l2=0.01, start=first, **EXACT)
        assert again.solution.iterations <= 3
        assert again.scores(DATA.X) == pytest.approx(first.scores(DATA.X), abs=1e-5)
    with pytest.raises(UsageError, match="kernel model fitted to the same documents"):
        fit(small_data(queries=4, documents=10, features=3, seed=8), start=fit())


def test_losses_with_kinks_come_to_their_optimum_by_cutting_planes():
    fitted = fit(chosen=loss("position_svm", ties="mean"), solver="bundle", tol=1e-4)
    gap = fitted.solution.optimality
    assert 0.0 <= gap <= 1e-4 * fitted.solution.value


@pytest.mark.parametrize(
    ("params", "error", "sentence"),
    [
        ({"kernel": "rfb"}, UsageError, "kernel must be a function, 'rbf'.* not 'rfb'"),
        ({"gamma": 0.0}, UsageError, "gamma must be above 0"),
        ({"degree": 0}, UsageError, "degree must be 1 or more"),
        ({"kernel": "precomputed"}, DataError, "40 rows and 3 columns"),
        ({"kernel": lambda A, B: A @ B.T - 5.0}, DataError, "the kernel is not positive"),
        ({"kernel": lambda A, B: A[:, :1] - B[:, 0]}, DataError, "not symmetric"),
        ({"kernel": lambda A, B: A}, DataError, r"returned shape \(40, 3\) for 40 and 40 rows"),
        ({"kernel": lambda A, B: A @ B.T * np.nan}, DataError, "not finite"),
    ],
)
def test_what_cannot_be_is_an_error(params, error, sentence):
    with pytest.raises(error, match=sentence):
        fit(**params)


def test_a_function_cannot_be_saved(tmp_path):
    fitted = RankSVM(model=Kernel(kernel=rbf_kernel)).fit(DATA)
    with pytest.raises(UsageError, match="model files hold no code"):
        fitted.save(tmp_path / "k.rw")
    assert not list(tmp_path.iterdir())


def test_documents_all_alike_score_nothing():
    same = replace(DATA, X=np.zeros((40, 3)))
    assert (fit(same, kernel="linear").scores(same.X) == 0.0).all()


def test_directions_without_extent_are_left_out_of_the_root():
    X = np.random.default_rng(0).normal(size=(20, 3))
    K = X @ X.T
    root = inverse_root(K)
    assert root.shape == (20, 3)  # not the 17 that rounding adds
    np.testing.assert_allclose(K @ root @ root.T @ K, K, atol=1e-10)
