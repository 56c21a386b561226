"""Sums of features that improve a metric: values, falling metrics, scale, and AdaRank's rounds."""

import math
import re

import numpy as np
import pytest
from small_data import small_data

from rankwright import registry
from rankwright.core.parameters import check_parameters
from rankwright.data.files import load
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError
from rankwright.metrics.base import metric
from rankwright.metrics.evaluation import evaluate
from rankwright.models.feature_sum import FeatureSum

DATA = small_data(queries=10, documents=8)
RULES = {"weights": "running", "enqueue": True, "tol": 0.002, "max_selections": 5}


def rounds_of(data=DATA, name="ndcg@10", start=None, **params):
    return list(FeatureSum(**{**RULES, **params}).rounds(metric(name), data, start=start))


def fit(data=DATA, name="ndcg@10", **params):
    return rounds_of(data, name, **params)[-1].model()


def test_the_first_feature_is_the_best_single_feature():
    (only,) = rounds_of(name="map", n_rounds=1)
    values = [evaluate(DATA, DATA.X[:, f], "map")["map"] for f in range(6)]
    coef = only.model().coef
    assert np.flatnonzero(coef).tolist() == [int(np.argmax(values))]
    mean = max(values)
    assert coef.max() == pytest.approx(0.5 * np.log((1 + mean) / (1 - mean)))
    assert only.loss == pytest.approx(-mean)


MEANS = [name for name in sorted(registry.METRICS) if metric(name).summary == "mean"]


@pytest.mark.parametrize("name", MEANS)
def test_any_metric_can_be_improved(name):
    last = rounds_of(name=name, n_rounds=20)[-1]
    model = last.model()
    assert np.isfinite(model.coef).all()
    value = evaluate(DATA, model.scores(DATA.X), f"{name}")[name]
    sign = -1 if metric(name).maximise else 1
    assert sign * value == pytest.approx(last.loss, abs=1e-9)


def test_a_feature_that_is_best_downwards_is_found_where_falling_is_allowed():
    turned = RankingData.from_arrays(-DATA.X, DATA.y, qid=DATA.query_of_row())
    rising = fit(name="map", n_rounds=1)
    falling = fit(turned, name="map", n_rounds=1, falling=True)
    assert falling.coef == pytest.approx(-rising.coef)


def test_in_units_of_deviation_the_scale_of_a_feature_does_not_matter():
    factor = np.array([1.0, 100.0, 0.01, 1.0, 5.0, 1.0])
    other = RankingData.from_arrays(DATA.X * factor, DATA.y, qid=DATA.query_of_row())
    a, b = fit(scale=True), fit(other, scale=True)
    np.testing.assert_allclose(a.scores(DATA.X), b.scores(other.X), rtol=1e-9)


def test_tied_values_count_as_the_mean_over_their_orders():
    tied = RankingData.from_arrays(np.zeros((2, 1)), [1, 0], group_sizes=[2])
    (only,) = rounds_of(tied, name="p@1", n_rounds=1)
    assert only.loss == pytest.approx(-0.5)


def test_a_start_keeps_its_weights():
    first = fit(n_rounds=1)
    more = FeatureSum(n_rounds=2, weights="running").rounds(metric("ndcg@10"), DATA, start=first)
    coef = list(more)[-1].model().coef
    assert (coef >= first.coef - 1e-12).all()
    assert coef.sum() > first.coef.sum()


