"""The rankers of a comparison as the user names them.

``lambdamart`` is a ranker as it stands, ``lambdamart:num_leaves=7:model.max_bins=63`` one with
parameters of its own and of its model, and ``small=lambdamart:num_leaves=7`` gives it a name of its
own. ``auto`` is what `rankwright.auto` chooses by the training part of each fold.
``bm25=column:BM25`` is a feature of the data as scores, ``other=run:RUN.txt`` a TREC run and
``mine=model:model.rw`` a fitted model. In Python an entry may also be a ranker object, whose parts
may be objects too, an estimator or fitted model of another library, or an array of scores; and a
mapping gives names to entries.
"""

from __future__ import annotations

import copy
import inspect
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from scipy import sparse
from sklearn import config_context
from sklearn.utils.metadata_routing import get_routing_for_object

from rankwright import registry
from rankwright.comparison.key_values import parse_parameters
from rankwright.comparison.result import Entry
from rankwright.core.parameters import PARTS, both, check_above_zero, check_value
from rankwright.core.types import F64, I64
from rankwright.data.content import content_digest
from rankwright.data.frames import column_of, columns_of_features, frame_of_columns
from rankwright.data.ranking_data import RankingData
from rankwright.data.rankings import names_in_run
from rankwright.data.split import Fold
from rankwright.data.trec import ByDocument, read_run
from rankwright.errors import DataError, RankwrightError, UsageError, counted
from rankwright.metrics.base import metric
from rankwright.rankers.base import Ranker, ranker
from rankwright.rankers.search_space import given_parameters

AUTO = "auto"
AUTO_OPTIONS = ["time_limit", "ensemble"]
KINDS_OF_TEXT = {
    "column": "the name or number of a feature",
    "run": "the name of a TREC run",
    "model": "the name of a model file",
}

_COMMA = re.compile(r",(?![^\[({]*[\])}])")  # not within brackets
_COLON = re.compile(r":(?![^\[({]*[\])}])")
_TEXT = re.compile(rf"(?:([^:=]+)=)?\s*({'|'.join(KINDS_OF_TEXT)}):(.*)")
_BY_QUERY = ("qid", "group", "group_id")  # of ``fit``, in order of preference
_OF_THE_COMPARISON = ("n_jobs", "verbose", "convention")


def entries_of(rankers: Any) -> tuple[Entry, ...]:
    """Return an entry for each ranker; each is made once, so that a wrong name is reported at once.

    Parameters
    ----------
    rankers : str, ranker, estimator, fitted model, an iterable of them, or a mapping
        A mapping goes from names to them, and may hold arrays of scores too.
    """
    found: list[Entry] = []
    if isinstance(rankers, Mapping):
        for label, given in rankers.items():
            made = _entry(given)
            found.append(replace(made, label=str(label)))
    else:
        single = isinstance(rankers, str) or hasattr(rankers, "predict")  # a Pipeline has a length
        listed = [rankers] if single else rankers
        if not isinstance(listed, Iterable):
            raise UsageError(f"rankers must be names or rankers, not {type(rankers).__name__}.")
        for given in listed:
            texts = _COMMA.split(given) if isinstance(given, str) else [given]
            found.extend(_entry(text) for text in texts)
    _check(found)
    return tuple(found)


def parse_entry(text: str) -> Entry:
    """Return the entry that ``[label=]ranker[:key=value]...`` or ``[label=]run:FILE`` names."""
    scored = _TEXT.fullmatch(text.strip())
    if scored is not None:
        label, kind, value = scored.groups()
        scorer = text_scorer(kind, value.strip())
        if isinstance(scorer, RunScorer):
            scorer.check()
        return Entry((label or text).strip(), scorer.kind, {}, scorer)
    head, *settings = (part.strip() for part in _COLON.split(text.strip()))
    label, equals, name = head.rpartition("=")
    label = label if equals else text.strip()
    parameters = parse_parameters(settings, f"'{text}'")
    if name.strip() == AUTO:
        return Entry(label, AUTO, parameters, AutoScorer(**checked_auto_options(parameters)))
    return Entry(label, name.strip(), parameters)


