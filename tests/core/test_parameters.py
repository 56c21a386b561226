"""Parts are values: read, compared, and changed in copies; names of other libraries are known."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from rankwright import losses, models
from rankwright.core.parameters import (
    ELSEWHERE,
    Part,
    check_above_zero,
    check_choice,
    check_parameters,
    check_whole,
    check_zero_or_more,
    either,
    params_of,
    part_name,
    resolve_part,
    same,
    unknown_parameter,
    with_params,
)
from rankwright.errors import UsageError


@dataclass(frozen=True, slots=True, repr=False)
class Bend(Part):
    rate: float = 0.5
    steps: int = 3
    word: str | None = None
    exact: bool = False
    anything: object = ()


class Foreign:
    """Anyone's part, with scikit-learn's method."""

    def __init__(self, depth=1):
        self.depth = depth

    def get_params(self, deep=True):
        return {"depth": self.depth}


class Plain:
    """A part that names no parameters."""


def test_a_part_shows_what_differs_from_its_defaults():
    assert repr(Bend()) == "Bend()"
    assert repr(Bend(rate=1, word="up")) == "Bend(rate=1, word='up')"


def test_parameters_of_anyones_part():
    assert params_of(Bend(steps=4))["steps"] == 4
    assert params_of(Foreign(3)) == {"depth": 3}
    assert params_of(Plain()) == {}


@pytest.mark.parametrize("part", [Bend(steps=1), Foreign(1)])
def test_a_change_is_a_copy(part):
    name = "steps" if isinstance(part, Bend) else "depth"
    changed = with_params(part, {name: 9})
    assert params_of(changed)[name] == 9
    assert params_of(part)[name] == 1
    with pytest.raises(UsageError, match=f"{type(part).__name__} has no parameter 'stps'"):
        with_params(part, {"stps": 9})


def test_a_name_is_the_part_with_its_defaults_and_an_object_is_itself():
    own = losses.ListNet(k=3)
    assert resolve_part("losses", own) is own
    assert resolve_part("models", "trees") == models.Trees()
    with pytest.raises(UsageError, match="there is no model 'tree'; did you mean trees"):
        resolve_part("models", "tree")
    with pytest.raises(UsageError, match=r"Trees is a class; pass an object: Trees\(\)"):
        resolve_part("models", models.Trees)
    assert part_name("models", models.Trees()) == "trees"
    assert part_name("models", Foreign()) == "Foreign"


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [
        (1, 1.0, True),
        (np.float32(0.5), 0.5, True),
        (True, 1, False),
        ("a", "a", True),
        ((1, 2), (1, 2), True),
        ((1, 2), [1, 2], False),
        (None, None, True),
        (None, 0, False),
        (np.zeros(2), np.zeros(2), False),
    ],
)
def test_values_of_parameters_are_compared(a, b, equal):
    assert same(a, b) is equal


@pytest.mark.parametrize(
    ("part", "sentence"),
    [
        (Bend(rate="fast"), "rate must be a number, not 'fast'"),
        (Bend(steps=2.5), r"steps must be a whole number, not 2\.5"),
        (Bend(steps=True), "steps must be a whole number, not True"),
        (Bend(word=3), "word must be text, not 3"),
        (Bend(exact=1), "exact must be true or false, not 1"),
        (models.Trees(n_estimators=0), "n_estimators must be 1 or more, not 0"),
        (models.Trees(learning_rate=0.0), "learning_rate must be above 0, not 0"),
    ],
)
def test_values_of_the_wrong_kind_are_refused(part, sentence):
    with pytest.raises(UsageError, match=sentence):
        check_parameters(part)


def test_numbers_of_numpy_and_whole_numbers_for_numbers_will_do():
    check_parameters(Bend(rate=1, steps=np.int64(2), word=None, exact=np.bool_(True)))
    check_parameters(Plain())


def test_a_name_of_another_library_is_answered_with_ours_where_the_part_has_it():
    known = ["learning_rate", "num_leaves"]
    reported = str(unknown_parameter("Trees", "eta", known))
    assert reported == "Trees has no parameter 'eta'; it is called learning_rate here."
    assert "did you mean num_leaves" in str(unknown_parameter("Trees", "num_leafs", known))
    assert "it is called" not in str(unknown_parameter("Trees", "C", known))


def test_what_a_name_is_called_here_is_a_parameter_of_something():
    import inspect
    from dataclasses import fields

    from rankwright import registry

    known = {
        field.name
        for kind in ("losses", "models", "solvers")
        for part in registry.all_of(kind).values()
        for field in fields(part)
    }
    for ranker in registry.all_of("rankers").values():
        known |= set(inspect.signature(ranker.__init__).parameters)
    assert set(ELSEWHERE) <= known


# --- parameters ------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [1e-9, 3, np.float32(2), np.int64(4)])
def test_numbers_above_zero_of_any_type_pass(value):
    check_above_zero("sigma", value)
    check_zero_or_more("sigma", value)


def test_zero_is_zero_or_more():
    check_zero_or_more("l2", 0)


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (0.0, "ranknet's sigma must be above 0, not 0.0."),
        (-1, "ranknet's sigma must be above 0, not -1."),
        (math.nan, "ranknet's sigma must be above 0, not nan."),
        (math.inf, "ranknet's sigma must be above 0 and finite, not inf."),
        ("high", "ranknet's sigma must be above 0, not 'high'."),
        (None, "ranknet's sigma must be above 0, not None."),
    ],
)
def test_what_is_no_finite_number_above_zero_is_refused(value, sentence):
    with pytest.raises(UsageError) as error:
        check_above_zero("ranknet's sigma", value)
    assert str(error.value) == sentence


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (-0.5, "l2 must be 0 or more, not -0.5."),
        (math.inf, "l2 must be 0 or more and finite, not inf."),
        ("big", "l2 must be 0 or more, not 'big'."),
    ],
)
def test_what_is_no_finite_number_from_zero_is_refused(value, sentence):
    with pytest.raises(UsageError) as error:
        check_zero_or_more("l2", value)
    assert str(error.value) == sentence


@pytest.mark.parametrize("value", [2, 2.0, np.int32(5)])
def test_whole_numbers_pass_however_they_are_written(value):
    check_whole("k", value, 2)


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (1, "k must be 2 or more, not 1."),
        (2.5, "k must be a whole number, 2 or more, not 2.5."),
        (math.inf, "k must be a whole number, 2 or more, not inf."),
        ("10", "k must be a whole number, 2 or more, not '10'."),
        (2**63, "k must be 9223372036854775807 or less, not 9.22337e+18."),
    ],
)
def test_what_is_no_whole_number_from_the_least_is_refused(value, sentence):
    with pytest.raises(UsageError) as error:
        check_whole("k", value, 2)
    assert str(error.value) == sentence


def test_a_word_is_one_of_those_known():
    check_choice("form", "hinge", ("squared", "hinge"))
    with pytest.raises(UsageError, match="form must be squared, hinge or log, not 'cubic'"):
        check_choice("form", "cubic", ("squared", "hinge", "log"))


def test_either_lists_words_as_people_do():
    assert either(["a"]) == "a"
    assert either(["a", "b"]) == "a or b"
    assert either(["a", "b", "c"]) == "a, b or c"


@pytest.mark.parametrize("check", [check_above_zero, check_zero_or_more])
def test_a_whole_number_too_large_for_a_float_is_refused(check):
    with pytest.raises(UsageError, match="gain must be"):
        check("gain", 10**400)
