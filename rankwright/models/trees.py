"""Boosted regression trees on LightGBM, under any loss and without its limits.

Each round the loss's gradient and curvature (`rankwright.models.boosting`) go to LightGBM as a
custom objective, so lists may be of any length and grades any real number. Labels never reach
LightGBM; the initial score is ours and is added back when scoring.

Few queries are fitted too closely by large trees that see everything. So parameters that are "auto"
depend on the size of the data: with m = min(documents, 100 queries) and

    a = log(m / 20,000) / log(100,000 / 20,000),   at least 0 and at most 1                    (1)

they go from their value for small data (a = 0) to that for large data (a = 1); `Trees.resolve`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy import sparse

from rankwright.core.checks import ArraySpec
from rankwright.core.openmp import load_lightgbm_library, spare_threads
from rankwright.core.parallel import thread_count
from rankwright.core.parameters import Part
from rankwright.core.types import F64, I64, AnyArray, Callback, CheckpointState, FloatMatrix, Loss
from rankwright.data.content import content_sample
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.models.boosting import Boost, Descent
from rankwright.models.callbacks import until_interrupted
from rankwright.models.forest_scorer import ForestScorer, TextForest
from rankwright.models.schema import Schema
from rankwright.models.tree_shap import TreeShap
from rankwright.models.tree_text import (
    begins_with_a_stump,
    check_head,
    first_trees,
    join_trees,
    without_first_tree,
)

if TYPE_CHECKING:  # imported on use: scoring does without
    import lightgbm as lgb

_MOST_LEAVES = 131_072  # of LightGBM
BIN_ROWS = 1 << 16  # documents that thresholds come from, at most: LightGBM's buffers double
_SMALL, _LARGE = 20_000, 100_000  # documents
_PER_QUERY = 100  # documents that a query counts for at most
_BY_SIZE: dict[str, Callable[[float], Any]] = {
    "num_leaves": lambda a: round(7.0 * (31.0 / 7.0) ** a),
    "learning_rate": lambda a: 0.05 * 2.0**a,
    "colsample_bytree": lambda a: 0.5 ** (1.0 - a),
}
_ROWS_PER_THREAD = 4096  # with fewer, LightGBM's threads wait for each other more than they work


def lightgbm() -> ModuleType:
    """Return LightGBM, imported on first use, with threads that sleep while they wait."""
    load_lightgbm_library()
    import lightgbm as lgb

    module: ModuleType = lgb
    return module


def lightgbm_threads(rows: int, threads: int) -> int:
    """Return how many of ``threads`` LightGBM is given for so many rows."""
    load_lightgbm_library()  # it may be too late to let its threads sleep
    return spare_threads(min(threads, max(1, rows // _ROWS_PER_THREAD)))


@dataclass(frozen=True, slots=True, repr=False)
class Trees(Part):
    """Gradient-boosted regression trees; takes missing values and categories as they are.

    Parameters
    ----------
    n_estimators, num_leaves, learning_rate, max_depth
        Size of the model and of its steps; no limit on the depth by default.
    min_child_samples, min_child_weight
        The least number of documents, and sum of curvature, of a leaf.
    reg_lambda, reg_alpha
        L2 and L1 penalties on leaf values.
    leaves, direction, subsample, query_fraction, colsample_bytree
        See `rankwright.models.boosting.Boost`.
    monotone_constraints : mapping or sequence
        1 or -1 for features whose score must rise or fall with them, by name, column or in order.
    categorical_feature : sequence
        Features that hold category numbers, by name or column. Columns of the type category are
        categories without being named; ordered ones are split as numbers, in their order.
    max_bins
        Number of thresholds tried for a feature.

    What is "auto" depends on the size of the data; `resolve` says how.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.LambdaMART(model=rw.models.Trees(max_bins=63))
    LambdaMART(model=Trees(max_bins=63))
    """

    takes_categories: ClassVar[bool] = True
    boosts: ClassVar[bool] = True  # rounds are many small steps
    compares_values: ClassVar[bool] = True  # whatever their size

    n_estimators: int = 100
    num_leaves: int | str = "auto"
    learning_rate: float | str = "auto"
    max_depth: int | None = None
    min_child_samples: int = 20
    min_child_weight: float = 1e-3
    reg_lambda: float = 0.0
    reg_alpha: float = 0.0
    leaves: str = "newton"
    direction: str = "gradient"
    subsample: float = 1.0
    query_fraction: float = 1.0
    colsample_bytree: float | str = "auto"
    monotone_constraints: Mapping[str | int, int] | Sequence[int] | None = None
    categorical_feature: Sequence[str | int] | None = None
    max_bins: int = 255

    def resolve(self, n_documents: int, n_queries: int) -> Self:
        """Return the model with a number for all that is "auto", by the size of the data.

        ================ ========== ==========
        parameter        small data large data
        ================ ========== ==========
        num_leaves       7          31
        learning_rate    0.05       0.1
        colsample_bytree 0.5        1
        ================ ========== ==========

        Small are up to 20,000 documents or 200 queries, large 100,000 documents of 1,000 queries
        and more; in between lies what is in between, by (1).

        Examples
        --------
        >>> import rankwright as rw
        >>> rw.models.Trees().resolve(n_documents=10_000, n_queries=100).num_leaves
        7
        """
        named = {name: getattr(self, name) for name in _BY_SIZE}
        size = min(n_documents, _PER_QUERY * n_queries)
        share = math.log(max(size, _SMALL) / _SMALL) / math.log(_LARGE / _SMALL)
        chosen = {
            name: _BY_SIZE[name](min(share, 1.0))  # (1)
            for name, value in named.items()
            if isinstance(value, str) and value == "auto"
        }
        return replace(self, **chosen)

    def check(self) -> None:
        """Refuse what LightGBM would not take, or take for something else."""
        for name in _BY_SIZE:
            value = getattr(self, name)
            if isinstance(value, str) and value != "auto":
                raise UsageError(f"{name} must be a number or 'auto', not {value!r}.")
        self.resolve(1, 1)._check_numbers()

    def _check_numbers(self) -> None:
        Boost.of(self).check()
        for name in ("reg_alpha", "reg_lambda", "min_child_weight", "min_child_samples"):
            if not getattr(self, name) >= 0:
                raise UsageError(f"{name} must be 0 or more, not {getattr(self, name)}.")
        if not 2 <= int(self.num_leaves) <= _MOST_LEAVES:
            raise UsageError(
                f"num_leaves must be from 2 to {_MOST_LEAVES:,}, not {self.num_leaves}."
            )
        if self.max_bins < 2:
            raise UsageError(f"max_bins must be 2 or more, not {self.max_bins}.")
        if self.max_depth is not None and self.max_depth < 1:
            raise UsageError(
                f"max_depth must be 1 or more, not {self.max_depth}; leave it out for no limit."
            )

    def fit(
        self,
        loss: Loss,
        data: RankingData,
        *,
        callback: Callback,
        start: FittedTrees | None = None,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> FittedTrees:
        """Boost ``n_estimators`` trees against ``loss``, after those of ``start``.

        Rounds count from the number of trees that ``start`` has: so do the callback, its
        checkpoints and what a round draws. Where every round of it left a tree, and with the
        direction "gradient", the result is that of one long run.
        """
        self.check()
        return self.resolve(data.n_documents, data.n_queries)._fit(
            loss, data, callback, start, random_state, n_jobs
        )

    def _fit(
        self,
        loss: Loss,
        data: RankingData,
        callback: Callback,
        start: FittedTrees | None,
        random_state: int,
        n_jobs: int | None,
    ) -> FittedTrees:
        run = self.descent(loss, data, seed=random_state, n_jobs=n_jobs)
        model = start or empty_forest(run.best_constant(), data.n_features)
        binned = BinnedData(data, callback.valid, self.lightgbm_params(data, random_state, n_jobs))
        before = _EarlierRounds.from_checkpoint(callback.load_state(), model)
        if before.state:
            run.load_state(before.state)
        booster = binned.booster(before.model)
        counts = self.grow(booster, run, callback, model.n_trees, before.counts)
        rounds = min(callback.best() - model.n_trees, len(counts))
        new = join_trees([*before.texts, _new_trees(booster, 0, later=bool(before.texts))])
        new = first_trees(new, counts[rounds - 1] if rounds > 0 else 0)
        text = join_trees([model.text, new]) if model.n_trees else new
        return FittedTrees(text, model.initial, data.n_features)

    @staticmethod
    def restore(
        arrays: Mapping[str, AnyArray],
        texts: Mapping[str, str],
        n_features: int,
    ) -> FittedTrees:
        """Build the fitted model from its own arrays and texts, checked."""
        _SCHEMA.check(arrays, texts)
        model = FittedTrees(texts["lightgbm"], float(arrays["initial"][0]), n_features)
        model.check()
        return model

    # --- steps of a fit, also used by the forest -------------------------------------------------

    def descent(self, loss: Loss, data: RankingData, *, seed: int, n_jobs: int | None) -> Descent:
        """Return the run that turns scores into gradients."""
        return Boost.of(self).start(loss, data, seed=seed, n_jobs=n_jobs)

    def grow(
        self,
        booster: lgb.Booster,
        run: Descent,
        callback: Callback,
        first: int,
        before: Sequence[int] = (),
    ) -> list[int]:
        """Add trees until all are there or the callback ends the run.

        Rounds count from ``first``. Returned is the number of trees after each of them (one that
        finds no split leaves none), beginning with those of an earlier run, ``before``.
        """
        value = np.nan
        written = stump = 0
        counts, done = list(before), len(before)
        reported, earlier = done, before[-1] if before else 0

        def objective(scores: F64, _: Any) -> tuple[AnyArray, AnyArray]:
            nonlocal value
            value, gradient, curvature = run.step(t, scores)
            return gradient, curvature

        def added() -> dict[str, AnyArray]:
            nonlocal written, reported
            text = _new_trees(booster, written, later=done > 0)
            fresh = np.array(counts[reported:], np.int64)
            written, reported = int(booster.current_iteration()), len(counts)
            return {"trees": np.frombuffer(text.encode(), np.uint8), "counts": fresh}

        rounds = range(first + done, first + self.n_estimators)
        with until_interrupted(callback, counts):
            for t in rounds if _has_bins(booster.train_set) else ():
                _allow_columns(booster, run.columns(t))
                empty = booster.update(fobj=objective)
                if empty and not run.samples:
                    break
                if empty and len(counts) == done > 0:
                    stump = 1  # see `_new_trees`
                counts.append(earlier + int(booster.current_iteration()) - stump)
                if callback.on_iteration(t + 1, value, *current_scores(booster, callback)):
                    break
                callback.save_state(t + 1, run.state, added)
        return counts

    def lightgbm_params(self, data: RankingData, seed: int, n_jobs: int | None) -> dict[str, Any]:
        """Return LightGBM's parameters; with these its result depends on data and seed alone."""
        params: dict[str, Any] = {
            "objective": "none",
            "metric": "none",
            "verbosity": -1,
            "deterministic": True,
            "force_row_wise": True,
            "num_threads": lightgbm_threads(data.n_documents, thread_count(n_jobs)),
            "seed": seed,
            "feature_pre_filter": False,
            "bin_construct_sample_cnt": BIN_ROWS,
            "max_bin": self.max_bins,
            "num_leaves": self.num_leaves,
            "learning_rate": self.learning_rate,
            "max_depth": -1 if self.max_depth is None else self.max_depth,
            "min_data_in_leaf": self.min_child_samples,
            "min_sum_hessian_in_leaf": self.min_child_weight,
            "lambda_l1": self.reg_alpha,
            "lambda_l2": self.reg_lambda,
        }
        categorical = _categorical(self.categorical_feature, data)
        if categorical:
            params["categorical_feature"] = categorical
        if self.monotone_constraints is not None:
            signs = _signs(self.monotone_constraints, data)
            _refuse_monotone_categories(signs, categorical, data)
            params["monotone_constraints"] = signs
        return params


