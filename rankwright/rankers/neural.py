"""Rankers with a network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rankwright.rankers.parameters import MetricParameters, NetworkParameters, named_ranker


@named_ranker
class RankNet(NetworkParameters):
    """RankNet: logistic loss on each pair of documents of different grade.

    The probability that one document is better than another is a sigmoid of the difference of their
    scores (`burges2005ranknet`). The network has one hidden layer of sigmoid units, as in the
    paper.

    Parameters
    ----------
    sigma : float
        Scale of score differences in the logistic function.
    normalize : bool
        Use the mean over the pairs of a query instead of the sum, so that long lists do not
        outweigh short ones.
    dropout : float
        Fraction of the hidden units that is dropped in each step.
    list_context : int
        Number of self-attention heads between the documents of a query; 0 for none. The width of
        the last hidden layer must be a multiple of it.

    Examples
    --------
    >>> import rankwright as rw
    >>> data = rw.load("digits/train", queries=8, documents=12)
    >>> ranker = rw.RankNet(hidden_layer_sizes=(16,), epochs=20).fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    loss_class = "ranknet"

    sigma: float = 1.0
    normalize: bool = False
    dropout: float = 0.0
    list_context: int = 0


@named_ranker
class LambdaRank(MetricParameters, NetworkParameters):
    """LambdaRank: RankNet gradients weighted by the change of a metric when a pair is swapped.

    The model is a network, as in the paper (`burges2010overview`). With trees it is LambdaMART.

    Parameters
    ----------
    metric : str, Metric or callable
        Metric to optimise: ndcg, dcg, map, mrr, err, p or another with a known swap delta. It also
        selects the epoch on the validation set unless ``select_metric`` is set.
    truncation : int or None
        Use only pairs in which at least one document is currently ranked in the top ``truncation``.
        None uses all pairs.
    sigma : float
        Scale of score differences in the logistic function.
    normalize : bool
        Normalise gradients within and between queries like LightGBM's ``lambdarank_norm``, so that
        long lists do not outweigh others.
    label_gain : sequence of float or None
        Gain of grade 0, 1, 2, ... in ndcg or dcg, for optimisation and selection. None uses the
        gain of ``metric``, by default 2^g - 1.
    dropout : float
        Fraction of the hidden units that is dropped in each step.

    Examples
    --------
    >>> import rankwright as rw
    >>> data = rw.load("digits/train", queries=8, documents=12)
    >>> ranker = rw.LambdaRank(hidden_layer_sizes=(16,), epochs=20).fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    loss_class = "lambdarank"
    search_space = {"truncation": (5, 100, "log"), "sigma": (0.3, 3.0, "log")}

    metric: Any = "ndcg@10"
    truncation: int | None = 30
    sigma: float = 1.0
    normalize: bool = True
    label_gain: Sequence[float] | None = None
    dropout: float = 0.0


@named_ranker
class SoftRank(MetricParameters, NetworkParameters):
    """SoftRank: expected loss of a metric when scores have Gaussian noise.

    A smooth version of NDCG or another sum over ranks (`taylor2008softrank`), for a network as in
    the paper. The default noise is small: with large noise the expected ranks of long lists are all
    near the middle, and a metric of the first ten ranks has no gradient. Of 0.1, 0.3 and 1 the
    default is the best on validation data of OHSUMED and MQ2008.

    Parameters
    ----------
    metric : str, Metric or callable
        Metric to optimise: ndcg, dcg, p or another sum over ranks. It also selects the epoch on the
        validation set unless ``select_metric`` is set.
    sigma : float
        Standard deviation of the noise. Small values are close to the metric.
    form : {"recursion", "exact"}
        Distribution of ranks: the recursion of the paper, which assumes that the pairs of a
        document are independent, or the exact one, averaged over the score of the document.
    nodes : int
        Number of quadrature points of ``form="exact"``. 32 give the value to 0.001 or better; long
        lists of nearly equal scores need more for the same precision of the gradient.
    dropout : float
        Fraction of the hidden units that is dropped in each step.

    Examples
    --------
    >>> import rankwright as rw
    >>> data = rw.load("digits/train", queries=8, documents=12)
    >>> ranker = rw.SoftRank(hidden_layer_sizes=(16,), epochs=20).fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    loss_class = "softrank"
    search_space = {"sigma": (0.1, 10.0, "log")}

    metric: Any = "ndcg@10"
    sigma: float = 0.1
    form: str = "recursion"
    nodes: int = 32
    dropout: float = 0.0


@named_ranker
class BoltzRank(MetricParameters, NetworkParameters):
    """BoltzRank: expected loss of a metric over rankings sampled from a Boltzmann distribution.

    Rankings that agree with the scores are likely (`volkovs2009boltzrank`). Rankings are sampled in
    each iteration.

    Parameters
    ----------
    metric : str, Metric or callable
        Metric to optimise: ndcg, dcg, p or another sum over ranks. It also selects the epoch on the
        validation set unless ``select_metric`` is set.
    divergence : float
        Weight of the Kullback-Leibler divergence between the distributions of rankings by grade and
        by score, which is added to the expected loss of the metric. 0 omits it.
    pair_potential : float
        Weight of the pairwise potential tanh(s_j - s_i) in the energy of a ranking. It is bounded,
        so that single pairs do not dominate. 0 omits it.
    sharpness : float
        Factor of the energy. With large values the best ranking is by far the most likely; with
        small values all rankings are nearly equally likely.
    samples : int
        Number of rankings sampled per query in each iteration, half near the order of the grades
        (Plackett-Luce) and half uniformly.

    Examples
    --------
    >>> import rankwright as rw
    >>> data = rw.load("digits/train", queries=8, documents=12)
    >>> ranker = rw.BoltzRank(hidden_layer_sizes=(16,), epochs=20).fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    loss_class = "boltzrank"
    search_space = {"divergence": (0.0, 1.0), "sharpness": (0.1, 10.0, "log")}

    metric: Any = "ndcg@10"
    divergence: float = 1.0
    pair_potential: float = 0.0
    sharpness: float = 5.0
    samples: int = 32
