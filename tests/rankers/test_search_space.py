"""Every ranker has something to search, and its defaults lie within."""

from dataclasses import fields

import pytest
from cases import each
from optuna.distributions import (
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from rankwright import registry
from rankwright.models.trees import Trees
from rankwright.rankers.base import ranker
from rankwright.rankers.search_space import (
    OF_MODELS,
    contains,
    distributions,
    given_parameters,
    space_of,
)

DECIDED_BY_THE_DATA = {"model__gamma"}


@pytest.mark.parametrize("name", registry.RANKERS)
def test_a_space_holds_the_defaults_of_parameters_that_exist(name):
    kind = registry.resolve("rankers", name)
    others = OF_MODELS if kind.loss_class or name == "ranker" else []
    for made in [ranker(name), *(ranker(name, model=model) for model in others)]:
        space = space_of(made)
        assert space, made
        parameters = made.get_params(deep=True)
        for parameter, domain in distributions(space).items():
            value = parameters[parameter]
            assert contains(domain, value) or value == "auto" or parameter in DECIDED_BY_THE_DATA
            made.set_params(**{parameter: value})
        made.make_model()


@each("name", registry.RANKERS)
def test_a_ranker_declares_spaces_only_for_its_own_parameters(name):
    kind = registry.resolve("rankers", name)
    assert set(kind.search_space) <= set(kind().get_params(deep=False))


def test_every_space_of_a_model_names_its_fields():
    for name, space in OF_MODELS.items():
        assert set(space) <= {field.name for field in fields(registry.resolve("models", name))}


def test_the_space_is_that_of_the_model_that_is_chosen():
    assert "num_leaves" in space_of(ranker("gbdt"))
    assert "l2" not in space_of(ranker("gbdt"))
    assert set(space_of(ranker("gbdt", model="linear"))) == {"model__l2", "targets"}
    assert "l1" not in space_of(ranker("domination", model="trees"))
    assert "model__num_leaves" in space_of(ranker("domination", model="trees"))


def test_what_is_set_is_not_searched():
    assert "num_leaves" not in space_of(ranker("gbdt", num_leaves=7))
    assert "targets" not in space_of(ranker("gbdt"), fixed=("targets",))
    assert given_parameters(ranker("gbdt", num_leaves=7, random_state=0)) == {"num_leaves": 7}
    model = Trees(num_leaves=7)
    assert given_parameters(ranker("gbdt", model=model)) == {"model": model}


def test_none_takes_a_parameter_of_the_model_out():
    assert set(space_of(ranker("domination"))) == {"variant", "l1"}


@pytest.mark.parametrize(
    ("values", "inside", "outside"),
    [
        ((2, 5), 5, 6),
        ((2, 5), 2, 2.5),
        ((0.5, 1.0), 1, 1.1),
        ((0.1, 10.0, "log"), 0.1, 0.0),
        (["a", None], None, "b"),
        ([(4,), (3, 2)], (3, 2), (3,)),
        (IntDistribution(7, 63, step=4), 11, 12),
        (FloatDistribution(0.0, 1.0, step=0.25), 0.75, 0.7),
        (CategoricalDistribution(["a", 1]), 1, 2),
    ],
)
def test_a_distribution_contains_the_values_of_its_space(values, inside, outside):
    distribution = distributions({"x": values})["x"]
    assert contains(distribution, inside)
    assert not contains(distribution, outside)