def _entry(given: Any) -> Entry:
    if isinstance(given, str):
        return parse_entry(given)
    scored = scorer_of(given)
    if scored is not None:
        label, scorer = scored
        return Entry(label, scorer.kind, dict(getattr(scorer, "parameters", {})), scorer)
    if isinstance(given, Ranker):
        parameters = given_parameters(given)
        shown = "".join(f":{name}={_shown(name, value)}" for name, value in parameters.items())
        name = registry.name_of("rankers", type(given))
        if name is None:
            raise UsageError(_unnamed("rankers", type(given).__name__))
        return Entry(name + shown, name, parameters)
    raise UsageError(
        "an entry must be a name, a ranker, an estimator or fitted model with predict, or an array "
        f"of scores, not {type(given).__name__}."
    )


def _check(entries: list[Entry]) -> None:
    if not entries:
        raise UsageError("there is no ranker to compare; `rankwright list rankers` shows them.")
    labels = [entry.label for entry in entries]
    for entry in entries:
        if labels.count(entry.label) > 1:
            other = f"other={entry.label}" if entry.scorer is None else "{'other': ...}"
            raise UsageError(f"'{entry.label}' is listed twice; give one another name: {other}.")
        if entry.scorer is not None:
            continue
        usual = registry.resolve("rankers", entry.ranker)().get_params(deep=False)
        for name in _OF_THE_COMPARISON:
            if entry.parameters.get(name, usual[name]) != usual[name]:
                raise UsageError(
                    f"{entry.label}: {name} is set for the whole comparison, not for one ranker."
                )
        made = ranker(entry.ranker, **entry.parameters)
        model = made.make_model()
        if registry.name_of("models", type(model)) is None:
            raise UsageError(f"{entry.label}: {_unnamed('models', type(model).__name__)}")
        if made.has_loss:
            made.make_loss()


def selection(name: str, select: Any) -> dict[str, Any]:
    """Return the parameter by which the ranker called ``name`` selects on the validation set.

    That is ``select_metric`` where the loss has a metric of its own, else ``metric``.
    """
    known = registry.resolve("rankers", name)().get_params(deep=False)
    return {"select_metric" if "select_metric" in known else "metric": select}


def _shown(name: str, value: Any) -> str:
    """Return a parameter as a label has it: what differs from the defaults of a part."""
    if name in PARTS and not isinstance(value, str):
        return repr(value)
    if callable(value) and "metric" in name:
        return repr(metric(value))
    return str(value)


def _unnamed(kind: str, name: str) -> str:
    return (
        f"{name} has no registered name, by which the fitted model could be kept; announce it as "
        f"an entry point of the group rankwright.{kind}."
    )


# --- scorers of other libraries --------------------------------------------------------------
#
# Entries of a comparison that are not named rankers: other libraries' models, columns, run files.
#
# An estimator that is not fitted (scikit-learn's, or one with the same methods, as ``LGBMRanker``
# and ``XGBRanker``) is cloned and fitted to train in every fold. Anything that is fitted is only
# scored. All of them are run in the calling process and never written to disk, so they are not kept
# in the cache.


@dataclass(frozen=True)
class TestRows:
    """Which rows of the data the test part of a fold is, in the caller's order of rows.

    ``total`` is how many rows there are in all: known from the start where one file is cut, and
    with the last fold where the data comes in folds, whose test parts are counted one after the
    other.
    """

    __test__ = False  # for pytest: not a class of tests

    rows: I64
    total: int | None


@dataclass(frozen=True)
class Scored:
    """What a scorer gives for a fold: scores of the test documents, and how they came about."""

    scores: F64
    seconds: float | None = None
    curve: Mapping[str, list[float]] = field(default_factory=dict)
    best_iteration: int | None = None


class Scorer(Protocol):
    """Anything that gives the test documents of a fold their scores."""

    kind: str
    """What it is, in a few words."""

    @property
    def note(self) -> str | None:
        """What a reader of the table should know, if anything."""

    def run(self, fold: Fold, at: TestRows, seed: int) -> Scored:
        """Return the scores of ``fold.test``, fitted to the fold where it can be."""


