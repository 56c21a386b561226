"""A damaged model file of any family is refused in a sentence, or ranks, explains and is exported.

Every part of a file is changed in turn and sealed again, in a child process: kernels check no
bounds, and a number that one of them follows would end it.
"""

import sys

import pytest
from soak import run_program

from rankwright import registry


@pytest.mark.skipif(sys.platform == "win32", reason="the timer is a signal")
def test_damaged_model_files_are_refused_or_used(tmp_path):
    child = run_program("every_damage", tmp_path)
    last = (tmp_path / "last").read_text() if (tmp_path / "last").exists() else "the first file"
    assert child.returncode == 0, f"{last}: {child.stderr[-2000:]}"
    *families, count = child.stdout.split()
    assert set(registry.MODELS) <= set(families)
    assert int(count) > 80 * len(registry.MODELS)
