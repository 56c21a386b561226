"""`Blend`: several rankers as one, weighted by what they are worth on queries they have not seen.

Members are fitted to folds of whole queries (`rankwright.rankers.out_of_fold`), weights to their
scores (`rankwright.rankers.stacking`), and then every member that has a weight to all data. What
comes out is one model (`rankwright.models.blend`), whose score is a sum over its members.
"""

from __future__ import annotations

import copy
import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import clone

from rankwright import registry
from rankwright.core.dtypes import blocks
from rankwright.core.parameters import check_whole, check_zero_or_more, seed_of
from rankwright.core.types import F64, I64, AnyArray, FittedModel
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, IncompatibleError, UsageError
from rankwright.metrics.base import Metric, metric
from rankwright.models.blend import Blend as BlendModel
from rankwright.models.blend import FittedBlend
from rankwright.models.callbacks import until_interrupted
from rankwright.rankers.base import Ranker, ranker
from rankwright.rankers.out_of_fold import FoldFit, OutOfFold, out_of_fold, with_rounds
from rankwright.rankers.selection import Selection
from rankwright.rankers.stacking import Stack, clearly_better, within_queries

if TYPE_CHECKING:
    from rankwright.persist.checkpoint import Checkpoint

AUTO = "auto"
_USERS = ("factorization", "jrank")  # models that score users, not features
_TEXTS = "texts"
_BAGS = 60
_ALONE = 3.0  # standard errors that the best of several members must lead a blend by


