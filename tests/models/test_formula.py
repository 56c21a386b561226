"""Formulas mean the same simplified, and read as a person would write them."""

import json

import numpy as np
import pytest
from cases import each
from hypothesis import given
from hypothesis import strategies as st
from reference.expression import value

from rankwright.errors import DataError
from rankwright.models.expression import Expression
from rankwright.models.formula import (
    BINARY,
    UNARY,
    columns_of,
    depth,
    from_json,
    parts_of,
    simplify,
    size,
    text,
)

X1, X2, X3 = ("x", 0), ("x", 1), ("x", 2)
FEATURES = 3


def number(c):
    return ("c", float(c))


numbers = st.sampled_from([0.0, 1.0, -1.0, 2.0, 0.5, -0.25, 3.0])
leaves = st.one_of(
    st.integers(0, FEATURES - 1).map(lambda j: ("x", j)), numbers.map(lambda c: ("c", c))
)
formulas = st.recursive(
    leaves,
    lambda part: st.one_of(
        st.tuples(st.sampled_from([*UNARY]), part),
        st.tuples(st.sampled_from([*BINARY]), part, part),
    ),
    max_leaves=12,
)
# Whole numbers: then sums and products are exact, and no rounding decides whether g of f / g is 0.
rows = st.lists(st.integers(-3, 3).map(float), min_size=FEATURES, max_size=FEATURES)
has_root = {"log1p", "sqrt", "/"}


@given(formulas, rows)
def test_a_simplified_formula_has_the_same_values(tree, row):
    if any(
        part[0] == "/" and has_root & {p[0] for p in parts_of(part[2])} for part in parts_of(tree)
    ):
        return  # a denominator that is rounded to 0 or not by the order of its sum
    assert value(simplify(tree), row) == pytest.approx(value(tree, row), rel=1e-9, abs=1e-9)


@given(formulas)
def test_simplifying_never_lengthens_and_once_is_enough(tree):
    short = simplify(tree)
    assert size(short) <= size(tree)
    assert depth(short) <= depth(tree)
    assert simplify(short) == short


@each(
    ("tree", "short"),
    [
        (("-", X1, X1), number(0)),
        (("/", X1, X1), number(1)),
        (("*", X1, number(1)), X1),
        (("*", number(0), X1), number(0)),
        (("/", X1, number(1)), X1),
        (("/", X1, number(0)), number(1)),
        (("+", number(0), X1), X1),
        (("neg", ("neg", X1)), X1),
        (("neg", ("-", X1, X2)), ("-", X2, X1)),
        (("+", X1, ("neg", X2)), ("-", X1, X2)),
        (("min", X1, X1), X1),
        (("max", ("max", X1, X2), X2), ("max", X1, X2)),
        (("sqrt", ("neg", X1)), ("sqrt", X1)),
        (("+", ("*", number(2), number(3)), X1), ("+", X1, number(6))),
        (("+", ("+", X1, number(1)), number(2)), ("+", X1, number(3))),
        (("*", ("*", X1, number(2)), number(-0.5)), ("neg", X1)),
        (("-", ("+", X2, X1), ("+", X1, X2)), number(0)),
    ],
)
def test_what_has_no_effect_goes(tree, short):
    assert simplify(tree) == short


def test_zero_over_a_feature_stays_since_it_is_1_where_the_feature_is_0():
    tree = ("/", number(0), X1)
    assert simplify(tree) == tree


def test_numbers_stay_within_the_limits():
    huge = ("*", number(1e80), number(1e80))
    assert simplify(huge) == number(1e100)
    assert simplify(("/", number(-1), number(5e-324))) == number(-1e100)


@each(
    ("tree", "expected"),
    [
        (("-", ("*", X1, X2), X3), "x1 * x2 - x3"),
        (("*", X1, ("-", X2, X3)), "x1 * (x2 - x3)"),
        (("-", X1, ("-", X2, X3)), "x1 - (x2 - x3)"),
        (("/", X1, ("*", X2, X3)), "x1 / (x2 * x3)"),
        (("/", ("*", X1, X2), X3), "x1 * x2 / x3"),
        (("*", ("+", X1, X2), number(0.5)), "0.5 * (x1 + x2)"),
        (("*", X1, number(-2)), "-2 * x1"),
        (("+", X1, ("*", X2, number(-2))), "x1 - 2 * x2"),
        (("+", X1, number(-0.25)), "x1 - 0.25"),
        (("log1p", ("-", X1, X2)), "log1p(|x1 - x2|)"),
        (("min", X1, ("neg", X2)), "min(x1, -x2)"),
        (("neg", ("+", X1, X2)), "-(x1 + x2)"),
        (("-", X1, ("neg", X2)), "x1 + x2"),
    ],
)
def test_a_formula_reads_as_a_person_would_write_it(tree, expected):
    assert text(tree) == expected


