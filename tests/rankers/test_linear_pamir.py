"""PAMIR as a ranker: it goes on where it stopped, and says how far it has come."""

import numpy as np
import pytest
from small_data import small_data

from rankwright.errors import UsageError
from rankwright.persist.model_file import load_model
from rankwright.rankers.base import ranker

DATA, VALID = small_data(), small_data(seed=1)


def test_its_curve_is_the_mean_hinge_over_pairs_and_falls():
    fitted = ranker("pamir", n_steps=3_000).fit(DATA)
    curve = fitted.curve_["loss"]
    assert len(curve) == 10
    assert curve[-1] < curve[0] < 1.0


def test_partial_fit_on_the_same_data_goes_on_as_one_long_fit():
    half = ranker("pamir", n_steps=1_000, random_state=3)
    half.partial_fit(DATA).partial_fit(DATA)
    whole = ranker("pamir", n_steps=2_000, random_state=3).fit(DATA)
    assert (half.coef_ == whole.coef_).all()


def test_a_saved_ranker_goes_on_where_it_stopped(tmp_path):
    first = ranker("pamir", n_steps=500).partial_fit(DATA)
    first.save(tmp_path / "pamir.rw")
    loaded = load_model(tmp_path / "pamir.rw")
    assert (loaded.partial_fit(VALID).coef_ == first.partial_fit(VALID).coef_).all()
    assert first.model_.pairs.t == 1_000


def test_a_fit_starts_from_the_state_of_another():
    first = ranker("pamir", n_steps=700).fit(DATA)
    more = ranker("pamir", n_steps=300).fit(DATA, init_model=first)
    assert more.model_.pairs.t == 1_000
    assert (more.coef_ == ranker("pamir", n_steps=1_000).fit(DATA).coef_).all()


def test_without_averaging_it_answers_with_the_last_weights():
    last = ranker("pamir", n_steps=500, averaging=False).fit(DATA)
    mean = ranker("pamir", n_steps=500).fit(DATA)
    assert (last.coef_ == mean.model_.pairs.w).all()
    assert (last.coef_ != mean.coef_).any()


def test_missing_values_are_refused_unless_something_stands_for_them():
    X = DATA.X.copy()
    X[3, 2] = np.nan
    with pytest.raises(ValueError, match="missing values"):
        ranker("pamir", n_steps=10).fit(X, DATA.y, qid=DATA.query_of_row())
    ranker("pamir", n_steps=10, missing="mean").fit(X, DATA.y, qid=DATA.query_of_row())


@pytest.mark.parametrize(
    ("params", "sentence"), [({"C": -1.0}, "C, the longest step"), ({"n_steps": 0}, "n_steps must")]
)
def test_parameters_that_cannot_be_are_refused(params, sentence):
    with pytest.raises(UsageError, match=sentence):
        ranker("pamir", **params).fit(DATA)
