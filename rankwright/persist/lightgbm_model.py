"""LightGBM's model text as a `Forest`.

If the model was trained on a pandas frame, the text lists the categories of each column of the type
category, in the order of the columns, but not the columns, which the user must name. LightGBM
describes ordered categories by a range, like numbers.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rankwright.data.frames import Categories
from rankwright.errors import DataError, IncompatibleError, UsageError, counted
from rankwright.models.lightgbm_text import check_head, read_trees, tree_blocks
from rankwright.persist.imported import ImportedModel, category_list, distinct_names

_DEFAULT_NAME = re.compile(r"Column_\d+$")


def read_lightgbm(content: bytes, frame_columns: Sequence[str] | None = None) -> ImportedModel:
    """Return the model of LightGBM's text.

    ``frame_columns`` are the names of the columns of the type category.
    """
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
    check_head(text, width)
    forest = read_trees(text, width)
    infos = lines.get("feature_infos", "").split()
    categories = _categories(text, names, infos, frame_columns)
    unnamed = all(map(_DEFAULT_NAME.match, names)) and not categories
    return ImportedModel(
        library="LightGBM",
        objective=lines.get("objective", "custom").split(" ")[0],
        model=replace(forest, is_mean="average_output" in lines and forest.n_trees > 0),
        names=None if unnamed else distinct_names(names),
        rounds=len(blocks),
        categories=categories,
    )


# --- categories of a pandas frame ----------------------------------------------------------------


def _categories(
    text: str, names: Sequence[str], infos: Sequence[str], frame_columns: Sequence[str] | None
) -> dict[str, Categories] | None:
    """Return the categories of the training frame by the name of a column."""
    _, _, line = text.partition("\nend of trees")[2].rpartition("\npandas_categorical:")
    lists: list[list[Any]] = json.loads(line.partition("\n")[0] or "null") or []
    if lists and len(infos) != len(names):
        raise DataError(f"it describes {len(infos)} of {len(names)} features.")
    if lists and frame_columns is None:
        warnings.warn(
            f"this model of LightGBM lists the categories of {counted(len(lists), 'column')}, but "
            "not the columns, and takes codes (.cat.codes) instead; to use categories, name the "
            "columns in order, as in rankwright.import_model("
            "lightgbm.Booster(model_file='model.txt'), categories=['colour', 'size']).",
            stacklevel=6,
        )
        return None
    columns = [names.index(name) for name in frame_columns or () if name in names]
    if (
        len(columns) != len(frame_columns or ())
        or len(columns) != len(lists)
        or (sorted(set(columns)) != columns)
    ):
        raise UsageError(
            f"categories={list(frame_columns or ())!r} does not fit the model, which has "
            f"{len(lists)} columns of the type category: name each of them once, in the order of "
            "the features."
        )
    return {
        names[column]: category_list(values, ordered=infos[column].startswith("["))
        for column, values in zip(columns, lists, strict=True)
    } or None
