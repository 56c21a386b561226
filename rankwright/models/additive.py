"""A sum of weighted rules [x_f > theta]: readable, and fitted under any loss.

    score(x) = base + sum_t a_t [x_f(t) > theta_t]                                              (1)

Each round takes the rule along which the loss is steepest, of all features and thresholds,

    (f, theta) = argmax |sum of g_i over documents with x_if > theta|,   g = gradient at s      (2)

and a step along it. The length of the step for the exponential loss on pairs is RankBoost's formula
(`freund2003rankboost`; ``rule_step`` of `losses.pair_exp`); for other losses it is the point at
which the derivative along the rule is near 0. A rule along which a loss with kinks does not
decrease is skipped. With the exponential loss on pairs this is RankBoost, with the fidelity loss
FRank (`tsai2007frank`). The fitted model is a `Forest` of trees with one split.

A comparison with a missing value is false; for features with missing values, [x_f > -inf], "there
is a value", is a rule of its own. Documents are sorted by their content, so the order of the rows
does not matter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from rankwright.core.checks import ArraySpec, check_arrays
from rankwright.core.parallel import ordered_sum, thread_count
from rankwright.core.parameters import Count, Positive, at_least
from rankwright.core.types import F64, AnyArray, FittedModel, Loss, Round
from rankwright.data.content import in_content_order
from rankwright.data.ranking_data import RankingData
from rankwright.losses.base import bound_loss, load_loss_state, loss_state, set_iteration
from rankwright.models.forest import Forest
from rankwright.models.rules import Rule, RuleTable, by_column, column
from rankwright.models.schema import ModelPart

_FLAT = 0.01  # a derivative is level at this share of the first one
_TRIES = 40
_MOST_SKIPPED = 50
_ROUNDING = 1e-13  # relative to all gradients: a smaller derivative is rounding
_NOTHING = 1e-9  # relative decrease of the loss that counts as none

WeightedRule = tuple[int, float, float]
"""Feature, threshold and weight."""


@dataclass(frozen=True, slots=True, repr=False)
class Additive(ModelPart):
    """Weighted rules [feature > threshold]: readable, with native missing values.

    Parameters
    ----------
    n_rounds : int
        Number of rules that are added. Equal rules are merged.
    n_candidates : int or "all"
        Number of intervals of equal width between the thresholds of a feature, as in RankLib, or
        "all" for every value in the data.
    learning_rate : float
        Factor of each step.
    falling : bool
        Allow rules with a negative weight; RankLib does not.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.FRank(model=rw.models.Additive(n_rounds=100))
    FRank(model=Additive(n_rounds=100))
    """

    fitted_class: ClassVar[Any] = Forest
    compares_values: ClassVar[bool] = True
    resumable: ClassVar[bool] = True

    n_rounds: Count = 300
    n_candidates: Annotated[int, at_least(2)] | Literal["all"] = 10
    learning_rate: Positive = 1.0
    falling: bool = True

    def can_continue(self, fitted: FittedModel) -> bool:
        """Return whether ``start=`` takes this fitted model."""
        return isinstance(fitted, Forest) and (fitted.is_rules or not fitted.n_trees)

    def rounds(
        self,
        loss: Loss,
        data: RankingData,
        valid: RankingData | None = None,
        *,
        start: Forest | None = None,
        resume: Mapping[str, AnyArray] | None = None,
        random_state: int = 0,  # noqa: ARG002
        n_jobs: int | None = None,
    ) -> Iterator[Round]:
        """Yield a round for each rule, after the rules of ``start``."""
        search = RuleSearch(self, loss, data, start, thread_count(n_jobs))
        start = search.start
        first = start.n_rounds
        rules: list[WeightedRule] = []
        if resume is not None:
            rules = _rules_of(resume, data)
            search.load_state(resume, first + len(rules))
        for count in range(1, len(rules) + 1):
            yield Round(first + count, math.nan, None, partial(with_rules, start, rules, count))
        valid_scores, n_scored = None, 0
        if valid is not None:
            columns, valid_scores = by_column(valid.X), start.scores(valid.X, n_jobs=n_jobs)
        for t in range(first + len(rules), first + self.n_rounds):
            rule = search.step(t)
            if rule is None and rules:  # the loss is level along every rule
                return
            if rule is not None:
                rules.append(rule)
            count = len(rules)
            if valid_scores is not None:
                for feature, threshold, weight in rules[n_scored:]:
                    valid_scores = valid_scores + weight * (column(columns, feature) > threshold)
                n_scored = count
            yield Round(
                t + 1,
                search.value,
                valid_scores,
                partial(with_rules, start, rules, count),
                partial(search.state, rules, count),
            )
            if rule is None:
                return


_STATE = (
    ArraySpec("feature", "int64", ("rules",), below="features"),
    ArraySpec("threshold", "float64", ("rules",), low=-math.inf, finite=False),
    ArraySpec("weight", "float64", ("rules",)),
    ArraySpec("s", "float64", ("train",)),
    ArraySpec("g", "float64", ("train",)),
    ArraySpec("numbers", "float64", (2,), finite=False),
)


def _rules_of(resume: Mapping[str, AnyArray], data: RankingData) -> list[WeightedRule]:
    """Return the rules of an earlier run, checked."""
    arrays = {name: array for name, array in resume.items() if not name.startswith("memory.")}
    lengths = {"features": data.n_features, "train": data.n_documents}
    check_arrays(_STATE, arrays, "the checkpoint", **lengths)
    columns = (resume[name].tolist() for name in ("feature", "threshold", "weight"))
    return list(zip(*columns, strict=True))


def with_rules(start: Forest, rules: Sequence[WeightedRule], count: int) -> Forest:
    """Return ``start`` with the first ``count`` rules; the weights of equal rules are added."""
    total: dict[tuple[int, float], float] = {}
    for feature, threshold, weight in (*rules_of(start), *rules[:count]):
        total[feature, threshold] = total.get((feature, threshold), 0.0) + weight
    keys = sorted(total)
    forest = Forest.of_rules(
        start.n_features,
        np.array([feature for feature, _ in keys], np.int64),
        np.array([threshold for _, threshold in keys], np.float64),
        np.array([total[key] for key in keys], np.float64),
        base=start.base,
    )
    return replace(forest, n_rounds=start.n_rounds + count)


def rules_of(forest: Forest) -> list[WeightedRule]:
    """Return the rules that a forest consists of."""
    at = forest.roots
    weights = forest.value[forest.right[at]]
    return list(
        zip(forest.feature[at].tolist(), forest.threshold[at].tolist(), weights.tolist(),
            strict=True)
    )  # fmt: skip


def describe_rules(forest: Forest, names: Sequence[str]) -> list[str]:
    """Return a heading and a line for each rule, the largest weight first."""
    rules = rules_of(forest)
    base = f"{forest.base:.6g} and " if forest.base else ""
    lines = [f"{len(rules):,} rules; a score is {base}the sum of those that hold"]
    for feature, threshold, weight in sorted(rules, key=lambda rule: -abs(rule[2])):
        name = f"feature {names[feature]}" if names[feature].isdecimal() else names[feature]
        holds = "is not missing" if threshold == -np.inf else f"> {threshold:.6g}"
        lines.append(f"{weight:+12.6f}  {name} {holds}")
    return lines


class RuleSearch:
    """The state of a fit, one rule at a time. Documents are sorted by content.

    Attributes
    ----------
    start : Forest
        The model before the first step.
    value : float
        The loss at the current scores.
    """

    def __init__(
        self,
        model: Additive,
        loss: Loss,
        data: RankingData,
        start: Forest | None,
        n_jobs: int,
    ) -> None:
        self._model, self._n_jobs = model, n_jobs
        _, ordered = in_content_order(data, n_jobs=n_jobs)
        self._table = RuleTable.of(ordered.X, model.n_candidates)
        self._loss: Any = bound_loss(loss, ordered, n_jobs=n_jobs)
        self._has_kinks = loss.traits.integrable and not loss.traits.smooth
        self._formula: Callable[[float, float], float] | None = getattr(loss, "rule_step", None)
        n = data.n_documents
        self._s, self._g, self._trial = np.zeros(n), np.empty(n), np.empty(n)
        self._last = 1.0  # length of the last step
        set_iteration(self._loss, 0 if start is None else start.n_rounds)
        if start is None:
            base = 0.0 if loss.traits.shift_invariant else self._best_constant()
            start = Forest.empty(data.n_features, base=base)
        self.start = start
        self._s = start.scores(ordered.X, n_jobs=n_jobs)
        self.value: float = self._loss.grad(self._s, self._g)

    def step(self, t: int) -> WeightedRule | None:
        """Take a step along the steepest rule (2) and return it; None if all are level.

        At a kink the steepest rule may not decrease the loss; then the next one is tried.
        """
        skipped: list[Rule] = []
        while len(skipped) < (_MOST_SKIPPED if self._has_kinks else 1):
            rule = self._table.steepest(
                self._g,
                falling=self._model.falling,
                skipped=skipped,
                n_jobs=self._n_jobs,
            )
            if rule is None or not np.isfinite(rule.derivative):
                return None
            if abs(rule.derivative) <= _ROUNDING * np.abs(self._g).sum():
                return None  # the rule shifts whole queries; a line search would not end
            meets = self._table.meets(rule)
            if self._formula is not None:
                length = self._formula(self.value, rule.derivative)
            else:
                length = self._line_search(meets, rule.derivative)
            weight = self._model.learning_rate * length
            if weight != 0.0 and self._decreases(weight, meets):
                self._s += weight * meets
                set_iteration(self._loss, t + 1)
                self.value = self._loss.grad(self._s, self._g)
                return rule.feature, rule.threshold, weight
            skipped.append(rule)
            self._loss.grad(self._s, self._g)
        return None

    def state(self, rules: Sequence[WeightedRule], count: int) -> dict[str, AnyArray]:
        """Return the arrays to resume the fit after ``count`` rules."""
        feature, threshold, weight = zip(*rules[:count], strict=True) if count else ((), (), ())
        return {
            "feature": np.array(feature, np.int64),
            "threshold": np.array(threshold, np.float64),
            "weight": np.array(weight, np.float64),
            "s": self._s.copy(),
            "g": self._g.copy(),
            "numbers": np.array([self.value, self._last]),
            **loss_state(self._loss),
        }

    def load_state(self, state: Mapping[str, AnyArray], t: int) -> None:
        """Continue from the `state` after round ``t``."""
        self._s, self._g = state["s"].copy(), state["g"].copy()
        self.value, self._last = state["numbers"].tolist()
        load_loss_state(self._loss, state)
        set_iteration(self._loss, t)

    def _decreases(self, weight: float, meets: F64) -> bool:
        """Return whether a step decreases a loss with kinks by more than rounding."""
        if not self._has_kinks:
            return True
        np.multiply(meets, weight, out=self._trial)
        self._trial += self._s
        after: float = self._loss.value(self._trial)
        return after < self.value - _NOTHING * abs(self.value)

    def _best_constant(self) -> float:
        """Return the best score for all documents."""
        self._loss.grad(self._s, self._g)
        return self._line_search(np.ones(len(self._s)), ordered_sum(self._g), flat=1e-6)

    def _line_search(self, along: F64, derivative: float, flat: float = _FLAT) -> float:
        """Return the step length along a direction at which the derivative of the loss is near 0.

        Only derivatives are used, because some gradients are not the gradient of any function.
        """
        if derivative == 0.0:
            return 0.0
        sign = -np.sign(derivative)

        def slope(length: float) -> float:
            np.multiply(along, sign * length, out=self._trial)
            self._trial += self._s
            self._loss.grad(self._trial, self._g)
            self._g *= along
            return float(sign * ordered_sum(self._g))

        length = level(slope, -abs(derivative), self._last, flat)
        self._last = max(length, 1e-9)
        return float(sign * length)


def level(slope: Callable[[float], float], first: float, guess: float, flat: float) -> float:
    """Return a length at which ``slope`` is about 0; its value at 0 is ``first`` < 0.

    The guess is doubled until the slope is positive; then false position (the Illinois rule)
    continues until it is below ``flat`` times its first value. If the slope jumps over 0, the
    result is the length just before the jump.
    """
    low, at_low = 0.0, first
    high = guess
    for _ in range(_TRIES):
        at_high = slope(high)
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
        at_middle = slope(middle)
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