def scorer_of(given: Any) -> tuple[str, Scorer] | None:
    """Return a label and the scorer for an object, None where it is nothing that scores."""
    if isinstance(given, Ranker):
        return (given.name, FittedScorer(given)) if hasattr(given, "model_") else None
    if isinstance(given, type):
        raise UsageError(f"{given.__name__} is a class; write {given.__name__}() to compare it.")
    if hasattr(given, "predict") or hasattr(given, "inplace_predict"):
        fitted = not hasattr(given, "fit") or _is_fitted(given)
        scorer = FittedScorer(given) if fitted else EstimatorScorer(given)
        return type(given).__name__, scorer
    if hasattr(given, "__array__"):
        name = getattr(given, "name", None)
        return name if isinstance(name, str) else "scores", ArrayScorer(given)
    return None


def text_scorer(kind: str, value: str) -> Scorer:
    """Return the scorer that ``kind:value`` names, with ``kind`` one of `KINDS_OF_TEXT`."""
    if not value:
        raise UsageError(f"'{kind}:' is followed by {KINDS_OF_TEXT[kind]}.")
    if kind == "column":
        return ColumnScorer(value)
    if kind == "run":
        return RunScorer(value)
    from rankwright.persist.model_file import load_model

    return FittedScorer(load_model(value), kind=f"model file {Path(value).name}")


def called(run: Callable[[], Scored]) -> Scored:
    """Return what ``run`` returns; any error of another library becomes a sentence of ours."""
    try:
        found = run()
    except (RankwrightError, KeyboardInterrupt):
        raise
    except Exception as error:  # whatever other libraries raise
        line = str(error).strip().partition("\n")[0]
        raise DataError(f"{type(error).__name__}: {line}") from error
    if not np.isfinite(found.scores).all():
        raise DataError("its scores are not all finite numbers.")
    return found


# --- auto ------------------------------------------------------------------------------------


class AutoScorer:
    """What `rankwright.auto` chooses by the training part of each fold, and fits to it.

    The validation part is used only if auto cannot deal the training part to folds itself, so that
    auto is fitted to as many queries as the other rankers are.
    """

    kind = AUTO

    def __init__(self, time_limit: float | None = None, ensemble: bool = True) -> None:
        self._options: dict[str, Any] = {"time_limit": time_limit, "ensemble": ensemble}
        self._choices: Counter[str] = Counter()

    def set_common(self, **common: Any) -> None:
        """Take the parameters that all rankers of a comparison share."""
        self._options |= common

    @property
    def note(self) -> str | None:
        """Return what was chosen in how many folds."""
        if not self._choices:
            return None
        texts = [f"{what} in {counted(n, 'fold')}" for what, n in self._choices.items()]
        return f"chose {both(texts)}"

    def run(self, fold: Fold, at: TestRows, seed: int) -> Scored:  # noqa: ARG002
        """Return the scores of what is chosen by train."""
        from rankwright.comparison.auto import auto, deals_to_folds

        valid = None if deals_to_folds(fold.train) else fold.valid
        began = time.perf_counter()
        chosen = auto(fold.train, eval_set=valid, random_state=seed, **self._options)
        seconds = time.perf_counter() - began
        parts = [each.ranker for each in chosen.candidates if each.weight > 0.0]
        self._choices[f"a blend of {both(parts)}" if len(parts) > 1 else parts[0]] += 1
        return Scored(chosen.ranker.predict(fold.test), seconds)


def checked_auto_options(given: Mapping[str, Any], what: str = "parameters") -> dict[str, Any]:
    """Return the parameters of auto, or raise if it does not take one of them."""
    for name in given:
        if name not in AUTO_OPTIONS:
            raise UsageError(
                f"auto tries rankers with their default parameters and takes no {what} but "
                f"{both(AUTO_OPTIONS)}: leave {name} out, or name a ranker in place of auto."
            )
    if given.get("time_limit") is not None:
        check_above_zero("time_limit", given["time_limit"])
    if "ensemble" in given:
        check_value("ensemble", given["ensemble"], bool)
    return dict(given)


# --- models of other libraries ---------------------------------------------------------------


