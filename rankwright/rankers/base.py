"""`Ranker`: one loss under a choice of models, as a scikit-learn estimator.

A ranker's signature is made of its loss's parameters, those of the models it may use (the first
is the default), and the common ones; a subclass names its parts and its own defaults and holds no
mathematics::

    class IntervalRank(Ranker):
        loss_name = "interval"
        models = ("trees", "linear")
        defaults = {"scale_by_size": True}

Where a loss and a model share a name, as IntervalRank's ``solver``, it is the loss's. Model
parameters stand at None, "the model's own default", so that one given for a model that is
not chosen can be told apart and refused.
"""
# Over the budget of 300 lines: all that a user calls on a ranker, in one class.

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError as SklearnNotFittedError

from rankwright import registry
from rankwright.core.dtypes import as_groups
from rankwright.core.order import shown
from rankwright.core.types import F64, I64, FittedModel, Loss, Model
from rankwright.data.content import content_digest
from rankwright.data.ranking_data import RankingData
from rankwright.errors import RankwrightError, UsageError
from rankwright.metrics.evaluation import evaluate
from rankwright.metrics.names import metric
from rankwright.rankers.footprint import check_room
from rankwright.rankers.inputs import (
    features_like,
    ranking_data,
    refuse_misnamed,
    tell_of_equal_grades,
    tell_of_equal_scores,
    valid_data,
)
from rankwright.rankers.parameters import (
    all_parameters,
    check_parameters,
    constructor,
    loss_parameters,
    models_with,
    own_model_parameters,
)
from rankwright.rankers.search_space import Domain
from rankwright.rankers.selection import Progress, Selection

if TYPE_CHECKING:
    from rankwright.persist.checkpoint import Checkpoint


class NotFittedError(RankwrightError, SklearnNotFittedError):  # type: ignore[misc]
    """A ranker was used before it was fitted."""


class NoPartialFitError(UsageError, AttributeError):
    """A ranker was asked to go on query by query, but its model or solver cannot."""


