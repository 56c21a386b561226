"""The example on the page of each algorithm runs; here on less data than the page has."""

import sys

import pytest
from code_blocks import ROOT

from rankwright import registry


@pytest.fixture(scope="module")
def example():
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        from site_pages import example
    finally:
        sys.path.remove(str(ROOT / "tools"))
    return example


@pytest.mark.parametrize("name", sorted(registry.RANKERS))
def test_the_example_prints_an_evaluation(name, example, capsys, monkeypatch):
    monkeypatch.setenv("RANKWRIGHT_THREADS", "1")
    code = example(name).replace("queries=20, documents=40", "queries=8, documents=12")
    exec(compile(code, f"<example of {name}>", "exec"), {})  # noqa: S102
    assert "ndcg@10" in capsys.readouterr().out
