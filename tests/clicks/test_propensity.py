"""Position bias: exact where clicks are examination times relevance, and near in simulations."""

import numpy as np
import pytest

import rankwright as rw
from rankwright import clicks
from rankwright.clicks import estimate_propensity
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError

THETA = np.array([1.0, 0.6, 0.45, 0.2])


def exact(shown, *, relevance=None, seed=0):
    """Return rows whose click rates are what the model expects: no noise is left.

    ``shown`` has for each document of a query the positions at which it was seen.
    """
    rng = np.random.default_rng(seed)
    queries, documents = shown.shape[:2]
    x = rng.normal(size=(queries, documents, 3))
    of_x = relevance or (lambda x: rng.uniform(0.1, 0.9, x.shape[:2]))
    relevant = of_x(x)
    q, d, k = np.nonzero(shown)
    rate = THETA[k] * relevant[q, d]
    return RankingData.from_arrays(
        x[q, d],
        rate,
        qid=q,
        doc_id=d,
        position=k + 1,
        sample_weight=rng.integers(1, 9, len(q)),
    )


def everywhere(queries=4, documents=4):
    return np.ones((queries, documents, len(THETA)), bool)


def somewhere(queries=40, documents=6, seed=1):
    """Return documents that were seen at some positions each."""
    return np.random.default_rng(seed).random((queries, documents, len(THETA))) < 0.5


def test_interventions_are_exact_without_noise():
    balanced = exact(everywhere())._replace(sample_weight=None)
    for method in ("randomised", "harvest"):
        found = estimate_propensity(balanced, method, groups=0)
        np.testing.assert_allclose(found.examination, THETA, rtol=1e-4)
        assert (found.method, found.low) == (method, None)


def test_harvesting_is_exact_where_documents_of_a_pair_are_alike():
    """AllPairs has one relevance for a pair of positions: that of any document seen at both."""
    found = estimate_propensity(
        exact(somewhere(), relevance=lambda x: np.full(x.shape[:2], 0.7)), "harvest", groups=0
    )
    np.testing.assert_allclose(found.examination, THETA, rtol=1e-3)


def test_dual_learning_is_near_where_features_are_right():
    rng = np.random.default_rng(5)
    one_each = np.stack([np.eye(4, dtype=bool)[rng.permutation(4)] for _ in range(200)])
    linear = exact(one_each, relevance=lambda x: np.exp(0.5 * x[..., 0] - 1.5), seed=6)
    found = estimate_propensity(linear, "dual", groups=0)
    np.testing.assert_allclose(found.examination, THETA, rtol=0.02)


def simulated(**options):
    data = rw.synthetic("mq2008", queries=150, seed=2)
    return clicks.simulate(data, options.pop("logger", 1), sessions=80, **options)


def test_propensities_are_recovered_from_simulated_logs_within_their_intervals():
    truth = 1 / np.arange(1, 11)
    for method, log in (
        ("randomised", simulated(swaps="all")),
        ("harvest", simulated(logger=[1, 2, 3])),
        ("pbm", simulated(swaps="all")),
        ("dual", simulated()),
    ):
        found = estimate_propensity(log, method, groups=10)
        inside = (found.low <= truth) & (truth <= found.high)
        assert inside.mean() >= 0.8, (method, found)
        assert found.low[0] == found.high[0] == 1.0
        assert (found.high[1:] > found.low[1:]).all()


def test_intervals_are_as_wide_as_estimates_of_other_logs_are_apart():
    data = rw.synthetic("mq2008", queries=60, seed=2)
    found = [
        estimate_propensity(
            clicks.simulate(data, 1, sessions=30, swaps="all", positions=5, random_state=seed),
            "randomised",
        )
        for seed in range(40)
    ]
    apart = np.log([one.examination[1:] for one in found]).std(axis=0, ddof=1)
    half = np.mean([np.log(one.high[1:] / one.low[1:]) / 2 for one in found], axis=0)
    np.testing.assert_array_less(1.96 * 0.6 * apart, half)
    np.testing.assert_array_less(half, 1.96 * 1.7 * apart)


def test_no_position_bias_is_seen_as_none():
    found = estimate_propensity(simulated(eta=0.0), "dual", groups=10)
    assert ((found.low <= 1.0) & (found.high >= 1.0)).mean() >= 0.8


def test_what_cannot_be_estimated_is_refused():
    fixed = exact(np.eye(4, dtype=bool)[None].repeat(3, axis=0))
    with pytest.raises(DataError, match="no document was shown at two positions"):
        estimate_propensity(fixed, "harvest")
    with pytest.raises(UsageError, match="give a ClickLog"):
        estimate_propensity(fixed, "pbm")
    with pytest.raises(UsageError, match="eye_tracking"):
        estimate_propensity(fixed, "eye_tracking")
    with pytest.raises(DataError, match="no click"):
        estimate_propensity(fixed._replace(y=np.zeros(12)), "dual")
    with pytest.raises(DataError, match="no document at position 1 was clicked"):
        estimate_propensity(fixed._replace(y=np.where(fixed.position == 1, 0.0, 0.5)), "randomised")