class Blend(Ranker):
    """Several rankers as one: the sum of their scores, each over its deviation, times a weight.

    Weights are 0 or more and fitted out of fold, after `breiman1996stacked`.

    Parameters
    ----------
    members : sequence of rankers or names, or "auto", default "auto"
        Rankers, or names of ``rankwright list rankers``, which stand for the ranker with its
        defaults and the common parameters of the blend; names may also be one text with commas,
        as on the command line. "auto" is one of each family: ``memr``,
        ``ranknet`` (where torch is installed), ``gbrank`` and ``random_forest`` of 60 bags; the
        latter two where the data has missing values or categories.
    weights : sequence of float or None, default None
        Weight of each member, 0 or more, for scores of like deviation; None fits them to the
        scores of folds.
    folds : int, default 5
        Number of folds of whole queries; the deviations are found on them too.
    shrinkage : float, default 100.0
        Pull of the weights towards their mean, which counts as much as this many queries: with far
        fewer the weights are nearly equal, with far more the data decide; 0 has no pull.
    metric : str, Metric or callable, default "ndcg@10"
        Metric that a single member is compared with the blend by, and that members given by name
        select by on validation data.
    convention : str, default "standard"
        How metrics are computed: one of ``rankwright list conventions``.
    random_state : int, RandomState, Generator or None, default 0
        Seed of the folds and of members given by name. The same int gives the same model; None
        does not.
    n_jobs : int or None, default None
        Number of threads. None and -1 take all CPUs that the process may use; the result is the
        same for any number.
    verbose : bool, default False
        Write a line per fit to standard error.

    Attributes
    ----------
    out_of_fold_ : dict from names to OutOfFold
        The scores of each member on queries that it was not fitted to, in the order of the
        training data, and the iterations that were kept; empty with too few queries for folds.

    Notes
    -----
    How many trees or epochs suit a member is chosen on the folds, for all of them at once; it is
    fitted to all data with as many, or with as many as ``eval_set`` chooses.

    If weights are fitted and a single member is better than the blend on the folds, by more than
    three standard errors of the difference, only that member is kept.

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
        folds: int = 5,
        shrinkage: float = 100.0,
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
        """Return the blend of fitted rankers, whose scores are multiplied by ``weights``.

        Nothing is fitted: the rankers must have been, to the same features.

        Parameters
        ----------
        fitted : mapping from names to fitted rankers
        weights : sequence of float
            One for each, 0 or more.
        deviations : sequence of float, optional
            What the scores of each are divided by; by default 1.
        **parameters
            Those of the blend, for when it is fitted again.
        """
        first = next(iter(fitted.values()))
        first._fitted()
        made = cls([clone(one) for one in fitted.values()], **parameters)
        members = made._checked_members()
        for name, one in fitted.items():
            _check_same_features(first, one, name)
        models = {name: one._fitted() for name, one in fitted.items()}
        kinds = {name: one.model_name for name, one in fitted.items()}
        given = _checked_weights(weights, len(members))
        spread = np.ones(len(given)) if deviations is None else np.array(deviations, np.float64)
        made.model_ = _blended(models, kinds, given, spread)
        for attribute in ("data_digest_", "n_features_in_", "feature_names_in_", "categories_"):
            if hasattr(first, attribute):
                setattr(made, attribute, getattr(first, attribute))
        made.curve_, made.evals_result_, made.out_of_fold_ = {}, {}, {}
        made.best_iteration_, made.interrupted_, made.resumed_from_ = 1, False, None
        made._with_qid = getattr(first, "_with_qid", False)
        made.qid_column_ = getattr(first, "qid_column_", None)
        return made

    # --- parameters --------------------------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; with ``deep``, those of the members as ``gbrank__x``."""
        own = super().get_params(deep=False)
        if not deep or not self._has_members():
            return own
        nested = {
            f"{name}__{key}": value
            for name, member in self._named_members().items()
            if isinstance(member, Ranker)
            for key, value in member.get_params(deep=True).items()
        }
        return {**own, **nested}

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``gbrank__num_leaves=7`` replaces that member by a changed copy."""
        if "members" in params:
            self.members = params.pop("members")
        nested = any("__" in name for name in params)  # nothing else looks at the members
        made = self._named_members() if nested and self._has_members() else {}
        changes: dict[str, dict[str, Any]] = defaultdict(dict)
        for name in [*params]:
            member, dots, field = name.partition("__")
            if dots and member in made:
                changes[member][field] = params.pop(name)
        super().set_params(**params)
        for member, own in changes.items():
            made[member] = clone(made[member]).set_params(**own)
        if changes:
            self.members = [*made.values()]
        return self

    def _has_members(self) -> bool:
        """Whether the members are known before the data."""
        return isinstance(self.members, Sequence) and not self._is_auto()

    def _has_own_model(self) -> bool:
        """Whether the default model is fitted, which a blend always does."""
        return True

    def _is_auto(self) -> bool:
        return isinstance(self.members, str) and self.members == AUTO

    def _common(self, random_state: Any) -> dict[str, Any]:
        """Return the parameters of members that are given by name."""
        return {
            "metric": self.metric,
            "convention": self.convention,
            "random_state": random_state,
            "n_jobs": self.n_jobs,
        }

    def _named_members(self, random_state: Any = None) -> dict[str, Any]:
        """Return the members by name; a second one of a kind is ``gbrank_2``."""
        common = self._common(self.random_state if random_state is None else random_state)
        found: dict[str, Any] = {}
        listed = self.members.split(",") if isinstance(self.members, str) else self.members
        for given in listed:
            made = ranker(given, **common) if isinstance(given, str) else given
            plain = getattr(made, "name", type(made).__name__)
            name, number = plain, 2
            while name in found:
                name, number = f"{plain}_{number}", number + 1
            found[name] = made
        return found

    def _checked_members(self, random_state: Any = None) -> dict[str, Ranker]:
        """Return the members by name, or say what is wrong with them."""
        if not self._has_members():
            raise UsageError(
                'members is a list of rankers or their names, or "auto", not '
                f"{self.members!r}; write Blend(['memr', 'gbrank'])."
            )
        found = self._named_members(random_state)
        if not found:
            raise UsageError("a blend needs at least one member.")
        for name, member in found.items():
            if not isinstance(member, Ranker):
                raise UsageError(f"a member of a blend is a ranker or its name, not {member!r}.")
            if isinstance(member, Blend):
                raise UsageError("a blend cannot be a member of another; give its members instead.")
            if member.model_name in _USERS:
                raise IncompatibleError(
                    f"{name} scores the items of the users it was fitted to, and a blend is fitted "
                    "to folds of other users; leave it out."
                )
        return found

    def _part_of(self, name: str) -> Any:
        if name != "model":
            return None
        members = self._named_members().values() if self._has_members() else ()
        parts = [one._part_of("model") for one in members if isinstance(one, Ranker)]
        return BlendModel(tuple(parts))

    def make_model(self) -> Any:
        """Return the models of all members, checked."""
        own = default_members() if self._is_auto() else self._checked_members()
        self._check()
        check_whole("folds", self.folds, 2)
        check_zero_or_more("shrinkage", self.shrinkage)
        if self.weights is not None:
            if self._is_auto():
                raise UsageError('weights need members that are named, not "auto".')
            _checked_weights(self.weights, len(own))
        return BlendModel(tuple(member.make_model() for member in own.values()))

    def _checkpoint(self, given: Checkpoint | str | Path | None, model: Any) -> Checkpoint | None:
        """Return a checkpoint that keeps every fit of a member: each takes its time."""
        made = super()._checkpoint(given, model)
        if made is not None:
            made = copy.copy(made)
            made.every = 1
        return made

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self._has_members():
            own = [m.__sklearn_tags__() for m in self._named_members().values()]
            tags.input_tags.allow_nan = all(one.input_tags.allow_nan for one in own)
        return tags

    # --- fitting -----------------------------------------------------------------------------

    def _fit_model(
        self,
        model: Any,  # noqa: ARG002
        data: RankingData,
        callback: Selection,
        start: FittedModel | None,
    ) -> FittedModel:
        if start is not None:
            raise UsageError("a blend is not continued; continue a member, and use Blend.of.")
        seed = seed_of(self.random_state)
        members = (
            default_members(data, **self._common(seed))
            if self._is_auto()
            else self._checked_members(seed)
        )
        steps = _Steps(callback)
        self.out_of_fold_ = self._on_folds(members, data, steps, seed)
        stack = self._stack(data)
        weights = self._weigh(stack, len(members), seed)
        chosen = [name for name, weight in zip(members, weights, strict=True) if weight > 0.0]
        fitted = self._on_all(members, chosen, data, callback, steps)
        at = [[*members].index(name) for name in fitted]
        deviations = (
            np.sqrt([within_queries(_scores(one, data), data) for one in fitted.values()])
            if stack is None  # too few queries for folds
            else stack.deviations[at]
        )
        kinds = {name: members[name].model_name for name in fitted}
        blend = _blended(fitted, kinds, weights[at], deviations)
        valid = None if callback.valid is None else blend.scores_of(callback.valid)
        train = blend.scores_of(data)
        loss = Stack(data, train[None, None], self._selects()).loss(np.ones(1))
        callback.on_iteration(1, loss, train if callback.wants_train else None, valid)
        return blend

    def _on_folds(
        self, members: dict[str, Ranker], data: RankingData, steps: _Steps, seed: int
    ) -> dict[str, OutOfFold]:
        """Return the out-of-fold scores of each member; of none with too few queries."""
        folds = min(self.folds, data.n_queries)
        if folds < 2:
            return {}
        found = {}
        for name, member in members.items():

            def fit(name: str = name, member: Ranker = member) -> dict[str, AnyArray]:
                scored = out_of_fold(
                    member,
                    data,
                    folds,
                    choose_rounds=True,
                    progress=steps.progress(f"{name} on folds"),
                    random_state=seed,
                )
                return _arrays_of(scored)

            found[name] = _out_of_fold_of(steps.take(fit))
        return found

    def _stack(self, data: RankingData) -> Stack | None:
        if not self.out_of_fold_:
            return None
        scores = np.array([one.by_repeat for one in self.out_of_fold_.values()])
        return Stack(data, scores, self._selects(), self.n_jobs)

    def _selects(self) -> Metric:
        return metric(self.metric, convention=self.convention).for_selection()

    def _weigh(self, stack: Stack | None, count: int, seed: int) -> F64:
        """Return the weight of each member, which add up to 1."""
        if self.weights is not None:
            given = _checked_weights(self.weights, count)
            shares: F64 = given / given.sum()
            return shares
        if stack is None:
            return np.full(count, 1.0 / count)
        single = best_alone(stack, self.shrinkage, seed)
        if single is not None:
            alone: F64 = np.eye(count)[single]
            return alone
        return stack.fit_weights(self.shrinkage)

    def _on_all(
        self,
        members: dict[str, Ranker],
        chosen: list[str],
        data: RankingData,
        callback: Selection,
        steps: _Steps,
    ) -> dict[str, FittedModel]:
        """Return the models of the chosen members, fitted to all data; Ctrl-C keeps those done."""
        done: dict[str, FittedModel] = {}
        with until_interrupted(callback, done):
            for name in chosen:
                member = members[name]
                if callback.valid is None and name in self.out_of_fold_:
                    rounds = self.out_of_fold_[name].rounds_for(data.n_queries)
                    member = member if rounds is None else with_rounds(member, rounds)

                def fit(name: str = name, member: Ranker = member) -> dict[str, AnyArray]:
                    made: Ranker = clone(member)
                    try:
                        made.fit(data, eval_set=callback.valid, progress=steps.progress(name))
                    except KeyboardInterrupt:
                        if done or not hasattr(made, "interrupted_"):
                            raise
                        callback.interrupted = True
                    return _model_arrays(made._fitted())

                held = steps.take(fit)
                done[name] = _model_of(member.model_name, held, data.n_features)
                if callback.interrupted:
                    break
        return done

    @property
    def weights_(self) -> dict[str, float]:
        """The weight of each member by its name, for scores of like deviation, the largest first.

        They add up to 1; members of weight 0 are left out.
        """
        model: Any = self._fitted()
        pairs = zip(model.names, (model.weights / model.weights.sum()).tolist(), strict=True)
        return dict(sorted(pairs, key=lambda pair: -pair[1]))


def default_members(data: RankingData | None = None, **common: Any) -> dict[str, Ranker]:
    """Return the members that "auto" stands for, those that take the data alone."""
    found = {"gbrank": ranker("gbrank", **common)}
    found["random_forest"] = ranker("random_forest", n_bags=_BAGS, **common)
    if data is not None and (data.categories or _has_gaps(data)):
        return found
    smooth = {"memr": ranker("memr", **common)}
    if find_spec("torch"):
        smooth["ranknet"] = ranker("ranknet", **common)
    return {**smooth, **found}


def best_alone(stack: Stack, pull: float, seed: int) -> int | None:
    """Return the best member where it is clearly better than the blend, else None.

    The weights that a blend is judged by are fitted to other queries.
    """
    sign = 1.0 if stack.metric.maximise else -1.0
    alone = sign * stack.members_per_query()
    best = int(np.argmax(np.nanmean(alone, axis=1)))
    together = sign * stack.cross_fitted(pull, seed)
    return best if clearly_better(alone[best], together, _ALONE) else None


def _has_gaps(data: RankingData) -> bool:
    values = data.X if isinstance(data.X, np.ndarray) else data.X.data[:, None]
    return any(np.isnan(values[block]).any() for block in blocks(values))


def _blended(
    models: Mapping[str, FittedModel], kinds: Mapping[str, str], weights: F64, deviations: F64
) -> FittedBlend:
    """Return the blend of models; what has no deviation is as good as a constant."""
    return FittedBlend(
        names=tuple(models),
        kinds=tuple(kinds[name] for name in models),
        members=tuple(models.values()),
        weights=np.asarray(weights, np.float64),
        deviations=np.where(deviations > 0.0, deviations, 1.0),
        n_features=next(iter(models.values())).n_features,
    )


def _scores(model: Any, data: RankingData) -> F64:
    scores: F64 = model.scores_of(data) if hasattr(model, "scores_of") else model.scores(data.X)
    return scores


def _checked_weights(given: Any, count: int) -> F64:
    """Return weights as an array, or say what is wrong with them."""
    try:
        weights = np.array(given, np.float64)
    except (TypeError, ValueError):
        raise UsageError(f"weights must be numbers, not {given!r}.") from None
    if weights.shape != (count,):
        raise UsageError(f"there are {weights.size} weights for {count} members; give one each.")
    if not (np.isfinite(weights).all() and (weights >= 0.0).all() and weights.any()):
        raise UsageError(f"weights must be 0 or more, and not all 0; they are {weights.tolist()}.")
    return weights


def _check_same_features(one: Ranker, other: Ranker, name: str) -> None:
    """Refuse members that were fitted to other features."""
    model = other._fitted()
    names, own = (getattr(each, "feature_names_in_", None) for each in (one, other))
    same_names = names is None or own is None or [*names] == [*own]
    if model.n_features != one._fitted().n_features or not same_names:
        raise DataError(f"{name} was fitted to other features than the first member.")


# --- checkpoints -------------------------------------------------------------------------------


class _Steps:
    """The fits of a blend, one after the other: those that a checkpoint has are not done again."""

    def __init__(self, callback: Selection) -> None:
        kept = callback.load_state()
        self._callback, self._number = callback, 0
        self._kept = [] if kept is None else [*kept.added]

    def take(self, fit: Callable[[], dict[str, AnyArray]]) -> Mapping[str, AnyArray]:
        """Return what ``fit`` returns, or what it returned before the checkpoint."""
        self._number += 1
        if self._number <= len(self._kept):
            return self._kept[self._number - 1]
        found = fit()
        self._callback.save_state(self._number, dict, lambda: found)
        return found

    def progress(self, what: str) -> Callable[[int, str], None] | None:
        """Return what shows the rounds of a fit, where somebody looks on."""
        shown = self._callback.progress
        number = self._number
        return None if shown is None else lambda t, text: shown(number, f"{what}, {t}: {text}")


def _arrays_of(found: OutOfFold) -> dict[str, AnyArray]:
    fits = found.fits
    return {
        "scores": found.by_repeat,
        "rounds": np.array([-1 if found.rounds is None else found.rounds]),
        "fits": np.array([[fit.n_fitted, fit.best_iteration] for fit in fits], np.int64),
        "sizes": np.array([len(fit.queries) for fit in fits], np.int64),
        "queries": np.concatenate([fit.queries for fit in fits]),
    }


def _out_of_fold_of(held: Mapping[str, AnyArray]) -> OutOfFold:
    queries: list[I64] = np.split(held["queries"], np.cumsum(held["sizes"])[:-1])
    fits = [
        FoldFit(own, n_fitted, best, 0.0)
        for own, (n_fitted, best) in zip(queries, held["fits"].tolist(), strict=True)
    ]
    rounds = int(held["rounds"][0])
    return OutOfFold(held["scores"], tuple(fits), None if rounds < 0 else rounds)


def _model_arrays(model: FittedModel) -> dict[str, AnyArray]:
    texts = np.frombuffer(json.dumps(model.texts()).encode(), np.uint8)
    return {f"model.{name}": array for name, array in model.arrays().items()} | {_TEXTS: texts}


def _model_of(kind: str, held: Mapping[str, AnyArray], n_features: int) -> FittedModel:
    arrays = {
        name.removeprefix("model."): array
        for name, array in held.items()
        if name.startswith("model.")
    }
    texts = json.loads(held[_TEXTS].tobytes())
    model: FittedModel = registry.resolve("models", kind).restore(arrays, texts, n_features)
    return model
