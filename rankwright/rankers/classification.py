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
    """

    models = ("classifier",)

    def make_loss(self, data: RankingData) -> Loss:  # noqa: ARG002
        """Return the cross entropy over the grades of a document."""
        return ListNet(target="gain")
