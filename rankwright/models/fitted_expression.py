"""A formula as a model: its values by compiled code, and what each feature adds to them.

Formulas are evaluated in postfix code, blocks of rows on a small stack, any number of formulas at
once. What a feature adds to a score is its Shapley value, exact, over the m features that f uses:

    phi_j = sum over S without j of |S|! (m - |S| - 1)! / m!  (f(x_S+j) - f(x_S))                (1)

where x_S has the features S of the document and, for the others, their means on the training data.
With the score of those means, f(x of no S), the contributions sum to the score.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from rankwright.core.copies import copy_values
from rankwright.core.jit import kernel
from rankwright.core.parallel import map_ranges, row_ranges
from rankwright.core.types import F64, AnyArray, FloatMatrix
from rankwright.errors import UsageError
from rankwright.models.formula import (
    CODES,
    LIMIT,
    NUMBER,
    Formula,
    columns_of,
    from_postfix,
    parts_of,
    size,
    text,
)
from rankwright.models.missing import filled

_BLOCK = 512  # rows that an operation works on at a time
_ROWS = 1 << 13  # rows of a range for one thread

_NUMBER, _ADD, _SUBTRACT, _MULTIPLY, _DIVIDE, _MIN, _MAX, _NEGATE, _LOG1P, _SQRT = (
    CODES[name] for name in (NUMBER, "+", "-", "*", "/", "min", "max", "neg", "log1p", "sqrt")
)

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _hold(a):  # type: ignore[no-untyped-def]
    for i in range(len(a)):
        low = a[i] if a[i] > -LIMIT else -LIMIT
        a[i] = low if low < LIMIT else LIMIT


@kernel
def _apply(op, a, b):  # type: ignore[no-untyped-def]
    """Put ``op`` of a and b into a; functions of one part look at a alone."""
    for i in range(len(a)):
        if op == _ADD:
            a[i] += b[i]
        elif op == _SUBTRACT:
            a[i] -= b[i]
        elif op == _MULTIPLY:
            a[i] *= b[i]
        elif op == _DIVIDE:
            a[i] = a[i] / b[i] if b[i] != 0.0 else 1.0
        elif op == _MIN:
            a[i] = a[i] if a[i] < b[i] else b[i]
        elif op == _MAX:
            a[i] = a[i] if a[i] > b[i] else b[i]
        elif op == _NEGATE:
            a[i] = -a[i]
        elif op == _LOG1P:
            a[i] = math.log1p(abs(a[i]))
        else:
            a[i] = math.sqrt(abs(a[i]))


@kernel
def _evaluate(code, value, columns, stack):  # type: ignore[no-untyped-def]
    """Put the value of one formula for each of the rows into ``stack[0]``."""
    n = columns.shape[1]
    top = 0
    for k in range(len(code)):
        op = code[k]
        if op >= _NUMBER:
            if op == _NUMBER:
                stack[top, :n] = value[k]
            else:
                copy_values(columns[op], stack[top])
                _hold(stack[top, :n])
            top += 1
        else:
            if op > _NEGATE:
                top -= 1
            _apply(op, stack[top - 1, :n], stack[top, :n])
            _hold(stack[top - 1, :n])


@kernel
def _evaluate_all(lo, hi, starts, code, value, columns, out):  # type: ignore[no-untyped-def]
    """Put the value of each formula for each of the rows lo:hi into ``out``."""
    longest = 0
    for p in range(len(starts) - 1):
        longest = max(longest, starts[p + 1] - starts[p])
    stack = np.empty((longest // 2 + 2, _BLOCK))
    for first in range(lo, hi, _BLOCK):
        last = min(first + _BLOCK, hi)
        for p in range(len(starts) - 1):
            a, b = starts[p], starts[p + 1]
            _evaluate(code[a:b], value[a:b], columns[:, first:last], stack)
            copy_values(stack[0, : last - first], out[p, first:])


@kernel
def _shapley(lo, hi, code, value, columns, means, share, out):  # type: ignore[no-untyped-def]
    """Write (1) for rows lo:hi; ``share[s]`` is the factor of a set of s features."""
    m = len(means)
    mixed = np.empty((m, 1 << m))
    stack = np.empty((len(code) // 2 + 2, 1 << m))
    for i in range(lo, hi):
        for j in range(m):
            for chosen in range(1 << m):
                mixed[j, chosen] = columns[j, i] if chosen >> j & 1 else means[j]
        _evaluate(code, value, mixed, stack)
        for j in range(m):
            total = 0.0
            for chosen in range(1 << m):
                if not chosen >> j & 1:
                    count = 0
                    for other in range(m):
                        count += chosen >> other & 1
                    total += share[count] * (stack[0, chosen | 1 << j] - stack[0, chosen])
            out[i, j] = total
        out[i, m] = stack[0, 0]


# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class FittedExpression:
    """A formula, as postfix code and as text.

    Attributes
    ----------
    code, value
        The nodes, as `rankwright.models.formula.postfix` writes them.
    means
        Mean on the training data of each feature that the formula uses, in order of column.
    fill
        What stands for a missing value of each feature, or None.
    written : str
        The formula, with the names of the features and numbers to six digits.
    """

    code: AnyArray
    value: F64
    means: F64
    fill: F64 | None
    n_features: int
    written: str

    @property
    def formula(self) -> Formula:
        """The formula as a tree."""
        return from_postfix(self.code, self.value)

    def describe(self, names: Sequence[str]) -> list[str]:
        """Return a heading and the formula with the ``names`` of features."""
        formula = self.formula
        what = f"a formula of {size(formula)} nodes over {len(self.means)} features"
        lines = [what, f"score = {text(formula, names)}"]
        if any(part[0] == "/" for part in parts_of(formula)):
            lines.append("a quotient is 1 where its divisor is 0")
        return lines

    def scores(self, X: FloatMatrix, *, n_jobs: int | None = None) -> F64:
        """Return the value of the formula for each row."""
        code, columns, _ = self._on(X)
        starts = np.array([0, len(code)])
        scores: F64 = values_of(starts, code, self.value, columns, n_jobs=n_jobs)[0]
        return scores

    def contributions(self, X: FloatMatrix) -> F64:
        """Return Shapley values: one column per feature, and the score of the means last."""
        code, columns, used = self._on(X)
        m = len(used)
        share = np.array([1.0 / (m * math.comb(m - 1, s)) for s in range(m)])
        found = np.empty((X.shape[0], m + 1))
        bounds = row_ranges(X.shape[0], _BLOCK)
        map_ranges(_shapley, bounds, code, self.value, columns, self.means, share, found)
        out = np.zeros((X.shape[0], self.n_features + 1))
        out[:, [*used, -1]] = found
        return out

    def arrays(self) -> dict[str, AnyArray]:
        """Return the postfix code, and the means and fill values of features."""
        arrays = {"code": self.code, "value": self.value, "means": self.means}
        return arrays if self.fill is None else {**arrays, "fill": self.fill}

    def texts(self) -> dict[str, str]:
        """Return the formula."""
        return {"formula": self.written}

    def _on(self, X: FloatMatrix) -> tuple[AnyArray, F64, list[int]]:
        """Return the code over the features used, their columns, and which they are."""
        used = columns_of(self.formula)
        code = self.code.copy()
        code[code >= 0] = np.searchsorted(used, code[code >= 0])
        return code, columns_as_rows(filled(X, self.fill, "formula"), used), used

    @classmethod
    def restore(
        cls, arrays: Mapping[str, AnyArray], texts: Mapping[str, str], n_features: int
    ) -> FittedExpression:
        """Build the fitted model from its own arrays and texts."""
        used = columns_of(from_postfix(arrays["code"], arrays["value"]))
        if len(arrays["means"]) != len(used) or any(column >= n_features for column in used):
            raise UsageError("the formula does not match its features.")
        return cls(
            code=arrays["code"],
            value=arrays["value"],
            means=arrays["means"],
            fill=arrays.get("fill"),
            n_features=n_features,
            written=texts["formula"],
        )


def values_of(
    starts: AnyArray, code: AnyArray, value: F64, columns: F64, *, n_jobs: int | None = None
) -> F64:
    """Return the value of each formula for each document, whose features are ``columns``.

    The formulas stand one after the other in ``code`` and ``value``, as
    `rankwright.models.formula.postfix` writes them, and begin at ``starts``.
    """
    out = np.empty((len(starts) - 1, columns.shape[1]))
    bounds = row_ranges(out.shape[1], _ROWS)
    map_ranges(_evaluate_all, bounds, starts, code, value, columns, out, n_jobs=n_jobs)
    return out


def columns_as_rows(X: FloatMatrix, used: Sequence[int]) -> F64:
    """Return some columns of X as rows of float64."""
    part = X[:, used]
    dense = part.toarray() if sparse.issparse(part) else part
    return np.ascontiguousarray(dense.T, np.float64)
