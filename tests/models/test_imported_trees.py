"""Trees of other libraries in a model file: a damaged part is refused."""

import numpy as np
import pytest
from other_models import SIZES, refused, training_data

import rankwright as rw


def test_a_damaged_part_of_imported_trees_is_refused():
    xgboost = pytest.importorskip("xgboost")
    matrix = xgboost.DMatrix(*training_data())
    matrix.set_group(SIZES)
    booster = xgboost.train({"objective": "rank:ndcg", "max_depth": 3}, matrix, 3)
    model = rw.import_model(booster).model_
    arrays, texts = model.arrays(), model.texts()
    restore = type(model).restore
    assert restore(arrays, texts, 6).n_trees == 3
    for name, at, value in (
        ("tree_left", 0, 10**6), ("tree_left", 0, 0), ("tree_view", 0, 99), ("tree_roots", 0, 1),
        ("tree_feature", -1, 6), ("tree_rule", 0, 12), ("tree_leaves", 0, 10**6),
        ("tree_threshold", 0, np.nan), ("set_sizes", 0, 4),
    ):  # fmt: skip
        damaged = {key: array.copy() for key, array in arrays.items()}
        damaged[name][at] = value
        refused(lambda d=damaged: restore(d, texts, 6))
