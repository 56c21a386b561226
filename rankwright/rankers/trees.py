"""Rankers with trees: LambdaMART, IntervalRank, GBDT, GBRank, XE-NDCG, random forests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rankwright.rankers.base import Rounds
from rankwright.rankers.parameters import (
    MetricParameters,
    SplitParameters,
    TreeParameters,
    named_ranker,
)


@named_ranker
class LambdaMART(MetricParameters, SplitParameters):
    """LambdaMART: gradient-boosted trees trained with LambdaRank gradients.

    The gradient of a pair is RankNet's, multiplied by the change of the metric when the two
    documents are swapped (`burges2010overview`). The scale sigma of score differences, which has
    little effect on trees, is a parameter of `rankwright.losses.LambdaRank`; an L1 penalty on leaf
    values (``reg_alpha``) is a parameter of `rankwright.models.Trees`.

    Parameters
    ----------
    metric : str, Metric or callable
        Metric to optimise: ndcg, dcg, map, mrr, err, p or another with a known swap delta. It also
        selects the number of trees on the validation set unless ``select_metric`` is set.
    truncation : int or None
        Use only pairs in which at least one document is currently ranked in the top ``truncation``.
        None uses all pairs.
    normalize : bool
        Normalise gradients within and between queries like LightGBM's ``lambdarank_norm``, so that
        long lists do not outweigh others.
    label_gain : sequence of float or None
        Gain of grade 0, 1, 2, ... in ndcg or dcg, for optimisation and selection. None uses the
        gain of ``metric``, by default 2^g - 1.
    subsample : float
        Fraction of the documents that is sampled for each tree.

    Examples
    --------
    >>> import rankwright as rw
    >>> ranker = rw.LambdaMART(n_estimators=300, early_stopping_rounds=50)
    """

    loss_class = "lambdarank"
    search_space = {"truncation": (5, 100, "log"), "normalize": [True, False]}

    metric: Any = "ndcg@10"
    truncation: int | None = 30
    normalize: bool = True
    label_gain: Sequence[float] | None = None
    subsample: float = 1.0


@named_ranker
class IntervalRank(TreeParameters):
    """IntervalRank: boosted trees that follow the nearest scores with separated grades.

    Each iteration computes the smallest correction of a query's scores that separates its grades
    into intervals, and fits a tree to it (`moon2010intervalrank`). Margins are soft by default:
    with hard margins, the trees mostly fit the order of the many documents of low grade.

    On validation data of OHSUMED and MQ2008, the default lambda1 and targets are as good as lambda1
    from 0.01 to 1 with lambda2 of 0.1 or 1 and either target; of these, they are the best for the
    top of long lists.

    Parameters
    ----------
    lambda1 : float
        Penalty on violated margins between grades; ``inf`` makes the margins hard.
    lambda2 : float
        Penalty on the width of the interval of a grade; 0 leaves it free, ``inf`` gives all
        documents of a grade the same score.
    targets : {"linear", "gain"} or tuple of float
        Target score of a grade: the grade, 2^grade - 1, or a value per grade. The margins are the
        differences of the targets.
    calibration : float
        Weight of the squared error between scores and targets (lambda3 of the paper's (11)), which
        fixes the level of the scores. 0 leaves it free.
    scale_by_size : bool
        Multiply both lambdas by the number of documents of the query.
    qp_solver : {"newton", "barrier", "hard"}
        Solver of the inner problem. "newton" is exact; "barrier" is the log-barrier method of the
        paper, which separates grades further and needs finite lambdas and ``lambda2`` above 0;
        "hard" is the limit of hard margins and free widths and ignores the lambdas.
    subsample : float
        Fraction of the documents that is sampled for each tree.
    reg_alpha : float
        L1 penalty on leaf values.

    Examples
    --------
    >>> import rankwright as rw
    >>> data = rw.load("digits/train", queries=8, documents=12)
    >>> ranker = rw.IntervalRank(n_estimators=20, learning_rate=0.2).fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    loss_class = "interval"
    search_space = {
        "lambda1": (0.003, 3.0, "log"),
        "lambda2": (0.1, 10.0, "log"),
        "targets": ["linear", "gain"],
    }

    lambda1: float = 0.03
    lambda2: float = 1.0
    targets: str | tuple[float, ...] = "linear"
    calibration: float = 0.0
    scale_by_size: bool = True
    qp_solver: str = "newton"
    subsample: float = 1.0
    reg_alpha: float = 0.0


@named_ranker
class GBDT(SplitParameters):
    """GBDT, MART: gradient-boosted regression trees on the grades.

    The pointwise baseline: squared error between scores and the targets of the grades
    (`friedman2001gbdt`). Alias ``mart``.

    Parameters
    ----------
    targets : {"linear", "gain"} or tuple of float
        Target score of a grade: the grade, 2^grade - 1, or a value per grade.
    subsample : float
        Fraction of the documents that is sampled for each tree.
    reg_alpha : float
        L1 penalty on leaf values.

    Examples
    --------
    >>> import rankwright as rw
    >>> data = rw.load("digits/train", queries=8, documents=12)
    >>> ranker = rw.GBDT(n_estimators=20, learning_rate=0.2).fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    loss_class = "squared"
    search_space = {"targets": ["linear", "gain"]}

    targets: str | tuple[float, ...] = "linear"
    subsample: float = 1.0
    reg_alpha: float = 0.0


@named_ranker
class GBRank(SplitParameters):
    """GBRank: gradient-boosted trees with a squared hinge loss on pairs of different grade.

    The score of each better document must exceed the score of each worse one by the difference of
    their targets, and documents of one grade are kept together (`zheng2007gbrank`;
    `moon2010intervalrank`).

    Parameters
    ----------
    targets : {"linear", "gain"} or tuple of float
        Target score of a grade: the grade, 2^grade - 1, or a value per grade. The margins are the
        differences of the targets.
    calibration : float
        Weight of the squared error between scores and targets, which fixes the level of the scores.
        0 leaves it free.
    subsample : float
        Fraction of the documents that is sampled for each tree.
    reg_alpha : float
        L1 penalty on leaf values.

    Examples
    --------
    >>> import rankwright as rw
    >>> data = rw.load("digits/train", queries=8, documents=12)
    >>> ranker = rw.GBRank(n_estimators=20, learning_rate=0.2).fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    loss_class = "gbrank"
    search_space = {"targets": ["linear", "gain"]}

    targets: str | tuple[float, ...] = "linear"
    calibration: float = 0.0
    subsample: float = 1.0
    reg_alpha: float = 0.0


@named_ranker
class XENDCG(SplitParameters):
    """XE-NDCG: gradient-boosted trees with a cross entropy that bounds NDCG.

    LightGBM's ``rank_xendcg`` (`bruch2021xendcg`). The noise of each iteration is seeded.

    Parameters
    ----------
    sampled : bool
        Sample the noise of the targets in each iteration. False uses its mean.
    newton_terms : int
        Number of terms of the series for the Newton step in the gradient. 1 is the gradient; 3 is
        LightGBM's ``rank_xendcg``.
    subsample : float
        Fraction of the documents that is sampled for each tree.
    reg_alpha : float
        L1 penalty on leaf values.

    Examples
    --------
    >>> import rankwright as rw
    >>> data = rw.load("digits/train", queries=8, documents=12)
    >>> ranker = rw.XENDCG(n_estimators=20, learning_rate=0.2).fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    loss_class = "xendcg"

    sampled: bool = True
    newton_terms: int = 1
    subsample: float = 1.0
    reg_alpha: float = 0.0


@named_ranker
class RandomForest(SplitParameters):
    """Random forest for ranking: mean of small boosted models on bootstrap samples of queries.

    Each bag samples queries with replacement and features without (`breiman2001forests`). The
    defaults are RankLib's. Its flags are ``n_bags=300`` (-bag), ``bag_fraction=1.0`` (-srate),
    ``colsample_bytree=0.3`` (-frate; per tree, whereas RankLib samples features once per bag, which
    is the same for a bag of one tree), ``loss="squared"`` (-rtype 0, MART) or ``"lambdarank"``
    (-rtype 6), ``n_estimators=1`` (-tree), ``num_leaves=100`` (-leaf), ``learning_rate=0.1``
    (-shrinkage), ``min_child_samples=1`` (-mls) and ``max_bins=255`` (-tc 256, which RankLib
    ignores for forests).

    Parameters
    ----------
    loss : loss or str
        Loss of each bag: an object or a name, as for `Ranker`.
    n_bags : int
        Number of bags.
    bag_fraction : float
        Number of queries in a bag, sampled with replacement, as a fraction of all queries.
    n_estimators : int
        Number of trees per bag.
    learning_rate : float
        Factor by which the output of each tree is multiplied.
    num_leaves : int
        Maximum number of leaves of a tree.
    min_child_samples : int
        Minimum number of documents in a leaf.
    colsample_bytree : float
        Fraction of the features that is sampled for each tree.
    max_bins : int
        Maximum number of bins of a feature; the candidate thresholds are between bins.
    early_stopping_rounds : int or None
        Stop after this many bags without improvement on the validation set. None disables early
        stopping.

    Examples
    --------
    >>> import rankwright as rw
    >>> data = rw.load("digits/train", queries=8, documents=12)
    >>> ranker = rw.RandomForest(n_bags=20).fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    name = "random_forest"
    model_class = "forest"

    loss: Any = "squared"
    n_bags: int = 300
    bag_fraction: float = 1.0
    n_estimators: int = 1
    learning_rate: float | str = 0.1
    num_leaves: int | str = 100
    min_child_samples: int = 1
    colsample_bytree: float | str = 0.3
    max_bins: int = 255
    early_stopping_rounds: Rounds = None
