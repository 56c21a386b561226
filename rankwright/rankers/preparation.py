"""Prepare the data of a fit: the caller's data as RankingData, checked, with validation data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from rankwright.core.types import AnyArray, FittedModel, Loss
from rankwright.data.click_log import ClickLog
from rankwright.data.content import digest_of_prints, query_prints
from rankwright.data.frames import listed
from rankwright.data.inspect import warn_of_outcomes
from rankwright.data.ranking_data import RankingData, concatenate
from rankwright.errors import DataError, IncompatibleError, UsageError, quoted
from rankwright.rankers.data_checks import (
    refuse_categories,
    refuse_overflow,
    warn_of_equal_grades,
    warn_of_training_data,
)
from rankwright.rankers.inputs import Layout, in_columns, ranking_data, refuse_other_feature_ids

if TYPE_CHECKING:
    from rankwright.rankers.base import Ranker


class FitParts(NamedTuple):
    """Loss, model and solver of a fit; for rankers that optimise a metric, it replaces the loss."""

    loss: Any
    model: Any
    solver: Any


@dataclass(frozen=True, kw_only=True)
class FitData:
    """Data of a fit as models use them.

    Attributes
    ----------
    data : RankingData, or Partitions on other machines
        Training data, without documents of weight 0.
    valid : RankingData, Partitions or None
        All validation sets, one after the other.
    eval_sets : mapping from names to RankingData
        The validation sets in this process, by name.
    start : fitted model or None
        Model to continue from.
    digest : str
        Digest of the training data, for the model file.
    has_queries : bool
        Whether the caller passed queries, which `Ranker.score` then needs too.
    query_codes : tuple of arrays, or None
        Id and code of each training query, if the queries have ids; see `warn_of_cut_queries`.
    propensity : Propensity or None
        The propensity whose effect was removed from clicks.
    order_digest : str or None
        Digest for checkpoints of data in partitions.
    evaluators : mapping from names to evaluators, or None
        Replace those of ``eval_sets`` if the validation data are on other machines.
    """

    data: Any
    valid: Any
    eval_sets: Mapping[str, RankingData]
    start: FittedModel | None
    digest: str
    has_queries: bool
    query_codes: tuple[AnyArray, AnyArray] | None = None
    propensity: Any = None
    order_digest: str | None = None
    evaluators: Mapping[str, Any] | None = None


def prepare(
    ranker: Ranker,
    parts: FitParts,
    X: Any,
    columns: Mapping[str, Any],
    *,
    features: Any,
    drop: Any,
    propensity: Any,
    eval_set: Any,
    init_model: Any,
) -> FitData:
    """Return the caller's data as RankingData, after errors and warnings about unusual data.

    Parameters
    ----------
    ranker, parts
        The ranker to be fitted, with its loss and model.
    X, features, drop, propensity, eval_set, init_model
        As for `Ranker.fit`.
    columns : mapping
        The arguments of `Ranker.fit` with a value for each row or query: ``y``, ``qid``,
        ``group_sizes`` and the weights.
    """
    loss, model, _ = parts
    rows = _rows_of_clicks(X, loss, propensity, ranker) if isinstance(X, ClickLog) else X
    source = clicks = ranking_data(rows, **columns, features=features, drop=drop)
    if propensity is not None:
        source, propensity = _debias(ranker, loss, X, clicks, propensity, features, drop)
    table = X.features if isinstance(X, ClickLog) and X.features is not None else clicks
    data = source.present()
    if data.qid_column != table.qid_column:  # a log and debiased clicks do not know the column
        data = data._replace(qid_column=table.qid_column)
    if data.feature_ids != table.feature_ids:
        data = data._replace(feature_ids=table.feature_ids)
    data.check_width()
    refuse_categories(ranker, model, data)
    refuse_overflow(ranker, model, data)
    if init_model is not None:  # trees know categories by their codes
        init_model = _initial_ranker(init_model)
        data = data.in_categories(getattr(init_model, "categories_", None))
    warn_of_equal_grades(data)
    if data.feature_names is not None:
        warn_of_outcomes(data, chosen=listed(features) or ())
    sets = {} if eval_set is None else eval_sets(eval_set, data)
    for valid in list(sets.values())[-1:]:
        warn_of_training_data(clicks, valid, stacklevel=4)
    prints = query_prints(source, n_jobs=ranker.n_jobs)
    digest = digest_of_prints([prints], *source.X.shape)
    has_ids = columns["qid"] is not None
    return FitData(
        data=data,
        valid=_joined(list(sets.values())),
        eval_sets=sets,
        start=None if init_model is None else start_model(ranker, model, init_model, data),
        digest=digest,
        has_queries=has_ids or columns["group_sizes"] is not None or source.n_queries > 1,
        query_codes=(source.qid, prints[0]) if has_ids and source.sample_weight is None else None,
        propensity=propensity,
    )


def _joined(sets: list[RankingData]) -> RankingData | None:
    if len(sets) > 1:
        return concatenate(sets, shared_ids=True)
    return sets[0] if sets else None


# --- clicks ------------------------------------------------------------------------------------


def _rows_of_clicks(log: ClickLog, loss: Loss, propensity: Any, ranker: Ranker) -> RankingData:
    """Return a log as data: clicks as grades, or the rates of each position to be debiased."""
    from rankwright.clicks.debiasing import click_rows, data_of_clicks

    if propensity is not None:
        return click_rows(log)
    return data_of_clicks(loss if ranker.has_loss else None, log)


def _debias(
    ranker: Ranker,
    loss: Loss,
    source: Any,
    clicks: RankingData,
    propensity: Any,
    features: Any,
    drop: Any,
) -> tuple[RankingData, Any]:
    """Return data with relevance estimated from clicks, and the propensity that was used."""
    from rankwright.clicks.debiasing import debias, known_propensity, weighed_by_ideal

    propensity = known_propensity(propensity, clicks, n_jobs=ranker.n_jobs)
    if isinstance(source, ClickLog) and ranker.has_loss:
        table = ranking_data(source.features, features=features, drop=drop)
        log = source._replace(features=table)
        data = debias(log, propensity, unshown=True, n_jobs=ranker.n_jobs)
    else:  # documents never shown need document weights, which metrics do not have
        data = debias(clicks, propensity, n_jobs=ranker.n_jobs)
    return weighed_by_ideal(loss if ranker.has_loss else ranker, data), propensity


# --- continuing from another model -------------------------------------------------------------


def _initial_ranker(init_model: Any) -> Any:
    """Return a fitted ranker unchanged, and the model of another library imported."""
    from rankwright.rankers.base import Ranker

    if isinstance(init_model, Ranker):
        return init_model
    from rankwright.persist.other_libraries import import_model, is_importable

    if not is_importable(init_model):
        raise UsageError(
            "init_model is a fitted ranker or a fitted model of LightGBM, not "
            f"{type(init_model).__name__}; rankwright.load_model reads one from a file."
        )
    return import_model(init_model)


def start_model(ranker: Ranker, model: Any, initial: Ranker, data: Any) -> FittedModel:
    """Return the fitted model of ``initial``, or raise if the fit cannot continue from it."""
    start: FittedModel = initial._fitted()
    can_continue = getattr(model, "can_continue", None)
    if can_continue is not None and not can_continue(start):
        library = getattr(initial.model, "library", None)
        other = f"a model of {library}" if library else f"a model '{initial.model_name}'"
        raise IncompatibleError(
            f"a model '{ranker.model_name}' cannot continue from {other}; leave "
            "init_model out, or give a ranker with the same kind of model."
        )
    if start.n_features != data.n_features:
        raise DataError(
            f"init_model has {start.n_features} features and the data {data.n_features}; "
            "give the columns that it was fitted on, in that order."
        )
    names = getattr(initial, "feature_names_in_", None)
    if names is not None and data.feature_names is not None:
        for expected, name in zip(names, data.feature_names, strict=True):
            if expected not in (name, "_".join(name.split())):  # LightGBM writes blanks as _
                raise DataError(
                    f"init_model has the feature {quoted(expected)} in the place of "
                    f"{quoted(name)} in the data; give the columns that it was fitted on, in that "
                    "order."
                )
    return start


# --- validation data ---------------------------------------------------------------------------


def eval_sets(
    eval_set: Any,
    data: RankingData,
    read: Callable[[Any, RankingData], RankingData] | None = None,
) -> dict[str, RankingData]:
    """Return the caller's validation sets by name, in the columns of the training data.

    A single set is called "valid"; several, in a list or tuple, "valid_0", "valid_1", ...; a
    mapping names them. ``read`` converts a set to RankingData; by default `valid_data`.
    """
    if isinstance(eval_set, Mapping):
        sets = {str(name): each for name, each in eval_set.items()}
    elif isinstance(eval_set, list | tuple) and all(
        isinstance(each, RankingData | tuple | list) for each in eval_set
    ):
        names = [f"valid_{n}" for n in range(len(eval_set))] if len(eval_set) != 1 else ["valid"]
        sets = dict(zip(names, eval_set, strict=True))
    else:
        sets = {"valid": eval_set}
    if not sets:
        raise UsageError("eval_set is empty; give a validation set, or leave it out.")
    return {name: (read or valid_data)(each, data) for name, each in sets.items()}


def valid_data(eval_set: Any, data: RankingData) -> RankingData:
    """Return the caller's validation set, in the columns of the training data."""
    valid = eval_set
    if isinstance(eval_set, tuple | list):
        if len(eval_set) != 3:
            raise UsageError(
                "a validation set is (X, y, qid), with the query id of each row, or "
                f"RankingData; this one has {len(eval_set)} parts."
            )
        layout = Layout(data.feature_names, data.categories)
        valid = ranking_data(*eval_set, like=layout, where="the validation data")
    if not isinstance(valid, RankingData):
        raise UsageError(
            f"eval_set is (X, y, qid) or RankingData, not {type(eval_set).__name__}; "
            "rankwright.load reads a file as RankingData."
        )
    first_id = None if data.feature_ids is None else data.feature_ids.first
    refuse_other_feature_ids(valid, first_id, "the validation data")
    valid = in_columns(valid, data.feature_names, "the validation data")
    if valid.n_features != data.n_features:
        raise DataError(
            f"the validation data has {valid.n_features} features, the training data "
            f"{data.n_features}; give both the same columns in the same order."
        )
    return valid.in_categories(data.categories, "the validation set")
