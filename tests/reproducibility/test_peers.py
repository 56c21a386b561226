import numpy as np
import pytest
from scipy import sparse

from rankwright.data.ranking_data import RankingData
from rankwright.data.ratings import ratings_of_triples
from rankwright.errors import UsageError
from rankwright.models.jrank import item_features
from reproducibility.peers import contender


def line(grades):
    """One feature that rises with the grade."""
    y = np.repeat(np.array(grades, float), 4)
    X = np.column_stack(
        [y + np.tile([0.0, 0.1, 0.2, 0.3], len(grades)), np.tile([0.0, 1.0], 2 * len(grades))]
    )
    return RankingData.from_arrays(X, y, group_sizes=[len(y)])


@pytest.mark.parametrize("gamma", [None, 1.0])
def test_a_binary_svm_ranks_by_its_margin(gamma):
    data = line([0, 1, 2])
    scores = contender("classifier_svm", min_grade=2.0, gamma=gamma, C=10.0).fit(data).predict(data)
    assert scores[data.y == 2].min() > 0.0 > scores[data.y < 2].max()


@pytest.mark.parametrize(("gamma", "sharpness"), [(None, 1.0), (0.1, 1.0), (None, 4.0)])
def test_an_svm_of_all_grades_ranks_by_the_expected_grade(gamma, sharpness):
    data = line([0, 1, 3])
    svm = contender("classifier_svm", gamma=gamma, C=10.0, sharpness=sharpness).fit(data)
    f = sharpness * svm.svm_.decision_function(data.X)
    p = np.exp(f) / np.exp(f).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(svm.predict(data), p @ [0.0, 1.0, 3.0])


def test_a_document_surely_of_the_lowest_grade_ranks_below_a_doubtful_one():
    rng = np.random.default_rng(0)
    y = np.repeat([0.0, 1.0, 2.0], 40)
    X = np.column_stack([y + rng.normal(0.0, 0.3, 120), rng.normal(size=120)])
    svm = contender("classifier_svm").fit(RankingData.from_arrays(X, y, group_sizes=[120]))
    asked = np.column_stack([[-1.0, -0.5, 0.0, 0.2], np.zeros(4)])
    assert (svm.svm_.predict(asked) == 0.0).all()
    scores = svm.predict(RankingData.from_arrays(asked, np.zeros(4), group_sizes=[4]))
    assert (np.diff(scores) > 0.0).all()


def test_where_training_has_one_class_all_scores_are_alike():
    data = line([0, 1])
    scores = contender("classifier_svm", min_grade=5.0).fit(data).predict(data)
    np.testing.assert_array_equal(scores, np.zeros(8))


def test_the_best_feature_of_train_ranks_test_in_its_own_direction():
    data = line([0, 1, 2])
    X = np.column_stack([np.ones(12), -data.X[:, 0]])
    train = RankingData.from_arrays(X, data.y, group_sizes=[12])
    found = contender("best_feature", metric="ndcg@5").fit(train)
    assert (found.feature_, found.sign_) == (1, -1)
    np.testing.assert_array_equal(found.predict(train), data.X[:, 0])


# --- test_rating_kernels ---


USER = [0, 0, 0, 1, 1, 2, 2, 2, 3, 3]
ITEM = [0, 1, 2, 0, 1, 1, 2, 3, 0, 3]
RATING = [5.0, 3.0, 1.0, 4.0, 2.0, 1.0, 5.0, 3.0, 0.0, 2.0]
DATA = ratings_of_triples(USER, ITEM, RATING)


def centred():
    R = np.zeros((4, 4))
    for user in range(4):
        rows = [k for k in range(10) if USER[k] == user]
        mean = np.mean([RATING[k] for k in rows])
        for k in rows:
            R[user, ITEM[k]] = RATING[k] - mean
    return R


def kernel_matrix_of_items():
    """Equation (1)."""
    R = centred()
    length = np.linalg.norm(R, axis=0)
    mean = R.sum(axis=0) / [3, 3, 2, 2]
    t = (mean - mean.mean()) / mean.std()
    return R.T @ R / np.outer(length, length) + np.outer(t, t)


