"""The simulated clicks equal those of the recorded runs, and so does NDCG@10 of the logger."""

import hashlib
import json

import numpy as np
import pytest

from benchmarks.unbiased import SESSIONS, SETS, anchored_clicks, ndcg_in_file_order
from rankwright.data import RankingData, letor_folds

NAMES = ("MQ2008_logging_feature_25", "OHSUMED_logging_feature_39", "OHSUMED_logging_feature_45")


@pytest.fixture(scope="module")
def recorded(golden_dir):
    return json.loads((golden_dir / "clicks/ultr_anchors.json").read_text(encoding="utf-8"))["runs"]


def test_clicks_and_the_logger_s_ndcg_are_those_of_the_recorded_runs(recorded, data_dir):
    for name, log in zip(NAMES, SETS.values(), strict=True):
        fold = letor_folds(data_dir / log.folder)[0]
        runs = [run for run in recorded[name] if run["fold"] == 1]
        for run in runs:
            if run["method"] != "naive" or run["seed"] > 0:
                continue
            rows = anchored_clicks(fold.train, log.feature, 1, run["seed"], run["eta"])
            counts = np.round(rows.y * SESSIONS).astype("<i4")
            digest = hashlib.sha256(counts.tobytes()).hexdigest()[:16]
            assert (int(counts.sum()), digest) == (run["clicks"], run["counts_sha256"])
        (logger,) = (run["ndcg10"] for run in runs if run["method"] == "logging")
        scores = np.asarray(fold.test.X[:, log.feature - 1], np.float64)
        assert ndcg_in_file_order(fold.test, scores) == pytest.approx(logger, abs=1e-6)


def test_ties_count_in_file_order_and_an_empty_query_as_0():
    data = RankingData.from_arrays(np.zeros((4, 1)), [0, 1, 0, 0], group_sizes=[2, 2])
    assert ndcg_in_file_order(data, np.zeros(4)) == pytest.approx(0.5 / np.log2(3))
