"""Sums of rules: RankBoost's rounds by brute force, falling potential, merging, text, gaps."""

import math

import numpy as np
import pytest
from forests import as_bytes
from scipy import sparse
from small_data import small_data

from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.losses import loss
from rankwright.models.additive import Additive, describe_rules, level, rules_of
from rankwright.rankers.base import Ranker

DATA = small_data(queries=8, documents=10)


def fit(data=DATA, name="pair_exp", valid=None, start=None, **params):
    """Return the model of the last round, and all rounds."""
    rounds = list(Additive(**params).rounds(loss(name), data, valid, start=start))
    return rounds[-1].model(), rounds


def losses(rounds):
    return np.array([one.loss for one in rounds])


def columns_of(model):
    """Return the features, thresholds and weights of the rules."""
    return [np.array(column) for column in zip(*rules_of(model), strict=True)]


def brute_force(data, rounds):
    """RankBoost over weights of pairs, every rule tried: [(feature, threshold, weight), ...]."""
    pairs = [
        (i, j)
        for lo, hi in zip(data.indptr[:-1], data.indptr[1:], strict=True)
        for i in range(lo, hi)
        for j in range(lo, hi)
        if data.y[i] > data.y[j]
    ]
    D = np.full(len(pairs), 1 / len(pairs))
    better, worse = np.array(pairs).T
    chosen = []
    for _ in range(rounds):
        tried = []
        for f in range(data.n_features):
            for cut in np.unique(data.X[:, f])[-2::-1]:
                h = (data.X[:, f] > cut).astype(float)
                tried.append((D @ (h[better] - h[worse]), f, cut, h))
        top = max(abs(one[0]) for one in tried)  # of equal ones the first feature, highest cut
        r, f, cut, h = next(one for one in tried if abs(one[0]) > top - 1e-9)
        weight = 0.5 * math.log((1 + r) / (1 - r))
        D = D * np.exp(-weight * (h[better] - h[worse]))
        D /= D.sum()
        chosen.append((f, cut, weight))
    return chosen


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_three_rounds_are_rankboosts_by_brute_force(seed):
    data = small_data(queries=6, documents=9, seed=seed)
    made, _ = fit(data, n_rounds=3, n_candidates="all")
    merged = {}
    for f, cut, weight in brute_force(data, 3):
        merged[f, cut] = merged.get((f, cut), 0.0) + weight
    found = {(f, cut): weight for f, cut, weight in rules_of(made)}
    assert found == pytest.approx(merged)


def test_rankboosts_potential_falls_in_every_round_as_it_promises():
    _, rounds = fit(n_rounds=60)
    assert (np.diff(losses(rounds)) < 0).all()


@pytest.mark.parametrize("name", ["fidelity", "ranknet", "squared", "listnet"])
def test_other_losses_fall_by_line_search(name):
    values = losses(fit(name=name, n_rounds=25)[1])
    assert (np.diff(values) < 1e-12).all()
    assert values[-1] < 0.97 * values[0]


@pytest.mark.parametrize("name", ["rocarea_svm", "position_svm", "precision_svm"])
def test_a_rule_that_leads_nowhere_at_a_kink_is_passed_over(name):
    data = small_data(queries=20, documents=15, features=5, seed=0)
    values = losses(fit(data, name, n_rounds=25)[1])
    assert len(values) == 25
    assert (np.diff(values) < 0.0).all()
    assert values[-1] < 0.8 * values[0]


def test_squared_error_starts_from_the_mean():
    made, _ = fit(name="squared", n_rounds=1)
    assert made.base == pytest.approx(DATA.y.mean(), rel=1e-4)


def test_scores_are_those_seen_while_fitting():
    valid = small_data(seed=1)
    made, rounds = fit(valid=valid, n_rounds=40)
    np.testing.assert_allclose(made.scores(valid.X), rounds[-1].valid_scores, rtol=1e-12)
    value = loss("pair_exp").bind(DATA).value(made.scores(DATA.X))
    assert rounds[-1].loss == pytest.approx(value, rel=1e-9)


def test_a_rule_that_comes_again_is_one_rule():
    made, _ = fit(n_rounds=200, n_candidates=3)
    rules = [rule[:2] for rule in rules_of(made)]
    assert rules == sorted(set(rules))
    assert len(rules) <= 6 * 2
    assert made.n_rounds == 200


def test_each_round_has_its_model():
    short, _ = fit(n_rounds=7)
    _, rounds = fit(n_rounds=20)
    assert as_bytes(rounds[6].model()) == as_bytes(short)


