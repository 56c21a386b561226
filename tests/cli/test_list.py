"""``rankwright cite``: BibTeX on standard output."""

from command import run, run_json, sentence

import rankwright


def test_it_prints_bibtex_as_it_stands():
    assert run("cite", "intervalrank", alone=True).stdout == rankwright.cite("intervalrank") + "\n"
    assert run("cite").stdout == rankwright.cite() + "\n"


def test_json_has_the_keys():
    reported = run_json("cite", "listnet", "listmle")
    assert reported["keys"] == ["cao2007listnet", "xia2008listmle"]
    assert reported["bibtex"] == rankwright.cite("listnet", "listmle")


def test_a_wrong_name_is_a_sentence():
    assert "did you mean intervalrank" in sentence("cite", "intervalrnk")
