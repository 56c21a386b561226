"""The lowest versions that a CI job installs are the bounds of pyproject.toml."""

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def lowest(*extras):
    script = ROOT / "tools" / "lowest_versions.py"
    done = subprocess.run([sys.executable, script, *extras], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_every_dependency_has_one_lower_bound_that_is_pinned():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert lowest() == [one.replace(">=", "==") for one in project["dependencies"]]
    assert "pyarrow==17" in lowest("parquet")
