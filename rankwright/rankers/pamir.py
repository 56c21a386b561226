"""PAMIR: passive-aggressive steps on pairs of documents drawn at random."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from rankwright.core.types import Loss
from rankwright.data.ranking_data import RankingData
from rankwright.losses.pair_hinge import PairHinge
from rankwright.rankers.base import Ranker


class PAMIR(Ranker):
    """PAMIR: passive-aggressive steps on pairs of documents drawn at random.

    Each step costs the non-zeros of two rows, whatever the size of the data: made for large, sparse
    sets (`grangier2008pamir`). ``partial_fit`` goes on with more data, or more steps.

    Parameters
    ----------
    C : float
        The longest step.
    n_steps : int
        Pairs drawn.
    averaging : bool
        Answer with the mean of the weights over all steps.
    """

    models = ("passive_aggressive",)

    def make_loss(self, data: RankingData) -> Loss:  # noqa: ARG002
        """Return the mean hinge over pairs, which tells how far the steps have come."""
        return PairHinge(form="hinge", pairs="query")

    @property
    def partial_fit(self) -> Callable[..., Self]:
        """Go on with ``n_steps`` pairs of more data: ``partial_fit(X, y, *, qid, ...)``."""
        return self._go_on
