"""The scripts of examples/ run as they stand, in an empty folder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))
FILES = {
    "first_ranker": {"products.csv", "ranker.rw"},
    "own_loss": set(),
    "compare_and_report": {"report.html"},
    "export_and_verify": {"exported-elasticsearch", "exported-vespa"},
    "learn_from_clicks": set(),
}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_writes_what_it_says(path, tmp_path):
    environment = {**os.environ, "RANKWRIGHT_THREADS": "1"}
    run = subprocess.run(
        [sys.executable, "-W", "error", path],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip()
    assert {file.name for file in tmp_path.iterdir()} == FILES[path.stem]
