"""Read LightGBM's model text as a `Forest`.

If the model was trained on a pandas frame, the text lists the categories of each column of the type
category, in the order of the columns. It does not name these columns, so the user must.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rankwright import registry
from rankwright.data.frames import Categories
from rankwright.errors import DataError, IncompatibleError, UsageError, counted, quoted
from rankwright.models.lightgbm_text import check_head, read_trees, tree_blocks
from rankwright.persist.imported import ImportedModel, category_list, distinct_names

_DEFAULT_NAME = re.compile(r"Column_\d+$")


def read_lightgbm(content: bytes, categories: Sequence[str] | None = None) -> ImportedModel:
    """Return the model of LightGBM's text; ``categories`` names the columns of that type."""
    text = content.decode().replace("\r\n", "\n")
    head, _, body = text.partition("\nTree=")
    lines = dict(line.partition("=")[::2] for line in head.splitlines())
    if "\nend of trees" not in (body or head):
        raise DataError("it ends before its last tree.")
    if int(lines["num_tree_per_iteration"]) != 1:
        raise IncompatibleError(
            f"it has {lines['num_class']} scores for each document, one for each class; a "
            "ranking needs one; train with a ranking, regression or binary objective."
        )
    blocks = tree_blocks(text)
    sizes = lines.get("tree_sizes", "").split()
    if len(blocks) != len(sizes):
        raise DataError(f"it has {len(blocks)} trees, and its header declares {len(sizes)}.")
    width = int(lines["max_feature_idx"]) + 1
    names = lines["feature_names"].split()
    if not 0 < width == len(names):
        raise DataError(f"it has {len(names)} names for {width} features.")
    check_head(text, width)
    forest = read_trees(text, width)
    infos = lines.get("feature_infos", "").split()
    lists = _categories(text, names, infos, categories)
    unnamed = all(map(_DEFAULT_NAME.match, names)) and not lists
    return ImportedModel(
        library="LightGBM",
        objective=lines.get("objective", "custom").split(" ")[0],
        model=replace(forest, is_mean="average_output" in lines and forest.n_trees > 0),
        names=None if unnamed else distinct_names(names),
        rounds=len(blocks),
        categories=lists,
    )


# --- categories of a pandas frame ----------------------------------------------------------------


def _categories(
    text: str, names: Sequence[str], infos: Sequence[str], columns: Sequence[str] | None
) -> dict[str, Categories] | None:
    """Return the categories of the training frame by the name of a column."""
    _, _, line = text.partition("\nend of trees")[2].rpartition("\npandas_categorical:")
    lists: list[list[Any]] = json.loads(line.partition("\n")[0] or "null") or []
    if lists and len(infos) != len(names):
        raise DataError(f"it describes {len(infos)} of {len(names)} features.")
    if lists and columns is None:
        warnings.warn(
            f"this model of LightGBM lists the categories of {counted(len(lists), 'column')}, but "
            "not the columns, so it takes codes (.cat.codes); to use categories, name the columns, "
            "as in rankwright.load_model('model.txt', categories=['colour', 'size']).",
            stacklevel=6,
        )
        return None
    for column in columns or ():
        if column not in names:
            raise UsageError(
                f"categories= names {quoted(column)}, and the model has no such feature; "
                f"{registry.nearest(column, names)}"
            )
    matching = [name for name in names if name in (columns or ())]
    if len(columns or ()) != len(matching) or len(matching) != len(lists):
        raise UsageError(
            f"categories={list(columns or ())!r} does not fit the model, which has "
            f"{counted(len(lists), 'column')} of the type category: name each of them once."
        )
    categories = {}
    for name, values in zip(matching, lists, strict=True):
        info = infos[names.index(name)]
        if not _are_codes(info, len(values)):
            raise UsageError(
                f"categories= names the column {quoted(name)}, which is not of the type category: "
                f"LightGBM saw the values {info[:40]} in it, and not codes from 0 to "
                f"{len(values) - 1}."
            )
        categories[name] = category_list(values, ordered=info.startswith("["))
    return categories or None


def _are_codes(info: str, n_categories: int) -> bool:
    """Return whether the values of a feature can be codes of categories; -1 is a missing value.

    LightGBM describes categories by their codes ``2:0:1``, ordered categories and numbers by a
    range ``[0:2]``, and features that it did not use by ``none``.
    """
    values = [float(value) for value in info.strip("[]").split(":")] if info != "none" else []
    return all(value.is_integer() and -1 <= value < n_categories for value in values)
