"""Formulas over features: simplified, printed, evaluated, and written as JSON.

A formula is ``("x", column)``, ``("c", number)``, ``(function, f)`` or ``(operator, f, g)``:

    f + g    f - g    f * g    f / g (1 if g is 0)    min(f, g)    max(f, g)
    neg f    log1p f = log(1 + |f|)    sqrt f = sqrt(|f|)

Every value is limited to -1e100 .. 1e100, so scores are finite for any features. Formulas are plain
tuples: equal formulas are equal values and can be keys of a dictionary.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from rankwright.core.parallel import map_ranges, row_ranges
from rankwright.core.types import F64, FloatMatrix
from rankwright.errors import DataError

Formula: TypeAlias = tuple[Any, ...]

FEATURE, NUMBER = "x", "c"
LIMIT = 1e100
MOST_DEPTH = 100

_SYMMETRIC = ("+", "*", "min", "max")
_PLAIN_NAME = re.compile(r"[^\W\d][\w.]*")
_ROWS = 1 << 13  # rows evaluated at a time; their values fit the second cache


def _limited(a: Any) -> Any:
    return np.clip(a, -LIMIT, LIMIT)


def _quotient(a: Any, b: Any) -> Any:
    is_zero = b == 0.0
    with np.errstate(over="ignore"):
        return np.where(is_zero, 1.0, _limited(a / np.where(is_zero, 1.0, b)))


UNARY: dict[str, Callable[[Any], Any]] = {
    "neg": np.negative,
    "log1p": lambda a: np.log1p(np.abs(a)),
    "sqrt": lambda a: np.sqrt(np.abs(a)),
}
BINARY: dict[str, Callable[[Any, Any], Any]] = {  # only + - * / can leave the limits
    "+": lambda a, b: _limited(a + b),
    "-": lambda a, b: _limited(a - b),
    "*": lambda a, b: _limited(a * b),
    "/": _quotient,
    "min": np.minimum,
    "max": np.maximum,
}
_OPERATIONS: dict[str, Callable[..., Any]] = UNARY | BINARY


def is_leaf(formula: Formula) -> bool:
    """Return whether the formula is a feature or a number."""
    return formula[0] in (FEATURE, NUMBER)


def parts_of(formula: Formula) -> list[Formula]:
    """Return the formula of every node, each before its parts."""
    parts, stack = [], [formula]
    while stack:
        node = stack.pop()
        parts.append(node)
        if not is_leaf(node):
            stack += reversed(node[1:])
    return parts


def size(formula: Formula) -> int:
    """Return the number of nodes."""
    return len(parts_of(formula))


def depth(formula: Formula) -> int:
    """Return the number of operations on the longest path to a leaf."""
    return 0 if is_leaf(formula) else 1 + max(map(depth, formula[1:]))


def columns_of(formula: Formula) -> list[int]:
    """Return the columns of the features in the formula, sorted and without duplicates."""
    return sorted({part[1] for part in parts_of(formula) if part[0] == FEATURE})


# --- simplifying -----------------------------------------------------------------------------


def simplify(formula: Formula) -> Formula:
    """Return a shorter formula with the same values, except for the rounding of merged numbers.

    Operations on numbers are computed, operations without an effect are removed (f - f, f * 1,
    f / f, neg neg f, min(f, f)), and f + g and g + f become the same formula.
    """
    if formula[0] == NUMBER:
        return (NUMBER, float(_limited(formula[1])))
    if formula[0] == FEATURE:
        return formula
    return _simple(formula[0], *map(simplify, formula[1:]))


def _simple(op: str, *parts: Formula) -> Formula:
    """Return ``op`` of simple parts as a simple formula."""
    if all(part[0] == NUMBER for part in parts):
        return (NUMBER, float(_OPERATIONS[op](*(np.float64(part[1]) for part in parts))))
    if op in _SYMMETRIC:  # one order of writing, numbers last
        parts = tuple(sorted(parts, key=lambda part: (part[0] == NUMBER, part)))
    formula: Formula = (op, *parts)
    match formula:
        case "neg", ("neg", x):
            return x  # type: ignore[no-any-return]
        case "neg", ("-", x, y):
            return _simple("-", y, x)
        case "neg", ("*", x, ("c", _) as number):
            return _simple("*", x, _simple("neg", number))
        case "log1p" | "sqrt", ("neg", x):
            return (op, x)
        case "min" | "max", a, b if a == b or (a[0] == op and b in a[1:]):
            return a  # type: ignore[no-any-return]
        case "min" | "max", a, b if b[0] == op and a in b[1:]:
            return b  # type: ignore[no-any-return]
        case "+", a, ("c", 0.0):
            return a  # type: ignore[no-any-return]
        case "+", ("+", x, ("c", _) as number), ("c", _) as b:
            return _simple("+", x, _simple("+", number, b))
        case "+", a, ("neg", x):
            return _simple("-", a, x)
        case "+", ("neg", x), b:
            return _simple("-", b, x)
        case "+", a, b if a == b:
            return _simple("*", a, (NUMBER, 2.0))
        case "-", a, b if a == b:
            return (NUMBER, 0.0)
        case "-", ("c", 0.0), b:
            return _simple("neg", b)
        case "-", a, ("c" | "neg", _) as b:
            return _simple("+", a, _simple("neg", b))
        case "*", _, ("c", 0.0):
            return (NUMBER, 0.0)
        case "*" | "/", a, ("c", 1.0):
            return a  # type: ignore[no-any-return]
        case "*", a, ("c", -1.0):
            return _simple("neg", a)
        case "*", ("*", x, ("c", _) as number), ("c", _) as b:
            return _simple("*", x, _simple("*", number, b))
        case "*", ("neg", x), ("c" | "neg", _) as b:
            return _simple("*", x, _simple("neg", b))
        case "/", ("neg", x), ("neg", y):
            return _simple("/", x, y)
        case "/", a, b if a == b or b == (NUMBER, 0.0):
            return (NUMBER, 1.0)
    return formula


# --- printing --------------------------------------------------------------------------------


def text(formula: Formula, names: Sequence[str] | None = None) -> str:
    """Return the formula in usual notation, with numbers to six digits.

    Features without names, or with numbers as names, are x1, x2, ..., numbered as in LETOR files.
    Names that are not single words are put in brackets.
    """
    return _text(formula, names)[0]


def _text(formula: Formula, names: Sequence[str] | None) -> tuple[str, int]:
    """Return the text and its precedence: 3 for a term without operators, 2 product, 1 sum."""
    kind = formula[0]
    if kind == NUMBER:
        return f"{formula[1]:.6g}", 3 if formula[1] >= 0 else 1
    if kind == FEATURE:
        name = str(formula[1] + 1) if names is None else names[formula[1]]
        name = f"x{name}" if name.isdecimal() else name
        return (name if _PLAIN_NAME.fullmatch(name) else f"[{name}]"), 3
    if kind in ("+", "-") and (opposite := _without_minus(formula[2])) is not None:
        formula = ("-" if kind == "+" else "+", formula[1], opposite)
        kind = formula[0]
    parts = [_text(part, names) for part in formula[1:]]
    if kind in ("log1p", "sqrt"):
        return f"{kind}(|{parts[0][0]}|)", 3
    if kind in ("min", "max"):
        return f"{kind}({parts[0][0]}, {parts[1][0]})", 3
    if kind == "neg":
        return f"-{_bracketed(parts[0], 2)}", 1
    precedence = 2 if kind in ("*", "/") else 1
    left = _bracketed(parts[0], precedence)
    if kind == "*" and formula[2][0] == NUMBER:
        return f"{parts[1][0]} * {left}", precedence
    right = _bracketed(parts[1], precedence + (kind in ("-", "/")))
    return f"{left} {kind} {right}", precedence


def _without_minus(term: Formula) -> Formula | None:
    """Return the term without its leading minus, or None if it has none."""
    match term:
        case ("neg", x):
            return x  # type: ignore[no-any-return]
        case ("c", number) if number < 0.0:
            return (NUMBER, -number)
        case ("*", x, ("c", number)) if number < 0.0:
            return ("*", x, (NUMBER, -number))
    return None


def _bracketed(part: tuple[str, int], precedence: int) -> str:
    return part[0] if part[1] >= precedence else f"({part[0]})"


# --- values ----------------------------------------------------------------------------------


def formula_values(
    formula: Formula, columns: Mapping[int, F64], n_rows: int, *, n_jobs: int | None = None
) -> F64:
    """Return the value of the formula for each of ``n_rows`` documents.

    ``columns`` has at least the features of the formula; see `limited_columns`.
    """
    values = np.empty(n_rows)

    def evaluate(lo: int, hi: int) -> None:
        values[lo:hi] = _values(formula, columns, slice(lo, hi))

    map_ranges(evaluate, row_ranges(n_rows, _ROWS), n_jobs=n_jobs)
    return values


def limited_columns(X: FloatMatrix, columns: Sequence[int]) -> dict[int, F64]:
    """Return columns of X in float64, within the limits."""
    part = X[:, columns]
    dense = part.toarray() if sparse.issparse(part) else part
    rows = np.clip(dense.T, -LIMIT, LIMIT, dtype=np.float64, order="C")
    return dict(zip(columns, rows, strict=True))


def _values(formula: Formula, columns: Mapping[int, F64], rows: slice) -> Any:
    if formula[0] == FEATURE:
        return columns[formula[1]][rows]
    if formula[0] == NUMBER:
        return np.float64(formula[1])
    return _OPERATIONS[formula[0]](*(_values(part, columns, rows) for part in formula[1:]))


# --- JSON ------------------------------------------------------------------------------------


def from_json(source: str | bytes, n_features: int) -> list[Formula]:
    """Return formulas from a JSON list; raise if one is damaged or too deep."""
    try:
        formulas = json.loads(source)
    except (ValueError, RecursionError):
        formulas = None
    if not isinstance(formulas, list) or not formulas:
        raise DataError("the formula is damaged.")
    return [_checked(formula, n_features, MOST_DEPTH) for formula in formulas]


def _checked(node: Any, n_features: int, levels: int) -> Formula:
    """Return a formula of at most ``levels`` operations on a path: other functions recurse."""
    match node:
        case ["x", int(column)] if 0 <= column < n_features:
            return (FEATURE, column)
        case ["c", float(number)] if math.isfinite(number):
            return (NUMBER, number)
        case [str(op), _] if op in UNARY and levels:
            return (op, _checked(node[1], n_features, levels - 1))
        case [str(op), _, _] if op in BINARY and levels:
            return (op, *(_checked(part, n_features, levels - 1) for part in node[1:]))
    raise DataError(
        f"the formula is damaged, or has other features or more than {MOST_DEPTH} operations on a "
        "path."
    )
