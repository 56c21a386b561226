"""Formulas evaluated one row at a time, by recursion: the slow twin of the NumPy evaluation."""

import math

LIMIT = 1e100


def value(tree, row):
    """The value of a formula for one row of features."""
    kind, *parts = tree
    if kind == "x":
        return held(float(row[parts[0]]))
    if kind == "c":
        return parts[0]
    a, *rest = (value(part, row) for part in parts)
    if kind == "neg":
        return -a
    if kind == "log1p":
        return math.log(1.0 + abs(a)) if abs(a) > 1e-3 else math.log1p(abs(a))
    if kind == "sqrt":
        return abs(a) ** 0.5
    (b,) = rest
    if kind == "/":
        return held(divided(a, b))
    return held({"+": a + b, "-": a - b, "*": a * b, "min": min(a, b), "max": max(a, b)}[kind])


def divided(a, b):
    """a / b, 1 where b is 0; Python divides no large number by a tiny one."""
    if b == 0.0:
        return 1.0
    try:
        return a / b
    except OverflowError:
        return math.copysign(LIMIT, a) * math.copysign(1.0, b)


def held(a):
    """The nearest number within the limits."""
    return min(max(a, -LIMIT), LIMIT)