class Ranker(BaseEstimator):  # type: ignore[misc]
    """Base of all rankers; see a subclass for its parameters.

    Attributes
    ----------
    model_ : the fitted model
    curve_ : dict of lists
        Loss, and the metric on train and valid, after each round.
    best_iteration_ : int
        The round that is kept, counted from 1; trees and rules of ``start`` count as rounds.
    interrupted_ : bool
        Whether Ctrl-C ended the fit after some rounds, of which the best is kept.
    resumed_from_ : int or None
        The round that the fit went on from, by its checkpoint.
    n_features_in_ : int
    feature_names_in_ : array of str, where the features had names
    """

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"qid": True}
    __metadata_request__partial_fit: ClassVar[dict[str, bool]] = {"qid": True}
    __metadata_request__score: ClassVar[dict[str, bool]] = {"qid": True}

    name: ClassVar[str]
    loss_name: ClassVar[str | None] = None
    models: ClassVar[tuple[str, ...]]
    defaults: ClassVar[dict[str, Any]] = {}
    model_defaults: ClassVar[dict[str, dict[str, Any]]] = {}  # of one model alone
    search_space: ClassVar[dict[str, Domain | None]] = {}  # what tuning may choose
    model_search_space: ClassVar[dict[str, dict[str, Domain | None]]] = {}  # under one model

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.name = cls.__module__.rpartition(".")[2]
        if hasattr(cls, "models"):  # a base of rankers names none
            cls.__init__ = constructor(all_parameters(cls))  # type: ignore[method-assign]

    # --- fitting -----------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        qid: Any = None,
        group_sizes: Any = None,
        sample_weight: Any = None,
        query_weight: Any = None,
        eval_set: Any = None,
        start: Ranker | None = None,
        progress: Progress | None = None,
        checkpoint: Checkpoint | str | Path | None = None,
        **misnamed: Any,
    ) -> Self:
        """Fit to documents X with grades y, grouped by ``qid`` or ``group_sizes``.

        Parameters
        ----------
        X : array, sparse matrix, frame or RankingData
            With a frame, ``y`` and ``qid`` may be names of its columns.
        sample_weight, query_weight : array
            Weight of each document, and of each query. A document of weight 0 is left out.
        eval_set : RankingData or (X, y, qid)
            Valid data: selects the best round, and l2 where that is "auto".
        start : fitted ranker
            Continue from its model; ``n_trees``, ``n_rounds`` or ``epochs`` are added to it.
        progress : callable
            Called with the round and a short text after each round.
        checkpoint : rankwright.Checkpoint, or a folder
            Where to keep the run, so that one that was killed can go on.
        """
        # Over the budget of 40 lines: a quarter are the arguments.
        refuse_misnamed(misnamed)
        given = ranking_data(X, y, qid, group_sizes, sample_weight, query_weight)
        data = given.present()
        tell_of_equal_grades(data)
        self._with_qid = qid is not None or group_sizes is not None or given.n_queries > 1
        valid = None if eval_set is None else valid_data(eval_set, data)
        check_room(self, data, valid)
        watch = Selection(
            metric=self.select_metric or self.metric,
            convention=self.convention,
            train=data,
            valid=valid,
            early_stopping=self.early_stopping,
            progress=progress or (print_round if self.verbose else None),
            n_threads=self.n_threads,
            checkpoint=_checkpoint(checkpoint),
        )
        begun = start._fitted() if start else None
        try:
            self.resumed_from_ = self._resume(watch, data, begun)
            self.model_: FittedModel = self._fit_model(data, watch, begun)
        finally:
            if watch.checkpoint is not None:
                watch.checkpoint.end()
        self.data_digest_ = content_digest(given, n_threads=self.n_threads)
        self.curve_ = watch.curve
        self.best_iteration_ = watch.best()
        self.interrupted_ = watch.interrupted
        self._note_features(data)
        tell_of_equal_scores(self.model_, data)
        return self

    @property
    def partial_fit(self) -> Callable[..., Self]:
        """Go on with more queries: ``partial_fit(X, y, *, qid, ...)``, as `fit`.

        For linear models with ``solver="online"``. The first call starts, later ones take a step
        for each of their queries, in the order of the rows; predict works in between.
        """
        solver = getattr(self, "solver", None) or self._presets().get("solver")
        if self.model != "linear" or solver != "online":
            solved = f" with solver='{solver}'" if solver and self.model == "linear" else ""
            raise NoPartialFitError(
                "partial_fit goes on query by query, which only a linear model with "
                f"solver='online' does; the model is '{self.model}'{solved}."
            )
        return self._go_on

    def _go_on(
        self,
        X: Any,
        y: Any = None,
        *,
        qid: Any = None,
        group_sizes: Any = None,
        sample_weight: Any = None,
        query_weight: Any = None,
    ) -> Self:
        data = ranking_data(X, y, qid, group_sizes, sample_weight, query_weight)
        before: Any = getattr(self, "model_", None)
        if before is not None:
            known = getattr(self, "feature_names_in_", None)
            names = None if known is None else tuple(known)
            data = replace(data, X=features_like(self, data), feature_names=names)
        model: Any = self.make_model()
        self.model_ = model.partial_fit(
            self.make_loss(data), data.present(), start=before, n_threads=self.n_threads
        )
        digests = [self.data_digest_] if before is not None else []
        digests.append(content_digest(data, n_threads=self.n_threads))
        self.data_digest_ = digests[0] if len(digests) == 1 else _digest_of(digests)
        past = self.curve_["loss"] if before is not None else []
        self.curve_ = {"loss": [*past, *self.model_.solution.curve]}  # type: ignore[attr-defined]
        self.best_iteration_, self.interrupted_ = len(self.curve_["loss"]), False
        self._with_qid = qid is not None or group_sizes is not None or data.n_queries > 1
        self._note_features(data)
        return self

    def _resume(self, watch: Selection, data: RankingData, start: FittedModel | None) -> int | None:
        """Let ``watch`` go on from its checkpoint, where it has one; return the round of that."""
        if watch.checkpoint is None:
            return None
        from rankwright.persist.run_receipt import run_receipt

        kept = watch.checkpoint.begin(run_receipt(self, data, watch.valid, start))
        if kept is None:
            return None
        watch.go_on(kept)
        return kept.round

    def _note_features(self, data: RankingData) -> None:
        self.n_features_in_ = data.n_features
        if data.feature_names is not None:
            self.feature_names_in_ = np.array(data.feature_names, object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _fit_model(
        self, data: RankingData, watch: Selection, start: FittedModel | None
    ) -> FittedModel:
        return self.make_model().fit(
            self.make_loss(data),
            data,
            watch=watch,
            start=start,
            seed=self.seed,
            n_threads=self.n_threads,
        )

    def make_loss(self, data: RankingData) -> Loss:  # noqa: ARG002
        """Return the loss of this ranker's parameters, for ``data``."""
        assert self.loss_name is not None, "a ranker without a loss of its own makes it itself"
        kind = registry.resolve("losses", self.loss_name)
        made: Loss = kind(**{f.name: getattr(self, f.name) for f in fields(kind)})
        return made

    def make_model(self) -> Model:
        """Return the chosen model with this ranker's parameters."""
        if self.model not in self.models:
            known = ", ".join(self.models)
            raise UsageError(
                f"{type(self).__name__} has no model '{self.model}'; it takes {known}."
            )
        kind = registry.resolve("models", self.model)
        own = self._fields_of_model() - loss_parameters(type(self)).keys()
        given = {
            name: getattr(self, name)
            for name in own_model_parameters(type(self))
            if getattr(self, name) is not None
        }
        stray = sorted(given.keys() - own)
        if stray:
            raise UsageError(
                f"{stray[0]} is not a parameter of model '{self.model}'; leave it out, "
                f"or choose the model it belongs to ({', '.join(models_with(stray[0]))})."
            )
        preset = {name: value for name, value in self._presets().items() if name in own}
        of_loss = [] if self.loss_name is None else [registry.resolve("losses", self.loss_name)]
        check_parameters([*of_loss, kind], self.get_params(deep=False))
        if hasattr(kind, "check_installed"):
            kind.check_installed()
        made: Model = kind(**{**preset, **given})
        return made

    def _presets(self) -> dict[str, Any]:
        """Return this ranker's own defaults under the chosen model."""
        return {**self.defaults, **self.model_defaults.get(self.model, {})}

    # --- use ---------------------------------------------------------------------------------

    def predict(self, X: Any, *, qid: Any = None) -> F64:
        """Return a score for each row; a higher one ranks first.

        For arrays and frames in the caller's order of rows, for RankingData in its own. ``qid``
        matters to models that look at whole lists alone: networks with a list context.
        """
        features = features_like(self, X)
        model: Any = self._fitted()
        if not hasattr(model, "scores_of") or (qid is None and not isinstance(X, RankingData)):
            scores: F64 = model.scores(features, n_threads=self.n_threads)
            return scores
        if isinstance(X, RankingData):
            in_lists: F64 = model.scores_of(replace(X, X=features), n_threads=self.n_threads)
            return in_lists
        data = RankingData.from_arrays(features, None, qid=qid)
        in_order: F64 = data.in_caller_order(model.scores_of(data, n_threads=self.n_threads))
        return in_order

    def rank(
        self,
        X: Any,
        *,
        qid: Any = None,
        group: Any = None,
        per_group: int | None = None,
        top: int | None = None,
    ) -> I64:
        """Return row numbers, best first, query after query.

        With ``per_group`` at most that many documents of each ``group`` (host, topic) are kept
        per query, and with ``top`` that many documents in all; the others are left out. A ``group``
        of rows x topics lets topics overlap: `rankwright.core.order.limit_per_group`.
        """
        if top is not None and top < 1:
            raise UsageError(f"top must be 1 or more, not {top}.")
        if isinstance(X, RankingData):
            data = X if group is None else replace(X, group=as_groups(group, "group", len(X.y)))
        else:
            features = features_like(self, X)
            ids = np.zeros(features.shape[0], np.int64) if qid is None else qid
            data = RankingData.from_arrays(features, None, qid=ids, group=group)
        order, _ = shown(
            self.predict(data),
            data.indptr,
            group=None if per_group is None else data.group_shares(),
            per_group=per_group,
            top=top,
            n_threads=self.n_threads,
        )
        return order if data.row is None else data.row[order]

    def score(self, X: Any, y: Any = None, *, qid: Any = None, sample_weight: None = None) -> float:
        """Return the mean of the selection metric over queries, ties averaged over their orders.

        scikit-learn's searches select by it; ``sample_weight`` is there for its pipelines, which
        always name it.
        """
        if sample_weight is not None:
            raise UsageError("metrics have no weights of documents; leave sample_weight out.")
        if qid is None and not isinstance(X, RankingData) and getattr(self, "_with_qid", False):
            raise UsageError(
                "this ranker was fitted with qid: score needs qid=... too "
                "(in cross-validation, pass params={'qid': qid})."
            )
        data = ranking_data(X, y, qid)
        name = self.select_metric or self.metric
        selects = metric(name, convention=self.convention).for_selection()
        return evaluate(data, self.predict(data), selects)[repr(selects)]

    def save(self, path: str | Path) -> None:
        """Write the fitted ranker to a model file; `rankwright.load_model` reads it."""
        from rankwright.persist.model_file import save_model

        save_model(self, path)

    def _fitted(self) -> FittedModel:
        if not hasattr(self, "model_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first.")
        return self.model_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        fills = self.model in registry.MODELS and "missing" in self._fields_of_model()
        tags.input_tags.allow_nan = not fills or getattr(self, "missing", None) is not None
        tags.target_tags.required = True
        return tags

    def _fields_of_model(self) -> set[str]:
        return {f.name for f in fields(registry.resolve("models", self.model))}

    @property
    def coef_(self) -> F64:
        """Weights of a linear model, in the scale of the data."""
        coef: F64 = self._part("coef", "linear")
        return coef

    @property
    def weights_(self) -> dict[str, float]:
        """Weights of a linear model by the name of their feature, the largest first.

        Features without names go by their number, from 1, as in LETOR files.
        """
        coef = self.coef_
        names = getattr(self, "feature_names_in_", np.arange(1, len(coef) + 1))
        order = np.argsort(-np.abs(coef), kind="stable")
        return {str(names[column]): float(coef[column]) for column in order}

    @property
    def booster_(self) -> Any:
        """LightGBM's own model of a tree ensemble."""
        return self._part("booster", "tree")

    @property
    def solution_(self) -> Any:
        """How the solver of a linear model ended: value, optimality, iterations and why."""
        return self._part("solution", "linear")

    def _part(self, name: str, family: str) -> Any:
        if not hasattr(self._fitted(), name):
            raise AttributeError(f"only a {family} model has this; the model is '{self.model}'.")
        return getattr(self.model_, name)


def ranker(name: str, /, **parameters: Any) -> Ranker:
    """Return the ranker called ``name``, such as ``lambdamart``, with the given parameters."""
    made: Ranker = registry.resolve("rankers", name)(**parameters)
    return made


def _checkpoint(given: Checkpoint | str | Path | None) -> Checkpoint | None:
    """Return the checkpoint of a fit; a folder alone is one of the usual kind."""
    if given is None:
        return None
    from rankwright.persist.checkpoint import Checkpoint

    return given if isinstance(given, Checkpoint) else Checkpoint(given)


def _digest_of(digests: list[str]) -> str:
    return hashlib.sha256(" ".join(digests).encode()).hexdigest()


def print_round(t: int, text: str) -> None:
    """Tell of a round on standard error: the progress of verbose fits."""
    import sys

    sys.stderr.write(f"{t:6d}  {text}\n")
