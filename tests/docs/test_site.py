"""The documentation site builds without a warning and has a page for each ranker and name."""

import re
import subprocess
import sys
import tomllib

import pytest
from code_blocks import ROOT

import rankwright
from rankwright import registry

SUBMODULES = {"clicks", "data", "losses", "metrics", "models", "solvers", "testing"}
FETCHED = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"(https?:[^\"]*)\""
    r"|<link\b[^>]*\brel=\"(?:stylesheet|preload|preconnect)\"[^>]*\bhref=\"(https?:[^\"]*)\""
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("docs") / "site"
    build = [sys.executable, ROOT / "tools/build_site.py", folder]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_the_site_has_a_page_for_each_ranker_and_public_name_and_fetches_nothing(site):
    for name in registry.RANKERS:
        text = (site / "algorithms" / f"{name}.html").read_text(encoding="utf-8")
        assert '<div class="math-block"><math' in text, name
        assert "<merror" not in text, name
    pages = {page: page.read_text(encoding="utf-8") for page in site.rglob("*.html")}
    assert [page for page, text in pages.items() if FETCHED.search(text)] == []
    anchors = re.findall(r'<dt class="sig[^>]*\bid="(rankwright[\w.]*)"', "".join(pages.values()))
    assert len(anchors) == len(set(anchors))
    assert {f"rankwright.{name}" for name in rankwright.__all__ if name not in SUBMODULES} <= set(
        anchors
    )


def test_when_to_use_and_equations_are_there_for_every_ranker_and_no_other():
    text = (ROOT / "docs/when-to-use.toml").read_text(encoding="utf-8")
    assert set(tomllib.loads(text)) == set(registry.RANKERS)
    needed = {"losses": set(), "models": set()}
    for name in registry.RANKERS:
        ranker = registry.resolve("rankers", name)
        if ranker.loss_class:
            needed["losses"].add(ranker.loss_class)
        else:
            needed["models"].add(ranker().model_name)
    text = (ROOT / "docs/equations.toml").read_text(encoding="utf-8")
    assert {kind: set(parts) for kind, parts in tomllib.loads(text).items()} == needed
