"""Tree ensembles as targets take them: one run of nodes, thresholds, and rules for missing values.

A split sends x left where x <= threshold; `RULES` has what else it may do, by name:

    plain                     a missing value is 0
    nan_left, nan_right       a missing value goes there
    zero_left, zero_right     so does 0
    category                  what is in a set goes left
    member, member_or_nan     as category, for numbers from 0 alone; the latter sends NaN left too
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from rankwright.core.types import F64, I64
from rankwright.errors import UsageError
from rankwright.models.forest_scorer import ForestScorer

RULES = (
    "plain", "nan_left", "nan_right", "zero_left", "zero_right", "category", "member",
    "member_or_nan",
)  # fmt: skip
SETS = ("category", "member", "member_or_nan")
_PLAIN, _NAN_LEFT, _NAN_RIGHT = range(3)
# what a scorer calls exact is all that a target knows: thresholds have what LightGBM takes for 0
_OF_SCORER = np.array([0, 1, 2, 3, 4, 5, _NAN_LEFT, _NAN_RIGHT, 6, 7])
_DEEPEST = 400  # splits; readers of JSON stop at 1,000 levels, two of them per split
HIGHEST = float(np.finfo(np.float32).max)
ZERO = float(np.float32(1e-35))  # what LightGBM takes for 0, and all that is nearer


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees as one run of nodes; the children of a leaf are itself.

    Parameters
    ----------
    family : "trees" or "additive"
    scorer
        The trees.
    initial
        The score that every document starts from.
    text
        LightGBM's text, where the trees come from it.
    precision
        How much the model itself rounds its sums, relative to their size.
    """

    family: str
    scorer: ForestScorer
    initial: float
    text: str = ""
    precision: float = 0.0

    @cached_property
    def feature(self) -> I64:
        """What each split looks at."""
        return self.scorer.feature[self.scorer.view]

    @property
    def is_leaf(self) -> Any:
        """Whether each node is a leaf."""
        return self.left == np.arange(len(self.left))

    @cached_property
    def rule(self) -> I64:
        """What each split makes of missing values."""
        return np.where(self.is_leaf, _PLAIN, _OF_SCORER[self.scorer.rule[self.scorer.view]])

    @property
    def roots(self) -> I64:
        """The first node of each tree."""
        return self.scorer.roots

    @property
    def threshold(self) -> F64:
        """Of each split."""
        return self.scorer.threshold

    @property
    def left(self) -> I64:
        """Where x <= threshold goes."""
        return self.scorer.left

    @property
    def right(self) -> I64:
        """Where the others go."""
        return self.scorer.right

    @property
    def value(self) -> F64:
        """Of each leaf."""
        return self.scorer.value

    @property
    def splits(self) -> I64:
        """The nodes that are splits."""
        return np.flatnonzero(~self.is_leaf)

    @property
    def is_set(self) -> Any:
        """Whether each node is a split on a set of categories."""
        return np.isin(self.rule, [RULES.index(name) for name in SETS])

    @property
    def categories(self) -> dict[int, list[int]]:
        """The categories that go left, by node."""
        found = {}
        for node in self.splits[self.is_set[self.splits]].tolist():
            words = self.scorer.sets[int(self.scorer.view[node])].tolist()
            found[node] = [32 * w + b for w, word in enumerate(words) for b in range(32)
                           if word >> b & 1]  # fmt: skip
        return found

    @property
    def missing_left(self) -> Any:
        """Whether a missing value goes left, by node; a plain split takes it for 0."""
        plain = (self.rule == _PLAIN) & (self.threshold >= 0.0)
        return plain | (self.rule == _NAN_LEFT)

    @property
    def stand_in(self) -> F64:
        """The number that a missing value of each feature counts as, NaN where none does."""
        numbers = np.zeros(self.scorer.n_features)
        for f in np.unique(self.feature[self.splits]).tolist():
            at = self.splits[self.feature[self.splits] == f]
            rules = set(self.rule[at].tolist())
            known = {_PLAIN: 0.0, _NAN_LEFT: -HIGHEST, _NAN_RIGHT: HIGHEST}
            numbers[f] = known.get(rules.pop(), np.nan) if len(rules) == 1 else np.nan
        return numbers

    def need_numeric(self, target: str) -> None:
        """Refuse splits that ``target`` does not know."""
        rules = set(self.rule[self.splits].tolist())
        if self.is_set.any():
            others = "lightgbm, json, c or python" if self.text else "json, c or python"
            raise UsageError(
                f"{target} does not support splits on categories; fit without categorical_feature "
                f"and columns of categories, or export to {others}."
            )
        if rules & {RULES.index("zero_left"), RULES.index("zero_right")}:
            raise UsageError(
                f"{target} cannot take zeros for missing values, as these trees do; export to "
                "lightgbm, json, c or python."
            )

    def need_shallow(self, target: str) -> None:
        """Refuse trees deeper than what readers of nested splits take."""
        depth = np.zeros(len(self.left), np.int64)
        for node in self.splits.tolist():  # children come after their parent
            depth[[self.left[node], self.right[node]]] = depth[node] + 1
        if depth.max(initial=0) > _DEEPEST:
            raise UsageError(
                f"a tree is {depth.max()} splits deep, and readers of {target} stop at {_DEEPEST}; "
                "fit with fewer leaves, or export to another format."
            )

    def spans(self) -> list[tuple[int, int]]:
        """Return the first node of each tree and the end of its nodes."""
        return list(pairwise(np.append(self.roots, len(self.left)).tolist()))

    def lowest(self, epsilon: float) -> float:
        """Return a bound that no score is below, added up with roundings of ``epsilon``."""
        leaf = self.is_leaf
        leaves = [self.value[a:b][leaf[a:b]] for a, b in self.spans()]
        least = np.array([self.initial, *(own.min() for own in leaves)])
        if (least >= 0.0).all():
            return float(least.sum())  # no rounding takes a sum of these below 0
        size = abs(self.initial) + sum(np.abs(own).max() for own in leaves)
        return float(least.sum() - epsilon * (len(least) + 1) * size)

    def error(self, X: F64, epsilon: float) -> F64:
        """Return how far rounding each number by ``epsilon`` may take the score of each row."""
        epsilon = max(epsilon, self.precision)
        sizes = replace(self.scorer, value=np.abs(self.value))
        size = sizes.scores(X, initial=abs(self.initial), n_jobs=1)
        return epsilon * added(len(self.roots)) * size