def test_features_go_by_their_names_in_brackets_where_these_are_no_single_words():
    names = ("bm25", "title length", "tf*idf")
    assert text(("+", ("-", X1, X2), X3), names) == "bm25 - [title length] + [tf*idf]"
    assert text(("-", X1, X2), ("1", "17")) == "x1 - x17"


@given(st.lists(formulas, min_size=1, max_size=4))
def test_json_reads_back_as_the_formulas(trees):
    assert from_json(json.dumps(trees), FEATURES) == trees


@pytest.mark.parametrize(
    "damaged",
    [
        "", "[]", "3", "nul", "[" * 5000, '[["x", 3]]', '[["x", -1]]', '[["x", 0.5]]', '[["x"]]',
        '[["c", NaN]]', '[["c", 1e999]]', '[["c", "1"]]', '[["pow", ["x", 0], ["x", 0]]]',
        '[["+", ["x", 0]]]', '[["neg", ["x", 0], ["x", 0]]]', '[["neg", 3]]', '[null]',
        "[" + '["neg", ' * 101 + '["x", 0]' + "]" * 102,
    ],
)  # fmt: skip
def test_damaged_json_is_reported(damaged):
    with pytest.raises(DataError, match="the formula is damaged"):
        from_json(damaged, FEATURES)


def test_a_formula_may_have_a_hundred_operations_on_a_path():
    (formula,) = from_json("[" + '["neg", ' * 100 + '["x", 0]' + "]" * 101, FEATURES)
    assert depth(formula) == 100


# --- formula breeding ------------------------------------------------------------------------
# Formulas are drawn, crossed and changed within their limits.


COLUMNS = [0, 2, 5, 7]
SMALL = Expression(max_nodes=9, max_depth=3, max_features=2, population=300)


def lineage(seed=0):
    """Formulas of every kind: drawn, crossed and changed."""
    rng = np.random.default_rng(seed)
    first = SMALL.first_generation(None, COLUMNS, seed)
    crossed = [SMALL.cross(a, b, rng) for a, b in zip(first, reversed(first), strict=True)]
    changed = [SMALL.mutate(formula, COLUMNS, rng) for formula in crossed]
    return {"first": first, "crossed": crossed, "changed": changed}


@pytest.mark.parametrize("kind", ["first", "crossed", "changed"])
def test_no_formula_breaks_a_limit_and_all_are_simplified(kind):
    for tree in lineage()[kind]:
        assert size(tree) <= 9
        assert depth(tree) <= 3
        assert set(columns_of(tree)) <= {0, 2, 5, 7}
        assert len(columns_of(tree)) <= 2
        assert simplify(tree) == tree


def test_the_same_stream_draws_the_same_formulas():
    assert lineage(seed=3) == lineage(seed=3)
    assert lineage(seed=3) != lineage(seed=4)


def test_the_first_generation_has_formulas_of_every_depth():
    drawn = lineage()["first"]
    assert {depth(tree) for tree in drawn} >= {0, 1, 2, 3}


def test_a_child_holds_parts_of_both_parents():
    wide = Expression(max_nodes=99, max_depth=20, max_features=9)
    a, b = ("-", ("x", 0), ("x", 1)), ("/", ("x", 2), ("x", 3))
    rng = np.random.default_rng(0)
    children = [wide.cross(a, b, rng) for _ in range(200)]
    assert ("-", ("x", 0), b) in children  # all of b for a leaf of a
    assert b in children  # for the root
    assert all(set(columns_of(child)) & {2, 3} for child in children)


class ChangesTheNumber:
    """Numbers that make `Expression.mutate` change node 2 and nothing else."""

    def __init__(self):
        self.normal = np.random.default_rng(0).normal

    def integers(self, _n):
        return 2

    def random(self):
        return 0.5


@pytest.mark.parametrize("number", [2.0, -2.0])
def test_a_changed_number_keeps_its_sign(number):
    wide = Expression(max_nodes=9, max_depth=4, max_features=1)
    formula, rng = ("*", ("x", 0), ("c", number)), ChangesTheNumber()
    changed = [wide.mutate(formula, [0], rng) for _ in range(300)]
    assert {t[:2] for t in changed} == {("*", ("x", 0))}
    factors = np.array([t[2][1] for t in changed]) / number
    assert len(set(factors)) > 100
    assert ((factors > 0.1) & (factors < 10.0)).all()


def test_a_changed_formula_keeps_to_the_limits():
    narrow = Expression(max_nodes=9, max_depth=4, max_features=1)
    rng = np.random.default_rng(0)
    changed = [narrow.mutate(("*", ("x", 0), ("c", 2.0)), [0], rng) for _ in range(300)]
    assert max(len(parts_of(t)) for t in changed) in range(7, 10)
