"""`rankwright.metrics` as users import from it."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from rankwright import metrics, registry


def test_every_metric_is_there_under_its_class_name():
    for name, kind in registry.all_of("metrics").items():
        assert getattr(metrics, kind.__name__) is kind, name
        assert kind.__name__ in metrics.__all__
    assert {"evaluate", "from_function", "metric", "Convention", "CONVENTIONS"} < {*metrics.__all__}


@pytest.mark.parametrize("name", metrics.__all__)
def test_names_are_what_they_say_in_whatever_order_they_are_imported(name):
    found = getattr(metrics, name)
    assert not inspect.ismodule(found)
    assert getattr(found, "__name__", name) == name
    if callable(found):
        assert found.__doc__


def test_a_metric_may_be_built_by_its_class():
    assert metrics.NDCG(k=10) == metrics.metric("ndcg@10")
    found = metrics.evaluate([1, 0], [0.2, 0.1], [metrics.Precision(k=1)], group_sizes=[2])
    assert found["p@1"] == 1


def test_static_tools_see_the_same_names():
    tree = ast.parse(Path(metrics.__file__).read_text())
    (seen,) = [node for node in tree.body if isinstance(node, ast.If)]
    static = {alias.asname: node.module for node in seen.body for alias in node.names}
    assert static == metrics._PUBLIC


def test_a_wrong_name_is_answered_with_the_nearest():
    with pytest.raises(AttributeError, match=r"has no attribute 'NCDG'; .*did you mean NDCG"):
        metrics.NCDG  # noqa: B018
    assert "NDCG" in dir(metrics)


def test_importing_the_namespace_loads_nothing_heavy():
    code = "import sys, rankwright.metrics; print(*{'numba', 'numpy', 'sklearn'} & {*sys.modules})"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []


@pytest.mark.parametrize("first", ["rankwright.metrics.evaluation", "rankwright.rankers.base"])
def test_evaluate_is_the_function_whatever_was_imported_before(first):
    code = f"import {first}; from rankwright.metrics import evaluate; print(evaluate.__name__)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["evaluate"]
