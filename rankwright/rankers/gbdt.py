"""GBDT, MART: boosted regression trees on the grades."""

from __future__ import annotations

from rankwright.rankers.base import Ranker
from rankwright.rankers.search_space import Choice


class GBDT(Ranker):
    """GBDT, MART: boosted regression trees on the grades.

    The pointwise baseline: squared error to the target of each document's grade. Alias ``mart``.
    """

    loss_name = "squared"
    models = ("trees", "linear", "network")
    # Better than 31 leaves by more than chance over six sets of valid data: docs/choose.md.
    model_defaults = {"trees": {"num_leaves": 15}}
    search_space = {"targets": Choice("linear", "gain")}
