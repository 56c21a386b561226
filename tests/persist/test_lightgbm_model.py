"""Models of LightGBM are read as they are, and refused in one sentence where they are damaged."""

import lightgbm
import numpy as np
from cases import each
from other_models import refused

import rankwright as rw


def test_the_text_of_lightgbm_is_read_with_its_scores(files):
    found = rw.load_model(files / "model.txt")
    X = np.random.default_rng(0).normal(size=(20, 6))
    theirs = lightgbm.Booster(model_file=str(files / "model.txt")).predict(X, raw_score=True)
    np.testing.assert_allclose(found.predict(X), theirs, rtol=1e-12)


@each(
    ("old", "new"),
    [
        ("left_child=", "left_child=0 "),
        ("split_feature=", "split_feature=6 "),
        ("num_leaves=5", "num_leaves=9"),
        ("end of trees", "end"),
        ("max_feature_idx=5", "max_feature_idx=4"),
        ("tree_sizes=", "tree_sizes=9 "),
        ("leaf_value=", "leaf_value=nan "),
        ("shrinkage=0.1", "shrinkage="),
        ("shrinkage=0.1", "shrinkage=inf"),
    ],
)
def test_damaged_trees_of_lightgbm_are_refused(files, tmp_path, old, new):
    text = (files / "model.txt").read_text()
    assert old in text
    (tmp_path / "model.txt").write_text(text.replace(old, new, 1))
    refused(lambda: rw.load_model(tmp_path / "model.txt"), "LightGBM", "save it again")
