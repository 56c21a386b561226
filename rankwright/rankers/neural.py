"""Rankers whose default model is a network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from rankwright.rankers.base import Ranker
from rankwright.rankers.search_space import Domain, Floats, Ints, Log


class RankNet(Ranker):
    """RankNet: logistic loss on every pair of documents of different grade.

    The probability that one document is better than another is a sigmoid of the difference of their
    scores (`burges2005ranknet`). The network has one hidden layer of sigmoid units, as in the
    paper.

    Parameters
    ----------
    sigma : float, default 1.0
        Steepness of the logistic function: the larger, the smaller a difference of scores that
        counts as decided.
    normalize : bool, default False
        Take the mean over the pairs of a query instead of the sum, so that long lists do not
        outweigh short ones.
    hidden_layer_sizes : sequence of int, default (32,)
        Units of each hidden layer; () for a linear score.
    activation : {"sigmoid", "relu", "tanh", "elu"}, default "sigmoid"
        Activation of the hidden units.
    dropout : float, default 0.0
        Share of the hidden units that each step leaves out.
    list_context : int, default 0
        Heads of self-attention by which the documents of a query see each other; 0 for none. The
        width of the last hidden layer must be a multiple of it.
    epochs : int, default 60
        Passes over the data.
    learning_rate : float, default 3e-3
        Step size of Adam.
    batch_size : int, default 1024
        Documents in a step, in whole queries.
    weight_decay : float, default 0.0
        How strongly matrices of weights are pulled to 0; biases are not.
    missing : {"mean", "zero"} or None, default None
        What stands for a missing value; None refuses them.
    device : {"auto", "cpu", "cuda"}, default "auto"
        Where to train; "auto" takes a GPU where there is one. Scores are computed on the CPU.
    model : model, str or None, default None
        Replaces the default model: an object such as ``models.Linear(l2=1)``, or a name of
        ``rankwright list models``. None is a network, with the parameters given here.
    metric : str, Metric or callable, default "ndcg@10"
        Metric that selects the epoch on the validation set.
    convention : str, default "standard"
        How metrics are computed: one of ``rankwright list conventions``.
    early_stopping_rounds : int or None, default None
        Stop after this many iterations without a better value on the validation set; None never
        does.
    random_state : int, RandomState, Generator or None, default 0
        Seed of everything that is sampled. The same int gives the same model; None does not.
    n_jobs : int or None, default None
        Number of threads. None and -1 take all CPUs that the process may use; the result is the
        same for any number.
    verbose : bool, default False
        Write a line per iteration to standard error.

    Examples
    --------
    >>> import rankwright as rw
    >>> data = rw.load("digits/train", queries=8, documents=12)
    >>> ranker = rw.RankNet(hidden_layer_sizes=(16,), epochs=20).fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    loss_class: ClassVar[str | None] = "ranknet"
    model_class: ClassVar[str | None] = "network"

    def __init__(
        self,
        *,
        sigma: float = 1.0,
        normalize: bool = False,
        hidden_layer_sizes: tuple[int, ...] = (32,),
        activation: str = "sigmoid",
        dropout: float = 0.0,
        list_context: int = 0,
        epochs: int = 60,
        learning_rate: float = 3e-3,
        batch_size: int = 1024,
        weight_decay: float = 0.0,
        missing: str | None = None,
        device: str = "auto",
        model: Any = None,
        metric: Any = "ndcg@10",
        convention: str = "standard",
        early_stopping_rounds: int | None = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.sigma = sigma
        self.normalize = normalize
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.dropout = dropout
        self.list_context = list_context
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.weight_decay = weight_decay
        self.missing = missing
        self.device = device
        self.model = model
        self.metric = metric
        self.convention = convention
        self.early_stopping_rounds = early_stopping_rounds
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose


class LambdaRank(Ranker):
    """LambdaRank: RankNet's gradients, each weighted by what swapping the pair would change.

    Any metric with a swap: ndcg, dcg, map, mrr, err, p (`burges2010overview`). The model is a
    network, as in the paper; with trees it is LambdaMART.

    Parameters
    ----------
    metric : str, Metric or callable, default "ndcg@10"
        Metric that is optimised, and selects the epoch on the validation set: ndcg, dcg, p, map,
        mrr, err or another for which the change by a swap is known.
    truncation : int or None, default 30
        Count only pairs of which a document is among the first ``truncation`` by current score;
        None counts all pairs.
    sigma : float, default 1.0
        Steepness of the logistic function: the larger, the smaller a difference of scores that
        counts as decided.
    normalize : bool, default True
        Normalise gradients within and between queries as LightGBM's ``lambdarank_norm``, so that
        long lists do not outweigh others.
    label_gain : sequence of float or None, default None
        Gain of grade 0, 1, 2, ... in ndcg or dcg, which are optimised and select with it; None is
        2^g - 1, or what ``metric`` says.
    hidden_layer_sizes : sequence of int, default (32,)
        Units of each hidden layer; () for a linear score.
    activation : {"sigmoid", "relu", "tanh", "elu"}, default "sigmoid"
        Activation of the hidden units.
    dropout : float, default 0.0
        Share of the hidden units that each step leaves out.
    epochs : int, default 60
        Passes over the data.
    learning_rate : float, default 3e-3
        Step size of Adam.
    batch_size : int, default 1024
        Documents in a step, in whole queries.
    weight_decay : float, default 0.0
        How strongly matrices of weights are pulled to 0; biases are not.
    missing : {"mean", "zero"} or None, default None
        What stands for a missing value; None refuses them.
    device : {"auto", "cpu", "cuda"}, default "auto"
        Where to train; "auto" takes a GPU where there is one. Scores are computed on the CPU.
    model : model, str or None, default None
        Replaces the default model: an object such as ``models.Linear(l2=1)``, or a name of
        ``rankwright list models``. None is a network, with the parameters given here.
    select_metric : str, Metric, callable or None, default None
        Metric that selects on the validation set; None is ``metric``.
    convention : str, default "standard"
        How metrics are computed: one of ``rankwright list conventions``.
    early_stopping_rounds : int or None, default None
        Stop after this many iterations without a better value on the validation set; None never
        does.
    random_state : int, RandomState, Generator or None, default 0
        Seed of everything that is sampled. The same int gives the same model; None does not.
    n_jobs : int or None, default None
        Number of threads. None and -1 take all CPUs that the process may use; the result is the
        same for any number.
    verbose : bool, default False
        Write a line per iteration to standard error.

    Examples
    --------
    >>> import rankwright as rw
    >>> data = rw.load("digits/train", queries=8, documents=12)
    >>> ranker = rw.LambdaRank(hidden_layer_sizes=(16,), epochs=20).fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    loss_class: ClassVar[str | None] = "lambdarank"
    model_class: ClassVar[str | None] = "network"
    search_space: ClassVar[dict[str, Domain | None]] = {
        "truncation": Ints(5, 100, log=True),
        "sigma": Log(0.3, 3.0),
    }

    def __init__(
        self,
        *,
        metric: Any = "ndcg@10",
        truncation: int | None = 30,
        sigma: float = 1.0,
        normalize: bool = True,
        label_gain: Sequence[float] | None = None,
        hidden_layer_sizes: tuple[int, ...] = (32,),
        activation: str = "sigmoid",
        dropout: float = 0.0,
        epochs: int = 60,
        learning_rate: float = 3e-3,
        batch_size: int = 1024,
        weight_decay: float = 0.0,
        missing: str | None = None,
        device: str = "auto",
        model: Any = None,
        select_metric: Any = None,
        convention: str = "standard",
        early_stopping_rounds: int | None = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.metric = metric
        self.truncation = truncation
        self.sigma = sigma
        self.normalize = normalize
        self.label_gain = label_gain
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.dropout = dropout
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.weight_decay = weight_decay
        self.missing = missing
        self.device = device
        self.model = model
        self.select_metric = select_metric
        self.convention = convention
        self.early_stopping_rounds = early_stopping_rounds
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose


class SoftRank(Ranker):
    """SoftRank: what a metric loses in expectation when scores have noise.

    A smooth version of NDCG or another sum over ranks (`taylor2008softrank`), under a network as in
    the paper. The noise is small by default: under much of it the ranks of long lists crowd in the
    middle, and a metric of the first ten has no gradient to follow; of 0.1, 0.3 and 1 the default
    is the best on validation data of OHSUMED and MQ2008.

    Parameters
    ----------
    metric : str, Metric or callable, default "ndcg@10"
        Metric that is optimised, and selects the epoch on the validation set: ndcg, dcg, p or
        another sum over ranks.
    sigma : float, default 0.1
        Standard deviation of the noise; the smaller, the closer to the metric itself.
    form : {"recursion", "exact"}, default "recursion"
        How ranks are distributed: by the recursion of the paper, which takes the pairs of a
        document as independent, or exactly, by averaging over the score of the document.
    nodes : int, default 32
        Points of the quadrature of ``form="exact"``. 32 hold the value to 0.001 or better; long
        lists of nearly equal scores need more for the same precision in the gradient.
    hidden_layer_sizes : sequence of int, default (32,)
        Units of each hidden layer; () for a linear score.
    activation : {"sigmoid", "relu", "tanh", "elu"}, default "sigmoid"
        Activation of the hidden units.
    dropout : float, default 0.0
        Share of the hidden units that each step leaves out.
    epochs : int, default 60
        Passes over the data.
    learning_rate : float, default 3e-3
        Step size of Adam.
    batch_size : int, default 1024
        Documents in a step, in whole queries.
    weight_decay : float, default 0.0
        How strongly matrices of weights are pulled to 0; biases are not.
    missing : {"mean", "zero"} or None, default None
        What stands for a missing value; None refuses them.
    device : {"auto", "cpu", "cuda"}, default "auto"
        Where to train; "auto" takes a GPU where there is one. Scores are computed on the CPU.
    model : model, str or None, default None
        Replaces the default model: an object such as ``models.Linear(l2=1)``, or a name of
        ``rankwright list models``. None is a network, with the parameters given here.
    select_metric : str, Metric, callable or None, default None
        Metric that selects on the validation set; None is ``metric``.
    convention : str, default "standard"
        How metrics are computed: one of ``rankwright list conventions``.
    early_stopping_rounds : int or None, default None
        Stop after this many iterations without a better value on the validation set; None never
        does.
    random_state : int, RandomState, Generator or None, default 0
        Seed of everything that is sampled. The same int gives the same model; None does not.
    n_jobs : int or None, default None
        Number of threads. None and -1 take all CPUs that the process may use; the result is the
        same for any number.
    verbose : bool, default False
        Write a line per iteration to standard error.

    Examples
    --------
    >>> import rankwright as rw
    >>> data = rw.load("digits/train", queries=8, documents=12)
    >>> ranker = rw.SoftRank(hidden_layer_sizes=(16,), epochs=20).fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    loss_class: ClassVar[str | None] = "softrank"
    model_class: ClassVar[str | None] = "network"
    search_space: ClassVar[dict[str, Domain | None]] = {"sigma": Log(0.1, 10.0)}

    def __init__(
        self,
        *,
        metric: Any = "ndcg@10",
        sigma: float = 0.1,
        form: str = "recursion",
        nodes: int = 32,
        hidden_layer_sizes: tuple[int, ...] = (32,),
        activation: str = "sigmoid",
        dropout: float = 0.0,
        epochs: int = 60,
        learning_rate: float = 3e-3,
        batch_size: int = 1024,
        weight_decay: float = 0.0,
        missing: str | None = None,
        device: str = "auto",
        model: Any = None,
        select_metric: Any = None,
        convention: str = "standard",
        early_stopping_rounds: int | None = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.metric = metric
        self.sigma = sigma
        self.form = form
        self.nodes = nodes
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.dropout = dropout
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.weight_decay = weight_decay
        self.missing = missing
        self.device = device
        self.model = model
        self.select_metric = select_metric
        self.convention = convention
        self.early_stopping_rounds = early_stopping_rounds
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose


class BoltzRank(Ranker):
    """BoltzRank: what a metric loses in expectation over rankings sampled by their energy.

    Rankings that put high scores first are likely ones (`volkovs2009boltzrank`); some are sampled
    in each iteration, and a network learns from what they lose.

    Parameters
    ----------
    metric : str, Metric or callable, default "ndcg@10"
        Metric that is optimised, and selects the epoch on the validation set: ndcg, dcg, p or
        another sum over ranks.
    divergence : float, default 1.0
        Weight of the Kullback-Leibler divergence between the distribution of rankings by grade and
        that by score, which is added to the expected loss of the metric; 0 leaves it out.
    pair_potential : float, default 0.0
        Weight of the pairwise potential tanh(s_j - s_i) in the energy of a ranking; it levels off
        for scores that are far apart, so that no pair outvotes the others. 0 leaves it out.
    sharpness : float, default 5.0
        Factor of the energy: large values make the best ranking by far the most likely one, small
        ones make all rankings nearly equally likely.
    samples : int, default 32
        Rankings sampled for a query in each iteration: every second one near the order of the
        grades (Plackett-Luce), the others uniformly.
    hidden_layer_sizes : sequence of int, default (32,)
        Units of each hidden layer; () for a linear score.
    activation : {"sigmoid", "relu", "tanh", "elu"}, default "sigmoid"
        Activation of the hidden units.
    epochs : int, default 60
        Passes over the data.
    learning_rate : float, default 3e-3
        Step size of Adam.
    batch_size : int, default 1024
        Documents in a step, in whole queries.
    weight_decay : float, default 0.0
        How strongly matrices of weights are pulled to 0; biases are not.
    missing : {"mean", "zero"} or None, default None
        What stands for a missing value; None refuses them.
    device : {"auto", "cpu", "cuda"}, default "auto"
        Where to train; "auto" takes a GPU where there is one. Scores are computed on the CPU.
    model : model, str or None, default None
        Replaces the default model: an object such as ``models.Linear(l2=1)``, or a name of
        ``rankwright list models``. None is a network, with the parameters given here.
    select_metric : str, Metric, callable or None, default None
        Metric that selects on the validation set; None is ``metric``.
    convention : str, default "standard"
        How metrics are computed: one of ``rankwright list conventions``.
    early_stopping_rounds : int or None, default None
        Stop after this many iterations without a better value on the validation set; None never
        does.
    random_state : int, RandomState, Generator or None, default 0
        Seed of everything that is sampled. The same int gives the same model; None does not.
    n_jobs : int or None, default None
        Number of threads. None and -1 take all CPUs that the process may use; the result is the
        same for any number.
    verbose : bool, default False
        Write a line per iteration to standard error.

    Examples
    --------
    >>> import rankwright as rw
    >>> data = rw.load("digits/train", queries=8, documents=12)
    >>> ranker = rw.BoltzRank(hidden_layer_sizes=(16,), epochs=20).fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    loss_class: ClassVar[str | None] = "boltzrank"
    model_class: ClassVar[str | None] = "network"
    search_space: ClassVar[dict[str, Domain | None]] = {
        "divergence": Floats(0.0, 1.0),
        "sharpness": Log(0.1, 10.0),
    }

    def __init__(
        self,
        *,
        metric: Any = "ndcg@10",
        divergence: float = 1.0,
        pair_potential: float = 0.0,
        sharpness: float = 5.0,
        samples: int = 32,
        hidden_layer_sizes: tuple[int, ...] = (32,),
        activation: str = "sigmoid",
        epochs: int = 60,
        learning_rate: float = 3e-3,
        batch_size: int = 1024,
        weight_decay: float = 0.0,
        missing: str | None = None,
        device: str = "auto",
        model: Any = None,
        select_metric: Any = None,
        convention: str = "standard",
        early_stopping_rounds: int | None = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.metric = metric
        self.divergence = divergence
        self.pair_potential = pair_potential
        self.sharpness = sharpness
        self.samples = samples
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.weight_decay = weight_decay
        self.missing = missing
        self.device = device
        self.model = model
        self.select_metric = select_metric
        self.convention = convention
        self.early_stopping_rounds = early_stopping_rounds
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
