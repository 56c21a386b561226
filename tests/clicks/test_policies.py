"""Probabilities of documents at positions and of lists: every order of a few documents."""

import numpy as np
import pytest
from cases import each
from listed_policies import SCORES, SIZES, SLOTS, bounds, lists_of

from rankwright.clicks.policies import (
    conditional_probabilities,
    multiply_down,
    slot_probabilities,
)

INDPTR = np.concatenate(([0], np.cumsum(SIZES)))


@each("temperature", [0.05, 0.5, 1.0, 10.0])
def test_slot_probabilities_are_sums_over_all_orders(temperature):
    expected = np.zeros((len(SCORES), SLOTS))
    for lo, hi in bounds():
        for rows, chances in lists_of(SCORES, lo, hi, temperature):
            expected[rows, np.arange(SLOTS)] += np.prod(chances)
    found = slot_probabilities(SCORES, INDPTR, SLOTS, temperature)
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_they_add_up_to_one_where_rates_are_far_apart():
    scores = np.linspace(0, 300, 30)
    found = slot_probabilities(scores, np.array([0, 30]), 5, 1.0)
    np.testing.assert_allclose(found.sum(axis=0), 1.0, atol=1e-6)
    assert slot_probabilities(SCORES[:2], np.array([0, 2, 2]), 3, 1.0)[:, 2].max() < 1e-9


def test_conditional_probabilities_and_means_are_those_of_the_documents_left():
    values = np.random.default_rng(0).random((len(SCORES), SLOTS))
    for q, (lo, hi) in enumerate(bounds()):
        for rows, chances in lists_of(SCORES, lo, hi, 0.7):
            at = np.array([0, len(rows)]), rows.astype(np.int64)
            found, mean = conditional_probabilities(*at, INDPTR, np.array([q]), SCORES, 0.7, values)
            np.testing.assert_allclose(found, chances, rtol=1e-12)
            left = [d for d in range(lo, hi) if d != rows[0]]
            rates = np.exp(SCORES[left] / 0.7)
            assert mean[1] == pytest.approx(rates @ values[left, 1] / rates.sum())
            product = np.empty(len(rows))
            multiply_down(at[0], found, product)
            np.testing.assert_allclose(product, np.cumprod(chances))


def test_rates_that_no_number_holds_stay_apart():
    """At a low temperature lists are those of the scores in order, and ties are even."""
    scores = np.array([-1000.0, 0.0, -3000.0, -2000.0, -2000.0])
    found = slot_probabilities(scores, np.array([0, 5]), 4, 1.0)
    expected = np.zeros((5, 4))
    expected[1, 0] = expected[0, 1] = 1.0
    expected[3:, 2:] = 0.5
    np.testing.assert_allclose(found, expected, atol=1e-9)
    given, _ = conditional_probabilities(
        np.array([0, 4]),
        np.array([1, 0, 4, 3]),
        np.array([0, 5]),
        np.array([0]),
        scores,
        1.0,
        np.zeros((5, 4)),
    )
    np.testing.assert_allclose(given, [1.0, 1.0, 0.5, 1.0])
