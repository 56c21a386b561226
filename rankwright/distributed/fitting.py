"""Fit a ranker over data in partitions: ``distributed.fit(ranker, train, valid)``.

What comes out is an ordinary ranker, which predicts, is saved and explained as any other.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from rankwright.core.dtypes import naming_features
from rankwright.core.parameters import part_name, seed_of
from rankwright.core.types import FittedModel
from rankwright.data.content import digest_of_prints, query_codes, query_prints
from rankwright.data.files import load
from rankwright.data.ranking_data import RankingData
from rankwright.data.store import is_store
from rankwright.distributed.evaluation import PartitionedEvaluator, linear_scores
from rankwright.distributed.partitions import Partitions, partitions
from rankwright.errors import DataError, IncompatibleError, UsageError
from rankwright.metrics.base import metric, metric_name
from rankwright.metrics.evaluation import Evaluator
from rankwright.models.schema import refuse_not_finite
from rankwright.persist.checkpoint import Checkpoint, digest_in_order, run_receipt
from rankwright.rankers.base import Ranker, interruption
from rankwright.rankers.boosting import MetricRanker
from rankwright.rankers.fitting import (
    IterationCallback,
    Progress,
    check_callbacks,
    progress_function,
)
from rankwright.rankers.inputs import OPTIMISTIC, refuse_categories, valid_data
from rankwright.rankers.selection import Selection

_FITS = {
    "linear": "rankwright.distributed.linear:fit_linear",
    "trees": "rankwright.distributed.trees:fit_trees",
}
"""Models that are fitted over partitions."""

_R = TypeVar("_R", bound=Ranker)


def fit(
    ranker: _R,
    train: Any,
    valid: Any = None,
    *,
    client: Any = None,
    n_parts: int | None = None,
    start: Ranker | None = None,
    callbacks: Sequence[IterationCallback] = (),
    progress: Progress | bool | None = None,
    checkpoint: Checkpoint | str | Path | None = None,
    **options: Any,
) -> _R:
    """Fit ``ranker`` to data in partitions, and return it.

    Parameters
    ----------
    ranker
        On a linear model or on trees; other models run in one process.
    train
        `Partitions`, or anything that `rankwright.distributed.partitions.partitions` takes.
    valid
        Selects the best round, and l2 where that is "auto". For a linear model as ``train``; trees
        look at it in this process, so it must be `RankingData` or a file.
    client : distributed.Client
        The cluster; the last client that was made by default.
    n_parts
        How many parts ``train`` is cut into. A result depends on the parts, not on the workers.
    start, callbacks, progress, checkpoint
        As for `Ranker.fit`.
    **options
        For the readers of ``train`` and ``valid``, where they are files or frames.

    Examples
    --------
    >>> import rankwright as rw
    >>> from distributed import Client
    >>> from rankwright import distributed
    >>> data = rw.synthetic("mq2008", queries=20)
    >>> with Client(processes=False, n_workers=1, dashboard_address=":0"):
    ...     ranker = distributed.fit(rw.MEMR(), data, n_parts=4)
    >>> ranker.predict(data).shape == data.y.shape
    True
    """
    train_on = _fit_of(ranker)
    check_callbacks(callbacks)
    if options and not (_is_read(train) or _is_read(valid)):
        raise UsageError(f"{next(iter(options))} is for reading data; these are read already.")
    parts = partitions(
        train, client=client, n_parts=n_parts, **(options if _is_read(train) else {})
    )
    refuse_categories(ranker, parts)
    own = options if _is_read(valid) else {}
    validation = None if valid is None else _valid_data(ranker, valid, parts, own)
    _warn_of_training_data(parts, validation)
    model = ranker.make_model()
    kept = ranker._checkpoint(checkpoint, model)
    callback = _callback(ranker, model, parts, validation, callbacks, progress, kept)
    begun = None if start is None else start._fitted()
    loss: Any = ranker.make_loss()
    if getattr(loss, "takes_positions", False) and any(parts.map(_has_positions)):
        raise IncompatibleError(
            f"loss '{part_name('losses', loss)}' learns effects of positions over all queries at "
            "once, not over parts; fit in one process, or debias the clicks first."
        )
    given = {
        "callback": callback,
        "start": begun,
        "random_state": seed_of(ranker.random_state),
        "n_jobs": ranker.n_jobs,
        **ranker.solver_for(model),
    }
    try:
        ranker.resumed_from_ = _resume(ranker, callback, parts, begun)
        with naming_features(parts.feature_names):
            fitted = train_on(model, loss, parts, **given)
        refuse_not_finite(fitted)
        ranker.model_ = fitted
    finally:
        if kept is not None:
            kept.end()
    prints = parts.map(_prints)
    ranker.data_digest_ = digest_of_prints(
        prints, parts.n_documents, parts.n_features, parts.categories
    )
    ranker.curve_, ranker.evals_result_ = callback.curve, callback.evals_result()
    ranker.best_iteration_ = callback.best()
    ranker.interrupted_ = callback.interrupted
    ranker._with_qid = parts.n_queries > 1
    ranker._note_features(parts)  # type: ignore[arg-type]
    if ranker.interrupted_:
        raise interruption(ranker)
    return ranker


def _callback(
    ranker: Ranker,
    model: Any,
    train: Partitions,
    valid: Any,
    callbacks: Sequence[IterationCallback],
    progress: Progress | bool | None,
    checkpoint: Checkpoint | None,
) -> PartitionedSelection:
    """Return what watches the fit, as `Ranker.fit` has it for one data set."""
    return PartitionedSelection(
        metric=ranker.selection_metric,
        convention=ranker.convention,
        train=train,  # type: ignore[arg-type]
        valid=valid,
        early_stopping_rounds=ranker.early_stopping_for(model),
        callbacks=callbacks,
        progress=progress_function(progress, ranker.verbose),
        n_jobs=ranker.n_jobs,
        checkpoint=checkpoint,
    )


@dataclass
class PartitionedSelection(Selection):
    """Watches a fit over partitions; metrics are computed where the data are.

    Where the validation data are in this process, as for trees, training data is not evaluated.
    """

    def __post_init__(self) -> None:
        named = metric(self.metric, convention=self.convention)
        selects = named.for_selection()
        self._name, self._maximise = metric_name(self.metric, named), selects.maximise
        self._rows = {"valid": slice(None)}
        self._evaluators: dict[str, Any] = {}
        if isinstance(self.valid, Partitions):
            self._evaluators = {
                name: PartitionedEvaluator(parts, selects, scorer=linear_scores)
                for name, parts in (("train", self.train), ("valid", self.valid))
            }
        elif self.valid is not None:
            self._evaluators["valid"] = Evaluator(self.valid, selects, n_jobs=self.n_jobs)

    @property
    def wants_train(self) -> bool:
        """Whether scores on train are of use."""
        return "train" in self._evaluators


def _fit_of(ranker: Ranker) -> Any:
    """Return what fits this ranker's model over partitions, or say that nothing does."""
    if ranker.model_name not in _FITS or isinstance(ranker, MetricRanker):
        able = " and ".join(_FITS)
        raise UsageError(
            f"{ranker.name} on model '{ranker.model_name}' runs in one process; {able} models run "
            "over partitions. Call its own fit, or choose model='linear' where the ranker has it."
        )
    module, _, name = _FITS[ranker.model_name].partition(":")
    return getattr(import_module(module), name)


