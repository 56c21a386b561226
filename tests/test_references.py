"""Every paper cited in the code is in rankwright/references.bib."""

import re
from pathlib import Path

import rankwright

ROOT = Path(rankwright.__file__).parent
BIB = ROOT / "references.bib"
CITED = re.compile(r"[`\[](?!mq)([a-z]+\d{4}[a-z]*)[`\]]")


def test_every_citation_has_an_entry():
    known = set(re.findall(r"@\w+\{(\w+),", BIB.read_text(encoding="utf-8")))
    cited = {
        key: path.relative_to(ROOT).as_posix()
        for path in ROOT.rglob("*.py")
        for key in CITED.findall(path.read_text(encoding="utf-8"))
    }
    assert {key: file for key, file in cited.items() if key not in known} == {}
    assert len(cited) > 10