@pytest.mark.parametrize("params", [{}, {"weights": "total", "enqueue": False, "tol": None}])
def test_a_resumed_run_rebuilds_its_rounds_and_continues_with_the_same_bytes(params):
    model, valid = FeatureSum(**{**RULES, **params, "n_rounds": 40}), small_data(seed=1)
    whole = list(model.rounds(metric("ndcg@10"), DATA, valid))
    for number in (1, len(whole) // 2 + 1, len(whole)):
        state = whole[number - 1].state()
        again = list(model.rounds(metric("ndcg@10"), DATA, valid, resume=state))
        assert [r.number for r in again] == [r.number for r in whole]
        for a, b in zip(again, whole, strict=True):
            np.testing.assert_array_equal(a.model().coef, b.model().coef)
        assert all(math.isnan(r.loss) and r.valid_scores is r.state is None for r in again[:number])
        for a, b in zip(again[number:], whole[number:], strict=True):
            assert a.loss == b.loss
            np.testing.assert_array_equal(a.valid_scores, b.valid_scores)


def test_a_state_of_other_data_is_refused():
    state = rounds_of(n_rounds=2)[-1].state()
    rounds = FeatureSum(**RULES).rounds(metric("ndcg@10"), small_data(queries=9), resume=state)
    with pytest.raises(DataError, match="the array 'by_query' has the shape"):
        next(rounds)


def test_missing_values_are_refused_or_filled():
    X = DATA.X.copy()
    X[0, 0] = np.nan
    gaps = RankingData.from_arrays(X, DATA.y, qid=DATA.query_of_row())
    with pytest.raises(DataError, match="feature column 0 has missing values"):
        fit(gaps)
    assert np.isfinite(fit(gaps, missing="mean").scores(X)).all()


# --- reweighting -----------------------------------------------------------------------------
# Weak rankers for weighted queries: AdaRank's rounds by hand, and RankLib's own run.


VALUES = np.array([[0.9, 0.2, 0.3], [0.1, 0.8, 0.4], [0.3, 0.3, 0.9]])
EVEN = np.ones(3)


def mixed(weights):
    """Stands for a metric of sums: the weak rankers' own, averaged by their weights."""
    total = sum(weights.values())
    return sum(weight / total * VALUES[f] for f, weight in weights.items())


def alpha(D, f):
    good = sum(d * (1 + m) for d, m in zip(D, VALUES[f], strict=True))
    bad = sum(d * (1 - m) for d, m in zip(D, VALUES[f], strict=True))
    return 0.5 * math.log(good / bad)


def best(D):
    return int(np.argmax([sum(d * m for d, m in zip(D, row, strict=True)) for row in VALUES]))


def test_three_rounds_as_printed_by_hand():
    rounds = list(FeatureSum(n_rounds=3).choose(VALUES, mixed, EVEN))
    D, taken, weights = [1 / 3, 1 / 3, 1 / 3], [], {}
    for now in rounds:
        f = best(D)
        a = alpha(D, f)
        taken.append(f)
        weights[f] = weights.get(f, 0.0) + a
        assert (now.chosen, now.step) == (f, pytest.approx(a))
        assert now.weights == pytest.approx(weights)
        served = mixed(weights)
        raw = [math.exp(-m) for m in served]
        D = [r / sum(raw) for r in raw]
        assert now.queries == pytest.approx(D)
        assert now.mean == pytest.approx(served.mean())
    assert taken[0] == 2  # mean 0.5 beats 0.4667 and 0.4333
    assert len(set(taken)) > 1


def test_running_weights_carry_all_rounds_with_them():
    first, second = list(FeatureSum(n_rounds=2, weights="running").choose(VALUES, mixed, EVEN))
    D = np.exp(-first.step * mixed(first.weights))
    assert first.queries == pytest.approx(D / D.sum())
    D = first.queries * np.exp(-second.step * mixed(second.weights))
    assert second.queries == pytest.approx(D / D.sum())


def test_weights_of_queries_decide_what_is_taken():
    now = next(FeatureSum().choose(VALUES, mixed, np.array([10.0, 1.0, 1.0])))
    assert now.chosen == 0


def test_a_weak_ranker_that_is_best_for_all_ends_the_run_at_once():
    values = np.array([[0.9, 0.9], [0.1, 0.2]])
    rounds = list(FeatureSum().choose(values, lambda _: values[0], np.ones(2)))
    assert [now.chosen for now in rounds] == [0]
    aside = list(
        FeatureSum(enqueue=True, n_rounds=9).choose(values, lambda _: values[0], np.ones(2))
    )
    assert {now.chosen for now in aside} == {0, 1}


def test_a_round_that_lowers_the_measure_too_far_ends_the_run():
    means = iter([0.5, 0.499, 0.49])
    rules = FeatureSum(tol=0.002, weights="running")
    run = rules.choose(VALUES, lambda _: np.full(3, next(means)), EVEN)
    assert [now.mean for now in run] == pytest.approx([0.5, 0.499])


def test_a_weak_ranker_without_effect_rests():
    run = FeatureSum(max_selections=2, weights="running", n_rounds=6)
    values = np.array([[0.9, 0.9], [0.1, 0.2]])
    chosen = [now.chosen for now in run.choose(values, lambda _: np.full(2, 0.5), np.ones(2))]
    assert chosen == [0, 0, 0, 1, 0, 0]


def test_a_start_counts_in_the_weights_of_the_queries():
    now = next(FeatureSum(tol=9.0).choose(VALUES, mixed, EVEN, {2: 0.5}))
    assert now.weights[2] >= 0.5
    D = np.exp(-VALUES[2])
    assert now.chosen == best(D / D.sum())


def test_wrong_words_are_refused():
    with pytest.raises(UsageError, match="not 'runing'; did you mean running"):
        check_parameters(FeatureSum(weights="runing"))
    with pytest.raises(UsageError, match="n_rounds must be 1 or more"):
        check_parameters(FeatureSum(n_rounds=0))


def selection_sort(values):
    """Return places from the highest value down, as RankLib sorts for single features: unstable."""
    order = list(range(len(values)))
    for i in range(len(values) - 1):
        top = i
        for j in range(i + 1, len(values)):
            if values[order[top]] < values[order[j]]:
                top = j
        order[i], order[top] = order[top], order[i]
    return order


def test_the_run_is_that_of_ranklib(golden_dir):
    """RankLib 2.18's log of AdaRank: feature and training metric of each round that it kept.

    Its run ends at round 192, where its weights of queries, which it never scales, have become 0.
    """
    folder = golden_dir / "ranklib"
    data = load(folder / "train.txt")
    X = data.X.astype(np.float32).astype(np.float64)
    ndcg = metric("ndcg@10", convention="ranklib")

    def mean_ndcg(scores):
        out = np.empty(data.n_queries)
        ndcg.per_query(scores, data, out)
        return out

    def alone(column):
        scores = np.empty(len(column))
        for lo, hi in zip(data.indptr[:-1], data.indptr[1:], strict=True):
            for rank, place in enumerate(selection_sort(column[lo:hi])):
                scores[lo + place] = -rank
        return mean_ndcg(scores)

    def summed(weights):
        coef = np.zeros(data.n_features)
        for f, weight in weights.items():
            coef[f] = weight
        return mean_ndcg(X @ coef)

    log = (folder / "adarank" / "train.log").read_text()
    kept = re.findall(r"^\d+ +\| (\d+) +\| ([\d.]+) +\|[^|]*\| (?:OK|F\. REM\.)", log, re.MULTILINE)
    rules = FeatureSum(weights="running", enqueue=True, tol=0.002, max_selections=5)
    values = np.array([alone(column) for column in X.T])
    rounds = list(rules.choose(values, summed, np.ones(data.n_queries)))[: len(kept)]
    assert len(kept) == 187
    assert [now.chosen + 1 for now in rounds] == [int(feature) for feature, _ in kept]
    means = [float(mean) for _, mean in kept]
    assert [now.mean for now in rounds] == pytest.approx(means, abs=6e-5)
