"""`Ranker`: any loss with any model, as a scikit-learn estimator, and the base of named algorithms.

A named algorithm is a subclass that names its loss and its default model and declares parameters;
it contains no mathematics. `rankwright.rankers.parameters` shows how ours are declared. A subclass
with a written-out ``__init__`` works as well.

A parameter with the name of a field of the loss is passed to the loss; one with the name of a field
of the default model is passed to that model, unless ``model`` replaces it.
"""

from __future__ import annotations

import hashlib
import inspect
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError as SklearnNotFittedError

from rankwright import registry
from rankwright.core.dtypes import as_groups, naming_features
from rankwright.core.parameters import (
    PARTS,
    Auto,
    Count,
    check_parameters,
    check_value,
    declared_types,
    field_names,
    params_of,
    part_name,
    resolve_part,
    same,
    seed_of,
    unknown_parameter,
    with_params,
)
from rankwright.core.types import F64, AnyArray, FittedModel, Loss, Model, Round
from rankwright.data.click_log import ClickLog
from rankwright.data.content import content_digest, digest_of_prints, query_prints
from rankwright.data.frames import listed
from rankwright.data.inspect import warn_of_outcomes
from rankwright.data.ranking_data import RankingData, concatenate, refuse_second_columns
from rankwright.data.rankings import Ranking
from rankwright.errors import (
    DataError,
    IncompatibleError,
    RankwrightError,
    UsageError,
    quoted,
)
from rankwright.metrics.base import has_gain, metric
from rankwright.metrics.evaluation import evaluate
from rankwright.models.schema import refuse_not_finite
from rankwright.rankers.fitting import (
    AUTO_ROUNDS,
    Checkpointing,
    EarlyStopping,
    EvaluationHistory,
    IterationCallback,
    Progress,
    ProgressBar,
    Result,
    Resumed,
    UserCallbacks,
    as_checkpoint_error,
    check_callbacks,
    progress_function,
    run,
)
from rankwright.rankers.inputs import (
    data_in_columns,
    documents_of,
    eval_sets,
    features_like,
    how_to_route_qid,
    query_column,
    ranking_data,
    refuse_categories,
    refuse_misnamed,
    refuse_overflow,
    warn_of_cut_queries,
    warn_of_equal_grades,
    warn_of_equal_scores,
    warn_of_training_data,
)

if TYPE_CHECKING:
    from rankwright.persist.checkpoint import Checkpoint


Rounds = Count | Auto | None


class NotFittedError(RankwrightError, SklearnNotFittedError):  # type: ignore[misc]
    """A ranker was used before it was fitted."""


class NoPartialFitError(UsageError, AttributeError):
    """A ranker was asked to go on query by query, but its model or solver cannot."""


@dataclass(frozen=True)
class FitData:
    """Data of a fit as models see them: RankingData, or partitions on other machines.

    Partitions have a ``digest`` for checkpoints, and ``evaluators`` if their validation data are on
    other machines too.
    """

    data: Any
    valid: Any  # all of ``eval_sets``
    eval_sets: Mapping[str, RankingData]
    start: FittedModel | None
    digest: str | None = None
    evaluators: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class _Inputs(FitData):
    """The data of a fit: ``source`` as the caller gave them, ``data`` as models see them."""

    data: RankingData
    valid: RankingData | None
    source: RankingData
    qid_column: str | None
    has_qid: bool
    has_ids: bool


