"""LightGBM's model text as a fitted model: the trees of `Trees`, or the mean of a random forest."""

from __future__ import annotations

import re

import numpy as np

from rankwright.errors import DataError, IncompatibleError
from rankwright.models.forest_scorer import ForestScorer
from rankwright.models.imported_trees import FittedMean
from rankwright.models.tree_text import first_trees, tree_blocks
from rankwright.models.trees import FittedTrees
from rankwright.persist.imported import ImportedModel, distinct_names

_DEFAULT_NAME = re.compile(r"Column_\d+$")


def read_lightgbm(content: bytes) -> ImportedModel:
    """Return the model of LightGBM's text."""
    text = content.decode().replace("\r\n", "\n")
    head, _, rest = text.partition("\nTree=")
    lines = dict(line.partition("=")[::2] for line in head.splitlines())
    if "\nend of trees" not in (rest or head):
        raise DataError("it ends before its last tree.")
    if int(lines["num_tree_per_iteration"]) != 1:
        raise IncompatibleError(
            f"it has {lines['num_class']} scores for each document, one for each class, where a "
            "ranking needs one; train with a ranking, regression or binary objective."
        )
    blocks = tree_blocks(text)
    sizes = lines.get("tree_sizes", "").split()
    if len(blocks) != len(sizes):
        raise DataError(f"it has {len(blocks)} trees, and its first lines say {len(sizes)}.")
    width = int(lines["max_feature_idx"]) + 1
    names = lines["feature_names"].split()
    if not 0 < width == len(names):
        raise DataError(f"it has {len(names)} names for {width} features.")
    whole = first_trees(text, len(blocks))  # less the parameters, which name thread counts
    scorer = ForestScorer.from_text(whole, width)
    if np.isnan(scorer.threshold).any() or np.isnan(scorer.value).any():
        raise DataError("a threshold or leaf is no number.")
    mean = "average_output" in lines and blocks
    model = FittedMean.of(whole, width) if mean else FittedTrees(whole, 0.0, width)
    unnamed = all(map(_DEFAULT_NAME.match, names))
    return ImportedModel(
        library="LightGBM",
        objective=lines.get("objective", "custom").split(" ")[0],
        model=model,
        names=None if unnamed else distinct_names(names),
        rounds=len(blocks),
    )