class EstimatorScorer:
    """An estimator with ``fit`` and ``predict``, cloned and fitted in every fold.

    ``fit`` gets the queries where it takes ``qid``, ``group`` or ``group_id``, or routes ``qid`` to
    a ranker of a pipeline, the validation set where it takes ``eval_set``, and weights where the
    data has them. A pipeline gets a frame if the features have names. A classifier ranks by the
    expected grade: the sum over grades of grade times predicted probability.
    """

    note: str | None = None

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator
        self.kind = f"{type(estimator).__name__} of {_library(estimator)}"

    @property
    def parameters(self) -> dict[str, Any]:
        """Return the estimator's parameters as it was given."""
        get = getattr(self.estimator, "get_params", None)
        return dict(get(deep=False)) if get else {}

    def run(self, fold: Fold, at: TestRows, seed: int) -> Scored:  # noqa: ARG002
        """Return the scores of a clone fitted to train."""
        made = _seeded(_cloned(self.estimator), seed)
        X = features_for(made, fold.train)
        arguments = _fit_arguments(made, fold.train, fold.valid)
        began = time.perf_counter()
        fit_with_queries(made, X, fold.train, **arguments)
        seconds = time.perf_counter() - began
        curve, best = _learning_curve(made)
        return Scored(_scores(made, fold.test), seconds, curve, best)


class FittedScorer:
    """A ranker, booster or estimator that was fitted before: it is only scored."""

    note: str | None = "fitted before this comparison, only scored here"

    def __init__(self, fitted: Any, *, kind: str | None = None) -> None:
        self.fitted = fitted
        self.kind = kind or f"fitted {type(fitted).__name__} of {_library(fitted)}"

    def run(self, fold: Fold, at: TestRows, seed: int) -> Scored:  # noqa: ARG002
        """Return the scores of the test part."""
        width = getattr(self.fitted, "n_features_in_", None)
        test = fold.test if width is None else fold.test.with_n_features(int(width))
        return Scored(_scores(self._by_category(test), test))

    def _by_category(self, test: RankingData) -> Any:
        """Return it as a ranker where it knows categories, whose codes may be others."""
        if not test.categories or isinstance(self.fitted, Ranker):
            return self.fitted
        from rankwright.persist.other_libraries import import_model, is_importable

        if not is_importable(self.fitted):
            return self.fitted
        imported = import_model(self.fitted)
        return imported if hasattr(imported, "categories_") else self.fitted

    def fitted_to(self, train: RankingData) -> bool:
        """Whether it is known to have been fitted to ``train`` and nothing else."""
        digest = getattr(self.fitted, "data_digest_", None)
        return digest is not None and digest == content_digest(train)


def _is_fitted(estimator: Any) -> bool:
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    if hasattr(estimator, "is_fitted"):  # CatBoost
        return bool(estimator.is_fitted())
    if not hasattr(estimator, "get_params"):
        return any(name.endswith("_") and name[0] != "_" for name in vars(estimator))
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True


def _library(given: Any) -> str:
    package = type(given).__module__.partition(".")[0]
    names = {"sklearn": "scikit-learn", "lightgbm": "LightGBM", "xgboost": "XGBoost"}
    return names.get(package, package)


def _cloned(estimator: Any) -> Any:
    from sklearn.base import clone

    return clone(estimator) if hasattr(estimator, "get_params") else copy.deepcopy(estimator)


def _seeded(estimator: Any, seed: int) -> Any:
    """Return the estimator with ``seed`` for every random_state that is None."""
    if not hasattr(estimator, "get_params"):
        return estimator
    names = [
        name
        for name, value in estimator.get_params(deep=True).items()
        if value is None and (name == "random_state" or name.endswith("__random_state"))
    ]
    return estimator.set_params(**dict.fromkeys(names, seed)) if names else estimator


def features_for(estimator: Any, data: RankingData) -> Any:
    """Return the features as an estimator takes them: a frame, an array or a CSR matrix.

    A pipeline or column transformer of scikit-learn is given a frame if the features have names,
    since it may choose its columns by name.
    """
    if data.feature_names is None or sparse.issparse(data.X) or not chooses_columns(estimator):
        return _matrix(data)
    columns = columns_of_features(data)
    if find_spec("pandas") is not None:
        return frame_of_columns(columns, "pandas")
    return frame_of_columns(columns, "polars") if find_spec("polars") is not None else data.X


