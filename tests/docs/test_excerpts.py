"""The code of the pages on adding a part is in the file that the page names."""

import pytest
from code_blocks import ROOT, blocks


@pytest.mark.parametrize(
    ("page", "source"),
    [
        ("add-a-loss.md", "rankwright/losses/sigmoid_cross_entropy.py"),
        ("developer-guide.md", "rankwright/losses/squared.py"),
        ("developer-guide.md", "rankwright/losses/listnet.py"),
        ("developer-guide.md", "rankwright/losses/listmle.py"),
        ("add-a-metric.md", "rankwright/metrics/rbp.py"),
        ("add-an-export.md", "rankwright/export/json.py"),
    ],
)
def test_excerpts_equal_their_source(page, source):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    line = text[: text.index(f"`{source}`")].count("\n") + 1
    excerpts = [block for block in blocks(ROOT / "docs" / page) if block.line > line]
    assert excerpts[0].language in ("python", "py")
    assert excerpts[0].text in (ROOT / source).read_text(encoding="utf-8")


def test_every_step_of_adding_a_metric_is_an_excerpt():
    sources = [
        "rankwright/metrics/rbp.py",
        "rankwright/registry.py",
        "rankwright/metrics/__init__.pyi",
        "tests/reference/metrics.py",
        "tests/contract/test_metrics.py",
    ]
    texts = [(ROOT / source).read_text(encoding="utf-8") for source in sources]
    page = blocks(ROOT / "docs" / "add-a-metric.md")
    steps = [block.text for block in page if not block.text.startswith(("pytest", "rankwright "))]
    assert len(steps) == len(sources)
    for step, text in zip(steps, texts, strict=True):
        assert step in text
