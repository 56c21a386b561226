"""Damaged models of XGBoost are refused in one sentence."""

import json

from cases import each
from other_models import refused

import rankwright as rw


def _learner(found):
    return found["learner"]["gradient_booster"]["model"]


def _first(found):
    return _learner(found)["trees"][0]


def _cycle(found):
    _first(found)["left_children"][0] = 0


def _astray(found):
    _first(found)["right_children"][0] = 10**6


def _one_child(found):
    _first(found)["right_children"][0] = -1


def _two_parents(found):
    _first(found)["right_children"][0] = _first(found)["left_children"][0]


def _feature(found):
    _first(found)["split_indices"][0] = 6


def _negative(found):
    _first(found)["split_indices"][0] = -1


def _short(found):
    _first(found)["split_conditions"].pop()


def _no_number(found):
    _first(found)["split_conditions"][0] = float("nan")


def _no_leaf_value(found):
    _first(found)["split_conditions"][-1] = float("nan")


def _fewer_rounds(found):
    _learner(found)["iteration_indptr"] = [0, 1]


def _names(found):
    found["learner"]["feature_names"].pop()


def _twice(found):
    found["learner"]["feature_names"][0] = "age"


def _categories(found):
    _first(found)["split_type"][0] = 1


@each(
    "damage",
    [
        _cycle,
        _astray,
        _one_child,
        _two_parents,
        _feature,
        _negative,
        _short,
        _no_number,
        _no_leaf_value,
        _fewer_rounds,
        _names,
        _twice,
        _categories,
    ],
)
def test_damaged_trees_of_xgboost_are_refused(files, tmp_path, damage):
    found = json.loads((files / "model.json").read_text())
    damage(found)
    (tmp_path / "model.json").write_text(json.dumps(found))
    refused(lambda: rw.load_model(tmp_path / "model.json"), "model.json", "XGBoost", "save it")
