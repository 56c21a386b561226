"""The page on the papers names every experiment."""

import re
from pathlib import Path

from reproducibility.experiment_file import names

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/papers.md").read_text(encoding="utf-8")


def test_every_experiment_is_named():
    assert [name for name in names() if not re.search(rf"[`=]{name}`", PAGE)] == []