INITIAL = ArraySpec("initial", "float64", (1,))
_SCHEMA = Schema((INITIAL,), {"lightgbm": ()})


@dataclass(frozen=True)
class FittedTrees:
    """A boosted forest: LightGBM's text and the score that every document starts from."""

    text: str
    initial: float
    n_features: int

    def check(self) -> None:
        """Raise where the text is damaged: neither kernels nor LightGBM check what it says."""
        if self.text:
            check_head(self.text, self.n_features)
        _ = self.forest

    @cached_property
    def booster(self) -> lgb.Booster:
        """LightGBM's own model, without the initial score."""
        whole = first_trees(self.text, self.n_trees)  # with the sizes that the trees have
        booster: lgb.Booster = lightgbm().Booster(model_str=whole)
        return booster

    @cached_property
    def forest(self) -> TextForest:
        """The trees as arrays."""
        return TextForest.read(self.text, self.n_features)

    @property
    def _scorer(self) -> ForestScorer:
        return self.forest.scorer

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return self._scorer.n_trees

    @property
    def is_constant(self) -> bool:
        """Whether all rows have the same score."""
        return self.n_trees == 0 or self._scorer.is_constant

    def scores(self, X: FloatMatrix, *, n_jobs: int | None = None) -> F64:
        """Return the score of each row: LightGBM's to the last bit, without LightGBM."""
        if self.n_trees == 0:
            return np.full(X.shape[0], self.initial)
        return self._scorer.scores(X, initial=self.initial, n_jobs=n_jobs)

    def running_scores(self, X: FloatMatrix, *, n_jobs: int | None = None) -> F64:
        """Return the scores that training goes on from, bit by bit those that it would have had.

        It adds each tree to the scores before it; `scores` adds the initial score last.
        """
        if self.n_trees == 0:
            return np.full(X.shape[0], self.initial)
        return self._scorer.scores(X, begin=self.initial, n_jobs=n_jobs)

    def contributions(self, X: FloatMatrix) -> F64:
        """Return SHAP values: one column per feature, and the expected score last."""
        expected = np.full((X.shape[0], 1), self.initial + self._shap.expected)
        return np.hstack([self._shap.values(X), expected])

    @cached_property
    def _shap(self) -> TreeShap:
        return TreeShap.of(self.forest.scorer, self.forest.cover)

    def breakpoints(self, column: int) -> F64:
        """Return the values of a feature after which scores may change."""
        return self._scorer.breakpoints(column)

    def importance(self, kind: str) -> F64:
        """Return each feature's total gain, or its number of splits, as LightGBM counts them."""
        gain = np.where(self.forest.gain > 0.0, self.forest.gain, 0.0)
        return self._scorer.sum_by_feature(gain if kind == "gain" else np.sign(gain))

    def arrays(self) -> dict[str, AnyArray]:
        """Return the initial score."""
        return {"initial": np.array([self.initial])}

    def texts(self) -> dict[str, str]:
        """Return LightGBM's model text."""
        return {"lightgbm": self.text}


