"""Off-policy estimates equal to the Open Bandit Pipeline's, on the same inputs.

``golden/clicks/obp.json`` has the numbers, and every input of them.
"""

import csv
import json
import lzma

import numpy as np
import pytest
from cases import case

from rankwright import clicks

OURS = {
    "ips": ("ips", None),
    "ips_clip_10": ("ips", 10.0),
    "ips_clip_3": ("ips", 3.0),
    "snips": ("snips", None),
    "dr": ("dr", None),
    "dr_clip_3": ("dr", 3.0),
}


@pytest.fixture(scope="module")
def golden(golden_dir):
    return json.loads((golden_dir / "clicks" / "obp.json").read_text())


@pytest.mark.parametrize("campaign", ["men", "women"])
def test_the_open_bandit_data_gives_the_same_estimates(golden, data_dir, campaign):
    given = golden["open_bandit"][campaign]
    with lzma.open(data_dir / "OpenBandit_small" / given["logged"], "rt") as stream:
        rows = list(csv.DictReader(stream))
    item, slot, click, chance = (
        np.array([float(row[name]) for row in rows])
        for name in ("item_id", "position", "click", "propensity_score")
    )
    item, slot = item.astype(int), slot.astype(int) - 1
    target = np.array(given["evaluation_policy"]["action_dist"])
    q = np.array(given["reward_model"]["q"])
    model = {"predicted": q[item], "expected": (q @ target)[slot]}
    weight = target[item, slot] / chance
    for name, (estimator, limit) in OURS.items():
        used = model if estimator == "dr" else {}
        found = clicks.estimate_value(click, weight, estimator=estimator, limit=limit, **used)
        with case(name):
            assert found.value == pytest.approx(given["estimates"][name], rel=1e-12)
    best = target.argmax(axis=0)[slot] == item
    replay = clicks.estimate_value(click, best.astype(float))
    assert replay.value == pytest.approx(given["estimates"]["replay"], rel=1e-12)
    ips = clicks.estimate_value(click, weight, estimator="ips")
    about = given["importance_weights"]
    assert ips.effective_sample_size == pytest.approx(about["effective_sample_size"], rel=1e-12)
    assert ips.maximum_weight == pytest.approx(about["max"], rel=1e-12)
    assert ips.support == pytest.approx(min(1.0, about["mean"]), rel=1e-12)
    assert ips.standard_error == pytest.approx(given["ips_standard_error"], rel=1e-3)
    low, high = (given["bootstrap_95"]["ips"][f"95.0% CI ({end})"] for end in ("lower", "upper"))
    assert ips.low < given["estimates"]["ips"] < ips.high
    assert (ips.low, ips.high) == pytest.approx((low, high), rel=0.25)  # indicative percentiles


def test_slates_give_the_same_estimates(golden, golden_dir):
    given = golden["slate"]
    with lzma.open(golden_dir / "clicks" / given["data"], "rt") as stream:
        names = stream.readline().split()
        table = dict(zip(names, np.loadtxt(stream).T, strict=True))
    action, slot = table["action"].astype(int), table["position"].astype(int) - 1
    lists = {"session_sizes": np.full(given["slates"], given["slots"])}
    weight = {
        kind: table[f"pe_{name}"] / table[f"pb_{name}"]
        for kind, name in (("sips", "joint"), ("iips", "slot"), ("rips", "cascade"))
    }
    expected = given["estimates"]
    for kind, w in weight.items():
        for estimator, name in (("ips", kind), ("snips", f"sn{kind}")):
            found = clicks.estimate_value(table["reward"], w, estimator=estimator, **lists)
            with case(name):
                assert found.value == pytest.approx(expected[name], rel=1e-11)
    q = np.array(given["q_hat"]["q"])
    target = np.stack([table[f"pe_dist_{k}"] for k in range(given["actions"])], axis=1)
    found = clicks.estimate_value(
        table["reward"], weight["rips"], estimator="cascade_dr", predicted=q[slot, action],
        expected=(target * q[slot]).sum(axis=1), **lists,
    )  # fmt: skip
    assert found.value == pytest.approx(expected["cascade_dr"], rel=1e-9)
    assert found.low < given["ground_truth_by_enumeration"] < found.high
