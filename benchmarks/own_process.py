"""First and busy fits, each in a Python process of its own: `python -c` of a few lines.

What is measured lies outside a fit (imports, compiling, threads of libraries that are loaded once),
so a contender is a text of Python that is run anew each time, as its users would write it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rankwright import synthetic
from rankwright.data.files import save

LIMIT = 60.0  # seconds, after which a process is ended: fits take about one on a quiet machine
_CHOICES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME", "RANKWRIGHT_COMPILE")


@dataclass(frozen=True)
class Fit:
    """Lines that import a tool and make ``fit``, a call; ``X``, ``y`` and ``sizes`` are there."""

    peer: str
    package: str
    settings: str
    lines: str


def write_data(folder: Path, shape: str, queries: int, rows: int) -> Path:
    """Write a data set as LETOR text and as arrays; return the text's path."""
    data = synthetic(shape, queries=queries)
    whole = int(np.searchsorted(data.indptr, rows, side="right")) - 1
    data = data.select(np.arange(max(1, whole)))
    np.savez(folder / "data.npz", X=data.X, y=data.y, sizes=data.sizes)
    save(data, folder / "data.txt")
    return folder / "data.txt"


def run_python(code: str, folder: Path, settings: Mapping[str, str]) -> tuple[float, str]:
    """Run ``code`` in ``folder``; return the seconds of the whole process, and what it printed."""
    environment = {k: v for k, v in os.environ.items() if k not in _CHOICES}
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**environment, **settings},
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    seconds = time.perf_counter() - began
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return seconds, done.stdout


@contextmanager
def load(processes: int) -> Iterator[None]:
    """Keep so many processes busy."""
    code = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"
    spinning = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()
