"""Multinomial logistic regression against scikit-learn's, and the expected grade by hand."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from small_data import small_data

from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError
from rankwright.models.pointwise import Classifier
from rankwright.rankers.base import Ranker, ranker

DATA = small_data(queries=12)
EXACT = {"tol": 1e-9, "max_iter": 5000}


def probabilities_of_sklearn(X, y, *, l2, weight, total):
    """J of the module's (2) is scikit-learn's objective with C = 1 / (Q l2)."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=1.0 / (l2 * total), tol=1e-10, max_iter=20_000)
    return model.fit(X, y, sample_weight=weight).predict_proba(X)


@pytest.mark.parametrize("solver", ["lbfgs", "tron"])
@pytest.mark.parametrize("l2", [1e-2, 1.0])
def test_probabilities_are_those_of_scikit_learn(solver, l2):
    fitted = ranker("classification", l2=l2, scale=False, solver=solver, **EXACT).fit(DATA)
    expected = probabilities_of_sklearn(
        DATA.X, DATA.y, l2=l2, weight=np.ones(DATA.n_documents), total=DATA.n_queries
    )
    found = fitted.model_.probabilities(DATA.X)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    np.testing.assert_allclose(fitted.predict(DATA), expected @ np.unique(DATA.y), atol=1e-4)


def test_weights_of_documents_and_queries_are_those_of_samples():
    rng = np.random.default_rng(0)
    of_documents = rng.integers(0, 4, DATA.n_documents).astype(float)
    of_queries = rng.integers(1, 3, DATA.n_queries).astype(float)
    weighted = replace(DATA, sample_weight=of_documents, query_weight=of_queries)
    fitted = ranker("classification", l2=0.1, scale=False, **EXACT).fit(weighted)
    expected = probabilities_of_sklearn(
        DATA.X,
        DATA.y,
        l2=0.1,
        weight=of_documents * of_queries[DATA.query_of_row()],
        total=of_queries.sum(),
    )
    np.testing.assert_allclose(fitted.model_.probabilities(DATA.X), expected, atol=1e-5)


def test_scaled_features_are_those_of_unit_deviation():
    stretched = replace(DATA, X=DATA.X * np.array([1.0, 100.0, 0.01, 1.0, 1.0, 7.0]))
    unit = replace(DATA, X=DATA.X / DATA.X.std(axis=0))
    scaled = ranker("classification", l2=0.1, **EXACT).fit(stretched)
    plain = ranker("classification", l2=0.1, scale=False, **EXACT).fit(unit)
    np.testing.assert_allclose(scaled.predict(stretched), plain.predict(unit), atol=1e-5)


def test_a_score_is_the_expected_grade_and_grades_may_have_gaps():
    y = np.array([0.0, 4.0, 1.0, 0.0, 4.0, 1.0])
    X = np.array([[0.0], [1.0], [0.4], [0.1], [0.9], [0.5]])
    fitted = ranker("classification").fit(X, y, qid=[1, 1, 1, 2, 2, 2])
    model = fitted.model_
    s = X @ model.coef.T + model.intercept
    p = np.exp(s) / np.exp(s).sum(axis=1, keepdims=True)
    np.testing.assert_array_equal(model.grades, [0.0, 1.0, 4.0])
    np.testing.assert_allclose(fitted.predict(X), p @ [0.0, 1.0, 4.0])
    assert (np.argsort(fitted.predict(X)) == np.argsort(X[:, 0])).all()


def test_queries_of_one_grade_count():
    more = RankingData.from_arrays(
        np.concatenate([DATA.X, DATA.X[:5] + 1.0]),
        np.concatenate([DATA.y, np.zeros(5)]),
        qid=np.concatenate([DATA.query_of_row(), np.full(5, 99)]),
    )
    with_them = ranker("classification").fit(more).predict(DATA)
    assert np.abs(with_them - ranker("classification").fit(DATA).predict(DATA)).max() > 1e-3


def test_pairs_of_grades_make_a_multiclass_machine_of_any_loss():
    """RankNet on lists of grades: the logistic loss of the right grade against each other."""
    fitted = Ranker("ranknet", Classifier(l2=0.1, scale=False, **EXACT)).fit(DATA)
    grades = np.unique(DATA.y)

    def objective(theta):
        W = theta.reshape(len(grades), -1)
        s = DATA.X @ W[:, :-1].T + W[:, -1]
        right = DATA.y[:, None] == grades
        lead = s[right][:, None] - s
        total = np.where(right, 0.0, np.log1p(np.exp(-lead))).sum()
        return total / DATA.n_queries + 0.05 * (W[:, :-1] ** 2).sum()

    at = np.column_stack([fitted.model_.coef, fitted.model_.intercept]).ravel()
    assert fitted.solution_.value == pytest.approx(objective(at))
    for j in range(len(at)):
        step = np.eye(len(at))[j] * 1e-3
        assert min(objective(at + step), objective(at - step)) >= objective(at)


def test_it_goes_on_from_a_start_of_the_same_grades():
    first = ranker("classification", l2=0.1, **EXACT).fit(DATA)
    again = ranker("classification", l2=0.1, **EXACT).fit(DATA, init_model=first)
    assert again.solution_.iterations <= 1
    other = replace(DATA, y=np.minimum(DATA.y, 1.0))
    with pytest.raises(UsageError, match="classifier fitted to the same grades"):
        ranker("classification").fit(other, init_model=first)


def test_wrong_settings_and_too_many_grades_are_refused():
    with pytest.raises(UsageError, match="there is no solver 'bundel'; did you mean bundle"):
        ranker("classification", solver="bundel").fit(DATA)
    with pytest.raises(UsageError, match="a classifier is fitted by lbfgs or tron, not by sgd"):
        ranker("classification", solver="sgd").fit(DATA)
    with pytest.raises(UsageError, match="not a sum over features"):
        ranker("classification").fit(DATA).model_.contributions(DATA.X)
    y = np.arange(300.0)
    with pytest.raises(DataError, match="y has 300 different ones where 256 are the most"):
        ranker("classification").fit(np.ones((300, 1)), y, group_sizes=[300])


def test_a_file_whose_weights_do_not_fit_is_refused():
    fitted = ranker("classification").fit(DATA).model_
    with pytest.raises(DataError, match="has the shape"):
        Classifier.restore(fitted.arrays(), {}, 7)


def test_sparse_features_give_the_same_probabilities():
    thin = replace(DATA, X=sparse.csr_array(DATA.X))
    one, other = (ranker("classification").fit(data).predict(DATA.X) for data in (DATA, thin))
    np.testing.assert_allclose(one, other, atol=1e-6)


def test_weights_of_any_size_are_listed_in_columns():
    fitted = ranker("classification").fit(DATA).model_
    small = replace(fitted, coef=np.full_like(fitted.coef, -1.234567891e-155))
    (line, *_) = small.describe(["a"] * DATA.n_features)[1:]
    assert line.split() == ["-1.23457e-155"] * len(fitted.grades) + ["a"]
