"""`rankwright.losses`, `.data`, `.testing` ...: what a reader imports, typed and on first use."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import rankwright as rw
from rankwright import registry

NAMESPACES = ["data", "losses", "metrics", "models", "solvers", "testing"]


@pytest.mark.parametrize("name", NAMESPACES)
def test_every_name_is_there_and_documented(name):
    module = getattr(rw, name)
    assert module is import_module(f"rankwright.{name}")
    for public in module.__all__:
        assert getattr(module, public).__doc__, public
        assert public in dir(module)
    with pytest.raises(AttributeError, match=f"module 'rankwright.{name}' has no attribute 'no_"):
        module.no_such_name  # noqa: B018


@pytest.mark.parametrize("name", NAMESPACES)
def test_static_tools_see_the_same_names(name):
    """Those in the block for type checkers are those that load on first use, from one place."""
    module = getattr(rw, name)
    seen = {}
    for node in ast.walk(ast.parse(Path(module.__file__).read_text())):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("rankwright."):
            seen.update({one.asname: node.module for one in node.names if one.asname})
    assert set(seen) == set(module.__all__)
    for public, origin in seen.items():
        assert getattr(import_module(origin), public) is getattr(module, public)


@pytest.mark.parametrize("kind", ["losses", "metrics", "models", "solvers"])
def test_every_registered_class_is_in_its_namespace(kind):
    assert registry.classes(kind).keys() <= set(getattr(rw, kind).__all__)


def test_a_name_is_the_same_whatever_was_imported_before():
    """No submodule of `rankwright.data` hides a function of its name."""
    script = (
        "import rankwright.data.synthetic_data, rankwright.data.split, rankwright.data.files;"
        "from rankwright.data import load, synthetic, train_valid_test_split as split;"
        "assert callable(load) and callable(synthetic) and callable(split)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_the_namespaces_load_nothing_heavy():
    script = (
        "import sys, rankwright.data, rankwright.losses, rankwright.models, rankwright.solvers,"
        "rankwright.metrics, rankwright.testing;"
        "assert not {'numpy', 'numba', 'sklearn', 'importlib.metadata'} & {*sys.modules}"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
