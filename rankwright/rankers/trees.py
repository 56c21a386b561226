"""Rankers that fit trees: LambdaMART, IntervalRank, GBDT, GBRank, XE-NDCG, random forests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from rankwright.rankers.base import Ranker
from rankwright.rankers.search_space import Choice, Domain, Ints, Log


class LambdaMART(Ranker):
    """LambdaMART: boosted trees on gradients weighted by what a swap would change.

    The gradient of a pair is RankNet's times the change of the metric if the two documents swapped
    places (`burges2010overview`). Any metric with a swap: ndcg, dcg, map, mrr, err, p. The scale
    sigma of score differences, which trees hardly notice, is a parameter of
    `rankwright.losses.LambdaRank`, an L1 penalty on leaf values (``reg_alpha``) one of
    `rankwright.models.Trees`.

    Parameters
    ----------
    metric : str, Metric or callable, default "ndcg@10"
        Metric that is optimised, and selects the number of trees on the validation set: ndcg, dcg,
        p, map, mrr, err or another for which the change by a swap is known.
    truncation : int or None, default 30
        Count only pairs of which a document is among the first ``truncation`` by current score;
        None counts all pairs.
    normalize : bool, default True
        Normalise gradients within and between queries as LightGBM's ``lambdarank_norm``, so that
        long lists do not outweigh others.
    label_gain : sequence of float or None, default None
        Gain of grade 0, 1, 2, ... in ndcg or dcg, which are optimised and select with it; None is
        2^g - 1, or what ``metric`` says.
    n_estimators : int, default 100
        Number of trees.
    learning_rate : float or "auto", default "auto"
        Share of each tree's step that is taken.
    num_leaves : int or "auto", default "auto"
        Most leaves of a tree. All that is "auto" goes by the size of the data:
        `rankwright.models.Trees.resolve`.
    max_depth : int or None, default None
        Most splits from the root to a leaf; None sets no limit.
    min_child_samples : int, default 20
        Fewest documents of a leaf.
    min_child_weight : float, default 1e-3
        Least sum of curvature in a leaf.
    subsample : float, default 1.0
        Share of the documents sampled for each tree.
    colsample_bytree : float or "auto", default "auto"
        Share of the features sampled for each tree.
    reg_lambda : float, default 0.0
        L2 penalty on leaf values.
    monotone_constraints : mapping, sequence or None, default None
        1 or -1 for features whose score must rise or fall with them, by name, by column or in
        order.
    categorical_feature : sequence or None, default None
        Features that hold category numbers, by name or column; columns of the type category are
        found without it.
    model : model, str or None, default None
        Replaces the default model: an object such as ``models.Linear(l2=1)``, or a name of
        ``rankwright list models``. None is boosted trees, with the parameters given here.
    select_metric : str, Metric, callable or None, default None
        Metric that selects on the validation set; None is ``metric``.
    convention : str, default "standard"
        How metrics are computed: one of ``rankwright list conventions``.
    early_stopping_rounds : int, None or "auto", default "auto"
        Stop after this many iterations without a better value on the validation set; None never
        does. "auto" stops 50 rounds after the maximum of the validation curve, smoothed over 21
        rounds.
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
    >>> ranker = rw.LambdaMART(n_estimators=300, early_stopping_rounds=50)
    """

    loss_class: ClassVar[str | None] = "lambdarank"
    model_class: ClassVar[str | None] = "trees"
    search_space: ClassVar[dict[str, Domain | None]] = {
        "truncation": Ints(5, 100, log=True),
        "normalize": Choice(True, False),
    }

    def __init__(
        self,
        *,
        metric: Any = "ndcg@10",
        truncation: int | None = 30,
        normalize: bool = True,
        label_gain: Sequence[float] | None = None,
        n_estimators: int = 100,
        learning_rate: float | str = "auto",
        num_leaves: int | str = "auto",
        max_depth: int | None = None,
        min_child_samples: int = 20,
        min_child_weight: float = 1e-3,
        subsample: float = 1.0,
        colsample_bytree: float | str = "auto",
        reg_lambda: float = 0.0,
        monotone_constraints: Mapping[str | int, int] | Sequence[int] | None = None,
        categorical_feature: Sequence[str | int] | None = None,
        model: Any = None,
        select_metric: Any = None,
        convention: str = "standard",
        early_stopping_rounds: int | str | None = "auto",
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.metric = metric
        self.truncation = truncation
        self.normalize = normalize
        self.label_gain = label_gain
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.num_leaves = num_leaves
        self.max_depth = max_depth
        self.min_child_samples = min_child_samples
        self.min_child_weight = min_child_weight
        self.subsample = subsample
        self.colsample_bytree = colsample_bytree
        self.reg_lambda = reg_lambda
        self.monotone_constraints = monotone_constraints
        self.categorical_feature = categorical_feature
        self.model = model
        self.select_metric = select_metric
        self.convention = convention
        self.early_stopping_rounds = early_stopping_rounds
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose


class IntervalRank(Ranker):
    """IntervalRank: boosted trees toward the nearest scores whose grades stand in order.

    Each iteration corrects the scores of a query as little as puts its grades into separate
    intervals, and trees follow the correction (`moon2010intervalrank`). Margins are soft by
    default: a hard pull on every document spends the trees on the order of the many low ones.

    The defaults of lambda1 and targets are, on validation data of OHSUMED and MQ2008, as good as
    any of lambda1 0.01 to 1, lambda2 0.1 and 1, gain and linear targets; of those, the best fit to
    the top of long lists.

    Parameters
    ----------
    lambda1 : float, default 0.03
        Penalty on margins between grades that are not kept; ``inf`` allows none.
    lambda2 : float, default 1.0
        Penalty on the width of the interval of a grade; 0 leaves it free, ``inf`` gives all
        documents of a grade one score.
    targets : {"linear", "gain"} or tuple of float, default "linear"
        Target score of a grade, whose differences are the margins: "linear" is the grade, "gain" is
        2^grade - 1, a tuple has a value per grade.
    calibration : float, default 0.0
        Weight of the squared error of the scores to the targets (lambda3 of the paper's (11)),
        which fixes the level of the scores; 0 leaves it free.
    scale_by_size : bool, default True
        Multiply both lambdas by the number of documents of the query.
    qp_solver : {"newton", "barrier", "hard"}, default "newton"
        How the inner problem is solved: exactly; by the paper's log-barrier method, which keeps
        grades further apart and needs finite lambdas and ``lambda2`` above 0; or in the limit of
        hard margins and free widths, whatever the lambdas.
    n_estimators : int, default 100
        Number of trees.
    learning_rate : float or "auto", default "auto"
        Share of each tree's step that is taken.
    num_leaves : int or "auto", default "auto"
        Most leaves of a tree. All that is "auto" goes by the size of the data:
        `rankwright.models.Trees.resolve`.
    max_depth : int or None, default None
        Most splits from the root to a leaf; None sets no limit.
    min_child_samples : int, default 20
        Fewest documents of a leaf.
    subsample : float, default 1.0
        Share of the documents sampled for each tree.
    colsample_bytree : float or "auto", default "auto"
        Share of the features sampled for each tree.
    reg_lambda : float, default 0.0
        L2 penalty on leaf values.
    reg_alpha : float, default 0.0
        L1 penalty on leaf values.
    model : model, str or None, default None
        Replaces the default model: an object such as ``models.Linear(l2=1)``, or a name of
        ``rankwright list models``. None is boosted trees, with the parameters given here.
    metric : str, Metric or callable, default "ndcg@10"
        Metric that selects the number of trees on the validation set.
    convention : str, default "standard"
        How metrics are computed: one of ``rankwright list conventions``.
    early_stopping_rounds : int, None or "auto", default "auto"
        Stop after this many iterations without a better value on the validation set; None never
        does. "auto" stops 50 rounds after the maximum of the validation curve, smoothed over 21
        rounds.
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
    >>> ranker = rw.IntervalRank(n_estimators=20, learning_rate=0.2).fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    loss_class: ClassVar[str | None] = "interval"
    model_class: ClassVar[str | None] = "trees"
    search_space: ClassVar[dict[str, Domain | None]] = {
        "lambda1": Log(0.003, 3.0),
        "lambda2": Log(0.1, 10.0),
        "targets": Choice("linear", "gain"),
    }

    def __init__(
        self,
        *,
        lambda1: float = 0.03,
        lambda2: float = 1.0,
        targets: str | tuple[float, ...] = "linear",
        calibration: float = 0.0,
        scale_by_size: bool = True,
        qp_solver: str = "newton",
        n_estimators: int = 100,
        learning_rate: float | str = "auto",
        num_leaves: int | str = "auto",
        max_depth: int | None = None,
        min_child_samples: int = 20,
        subsample: float = 1.0,
        colsample_bytree: float | str = "auto",
        reg_lambda: float = 0.0,
        reg_alpha: float = 0.0,
        model: Any = None,
        metric: Any = "ndcg@10",
        convention: str = "standard",
        early_stopping_rounds: int | str | None = "auto",
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.lambda1 = lambda1
        self.lambda2 = lambda2
        self.targets = targets
        self.calibration = calibration
        self.scale_by_size = scale_by_size
        self.qp_solver = qp_solver
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.num_leaves = num_leaves
        self.max_depth = max_depth
        self.min_child_samples = min_child_samples
        self.subsample = subsample
        self.colsample_bytree = colsample_bytree
        self.reg_lambda = reg_lambda
        self.reg_alpha = reg_alpha
        self.model = model
        self.metric = metric
        self.convention = convention
        self.early_stopping_rounds = early_stopping_rounds
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose


class GBDT(Ranker):
    """GBDT, MART: boosted regression trees on the grades.

    The pointwise baseline: squared error to the target of each document's grade
    (`friedman2001gbdt`). Alias ``mart``.

    Parameters
    ----------
    targets : {"linear", "gain"} or tuple of float, default "linear"
        Target score of a grade: "linear" is the grade, "gain" is 2^grade - 1, a tuple has a value
        per grade.
    n_estimators : int, default 100
        Number of trees.
    learning_rate : float or "auto", default "auto"
        Share of each tree's step that is taken.
    num_leaves : int or "auto", default "auto"
        Most leaves of a tree. All that is "auto" goes by the size of the data:
        `rankwright.models.Trees.resolve`.
    max_depth : int or None, default None
        Most splits from the root to a leaf; None sets no limit.
    min_child_samples : int, default 20
        Fewest documents of a leaf.
    min_child_weight : float, default 1e-3
        Least sum of curvature in a leaf.
    subsample : float, default 1.0
        Share of the documents sampled for each tree.
    colsample_bytree : float or "auto", default "auto"
        Share of the features sampled for each tree.
    reg_lambda : float, default 0.0
        L2 penalty on leaf values.
    reg_alpha : float, default 0.0
        L1 penalty on leaf values.
    monotone_constraints : mapping, sequence or None, default None
        1 or -1 for features whose score must rise or fall with them, by name, by column or in
        order.
    categorical_feature : sequence or None, default None
        Features that hold category numbers, by name or column; columns of the type category are
        found without it.
    model : model, str or None, default None
        Replaces the default model: an object such as ``models.Linear(l2=1)``, or a name of
        ``rankwright list models``. None is boosted trees, with the parameters given here.
    metric : str, Metric or callable, default "ndcg@10"
        Metric that selects the number of trees on the validation set.
    convention : str, default "standard"
        How metrics are computed: one of ``rankwright list conventions``.
    early_stopping_rounds : int, None or "auto", default "auto"
        Stop after this many iterations without a better value on the validation set; None never
        does. "auto" stops 50 rounds after the maximum of the validation curve, smoothed over 21
        rounds.
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
    >>> ranker = rw.GBDT(n_estimators=20, learning_rate=0.2).fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    loss_class: ClassVar[str | None] = "squared"
    model_class: ClassVar[str | None] = "trees"
    search_space: ClassVar[dict[str, Domain | None]] = {"targets": Choice("linear", "gain")}

    def __init__(
        self,
        *,
        targets: str | tuple[float, ...] = "linear",
        n_estimators: int = 100,
        learning_rate: float | str = "auto",
        num_leaves: int | str = "auto",
        max_depth: int | None = None,
        min_child_samples: int = 20,
        min_child_weight: float = 1e-3,
        subsample: float = 1.0,
        colsample_bytree: float | str = "auto",
        reg_lambda: float = 0.0,
        reg_alpha: float = 0.0,
        monotone_constraints: Mapping[str | int, int] | Sequence[int] | None = None,
        categorical_feature: Sequence[str | int] | None = None,
        model: Any = None,
        metric: Any = "ndcg@10",
        convention: str = "standard",
        early_stopping_rounds: int | str | None = "auto",
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.targets = targets
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.num_leaves = num_leaves
        self.max_depth = max_depth
        self.min_child_samples = min_child_samples
        self.min_child_weight = min_child_weight
        self.subsample = subsample
        self.colsample_bytree = colsample_bytree
        self.reg_lambda = reg_lambda
        self.reg_alpha = reg_alpha
        self.monotone_constraints = monotone_constraints
        self.categorical_feature = categorical_feature
        self.model = model
        self.metric = metric
        self.convention = convention
        self.early_stopping_rounds = early_stopping_rounds
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose


class GBRank(Ranker):
    """GBRank: boosted trees on a squared hinge over pairs of different grade.

    Each better document is to beat each worse one by the difference of their targets, and documents
    of one grade are to stay together (`zheng2007gbrank`; `moon2010intervalrank`).

    Parameters
    ----------
    targets : {"linear", "gain"} or tuple of float, default "linear"
        Target score of a grade, whose differences are the margins: "linear" is the grade, "gain" is
        2^grade - 1, a tuple has a value per grade.
    calibration : float, default 0.0
        Weight of the squared error of the scores to the targets, which fixes the level of the
        scores; 0 leaves it free.
    n_estimators : int, default 100
        Number of trees.
    learning_rate : float or "auto", default "auto"
        Share of each tree's step that is taken.
    num_leaves : int or "auto", default "auto"
        Most leaves of a tree. All that is "auto" goes by the size of the data:
        `rankwright.models.Trees.resolve`.
    max_depth : int or None, default None
        Most splits from the root to a leaf; None sets no limit.
    min_child_samples : int, default 20
        Fewest documents of a leaf.
    min_child_weight : float, default 1e-3
        Least sum of curvature in a leaf.
    subsample : float, default 1.0
        Share of the documents sampled for each tree.
    colsample_bytree : float or "auto", default "auto"
        Share of the features sampled for each tree.
    reg_lambda : float, default 0.0
        L2 penalty on leaf values.
    reg_alpha : float, default 0.0
        L1 penalty on leaf values.
    monotone_constraints : mapping, sequence or None, default None
        1 or -1 for features whose score must rise or fall with them, by name, by column or in
        order.
    categorical_feature : sequence or None, default None
        Features that hold category numbers, by name or column; columns of the type category are
        found without it.
    model : model, str or None, default None
        Replaces the default model: an object such as ``models.Linear(l2=1)``, or a name of
        ``rankwright list models``. None is boosted trees, with the parameters given here.
    metric : str, Metric or callable, default "ndcg@10"
        Metric that selects the number of trees on the validation set.
    convention : str, default "standard"
        How metrics are computed: one of ``rankwright list conventions``.
    early_stopping_rounds : int, None or "auto", default "auto"
        Stop after this many iterations without a better value on the validation set; None never
        does. "auto" stops 50 rounds after the maximum of the validation curve, smoothed over 21
        rounds.
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
    >>> ranker = rw.GBRank(n_estimators=20, learning_rate=0.2).fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    loss_class: ClassVar[str | None] = "gbrank"
    model_class: ClassVar[str | None] = "trees"
    search_space: ClassVar[dict[str, Domain | None]] = {"targets": Choice("linear", "gain")}

    def __init__(
        self,
        *,
        targets: str | tuple[float, ...] = "linear",
        calibration: float = 0.0,
        n_estimators: int = 100,
        learning_rate: float | str = "auto",
        num_leaves: int | str = "auto",
        max_depth: int | None = None,
        min_child_samples: int = 20,
        min_child_weight: float = 1e-3,
        subsample: float = 1.0,
        colsample_bytree: float | str = "auto",
        reg_lambda: float = 0.0,
        reg_alpha: float = 0.0,
        monotone_constraints: Mapping[str | int, int] | Sequence[int] | None = None,
        categorical_feature: Sequence[str | int] | None = None,
        model: Any = None,
        metric: Any = "ndcg@10",
        convention: str = "standard",
        early_stopping_rounds: int | str | None = "auto",
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.targets = targets
        self.calibration = calibration
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.num_leaves = num_leaves
        self.max_depth = max_depth
        self.min_child_samples = min_child_samples
        self.min_child_weight = min_child_weight
        self.subsample = subsample
        self.colsample_bytree = colsample_bytree
        self.reg_lambda = reg_lambda
        self.reg_alpha = reg_alpha
        self.monotone_constraints = monotone_constraints
        self.categorical_feature = categorical_feature
        self.model = model
        self.metric = metric
        self.convention = convention
        self.early_stopping_rounds = early_stopping_rounds
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose


class XENDCG(Ranker):
    """XE-NDCG: boosted trees on a cross entropy that bounds NDCG.

    As LightGBM's ``rank_xendcg`` (`bruch2021xendcg`); the noise of each iteration is seeded.

    Parameters
    ----------
    sampled : bool, default True
        Sample the noise of the targets anew in each iteration; False takes its mean.
    newton_terms : int, default 1
        Terms of the series for the Newton step that make up the gradient: 1 is the gradient itself,
        3 is what LightGBM's ``rank_xendcg`` boosts.
    n_estimators : int, default 100
        Number of trees.
    learning_rate : float or "auto", default "auto"
        Share of each tree's step that is taken.
    num_leaves : int or "auto", default "auto"
        Most leaves of a tree. All that is "auto" goes by the size of the data:
        `rankwright.models.Trees.resolve`.
    max_depth : int or None, default None
        Most splits from the root to a leaf; None sets no limit.
    min_child_samples : int, default 20
        Fewest documents of a leaf.
    min_child_weight : float, default 1e-3
        Least sum of curvature in a leaf.
    subsample : float, default 1.0
        Share of the documents sampled for each tree.
    colsample_bytree : float or "auto", default "auto"
        Share of the features sampled for each tree.
    reg_lambda : float, default 0.0
        L2 penalty on leaf values.
    reg_alpha : float, default 0.0
        L1 penalty on leaf values.
    monotone_constraints : mapping, sequence or None, default None
        1 or -1 for features whose score must rise or fall with them, by name, by column or in
        order.
    categorical_feature : sequence or None, default None
        Features that hold category numbers, by name or column; columns of the type category are
        found without it.
    model : model, str or None, default None
        Replaces the default model: an object such as ``models.Linear(l2=1)``, or a name of
        ``rankwright list models``. None is boosted trees, with the parameters given here.
    metric : str, Metric or callable, default "ndcg@10"
        Metric that selects the number of trees on the validation set.
    convention : str, default "standard"
        How metrics are computed: one of ``rankwright list conventions``.
    early_stopping_rounds : int, None or "auto", default "auto"
        Stop after this many iterations without a better value on the validation set; None never
        does. "auto" stops 50 rounds after the maximum of the validation curve, smoothed over 21
        rounds.
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
    >>> ranker = rw.XENDCG(n_estimators=20, learning_rate=0.2).fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    loss_class: ClassVar[str | None] = "xendcg"
    model_class: ClassVar[str | None] = "trees"

    def __init__(
        self,
        *,
        sampled: bool = True,
        newton_terms: int = 1,
        n_estimators: int = 100,
        learning_rate: float | str = "auto",
        num_leaves: int | str = "auto",
        max_depth: int | None = None,
        min_child_samples: int = 20,
        min_child_weight: float = 1e-3,
        subsample: float = 1.0,
        colsample_bytree: float | str = "auto",
        reg_lambda: float = 0.0,
        reg_alpha: float = 0.0,
        monotone_constraints: Mapping[str | int, int] | Sequence[int] | None = None,
        categorical_feature: Sequence[str | int] | None = None,
        model: Any = None,
        metric: Any = "ndcg@10",
        convention: str = "standard",
        early_stopping_rounds: int | str | None = "auto",
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.sampled = sampled
        self.newton_terms = newton_terms
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.num_leaves = num_leaves
        self.max_depth = max_depth
        self.min_child_samples = min_child_samples
        self.min_child_weight = min_child_weight
        self.subsample = subsample
        self.colsample_bytree = colsample_bytree
        self.reg_lambda = reg_lambda
        self.reg_alpha = reg_alpha
        self.monotone_constraints = monotone_constraints
        self.categorical_feature = categorical_feature
        self.model = model
        self.metric = metric
        self.convention = convention
        self.early_stopping_rounds = early_stopping_rounds
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose


class RandomForest(Ranker):
    """A random forest for ranking: the mean of small boosted models on bootstrapped queries.

    Each bag samples queries with replacement and features without, after `breiman2001forests`. The
    defaults are RankLib's. Its
    flags are here: ``n_bags=300`` (-bag), ``bag_fraction=1.0`` (-srate), ``colsample_bytree=0.3``
    (-frate: features of a tree, where RankLib samples them once for a bag, which is the same for a
    bag of one tree), ``loss="squared"`` (-rtype 0, MART) or ``"lambdarank"`` (-rtype 6),
    ``n_estimators=1`` (-tree), ``num_leaves=100`` (-leaf), ``learning_rate=0.1`` (-shrinkage),
    ``min_child_samples=1`` (-mls) and ``max_bins=255`` (-tc 256, which RankLib does not hand to its
    forests: they have its default).

    Parameters
    ----------
    loss : loss or str, default "squared"
        What each bag minimises: an object or a name, as for `Ranker`.
    n_bags : int, default 300
        Number of bags, each a sample of queries with a boosted model of its own.
    bag_fraction : float, default 1.0
        Queries sampled for a bag, with replacement, as a share of all.
    n_estimators : int, default 1
        Trees of a bag.
    learning_rate : float, default 0.1
        Share of each tree's step that is taken.
    num_leaves : int, default 100
        Most leaves of a tree.
    max_depth : int or None, default None
        Most splits from the root to a leaf; None sets no limit.
    min_child_samples : int, default 1
        Fewest documents of a leaf.
    min_child_weight : float, default 1e-3
        Least sum of curvature in a leaf.
    colsample_bytree : float, default 0.3
        Share of the features sampled for each tree.
    reg_lambda : float, default 0.0
        L2 penalty on leaf values.
    max_bins : int, default 255
        Bins of a feature, between which thresholds are tried.
    monotone_constraints : mapping, sequence or None, default None
        1 or -1 for features whose score must rise or fall with them, by name, by column or in
        order.
    categorical_feature : sequence or None, default None
        Features that hold category numbers, by name or column; columns of the type category are
        found without it.
    model : model, str or None, default None
        Replaces the default model: an object such as ``models.Linear(l2=1)``, or a name of
        ``rankwright list models``. None is a forest, with the parameters given here.
    metric : str, Metric or callable, default "ndcg@10"
        Metric that selects the number of bags on the validation set.
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
    >>> ranker = rw.RandomForest(n_bags=20).fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    name: ClassVar[str] = "random_forest"
    model_class: ClassVar[str | None] = "forest"

    def __init__(
        self,
        *,
        loss: Any = "squared",
        n_bags: int = 300,
        bag_fraction: float = 1.0,
        n_estimators: int = 1,
        learning_rate: float = 0.1,
        num_leaves: int = 100,
        max_depth: int | None = None,
        min_child_samples: int = 1,
        min_child_weight: float = 1e-3,
        colsample_bytree: float = 0.3,
        reg_lambda: float = 0.0,
        max_bins: int = 255,
        monotone_constraints: Mapping[str | int, int] | Sequence[int] | None = None,
        categorical_feature: Sequence[str | int] | None = None,
        model: Any = None,
        metric: Any = "ndcg@10",
        convention: str = "standard",
        early_stopping_rounds: int | None = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.loss = loss
        self.n_bags = n_bags
        self.bag_fraction = bag_fraction
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.num_leaves = num_leaves
        self.max_depth = max_depth
        self.min_child_samples = min_child_samples
        self.min_child_weight = min_child_weight
        self.colsample_bytree = colsample_bytree
        self.reg_lambda = reg_lambda
        self.max_bins = max_bins
        self.monotone_constraints = monotone_constraints
        self.categorical_feature = categorical_feature
        self.model = model
        self.metric = metric
        self.convention = convention
        self.early_stopping_rounds = early_stopping_rounds
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
