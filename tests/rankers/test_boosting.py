"""RankBoost against RankLib's own model."""

from dataclasses import replace

import numpy as np
import pytest

from rankwright.data.files import load
from rankwright.rankers.base import ranker


def in_float32(path):
    data = load(path)
    return replace(data, X=data.X.astype(np.float32))


def test_the_model_is_that_of_ranklib(golden_dir):
    """RankLib 2.18, -ranker 2 -round 40 -tc 10: the same rules, thresholds to the last bit."""
    folder = golden_dir / "ranklib"
    train, valid = in_float32(folder / "train.txt"), in_float32(folder / "vali.txt")
    own = {"convention": "ranklib", "metric": "ndcg(ties=file)@10"}
    made = ranker("rankboost", n_rounds=40, n_candidates=10, falling=False, **own)
    made.fit(train, eval_set=valid)
    expected = {}
    for rule in (folder / "rankboost" / "model.txt").read_text().splitlines()[-1].split():
        feature, threshold, weight = rule.split(":")
        key = int(feature) - 1, float(threshold)
        expected[key] = expected.get(key, 0.0) + float(weight)
    model = made.model_
    rules = zip(model.feature.tolist(), model.threshold.tolist(), strict=True)
    found = dict(zip(rules, model.weight.tolist(), strict=True))
    assert found.keys() == expected.keys()
    assert found == pytest.approx(expected, rel=1e-9)
