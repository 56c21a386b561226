"""BibTeX of every part that comes from a paper, from the file that the wheel has."""

import re
from pathlib import Path

import pytest
from cases import each

import rankwright as rw
from rankwright import registry
from rankwright.citation import keys_of_part, keys_of_parts, references
from rankwright.errors import UsageError

ROOT = Path(__file__).parents[1]
OF_NO_PAPER = {"ranker", "linear_regression"}


@pytest.mark.parametrize("kind", ["rankers", "losses"])
def test_every_ranker_and_loss_of_a_paper_has_an_entry(kind):
    without = {name for name in registry.KINDS[kind] if not keys_of_part(kind, name)}
    assert without <= OF_NO_PAPER


@each(
    ("name", "keys"),
    [
        ("intervalrank", ["moon2010intervalrank"]),
        ("interval", ["moon2010intervalrank"]),
        ("lambdamart", ["burges2010overview"]),
        ("mart", ["friedman2001gbdt"]),
        ("gbrank", ["zheng2007gbrank", "moon2010intervalrank"]),
        ("retarget", ["acharyya2014memr"]),
        ("pair_hinge", ["joachims2002ranksvm", "cao2006irsvm"]),
        ("neural_ndcg", ["pobrotyn2021neuralndcg", "grover2019neuralsort"]),
        ("err@10", ["chapelle2009err"]),
        ("adam", ["kingma2015adam"]),
        ("taylor2008softrank", ["taylor2008softrank"]),
        (rw.ListNet(), ["cao2007listnet"]),
        (rw.losses.ListNet(), ["cao2007listnet"]),
        (rw.Ranker(loss=rw.losses.XENDCG(), model="trees"), ["bruch2021xendcg"]),
    ],
)
def test_the_papers_are_those_of_the_algorithm(name, keys):
    found = re.findall(r"^@\w+\{(\w+),", rw.cite(name), re.MULTILINE)
    assert set(keys) <= set(found)
    assert set(found) - set(keys) <= {"loshchilov2019adamw"}


def test_every_entry_of_the_file_is_found_and_closes_its_braces():
    text = (ROOT / "rankwright/references.bib").read_text(encoding="utf-8")
    assert list(references()) == re.findall(r"^@\w+\{(\w+),", text, re.MULTILINE)
    for key, entry in references().items():
        assert entry.count("{") == entry.count("}"), key
        for field in ("author", "title", "year"):
            assert re.search(rf"\b{field}\s*= \{{", entry), (key, field)


def test_several_names_give_each_entry_once():
    assert rw.cite("mr", "memr") == references()["acharyya2014memr"]
    assert rw.cite("listnet", "listmle").count("@inproceedings") == 2


def test_rankwright_itself_is_cited_as_the_citation_file_says():
    reported = dict(
        re.findall(r'^(\w+): "?(.*?)"?$', (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    )
    entry = rw.cite()
    assert f"version = {{{reported['version']}}}" in entry
    assert entry.replace("{", "").replace("}", "").count(reported["title"]) == 1
    assert "The Rankwright developers" in entry
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"\n## {reported['version']} (" in changes


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("intervalrnk", "no part of Rankwright called 'intervalrnk'; did you mean intervalrank"),
        ("linear_regression", "comes from no one paper; cite Rankwright itself"),
        (3, "int is not known to come from a paper"),
    ],
)
def test_what_has_no_paper_is_reported_in_a_sentence(name, sentence):
    with pytest.raises(UsageError, match=sentence):
        rw.cite(name)


def test_parts_of_a_ranker_are_cited_by_name_or_object_each_paper_once():
    of_loss, of_solver = keys_of_part("losses", "listnet"), keys_of_part("solvers", "lbfgs")
    assert of_loss
    expected = list(dict.fromkeys([*of_loss, *of_solver]))
    assert keys_of_parts("listnet", "no such model", "lbfgs") == expected
    assert keys_of_parts(rw.losses.ListNet(), None, rw.solvers.LBFGS()) == expected
    assert keys_of_parts(None, None, None) == []
