"""Formulas over features: trees that are simplified, printed, and written as postfix code.

A formula is ``("x", column)``, ``("c", number)``, ``(function, f)`` or ``(operator, f, g)``:

    f + g    f - g    f * g    f / g (1 where g is 0)    min(f, g)    max(f, g)
    neg f    log1p f = log(1 + |f|)    sqrt f = sqrt(|f|)

Every value is held to -1e100 .. 1e100, so that whatever the features are, scores are numbers.
Trees are plain tuples: two equal formulas are equal values and can be the key of a dictionary.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from rankwright.core.checks import ArraySpec
from rankwright.core.jit import kernel
from rankwright.core.kernels import copy_values
from rankwright.core.parallel import map_ranges, row_ranges
from rankwright.core.types import F64, AnyArray, FloatMatrix
from rankwright.errors import DataError
from rankwright.models.linear import filled
from rankwright.models.schema import FILL, Schema

Formula: TypeAlias = tuple[Any, ...]

FEATURE, NUMBER = "x", "c"
BINARY = ("+", "-", "*", "/", "min", "max")
UNARY = ("neg", "log1p", "sqrt")
CODES = {name: -1 - k for k, name in enumerate((NUMBER, *BINARY, *UNARY))}  # a column is its own
LIMIT = 1e100
MOST_NODES, MOST_DEPTH = 1000, 100
MOST_FEATURES = 16  # of which contributions are still quick

_ZERO, _ONE = (NUMBER, 0.0), (NUMBER, 1.0)
_PLAIN_NAME = re.compile(r"[^\W\d][\w.]*")


def is_leaf(tree: Formula) -> bool:
    """Whether the formula is a feature or a number."""
    return tree[0] in (FEATURE, NUMBER)


def parts_of(tree: Formula) -> list[Formula]:
    """Return the formula of every node, wholes before their parts."""
    found, waiting = [], [tree]
    while waiting:
        node = waiting.pop()
        found.append(node)
        if not is_leaf(node):
            waiting += reversed(node[1:])
    return found


def size(tree: Formula) -> int:
    """Return the number of nodes."""
    return len(parts_of(tree))


def depth(tree: Formula) -> int:
    """Return the number of operations on the longest way to a leaf."""
    return 0 if is_leaf(tree) else 1 + max(map(depth, tree[1:]))


def columns_of(tree: Formula) -> list[int]:
    """Return the columns that the formula looks at, each once, in order."""
    return sorted({part[1] for part in parts_of(tree) if part[0] == FEATURE})


# --- simplifying -----------------------------------------------------------------------------


def simplify(tree: Formula) -> Formula:
    """Return a shorter formula with the same values, but for the rounding of merged numbers.

    Numbers are worked out, what has no effect goes (f - f, f * 1, f / f, neg neg f, min(f, f)),
    and f + g, g + f become one.
    """
    if tree[0] == NUMBER:
        return (NUMBER, _held(tree[1]))
    if tree[0] == FEATURE:
        return tree
    return _built(tree[0], *map(simplify, tree[1:]))


def _built(op: str, *parts: Formula) -> Formula:
    """Return ``op`` of parts that are simple themselves, simplified."""
    if all(part[0] == NUMBER for part in parts):
        return (NUMBER, _value(op, *(part[1] for part in parts)))
    return _RULES[op](*parts)


def _value(op: str, a: float, b: float = 0.0) -> float:
    values: dict[str, Callable[[], float]] = {
        "+": lambda: a + b,
        "-": lambda: a - b,
        "*": lambda: a * b,
        "/": lambda: 1.0 if b == 0.0 else float(np.float64(a) / b),
        "min": lambda: min(a, b),
        "max": lambda: max(a, b),
        "neg": lambda: -a,
        "log1p": lambda: math.log1p(abs(a)),
        "sqrt": lambda: math.sqrt(abs(a)),
    }
    with np.errstate(over="ignore"):
        return _held(values[op]())


def _held(value: float) -> float:
    return max(-LIMIT, min(LIMIT, value))


def _sorted(a: Formula, b: Formula) -> tuple[Formula, Formula]:
    """Return both in the one order in which they are written; a number comes last."""
    return (a, b) if (a[0] == NUMBER, a) <= (b[0] == NUMBER, b) else (b, a)


def _sum(a: Formula, b: Formula) -> Formula:
    a, b = _sorted(a, b)
    if b == _ZERO:
        return a
    if b[0] == NUMBER and a[0] == "+" and a[2][0] == NUMBER:
        return _built("+", a[1], _built("+", a[2], b))
    if b[0] == "neg":
        return _built("-", a, b[1])
    if a[0] == "neg":
        return _built("-", b, a[1])
    return _built("*", a, (NUMBER, 2.0)) if a == b else ("+", a, b)


def _difference(a: Formula, b: Formula) -> Formula:
    if a == b:
        return _ZERO
    if a == _ZERO:
        return _built("neg", b)
    if b[0] in (NUMBER, "neg"):
        return _built("+", a, _built("neg", b))
    return ("-", a, b)


def _product(a: Formula, b: Formula) -> Formula:
    a, b = _sorted(a, b)
    if b == _ZERO:
        return _ZERO
    if b == _ONE:
        return a
    if b == (NUMBER, -1.0):
        return _built("neg", a)
    if b[0] == NUMBER and a[0] == "*" and a[2][0] == NUMBER:
        return _built("*", a[1], _built("*", a[2], b))
    if a[0] == "neg" and b[0] in (NUMBER, "neg"):
        return _built("*", a[1], _built("neg", b))
    return ("*", a, b)


def _quotient(a: Formula, b: Formula) -> Formula:
    if a == b or b == _ZERO:
        return _ONE
    if b == _ONE:
        return a
    if a[0] == b[0] == "neg":
        return _built("/", a[1], b[1])
    return ("/", a, b)


def _either(op: str, a: Formula, b: Formula) -> Formula:
    if a == b or (a[0] == op and b in a[1:]):
        return a
    if b[0] == op and a in b[1:]:
        return b
    return (op, *_sorted(a, b))


def _negative(a: Formula) -> Formula:
    if a[0] == "neg":
        return tuple(a[1])
    if a[0] == "-":
        return _built("-", a[2], a[1])
    if a[0] == "*" and a[2][0] == NUMBER:
        return _built("*", a[1], _built("neg", a[2]))
    return ("neg", a)


def _log1p(a: Formula) -> Formula:
    return ("log1p", a[1] if a[0] == "neg" else a)


def _sqrt(a: Formula) -> Formula:
    return ("sqrt", a[1] if a[0] == "neg" else a)


_RULES: dict[str, Callable[..., Formula]] = {
    "+": _sum,
    "-": _difference,
    "*": _product,
    "/": _quotient,
    "min": partial(_either, "min"),
    "max": partial(_either, "max"),
    "neg": _negative,
    "log1p": _log1p,
    "sqrt": _sqrt,
}


# --- printing --------------------------------------------------------------------------------


def text(tree: Formula, names: Sequence[str] | None = None) -> str:
    """Return the formula as a reader writes it; numbers to six digits.

    Features without names, or with numbers for names, are x1, x2, ..., as LETOR files count them.
    Names that could be taken for more than a name stand in brackets.
    """
    return _text(tree, names)[0]


def _text(tree: Formula, names: Sequence[str] | None) -> tuple[str, int]:
    """Return the text and how tightly it binds: 3 a whole, 2 a product, 1 a sum."""
    kind = tree[0]
    if kind == NUMBER:
        return f"{tree[1]:.6g}", 3 if tree[1] >= 0 else 1
    if kind == FEATURE:
        name = str(tree[1] + 1) if names is None else names[tree[1]]
        name = f"x{name}" if name.isdecimal() else name
        return (name if _PLAIN_NAME.fullmatch(name) else f"[{name}]"), 3
    if kind in ("+", "-") and (opposite := _opposite(tree[2])) is not None:
        tree = ("-" if kind == "+" else "+", tree[1], opposite)
        kind = tree[0]
    parts = [_text(part, names) for part in tree[1:]]
    if kind in ("log1p", "sqrt"):
        return f"{kind}(|{parts[0][0]}|)", 3
    if kind in ("min", "max"):
        return f"{kind}({parts[0][0]}, {parts[1][0]})", 3
    if kind == "neg":
        return f"-{_within(parts[0], 2)}", 1
    tight = 2 if kind in ("*", "/") else 1
    right = tight + 1 if kind in ("-", "/") else tight
    left, other = _within(parts[0], tight), _within(parts[1], right)
    if kind == "*" and tree[2][0] == NUMBER:
        left, other = parts[1][0], _within(parts[0], tight)
    return f"{left} {kind} {other}", tight


def _opposite(term: Formula) -> Formula | None:
    """Return the term without the minus that it begins with, or None if there is no minus."""
    if term[0] == "neg":
        return tuple(term[1])
    if term[0] == NUMBER and term[1] < 0.0:
        return (NUMBER, -term[1])
    if term[0] == "*" and term[2][0] == NUMBER and term[2][1] < 0.0:
        return ("*", term[1], (NUMBER, -term[2][1]))
    return None


def _within(part: tuple[str, int], least: int) -> str:
    return part[0] if part[1] >= least else f"({part[0]})"


# --- postfix code ----------------------------------------------------------------------------


def postfix(tree: Formula) -> tuple[AnyArray, F64]:
    """Return the codes of the nodes, parts before wholes, and the numbers among them."""
    codes: list[int] = []
    values: list[float] = []

    def write(node: Formula) -> None:
        if not is_leaf(node):
            for part in node[1:]:
                write(part)
        codes.append(node[1] if node[0] == FEATURE else CODES[node[0]])
        values.append(node[1] if node[0] == NUMBER else 0.0)

    write(tree)
    return np.array(codes, np.int32), np.array(values, np.float64)


def from_postfix(codes: AnyArray, values: F64) -> Formula:
    """Return the formula that `postfix` wrote."""
    names = {code: name for name, code in CODES.items()}
    stack: list[tuple[Formula, int]] = []  # with their depths
    try:
        for code, value in zip(codes.tolist(), values.tolist(), strict=True):
            if code >= 0:
                stack.append(((FEATURE, code), 0))
            elif names[code] == NUMBER:
                stack.append(((NUMBER, value), 0))
            else:
                count = 1 if names[code] in UNARY else 2
                parts = [stack.pop() for _ in range(count)][::-1]
                level = 1 + max(level for _, level in parts)
                stack.append(((names[code], *(part for part, _ in parts)), level))
        ((tree, level),) = stack
    except (KeyError, IndexError, ValueError):
        raise DataError("the code of the formula is damaged.") from None
    if level > MOST_DEPTH:  # of what is written by calls within calls
        raise DataError(f"the formula is {level:,} operations deep, over {MOST_DEPTH}.")
    return tree


# --- the fitted model ------------------------------------------------------------------------
# A formula as a model: its values by compiled code, and what each feature adds to them.
#
# Formulas are evaluated in postfix code, blocks of rows on a small stack, any number of formulas at
# once. What a feature adds to a score is its Shapley value, exact, over the m features that f uses:
#
#     phi_j = sum over S without j of |S|! (m - |S| - 1)! / m!  (f(x_S+j) - f(x_S))              (1)
#
# where x_S has the features S of the document and, for the others, their means on the training
# data. With the score of those means, f(x of no S), the contributions sum to the score.


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


_SCHEMA = Schema(
    (
        ArraySpec("code", "int32", ("nodes",), low=min(CODES.values())),
        ArraySpec("value", "float64", ("nodes",)),
        ArraySpec("means", "float64", ("used",)),
        FILL,
    ),
    {"formula": ()},
)


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
        """Build the fitted model from its own arrays and texts, checked."""
        lengths = _SCHEMA.check(arrays, texts, features=n_features)
        if lengths["nodes"] > MOST_NODES:
            raise DataError(f"the formula has {lengths['nodes']:,} nodes, over {MOST_NODES:,}.")
        used = columns_of(from_postfix(arrays["code"], arrays["value"]))
        if len(used) > MOST_FEATURES:
            raise DataError(f"the formula uses {len(used)} features, over {MOST_FEATURES}.")
        if lengths["used"] != len(used) or any(column >= n_features for column in used):
            raise DataError("the formula does not match its features.")
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