def chooses_columns(estimator: Any) -> bool:
    """Whether an estimator is, or holds, a pipeline or a column transformer."""
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import FeatureUnion, Pipeline

    kinds = (ColumnTransformer, FeatureUnion, Pipeline)
    parts = estimator.get_params(deep=True).values() if hasattr(estimator, "get_params") else ()
    return isinstance(estimator, kinds) or any(isinstance(part, kinds) for part in parts)


def fit_with_queries(estimator: Any, X: Any, data: RankingData, **arguments: Any) -> None:
    """Fit an estimator, such as a pipeline that ends in a ranker, with query ids if it takes them.

    They are routed as scikit-learn's metadata routing does, which need not be enabled.
    """
    routed = hasattr(estimator, "get_metadata_routing") and not arguments.keys() & set(_BY_QUERY)
    if routed:
        with config_context(enable_metadata_routing=True):
            if get_routing_for_object(estimator).consumes("fit", ["qid"]):
                qid = np.repeat(data.qid, data.sizes)
                estimator.fit(X, data.y, qid=qid, **arguments)
                return
    estimator.fit(X, data.y, **arguments)


def _matrix(data: RankingData) -> Any:
    """Return the features as other libraries take them: an array or a CSR matrix."""
    return sparse.csr_matrix(data.X) if sparse.issparse(data.X) else data.X


def _fit_arguments(estimator: Any, train: RankingData, valid: RankingData | None) -> dict[str, Any]:
    """Return what ``fit`` takes beside X and y: queries, weights and the validation set."""
    known = inspect.signature(estimator.fit).parameters
    by_query = next((name for name in _BY_QUERY if name in known), None)
    found: dict[str, Any] = {}
    if by_query is not None:
        found[by_query] = _queries(train, by_query)
    elif "Group" in type(getattr(estimator, "cv", None)).__name__:  # a search over GroupKFold
        found["groups"] = train.query_of_row()
    if "sample_weight" in known:
        weight = _weights(train, per_query=by_query == "qid")  # XGBoost weighs queries alone
        found |= {} if weight is None else {"sample_weight": weight}
    if "verbose" in known and not _says_how_verbose(estimator):
        found["verbose"] = False
    if valid is not None and "eval_set" in known:
        if by_query == "group_id":
            pool = inspect.getmodule(type(estimator)).Pool  # type: ignore[union-attr]
            found["eval_set"] = pool(_matrix(valid), valid.y, group_id=valid.query_of_row())
            return found
        if "eval_X" in known:  # LightGBM since 4.7
            found |= {"eval_X": _matrix(valid), "eval_y": valid.y}
        else:
            found["eval_set"] = [(_matrix(valid), valid.y)]
        if f"eval_{by_query}" in known:
            found[f"eval_{by_query}"] = [_queries(valid, str(by_query))]
    return found


def _says_how_verbose(estimator: Any) -> bool:
    return any(
        estimator.get_params().get(name) is not None
        for name in ("verbose", "silent", "logging_level", "verbose_eval")
    )


def _queries(data: RankingData, how: str) -> I64:
    return data.sizes if how == "group" else data.query_of_row()


def _weights(data: RankingData, *, per_query: bool) -> F64 | None:
    if per_query or (data.query_weight is None and data.sample_weight is None):
        return data.query_weight
    weight = np.ones(data.n_documents) if data.sample_weight is None else data.sample_weight
    if data.query_weight is not None:
        weight = weight * np.repeat(data.query_weight, data.sizes)
    return weight


def _scores(fitted: Any, test: RankingData) -> F64:
    if isinstance(fitted, Ranker):
        return fitted.predict(test)
    X = features_for(fitted, test)
    if hasattr(fitted, "inplace_predict"):  # XGBoost's booster, whose predict wants a DMatrix
        found = fitted.inplace_predict(X)
    elif hasattr(fitted, "predict_proba") and hasattr(fitted, "classes_"):
        found = fitted.predict_proba(X) @ np.asarray(fitted.classes_, np.float64)
    elif hasattr(fitted, "decision_function") and len(getattr(fitted, "classes_", ())) == 2:
        found = fitted.decision_function(X)
    else:
        found = fitted.predict(X)
    scores = np.asarray(found, np.float64)
    scores = scores[:, 0] if scores.ndim == 2 and scores.shape[1] == 1 else scores
    if scores.shape != test.y.shape:
        raise DataError(
            f"its predictions have the shape {scores.shape} where one score for each of "
            f"{test.n_documents} documents is expected."
        )
    return scores


