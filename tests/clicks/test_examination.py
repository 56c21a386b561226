from dataclasses import replace

import numpy as np
import pytest
from cases import each
from click_sessions import random_log
from reference.click_models import (
    conditionals,
    examination_step,
    marginals,
    trust_step,
    ubm_likelihood,
)

from rankwright.clicks import PBM, UBM, ClickLog, TrustPBM
from rankwright.errors import DataError

LOG = random_log()


def contexts(log, ubm):
    """The context of each impression, from the definition."""
    found = []
    for lo, hi in zip(log.indptr[:-1], log.indptr[1:], strict=True):
        last = 0
        for i in range(lo, hi):
            r = int(log.position[i])
            found.append(r * (r - 1) // 2 + last if ubm else r - 1)
            last = r if log.click[i] else last
    return found


def cells(model, log, *, ubm=False):
    codes, weights = model.pairs_.codes(log), log.impression_weights()
    return list(zip(codes, contexts(log, ubm), log.click.astype(int), weights, strict=True))


def smoothed(counts):
    return np.minimum((counts[:, 0] + 1.0) / (counts[:, 1] + 2.0), 1.0 - 1e-6)


@each("kind", [PBM, UBM])
def test_iterations_of_em_are_those_of_enumeration(kind):
    model = kind(max_iter=3, tol=0.0).fit(LOG)
    observed = cells(model, LOG, ubm=kind is UBM)
    alpha = np.full(len(model.pairs_), 0.5)
    gamma = np.full(max(k for _, k, _, _ in observed) + 1, 0.5)
    for _ in range(3):
        alpha, gamma = (smoothed(one) for one in examination_step(observed, alpha, gamma))
    np.testing.assert_allclose(model.parameters_["attractiveness"], alpha, rtol=1e-12)
    np.testing.assert_allclose(model.parameters_["examination"], gamma, rtol=1e-12)
    assert (np.diff(model.curve_) > 0).all()


def test_iterations_of_the_trust_model_are_those_of_enumeration():
    model = TrustPBM(max_iter=3, tol=0.0).fit(LOG)
    observed = cells(model, LOG)
    theta, a, b = np.full(len(model.pairs_), 0.5), np.full(4, 0.6), np.full(4, 0.1)
    for _ in range(3):
        theta, a, b = (smoothed(one) for one in trust_step(observed, theta, a, b))
    for name, expected in zip(model.parameter_names, (theta, a, b), strict=True):
        np.testing.assert_allclose(model.parameters_[name], expected, rtol=1e-12)


def test_probabilities_of_ubm_are_those_of_enumeration():
    model = UBM(max_iter=5).fit(LOG)
    given = model.click_probabilities(LOG)
    alone = model.click_probabilities(LOG, conditional=False)
    alpha = model.parameters_["attractiveness"][model.pairs_.codes(LOG)]
    gamma = np.array(
        [[model.examination(r, j) if j < r else 0.0 for j in range(5)] for r in range(1, 5)]
    )
    for lo, hi in list(zip(LOG.indptr[:-1], LOG.indptr[1:], strict=True))[:20]:
        likelihood = ubm_likelihood(alpha[lo:hi], gamma)
        np.testing.assert_allclose(given[lo:hi], conditionals(likelihood, LOG.click[lo:hi]))
        np.testing.assert_allclose(alone[lo:hi], marginals(likelihood))


def many_sessions(model, n=4000, seed=1):
    rng = np.random.default_rng(seed)
    shown = np.concatenate([rng.permutation(6)[:4] for _ in range(n)])
    log = ClickLog.from_arrays(np.zeros(n, int), shown, np.zeros(4 * n), session_sizes=[4] * n)
    return model.simulate(log, random_state=seed)


def truth(kind, **parameters):
    """A model with these parameters: those of pairs for the documents 0 to 5 of query 0."""
    log = ClickLog.from_arrays([0], np.arange(6), np.zeros(6), session_sizes=[6])
    model = kind(max_iter=1).fit(log)
    model.parameters_ = {name: np.array(values) for name, values in parameters.items()}
    return model


ATTRACTIVE = [0.9, 0.7, 0.5, 0.35, 0.2, 0.1]


def test_pbm_recovers_the_examination_that_clicks_were_simulated_from():
    true = truth(PBM, attractiveness=ATTRACTIVE, examination=[0.95, 0.6, 0.4, 0.2])
    ratios = []
    for seed in range(12):
        model = PBM(max_iter=500).fit(many_sessions(true, seed=seed))
        ratios.append(model.parameters_["examination"] / model.parameters_["examination"][0])
    np.testing.assert_allclose(
        np.mean(ratios, axis=0), np.array([0.95, 0.6, 0.4, 0.2]) / 0.95, atol=0.02
    )


@each("kind", [PBM, TrustPBM])
def test_standard_errors_are_those_of_the_whole_information_matrix(kind):
    log = random_log(sessions=30, documents=3, length=3, queries=1)
    model = kind(max_iter=2000, tol=1e-12).fit(log)
    n, k_last = len(model.pairs_), log.n_positions
    values = np.concatenate([model.parameters_[name] for name in model.parameter_names])
    information = np.diag(1.0 / values**2 + 1.0 / (1.0 - values) ** 2)  # of smoothing
    for u, k, _, weight in cells(model, log):
        gradient, first, second = np.zeros(len(values)), n + k, n + k_last + k
        if kind is PBM:
            p = values[u] * values[first]
            gradient[[u, first]] = values[first], values[u]
        else:
            p = values[u] * values[first] + (1.0 - values[u]) * values[second]
            gradient[u] = values[first] - values[second]
            gradient[[first, second]] = values[u], 1.0 - values[u]
        information += weight / (p * (1.0 - p)) * np.outer(gradient, gradient)
    expected = np.sqrt(np.diag(np.linalg.inv(information)))
    found = np.concatenate([model.standard_errors_[name] for name in model.parameter_names])
    np.testing.assert_allclose(found, expected, rtol=1e-7)


@each("kind", [PBM, TrustPBM])
def test_positions_that_nothing_was_shown_at_cost_nothing(kind):
    model = kind().fit(LOG)
    deep = LOG.position.copy()
    deep[deep == LOG.n_positions] = 9000
    other = kind().fit(replace(LOG, position=deep))
    np.testing.assert_allclose(other.covariance_, model.covariance_, rtol=1e-9)
    at = [*range(LOG.n_positions - 1), 8999]
    for name in model.parameter_names[1:]:
        for found, expected in (
            (other.parameters_, model.parameters_),
            (other.standard_errors_, model.standard_errors_),
        ):
            assert len(found[name]) == 9000
            np.testing.assert_allclose(found[name][at], expected[name], rtol=1e-9)
        assert other.standard_errors_[name][4000] == pytest.approx(8.0**-0.5)  # of smoothing alone


def test_trust_of_the_first_positions_is_seen():
    true = truth(
        TrustPBM,
        relevance=[0.95, 0.8, 0.5, 0.3, 0.1, 0.02],
        click_relevant=[0.9, 0.6, 0.4, 0.2],
        click_irrelevant=[0.4, 0.1, 0.03, 0.01],
    )
    log = many_sessions(true, n=8000)
    trust, plain = TrustPBM(max_iter=500).fit(log), PBM(max_iter=500).fit(log)
    assert trust.evaluate(log).log_likelihood > plain.evaluate(log).log_likelihood
    irrelevant = trust.parameters_["click_irrelevant"]
    assert irrelevant[0] > 0.2
    assert irrelevant[0] > irrelevant[1] > irrelevant[3]


def test_ubm_says_how_many_positions_it_takes():
    log = ClickLog.from_arrays([0], [0], [1], session_sizes=[1], position=[61])
    with pytest.raises(DataError, match="position 61; UBM"):
        UBM().fit(log)


def test_a_log_without_impressions_is_refused():
    empty = LOG.select(np.zeros(0, int))
    for kind in (PBM, UBM, TrustPBM):
        with pytest.raises(DataError, match="no impressions to fit"):
            kind().fit(empty)
