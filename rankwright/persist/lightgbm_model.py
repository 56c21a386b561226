"""LightGBM's model text as a `Forest`.

If the model was trained on a pandas frame, the text lists the categories of each column of the type
category, in the order of the columns, but not the columns. They are inferred from the description
of each feature: the codes of a category, or the range of a number (also for ordered categories).
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rankwright.data.frames import Categories
from rankwright.errors import DataError, IncompatibleError, UsageError
from rankwright.models.lightgbm_text import check_head, read_trees, tree_blocks
from rankwright.persist.imported import ImportedModel, category_list, distinct_names

_NO_FIT, _PASSED_OVER = 1e9, 1e3
_DEFAULT_NAME = re.compile(r"Column_\d+$")


def read_lightgbm(content: bytes, frame_columns: Sequence[str] | None = None) -> ImportedModel:
    """Return the model of LightGBM's text.

    ``frame_columns`` are the columns of the type category; None infers them.
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
    text: str, names: Sequence[str], infos: Sequence[str], named: Sequence[str] | None
) -> dict[str, Categories] | None:
    """Return the categories of the training frame by the name of a column."""
    _, _, listed = text.partition("\nend of trees")[2].rpartition("\npandas_categorical:")
    lists: list[list[Any]] = json.loads(listed.partition("\n")[0] or "null") or []
    if lists and len(infos) != len(names):
        raise DataError(f"it describes {len(infos)} of {len(names)} features.")
    columns: Sequence[int | None]
    if named is None:
        columns = _columns_of(list(map(len, lists)), infos)
    else:
        columns = _columns_named(named, names, len(lists))
    found: dict[str, Categories] = {}
    for column, values in zip(columns, lists, strict=True):
        ordered = column is not None and infos[column].startswith("[")
        own = category_list(values, ordered=ordered)
        if column is None:
            warnings.warn(
                f"LightGBM's text does not tell which column has the categories {own}; name the "
                "columns of the type category in order, as in rankwright.import_model("
                "lightgbm.Booster(model_file='model.txt'), categories=['colour', 'size']).",
                stacklevel=6,
            )
        else:
            found[names[column]] = own
    return found or None


def _columns_named(named: Sequence[str], names: Sequence[str], lists: int) -> list[int]:
    """Return the columns with these names."""
    known = [names.index(name) for name in named if name in names]
    if len(known) != len(named) or len(known) != lists or sorted(set(known)) != known:
        raise UsageError(
            f"categories={list(named)!r} does not fit the model, which has {lists} columns of the "
            "type category: name each of them once, in the order of the features."
        )
    return known


def _columns_of(sizes: Sequence[int], infos: Sequence[str]) -> list[int | None]:
    """Return the column of each list of categories, in order; None if it is ambiguous.

    ``best[k]`` has the smallest mismatch of the first k lists over the columns so far, and the
    columns.
    """
    best: list[tuple[float, list[int | None]]] = [(0.0, [])]
    best += [(_NO_FIT, [None] * (k + 1)) for k in range(len(sizes))]
    for column, info in enumerate(infos):
        passed = 0.0 if info == "none" or info.startswith("[") else _PASSED_OVER
        after = [(misfit + passed, taken) for misfit, taken in best]
        for k, size in enumerate(sizes):
            misfit, taken = best[k][0] + _misfit(info, size), [*best[k][1], column]
            other, theirs = after[k + 1]
            if misfit < other:
                after[k + 1] = misfit, taken
            elif misfit == other:
                same = [a if a == b else None for a, b in zip(taken, theirs, strict=True)]
                after[k + 1] = misfit, same
        best = after
    misfit, columns = best[-1]
    return columns if misfit < _NO_FIT else [None] * len(sizes)


def _misfit(info: str, size: int) -> float:
    """Return the mismatch of a feature's description and its number of categories; 0 for none."""
    if info == "none":  # it does not vary, or is not used
        return 2.0
    if info.startswith("["):
        low, high = map(float, info.strip("[]").split(":"))
        whole = low.is_integer() and high.is_integer()
        return (high != size - 1 or low != 0) if whole and 0 <= low <= high < size else _NO_FIT
    codes = {int(code) for code in info.split(":")} - {-1}
    if min(codes, default=0) < 0 or max(codes, default=0) >= size:
        return _NO_FIT
    return float(len(codes) != size)
