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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from functools import cache, partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator

from rankwright import registry
from rankwright.core.dtypes import as_groups, naming_features
from rankwright.core.parameters import (
    PARTS,
    Auto,
    Count,
    check_parameters,
    check_value,
    declared_types,
    params_of,
    part_name,
    resolve_part,
    same,
    seed_of,
    unknown_parameter,
    with_params,
)
from rankwright.core.types import F64, FittedModel, Loss, Model, Round
from rankwright.data.content import content_digest
from rankwright.data.ranking_data import RankingData, refuse_second_columns
from rankwright.data.rankings import Ranking
from rankwright.errors import IncompatibleError, RankwrightError, UsageError
from rankwright.metrics.base import has_gain, metric
from rankwright.metrics.evaluation import evaluate
from rankwright.models.schema import refuse_not_finite
from rankwright.rankers.attributes import FittedAttributes, is_linear
from rankwright.rankers.attributes import NotFittedError as NotFittedError
from rankwright.rankers.checkpointing import Resume, as_checkpoint, run_with_checkpoints
from rankwright.rankers.data_checks import (
    refuse_categories,
    refuse_overflow,
    warn_of_cut_queries,
    warn_of_equal_scores,
)
from rankwright.rankers.fitting import (
    AUTO_ROUNDS,
    EarlyStopping,
    EvaluationHistory,
    IterationCallback,
    Progress,
    ProgressBar,
    Result,
    UserCallbacks,
    check_callbacks,
    progress_function,
    refuse_misnamed,
    run,
)
from rankwright.rankers.inputs import (
    Layout,
    documents_of,
    features_like,
    how_to_route_qid,
    query_column,
    ranking_data,
)
from rankwright.rankers.preparation import FitData, FitParts, prepare

if TYPE_CHECKING:
    from rankwright.persist.checkpoint import Checkpoint


Rounds = Count | Auto | None


class NoPartialFitError(UsageError, AttributeError):
    """`Ranker.partial_fit` is not possible with the model or solver of this ranker."""


