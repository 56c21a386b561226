"""A sum of rules [x_f > theta], each with a weight: readable, and fitted under any loss.

    score(x) = initial + sum_t a_t [x_f(t) > theta_t]                                           (1)

Each round takes the rule along which the loss is steepest, of all features and thresholds,

    (f, theta) = argmax |sum of g_i over documents with x_if > theta|,   g = gradient at s      (2)

and goes along it as far as the loss says: exponential loss on pairs by RankBoost's formula
(`freund2003rankboost`; ``rule_step`` of `losses.pair_exp`), any other until its derivative along
the rule is near 0. Where a loss has kinks, a rule along which it does not fall is passed over. With
this model the exponential loss on pairs is RankBoost, the fidelity loss FRank (`tsai2007frank`).

A comparison with a missing value is false, so missing values are welcome; [x_f > -inf], "there is a
value", is a rule of its own where a feature has gaps. A rule that is chosen again adds to its
weight. Documents enter in an order fixed by their content, so shuffled rows change nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rankwright.core.checks import ArraySpec, check_arrays
from rankwright.core.jit import kernel
from rankwright.core.parallel import map_ranges, ordered_sum, row_ranges, thread_count
from rankwright.core.parameters import Part
from rankwright.core.types import F64, I64, AnyArray, Callback, FloatMatrix, Loss
from rankwright.data.content import in_content_order
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.losses.base import bound_loss, set_iteration
from rankwright.models.callbacks import until_interrupted
from rankwright.models.rules import Rule, RuleTable, by_column, column
from rankwright.models.schema import Schema
from rankwright.solvers.oracle_log import memory_of, put_back

_ROWS = 1 << 14
_FLAT = 0.01  # a derivative this small a share of the first counts as level
_TRIES = 40
_MOST_PASSED_OVER = 50
_ROUNDING = 1e-13  # of all gradients: a derivative this small is that of a level rule
_NOTHING = 1e-9  # a loss that falls by this share of itself has not fallen

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _score_rows(lo, hi, X, feature, threshold, weight, out):  # type: ignore[no-untyped-def]
    for i in range(lo, hi):
        for r in range(len(feature)):
            if X[i, feature[r]] > threshold[r]:
                out[i] += weight[r]


# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class Additive(Part):
    """Rules [feature > threshold] with weights; readable, and takes missing values as they are.

    Parameters
    ----------
    n_rounds : int
        Rules that are added; one that comes again adds to its weight.
    n_candidates : int or "all"
        Equal widths that the range of a feature is cut into for its thresholds, as in RankLib, or
        "all" for every value in the data.
    learning_rate : float
        Share of each step that is taken.
    falling : bool
        Also take rules with a negative weight, where less is better; RankLib does not.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.FRank(model=rw.models.Additive(n_rounds=100))
    FRank(model=Additive(n_rounds=100))
    """

    compares_values: ClassVar[bool] = True

    n_rounds: int = 300
    n_candidates: int | str = 10
    learning_rate: float = 1.0
    falling: bool = True

    def fit(
        self,
        loss: Loss,
        data: RankingData,
        *,
        callback: Callback,
        start: FittedAdditive | None = None,
        random_state: int = 0,  # noqa: ARG002
        n_jobs: int | None = None,
    ) -> FittedAdditive:
        """Add rules against ``loss``, after those of ``start``; rounds count from theirs."""
        self._check()
        descent = _Descent(self, loss, data, start, thread_count(n_jobs))
        valid = None if callback.valid is None else by_column(callback.valid.X)
        on_valid = None if callback.valid is None else descent.model.scores(callback.valid.X)
        first = descent.model.n_rounds
        added: list[tuple[int, float, float]] = []

        def state() -> dict[str, AnyArray]:
            own = descent.state() if on_valid is None else {**descent.state(), "valid": on_valid}
            return {**own, "rules": np.array(added)}

        kept = callback.load_state()
        if kept is not None:
            documents = {} if callback.valid is None else {"valid": callback.valid.n_documents}
            own = {name: kept.state[name] for name in kept.state if not name.startswith("memory.")}
            check_arrays(_STATE, own, "the checkpoint", train=data.n_documents, **documents)
            columns = own["rules"][:, 0].astype(np.int64), *own["rules"].T[1:]
            rules = dict(zip(("feature", "threshold", "weight"), columns, strict=True))
            check_arrays(_RULES, rules, "the checkpoint", features=data.n_features)
            added = [(int(f), cut, weight) for f, cut, weight in kept.state["rules"].tolist()]
            on_valid = kept.state.get("valid")
            descent.go_on(kept.state, kept.round)
        with until_interrupted(callback, added):
            for t in range(first + len(added), first + self.n_rounds):
                rule = descent.step(t)
                if rule is None:  # level along every rule
                    break
                added.append(rule)
                feature, threshold, weight = rule
                if on_valid is not None:
                    on_valid += weight * (column(valid, feature) > threshold)
                if callback.on_iteration(
                    t + 1, descent.value, descent.on_train(callback), on_valid
                ):
                    break
                callback.save_state(t + 1, state)
        if not added:
            callback.on_iteration(first + 1, descent.value, descent.on_train(callback), on_valid)
            return descent.model
        return descent.model.plus(added[: callback.best() - first])

    def _check(self) -> None:
        whole = isinstance(self.n_candidates, int) and self.n_candidates >= 2
        if not (whole or self.n_candidates == "all"):
            raise UsageError(
                f"n_candidates must be a whole number from 2, or 'all', not {self.n_candidates!r}."
            )
        if self.n_rounds < 1:
            raise UsageError(f"n_rounds must be 1 or more, not {self.n_rounds}.")
        if not self.learning_rate > 0.0:
            raise UsageError(f"learning_rate must be above 0, not {self.learning_rate}.")

    @staticmethod
    def restore(
        arrays: Mapping[str, AnyArray],
        texts: Mapping[str, str],
        n_features: int,
    ) -> FittedAdditive:
        """Build the fitted model from its own arrays and texts, checked."""
        _SCHEMA.check(arrays, texts, features=n_features)
        return FittedAdditive(
            arrays["feature"],
            arrays["threshold"],
            arrays["weight"],
            float(arrays["initial"][0]),
            int(arrays["n_rounds"][0]),
            n_features,
        )


_STATE = (
    ArraySpec("rules", "float64", ("rules", 3), finite=False),
    ArraySpec("valid", "float64", ("valid",), optional=True),
    ArraySpec("s", "float64", ("train",)),
    ArraySpec("g", "float64", ("train",)),
    ArraySpec("numbers", "float64", (2,), finite=False),
)
_RULES = (
    ArraySpec("feature", "int64", ("rules",), below="features"),
    ArraySpec("threshold", "float64", ("rules",), low=-math.inf, finite=False),
    ArraySpec("weight", "float64", ("rules",)),
)
_SCHEMA = Schema(
    (
        *_RULES,
        ArraySpec("initial", "float64", (1,)),
        ArraySpec("n_rounds", "int64", (1,), low=0),
    )
)


@dataclass(frozen=True, eq=False)
class FittedAdditive:
    """Rules by feature and threshold, their weights, and the score that documents start from."""

    feature: I64
    threshold: F64
    weight: F64
    initial: float
    n_rounds: int
    n_features: int

    split_by: ClassVar[str] = "rules"
    unbounded: ClassVar[frozenset[str]] = frozenset({"threshold"})

    def plus(self, rules: list[tuple[int, float, float]]) -> FittedAdditive:
        """Return the model with more rules, (feature, threshold, weight); equal ones are merged."""
        total = {(f, cut): w for f, cut, w in zip(*self._columns(), strict=True)}
        for f, cut, weight in rules:
            total[f, cut] = total.get((f, cut), 0.0) + weight
        keys = sorted(total)
        return FittedAdditive(
            np.array([f for f, _ in keys], np.int64),
            np.array([cut for _, cut in keys], np.float64),
            np.array([total[key] for key in keys], np.float64),
            self.initial,
            self.n_rounds + len(rules),
            self.n_features,
        )

    def scores(self, X: FloatMatrix, *, n_jobs: int | None = None) -> F64:
        """Return the score of each row."""
        n = X.shape[0]
        out = np.full(n, self.initial)
        if isinstance(X, np.ndarray):
            bounds = row_ranges(n, _ROWS)
            rules = (self.feature, self.threshold, self.weight)
            map_ranges(_score_rows, bounds, X, *rules, out, n_jobs=n_jobs)
            return out
        columns = by_column(X)
        for f, cut, weight in zip(*self._columns(), strict=True):
            out += weight * (column(columns, f) > cut)
        return out

    def contributions(self, X: FloatMatrix) -> F64:
        """Return what the rules of each feature add to each score, and the initial score last."""
        columns = by_column(X)
        out = np.zeros((X.shape[0], self.n_features + 1))
        out[:, -1] = self.initial
        for f, cut, weight in zip(*self._columns(), strict=True):
            out[:, f] += weight * (column(columns, f) > cut)
        return out

    def breakpoints(self, column: int) -> F64:
        """Return the values of a feature after which scores may change."""
        cuts = self.threshold[self.feature == column]
        return np.unique(cuts[np.isfinite(cuts)])

    def describe(self, names: list[str]) -> list[str]:
        """Return a heading and a line for each rule, the heaviest first."""
        begin = f"{self.initial:.6g} and " if self.initial else ""
        what = f"{len(self.weight):,} rules; a score is {begin}the sum of those that hold"
        lines = [what]
        for r in np.argsort(-np.abs(self.weight), kind="stable"):
            name, cut = names[self.feature[r]], self.threshold[r]
            name = f"feature {name}" if name.isdecimal() else name
            holds = "is not missing" if cut == -np.inf else f"> {cut:.6g}"
            lines.append(f"{self.weight[r]:+12.6f}  {name} {holds}")
        return lines

    def arrays(self) -> dict[str, AnyArray]:
        """Return the rules and where scores begin."""
        rules = {"feature": self.feature, "threshold": self.threshold, "weight": self.weight}
        return {
            **rules,
            "initial": np.array([self.initial]),
            "n_rounds": np.array([self.n_rounds], np.int64),
        }

    def texts(self) -> dict[str, str]:
        """Return nothing: rules are arrays alone."""
        return {}

    def _columns(self) -> tuple[list[int], list[float], list[float]]:
        return self.feature.tolist(), self.threshold.tolist(), self.weight.tolist()


class _Descent:
    """Scores under way, a rule at a time; documents stand in the order of their content."""

    def __init__(
        self,
        own: Additive,
        loss: Loss,
        data: RankingData,
        start: FittedAdditive | None,
        n_jobs: int,
    ) -> None:
        self._own, self._n_jobs = own, n_jobs
        self._rows, ordered = in_content_order(data, n_jobs=n_jobs)
        self._table = RuleTable.of(ordered.X, own.n_candidates)
        self._loss: Any = bound_loss(loss, ordered, n_jobs=n_jobs)
        self._kinked = loss.traits.integrable and not loss.traits.smooth
        rules: Any = loss if loss.traits.rule_step else None
        self._formula: Callable[[float, float], float] | None = rules and rules.rule_step
        self._s, self._g = np.zeros(data.n_documents), np.empty(data.n_documents)
        self._trial = np.empty(data.n_documents)
        self._last = 1.0
        nothing = np.empty(0)
        self.model = start or FittedAdditive(
            nothing.astype(np.int64), nothing, nothing, 0.0, 0, data.n_features
        )
        self._sample(self.model.n_rounds)
        if start is None and not loss.traits.shift_invariant:
            self.model = self._from_best_constant()
        self._s = self.model.scores(ordered.X, n_jobs=n_jobs)
        self.value: float = self._loss.grad(self._s, self._g)

    def step(self, t: int) -> tuple[int, float, float] | None:
        """Take the steepest rule (2) and return it with its weight; None where all are level.

        At a kink a rule may look steep and lead nowhere: then the next steepest is tried.
        """
        passed_over: list[Rule] = []
        while len(passed_over) < (_MOST_PASSED_OVER if self._kinked else 1):
            rule = self._table.steepest(
                self._g,
                falling=self._own.falling,
                passed_over=passed_over,
                n_jobs=self._n_jobs,
            )
            if rule is None or not np.isfinite(rule.derivative):
                return None
            if abs(rule.derivative) <= _ROUNDING * np.abs(self._g).sum():
                return None  # the rule shifts whole queries, which a search would follow for ever
            meets = self._table.meets(rule)
            if self._formula is not None:
                length = self._formula(self.value, rule.derivative)
            else:
                length = self._search(meets, rule.derivative)
            weight = self._own.learning_rate * length
            if weight != 0.0 and self._falls(weight, meets):
                self._s += weight * meets
                self._sample(t + 1)
                self.value = self._loss.grad(self._s, self._g)
                return rule.feature, rule.threshold, weight
            passed_over.append(rule)
            self._loss.grad(self._s, self._g)
        return None

    def _falls(self, weight: float, meets: F64) -> bool:
        """Whether a step lowers a loss with kinks by more than rounding; others need not ask."""
        if not self._kinked:
            return True
        np.multiply(meets, weight, out=self._trial)
        self._trial += self._s
        after: float = self._loss.value(self._trial)
        return after < self.value - _NOTHING * abs(self.value)

    def state(self) -> dict[str, AnyArray]:
        """Return all that is needed to go on."""
        numbers = np.array([self.value, self._last])
        return {"s": self._s, "g": self._g, "numbers": numbers, **memory_of(self._loss)}

    def go_on(self, kept: Mapping[str, AnyArray], t: int) -> None:
        """Be where this `state` was, after round ``t``."""
        self._s, self._g = kept["s"].copy(), kept["g"].copy()
        self.value, self._last = kept["numbers"].tolist()
        put_back(self._loss, kept)
        self._sample(t)

    def on_train(self, callback: Callback) -> F64 | None:
        """Return the scores in the order of the caller's rows, where they are wanted."""
        if not callback.wants_train:
            return None
        out = np.empty(len(self._s))
        out[self._rows] = self._s
        return out

    def _sample(self, t: int) -> None:
        set_iteration(self._loss, t)

    def _from_best_constant(self) -> FittedAdditive:
        """Return the model without rules, at the score that is best for all."""
        everyone = np.ones(len(self._s))
        self._loss.grad(self._s, self._g)
        constant = self._search(everyone, ordered_sum(self._g), flat=1e-6)
        empty = self.model
        return FittedAdditive(
            empty.feature, empty.threshold, empty.weight, constant, 0, empty.n_features
        )

    def _search(self, along: F64, derivative: float, flat: float = _FLAT) -> float:
        """Return how far to go from the scores, downhill, until it is level.

        Derivatives alone decide, so this serves gradients that are those of no function, too.
        """
        if derivative == 0.0:
            return 0.0
        sign = -np.sign(derivative)

        def rise(length: float) -> float:
            np.multiply(along, sign * length, out=self._trial)
            self._trial += self._s
            self._loss.grad(self._trial, self._g)
            self._g *= along
            return float(sign * ordered_sum(self._g))

        length = level(rise, -abs(derivative), self._last, flat)
        self._last = max(length, 1e-9)
        return float(sign * length)


def level(rise: Callable[[float], float], first: float, guess: float, flat: float) -> float:
    """Return a length at which ``rise``, ``first`` < 0 at 0, is about 0.

    The guess is doubled until the derivative has turned; then false position (the Illinois rule)
    goes on until it is below ``flat`` x its first value. Where it jumps over 0, the length just
    before.
    """
    low, at_low = 0.0, first
    high = guess
    for _ in range(_TRIES):
        at_high = rise(high)
        if abs(at_high) <= -flat * first:
            return high
        if at_high > 0.0:
            break
        low, at_low, high = high, at_high, 2.0 * high
    else:
        return low
    side = 0
    for _ in range(_TRIES):
        middle = (low * at_high - high * at_low) / (at_high - at_low)
        if not low < middle < high:
            break
        at_middle = rise(middle)
        if abs(at_middle) <= -flat * first:
            return middle
        if at_middle > 0.0:
            high, at_high = middle, at_middle
            at_low *= 0.5 if side == 1 else 1.0
            side = 1
        else:
            low, at_low = middle, at_middle
            at_high *= 0.5 if side == -1 else 1.0
            side = -1
    return low
