"""`Blend`: a weighted sum of several rankers, with weights fitted to out-of-fold scores.

Members are fitted to folds of whole queries (`rankwright.rankers.out_of_fold`), the weights to
their scores on the test queries (`rankwright.rankers.stacking`), and then every member with a
weight above 0 to all data. The result is a single model, `rankwright.models.blend`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from itertools import chain, count
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from sklearn.base import clone

from rankwright.core.dtypes import blocks
from rankwright.core.parameters import NonNegative, at_least, seed_of
from rankwright.core.types import F64, FittedModel, Round
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, IncompatibleError, UsageError
from rankwright.metrics.base import metric
from rankwright.models.blend import Blend as BlendModel
from rankwright.models.blend import FittedBlend, scores_of
from rankwright.rankers.base import Ranker, ranker
from rankwright.rankers.checkpointing import Resume
from rankwright.rankers.fitting import Result
from rankwright.rankers.out_of_fold import OutOfFold, out_of_fold, with_rounds
from rankwright.rankers.preparation import FitData, FitParts
from rankwright.rankers.stacking import Stack, clearly_better, within_queries

AUTO = "auto"
_OF_USERS = ("factorization", "jrank")  # models that score users, not features
_BAGS = 60
_LEAD = 3.0  # least lead of a single member over the blend, in standard errors


class Blend(Ranker):
    """Weighted sum of several rankers, whose scores are divided by their deviation.

    The weights are 0 or more and fitted to out-of-fold scores (`breiman1996stacked`).

    Parameters
    ----------
    members : sequence of rankers or names, or "auto", default "auto"
        Rankers, or names from ``rankwright list rankers``. A name is the ranker with its defaults
        and the common parameters of the blend; several names can be one text with commas, as on the
        command line. "auto" has one ranker of each family: ``memr``, ``ranknet`` (if torch is
        installed), ``gbrank`` and ``random_forest`` with 60 bags; only the latter two if the data
        has missing values or categories.
    weights : sequence of float or None, default None
        Weight of each member, 0 or more, for scores with the same deviation. None fits the weights.
    folds : int, default 5
        Number of folds of whole queries, for weights, deviations and numbers of rounds.
    shrinkage : float, default 100.0
        Pull of the weights towards their mean, which counts as much as this many queries. 0 has no
        pull.
    metric : str, Metric or callable, default "ndcg@10"
        Metric that compares a single member with the blend. Members given by name also use it to
        select on validation data.
    convention : str, default "standard"
        Convention that metrics follow, from ``rankwright list conventions``.
    random_state : int, RandomState, Generator or None, default 0
        Seed of the folds and of members given by name. The same int gives the same model; None
        does not.
    n_jobs : int or None, default None
        Number of threads. None and -1 use all CPUs available to the process. The result does not
        depend on it.
    verbose : bool, default False
        Write a line per iteration of each fit to standard error.

    Attributes
    ----------
    out_of_fold_ : dict from names to OutOfFold
        Scores of each member by the fit without the query, in the order of the training data, and
        the number of iterations; empty with fewer than two queries.

    Notes
    -----
    The number of trees or epochs of a member is chosen on the folds, for all folds together, or
    by ``eval_set``. If the weights are fitted and a single member is better than the blend on the
    folds by more than three standard errors of the difference, only this member remains.

    See Also
    --------
    rankwright.auto : chooses the members, too.
    rankwright.out_of_fold : the scores that the weights are fitted to.

    Examples
    --------
    >>> import rankwright as rw
    >>> data = rw.synthetic("mq2008", queries=30)
    >>> blend = rw.Blend(["memr", rw.GBDT(n_estimators=20)], folds=3).fit(data)
    >>> sorted(blend.weights_) == ["gbdt", "memr"] or len(blend.weights_) == 1
    True
    """

    name: ClassVar[str] = "blend"
    model_class: ClassVar[str | None] = "blend"
    search_space: ClassVar[dict[str, Any]] = {"shrinkage": (1.0, 10_000.0, "log")}

    def __init__(
        self,
        members: Any = AUTO,
        *,
        weights: Sequence[float] | None = None,
        folds: Annotated[int, at_least(2)] = 5,
        shrinkage: NonNegative = 100.0,
        metric: Any = "ndcg@10",
        convention: str = "standard",
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.members = members
        self.weights = weights
        self.folds = folds
        self.shrinkage = shrinkage
        self.metric = metric
        self.convention = convention
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @classmethod
    def of(
        cls,
        fitted: Mapping[str, Ranker],
        weights: Sequence[float] | F64,
        *,
        deviations: Sequence[float] | F64 | None = None,
        **parameters: Any,
    ) -> Blend:
        """Return the blend of rankers that have been fitted to the same features.

        Parameters
        ----------
        fitted : mapping from names to fitted rankers
        weights : sequence of float
            Weight of each ranker, 0 or more.
        deviations : sequence of float, optional
            Divisor of the scores of each ranker; by default 1.
        **parameters
            Parameters of the blend, for further fits.
        """
        blend = cls([clone(member) for member in fitted.values()], **parameters)
        blend._checked_members()
        first = next(iter(fitted.values()))
        models = {name: member._fitted() for name, member in fitted.items()}
        for name, member in fitted.items():
            first_names, names = (getattr(m, "feature_names_in_", None) for m in (first, member))
            differ = first_names is not None and names is not None and [*first_names] != [*names]
            if differ or models[name].n_features != first._fitted().n_features:
                raise DataError(f"{name} was fitted to other features than the first member.")
        blend.model_ = _blended(
            models,
            [member.model_name for member in fitted.values()],
            _checked_weights(weights, len(fitted)),
            np.ones(len(fitted)) if deviations is None else np.array(deviations, np.float64),
        )
        for attribute in ("data_digest_", "n_features_in_", "feature_names_in_", "categories_"):
            if hasattr(first, attribute):
                setattr(blend, attribute, getattr(first, attribute))
        blend.curve_, blend.evals_result_, blend.out_of_fold_ = {}, {}, {}
        blend.best_iteration_, blend.interrupted_, blend.resumed_from_ = 1, False, None
        blend._with_qid = getattr(first, "_with_qid", False)
        blend.qid_column_ = getattr(first, "qid_column_", None)
        blend.first_feature_id_ = getattr(first, "first_feature_id_", None)
        return blend

    # --- parameters --------------------------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; with ``deep``, also of the members, as ``gbrank__num_leaves``."""
        params = super().get_params(deep=False)
        members = self._named_members() if deep else {}
        for name, member in members.items():
            if isinstance(member, Ranker):
                nested = member.get_params(deep=True)
                params |= {f"{name}__{key}": value for key, value in nested.items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``gbrank__num_leaves=7`` replaces that member by a changed copy."""
        self.members = params.pop("members", self.members)
        members = self._named_members() if any("__" in name for name in params) else {}
        changes: dict[str, dict[str, Any]] = defaultdict(dict)
        for name in [*params]:
            member, _, field = name.partition("__")
            if field and member in members:
                changes[member][field] = params.pop(name)
        super().set_params(**params)
        for member, fields in changes.items():
            members[member] = clone(members[member]).set_params(**fields)
        if changes:
            self.members = [*members.values()]
        return self

    def _fits_default_model(self) -> bool:
        """Return whether the ranker fits its default model, which a blend always does."""
        return True

    def _common(self) -> dict[str, Any]:
        """Return the parameters of members given by name."""
        names = "metric", "convention", "random_state", "n_jobs"
        return {name: getattr(self, name) for name in names}

    def _named_members(self) -> dict[str, Any]:
        """Return the members by name, none for "auto"; the second one of a kind is ``gbrank_2``."""
        listed = self.members
        if isinstance(listed, str):
            listed = [] if listed == AUTO else listed.split(",")
        members: dict[str, Any] = {}
        for item in listed if isinstance(listed, Sequence) else []:
            member = _member(item, self._common()) if isinstance(item, str) else item
            kind = getattr(member, "name", type(member).__name__)
            names = chain([kind], (f"{kind}_{number}" for number in count(2)))
            members[next(name for name in names if name not in members)] = member
        return members

    def _checked_members(self, data: RankingData | None = None) -> dict[str, Ranker]:
        """Return the members for ``data`` by name; raise if they cannot be blended."""
        if isinstance(self.members, str) and self.members == AUTO:
            return default_members(data, **self._common())
        if not isinstance(self.members, Sequence):
            raise UsageError(
                'members is a list of rankers or their names, or "auto", not '
                f"{self.members!r}; write Blend(['memr', 'gbrank'])."
            )
        members = self._named_members()
        if not members:
            raise UsageError("members is empty; a blend needs at least one member.")
        for name, member in members.items():
            if not isinstance(member, Ranker):
                raise UsageError(f"a member of a blend is a ranker or its name, not {member!r}.")
            if isinstance(member, Blend):
                raise UsageError("a blend cannot be a member of another; give its members instead.")
            if member.model_name in _OF_USERS:
                raise IncompatibleError(
                    f"{name} scores the items of the users it was fitted to, and a blend is fitted "
                    "to folds of other users; leave it out."
                )
        return members

    def _part_of(self, name: str) -> Any:
        if name != "model":
            return None
        members = self._named_members().values()
        return BlendModel(tuple(m._part_of("model") for m in members if isinstance(m, Ranker)))

    def make_model(self) -> Any:
        """Return the models of all members, checked."""
        members = self._checked_members()
        if self.weights is not None:
            if not self._named_members():
                raise UsageError('weights need members that are named, not "auto".')
            _checked_weights(self.weights, len(members))
        self._check()
        return BlendModel(tuple(member.make_model() for member in members.values()))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        nested = [member.__sklearn_tags__() for member in self._named_members().values()]
        if nested:
            tags.input_tags.allow_nan = all(each.input_tags.allow_nan for each in nested)
        return tags

    # --- fitting -----------------------------------------------------------------------------

    def build(self) -> FitParts:
        """Return the models of the members, which have their own losses and solvers."""
        self.make_model()
        return FitParts(None, self._part_of("model"), None)  # "auto" has members once it has data

    def _run(
        self, parts: FitParts, inputs: FitData, functions: Any, show: Any, checkpoint: Any
    ) -> Result:
        self._show = show  # the fits of the members are shown, not only the single round
        try:
            return super()._run(parts, inputs, functions, show, checkpoint)
        finally:
            del self._show

    def _rounds(
        self,
        parts: FitParts,  # noqa: ARG002
        inputs: FitData,
        resume: Resume,  # noqa: ARG002
    ) -> Iterator[Round]:
        """Yield one round, with all members; after Ctrl-C with the members fitted so far."""
        if inputs.start is not None:
            raise UsageError("a blend is not continued; continue a member, and use Blend.of.")
        data, valid = inputs.data, inputs.valid
        seed, members = seed_of(self.random_state), self._checked_members(data)
        selects = metric(self.metric, convention=self.convention).for_selection()
        self.out_of_fold_ = self._on_folds(members, data, seed)
        stack = None  # with too few queries for folds
        if self.out_of_fold_:
            scores = np.array([result.by_repeat for result in self.out_of_fold_.values()])
            stack = Stack(data, scores, selects, self.n_jobs)
        weights = self._weigh(stack, len(members), seed)
        is_used = dict(zip(members, weights > 0.0, strict=True))
        models, is_interrupted = self._on_all(
            {name: member for name, member in members.items() if is_used[name]}, data, valid
        )
        numbers = [[*members].index(name) for name in models]
        if stack is None:
            variances = [within_queries(scores_of(m, data), data) for m in models.values()]
            deviations = np.sqrt(variances)
        else:
            deviations = stack.deviations[numbers]
        kinds = [members[name].model_name for name in models]
        blend = _blended(models, kinds, weights[numbers], deviations)
        loss = Stack(data, blend.scores_of(data)[None, None], selects).loss(np.ones(1))
        yield Round(1, loss, None if valid is None else blend.scores_of(valid), lambda: blend)
        if is_interrupted:
            raise KeyboardInterrupt

    def _on_folds(
        self, members: dict[str, Ranker], data: RankingData, seed: int
    ) -> dict[str, OutOfFold]:
        """Return the out-of-fold scores of each member; none with too few queries."""
        folds = min(self.folds, data.n_queries)
        if folds < 2:
            return {}
        return {
            name: out_of_fold(
                member,
                data,
                folds,
                choose_rounds=True,
                progress=self._progress(number, f"{name} on folds"),
                random_state=seed,
            )
            for number, (name, member) in enumerate(members.items(), start=1)
        }

    def _weigh(self, stack: Stack | None, n_members: int, seed: int) -> F64:
        """Return the weight of each member; the weights add up to 1."""
        if self.weights is not None:
            weights = _checked_weights(self.weights, n_members)
            return np.asarray(weights / weights.sum())
        if stack is None:
            return np.full(n_members, 1.0 / n_members)
        single = best_alone(stack, self.shrinkage, seed)
        if single is not None:
            return np.asarray(np.eye(n_members)[single])
        return stack.fit_weights(self.shrinkage)

    def _on_all(
        self, members: dict[str, Ranker], data: RankingData, valid: RankingData | None
    ) -> tuple[dict[str, FittedModel], bool]:
        """Return the models of members fitted to all data, and whether Ctrl-C ended the fits."""
        models: dict[str, FittedModel] = {}
        for name, member in members.items():
            result = self.out_of_fold_.get(name) if valid is None else None
            rounds = None if result is None else result.rounds_for(data.n_queries)
            copy = clone(member) if rounds is None else with_rounds(member, rounds)
            number = len(self.out_of_fold_) + len(models) + 1
            try:
                copy.fit(data, eval_set=valid, progress=self._progress(number, name))
            except KeyboardInterrupt:
                if not models and hasattr(copy, "interrupted_"):  # keep the rounds of the first
                    models[name] = copy._fitted()
                if not models:
                    raise
                return models, True
            models[name] = copy._fitted()
        return models, False

    def _progress(self, number: int, title: str) -> Callable[[int, str], None] | None:
        """Return a function that shows the rounds of a fit, or None without progress."""
        show = self._show
        return None if show is None else lambda t, text: show(number, f"{title}, {t}: {text}")

    @property
    def weights_(self) -> dict[str, float]:
        """Weights of members by name, the largest first, for scores with the same deviation.

        They add up to 1. Members with the weight 0 are not included.
        """
        model: Any = self._fitted()
        pairs = zip(model.names, (model.weights / model.weights.sum()).tolist(), strict=True)
        return dict(sorted(pairs, key=lambda pair: -pair[1]))


def default_members(data: RankingData | None = None, **common: Any) -> dict[str, Ranker]:
    """Return the members of "auto" that support the data."""
    trees = {
        "gbrank": ranker("gbrank", **common),
        "random_forest": ranker("random_forest", n_bags=_BAGS, **common),
    }
    if data is not None and (data.categories or _has_gaps(data)):
        return trees
    smooth = {"memr": ranker("memr", **common)}
    if find_spec("torch"):
        smooth["ranknet"] = ranker("ranknet", **common)
    return {**smooth, **trees}


def best_alone(stack: Stack, pull: float, seed: int) -> int | None:
    """Return the best member if it is clearly better than the blend, else None.

    The weights of the blend are fitted to other queries than it is evaluated on.
    """
    sign = 1.0 if stack.metric.maximise else -1.0
    single = sign * stack.members_per_query()
    best = int(np.argmax(np.nanmean(single, axis=1)))
    blended = sign * stack.cross_fitted(pull, seed)
    return best if clearly_better(single[best], blended, _LEAD) else None


def _has_gaps(data: RankingData) -> bool:
    values = data.X if isinstance(data.X, np.ndarray) else data.X.data[:, None]
    return any(np.isnan(values[block]).any() for block in blocks(values))


def _blended(
    models: Mapping[str, FittedModel], kinds: Sequence[str], weights: F64, deviations: F64
) -> FittedBlend:
    """Return the blend of models; a deviation of 0 (constant scores) counts as 1."""
    return FittedBlend(
        names=tuple(models),
        kinds=tuple(kinds),
        members=tuple(models.values()),
        weights=weights,
        deviations=np.where(deviations > 0.0, deviations, 1.0),
        n_features=next(iter(models.values())).n_features,
    )


def _checked_weights(weights: Any, n_members: int) -> F64:
    """Return weights as an array after checking them."""
    try:
        array = np.array(weights, np.float64)
    except (TypeError, ValueError):
        raise UsageError(f"weights must be numbers, not {weights!r}.") from None
    if array.shape != (n_members,):
        raise UsageError(f"there are {array.size} weights for {n_members} members; give one each.")
    if not (np.isfinite(array).all() and (array >= 0.0).all() and array.any()):
        raise UsageError(f"weights must be 0 or more, and not all 0; they are {array.tolist()}.")
    return array


def _member(name: str, parameters: dict[str, Any]) -> Ranker:
    """Return a member of a blend by its name."""
    try:
        return ranker(name, **parameters)
    except UsageError as error:
        raise UsageError(f"members: {error}") from None
