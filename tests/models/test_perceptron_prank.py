"""PRank's perceptron, step by step."""

import numpy as np
import pytest

from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.losses.all_threshold import AllThreshold
from rankwright.metrics.evaluation import evaluate
from rankwright.models import perceptron as module
from rankwright.models.perceptron import prank_steps
from rankwright.rankers.base import ranker


def walk(X, grade, passes=1, weight=None, step=1.0):
    """Visit the rows in order; return weights, thresholds and the mean of the weights."""
    X = np.asarray(X, float)
    n, d = X.shape
    w, late, b, t = np.zeros(d), np.zeros(d), np.zeros(max(grade)), 0.0
    cells = (np.arange(0, n * d + 1, d), np.tile(np.arange(d), n), X.ravel())
    weight = np.ones(n) if weight is None else np.array(weight)
    for _ in range(passes):
        prank_steps(np.arange(n), *cells, np.ones(d), np.array(grade), weight, step, t, w, late, b)
        t += n
    return w, b, w - late / t


def test_the_first_mistake_moves_weights_and_thresholds_by_its_sides():
    """At w = b = 0 both thresholds are wrong for grade 2: tau = (1, 1)."""
    w, b, _ = walk([[1.0, 3.0]], [2])
    assert w.tolist() == [2.0, 6.0]
    assert b.tolist() == [-1.0, -1.0]


def test_a_middle_grade_moves_the_thresholds_apart():
    """tau = (1, -1): the weights stay, the thresholds part and keep their order."""
    w, b, _ = walk([[1.0], [1.0]], [1, 2])
    assert w.tolist() == [1.0]  # the second document lies above -1, but not above 1
    assert b.tolist() == [-1.0, 0.0]


def test_the_mean_is_over_the_weights_after_each_visit():
    X, grade = [[1.0], [-1.0], [2.0]], [1, 0, 1]
    after = [walk(X[: k + 1], grade[: k + 1])[0] for k in range(3)]
    assert walk(X, grade)[2] == pytest.approx(np.mean(after, axis=0))


def test_a_weight_multiplies_the_step():
    w, b, _ = walk([[1.0, 3.0]], [2], weight=[0.5])
    assert (w.tolist(), b.tolist()) == ([1.0, 3.0], [-0.5, -0.5])


def test_weights_leave_the_thresholds_in_order():
    for seed in range(200):
        rng = np.random.default_rng(seed)
        n, grades = rng.integers(5, 40), rng.integers(2, 6)
        grade = rng.integers(0, grades + 1, n)
        grade[0] = grades
        X, weight = rng.normal(size=(n, 3)), rng.choice([0.1, 0.3, 1.0, 2.5, 7.0], n)
        _, b, _ = walk(X, grade, passes=3, weight=weight, step=rng.choice([0.5, 1.0, 3.0]))
        assert (np.diff(b) >= 0.0).all(), (seed, b)


def test_thresholds_that_would_pass_each_other_meet_half_way():
    """From (-.1, .1), a document of grade 0 at a score of 0 lifts the first alone, by 1."""
    _, b, _ = walk([[0.0], [0.0], [0.0]], [1, 0, 2], weight=[0.1, 1.0, 0.0])
    assert b == pytest.approx([0.5, 0.5])


def test_a_threshold_is_the_weight_of_a_feature_that_all_documents_share():
    """Two grades: Rosenblatt's perceptron with the square root of c as one more feature."""
    rng = np.random.default_rng(1)
    X, grade = rng.normal(size=(40, 3)), rng.integers(0, 2, 40)
    c = 6.25
    wide = np.column_stack([X, np.full(40, -np.sqrt(c))])
    v = np.zeros(4)
    for x, side in zip(wide, 2.0 * grade - 1.0, strict=True):
        if side * (v @ x) <= 0.0:
            v += side * x
    w, b, _ = walk(X, grade, step=c)
    np.testing.assert_allclose(w, v[:3], atol=1e-12)
    np.testing.assert_allclose(b, np.sqrt(c) * v[3:], atol=1e-12)


def perceptron(data, monkeypatch, **params):
    """Return the documents in the order of their visits, and the step of the thresholds."""
    seen = []

    def look(visits, *more):
        seen.append((visits.tolist(), more[6]))
        prank_steps(visits, *more)

    monkeypatch.setattr(module, "prank_steps", look)
    ranker("prank", n_passes=2, **params).fit(data)
    return [visits for visits, _ in seen], seen[0][1]


def test_thresholds_move_as_far_as_scores_do_on_average(monkeypatch):
    """Squared lengths are 1, 4, 9 and 10, whose mean is 6."""
    X = [[1.0, 0.0], [0.0, 2.0], [3.0, 0.0], [1.0, 3.0]]
    data = RankingData.from_arrays(X, [0, 1, 1, 0], group_sizes=[2, 2])
    assert perceptron(data, monkeypatch, scale=False)[1] == 6.0
    assert perceptron(data, monkeypatch, scale=False, threshold_step=1.0)[1] == 1.0


def test_a_pass_visits_every_document_once_query_after_query(monkeypatch):
    rng = np.random.default_rng(2)
    data = RankingData.from_arrays(
        rng.normal(size=(60, 2)), np.arange(60) % 2, group_sizes=[10] * 6
    )
    passes, _ = perceptron(data, monkeypatch)
    for visits in passes:
        assert sorted(visits) == list(range(60))
        assert all(len(set(np.array(visits[k : k + 10]) // 10)) == 1 for k in range(0, 60, 10))
    assert passes[0] != passes[1]
    mixed, _ = perceptron(data, monkeypatch, by_query=False)
    assert sorted(mixed[0]) == list(range(60))
    assert len(set(np.array(mixed[0][:10]) // 10)) > 1


def test_grades_that_a_line_can_part_are_learnt():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    score = X @ [1.0, -2.0, 0.5, 0.0]
    y = np.digitize(score, [-1.0, 1.0])
    X += 0.3 * np.outer(y - 1, [1.0, -2.0, 0.5, 0.0])  # a gap between grades
    data = RankingData.from_arrays(X, y, group_sizes=[100, 100])
    fitted = ranker("prank", n_passes=50).fit(data)
    assert evaluate(data, fitted.predict(data), "pair_error")["pair_error"] < 0.01


def test_a_pass_there_must_be():
    data = RankingData.from_arrays([[0.0], [1.0]], [0, 1], group_sizes=[2])
    with pytest.raises(UsageError, match="n_passes must be 1 or more"):
        ranker("prank", n_passes=0).fit(data)


def test_a_threshold_must_move():
    data = RankingData.from_arrays([[0.0], [1.0]], [0, 1], group_sizes=[2])
    with pytest.raises(UsageError, match="threshold_step must be above 0, not 0"):
        ranker("prank", threshold_step=0.0).fit(data)


def test_the_reported_loss_is_that_of_all_threshold():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(40, 3)), rng.integers(0, 3, 40)
    data = RankingData.from_arrays(X, y, group_sizes=[20, 20])
    fitted = ranker("prank", n_passes=1, averaging=False).fit(data)
    value = AllThreshold().bind(data).value(fitted.predict(data))
    assert fitted.curve_["loss"] == [pytest.approx(value / 2)]
