"""A GPU for tests: a real one, or Numba's simulator on the CPU. Import it before any other part."""

import numpy as np
import pytest
from numba import config

torch = pytest.importorskip("torch")  # make test-lowest installs only the core's dependencies
if not torch.cuda.is_available():
    config.ENABLE_CUDASIM = 1  # read once, when numba.cuda is imported

from rankwright.core import cuda  # noqa: E402

DEVICE = "cpu" if cuda.SIMULATED else "cuda"


def tensor(array):
    """Return numbers as a tensor on the GPU."""
    return torch.tensor(np.asarray(array, np.float64), device=DEVICE)


def small_teams(monkeypatch):
    """Let threads of the simulator be few: it has a thread of Python for each."""
    if cuda.SIMULATED:
        monkeypatch.setattr(cuda, "TEAMS", ((0, 2), (6, 4)))