class _EarlierRounds(NamedTuple):
    """What an earlier run of the same fit has grown: trees after each round, texts, the model."""

    counts: list[int]
    state: Mapping[str, AnyArray]
    texts: list[str]
    model: FittedTrees

    @classmethod
    def from_checkpoint(cls, kept: CheckpointState | None, start: FittedTrees) -> _EarlierRounds:
        """Return what was kept of a run that began with ``start``."""
        if kept is None:
            return cls([], {}, [], start)
        texts = [part["trees"].tobytes().decode() for part in kept.added]
        counts = [int(count) for part in kept.added for count in part["counts"]]
        whole = join_trees([start.text, *texts]) if start.n_trees else join_trees(texts)
        model = FittedTrees(whole, start.initial, start.n_features)
        model.check()
        return cls(counts, kept.state, texts, model)


def _new_trees(booster: lgb.Booster, since: int, *, later: bool) -> str:
    """Return the text of the booster's trees from number ``since``.

    LightGBM keeps a first tree without a split and drops those that come later, so that a booster
    which goes on from ``later`` rounds may begin with one that the whole run would not have.
    """
    text = booster.model_to_string(start_iteration=since)
    return without_first_tree(text) if later and not since and begins_with_a_stump(text) else text


class BinnedData:
    """Train and valid data as LightGBM bins them, once for any number of boosters.

    Mapped features are read row by row and never copied. Thresholds come from a sample of
    `BIN_ROWS` documents if there are more.
    """

    def __init__(
        self, data: RankingData, valid: RankingData | None, params: dict[str, Any]
    ) -> None:
        self._params = dict(params)
        self._categorical = self._params.pop("categorical_feature", "auto")
        count = self._params["bin_construct_sample_cnt"]
        sample = None
        if count < data.n_documents:  # drawn by us: LightGBM would go by the order of the rows
            seed = self._params["seed"]
            sample = self._bins(data.X[content_sample(data, count, seed=seed)], None)
        self._train, self._train_bins = data, self._bins(data.X, sample)
        self._valid = [] if valid is None else [(valid, self._bins(valid.X, self._train_bins))]

    def booster(self, start: FittedTrees) -> lgb.Booster:
        """Return a booster without trees whose scores are those of ``start``."""
        self._train_bins.set_init_score(start.running_scores(self._train.X))
        booster: lgb.Booster = lightgbm().Booster(self._params, self._train_bins)
        for valid, bins in self._valid:
            booster.add_valid(bins.set_init_score(start.running_scores(valid.X)), "valid")
        return booster

    def _bins(self, X: FloatMatrix, reference: lgb.Dataset | None) -> lgb.Dataset:
        bins: lgb.Dataset = lightgbm().Dataset(
            _as_lightgbm(X),
            np.zeros(X.shape[0], np.float32),
            reference=reference,
            params=self._params,
            categorical_feature=self._categorical,
        )
        return bins.construct()


