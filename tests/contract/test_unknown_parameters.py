"""A parameter that is not there is refused with its name here, or the part that has it."""

import pytest
from cases import each

import rankwright as rw
from rankwright import registry
from rankwright.errors import UsageError

OF_OTHER_PARTS = [
    ("ranknet", "n_trees", "model trees", "model.n_estimators"),
    ("lambdarank", "max_iterations", "model linear, kernel or factorization", "model.max_iter"),
    ("memr", "hidden_sizes", "model network", "model.hidden_layer_sizes"),
    ("dorm", "gamma", "model kernel", "model.gamma"),
    ("memr", "batch_size", "solver sgd", "solver.batch_size"),
    ("listnet", "averaging", "solver online or sgd", "solver.averaging"),
    ("memr", "step", "solver coordinate", "solver.step"),
]
PARTS = [
    ("models", "trees", "n_trees", "n_estimators"),
    ("models", "linear", "max_iterations", "max_iter"),
    ("solvers", "tron", "tolerance", "tol"),
    ("losses", "xendcg", "seed", "random_state"),
]


@each(("name", "other", "part", "key"), OF_OTHER_PARTS)
def test_a_parameter_of_another_part_is_refused_with_that_part(name, other, part, key):
    with pytest.raises(UsageError) as refused:
        rw.ranker(name, **{other: 1})
    assert f"is a parameter of the {part}: pass such a {part.split()[0]}" in str(refused.value)
    assert f"--set {key}=VALUE" in str(refused.value)


def test_a_parameter_of_the_loss_is_refused_with_a_ranker_that_takes_it():
    with pytest.raises(UsageError, match=r"its loss has within_grade: .* --set loss=retarget "):
        rw.MEMR(within_grade=1)
    assert rw.ranker("ranker", loss="retarget", loss__within_grade="equal") is not None


@each(("kind", "part", "other", "name"), PARTS)
def test_a_part_refuses_a_name_of_other_libraries_with_its_own(kind, part, other, name):
    takes = rw.ranker("ranker", **{registry.singular(kind): part})
    with pytest.raises(UsageError, match=f"no parameter '{other}'; it is called {name} here"):
        takes.set_params(**{f"{registry.singular(kind)}__{other}": 1}).get_params()