class Ranker(BaseEstimator):  # type: ignore[misc]
    """Any loss with any model, given as objects or by name.

    Parameters
    ----------
    loss : loss or str, default "ranknet"
        Loss to minimise: an object such as ``losses.ListNet(k=3)``, any object with ``traits`` and
        ``bind``, a function wrapped by ``losses.from_function``, or a name from ``rankwright list
        losses`` for that loss with its defaults.
    model : model or str, default "linear"
        Model of the scores: an object such as ``models.Trees(n_estimators=200)``, or a name from
        ``rankwright list models``.
    solver : solver, str or None, default None
        Solver for the weights of a linear or kernel model: an object such as
        ``solvers.TRON(tol=1e-6)`` or a name from ``rankwright list solvers``. None selects lbfgs
        for smooth losses, sgd for stochastic losses and losses whose gradient is not the gradient
        of any function, and online otherwise. Trees and networks have no solver.
    metric : str, Metric or callable, default "ndcg@10"
        Metric that selects the iteration, and parameters set to "auto", on the validation set.
    convention : str, default "standard"
        Convention that metrics follow, from ``rankwright list conventions``.
    early_stopping_rounds : int, None or "auto", default "auto"
        Stop after this many iterations without improvement on the validation set. None disables
        early stopping. "auto" stops boosted trees 50 rounds after the maximum of the validation
        curve, smoothed over 21 rounds, and keeps the trees up to the maximum; it does not stop
        other models.
    random_state : int, RandomState, Generator or None, default 0
        Seed of all random sampling. The same int gives the same model; None does not.
    n_jobs : int or None, default None
        Number of threads. None and -1 use all CPUs available to the process (in scikit-learn, None
        is one). The result does not depend on it.
    verbose : bool, default False
        Write a line per iteration to standard error.

    Attributes
    ----------
    model_ : the fitted model
    curve_ : dict of lists
        Loss, and the metric on each validation set, after each iteration.
    evals_result_ : dict of dicts of lists
        The metric on each validation set after each iteration, by name.
    best_iteration_ : int
        The selected iteration, counted from 1; trees and rules of ``init_model`` count.
    interrupted_ : bool
        Whether Ctrl-C ended the fit after some iterations. The ranker then has the best model so
        far, and ``fit`` raises KeyboardInterrupt, which also ends a loop of fits.
    resumed_from_ : int or None
        The iteration that the fit resumed from, by its checkpoint.
    n_features_in_ : int
    feature_names_in_ : array of str, if the features had names
    categories_ : dict from names to Categories, if features are categorical
        Categories by code. ``predict`` looks up the categories of a frame by value.
    qid_column_ : str or None
        Name of the column of query ids in the training frame or table. `rank` and `explain` use it
        for other frames.

    See Also
    --------
    LambdaMART, MEMR, RankNet : named algorithms, each a loss with a default model.

    Examples
    --------
    >>> import rankwright as rw
    >>> ranker = rw.Ranker(loss="listnet", model=rw.models.Trees(n_estimators=50))
    """

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"qid": True}
    __metadata_request__partial_fit: ClassVar[dict[str, bool]] = {"qid": True}
    __metadata_request__score: ClassVar[dict[str, bool]] = {"qid": True}

    name: ClassVar[str] = "ranker"
    loss_class: ClassVar[str | None] = None  # the loss of a named algorithm, by registry name
    model_class: ClassVar[str | None] = None  # its default model
    model_defaults: ClassVar[dict[str, dict[str, Any]]] = {}  # of other models, given by name
    fixed: ClassVar[dict[str, Any]] = {}  # parameters of loss and model that define the algorithm
    search_space: ClassVar[dict[str, Any]] = {}  # in addition to the space of the model

    def __init__(
        self,
        loss: Any = "ranknet",
        model: Any = "linear",
        *,
        solver: Any = None,
        metric: Any = "ndcg@10",
        convention: str = "standard",
        early_stopping_rounds: Rounds = "auto",
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.loss = loss
        self.model = model
        self.solver = solver
        self.metric = metric
        self.convention = convention
        self.early_stopping_rounds = early_stopping_rounds
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "name" not in cls.__dict__:
            cls.name = cls.__name__.lower()
        if "__init__" in cls.__dict__:
            cls.__init__ = checked_parameters(cls.__init__)  # type: ignore[method-assign]

    # --- parameters --------------------------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; with ``deep``, also ``model__x`` and so on for the parts.

        A name, or None, is resolved to the part with the parameters that it has in this ranker.
        """
        params: dict[str, Any] = super().get_params(deep=False)
        for name in [name for name in PARTS if deep and name in params]:
            nested = params_of(self._part_of(name))
            params |= {f"{name}__{key}": value for key, value in nested.items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``model__num_leaves=7`` replaces the model by a changed copy.

        Objects of the caller are never changed.
        """
        names = self._get_param_names()
        nested: dict[str, dict[str, Any]] = defaultdict(dict)
        for name, value in params.items():
            part, separator, field = name.partition("__")
            if part not in names or (separator and part not in PARTS):
                raise self._unknown_parameter(name, self._part_of("model"))
            if separator:
                nested[part][field] = value
            else:
                setattr(self, name, value)
        for part, changes in nested.items():
            if part == "model" and self._has_own_model():
                self._change_own_model(changes)
            else:
                setattr(self, part, with_params(self._part_of(part), changes))
        return self

    def _change_own_model(self, changes: dict[str, Any]) -> None:
        """Change the default model: by parameters of this ranker, or else by a model object."""
        names = self._model_parameters()
        if not changes.keys() <= names:
            self.model = with_params(self._part_of("model"), changes)
            defaults = _defaults(type(self))
            changes = {name: defaults[name] for name in names}  # they are in the model object now
        for name, value in changes.items():
            setattr(self, name, value)

    def _part_of(self, name: str) -> Any:
        """Return the loss, model or solver of a parameter; None if there is no solver."""
        if name == "model" and self._has_own_model():
            return self._own_part("models", self.model_class)
        given = getattr(self, name, None)
        if given is None:
            return None
        part = resolve_part(PARTS[name], given)
        if name == "model" and isinstance(given, str):
            return with_params(part, self.model_defaults.get(given, {}))
        return part

    def _has_own_model(self) -> bool:
        """Return whether the ranker fits the default model of a named algorithm."""
        name = self.model_class
        return name is not None and (self.model is None or same(self.model, name))

    def _own_part(self, kind: str, name: str | None) -> Any:
        """Return the loss or default model of a named algorithm, with this ranker's parameters."""
        assert name is not None, "a named algorithm names its parts"
        part, names = registry.resolve(kind, name), field_names(kind, name)
        params = {**super().get_params(deep=False), **self.fixed}
        return part(**{name: value for name, value in params.items() if name in names})

    def _model_parameters(self) -> set[str]:
        """Return the names of the parameters that are passed only to the default model."""
        if self.model_class is None:
            return set()
        names = field_names("models", self.model_class) & set(self._get_param_names())
        return names if self.loss_class is None else names - field_names("losses", self.loss_class)

    @classmethod
    def _unknown_parameter(cls, name: str, model: Any) -> UsageError:
        """Return the error for a parameter that rankers of this class do not have."""
        names = cls._get_param_names()
        loss = None if "loss" in names else cls.loss_class
        return unknown_parameter(cls.__name__, name, names, model, loss)

    def make_loss(self) -> Loss:
        """Return the loss with the parameters of this ranker."""
        loss: Any
        if not hasattr(self, "loss"):
            loss = self._own_part("losses", self.loss_class)
        else:
            loss = resolve_part("losses", self.loss)
            if not hasattr(loss, "bind") or not hasattr(loss, "traits"):
                hint = "; losses.from_function makes a loss of a function" if callable(loss) else ""
                raise UsageError(f"{loss!r} is not a loss: it has no bind(data) and traits{hint}.")
        check_parameters(loss)
        checked: Loss = loss
        return checked

    def make_model(self) -> Model:
        """Return the model with the parameters of this ranker, checked."""
        model: Model = self._part_of("model")
        if not self._has_own_model():
            self._refuse_parameters_of_own_model()
        if not hasattr(model, "rounds"):
            raise UsageError(f"{model!r} is not a model: it has no rounds(loss, data).")
        check_parameters(model)
        for check in ("check_installed", "check"):
            if hasattr(model, check):
                getattr(model, check)()
        self._check()
        return model

    def _refuse_parameters_of_own_model(self) -> None:
        """Raise if a parameter of the default model is set and another model replaces it."""
        defaults = _defaults(type(self))
        for name in sorted(self._model_parameters()):
            if not same(getattr(self, name), defaults[name]):
                model = self.model if isinstance(self.model, str) else type(self.model).__name__
                raise UsageError(
                    f"{name} is a parameter of {type(self).__name__}'s default model "
                    f"'{self.model_class}', which model={model} replaces; give it to that model, "
                    "such as model=models.Linear(l2=1), or leave it out."
                )

    def _check(self) -> None:
        """Raise if a parameter of the ranker itself is invalid; loss and model check theirs."""
        kind: Any = type(self)
        types = declared_types(kind)
        of_parts = {name for part in self._part_classes() for name in declared_types(part)}
        for name, value in super().get_params(deep=False).items():
            if name in types and name not in of_parts:
                check_value(name, value, types[name])

    def _part_classes(self) -> list[type]:
        """Return the classes of the default model and the loss."""
        parts = (("models", self.model_class), ("losses", self.loss_class))
        return [registry.resolve(kind, part) for kind, part in parts if part is not None]

    def declared_type(self, name: str) -> Any:
        """Return the type of a parameter, with its constraints, as the part declares it."""
        owners: list[type] = [*self._part_classes(), type(self)]
        found = (declared_types(owner) for owner in owners)
        return next((types[name] for types in found if name in types), Any)

    def early_stopping_for(self, model: Model) -> int | str | None:
        """Return the patience, "auto" or None; "auto" is for rounds that are many small steps."""
        given: int | str | None = getattr(self, "early_stopping_rounds", "auto")
        return None if given == "auto" and not getattr(model, "boosts", False) else given

    def solver_for(self, model: Model) -> dict[str, Any]:
        """Return the argument ``solver`` of ``model.rounds``; nothing for a model without one."""
        given = getattr(self, "solver", None)
        if getattr(model, "takes_solver", False):
            return {"solver": given}
        default = _defaults(type(self)).get("solver")
        if not same(given, default):
            name = part_name("models", model)
            raise UsageError(f"model '{name}' takes no solver; leave solver out.")
        return {}

    @property
    def model_name(self) -> str:
        """The registered name of the model that is fitted, or the name of its class."""
        return part_name("models", self._part_of("model"))

    @property
    def has_loss(self) -> bool:
        """Whether the algorithm names a loss, which any other model may minimise too."""
        return self.loss_class is not None or hasattr(self, "loss")

    @property
    def selection_metric(self) -> Any:
        """The metric that selects on the validation set, with ``label_gain`` where it has gains."""
        given = getattr(self, "select_metric", None) or self.metric
        gains = getattr(self, "label_gain", None)
        if gains is None:
            return given
        made = metric(given, convention=self.convention)
        return metric(made, label_gain=gains) if has_gain(made) else given

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        qid: Any = None,
        group_sizes: Any = None,
        sample_weight: Any = None,
        query_weight: Any = None,
        features: Any = None,
        drop: Any = (),
        propensity: Any = None,
        eval_set: Any = None,
        init_model: Any = None,
        callbacks: Sequence[IterationCallback] = (),
        progress: Progress | bool | None = None,
        checkpoint: Checkpoint | str | Path | None = None,
        **misnamed: Any,
    ) -> Self:
        """Fit to documents X with grades y, grouped by ``qid`` or ``group_sizes``.

        Parameters
        ----------
        X : array, sparse matrix, frame, RankingData or ClickLog
            With a frame, ``y``, ``qid`` and the weights may be names of its columns. Columns with
            usual names, such as ``doc_id``, are then found as `rankwright.load` finds them, and are
            no features. If ``y`` is an array, such ids are refused: leave them out with ``drop``.
            Of a log that has features, relevance is learned from clicks.
        sample_weight, query_weight : array
            Weight of each document, and of each query. A document of weight 0 is left out.
        features, drop : str or sequence of str
            Columns of a frame, or of RankingData with feature names, that are features (by default
            all that have no other role), and that are not.
        propensity : Propensity or "joint"
            For a log, or data with positions and clicks as grades: the examination of each
            position. Its effect is removed by `rankwright.clicks.debias`, and documents of a log's
            feature table that were never shown are added with a low weight. "joint" learns the
            propensity together with relevance; ``propensity_`` is the one that was used.
        eval_set : RankingData, (X, y, qid), a list of them, or a mapping from names to them
            Validation data: selects the best iteration, and what is "auto". Of several sets the
            last selects; ``evals_result_`` has the metric on each.
        init_model : fitted ranker, or fitted model of LightGBM
            Continue from its model; ``n_estimators``, ``n_rounds`` or ``epochs`` are added to it.
        callbacks : sequence of callables
            Each is called after each iteration with a `rankwright.Iteration`: its number, the loss,
            the metric on each validation set, and the best iteration so far. One that returns True
            ends the fit, as early stopping does.
        progress : bool or callable
            True prints a line per round on standard error, as ``verbose`` does; a function is
            called with the round and a short text after each round.
        checkpoint : rankwright.Checkpoint, or a folder
            Where to keep the run, so that one that was killed can go on.
        """
        refuse_misnamed(misnamed)
        check_callbacks(callbacks)
        columns = {
            "y": y,
            "qid": qid,
            "group_sizes": group_sizes,
            "sample_weight": sample_weight,
            "query_weight": query_weight,
        }
        inputs = self._prepare(
            X,
            columns,
            features,
            drop,
            propensity=propensity,
            eval_set=eval_set,
            init_model=init_model,
        )
        model = self.make_model()
        show = progress_function(progress, self.verbose)
        kept = self._checkpoint(checkpoint, model)
        result, history = self._run(model, inputs, callbacks, show, kept)
        self._finish(inputs, result, history)
        if self.interrupted_:
            raise interruption(self)
        return self

    # --- stages of a fit ---------------------------------------------------------------------

    def _prepare(
        self,
        X: Any,
        columns: dict[str, Any],
        features: Any,
        drop: Any,
        *,
        propensity: Any,
        eval_set: Any,
        init_model: Any,
    ) -> _Inputs:
        """Return the caller's data as RankingData, after warnings about what is odd in them."""
        source = X
        if isinstance(X, ClickLog):
            from rankwright.clicks.debiasing import click_rows, data_of_clicks

            loss = self.make_loss() if self.has_loss else None
            X = data_of_clicks(loss, X) if propensity is None else click_rows(X)
        given = ranking_data(X, **columns, features=features, drop=drop)
        qid_column = given.qid_column
        if isinstance(source, ClickLog) and source.features is not None:
            qid_column = source.features.qid_column
        undebiased = given
        if propensity is not None:
            given = self._debias(source, given, propensity, features, drop)
        data = given.present()
        refuse_categories(self, data)
        refuse_overflow(self, data)
        data.check_width()
        if init_model is not None:  # its trees know categories by their codes
            init_model = _initial_ranker(init_model)
            data = data.in_categories(getattr(init_model, "categories_", None))
        warn_of_equal_grades(data)
        if data.feature_names is not None:
            warn_of_outcomes(data, chosen=listed(features) or ())
        sets = {} if eval_set is None else eval_sets(eval_set, data)
        warn_of_training_data(undebiased, next(reversed(sets.values()), None), stacklevel=4)
        valid = concatenate([*sets.values()], shared_ids=True) if len(sets) > 1 else None
        if len(sets) == 1:
            (valid,) = sets.values()
        return _Inputs(
            source=given,
            data=data,
            eval_sets=sets,
            valid=valid,
            start=None if init_model is None else self._fitted_start(init_model, data),
            qid_column=qid_column,
            has_qid=any(columns[name] is not None for name in ("qid", "group_sizes")),
            has_ids=columns["qid"] is not None,
        )

    def _debias(
        self, source: Any, given: RankingData, propensity: Any, features: Any, drop: Any
    ) -> RankingData:
        """Return the data with relevance estimated from their clicks."""
        from rankwright.clicks.debiasing import debias, known_propensity, weighed_by_ideal

        self.propensity_ = known_propensity(propensity, given, n_jobs=self.n_jobs)
        if isinstance(source, ClickLog) and self.has_loss:
            table = ranking_data(source.features, features=features, drop=drop)
            log = source._replace(features=table)
            given = debias(log, self.propensity_, unshown=True, n_jobs=self.n_jobs)
        else:  # metrics take no document weights, which documents never shown need
            given = debias(given, self.propensity_, n_jobs=self.n_jobs)
        return weighed_by_ideal(self.make_loss() if self.has_loss else self, given)

    def _rounds(
        self,
        model: Any,
        data: Any,
        valid: Any,
        *,
        start: FittedModel | None,
        resume: Mapping[str, AnyArray] | None,
    ) -> Iterator[Round]:
        """Return the rounds of ``model`` under this ranker's loss."""
        if getattr(model, "optimises_metric", False):
            raise _takes_no_loss(model)
        options = {"resume": resume} if getattr(model, "resumable", False) else {}
        rounds: Iterator[Round] = model.rounds(
            self.make_loss(),
            data,
            valid,
            start=start,
            random_state=seed_of(self.random_state),
            n_jobs=self.n_jobs,
            **options,
            **self.solver_for(model),
        )
        return rounds

    def _run(
        self,
        model: Any,
        inputs: FitData,
        functions: Sequence[IterationCallback],
        show: Progress | None,
        checkpoint: Checkpoint | None,
    ) -> tuple[Result, EvaluationHistory]:
        """Run the rounds of ``model``, from its checkpoint if there is one."""
        data, valid, start = inputs.data, inputs.valid, inputs.start
        patience = self.early_stopping_for(model)
        history = EvaluationHistory(
            self.selection_metric,
            self.convention,
            inputs.eval_sets,
            smooths=patience == "auto",
            n_jobs=self.n_jobs,
            evaluators=inputs.evaluators,
        )
        callbacks: list[Callable[[Round], bool]] = []
        if show is not None:
            callbacks.append(ProgressBar(history, show))
        if functions:
            callbacks.append(UserCallbacks(history, functions))
        if patience is not None:
            callbacks.append(
                EarlyStopping(history, AUTO_ROUNDS if patience == "auto" else int(patience))
            )
        resumed = checkpointing = None
        try:
            if checkpoint is not None:
                from rankwright.persist.checkpoint import run_receipt

                kept = checkpoint.begin(run_receipt(self, inputs.digest or data, valid, start))
                resumed = None if kept is None else Resumed.load(*kept, history)
                best = {} if resumed is None else resumed.best_arrays
                checkpointing = Checkpointing(history, checkpoint, best)
            self.resumed_from_ = None if resumed is None else resumed.round
            with naming_features(data.feature_names):
                if resumed is None:
                    rounds = self._rounds(model, data, valid, start=start, resume=None)
                    result = run(rounds, history, callbacks, checkpointing)
                else:
                    result = self._run_again(
                        model, inputs, history, callbacks, checkpointing, resumed
                    )
            refuse_not_finite(result.model)
        finally:
            if checkpoint is not None:
                checkpoint.end()
        return result, history

    def _run_again(
        self,
        model: Any,
        inputs: FitData,
        history: EvaluationHistory,
        callbacks: Sequence[Callable[[Round], bool]],
        checkpointing: Checkpointing | None,
        resumed: Resumed,
    ) -> Result:
        """Continue a run from its checkpoint, which may be damaged."""
        rounds_before = history.last
        try:
            best = resumed.best_model(model, inputs.data.n_features)
            rounds = self._rounds(
                model, inputs.data, inputs.valid, start=inputs.start, resume=resumed.state
            )
            return run(rounds, history, callbacks, checkpointing, best)
        except Exception as error:
            if history.last > rounds_before or isinstance(error, RankwrightError):
                raise
            raise as_checkpoint_error(error) from error

    def _finish(self, inputs: _Inputs, result: Result, history: Any) -> None:
        """Set the learned attributes."""
        data, source = inputs.data, inputs.source
        self._finish_run(result, history)
        self._with_qid = inputs.has_qid or source.n_queries > 1
        prints = query_prints(source, n_jobs=self.n_jobs)
        self.data_digest_ = digest_of_prints([prints], source.n_documents, source.n_features)
        by_ids = inputs.has_ids and source.sample_weight is None
        self._fitted_queries = (source.qid, prints[0]) if by_ids else None
        self._note_features(data._replace(qid_column=inputs.qid_column))
        if _is_linear(self.model_):
            from rankwright.models.linear import spreads

            self.feature_deviation_ = spreads(data.X, getattr(self.model_, "fill", None))
        warn_of_equal_scores(self.model_, data)

    def _finish_run(self, result: Result, history: Any) -> None:
        """Set the learned attributes that do not depend on the place of the data."""
        self.model_: FittedModel = result.model
        self.curve_, self.evals_result_ = history.curve, history.evals_result()
        self.best_iteration_, self.interrupted_ = result.best_iteration, result.interrupted

    @property
    def partial_fit(self) -> Callable[..., Self]:
        """Go on with more queries: ``partial_fit(X, y, *, qid, ...)``, as `fit`.

        For linear models with ``solver="online"``. The first call starts, later ones take a step
        for each of their queries, in the order of the rows; predict works in between.
        """
        model, solver = self._part_of("model"), self._part_of("solver")
        if not hasattr(model, "partial_fit") or not hasattr(solver, "resume"):
            given = getattr(self, "solver", None)  # some rankers take none
            solved = f" with solver='{given}'" if hasattr(model, "partial_fit") else ""
            raise NoPartialFitError(
                "partial_fit learns query by query, which only a linear model with "
                f"solver='online' does; the model is '{self.model_name}'{solved}."
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
        refuse_categories(self, data)
        refuse_overflow(self, data)
        before: Any = getattr(self, "model_", None)
        if before is not None:
            known = getattr(self, "feature_names_in_", None)
            names = None if known is None else tuple(known)
            data = data._replace(X=features_like(self, data), feature_names=names)
        model: Any = self.make_model()
        with naming_features(data.feature_names):
            fitted = model.partial_fit(
                self.make_loss(),
                data.present(),
                start=before,
                random_state=seed_of(self.random_state),
                n_jobs=self.n_jobs,
                **self.solver_for(model),
            )
        refuse_not_finite(fitted)
        self.model_ = fitted
        digests = [self.data_digest_] if before is not None else []
        digests.append(content_digest(data, n_jobs=self.n_jobs))
        self.data_digest_ = digests[0]
        if len(digests) > 1:
            self.data_digest_ = hashlib.sha256(" ".join(digests).encode()).hexdigest()
        past = self.curve_["loss"] if before is not None else []
        self.curve_ = {"loss": [*past, *self.model_.solution.curve]}  # type: ignore[attr-defined]
        self.best_iteration_, self.interrupted_ = len(self.curve_["loss"]), False
        self._with_qid = qid is not None or group_sizes is not None or data.n_queries > 1
        self._note_features(data)
        return self

    def _fitted_start(self, initial: Ranker, data: Any) -> FittedModel:
        """Return the fitted model of ``initial``, or say why the fit cannot continue from it."""
        model: FittedModel = initial._fitted()
        can_continue = getattr(self._part_of("model"), "can_continue", None)
        if can_continue is not None and not can_continue(model):
            raise IncompatibleError(
                f"a model '{self.model_name}' cannot continue from {_shown(initial)}; leave "
                "init_model out, or give one of its own kind."
            )
        if model.n_features != data.n_features:
            raise DataError(
                f"init_model has {model.n_features} features and the data {data.n_features}; "
                "give the columns that it was fitted on, in that order."
            )
        known = getattr(initial, "feature_names_in_", None)
        if known is not None and data.feature_names is not None:
            pairs = zip(known, data.feature_names, strict=True)
            apart = (p for p in pairs if p[0] not in (p[1], "_".join(p[1].split())))
            other = next(apart, None)  # but blanks, which LightGBM writes as _
            if other is not None:
                raise DataError(
                    f"init_model has the feature {quoted(other[0])} where the data has "
                    f"{quoted(other[1])}; give the columns that it was fitted on, in that order."
                )
        return model

    def _checkpoint(self, given: Checkpoint | str | Path | None, model: Any) -> Checkpoint | None:
        """Return the checkpoint of a fit; a path is a folder with the default options."""
        if given is None:
            return None
        if not getattr(model, "resumable", False):
            raise UsageError(
                f"a model '{part_name('models', model)}' cannot be resumed, so a checkpoint would "
                "be of no use; leave checkpoint out. Trees, forests, rules, networks, adarank, "
                "coordinate_ascent and rankgp can be resumed."
            )
        if not isinstance(self.random_state, Integral):
            raise UsageError(
                "a checkpoint needs a whole number as random_state, so that a resumed run samples "
                f"as before; it is {self.random_state!r}."
            )
        from rankwright.persist.checkpoint import Checkpoint

        return given if isinstance(given, Checkpoint) else Checkpoint(given)

    def _note_features(self, data: Any) -> None:
        """Set the learned attributes of features, from data or partitions."""
        self.n_features_in_ = data.n_features
        if data.feature_names is not None:
            self.feature_names_in_ = np.array(data.feature_names, object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        if data.categories:
            self.categories_ = dict(data.categories)
        elif hasattr(self, "categories_"):
            del self.categories_
        self.qid_column_ = data.qid_column

    # --- use ---------------------------------------------------------------------------------

    def predict(self, X: Any, *, qid: Any = None) -> F64:
        """Return a score for each row; a higher one ranks first.

        For arrays and frames in the caller's order of rows, for RankingData in its own. Only models
        that look at whole lists (networks with a list context) use ``qid``; of a frame they take
        it from the column that `rank` would use. The features of a frame are found by their names,
        in any order; other columns are ignored.
        """
        with naming_features(getattr(self, "feature_names_in_", None)):
            return self._predicted(X, qid)

    def _predicted(self, X: Any, qid: Any) -> F64:
        features = features_like(self, X)
        model: Any = self._fitted()
        if qid is None and hasattr(model, "scores_of") and not isinstance(X, RankingData):
            qid = query_column(self, X)
        if not hasattr(model, "scores_of") or (qid is None and not isinstance(X, RankingData)):
            scores: F64 = model.scores(features, n_jobs=self.n_jobs)
            return scores
        if isinstance(X, RankingData):
            in_lists: F64 = model.scores_of(X._replace(X=features), n_jobs=self.n_jobs)
            return in_lists
        data = documents_of(self, X, qid=qid)
        in_order: F64 = data.in_caller_order(model.scores_of(data, n_jobs=self.n_jobs))
        return in_order

    def rank(
        self,
        X: Any,
        *,
        qid: Any = None,
        group: Any = None,
        per_group: int | None = None,
        top: int | None = None,
    ) -> Ranking:
        """Return the documents of each query, best first.

        Parameters
        ----------
        X : array, sparse matrix, frame or RankingData
        qid : array or str
            Query of each row, or the name of its column in a frame. Without it, the column that
            held the query ids in training (``qid_column_``) is used, or else one with a usual name,
            such as ``query``. A frame with neither is refused if the ranker was fitted to a frame
            or table with a column of query ids; otherwise all rows are one query.
        group : array (n,) or (n, topics), or str
            Host or topic of each row, or the name of its column; a matrix has a column for each of
            topics that overlap.
        per_group : int
            Keep at most this many documents of each group in a query.
        top : int
            Keep at most this many documents of a query.

        Returns
        -------
        Ranking
            Row numbers in ``order``, best first, query after query, and their ``scores``;
            iterating gives a query at a time.
        """
        if isinstance(X, RankingData):
            refuse_second_columns(qid=qid)
            data = X if group is None else X._replace(group=as_groups(group, "group", len(X.y)))
        else:
            data = documents_of(self, X, qid=qid, group=group)
        scores = self.predict(data)
        return Ranking.of(data, scores, per_group=per_group, top=top, n_jobs=self.n_jobs)

    def score(self, X: Any, y: Any = None, *, qid: Any = None, sample_weight: None = None) -> float:
        """Return the mean of the selection metric over queries, ties averaged over their orders.

        scikit-learn's searches select by it; ``sample_weight`` is there for its pipelines, which
        always name it.
        """
        if sample_weight is not None:
            raise UsageError("metrics have no weights of documents; leave sample_weight out.")
        if qid is None and isinstance(y, str):
            qid = query_column(self, X)
        if qid is None and not isinstance(X, RankingData) and getattr(self, "_with_qid", False):
            raise UsageError(
                f"this ranker was fitted with qid, so score needs qid=... too; {how_to_route_qid()}"
            )
        data = data_in_columns(
            getattr(self, "feature_names_in_", None),
            X,
            y,
            qid,
            categories=getattr(self, "categories_", None),
        )
        if qid is not None:
            warn_of_cut_queries(self, data)
        selects = metric(self.selection_metric, convention=self.convention).for_selection()
        return next(iter(evaluate(data, self.predict(data), selects).values()))

    def save(self, path: str | Path) -> None:
        """Write the fitted ranker to a model file; `rankwright.load_model` reads it."""
        from rankwright.persist.model_file import save_model

        save_model(self, path)

    def _fitted(self) -> FittedModel:
        if not hasattr(self, "model_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first.")
        return self.model_

    def __dir__(self) -> list[str]:
        """Return the attributes that can be read; scikit-learn's passes on errors of parts."""

        def is_readable(name: str) -> bool:
            try:
                return hasattr(self, name)
            except RankwrightError:
                return False

        return [name for name in object.__dir__(self) if is_readable(name)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        model = params_of(self._part_of("model"))
        tags.input_tags.allow_nan = "missing" not in model or model["missing"] is not None
        tags.target_tags.required = True
        return tags

    @property
    def coef_(self) -> F64:
        """Weights of a linear model, in the scale of the data; of a classifier, a row per grade."""
        coef: F64 = self._part("coef", "linear")
        return coef

    @property
    def weights_(self) -> dict[str, float]:
        """Weights of a linear model by the name of their feature, the largest first.

        Features without names go by their number, from 1, as in LETOR files.
        """
        coef = self.coef_
        if coef.ndim != 1:
            raise AttributeError(
                f"{type(self).__name__} has no weights_: it has a weight for each grade and "
                "feature; see coef_."
            )
        names = getattr(self, "feature_names_in_", np.arange(1, len(coef) + 1))
        order = np.argsort(-np.abs(coef), kind="stable")
        return {str(names[column]): float(coef[column]) for column in order}

    @property
    def feature_importances_(self) -> F64:
        """Importance of each feature, in the order of the columns.

        Of trees the total gain of the splits on it, as LightGBM's booster reports with
        ``importance_type="gain"``. Of a linear model its absolute weight times the standard
        deviation of the feature in the training data. Not normalised. Other models have none:
        `rankwright.importance` measures it for any model by permutation.
        """
        model: Any = self._fitted()
        if hasattr(model, "importance"):
            gain: F64 = model.importance("gain")
            return gain
        deviation = getattr(self, "feature_deviation_", None)
        if not _is_linear(model) or deviation is None:
            why = "was fitted in parts" if _is_linear(model) else f"fits '{self.model_name}'"
            raise AttributeError(
                f"{type(self).__name__} has no feature_importances_: it {why}, and only trees and "
                "linear models fitted in one process have them; use rankwright.importance(ranker, "
                "'permutation', data=data)."
            )
        weights: F64 = np.abs(model.coef) * deviation
        return weights

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
            raise AttributeError(
                f"only a {family} model has this; the model is '{self.model_name}'."
            )
        return getattr(self.model_, name)


def ranker(name: str, /, **parameters: Any) -> Ranker:
    """Return the ranker called ``name``, such as ``lambdamart``, with the given parameters.

    Those of its parts go by ``model__num_leaves``, as for `Ranker.set_params`.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.ranker("lambdamart", n_estimators=50, model__max_bins=63)
    LambdaMART(model=Trees(n_estimators=50, max_bins=63))
    """
    own = {key: value for key, value in parameters.items() if "__" not in key}
    made: Ranker = registry.resolve("rankers", name)(**own)
    return made.set_params(**{key: v for key, v in parameters.items() if key not in own})


def _initial_ranker(given: Any) -> Ranker:
    """Return a fitted ranker as it is, and a model of another library imported."""
    if isinstance(given, Ranker):
        return given
    from rankwright.persist.other_libraries import import_model, is_importable

    if not is_importable(given):
        raise UsageError(
            "init_model is a fitted ranker or a fitted model of LightGBM, not "
            f"{type(given).__name__}; rankwright.load_model reads one from a file."
        )
    return import_model(given)


def _takes_no_loss(model: Any) -> IncompatibleError:
    """Return the error for a model that optimises a metric under a ranker with a loss."""
    return IncompatibleError(
        f"model '{part_name('models', model)}' optimises a metric and takes no loss; use "
        "the ranker that is made of it (adarank, coordinate_ascent or rankgp) or another "
        "model, such as linear or trees."
    )


def _shown(initial: Ranker) -> str:
    """Return the kind of a fitted ranker for an error message."""
    library = getattr(initial.model, "library", None)
    return f"a model of {library}" if library else f"a model '{initial.model_name}'"


def _is_linear(model: Any) -> bool:
    """Whether a fitted model has one weight for each feature."""
    return getattr(getattr(model, "coef", None), "ndim", 0) == 1


def interruption(ranker: Ranker) -> KeyboardInterrupt:
    """Return the Ctrl-C that ended a fit after some rounds, of which the ranker keeps the best."""
    return KeyboardInterrupt(f"{ranker.name} keeps the best of the rounds so far, and can be used.")


@contextmanager
def keeping_best(ranker: Ranker) -> Iterator[None]:
    """Let Ctrl-C end the fit of ``ranker`` inside, and go on if the ranker keeps some rounds."""
    try:
        yield
    except KeyboardInterrupt:
        if not hasattr(ranker, "interrupted_"):
            raise


def checked_parameters(init: Callable[..., None]) -> Callable[..., None]:
    """Return a constructor that reports the name that an unknown parameter has here."""
    names = inspect.signature(init).parameters

    @wraps(init)
    def checked(self: Any, *args: Any, **params: Any) -> None:
        for name in params:
            if name not in names:
                model = params.get("model") or type(self).model_class
                raise self._unknown_parameter(name, resolve_part("models", model))
        init(self, *args, **params)

    return checked


Ranker.__init__ = checked_parameters(Ranker.__init__)  # type: ignore[method-assign]


def _defaults(cls: type[Ranker]) -> dict[str, Any]:
    """Return the default of each parameter of the constructor."""
    signature = inspect.signature(cls.__init__)
    return {name: p.default for name, p in signature.parameters.items() if name != "self"}
