"""A kernel for teams gives the same with one member, on the CPU, and with several, on a GPU."""

import numpy as np
import pytest
from simulated_gpu import cuda, tensor, torch

from rankwright.core.jit import kernel
from rankwright.core.team import (
    members,
    once,
    owns,
    shared_range,
    team_max,
    team_sum,
    team_sums,
    wait,
)

TEAM = 4 if cuda.SIMULATED else 64


@kernel
def _share(queries, x, found, taken):
    """Compute the sum, the maximum, two sums at once, and a value that is added once."""
    total, high = 0.0, -np.inf
    for i in shared_range(0, len(x)):
        total += x[i]
        high = max(high, x[i]) if x[i] == x[i] else x[i]
        taken[i] += 1.0
        if not owns(i):
            taken[i] += 100.0
    wait()
    found[0], found[1] = team_sum(total), team_max(high)
    twice, half = team_sums(2.0 * total, 0.5 * total)
    found[2], found[3] = twice, half
    found[4] = team_sum(once(7.0))
    found[5] = members()


def _shared(x, team):
    found, taken = tensor(np.zeros(6)), tensor(np.zeros(len(x)))
    memory = cuda.DeviceMemory(torch)
    args = tuple(cuda.view(array) for array in (tensor(x), found, taken))
    queries = memory.copy(np.zeros(1, np.int64))
    cuda.launch(_share, cuda.view(queries), args, team=team)
    return found.cpu().numpy(), taken.cpu().numpy()


def test_on_the_cpu_a_team_has_one_member():
    x, found, taken = np.arange(1.0, 12.0), np.zeros(6), np.zeros(11)
    _share(np.zeros(1, np.int64), x, found, taken)
    assert found.tolist() == [66.0, 11.0, 132.0, 33.0, 7.0, 1.0]
    assert taken.tolist() == [1.0] * 11
    assert shared_range is range


@pytest.mark.parametrize("team", [1, TEAM])
def test_on_a_gpu_each_index_is_one_members_and_all_know_the_sums(team):
    found, taken = _shared(np.arange(1.0, 12.0), team)
    assert found.tolist() == [66.0, 11.0, 132.0, 33.0, 7.0, team]
    assert taken.tolist() == [1.0] * 11


def test_the_largest_is_nan_where_a_member_has_nan():
    x = np.arange(1.0, 12.0)
    x[9] = np.nan
    found, _ = _shared(x, TEAM)
    assert np.isnan(found[:4]).all()
