"""Ordinal regression with the thresholds minimised out."""

import numpy as np
import pytest

from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.losses.ordinal_hinge import OrdinalHinge


def data_of(y):
    return RankingData.from_arrays(np.zeros((len(y), 1)), y, group_sizes=[len(y)])


def test_one_document_of_each_grade_wants_a_gap_of_two_margins():
    """The best threshold lies between, and both miss it by (2 - lead) / 2 at most."""
    bound = OrdinalHinge().bind(data_of([1.0, 0.0]))
    for lead in (-1.0, 0.0, 1.5, 2.0, 5.0):
        assert bound.value(np.array([lead, 0.0])) == pytest.approx(max(0.0, 2.0 - lead))


def test_no_grid_of_thresholds_does_better():
    rng = np.random.default_rng(0)
    y, s = rng.integers(0, 3, 8).astype(float), rng.normal(size=8)
    grid = np.linspace(-4, 4, 8001)
    least = 0.0
    for low in (0.0, 1.0):
        side = np.where(y > low, 1.0, -1.0)
        sums = np.maximum(1.0 - side * (s - grid[:, None]), 0.0).sum(axis=1)
        least += sums.min()
    assert OrdinalHinge().bind(data_of(y)).value(s) == pytest.approx(least, abs=1e-2)
    assert OrdinalHinge().bind(data_of(y)).value(s) <= least + 1e-12


def test_a_margin_must_be_positive():
    with pytest.raises(UsageError, match="margin must be above 0"):
        OrdinalHinge(margin=0.0).bind(data_of([1.0, 0.0]))
