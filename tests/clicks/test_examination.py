from dataclasses import replace

import numpy as np
import pytest
from cases import each
from click_sessions import random_log
from reference.click_models import (
    conditionals,
    examination_step,
    marginals,
    ubm_likelihood,
)

from rankwright.clicks import PBM, UBM, ClickLog
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
    alpha = np.full(model.pairs_.n_pairs, 0.5)
    gamma = np.full(max(k for _, k, _, _ in observed) + 1, 0.5)
    for _ in range(3):
        alpha, gamma = (smoothed(one) for one in examination_step(observed, alpha, gamma))
    np.testing.assert_allclose(model.parameters_["attractiveness"], alpha, rtol=1e-12)
    np.testing.assert_allclose(model.parameters_["examination"], gamma, rtol=1e-12)
    assert (np.diff(model.curve_) > 0).all()


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


def many_sessions(examination, seed, n=4000):
    """Return lists of four of six documents with the clicks of a position-based model."""
    rng = np.random.default_rng(seed)
    shown = np.stack([rng.permutation(6)[:4] for _ in range(n)])
    click = rng.random((n, 4)) < np.array(ATTRACTIVE)[shown] * examination
    return ClickLog.from_arrays(
        np.zeros(n, int), shown.ravel(), click.ravel(), session_sizes=[4] * n
    )


ATTRACTIVE = [0.9, 0.7, 0.5, 0.35, 0.2, 0.1]


def test_pbm_recovers_the_examination_that_clicks_were_simulated_from():
    true, ratios = np.array([0.95, 0.6, 0.4, 0.2]), []
    for seed in range(12):
        model = PBM(max_iter=500).fit(many_sessions(true, seed))
        ratios.append(model.parameters_["examination"] / model.parameters_["examination"][0])
    np.testing.assert_allclose(np.mean(ratios, axis=0), true / 0.95, atol=0.02)


def test_positions_that_nothing_was_shown_at_change_nothing():
    model = PBM().fit(LOG)
    deep = LOG.position.copy()
    deep[deep == LOG.n_positions] = 9000
    other = PBM().fit(replace(LOG, position=deep)).parameters_
    at = [*range(LOG.n_positions - 1), 8999]
    assert len(other["examination"]) == 9000
    np.testing.assert_allclose(
        other["examination"][at], model.parameters_["examination"], rtol=1e-9
    )
    assert other["examination"][4000] == 0.5  # of smoothing only


def test_ubm_says_how_many_positions_it_takes():
    log = ClickLog.from_arrays([0], [0], [1], session_sizes=[1], position=[61])
    with pytest.raises(DataError, match="position 61; UBM"):
        UBM().fit(log)


def test_a_log_without_impressions_is_refused():
    empty = LOG.select(np.zeros(0, int))
    for kind in (PBM, UBM):
        with pytest.raises(DataError, match="no impressions to fit"):
            kind().fit(empty)
