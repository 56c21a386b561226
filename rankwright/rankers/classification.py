"""Classification: multinomial logistic regression, ranked by the expected grade."""

from __future__ import annotations

from rankwright.core.types import Loss
from rankwright.data.ranking_data import RankingData
from rankwright.losses.listnet import ListNet
from rankwright.rankers.base import Ranker


class Classification(Ranker):
    """Classification: multinomial logistic regression, ranked by the expected grade.

    The pointwise family (`li2007mcrank`): each grade is a class, whatever the query, and a document
    scores sum over grades of probability x grade. ``model_.probabilities`` gives the probabilities.
    l2 was chosen on the validation parts of OHSUMED and MQ2008.
    """

    models = ("classifier",)
    defaults = {"l2": 30.0}

    def make_loss(self, data: RankingData) -> Loss:  # noqa: ARG002
        """Return the cross entropy over the grades of a document."""
        return ListNet(target="gain")
