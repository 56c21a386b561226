"""Does a fit go into the memory that is allowed? Asked before any work, answered with a sentence.

What a model needs beside the mapped features is estimated from the number of documents and
features. Figures per document were measured on 3.8 million documents, rounded up.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from rankwright.core.memory import anonymous_bytes, memory_bound, shown_size
from rankwright.core.parameters import part_name
from rankwright.data.ranking_data import RankingData
from rankwright.errors import MemoryLimitError
from rankwright.models.trees import tree_bytes

if TYPE_CHECKING:
    from rankwright.rankers.base import Ranker

_LOSS = 160  # bytes a document: order and weights, scores, gradients, buffers
_SELECTION = 64  # ... and where there is validation data, the grades in order
_CODE = 50_000_000  # kernels that are not loaded yet


def check_memory(ranker: Ranker, model: Any, data: RankingData, valid: RankingData | None) -> None:
    """Refuse a fit that does not go into the bound on memory, saying what would."""
    most = memory_bound.get()
    if most is None:
        return
    before = anonymous_bytes() + _CODE
    solver = ranker._part_of("solver")
    need = before + bytes_needed(ranker.model_name, model, data, valid, solver=solver)
    if need <= most:
        return
    larger = shown_size(1.1 * need)
    others = [f"a bound of {larger}", *_smaller(ranker, model, data, valid, most - before)]
    raise MemoryLimitError(
        f"{ranker.name} on {ranker.model_name} needs about {shown_size(need)} of memory for "
        f"{data.n_documents:,} documents of {data.n_features:,} features, and {shown_size(most)} "
        f"is allowed; {' or '.join(others)} would do."
    )


def bytes_needed(
    name: str,
    model: Any,
    data: RankingData,
    valid: RankingData | None = None,
    *,
    solver: Any = None,
) -> int:
    """Return what a model of the registry's ``name`` allocates to fit to ``data``."""
    per_document = _LOSS * data.n_documents
    if valid is not None:
        per_document += _SELECTION * (data.n_documents + valid.n_documents)
    return per_document + _of_features(name, model, data, valid, solver)


def _of_features(
    name: str, model: Any, data: RankingData, valid: RankingData | None, solver: Any
) -> int:
    n, d = data.n_documents, data.n_features
    if name == "blend":  # its members are fitted one after the other
        own = [(part_name("models", part), part) for part in model.models]
        return max(_of_features(kind, part, data, valid, None) for kind, part in own)
    if name in ("trees", "forest"):
        more = 0 if valid is None else tree_bytes(valid.n_documents, d, model.max_bins)
        return tree_bytes(n, d, model.max_bins) + more
    if name == "kernel":  # the kernel matrix of documents and landmarks
        return 8 * n * (n if n <= model.exact_below else model.n_landmarks)
    if name == "classifier":  # scores, gradients and products for each grade
        return 8 * 6 * n * len(np.unique(data.y))
    if name == "jrank":  # a block of features for all, and one for each user, as a sparse matrix
        width = d if model.n_factors is None else min(d, model.n_factors)
        return 12 * n * width * (len(model.users) + 2)
    if name == "coordinate_ascent":  # the features by column; sparse ones by row before that
        return int(32 * data.X.nnz) if sparse.issparse(data.X) else data.X.dtype.itemsize * n * d
    if name == "expression":  # every feature, by column
        return (8 + data.X.dtype.itemsize) * n * d
    by_column = "columns" in getattr(solver, "needs", ())
    if by_column or name in ("passive_aggressive", "prank"):  # as another kind of matrix
        return int(16 * data.X.nnz) if sparse.issparse(data.X) else 24 * n * d
    return 0


def _smaller(
    ranker: Ranker, model: Any, data: RankingData, valid: RankingData | None, free: int
) -> list[str]:
    """Return what fits instead: other parameters, other models."""
    found: list[str] = []
    for bins in (255, 15):
        fewer = replace(model, max_bins=bins) if getattr(model, "max_bins", 0) > bins else None
        if fewer and not found and bytes_needed(ranker.model_name, fewer, data, valid) <= free:
            found.append(f"model__max_bins={bins}")
    other = ranker.has_loss and ranker.model_name != "linear"
    if other and bytes_needed("linear", None, data, valid) <= free:
        found.append("model='linear'")
    return found