def _is_read(source: Any) -> bool:
    """Whether a reader takes up this source, so that its options have a meaning."""
    if isinstance(source, str | Path):
        return not is_store(source)
    return isinstance(source, list) or hasattr(source, "columns")


def _valid_data(ranker: Ranker, valid: Any, train: Partitions, options: dict[str, Any]) -> Any:
    """Return validation data with the columns of train: in parts for a linear model, else here."""
    if isinstance(valid, str | Path) and (ranker.model_name != "linear" or train.client is None):
        valid = load(valid, **options)
    if isinstance(valid, RankingData):
        like: Any = train  # which has the names and the number of features too
        valid = valid_data(valid, like)
    if ranker.model_name == "linear":
        return _in_parts(valid, train, options)
    if not isinstance(valid, RankingData):
        raise UsageError(
            f"{ranker.model_name} read validation data in this process: give RankingData or a file."
        )
    return valid


def _in_parts(valid: Any, train: Partitions, options: dict[str, Any]) -> Partitions:
    """Return the validation data in partitions, in the place where those of train are."""
    if isinstance(valid, RankingData) and train.client is None:
        return Partitions.from_list([valid])
    parts = (
        valid
        if isinstance(valid, Partitions)
        else partitions(valid, client=train.client, **options)
    )
    if parts.n_features != train.n_features:
        raise DataError(
            f"the validation data has {parts.n_features} features, the training data "
            f"{train.n_features}."
        )
    pairs = zip(train.feature_names or (), parts.feature_names or (), strict=False)
    for column, (known, name) in enumerate(pairs):
        if name != known:
            raise DataError(
                f"column {column} is '{known}' in the training data and '{name}' in the "
                "validation data; give both the same columns in the same order."
            )
    return parts


def _warn_of_training_data(train: Partitions, valid: Any) -> None:
    """Warn if validation data has the documents and grades of the training data."""
    if valid is None:
        return
    if (train.n_queries, train.n_documents) == (valid.n_queries, valid.n_documents):
        of_valid = valid.map(query_codes) if isinstance(valid, Partitions) else [query_codes(valid)]
        codes = [np.sort(np.concatenate(each)) for each in (train.map(query_codes), of_valid)]
        if (codes[0] == codes[1]).all():
            warnings.warn(f"valid {OPTIMISTIC}", stacklevel=3)


def _resume(
    ranker: Ranker, callback: Selection, train: Partitions, start: FittedModel | None
) -> int | None:
    """Let the callback go on from its checkpoint, where it has one; return the round of that."""
    if callback.checkpoint is None:
        return None
    valid: Any = callback.valid
    of_valid = _digest(valid) if isinstance(valid, Partitions) else valid
    kept = callback.checkpoint.begin(run_receipt(ranker, _digest(train), of_valid, start))
    if kept is None:
        return None
    callback.go_on(kept)
    return kept.round


def _digest(parts: Partitions) -> str:
    """Return a digest of the parts and their order."""
    return hashlib.sha256("".join(parts.map(digest_in_order, 1)).encode()).hexdigest()


def _has_positions(part: RankingData) -> bool:
    return part.position is not None


def _prints(part: RankingData) -> Any:
    return query_prints(part, n_jobs=1)
