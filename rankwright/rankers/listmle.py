"""ListMLE: the likelihood of the graded order under a Plackett-Luce model."""

from __future__ import annotations

from rankwright.rankers.base import Ranker


class ListMLE(Ranker):
    """ListMLE: the likelihood of the graded order under a Plackett-Luce model.

    Documents of one grade share their place (Breslow ties); `xia2008listmle`.
    """

    loss_name = "listmle"
    models = ("linear", "trees", "network")
