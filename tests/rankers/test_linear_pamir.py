"""PAMIR as a ranker."""

import numpy as np
import pytest
from small_data import small_data

from rankwright.errors import IncompatibleError, UsageError
from rankwright.rankers.base import ranker

DATA = small_data()


def test_its_curve_is_the_mean_hinge_over_pairs_and_falls():
    fitted = ranker("pamir", n_steps=3_000).fit(DATA)
    curve = fitted.curve_["loss"]
    assert len(curve) == 10
    assert curve[-1] < curve[0] < 1.0


def test_a_fit_starts_from_the_weights_of_another():
    first = ranker("pamir", n_steps=700).fit(DATA)
    more = ranker("pamir", C=1e-12, n_steps=300).fit(DATA, init_model=first)
    assert more.coef_ == pytest.approx(first.coef_, abs=1e-8)
    from_zero = ranker("pamir", n_steps=700).fit(
        DATA, init_model=ranker("pamir", C=1e-12).fit(DATA)
    )
    assert from_zero.coef_ == pytest.approx(first.coef_, abs=1e-6)
    with pytest.raises(IncompatibleError, match="cannot continue from a model 'trees'"):
        ranker("pamir").fit(DATA, init_model=ranker("gbdt", n_estimators=1).fit(DATA))


def test_without_averaging_it_answers_with_the_last_weights():
    last = ranker("pamir", n_steps=1, averaging=False).fit(DATA)
    mean = ranker("pamir", n_steps=2).fit(DATA)
    after_two = ranker("pamir", n_steps=2, averaging=False).fit(DATA)
    assert mean.coef_ == pytest.approx(0.5 * (last.coef_ + after_two.coef_))
    assert (last.coef_ != after_two.coef_).any()


def test_it_takes_no_checkpoint_and_no_partial_fit(tmp_path):
    with pytest.raises(UsageError, match="'passive_aggressive' cannot be resumed"):
        ranker("pamir").fit(DATA, checkpoint=tmp_path)
    assert not hasattr(ranker("pamir"), "partial_fit")


def test_missing_values_are_refused_unless_something_stands_for_them():
    X = DATA.X.copy()
    X[3, 2] = np.nan
    with pytest.raises(ValueError, match="missing values"):
        ranker("pamir", n_steps=10).fit(X, DATA.y, qid=DATA.query_of_row())
    ranker("pamir", n_steps=10, missing="mean").fit(X, DATA.y, qid=DATA.query_of_row())


@pytest.mark.parametrize(
    ("params", "sentence"), [({"C": -1.0}, "C must be above 0"), ({"n_steps": 0}, "n_steps must")]
)
def test_parameters_that_cannot_be_are_refused(params, sentence):
    with pytest.raises(UsageError, match=sentence):
        ranker("pamir", **params).fit(DATA)
