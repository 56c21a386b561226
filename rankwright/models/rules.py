"""Rules [x_f > theta] on the columns of a data set: thresholds, and the steepest rule.

The thresholds of each feature f divide its values once: c_fi is the number of thresholds below
x_fi, so that document i meets rule (f, k) if c_fi > k. For any g, the sums

    sum of g_i over the documents that meet rule (f, k)                                         (1)

of all rules of a feature need one pass over its column: a sum for each value of c, accumulated from
the top. A missing value meets no rule; a column with missing values also has the rule
[x_f > -inf], "there is a value".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from rankwright.core.jit import kernel
from rankwright.core.parallel import map_ranges, row_ranges
from rankwright.core.types import F64, I64, AnyArray, FloatMatrix

_CELLS = 1 << 18  # codes in a range of features
_EQUAL = 1.0 - 1e-9  # sums closer than this are the same split, added up in another order
_LANES = 4  # sums side by side: equal codes in a row would wait for each other

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _sums_above(code, n_cuts, g, lanes, above):
    """Write (1) of the rules of one feature to ``above[:n_cuts]``."""
    lanes[:, : n_cuts + 1] = 0.0
    n = len(code)
    whole = n - n % _LANES
    for i in range(0, whole, _LANES):
        lanes[0, code[i]] += g[i]
        lanes[1, code[i + 1]] += g[i + 1]
        lanes[2, code[i + 2]] += g[i + 2]
        lanes[3, code[i + 3]] += g[i + 3]
    for i in range(whole, n):
        lanes[0, code[i]] += g[i]
    running = 0.0
    for k in range(n_cuts - 1, -1, -1):
        running += lanes[0, k + 1] + lanes[1, k + 1] + lanes[2, k + 1] + lanes[3, k + 1]
        above[k] = running


@kernel
def _steepest(lo, hi, codes, n_cuts, g, falling, best):
    """Write the largest -(1) of each feature, or the largest |(1)| with ``falling``."""
    most = np.max(n_cuts)
    lanes, above = np.empty((_LANES, most + 1)), np.empty(most)
    for f in range(lo, hi):
        best[f] = 0.0
        if n_cuts[f] > 0:
            _sums_above(codes[f], n_cuts[f], g, lanes, above)
            for k in range(n_cuts[f]):
                size = abs(above[k]) if falling else -above[k]
                best[f] = max(best[f], size)


# --- API -------------------------------------------------------------------------------------


class Rule(NamedTuple):
    """A rule of a table: its feature, the number and value of its threshold, and its sum (1)."""

    feature: int
    cut: int
    threshold: float
    derivative: float


@dataclass(frozen=True, slots=True, eq=False)
class RuleTable:
    """All rules over one data set; build it with `of`.

    Attributes
    ----------
    codes : (d, n) whole numbers
        How many thresholds of its feature each value is above.
    cuts : list of (m,) float64
        The thresholds of each feature, rising.
    """

    codes: AnyArray
    cuts: list[F64]

    @classmethod
    def of(cls, X: FloatMatrix, n_candidates: int | str) -> RuleTable:
        """Cut the columns of ``X`` at ``n_candidates`` equal widths, or at "all" values."""
        X = by_column(X)
        n, d = X.shape
        columns = (column(X, f) for f in range(d))
        if n_candidates == "all":
            cuts_of = [_all_cuts(values) for values in columns]
        else:
            cuts_of = [_equal_cuts(values, int(n_candidates)) for values in columns]
        most = max((len(cuts) for cuts in cuts_of), default=0)
        codes = np.empty((d, n), np.uint8 if most < 256 else np.int32)
        for f, cuts in enumerate(cuts_of):
            values = column(X, f)
            codes[f] = np.where(np.isnan(values), 0, np.searchsorted(cuts, values))
        return cls(codes, cuts_of)

    def steepest(
        self,
        g: F64,
        *,
        falling: bool = True,
        skipped: Sequence[Rule] = (),
        n_jobs: int | None = None,
    ) -> Rule | None:
        """Return the rule along which ``g`` is steepest; None if all sums are 0.

        Ties are resolved in favour of the first feature and its highest threshold. Without
        ``falling``, only rules with a negative sum (1) are considered; their weight is positive.
        """
        d, n = self.codes.shape
        n_cuts: I64 = np.array([len(cuts) for cuts in self.cuts], np.int64)
        best = np.zeros(d)
        bounds = row_ranges(d, max(1, _CELLS // max(1, n)))  # of features, here
        args = (self.codes, n_cuts, g, falling, best)
        map_ranges(_steepest, bounds, *args, n_jobs=n_jobs)

        def sizes(f: int) -> tuple[F64, F64]:
            """Return the sums of a feature's rules, and how steep they are."""
            lanes, above = np.empty((_LANES, n_cuts[f] + 1)), np.empty(n_cuts[f])
            _sums_above(self.codes[f], n_cuts[f], g, lanes, above)
            steep = np.abs(above) if falling else -above
            steep[[rule.cut for rule in skipped if rule.feature == f]] = 0.0
            return above, steep

        for f in {rule.feature for rule in skipped}:
            best[f] = sizes(f)[1].max()
        top = best.max(initial=0.0)
        if not top > 0.0:
            return None
        f = int(np.argmax(best >= top * _EQUAL))
        above, steep = sizes(f)
        k = int(np.flatnonzero(steep >= top * _EQUAL)[-1])
        return Rule(f, k, float(self.cuts[f][k]), float(above[k]))

    def meets(self, rule: Rule) -> F64:
        """Return 1.0 for documents that meet a rule and 0.0 for other documents."""
        mask: F64 = (self.codes[rule.feature] > rule.cut).astype(np.float64)
        return mask


def by_column(X: FloatMatrix) -> Any:
    """Return X in a form that makes `column` fast."""
    return sparse.csc_array(X) if sparse.issparse(X) else X


def column(X: Any, f: int) -> F64:
    """Return column f of a result of `by_column` as float64."""
    if hasattr(X, "toarray"):
        return np.asarray(X[:, [f]].toarray().ravel(), np.float64)
    return np.asarray(X[:, f], np.float64)


def _equal_cuts(values: F64, n: int) -> F64:
    """Return the thresholds between n equal widths, counted down from the top as RankLib does."""
    present = values[~np.isnan(values)]
    if not len(present):
        return np.empty(0)
    low, high = present.min(), present.max()
    width = (high - low) / n
    cuts = np.subtract.accumulate(np.append(high, np.full(n - 1, width)))[:0:-1]
    return _useful(cuts, present, len(values))


def _all_cuts(values: F64) -> F64:
    present = values[~np.isnan(values)]
    return _useful(np.unique(present), present, len(values)) if len(present) else np.empty(0)


def _useful(cuts: F64, present: F64, n: int) -> F64:
    """Keep thresholds with documents on both sides; add -inf for columns with missing values."""
    inside = np.unique(cuts[(cuts >= present.min()) & (cuts < present.max())])
    return np.append(-np.inf, inside) if len(present) < n else inside
