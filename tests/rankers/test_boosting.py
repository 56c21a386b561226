"""RankBoost against RankLib's own model; models that optimise a metric."""

from dataclasses import replace

import numpy as np
import pytest
from small_data import small_data

from rankwright.data.files import load
from rankwright.errors import IncompatibleError
from rankwright.models.additive import rules_of
from rankwright.rankers.base import Ranker, ranker


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
    rules = rules_of(made.model_)
    found = {(feature, threshold): weight for feature, threshold, weight in rules}
    assert found.keys() == expected.keys()
    assert found == pytest.approx(expected, rel=1e-9)


def test_a_model_that_optimises_a_metric_takes_no_loss():
    data = small_data(queries=4, documents=5, features=2)
    for name in ("coordinate_ascent", "expression", "feature_sum"):
        with pytest.raises(IncompatibleError, match=f"'{name}' optimises a metric"):
            Ranker(loss="ranknet", model=name).fit(data)


def test_a_ranker_that_optimises_a_metric_takes_no_model_of_a_loss():
    data = small_data(queries=4, documents=5, features=2)
    for name in ("adarank", "coordinate_ascent", "rankgp"):
        with pytest.raises(IncompatibleError, match=f"{name} optimises a metric, which model 'lin"):
            ranker(name, model="linear").fit(data)