def _learning_curve(fitted: Any) -> tuple[dict[str, list[float]], int | None]:
    """Return the metrics on the validation set by round, and the best round from 1, if any."""
    result = getattr(fitted, "evals_result_", None)
    if not isinstance(result, Mapping):
        return {}, None
    curves = {
        f"{'train' if part == 'learn' else 'valid'} {name}": [float(value) for value in values]
        for part, metrics in result.items()
        for name, values in metrics.items()
    }
    best = getattr(fitted, "best_iteration_", None)  # LightGBM, from 1
    if best is None:
        best = getattr(fitted, "best_iteration", None)  # XGBoost, from 0, with early stopping alone
        best = None if best is None else best + 1
    return curves, int(best) if best else None


# --- scores that are there already -----------------------------------------------------------


class ColumnScorer:
    """A feature of the data as scores, such as BM25; a missing value ranks last."""

    note: str | None = None

    def __init__(self, column: str) -> None:
        self.column, self.kind = column, f"column {column}"

    def run(self, fold: Fold, at: TestRows, seed: int) -> Scored:  # noqa: ARG002
        """Return the feature of the test documents."""
        values = fold.test.X[:, [column_of(fold.test, self.column)]]
        dense = values.toarray() if sparse.issparse(values) else values
        return Scored(_missing_last(np.array(dense, np.float64).ravel()))


class ArrayScorer:
    """A score for each row of the data, in the caller's order of rows; NaN ranks last."""

    kind: str = "array of scores"
    note: str | None = None

    def __init__(self, scores: Any) -> None:
        try:
            self._scores = np.asarray(scores, np.float64)
        except (TypeError, ValueError):
            raise UsageError("an array of scores must hold numbers.") from None
        if self._scores.ndim != 1:
            raise UsageError(
                f"an array of scores has one dimension, not the shape {self._scores.shape}."
            )

    def run(self, fold: Fold, at: TestRows, seed: int) -> Scored:  # noqa: ARG002
        """Return the scores of the rows of the test part."""
        enough = not len(at.rows) or int(at.rows.max()) < len(self._scores)
        if not enough or at.total not in (None, len(self._scores)):
            rows = int(at.rows.max()) + 1 if at.total is None else at.total
            more = " or more" if at.total is None else ""
            raise DataError(
                f"the array has {len(self._scores)} scores for {rows}{more} rows; give one for "
                "each row of the data, or of the test parts of its folds, one after the other."
            )
        return Scored(_missing_last(self._scores[at.rows]))


class RunScorer:
    """A TREC run, matched by query and document id; a document that it lacks ranks last."""

    def __init__(self, path: str | Path) -> None:
        self.path, self.kind = path, f"run {Path(path).name}"
        self._lacking = self._documents = 0

    @cached_property
    def _run(self) -> ByDocument:
        return read_run(self.path)

    @property
    def note(self) -> str | None:
        """Return how many documents the run lacks."""
        if not self._lacking:
            return None
        return (
            f"the run has no score for {self._lacking:,} of {self._documents:,} test documents, "
            "which rank last"
        )

    def check(self) -> None:
        """Read the run, so that an error in it is raised before anything else is done."""
        _ = self._run

    def run(self, fold: Fold, at: TestRows, seed: int) -> Scored:  # noqa: ARG002
        """Return the run's scores of the test documents."""
        test = fold.test
        names = names_in_run(test)
        scores = np.array([self._run.get(query, {}).get(doc, np.nan) for query, doc in names])
        if np.isnan(scores).all():
            without = "" if test.doc_id is not None else ", and the data has no document ids"
            raise DataError(
                f"{self.path} has no document of the test queries by its query and document "
                f"id{without}."
            )
        self._lacking += int(np.isnan(scores).sum())
        self._documents += len(scores)
        return Scored(_missing_last(scores))


def _missing_last(scores: F64) -> F64:
    """Return scores whose missing values lie below all others."""
    missing = np.isnan(scores)
    if missing.all():
        return np.zeros(len(scores))
    return np.where(missing, scores[~missing].min() - 1.0, scores)
