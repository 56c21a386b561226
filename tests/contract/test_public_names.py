"""The public names are frozen, documented, and cost nothing until they are used."""

import ast
import inspect
import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from cases import each

import rankwright
from rankwright import metrics, registry

HEAVY = {"numba", "sklearn", "lightgbm", "torch", "dask", "pandas", "scipy.optimize", "polars"}
FREE = {
    "Checkpoint",
    "Convention",
    "Iteration",
    "QueryFolds",
    "Ranking",
    "RankingData",
    "Recommendations",
    "auto",
    "compare",
    "cross_validate",
    "evaluate",
    "evaluate_run",
    "explain",
    "import_model",
    "importance",
    "joint_convexity",
    "load",
    "load_model",
    "loss",
    "metric",
    "out_of_fold",
    "ranker",
    "scorer",
    "synthetic",
    "train_valid_test_split",
    "tune",
}
SUBMODULES = {"clicks", "data", "losses", "metrics", "models", "solvers", "testing"}


def classes(kind):
    return {path.partition(":")[2] for path in registry.KINDS[kind].values()}


def test_the_public_names():
    assert set(rankwright.__all__) == {*classes("rankers"), *FREE, *SUBMODULES}


@each("name", ["", *(f".{name}" for name in sorted(SUBMODULES))])
def test_every_name_is_there_and_documented(name):
    module = import_module(f"rankwright{name}")
    for public in module.__all__:
        found = getattr(module, public)
        assert found.__doc__, public
        assert public in dir(module)
        assert inspect.ismodule(found) == (public in SUBMODULES and not name), public
    with pytest.raises(AttributeError, match=f"module 'rankwright{name}' has no attribute 'no_s"):
        module.no_such_name  # noqa: B018


@each("path", sorted(Path(rankwright.__file__).parent.rglob("*.pyi")))
def test_type_checkers_see_the_public_names_in_the_stub(path):
    package = ".".join(path.relative_to(Path(rankwright.__file__).parents[1]).parent.parts)
    tree = ast.parse(path.read_text("utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    names = [alias.asname for node in imports for alias in node.names]  # without "as": private
    assert sorted(names) == import_module(package).__all__


@each("kind", ["losses", "metrics", "models", "solvers"])
def test_every_registered_class_is_in_its_namespace(kind):
    namespace = getattr(rankwright, kind)
    assert classes(kind) <= set(namespace.__all__)
    for cls in registry.all_of(kind).values():
        assert getattr(namespace, cls.__name__) is cls


def test_a_wrong_name_is_answered_with_the_nearest():
    with pytest.raises(AttributeError, match=r"has no attribute 'NCDG'; did you mean NDCG\?"):
        metrics.NCDG  # noqa: B018
    with pytest.raises(AttributeError, match=r"'lambdamart'; did you mean LambdaMART\?"):
        rankwright.lambdamart  # noqa: B018


def test_a_metric_may_be_built_by_its_class():
    assert metrics.NDCG(k=10) == metrics.metric("ndcg@10")
    found = metrics.evaluate([1, 0], [0.2, 0.1], [metrics.Precision(k=1)], group_sizes=[2])
    assert found["p@1"] == 1


def test_a_name_is_the_same_whatever_was_imported_before():
    """No submodule hides a function of its name."""
    script = (
        "import rankwright.data.synthetic_data, rankwright.data.split, rankwright.data.files;"
        "import rankwright.metrics.evaluation, rankwright.rankers.base;"
        "import rankwright.clicks.debiasing;"
        "from rankwright.clicks import debias;"
        "from rankwright.data import load, synthetic, train_valid_test_split as split;"
        "from rankwright.metrics import evaluate;"
        "print(*(f.__name__ for f in (load, synthetic, split, evaluate, debias)))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.split() == [
        *("load", "synthetic", "train_valid_test_split", "evaluate", "debias")
    ]


def test_the_namespaces_load_nothing_heavy():
    names = ", ".join(f"rankwright.{name}" for name in sorted(SUBMODULES))
    script = f"import json, sys, {names}; print(json.dumps([*sys.modules]))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert {*HEAVY, "numpy", "importlib.metadata"} & {*json.loads(run.stdout)} == set()


def test_help_loads_none_of_the_heavy_packages():
    run = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "rankwright", "--help"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "100"},
    )
    loaded = {line.rpartition("|")[2].strip() for line in run.stderr.splitlines()}
    assert "rankwright.cli.main" in loaded
    assert loaded & HEAVY == set()