def test_items_are_alike_as_their_ratings_are():
    phi = item_features(DATA)
    np.testing.assert_allclose(phi @ phi.T, kernel_matrix_of_items(), atol=1e-12)
    extent = (phi**2).sum(axis=0)
    assert (np.diff(extent) <= 0).all()  # the leading ones first


@pytest.mark.parametrize(
    "users", [("all",), ("each",), ("alike",), ("all", "each"), ("all", "each", "alike")]
)
def test_products_of_mapped_ratings_are_the_joint_kernel(users):
    kernel = contender("joint_kernel", users=users, n_tastes=2, max_iter=1).fit(DATA)
    K_I = kernel_matrix_of_items()
    extent, Q = np.linalg.eigh(K_I)
    leading = (Q * np.sqrt(np.maximum(extent, 0.0)))[:, ::-1][:, :2]
    z = centred() @ leading
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    parts = {"all": np.ones((4, 4)), "each": np.eye(4), "alike": z @ z.T}
    K_U = sum(parts[name] for name in users)
    mapped = kernel.map_.mapped(DATA).X
    expected = K_U[np.ix_(USER, USER)] * K_I[np.ix_(ITEM, ITEM)]
    np.testing.assert_allclose((mapped @ mapped.T).toarray(), expected, atol=1e-10)


def test_a_stranger_has_the_common_part_alone():
    kernel = contender("joint_kernel", users=("all", "each", "alike"), max_iter=1).fit(DATA)
    stranger = ratings_of_triples([9, 9], [0, 1], [0.0, 0.0], items=range(4))
    mapped, d = kernel.map_.mapped(stranger).X.toarray(), len(kernel.map_.items.T)
    np.testing.assert_allclose(mapped[:, :d], kernel.map_.items[:2])
    assert not mapped[:, d:].any()


def test_users_with_long_lists_serve_the_kernels_alone():
    kernel = contender("joint_kernel", users=("each",), longest=2, rank=1, max_iter=1)
    kernel.fit(DATA)
    assert list(kernel.map_.place) == [1, 3]
    assert kernel.map_.mapped(DATA).X.shape == (10, 2)
    np.testing.assert_array_equal(kernel.map_.items, item_features(DATA)[:, :1])


def test_a_gaussian_process_has_the_posterior_mean_of_the_books():
    """f = K_*n (K_nn + noise)^-1 (y - mean), up to the scale of y, for user 0."""
    noise = 0.5
    asked = ratings_of_triples([0, 0, 7], [3, 1, 1], [0.0, 0.0, 0.0], items=range(4))
    scores = contender("gaussian_process", noise=noise).fit(DATA).predict(asked)
    K, y = kernel_matrix_of_items(), np.array([5.0, 3.0, 1.0])
    K_nn = K[np.ix_([0, 1, 2], [0, 1, 2])] + noise * np.eye(3)
    z = (y - y.mean()) / y.std()
    f = K[np.ix_([1, 3], [0, 1, 2])] @ np.linalg.solve(K_nn, z)
    item = asked.X.indices[:2].tolist()
    expected = dict(zip((1, 3), y.mean() + y.std() * f, strict=True))
    np.testing.assert_allclose(scores[:2], [expected[i] for i in item])
    assert scores[2] == 0.0  # nothing is known of user 7


def test_wrong_settings_and_other_data_are_refused():
    with pytest.raises(UsageError, match="no kernel of users 'al'; did you mean all"):
        contender("joint_kernel", users=("al",))
    with pytest.raises(UsageError, match="DORM has no parameter 'decai'"):
        contender("joint_kernel", decai=1.0)
    two = RankingData.from_arrays(sparse.csr_array(np.ones((2, 2))), [0, 1], group_sizes=[2])
    with pytest.raises(UsageError, match="need a 1 for the item in each row"):
        contender("gaussian_process").fit(two).predict(two)