def test_a_resumed_run_rebuilds_its_rounds_and_continues_with_the_same_bytes():
    valid, model = small_data(seed=1), Additive(n_rounds=9)
    whole = list(model.rounds(loss("fidelity"), DATA, valid))
    states = [one.state() for one in model.rounds(loss("fidelity"), DATA, valid)]
    again = list(model.rounds(loss("fidelity"), DATA, valid, resume=states[3]))
    for one, two in zip(whole, again, strict=True):
        assert as_bytes(one.model()) == as_bytes(two.model())
    assert (losses(again)[4:] == losses(whole)[4:]).all()
    assert (again[-1].valid_scores == whole[-1].valid_scores).all()


def test_going_on_adds_the_rules_of_a_longer_run():
    first, _ = fit(n_rounds=5)
    more, _ = fit(start=first, n_rounds=6)
    np.testing.assert_allclose(more.scores(DATA.X), fit(n_rounds=11)[0].scores(DATA.X), rtol=1e-9)


def test_missing_values_meet_no_rule_and_their_absence_is_one():
    X = np.array([[np.nan], [3.0], [np.nan], [1.0]])
    data = RankingData.from_arrays(X, [0, 1, 0, 1], group_sizes=[2, 2])
    made, _ = fit(data, n_rounds=1)
    assert columns_of(made)[1].tolist() == [-np.inf]
    low, high = made.scores(np.array([[np.nan], [-5.0]]))
    assert low < high
    assert describe_rules(made, ["clicks"])[1].endswith("clicks is not missing")


def test_rules_are_reported_in_words_the_heaviest_first():
    made, _ = fit(n_rounds=30)
    what, *lines = describe_rules(made, list("abcdef"))
    assert what == f"{made.n_trees} rules; a score is the sum of those that hold"
    f, cut, weight = max(rules_of(made), key=lambda rule: abs(rule[2]))
    assert lines[0].split() == [f"{weight:+.6f}", "abcdef"[f], ">", f"{cut:.6g}"]


def test_contributions_add_up_to_the_scores_and_sparse_data_have_the_same_bits():
    X = np.where(np.abs(DATA.X) > 0.8, DATA.X, 0.0)
    made, _ = fit(name="squared", n_rounds=20)
    parts = made.contributions(X)
    np.testing.assert_allclose(parts.sum(axis=1), made.scores(X), rtol=1e-12)
    expected = np.zeros_like(parts)
    expected[:, -1] = made.base
    for f, cut, weight in rules_of(made):
        expected[:, f] += weight * (X[:, f] > cut)
    np.testing.assert_allclose(parts, expected, atol=1e-12)
    assert (made.scores(sparse.csr_array(X)) == made.scores(X)).all()


def test_only_rising_rules_where_falling_ones_are_refused():
    made, _ = fit(n_rounds=100, falling=False)
    assert (columns_of(made)[2] > 0).all()
    both, _ = fit(n_rounds=100)
    assert (columns_of(both)[2] < 0).any()


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"n_candidates": 1}, "n_candidates must be 2 or more, not 1"),
        ({"n_candidates": "some"}, "n_candidates must be a whole number or 'all', not 'some'"),
        ({"n_rounds": 0}, "n_rounds must be 1 or more, not 0"),
        ({"learning_rate": 0.0}, "learning_rate must be above 0, not 0.0"),
    ],
)
def test_impossible_parameters_are_refused(params, sentence):
    with pytest.raises(UsageError, match=sentence):
        Ranker("pair_exp", Additive(**params)).make_model()


def test_a_derivative_is_followed_until_it_is_level():
    assert level(lambda x: x - 3.0, -3.0, 1.0, 1e-9) == pytest.approx(3.0)
    assert level(lambda x: math.tanh(x - 20.0), -1.0, 0.01, 1e-9) == pytest.approx(20.0)
    steps = level(lambda x: -1.0 if x < 0.7 else 2.0, -1.0, 1.0, 1e-9)
    assert steps == pytest.approx(0.7, abs=1e-3)
    assert level(lambda x: -math.exp(-x), -1.0, 1.0, 0.01) >= math.log(100)


@pytest.mark.parametrize("seed", range(3))
def test_features_that_are_constant_within_each_query_give_no_rule(seed):
    """What a rule gains by them is rounding, which a search would follow for ever."""
    query = np.repeat(np.arange(6), 10)
    rng = np.random.default_rng(seed)
    data = RankingData.from_arrays(
        rng.normal(size=(60, 3))[query], rng.integers(0, 3, 60), qid=query
    )
    for name in ("fidelity", "pair_exp", "ranknet"):
        model, _ = fit(data, name)
        assert not model.n_trees
