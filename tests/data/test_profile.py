"""A profile turns into plain values, down to its last part."""

import json

from rankwright.data.inspect import Overlap, Profile, inspect
from rankwright.data.synthetic_data import synthetic


def test_a_profile_is_written_out_field_by_field():
    found = Profile(data=(), overlaps=(Overlap("train", "test", 1, ("q7",), 2),))
    shared = {"queries": 1, "examples": ("q7",), "documents": 2}
    assert found.to_dict() == {
        "data": (),
        "overlaps": ({"first": "train", "second": "test", **shared},),
    }


def test_the_profile_is_plain_json():
    found = inspect(synthetic("ohsumed", queries=3)).to_dict()
    assert json.loads(json.dumps(found))["data"][0]["queries"] == 3