def one_split_each(rules: list[Any], alone: F64, n_features: int) -> ForestScorer:
    """Return a tree with one split for each rule [x_f > t], then one leaf for each of ``alone``."""
    feature, threshold, weight = rules
    k, m = len(feature), len(alone)
    views = np.unique(feature).astype(np.int64) if k else np.zeros(1, np.int64)
    at, own = 3 * np.arange(k), 3 * k + np.arange(m)
    left, right = np.arange(3 * k + m), np.arange(3 * k + m)
    left[at], right[at] = at + 1, at + 2
    value, cut = np.zeros(3 * k + m), np.zeros(3 * k + m)
    value[at + 2], value[own], cut[at] = weight, alone, threshold
    view = np.zeros(3 * k + m, np.int64)
    view[at] = np.searchsorted(views, feature)
    return ForestScorer(
        n_features=n_features,
        roots=np.append(at, own),
        leaves=np.append(at + 1, own),
        threshold=cut,
        left=left,
        right=right,
        value=value,
        view=view,
        feature=views,
        rule=np.full(len(views), _NAN_LEFT),
        sets=tuple(np.empty(0, np.uint32) for _ in views),
    )


def added(terms: int) -> float:
    """Return how roundings of so many terms add up, which is like a walk with random signs."""
    return 4.0 + 2.0 * float(np.sqrt(terms))
