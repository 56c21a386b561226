"""Names of version 0.1 that are gone: each is refused with what to write instead."""

import re
from pathlib import Path

import pytest
from cases import each
from command import sentence

import rankwright as rw
from rankwright import registry
from rankwright.errors import UsageError

CHANGES = (Path(__file__).parents[2] / "CHANGELOG.md").read_text(encoding="utf-8")
PARAMETERS = {  # of a ranker whose model had it
    "batch_documents": ("ranknet", "batch_size"),
    "categorical": ("gbdt", "categorical_feature"),
    "early_stopping": ("lambdamart", "early_stopping_rounds"),
    "feature_fraction": ("gbdt", "colsample_bytree"),
    "hidden": ("ranknet", "hidden_layer_sizes"),
    "inner": ("random_forest", "loss"),
    "inner_params": ("random_forest", "loss"),
    "l1": ("gbdt", "reg_alpha"),
    "l2": ("gbdt", "reg_lambda"),
    "loss_params": ("cofirank", "loss"),
    "max_iterations": ("memr", "max_iter"),
    "min_curvature": ("gbdt", "min_child_weight"),
    "min_documents": ("gbdt", "min_child_samples"),
    "monotone": ("gbdt", "monotone_constraints"),
    "n_threads": ("memr", "n_jobs"),
    "n_trees": ("gbdt", "n_estimators"),
    "row_fraction": ("gbdt", "subsample"),
    "seed": ("memr", "random_state"),
    "select_metric": ("memr", "metric"),
    "solver": ("intervalrank", "qp_solver"),
    "tolerance": ("memr", "tol"),
}
OF_OTHER_PARTS = [  # 0.1 had the parameters of all models and solvers side by side
    ("ranknet", "n_trees", "model trees", "model.n_estimators"),
    ("lambdarank", "max_iterations", "model linear, kernel or factorization", "model.max_iter"),
    ("memr", "hidden", "model network", "model.hidden_layer_sizes"),
    ("dorm", "gamma", "model kernel", "model.gamma"),
    ("memr", "batch_queries", "solver sgd", "solver.batch_size"),
    ("listnet", "averaging", "solver online or sgd", "solver.averaging"),
    ("memr", "step", "solver coordinate", "solver.step"),
]
PARTS = [
    ("models", "trees", "n_trees", "n_estimators"),
    ("models", "linear", "max_iterations", "max_iter"),
    ("solvers", "tron", "tolerance", "tol"),
    ("solvers", "sgd", "batch_queries", "batch_size"),
    ("solvers", "alternating", "inner_iterations", "inner_max_iter"),
    ("losses", "xendcg", "seed", "random_state"),
    ("losses", "interval", "solver", "qp_solver"),
]


@each("old", PARAMETERS)
def test_a_parameter_is_refused_with_its_name_of_today(old):
    name, new = PARAMETERS[old]
    with pytest.raises(UsageError, match=f"no parameter '{old}'; it is called {new} here"):
        rw.ranker(name, **{old: 1})
    assert re.search(rf"^\| .*`{old}`.* \| .*`{new}`", CHANGES, re.MULTILINE), old


@each(("name", "old", "part", "key"), OF_OTHER_PARTS)
def test_a_parameter_of_another_part_is_refused_with_that_part(name, old, part, key):
    with pytest.raises(UsageError) as refused:
        rw.ranker(name, **{old: 1})
    assert f"is a parameter of the {part}: pass such a {part.split()[0]}" in str(refused.value)
    assert f"--set {key}=VALUE" in str(refused.value)


def test_a_parameter_of_the_loss_is_refused_with_a_ranker_that_takes_it():
    with pytest.raises(UsageError, match=r"its loss has within_grade: .* --set loss=retarget "):
        rw.MEMR(within_grade=1)
    assert rw.ranker("ranker", loss="retarget", loss__within_grade="equal") is not None


@each(("kind", "part", "old", "new"), PARTS)
def test_a_part_refuses_a_parameter_with_its_name_of_today(kind, part, old, new):
    takes = rw.ranker("ranker", **{registry.singular(kind): part})
    with pytest.raises(UsageError, match=f"no parameter '{old}'; it is called {new} here"):
        takes.set_params(**{f"{registry.singular(kind)}__{old}": 1}).get_params()


@each(("what", "old"), [(what, old) for what in registry.FORMER for old in registry.FORMER[what]])
def test_a_name_is_refused_with_what_to_do(what, old):
    expected = f"there is no {what} '{old}'; {registry.FORMER[what][old]}"
    if what == "command":
        assert sentence(old) == expected
    else:
        with pytest.raises(UsageError) as refused:
            registry.resolve(f"{what}s", old)
        assert str(refused.value) == expected
    assert re.search(rf"^\| .*`{old}`.* \|", CHANGES, re.MULTILINE), old


def test_the_command_line_refuses_an_old_ranker_and_parameter_before_it_reads_data():
    old = sentence("train", "compose", "--train", "none.txt")
    assert old == registry.unknown("ranker", "compose", [])
    assert sentence("train", "gbdt", "--train", "none.txt", "--set", "n_trees=5") == (
        "GBDT has no parameter 'n_trees'; it is called n_estimators here."
    )