class Ranker(FittedAttributes, BaseEstimator):  # type: ignore[misc]
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
    first_feature_id_ : int or None
        Feature id of the first column in the LETOR text of the training data, 0 or 1.

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
            if part == "model" and self._fits_default_model():
                self._change_default_model(changes)
            else:
                setattr(self, part, with_params(self._part_of(part), changes))
        return self

    def _change_default_model(self, changes: dict[str, Any]) -> None:
        """Change the default model: by parameters of this ranker, or else by a model object."""
        names = self._model_parameters()
        if not changes.keys() <= names:
            self.model = with_params(self._part_of("model"), changes)
            defaults = _defaults(type(self))
            changes = {name: defaults[name] for name in names}  # they are in the model object now
        for name, value in changes.items():
            setattr(self, name, value)

    def _model_parameters(self) -> set[str]:
        """Return the names of the parameters that are passed only to the default model."""
        if self.model_class is None:
            return set()
        model, *loss = self._default_classes()
        names = set(self._get_param_names()) & _field_names(model)
        return names.difference(*map(_field_names, loss))

    @classmethod
    def _default_classes(cls) -> list[type]:
        """Return the classes of the default model and the loss of a named algorithm."""
        parts = (("models", cls.model_class), ("losses", cls.loss_class))
        return [registry.resolve(kind, part) for kind, part in parts if part is not None]

    @classmethod
    def _unknown_parameter(cls, name: str, model: Any) -> UsageError:
        """Return the error for a parameter that rankers of this class do not have."""
        names = cls._get_param_names()
        loss = None if "loss" in names else cls.loss_class
        return unknown_parameter(cls.__name__, name, names, model, loss)

    def _check(self) -> None:
        """Raise if a parameter of the ranker itself is invalid; loss and model check theirs."""
        cls: Any = type(self)
        types = _types_without_parts(cls)
        for name, value in super().get_params(deep=False).items():
            if name in types:
                check_value(name, value, types[name])

    def declared_type(self, name: str) -> Any:
        """Return the type of a parameter, with its constraints, as the part declares it."""
        types = (declared_types(owner) for owner in [*self._default_classes(), type(self)])
        return next((declared[name] for declared in types if name in declared), Any)

    # --- loss, model and solver ---------------------------------------------------------------

    def make_loss(self) -> Loss:
        """Return the loss with the parameters of this ranker, checked."""
        loss: Any
        if not hasattr(self, "loss"):
            loss = self._default_part("losses", self.loss_class)
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
        if not self._fits_default_model():
            self._refuse_parameters_of_default_model()
        if not hasattr(model, "rounds"):
            raise UsageError(f"{model!r} is not a model: it has no rounds(loss, data).")
        check_parameters(model)
        for check in ("check_installed", "check"):
            if hasattr(model, check):
                getattr(model, check)()
        self._check()
        return model

    def solver_for(self, model: Any) -> Any:
        """Return the solver, or raise if one is set that the model does not take."""
        if not hasattr(self, "solver"):
            return None
        default = _defaults(type(self))["solver"]
        if not getattr(model, "takes_solver", False) and not same(self.solver, default):
            name = part_name("models", model)
            raise UsageError(f"model '{name}' takes no solver; leave solver out.")
        return self.solver

    def _part_of(self, name: str) -> Any:
        """Return the loss, model or solver of a parameter; None if there is no solver."""
        if name == "model" and self._fits_default_model():
            return self._default_part("models", self.model_class)
        value = getattr(self, name, None)
        if value is None:
            return None
        part = resolve_part(PARTS[name], value)
        if name == "model" and isinstance(value, str):
            return with_params(part, self.model_defaults.get(value, {}))
        return part

    def _fits_default_model(self) -> bool:
        """Return whether the ranker fits the default model of a named algorithm."""
        name = self.model_class
        return name is not None and (self.model is None or same(self.model, name))

    def _default_part(self, kind: str, name: str | None) -> Any:
        """Return the loss or default model of a named algorithm, with this ranker's parameters."""
        assert name is not None, "a named algorithm names its parts"
        part = registry.resolve(kind, name)
        params = {**super().get_params(deep=False), **self.fixed}
        names = params.keys() & _field_names(part)
        return part(**{name: params[name] for name in names})

    def _refuse_parameters_of_default_model(self) -> None:
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

    def early_stopping_for(self, model: Model) -> int | str | None:
        """Return the patience, "auto" or None; "auto" is for rounds that are many small steps."""
        patience: int | str | None = getattr(self, "early_stopping_rounds", "auto")
        return None if patience == "auto" and not getattr(model, "boosts", False) else patience

    @property
    def model_name(self) -> str:
        """The registered name of the model that is fitted, or the name of its class."""
        if self._fits_default_model():
            return str(self.model_class)
        return part_name("models", self._part_of("model"))

    @property
    def has_loss(self) -> bool:
        """Whether the algorithm names a loss, which any other model may minimise too."""
        return self.loss_class is not None or hasattr(self, "loss")

    @property
    def selection_metric(self) -> Any:
        """The metric that selects on the validation set, with ``label_gain`` if it has gains."""
        selected = getattr(self, "select_metric", None) or self.metric
        gains = getattr(self, "label_gain", None)
        if gains is None:
            return selected
        resolved = metric(selected, convention=self.convention)
        return metric(resolved, label_gain=gains) if has_gain(resolved) else selected

    # --- fit -----------------------------------------------------------------------------------

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
            With a frame, ``y``, ``qid`` and the weights can be names of its columns. Columns with
            usual names, such as ``doc_id``, are then recognised as in `rankwright.load` and are not
            features. If ``y`` is an array, columns of ids raise an error; leave them out with
            ``drop``. For a log with features, relevance is learned from clicks.
        sample_weight, query_weight : array
            Weight of each document and of each query. A document of weight 0 is left out.
        features, drop : str or sequence of str
            Columns of a frame, or of RankingData with feature names, to use as features (by default
            all columns without another role), and columns to leave out.
        propensity : Propensity or "joint"
            For a log, or data with positions and clicks as grades: the examination of each
            position. Its effect is removed by `rankwright.clicks.debias`, and documents of a log's
            feature table that were never shown are added with a low weight. "joint" learns the
            propensity together with relevance. ``propensity_`` is the propensity that was used.
        eval_set : RankingData, (X, y, qid), a list of them, or a mapping from names to them
            Validation data that select the best iteration and parameters set to "auto". With
            several sets, the last one selects; ``evals_result_`` has the metric on each.
        init_model : fitted ranker, or fitted model of LightGBM
            Continue from its model; ``n_estimators``, ``n_rounds`` or ``epochs`` are added to it.
        callbacks : sequence of callables
            Functions that are called after each iteration with a `rankwright.Iteration`: number,
            loss, metric on each validation set, and best iteration so far. If one returns True, the
            fit ends as with early stopping.
        progress : bool or callable
            True prints a line per round on standard error, as ``verbose`` does; a function is
            called with the round and a short text after each round.
        checkpoint : rankwright.Checkpoint, or a folder
            Folder for checkpoints, from which an interrupted fit can be resumed.
        """
        refuse_misnamed(misnamed)
        check_callbacks(callbacks)
        parts = self.build()
        show = progress_function(progress, self.verbose)
        checkpoint = as_checkpoint(checkpoint, parts.model, self.random_state)
        columns = {
            "y": y,
            "qid": qid,
            "group_sizes": group_sizes,
            "sample_weight": sample_weight,
            "query_weight": query_weight,
        }
        inputs = prepare(
            self,
            parts,
            X,
            columns,
            features=features,
            drop=drop,
            propensity=propensity,
            eval_set=eval_set,
            init_model=init_model,
        )
        result = self._run(parts, inputs, callbacks, show, checkpoint)
        return self._finish(inputs, result)

    # --- stages of a fit ---------------------------------------------------------------------

    def build(self) -> FitParts:
        """Return the loss, the model and the solver of a fit, checked."""
        model = self.make_model()
        if self.has_loss and getattr(model, "optimises_metric", False):
            raise _takes_no_loss(model)
        return FitParts(self.make_loss(), model, self.solver_for(model))

    def _rounds(self, parts: FitParts, inputs: FitData, resume: Resume) -> Iterator[Round]:
        """Return the rounds of the model; ``resume`` is its state in a checkpoint."""
        loss, model, solver = parts
        options = {"solver": solver} if getattr(model, "takes_solver", False) else {}
        if getattr(model, "resumable", False):
            options["resume"] = resume
        rounds: Iterator[Round] = model.rounds(
            loss,
            inputs.data,
            inputs.valid,
            start=inputs.start,
            random_state=seed_of(self.random_state),
            n_jobs=self.n_jobs,
            **options,
        )
        return rounds

    def _run(
        self,
        parts: FitParts,
        inputs: FitData,
        functions: Sequence[IterationCallback],
        show: Progress | None,
        checkpoint: Checkpoint | None,
    ) -> Result:
        """Run the rounds of the model, from its checkpoint if there is one."""
        data, model = inputs.data, parts.model
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
            rounds_without = AUTO_ROUNDS if patience == "auto" else int(patience)
            callbacks.append(EarlyStopping(history, rounds_without))
        rounds = partial(self._rounds, parts, inputs)
        with naming_features(data.feature_names):
            if checkpoint is None:
                result = run(rounds(None), history, callbacks)
            else:
                from rankwright.persist.checkpoint import run_receipt

                identity = inputs.order_digest or data
                receipt = run_receipt(self, identity, inputs.valid, inputs.start)
                result = run_with_checkpoints(
                    checkpoint,
                    receipt,
                    rounds,
                    lambda arrays, texts: model.restore(arrays, texts, data.n_features),
                    history,
                    callbacks,
                )
        refuse_not_finite(result.model)
        return result

    def _finish(self, inputs: FitData, result: Result) -> Self:
        """Set the learned attributes; raise KeyboardInterrupt if Ctrl-C ended the fit."""
        data = inputs.data
        self.model_: FittedModel = result.model
        self.curve_, self.evals_result_ = result.curve, result.evals_result
        self.best_iteration_, self.interrupted_ = result.best_iteration, result.interrupted
        self.resumed_from_ = result.resumed_from
        self.data_digest_, self._fitted_queries = inputs.digest, inputs.query_codes
        if inputs.propensity is not None:
            self.propensity_ = inputs.propensity
        self._set_features(data, has_queries=inputs.has_queries)
        if isinstance(data, RankingData):
            if is_linear(self.model_):
                from rankwright.models.linear import spreads

                self.feature_deviation_ = spreads(data.X, getattr(self.model_, "fill", None))
            warn_of_equal_scores(self.model_, data)
        if self.interrupted_:
            raise KeyboardInterrupt(
                f"{self.name} keeps the best of the rounds so far, and can be used."
            )
        return self

    def _set_features(self, data: Any, *, has_queries: bool) -> None:
        """Set the learned attributes of columns, from data or partitions."""
        self._with_qid, self.qid_column_ = has_queries, data.qid_column
        self.n_features_in_ = data.n_features
        self.first_feature_id_ = None if data.feature_ids is None else data.feature_ids.first
        if data.feature_names is not None:
            self.feature_names_in_ = np.array(data.feature_names, object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        if data.categories:
            self.categories_ = dict(data.categories)
        elif hasattr(self, "categories_"):
            del self.categories_

    @property
    def partial_fit(self) -> Callable[..., Self]:
        """Learn from more queries: ``partial_fit(X, y, *, qid, ...)``, as `fit`.

        For linear models with ``solver="online"``. Each call takes a step for each of its queries,
        in the order of the rows. ``predict`` can be called between two calls.
        """
        model, solver = self._part_of("model"), self._part_of("solver")
        if not hasattr(model, "partial_fit") or not hasattr(solver, "resume"):
            name = getattr(self, "solver", None)
            solved = f" with solver='{name}'" if hasattr(model, "partial_fit") else ""
            raise NoPartialFitError(
                "partial_fit learns query by query, which only a linear model with "
                f"solver='online' does; the model is '{self.model_name}'{solved}."
            )
        return self._partial_fit

    def _partial_fit(
        self,
        X: Any,
        y: Any = None,
        *,
        qid: Any = None,
        group_sizes: Any = None,
        sample_weight: Any = None,
        query_weight: Any = None,
    ) -> Self:
        loss, model, solver = self.build()
        data = ranking_data(X, y, qid, group_sizes, sample_weight, query_weight)
        refuse_categories(self, model, data)
        refuse_overflow(self, model, data)
        start: Any = getattr(self, "model_", None)
        if start is not None:
            names = getattr(self, "feature_names_in_", None)
            names = None if names is None else tuple(names)
            data = data._replace(X=features_like(self, data), feature_names=names)
        with naming_features(data.feature_names):
            fitted = model.partial_fit(
                loss,
                data.present(),
                start=start,
                solver=solver,
                random_state=seed_of(self.random_state),
                n_jobs=self.n_jobs,
            )
        refuse_not_finite(fitted)
        digest, curve = content_digest(data, n_jobs=self.n_jobs), fitted.solution.curve
        if start is not None:
            digest = hashlib.sha256(f"{self.data_digest_} {digest}".encode()).hexdigest()
            curve = [*self.curve_["loss"], *curve]
        self.model_, self.data_digest_, self.curve_ = fitted, digest, {"loss": [*curve]}
        self.best_iteration_, self.interrupted_ = len(curve), False
        has_queries = qid is not None or group_sizes is not None or data.n_queries > 1
        self._set_features(data, has_queries=has_queries)
        return self

    # --- use ---------------------------------------------------------------------------------

    def predict(self, X: Any, *, qid: Any = None) -> F64:
        """Return a score for each row; documents are ranked by descending score.

        The scores are in the caller's order of rows, and for RankingData in its own order. Only
        models of whole lists (networks with a list context) use ``qid``; for a frame, its default
        is the column that `rank` would use. The features of a frame are found by their names, in
        any order; other columns are ignored.
        """
        with naming_features(getattr(self, "feature_names_in_", None)):
            features = features_like(self, X)
            model: Any = self._fitted()
            scores: F64
            if hasattr(model, "scores_of"):
                if isinstance(X, RankingData):
                    scores = model.scores_of(X._replace(X=features), n_jobs=self.n_jobs)
                    return scores
                qid = query_column(self, X) if qid is None else qid
                if qid is not None:
                    data = documents_of(self, X, qid=qid)
                    scores = model.scores_of(data, n_jobs=self.n_jobs)
                    return data.in_caller_order(scores)
            scores = model.scores(features, n_jobs=self.n_jobs)
            return scores

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
            Query of each row, or the name of its column in a frame. By default the column of query
            ids in training (``qid_column_``) is used, or else a column with a usual name such as
            ``query``. Without such a column all rows are one query, but a frame raises an error if
            the ranker was fitted to a frame or table with a column of query ids.
        group : array (n,) or (n, topics), or str
            Host or topic of each row, or the name of its column; a matrix if topics overlap, with a
            column for each topic.
        per_group : int
            Keep at most this many documents of each group in a query.
        top : int
            Keep at most this many documents of a query.

        Returns
        -------
        Ranking
            Row numbers in ``order``, best first, query after query, and their ``scores``.
            Iteration yields one query at a time.
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

        The searches of scikit-learn maximise it. ``sample_weight`` must be None; it exists because
        the pipelines of scikit-learn always pass it.
        """
        if sample_weight is not None:
            raise UsageError("metrics have no weights of documents; leave sample_weight out.")
        if qid is None and isinstance(y, str):
            qid = query_column(self, X)
        if qid is None and not isinstance(X, RankingData) and getattr(self, "_with_qid", False):
            raise UsageError(
                f"this ranker was fitted with qid, so score needs qid=... too; {how_to_route_qid()}"
            )
        data = ranking_data(X, y, qid, like=Layout.of(self))
        if qid is not None:
            warn_of_cut_queries(self, data)
        selects = metric(self.selection_metric, convention=self.convention).for_selection()
        return next(iter(evaluate(data, self.predict(data), selects).values()))

    def save(self, path: str | Path) -> None:
        """Write the fitted ranker to a model file; `rankwright.load_model` reads it."""
        from rankwright.persist.model_file import save_model

        save_model(self, path)

    def __dir__(self) -> list[str]:
        """Return the readable attributes, also if a part has an invalid name or parameter."""

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


