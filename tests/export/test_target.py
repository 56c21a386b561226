"""What targets share: thresholds in float32, and programs that fail."""

import sys
from itertools import product

import numpy as np
import pytest
from exported_models import of_rules, of_weights, targets_of

from rankwright.errors import UsageError
from rankwright.export import export_model, target
from rankwright.export.target import ParityError, strictly_above


def test_less_than_the_next_float32_is_not_more_than_the_threshold():
    cuts = np.array([0.1, 0.5, -0.1, 0.0, 3.4e38, -np.inf])
    for cut, above in zip(cuts, strictly_above(cuts), strict=True):
        for x in (np.float32(cut), np.nextafter(np.float32(cut), np.float32([-1e38, 1e38]))):
            x = np.atleast_1d(x)
            assert ((x < above) == (x.astype(float) <= cut)).all()


def test_numbers_whose_sums_overflow_are_refused(tmp_path):
    models = {
        "linear": [of_weights([1.0, -1e308]), of_weights([1.0, 2.0], fill=[0.0, 1e39])],
        "additive": [of_rules([(0, 0.5, 1e308)]), of_rules([(0, 0.5, 1.0)], initial=-1e39)],
    }
    for family, rankers in models.items():
        for to, ranker in product(targets_of(family), rankers):
            with pytest.raises(UsageError, match=r"the number 1e\+3.* above 1e\+30 overflow"):
                export_model(ranker, to, tmp_path / to)


def test_a_program_that_hangs_or_talks_nonsense_is_a_sentence(monkeypatch):
    monkeypatch.setattr(target, "_SECONDS", 0.2)
    sleep = [sys.executable, "-c", "import time; time.sleep(60)"]
    with pytest.raises(ParityError, match=r"it fails: no answer within 0\.2 seconds"):
        target.run_evaluator(sleep, b"", "it fails")
    monkeypatch.setattr(target, "_SECONDS", 60)
    with pytest.raises(ParityError, match="it fails: the program ends with 3"):
        target.run_evaluator([sys.executable, "-c", "raise SystemExit(3)"], b"", "it fails")
    with pytest.raises(ParityError, match="it fails: 5 bytes are not 2 scores"):
        target.as_scores(b"hello", 2, "it fails")