def _allow_columns(booster: lgb.Booster, columns: I64 | None) -> None:
    """Let the next tree split on ``columns`` alone: the others' gain is multiplied by 0.

    LightGBM's own sampling of features draws from a stream that a resumed run cannot continue.
    """
    if columns is not None:
        share = np.zeros(booster.num_feature())
        share[columns] = 1.0
        booster.reset_parameter({"feature_contri": share.tolist()})


def _has_bins(data: lgb.Dataset) -> bool:
    """Whether a feature is not 0 everywhere; LightGBM raises in each round where none is."""
    return any(data.feature_num_bin(column) for column in range(data.num_feature()))


def empty_forest(initial: float, n_features: int) -> FittedTrees:
    """Return a model without trees, which scores ``initial`` everywhere."""
    return FittedTrees("", initial, n_features)


def current_scores(booster: lgb.Booster, callback: Callback) -> tuple[F64 | None, F64 | None]:
    """Return the scores on train (where wanted) and on valid (where there is one)."""
    held: dict[str, F64] = {}

    def hold(name: str) -> Any:
        def metric(scores: F64, _: Any) -> tuple[str, float, bool]:
            held[name] = np.array(scores, np.float64)
            return "held", 0.0, True

        return metric

    if callback.wants_train:
        booster.eval_train(hold("train"))
    if callback.valid is not None:
        booster.eval_valid(hold("valid"))
    return held.get("train"), held.get("valid")


