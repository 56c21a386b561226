"""The examples in docstrings do what they show."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import rankwright

ROOT = Path(rankwright.__file__).parent
MODULES = [
    ".".join(("rankwright", *path.relative_to(ROOT).with_suffix("").parts))
    for path in sorted(ROOT.rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("module", MODULES)
def test_the_examples_of_a_module_do_what_they_show(module):
    found = doctest.testmod(import_module(module))
    assert found.attempted > 0
    assert found.failed == 0
