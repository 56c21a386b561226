"""Formulas are drawn, crossed and changed within their limits."""

import numpy as np
import pytest

from rankwright.models.expression import Breeding
from rankwright.models.formula import columns_of, depth, parts_of, simplify, size

SMALL = Breeding(columns=[0, 2, 5, 7], max_nodes=9, max_depth=3, max_features=2)


def lineage(seed=0, n=300):
    """Formulas of every kind: drawn, crossed and changed."""
    rng = np.random.default_rng(seed)
    alive = [SMALL.first(k, rng) for k in range(n)]
    crossed = [SMALL.cross(alive[k], alive[-k - 1], rng) for k in range(n)]
    changed = [SMALL.mutate(one, rng) for one in crossed]
    return {"first": alive, "crossed": crossed, "changed": changed}


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
    wide = Breeding(columns=range(4), max_nodes=99, max_depth=20, max_features=9)
    a, b = ("-", ("x", 0), ("x", 1)), ("/", ("x", 2), ("x", 3))
    rng = np.random.default_rng(0)
    children = [wide.cross(a, b, rng) for _ in range(200)]
    assert ("-", ("x", 0), b) in children  # all of b for a leaf of a
    assert b in children  # for the root
    assert all(set(columns_of(child)) & {2, 3} for child in children)


class ChangesTheNumber:
    """Numbers that make `Breeding.mutate` change node 2 and nothing else."""

    def __init__(self):
        self.normal = np.random.default_rng(0).normal

    def integers(self, _n):
        return 2

    def random(self):
        return 0.5


@pytest.mark.parametrize("number", [2.0, -2.0])
def test_a_changed_number_keeps_its_sign(number):
    wide = Breeding(columns=[0], max_nodes=9, max_depth=4, max_features=1)
    formula, rng = ("*", ("x", 0), ("c", number)), ChangesTheNumber()
    changed = [wide.mutate(formula, rng) for _ in range(300)]
    assert {t[:2] for t in changed} == {("*", ("x", 0))}
    factors = np.array([t[2][1] for t in changed]) / number
    assert len(set(factors)) > 100
    assert ((factors > 0.1) & (factors < 10.0)).all()


def test_a_changed_formula_keeps_to_the_limits():
    narrow = Breeding(columns=[0], max_nodes=9, max_depth=4, max_features=1)
    rng = np.random.default_rng(0)
    changed = [narrow.mutate(("*", ("x", 0), ("c", 2.0)), rng) for _ in range(300)]
    assert max(len(parts_of(t)) for t in changed) in range(7, 10)
