"""Fit a ranker to data in partitions: ``distributed.fit(ranker, train, valid)``.

The stages of `Ranker.fit` run over the partitions. The result is an ordinary ranker.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from rankwright.core.parameters import part_name
from rankwright.core.types import FittedModel
from rankwright.data.content import digest_of_prints, query_codes, query_prints
from rankwright.data.files import load
from rankwright.data.ranking_data import RankingData, concatenate
from rankwright.data.store import is_store
from rankwright.distributed.evaluation import PartitionedEvaluator
from rankwright.distributed.linear import PartitionedLinear
from rankwright.distributed.partitions import Partitions
from rankwright.distributed.trees import PartitionedTrees
from rankwright.errors import DataError, IncompatibleError, UsageError
from rankwright.metrics.base import metric
from rankwright.persist.checkpoint import digest_in_order
from rankwright.rankers.base import Ranker
from rankwright.rankers.boosting import MetricRanker
from rankwright.rankers.checkpointing import as_checkpoint
from rankwright.rankers.data_checks import OPTIMISTIC, refuse_categories
from rankwright.rankers.fitting import (
    IterationCallback,
    Progress,
    check_callbacks,
    progress_function,
)
from rankwright.rankers.preparation import FitData, start_model, valid_data

if TYPE_CHECKING:
    from rankwright.persist.checkpoint import Checkpoint

_R = TypeVar("_R", bound=Ranker)


def fit(
    ranker: _R,
    train: Any,
    valid: Any = None,
    *,
    client: Any = None,
    n_parts: int | None = None,
    init_model: Ranker | None = None,
    callbacks: Sequence[IterationCallback] = (),
    progress: Progress | bool | None = None,
    checkpoint: Checkpoint | str | Path | None = None,
    **options: Any,
) -> _R:
    """Fit ``ranker`` to data in partitions, and return it.

    Parameters
    ----------
    ranker
        With a linear model or trees; other models run in one process.
    train
        `Partitions`, or any source of `Partitions.of`.
    valid
        Selects the best round, and l2 if that is "auto". For a linear model as ``train``; trees
        evaluate it in this process, so it must be `RankingData` or a file.
    client : distributed.Client
        The cluster; by default the last client that was created.
    n_parts
        Number of partitions of ``train``. Results depend on the partitions, but not on the workers.
    init_model, callbacks, progress, checkpoint
        As for `Ranker.fit`; checkpoints only for trees.
    **options
        Options of the readers of ``train`` and ``valid``, if these are files or frames.

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
    _check_ranker(ranker)
    check_callbacks(callbacks)
    if options and not (_is_read(train) or _is_read(valid)):
        raise UsageError(f"{next(iter(options))} is for reading data; these are read already.")
    parts = Partitions.of(
        train, client=client, n_parts=n_parts, **(options if _is_read(train) else {})
    )
    fit_parts = ranker.build()
    refuse_categories(ranker, fit_parts.model, parts)
    if valid is not None:
        valid = _valid_data(ranker, valid, parts, options if _is_read(valid) else {})
    if parts.client is None and ranker.model_name == "trees":
        return ranker.fit(
            concatenate(parts.parts),
            eval_set=valid,
            init_model=init_model,
            callbacks=callbacks,
            progress=progress,
            checkpoint=checkpoint,
        )
    _warn_of_training_data(parts, valid)
    _refuse_positions(fit_parts.loss, parts)
    model = fit_parts.model
    checkpoint = as_checkpoint(checkpoint, model, ranker.random_state)
    over_parts: Any = PartitionedLinear(model)
    if ranker.model_name == "trees":
        over_parts = PartitionedTrees(model, checkpoint)
    start = None if init_model is None else start_model(ranker, model, init_model, parts)
    inputs = _fit_data(ranker, parts, valid, start, with_digest=checkpoint is not None)
    show = progress_function(progress, ranker.verbose)
    result = ranker._run(fit_parts._replace(model=over_parts), inputs, callbacks, show, checkpoint)
    return ranker._finish(inputs, result)


def _check_ranker(ranker: Ranker) -> None:
    """Raise unless the model can be fitted over partitions."""
    if ranker.model_name not in ("linear", "trees") or isinstance(ranker, MetricRanker):
        raise UsageError(
            f"{ranker.name} on model '{ranker.model_name}' runs in one process; linear and trees "
            "models run over partitions. Call its own fit, or choose model='linear' where the "
            "ranker has it."
        )


def _refuse_positions(loss: Any, parts: Partitions) -> None:
    """Raise if the loss learns the effects of positions."""
    if getattr(loss, "takes_positions", False) and any(parts.map(_has_positions)):
        raise IncompatibleError(
            f"loss '{part_name('losses', loss)}' learns effects of positions over all queries at "
            "once, not over parts; fit in one process, or debias the clicks first."
        )


def _fit_data(
    ranker: Ranker, parts: Partitions, valid: Any, start: FittedModel | None, *, with_digest: bool
) -> FitData:
    """Return the data of a fit; ``with_digest`` for checkpoints."""
    evaluators = None
    if isinstance(valid, Partitions):
        named = metric(ranker.selection_metric, convention=ranker.convention)
        evaluators = {"valid": PartitionedEvaluator(valid, named.for_selection())}
    digests = "".join(parts.map(digest_in_order, 1)) if with_digest else ""
    return FitData(
        data=parts,
        valid=valid,
        eval_sets={"valid": valid} if isinstance(valid, RankingData) else {},
        start=start,
        digest=digest_of_prints(
            parts.map(_prints), parts.n_documents, parts.n_features, parts.categories
        ),
        has_queries=parts.n_queries > 1,
        order_digest=hashlib.sha256(digests.encode()).hexdigest() if with_digest else None,
        evaluators=evaluators,
    )


def _is_read(source: Any) -> bool:
    """Return whether a reader with options reads this source."""
    if isinstance(source, str | Path):
        return not is_store(source)
    return isinstance(source, list) or hasattr(source, "columns")


def _valid_data(ranker: Ranker, valid: Any, train: Partitions, options: dict[str, Any]) -> Any:
    """Return validation data in the columns of train: partitions for a linear model."""
    if isinstance(valid, str | Path) and (ranker.model_name != "linear" or train.client is None):
        valid = load(valid, **options)
    if isinstance(valid, RankingData):
        columns: Any = train  # names, number and categories of features
        valid = valid_data(valid, columns)
    if ranker.model_name == "linear":
        return _in_parts(valid, train, options)
    if not isinstance(valid, RankingData):
        raise UsageError(
            f"{ranker.model_name} read validation data in this process: give RankingData or a file."
        )
    return valid


def _in_parts(valid: Any, train: Partitions, options: dict[str, Any]) -> Partitions:
    """Return validation data in partitions, on the cluster of train or in this process."""
    if isinstance(valid, RankingData) and train.client is None:
        return Partitions.from_list([valid])
    parts = Partitions.of(
        valid, client=None if isinstance(valid, Partitions) else train.client, **options
    )
    if parts.n_features != train.n_features:
        raise DataError(
            f"the validation data has {parts.n_features} features, the training data "
            f"{train.n_features}."
        )
    pairs = zip(train.feature_names or (), parts.feature_names or (), strict=False)
    for column, (expected, name) in enumerate(pairs):
        if name != expected:
            raise DataError(
                f"column {column} is '{expected}' in the training data and '{name}' in the "
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


def _has_positions(part: RankingData) -> bool:
    return part.position is not None


def _prints(part: RankingData) -> Any:
    return query_prints(part, n_jobs=1)
