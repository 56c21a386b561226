"""Every ranker has something to search, and its defaults lie within."""

import pytest

from rankwright import registry
from rankwright.rankers.base import ranker
from rankwright.rankers.search_space import (
    OF_MODELS,
    Choice,
    Floats,
    Ints,
    Log,
    given_parameters,
    space_of,
)

SEARCHED = [
    (name, model)
    for name, kind in registry.all_of("rankers").items()
    for model in kind.models
    if model in OF_MODELS
]
DECIDED_BY_THE_DATA = {"gamma"}


@pytest.mark.parametrize(("name", "model"), SEARCHED, ids="-".join)
def test_a_space_holds_the_defaults_of_parameters_that_exist(name, model):
    made = ranker(name, model=model)
    fitted = made.make_model()
    space = space_of(made)
    assert space
    for parameter, domain in space.items():
        value = getattr(made, parameter)
        value = getattr(fitted, parameter) if value is None else value
        assert domain.holds(value) or parameter in DECIDED_BY_THE_DATA, parameter


@pytest.mark.parametrize("name", registry.KINDS["rankers"])
def test_a_ranker_declares_spaces_only_for_its_own_parameters_and_models(name):
    kind = registry.resolve("rankers", name)
    known = kind().get_params(deep=False)
    assert set(kind.search_space) <= set(known)
    assert set(kind.model_search_space) <= set(kind.models)


def test_the_space_is_that_of_the_model_that_is_chosen():
    assert "num_leaves" in space_of(ranker("gbdt"))
    assert "l2" not in space_of(ranker("gbdt"))
    assert set(space_of(ranker("gbdt", model="linear"))) == {"l2", "targets"}


def test_what_is_set_is_not_searched():
    assert "num_leaves" not in space_of(ranker("gbdt", num_leaves=7))
    assert "targets" not in space_of(ranker("gbdt"), fixed=("targets",))
    assert given_parameters(ranker("gbdt", num_leaves=7, random_state=0)) == {"num_leaves": 7}


def test_none_takes_a_parameter_of_the_model_out():
    assert set(space_of(ranker("domination"))) == {"variant", "l1"}


@pytest.mark.parametrize(
    ("domain", "inside", "outside"),
    [
        (Ints(2, 5), 5, 6),
        (Ints(2, 5), 2, 2.5),
        (Floats(0.5, 1.0), 1, 1.1),
        (Log(0.1, 10.0), 0.1, 0.0),
        (Choice("a", None), None, "b"),
    ],
)
def test_a_domain_knows_its_values(domain, inside, outside):
    assert domain.holds(inside)
    assert not domain.holds(outside)
