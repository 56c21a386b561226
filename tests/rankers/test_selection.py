"""Models are selected by metrics that average over the orders of ties, unlike some reports."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from rankwright.comparison.auto import auto
from rankwright.comparison.baselines import best_feature
from rankwright.comparison.tune import judged
from rankwright.core.types import Round
from rankwright.data.ranking_data import RankingData
from rankwright.metrics.base import metric
from rankwright.metrics.convention import CONVENTIONS
from rankwright.metrics.evaluation import evaluate
from rankwright.rankers.base import ranker
from rankwright.rankers.fitting import EarlyStopping, EvaluationHistory, UserCallbacks
from rankwright.ranklib.flags import Flags
from rankwright.ranklib.metrics import RankLibMetric
from rankwright.ranklib.training import make_ranker

FILE = "ndcg(ties=file)@3"


def best_first(queries=12, seed=0, noise=0.8):
    """Lists that stand in order of their grades, and a feature that knows a little of them."""
    rng = np.random.default_rng(seed)
    y = np.tile([2.0, 1, 1, 0, 0, 0, 0, 0], queries)
    X = np.stack([y + noise * rng.normal(size=len(y)), rng.normal(size=len(y))], axis=1)
    return RankingData.from_arrays(X, y, group_sizes=[8] * queries)


def shuffled(data, seed=0):
    """The same lists, rows in another order within each query."""
    rng = np.random.default_rng(seed)
    mixed = np.concatenate([rng.permutation(np.arange(a, b)) for a, b in pairwise(data.indptr)])
    return replace(data, X=data.X[mixed], y=data.y[mixed])


def history(name, data, convention="standard", **options):
    return EvaluationHistory(name, convention, {"valid": data}, **options)


def a_round(number, scores):
    return Round(number, 0.5, scores, model=lambda: None)


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_a_round_of_equal_scores_is_not_the_best(convention):
    """In file order equal scores are the ideal ranking here; on average they are a poor one."""
    data = best_first()
    record = history("ndcg@3", data, convention)
    equal = np.zeros(data.n_documents)
    record(a_round(1, equal))
    record(a_round(2, data.X[:, 0]))
    assert record.best == 2
    first, second = record.curve["valid ndcg@3"]
    assert first < second < evaluate(data, equal, FILE, convention=convention)[FILE] == 1.0


def test_early_stopping_uses_the_averaged_curve():
    data = best_first()
    record = history("ndcg@3", data, "lightgbm")
    stops = EarlyStopping(record, 1)
    ended = []
    for number, scores in enumerate([np.zeros(data.n_documents), data.X[:, 0]] * 2, start=1):
        record(a_round(number, scores))
        ended.append(stops(a_round(number, scores)))
    assert ended == [False, False, True, True]


def test_auto_uses_the_smoothed_curve_and_ends_fifty_rounds_after_its_maximum():
    """A lucky round among poor ones is not the best; the top of a hill is."""
    data = best_first()
    worst = -data.X[:, 0]
    record, raw = history("ndcg@3", data, smooths=True), history("ndcg@3", data)
    stops = EarlyStopping(record, 50)
    mix = np.linspace(0.0, 1.0, 31)
    ended = None
    for t in range(1, 200):
        share = mix[30 - min(30, abs(t - 40))]  # a hill around round 40
        scores = data.y * share + worst * (1.0 - share) if t != 5 else 3.0 * data.y
        for one in (raw, record):
            one(a_round(t, scores))
        if stops(a_round(t, scores)):
            ended = t
            break
    curve = np.array(record.curve["valid ndcg@3"])
    plain = [curve[max(0, t - 10) : t + 11].mean() for t in range(len(curve))]
    assert record.best == 1 + int(np.argmax(plain))
    assert ended == record.best + 50
    assert raw.best == 5 < 30 < record.best < 50


def test_auto_minimises_a_metric_that_falls_as_rankings_improve():
    data = best_first()
    record = history("pair_error", data, smooths=True)
    for t in range(1, 40):
        record(a_round(t, data.y if t > 20 else -data.y))
    assert record.best > 20


def test_a_rule_of_ties_in_the_name_of_the_metric_is_used():
    data = best_first()
    record = history(FILE, data)
    record(a_round(1, np.zeros(data.n_documents)))
    record(a_round(2, data.X[:, 0]))
    assert record.best == 1


def test_callbacks_see_the_last_metrics_and_only_true_ends_the_run():
    data, seen = best_first(), []
    ends = [None, False, 1, True]  # 1 is a number, such as that of the iteration
    record = history("ndcg@3", data)
    users = UserCallbacks(record, [seen.append, lambda now: ends[now.number - 1]])
    random = np.random.default_rng(0).normal(size=data.n_documents)
    every = [random, np.zeros(data.n_documents), random, data.X[:, 0]]
    ended = []
    for t, scores in enumerate(every, start=1):
        record(a_round(t, scores))
        ended.append(users(a_round(t, scores)))
    assert ended == [False, False, False, True]
    assert [now.metrics["valid"] for now in seen] == record.curve["valid ndcg@3"]
    assert [now.best_iteration for now in seen][-1] == 4


@pytest.mark.parametrize("convention", ["standard", "ranklib", "lightgbm"])
@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("rankboost", {"n_rounds": 20}),
        ("frank", {"n_rounds": 20}),
        ("adarank", {}),
        ("coordinate_ascent", {"n_restarts": 1}),
        ("rankgp", {"population": 20, "n_generations": 3}),
        ("listnet", {"l2": "auto"}),
        ("gbdt", {"n_estimators": 10, "num_leaves": 3}),
    ],
)
def test_the_order_of_rows_chooses_no_model(name, given, convention):
    train, valid = best_first(), best_first(seed=1)
    coarse = [replace(one, X=np.round(one.X)) for one in (train, valid)]  # many ties
    parameters = {"metric": "ndcg@3", "convention": convention, "n_jobs": 1, **given}
    fits = [
        ranker(name, **parameters).fit(coarse[0], eval_set=other)
        for other in (coarse[1], shuffled(coarse[1]))
    ]
    assert fits[0].best_iteration_ == fits[1].best_iteration_
    name = next(title for title in fits[0].curve_ if title.startswith("valid"))
    np.testing.assert_allclose(fits[0].curve_[name], fits[1].curve_[name], rtol=1e-12)


def test_auto_tune_and_single_features_choose_by_averaged_ties():
    data = best_first(queries=8)
    equal = replace(data, X=np.zeros_like(data.X))
    for convention in ("standard", "ranklib"):
        fitted = ranker("linear_regression", convention=convention).fit(data)
        chooses = metric("ndcg@3", convention=convention)
        assert judged(fitted, equal, chooses, "ndcg@3") < 0.9
    found = auto(data, eval_set=equal, metric="ndcg@3", convention="ranklib", time_limit=2)
    assert all(one.value < 0.9 for one in found.candidates if one.value is not None)
    constant = replace(data, X=np.stack([np.zeros(len(data.y)), data.X[:, 0]], axis=1))
    assert best_feature(constant, metric="ndcg@3") == (1, 1)


def test_the_command_line_of_ranklib_selects_as_ranklib_does():
    flags = Flags(train="train.txt", metric2t="NDCG@3", ranker=2)
    made, _ = make_ranker(flags, RankLibMetric.of("NDCG@3"))
    assert made.selection_metric == FILE
