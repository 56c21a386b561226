"""The documentation site builds without a warning, and needs nothing from elsewhere."""

import os
import re
import subprocess
import sys
import tomllib

import pytest
from code_blocks import ROOT

from rankwright import registry

FETCHED = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"(https?:[^\"]*)\""
    r"|<link\b[^>]*\brel=\"(?:stylesheet|preload|preconnect)\"[^>]*\bhref=\"(https?:[^\"]*)\""
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_every_ranker_has_a_page_with_its_definition_and_parameters(site):
    for name in registry.RANKERS:
        text = (site / "algorithms" / f"{name}.html").read_text()
        for heading in ("when-to-use-it", "definition", "parameters"):
            assert f'<h2 id="{heading}' in text, (name, heading)


def test_measured_figures_stand_on_the_page_of_their_ranker(site):
    assert "DORM for NDCG@10" in (site / "algorithms/dorm.html").read_text()


def test_public_names_have_their_docstrings(site):
    text = (site / "api/public.html").read_text()
    for name in ("compare", "evaluate", "explain", "load", "load_model", "RankingData"):
        assert re.search(rf'id="rankwright\.[\w.]*\.{name}"', text), name


def test_no_page_fetches_anything_from_elsewhere(site):
    for page in site.rglob("*.html"):
        assert not FETCHED.findall(page.read_text()), page.name


def test_when_to_use_speaks_of_every_ranker_and_no_other():
    text = (ROOT / "docs/when-to-use.toml").read_text(encoding="utf-8")
    assert set(tomllib.loads(text)) == set(registry.RANKERS)