def ranker(name: str, /, **parameters: Any) -> Ranker:
    """Return the ranker with a registered name, such as ``lambdamart``.

    Parameters of its parts have names such as ``model__num_leaves``, as in `Ranker.set_params`.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.ranker("lambdamart", n_estimators=50, model__max_bins=63)
    LambdaMART(model=Trees(n_estimators=50, max_bins=63))
    """
    nested = {key: parameters.pop(key) for key in [*parameters] if "__" in key}
    unfitted: Ranker = registry.resolve("rankers", name)(**parameters)
    return unfitted.set_params(**nested)


def _takes_no_loss(model: Any) -> IncompatibleError:
    """Return the error for a model that optimises a metric under a ranker with a loss."""
    return IncompatibleError(
        f"model '{part_name('models', model)}' optimises a metric, so it has no loss; use "
        "its ranker (adarank, coordinate_ascent or rankgp) or another "
        "model, such as linear or trees."
    )


def checked_parameters(init: Callable[..., None]) -> Callable[..., None]:
    """Return a constructor that suggests the correct name of an unknown parameter."""
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


@cache
def _field_names(part: type) -> frozenset[str]:
    """Return the names of the parameters of a loss or model."""
    return frozenset(field.name for field in fields(part))


@cache
def _types_without_parts(cls: Any) -> dict[str, Any]:
    """Return the declared types of parameters that neither the loss nor the model checks."""
    of_parts = {name for part in cls._default_classes() for name in declared_types(part)}
    types = declared_types(cls)
    return {name: declared for name, declared in types.items() if name not in of_parts}
