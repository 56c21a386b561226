"""The page on the papers names every experiment, and no file that is not there."""

import re
from pathlib import Path

from reproducibility.experiment_file import names

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/papers.md").read_text(encoding="utf-8")


def test_every_experiment_is_named():
    assert [name for name in names() if not re.search(rf"[`=]{name}`", PAGE)] == []


def test_every_file_that_is_named_is_there():
    paths = re.findall(r"`((?:rankwright|reproducibility|tests)/[\w/.]*)`", PAGE)
    assert len(paths) > 30
    assert [path for path in paths if not (ROOT / path).exists()] == []
