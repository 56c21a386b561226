"""The examples of docstrings run as they stand, and every name of the package itself has one."""

import doctest
import inspect
from importlib import import_module

import pytest
from cases import each
from code_blocks import ROOT

import rankwright

RULES = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in (ROOT / "rankwright").rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_print_what_they_show(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RANKWRIGHT_THREADS", "1")
    module, said = import_module(name), []
    runner = doctest.DocTestRunner(optionflags=RULES)
    tests = doctest.DocTestFinder(recurse=True, exclude_empty=True).find(module)
    for test in tests:
        runner.run(test, out=said.append)
    assert any(test.examples for test in tests)
    assert not runner.failures, "".join(said)


@each("name", [name for name in rankwright.__all__ if name not in rankwright._SUBMODULES])
def test_every_name_of_the_package_has_an_example(name):
    found = inspect.getdoc(getattr(rankwright, name))
    assert "Examples\n--------\n>>> " in found, name
