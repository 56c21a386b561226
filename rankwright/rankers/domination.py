"""Domination rank: few weights that put good documents above all they dominate."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rankwright.core.types import Loss
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.rankers.base import Ranker
from rankwright.rankers.search_space import Choice, Log

VARIANTS = ("base", "multi", "margin")


class Domination(Ranker):
    """Domination rank: few weights that put good documents above all they dominate.

    For few good documents among many, sparse features and small models: coordinate descent with
    an l1 penalty leaves most weights at exactly 0 (`stevens2010domination`).

    Parameters
    ----------
    variant : "multi", "base" or "margin"
        Documents dominate all of lower grade; or good ones, of grade 1 and up, all others; or all
        of lower grade, by a lead of ``margin_scale`` times the difference of the grades.
    margin, margin_scale, tiers
        The loss in detail: see `rankwright.losses.domination.Domination`.
    l1, l2
        Penalties: l1 makes weights 0, l2 keeps them small; "auto" chooses on valid.
    """

    loss_name = "domination"
    models = ("linear", "trees", "network")
    defaults = {
        "variant": "multi",
        "solver": "coordinate",
        "scale": False,
        "l1": 1e-3,
        "l2": 0.0,
    }
    search_space = {"variant": Choice(*VARIANTS)}
    model_search_space = {"linear": {"l1": Log(1e-5, 0.1), "l2": None}}

    @property
    def sparsity_(self) -> list[dict[str, float]]:
        """How many weights each penalty that was tried keeps, beside the metric on train and valid.

        A list of l1, l2, kept, zero_share and the metrics, as they were tried; the chosen one is
        number ``best_iteration_``, counted from 1.
        """
        path = self._part("path", "linear")
        if path is None:
            raise AttributeError("only solver 'coordinate' leaves a path of penalties.")
        curves = {name: curve for name, curve in self.curve_.items() if name != "loss"}
        return [
            {
                "l1": float(l1),
                "l2": float(l2),
                "kept": int(kept),
                "zero_share": 1.0 - kept / self.n_features_in_,
                **{name: curve[number] for name, curve in curves.items()},
            }
            for number, (l1, l2, kept) in enumerate(path.tolist())
        ]

    def make_loss(self, data: RankingData) -> Loss:
        """Return the loss of the chosen variant."""
        if self.variant not in VARIANTS:
            raise UsageError(
                f"domination's variant must be base, multi or margin, not '{self.variant}'."
            )
        loss: Any = super().make_loss(data)
        if self.variant == "base" and loss.tiers is None:
            loss = replace(loss, tiers=(1.0,))
        elif self.variant == "margin" and loss.margin is None:
            loss = replace(loss, margin="linear")
        made: Loss = loss
        return made
