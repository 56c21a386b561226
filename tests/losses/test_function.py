"""A loss from a function of one query: what it is asked, and what it may return."""

import pickle
import sys

import numpy as np
import pytest
from cases import each

from rankwright.errors import DataError, UsageError
from rankwright.losses import from_file, from_function
from rankwright.testing.contract import graded

DATA = graded([[1, 0], [2, 2], [0, 1, 3]], query_weight=np.array([1.0, 1.0, 2.0]))
S = np.array([0.5, 0.0, 9.0, 9.0, 1.0, 2.0, 3.0])


def squared(scores, grades):
    return 0.5 * ((scores - grades) ** 2).sum(), scores - grades


def test_the_value_is_the_weighted_sum_over_queries_that_have_an_order():
    bound = from_function(squared, curvature=3.0).bind(DATA)
    grad, curv = np.empty(7), np.empty(7)
    weight = np.array([1, 1, 0, 0, 2, 2, 2])
    assert bound.grad_curv(S, grad, curv) == pytest.approx(0.5 * (weight * (S - DATA.y) ** 2).sum())
    assert grad == pytest.approx(weight * (S - DATA.y))
    assert curv == pytest.approx(weight * 3.0)
    alone = np.empty(7)
    assert bound.grad(S, alone) == bound.value(S) > 0.0
    assert alone.tolist() == grad.tolist()
    assert bound.per_query.tolist() == pytest.approx([0.125, 0.0, 2 * 0.5 * (1 + 1 + 0)])


def test_a_gradient_of_another_length_is_refused():
    bound = from_function(squared).bind(DATA)
    for s, out in ((S, np.empty(8)), (S[:6], np.empty(7))):
        with pytest.raises(DataError, match="bound to 7 documents"):
            bound.grad(s, out)


def test_a_function_cannot_change_what_it_is_given():
    def spoils(scores, grades):
        scores[:], grades[:] = 7.0, 7.0
        return 0.0, np.zeros(len(scores))

    s = S.copy()
    from_function(spoils).bind(DATA).value(s)
    assert (s == S).all()
    assert DATA.y.tolist() == [1, 0, 2, 2, 0, 1, 3]


@pytest.mark.parametrize(
    ("answer", "error", "sentence"),
    [
        (lambda s, y: 1.0, UsageError, "must return its value and gradient, .* returned float"),
        (lambda s, y: (1.0, s[:1]), UsageError, r"arrays of 2 for query 0 of 2 documents"),
        (lambda s, y: (np.nan, s), DataError, "a number that is not finite for query 0"),
    ],
)
def test_what_is_no_loss_is_refused_with_the_query(answer, error, sentence):
    with pytest.raises(error, match=sentence):
        from_function(answer).bind(DATA).value(S)


def test_it_is_called_with_scores_and_labels():
    loss = from_function(squared)
    assert loss([1.0, 3.0], [0, 1]) == 2.5
    assert loss.gradient([1.0, 3.0], [0, 1]).tolist() == [1.0, 2.0]


OWN = """\
from __future__ import annotations
from dataclasses import dataclass
import rankwright as rw
from beside import half

@dataclass
class Scale:
    by: float = half

def squared(scores, grades):
    return Scale().by * ((scores - grades) ** 2).sum(), scores - grades

loss = rw.losses.from_function(squared)
"""


def test_a_file_has_the_loss_of_its_function(tmp_path):
    (tmp_path / "beside.py").write_text("half = 0.5\n")
    (tmp_path / "own_loss_of_a_test.py").write_text(OWN)
    before = list(sys.path)
    made = from_file(tmp_path / "own_loss_of_a_test.py")
    del sys.modules["beside"]
    assert made.bind(DATA).value(S) == from_function(squared).bind(DATA).value(S)
    assert sys.path == before
    assert "own_loss_of_a_test" not in sys.modules


def test_a_file_does_not_replace_a_module_of_its_name(tmp_path):
    (tmp_path / "pickle.py").write_text(
        "import rankwright as rw\nloss = rw.losses.from_function(len)\n"
    )
    assert from_file(tmp_path / "pickle.py").function is len
    assert sys.modules["pickle"] is pickle


@each(
    ("text", "sentence"),
    [
        ("x = 1", "own.py defines no 'loss'; end it with loss = "),
        (
            "def loss(s, y): return 0.0, s",
            "'loss' of .*own.py is <function loss .*, not a loss",
        ),
        (
            "class loss:\n    traits = bind = 1",
            "is the class loss, not a loss. .* from a class by calling it",
        ),
        ("import no_such_module", "own.py cannot be run: ModuleNotFoundError: No module named"),
        ("loss = (", "own.py cannot be run: SyntaxError: "),
    ],
)
def test_a_file_without_a_loss_is_refused_with_the_reason(tmp_path, text, sentence):
    (tmp_path / "own.py").write_text(text)
    with pytest.raises(UsageError, match=sentence):
        from_file(tmp_path / "own.py")
    assert "own" not in sys.modules


@each("name", ["missing.py", "own.txt"])
def test_what_is_no_python_file_is_refused(tmp_path, name):
    (tmp_path / "own.txt").write_text("loss = 1")
    with pytest.raises(UsageError, match=r"cannot read a loss from .*: it must be a Python file"):
        from_file(tmp_path / name)
