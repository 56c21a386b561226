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
        ("left", 0, 10**6), ("left", 0, 0), ("right", 0, -1), ("roots", 0, 1), ("roots", 1, 2),
        ("feature", 0, 6), ("rule", 0, 12), ("rule", 0, 8), ("threshold", 0, np.nan),
        ("set_sizes", 0, 4), ("shrinkage", 0, np.inf),
    ):  # fmt: skip
        damaged = {key: array.copy() for key, array in arrays.items()}
        if name == "set_sizes":
            damaged[name] = np.array([value], np.int32)
        else:
            damaged[name][at] = value
        refused(lambda d=damaged: restore(d, texts, 6))
