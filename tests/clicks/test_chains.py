import numpy as np
import pytest
from cases import each
from click_sessions import listed, random_log
from reference.click_models import chain_likelihood, chain_step, conditionals, marginals

from rankwright.clicks import DBN, DCM, SDBN, Cascade, ClickLog

LOG = random_log()


def parts_of_chain(model):
    """alpha, sigma and t of the documents of a session, as the equations of each model say."""
    values = model.parameters_
    alpha = values["attractiveness"]
    if model.name == "sdbn":
        return alpha, values["satisfaction"], (1.0, 1.0, 0.0)
    gamma = values["continuation"][0]
    return alpha, values["satisfaction"], (gamma, gamma, 0.0)


@each("kind", [SDBN, DBN])
def test_probabilities_are_those_of_enumeration(kind):
    model = kind().fit(LOG)
    given = model.click_probabilities(LOG)
    alone = model.click_probabilities(LOG, conditional=False)
    for (pairs, clicked, _), lo, hi in list(
        zip(listed(model, LOG), LOG.indptr[:-1], LOG.indptr[1:], strict=True)
    )[:20]:
        alpha, sigma, t = parts_of_chain(model)
        likelihood = chain_likelihood(alpha[pairs], sigma[pairs], t)
        assert sum(likelihood.values()) == pytest.approx(1.0)
        np.testing.assert_allclose(given[lo:hi], conditionals(likelihood, clicked))
        np.testing.assert_allclose(alone[lo:hi], marginals(likelihood))


def test_probabilities_of_dcm_and_cascade_follow_their_definition():
    dcm, cascade = DCM().fit(LOG), Cascade().fit(LOG)
    for (pairs, clicked, _), lo, hi in list(
        zip(listed(dcm, LOG), LOG.indptr[:-1], LOG.indptr[1:], strict=True)
    )[:20]:
        on = dcm.parameters_["continuation"]
        alpha = dcm.parameters_["attractiveness"][pairs]
        # DCM is an SDBN whose satisfaction depends on the position
        likelihood = chain_likelihood(alpha, 1.0 - on[: hi - lo], (1.0, 1.0, 0.0))
        one = LOG.select([np.searchsorted(LOG.indptr, lo)])
        np.testing.assert_allclose(dcm.click_probabilities(one), conditionals(likelihood, clicked))
        alpha = cascade.parameters_["attractiveness"][pairs]
        first = clicked.index(1) if 1 in clicked else hi - lo
        expected = [alpha[r] if r <= first else 1e-6 for r in range(hi - lo)]
        np.testing.assert_allclose(cascade.click_probabilities(one), expected)


def test_iterations_of_em_are_those_of_enumeration():
    model = DBN(max_iter=3, tol=0.0).fit(LOG)
    sessions, n = listed(model, LOG), model.pairs_.n_pairs
    alpha, sigma, t = np.full(n, 0.5), np.full(n, 0.5), np.array([0.5, 0.5, 0.0])

    def smoothed(counts):
        return np.minimum((counts[..., 0] + 1.0) / (counts[..., 1] + 2.0), 1.0 - 1e-6)

    for _ in range(3):
        of_alpha, of_sigma, of_t = chain_step(sessions, alpha, sigma, t)
        gamma = smoothed(of_t[0] + of_t[1])
        alpha, sigma, t = smoothed(of_alpha), smoothed(of_sigma), np.array([gamma, gamma, 0.0])
    np.testing.assert_allclose(model.parameters_["attractiveness"], alpha, rtol=1e-12)
    np.testing.assert_allclose(model.parameters_["satisfaction"], sigma, rtol=1e-12)
    np.testing.assert_allclose(model.parameters_["continuation"], t[:1], rtol=1e-12)
    assert (np.diff(model.curve_) > 0).all()


def test_counts_go_down_to_the_first_or_the_last_click():
    log = ClickLog.from_arrays(
        [0, 0], list("abcd") * 2, [0, 1, 1, 0, 0, 0, 0, 0], session_sizes=[4, 4], weight=[1.0, 3.0]
    )
    cascade = Cascade(smoothing=0.0).fit(log).parameters_["attractiveness"]
    np.testing.assert_allclose(cascade, [0.0, 1 / 4, 0.0, 0.0])
    dcm = DCM(smoothing=0.0).fit(log).parameters_
    np.testing.assert_allclose(dcm["attractiveness"], [0.0, 1 / 4, 1 / 4, 0.0])
    np.testing.assert_allclose(dcm["continuation"], [0.5, 1.0, 0.0, 0.5])
    sdbn = SDBN(smoothing=0.0).fit(log).parameters_
    np.testing.assert_allclose(sdbn["satisfaction"], [0.5, 0.0, 1.0, 0.5])
