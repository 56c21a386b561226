"""A damaged model file of any family is refused in a sentence, or ranks, explains and is exported.

Every part of a file is changed in turn and sealed again (`fuzz/attack_models.py`), in a child
process: kernels check no bounds, and a number that one of them follows would end it.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from rankwright import registry

ROOT = Path(__file__).resolve().parents[2]
CHILD = """
import functools, signal, sys, warnings
from pathlib import Path

import attack_models
from rankwright import registry
from rankwright.errors import RankwrightError
from rankwright.persist import model_file

model_file.version = functools.cache(model_file.version)  # of libraries, read at each save
warnings.simplefilter("ignore")
folder = Path(sys.argv[1])
paths = attack_models.write(folder)
count, exports = 0, list(registry.EXPORTS)
for path in paths:
    attack_models.use(path)  # which compiles kernels
    receipts = path.stem in ("linear", "trees")
    for label in attack_models.every_damage(path, folder / "damaged.rw", receipts=receipts):
        Path(folder, "last").write_text(f"{path.stem}: {label}")
        signal.setitimer(signal.ITIMER_PROF, 5.0)  # CPU time, after which the process is killed
        try:
            attack_models.use(folder / "damaged.rw", [exports[count % len(exports)]])
        except RankwrightError:
            pass
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        count += 1
print(*sorted(path.stem for path in paths), count)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="the timer is a signal")
def test_damaged_model_files_are_refused_or_used(tmp_path):
    pytest.importorskip("torch")  # make test-lowest has the core's dependencies alone
    sys_path = "import sys; sys.path[:0] = sys.argv.pop().split(':')\n"
    folders = f"{ROOT / 'fuzz'}:{ROOT / 'tests'}:{ROOT}"
    command = [sys.executable, "-c", sys_path + CHILD, str(tmp_path), folders]
    child = subprocess.run(command, capture_output=True, text=True, check=False)
    last = (tmp_path / "last").read_text() if (tmp_path / "last").exists() else "the first file"
    assert child.returncode == 0, f"{last}: {child.stderr[-2000:]}"
    *families, count = child.stdout.split()
    assert set(registry.MODELS) <= set(families)
    assert int(count) > 80 * len(registry.MODELS)
