"""Papers: every ranker and loss cites its own, and references.bib has an entry for each."""

import re
import sys
from pathlib import Path

import pytest

import rankwright
from rankwright import registry

ROOT = Path(__file__).parents[1]
OF_NO_PAPER = {"ranker", "linear_regression", "squared"}
BIBLIOGRAPHY = (ROOT / "rankwright/references.bib").read_text(encoding="utf-8")
KEYS = set(re.findall(r"^@\w+\{(\w+),", BIBLIOGRAPHY, re.MULTILINE))


def cited(part):
    text = f"{part.__doc__}{sys.modules[part.__module__].__doc__}"
    return set(re.findall(r"[`\[]([a-z]+\d{4}[a-z]*)[`\]]", text)) & KEYS


@pytest.mark.parametrize("name", sorted({*registry.RANKERS, *registry.LOSSES} - OF_NO_PAPER))
def test_every_ranker_and_loss_cites_its_papers(name):
    kinds = [kind for kind in ("rankers", "losses") if name in registry.KINDS[kind]]
    assert any(cited(registry.resolve(kind, name)) for kind in kinds)


def test_every_entry_has_an_author_a_title_and_a_year():
    for entry in re.split(r"\n(?=@)", BIBLIOGRAPHY.strip()):
        assert entry.count("{") == entry.count("}"), entry
        for field in ("author", "title", "year"):
            assert re.search(rf"\b{field}\s*= \{{", entry), (field, entry)


def test_the_citation_file_and_the_changelog_have_this_version():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    version = re.search(r'^version: "?(.*?)"?$', citation, re.MULTILINE)[1]
    assert version == rankwright.__version__
    assert f"\n## {version}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
