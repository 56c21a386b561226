"""The public names are frozen, and cost nothing until they are used."""

import ast
import os
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

import rankwright
from rankwright import registry

HEAVY = {"numba", "sklearn", "lightgbm", "torch", "dask", "pandas", "scipy.optimize", "polars"}


FREE = {
    "Checkpoint",
    "Convention",
    "Iteration",
    "QueryFolds",
    "Ranking",
    "RankingData",
    "auto",
    "cite",
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
    "memory_limit",
    "metric",
    "ranker",
    "scorer",
    "synthetic",
    "train_valid_test_split",
    "tune",
}
SUBMODULES = {"data", "losses", "metrics", "models", "solvers", "testing"}


def test_the_public_names():
    assert set(rankwright.__all__) == {*registry.classes("rankers"), *FREE, *SUBMODULES}


def seen_by_static_tools(module):
    """Where each name of the TYPE_CHECKING block of a module comes from."""
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    (block,) = (
        node
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    for imported in block.body:
        for alias in imported.names:
            assert alias.asname == alias.name, f"{alias.name} is not exported again"
    return {alias.name: imported.module for imported in block.body for alias in imported.names}


@pytest.mark.parametrize("kind", ["rankers", "losses", "models", "solvers", "metrics"])
def test_static_tools_see_every_class_of_the_registry(kind):
    """A line of the registry needs its import in the TYPE_CHECKING block of the namespace."""
    namespace = rankwright if kind == "rankers" else import_module(f"rankwright.{kind}")
    lazy = getattr(namespace, "_MODULES", None) or namespace._PUBLIC
    assert registry.classes(kind).items() <= lazy.items()
    assert set(namespace.__all__) - SUBMODULES == set(lazy)
    expected = dict(lazy)
    if kind == "rankers":
        there = [name for name in SUBMODULES if find_spec(f"rankwright.{name}")]
        expected |= dict.fromkeys(there, "rankwright")
    assert seen_by_static_tools(namespace) == expected


@pytest.mark.parametrize("name", rankwright.__all__)
def test_every_public_name_is_there_and_documented(name):
    assert getattr(rankwright, name).__doc__


def test_a_name_that_is_not_there_raises():
    with pytest.raises(AttributeError, match="no attribute 'rnaker'"):
        rankwright.rnaker  # noqa: B018


def loaded_by(*arguments):
    run = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "100"},
    )
    return {line.rpartition("|")[2].strip() for line in run.stderr.splitlines()}


@pytest.mark.parametrize("arguments", [("-c", "import rankwright"), ("-m", "rankwright", "--help")])
def test_start_up_loads_none_of_the_heavy_packages(arguments):
    assert loaded_by(*arguments) & HEAVY == set()
