"""Length and seed of the tests that `make soak` runs, and their programs in other processes."""

import os
import secrets
import subprocess
import sys
from pathlib import Path

SECONDS = float(os.environ.get("RANKWRIGHT_SOAK_SECONDS", "45"))
"""Seconds for each test, after its preparation."""

SEED = int(os.environ.get("RANKWRIGHT_SOAK_SEED") or secrets.randbits(32))
"""Seed of the first round; a failing test shows the seed to run it with again."""

_TESTS = Path(__file__).resolve().parents[1]


def run_program(module, *arguments, **options):
    """Run a module of tests/fuzz as a program of its own; return it when it has ended."""
    folders = [_TESTS.parent, _TESTS, _TESTS / "fuzz", _TESTS / "serve"]
    path = os.pathsep.join([*map(str, folders), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-m", module, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=SECONDS + 900,
        check=False,
        **options,
    )
