import json

import numpy as np
import pytest
from cases import case, each
from click_sessions import random_log

from rankwright import clicks
from rankwright.clicks.base import NotFittedClickModelError
from rankwright.clicks.models import MODELS
from rankwright.core.parallel import documents_per_range
from rankwright.errors import DataError, UsageError

LOG = random_log()


def test_scores_are_those_of_their_equations():
    log = clicks.ClickLog.from_arrays(
        [0, 0], [1, 2, 1], [1, 0, 0], session_sizes=[2, 1], weight=[3.0, 1.0]
    )
    model = clicks.RCTR().fit(log)
    first, second = (3 + 1) / (4 + 2), (0 + 1) / (3 + 2)
    found = model.evaluate(log)
    total = 3 * np.log(first) + 3 * np.log(1 - second) + np.log(1 - first)
    assert found.log_likelihood == pytest.approx(total / 7)
    assert found.session_log_likelihood == pytest.approx(total / 4)
    at_1 = 2 ** -((3 * np.log2(first) + np.log2(1 - first)) / 4)
    np.testing.assert_allclose(found.perplexity_by_position, [at_1, 1 / (1 - second)])
    assert found.perplexity == pytest.approx((at_1 + 1 / (1 - second)) / 2)
    assert json.loads(json.dumps(found.to_dict()))["impressions"] == 7


@each("name", list(MODELS))
def test_a_model_says_that_it_is_not_fitted(name):
    model = clicks.model(name)
    for use in (model.evaluate, model.click_probabilities):
        with pytest.raises(NotFittedClickModelError, match="is not fitted yet"):
            use(LOG)
    with pytest.raises(NotFittedClickModelError, match=r"fit\(log\) first"):
        model.to_frame()


@each("name", list(MODELS))
def test_without_smoothing_any_log_has_a_model(name):
    lists = clicks.ClickLog.from_arrays(
        [0, 0], list("abcd") * 2, [0, 1, 1, 0, 0, 0, 0, 0], session_sizes=[4, 4]
    )
    never, always = (lists._replace(click=np.full(8, one)) for one in (False, True))
    for log in (LOG, lists, never, always):
        model = clicks.model(name, smoothing=0.0).fit(log)
        assert np.isfinite(model.evaluate(log).log_likelihood)
        for one, values in model.parameters_.items():
            with case(one):
                assert ((values >= 0.0) & (values <= 1.0)).all()


def test_em_stops_where_nothing_changes():
    model = clicks.PBM(max_iter=5000, tol=1e-4).fit(LOG)
    assert model.converged_
    assert model.n_iter_ == len(model.curve_) < 5000
    assert not clicks.PBM(max_iter=1).fit(LOG).converged_
    first = clicks.PBM(max_iter=1).fit(LOG)
    assert model.curve_[1] == pytest.approx(first.evaluate(LOG).log_likelihood)
    again = clicks.PBM(max_iter=model.n_iter_, tol=0.0).fit(LOG)
    assert again.click_probabilities(LOG).tobytes() == model.click_probabilities(LOG).tobytes()
    longer = clicks.PBM(max_iter=model.n_iter_ + 1, tol=0.0).fit(LOG)
    moved = longer.parameters_["examination"] - model.parameters_["examination"]
    assert np.abs(moved).max() <= 1e-4


@each(
    ("params", "sentence"),
    [({"max_iter": 0}, "max_iter must be 1 or more"), ({"tol": -1.0}, "tol must be 0 or more")],
)
def test_parameters_are_checked_when_work_begins(params, sentence):
    with pytest.raises(UsageError, match=sentence):
        clicks.DBN(**params).fit(LOG)


def test_what_is_no_log_is_refused():
    for log in (np.zeros(3), [LOG, LOG]):
        for name in ("pbm", "dbn", "sdbn", "dctr"):
            with pytest.raises(DataError, match=r"a ClickLog is expected.*concatenate_logs"):
                clicks.model(name).fit(log)
    with pytest.raises(DataError, match="no impressions to evaluate"):
        clicks.PBM().fit(LOG).evaluate(LOG.select([]))


@each("kind", [clicks.DBN, clicks.PBM, clicks.UBM])
def test_threads_do_not_change_the_model(kind):
    log = random_log(sessions=400, documents=30, queries=20)
    with documents_per_range(60):
        first, *others = [kind(n_jobs=threads, max_iter=4).fit(log) for threads in (1, 2, 5)]
    for other in others:
        for name, value in first.parameters_.items():
            assert value.tobytes() == other.parameters_[name].tobytes()