def _as_lightgbm(X: FloatMatrix) -> Any:
    return sparse.csr_matrix(X) if sparse.issparse(X) else X


def _column(name: str | int, data: RankingData) -> int:
    names = data.feature_names or ()
    if name in names:
        return names.index(str(name))
    if isinstance(name, int | np.integer) and 0 <= name < data.n_features:
        return int(name)
    raise UsageError(
        f"there is no feature {name!r}; use a name or a column from 0 to {data.n_features - 1}."
    )


def _categorical(named: Sequence[str | int] | None, data: RankingData) -> list[int]:
    """Return the columns that are split as categories: those named, and those of that type."""
    of_type = [name for name, own in (data.categories or {}).items() if not own.ordered]
    return sorted({_column(name, data) for name in (*(named or ()), *of_type)})


def _refuse_monotone_categories(
    signs: Sequence[int], categorical: Sequence[int], data: RankingData
) -> None:
    for column in categorical:
        if signs[column]:
            name = column if data.feature_names is None else data.feature_names[column]
            raise UsageError(
                f"monotone_constraints has a sign for {name!r}, which is a category without order; "
                "leave it out, or make the category ordered."
            )


def _signs(monotone: Mapping[str | int, int] | Sequence[int], data: RankingData) -> list[int]:
    if not isinstance(monotone, Mapping):
        if len(monotone) != data.n_features:
            raise UsageError(
                f"monotone_constraints has {len(monotone)} signs for {data.n_features} features; "
                "a mapping such as {'price': -1} names only some."
            )
        return list(monotone)
    signs = [0] * data.n_features
    for name, sign in monotone.items():
        signs[_column(name, data)] = sign
    return signs
