"""The examples of docstrings run as they stand, and every public name has one."""

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


def _names():
    public = [name for name in rankwright.__all__ if inspect.ismodule(getattr(rankwright, name))]
    for module in ("rankwright", *(f"rankwright.{short}" for short in public)):
        for name in import_module(module).__all__:
            found = getattr(import_module(module), name)
            if inspect.isclass(found) or inspect.isroutine(found):
                yield f"{module}.{name}"


@each("name", list(_names()))
def test_every_public_name_has_an_example(name):
    module, _, own = name.rpartition(".")
    found = inspect.getdoc(getattr(import_module(module), own))
    assert "Examples\n--------\n>>> " in found, name
