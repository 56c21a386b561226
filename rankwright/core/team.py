"""What a kernel says so that a team of threads can share a query on a GPU, from the same source.

On the CPU one thread works through its queries alone. On a GPU (`rankwright.core.cuda`) there are
more threads than queries, and a kernel that is written for it gives each query to a team:

- ``for i in shared_range(lo, hi)``: each member takes its part, and i is always the same member's;
- ``owns(i)``: whether i is this member's; ``member()``: its number, of ``members()``;
- ``team_sum(x)``, ``team_sums(x, y)``, ``team_max(x)``: over all members, known to all of them;
- ``wait()``: until all are here, before members read what others have written.

All else is done by each member, which is right where the same is written twice and wrong for
``+=``: that belongs into shared ranges. All members go the same way, so every ``if`` around a
``wait`` or a ``team_sum`` asks for what is the same for all.

On the CPU a team has one member: `shared_range` is ``range``, and the others cost nothing.

A kernel for a GPU cannot allocate memory. It takes ``scratch`` and gets its work arrays from
`new_floats` and `new_table`: new arrays for the longest of its queries on the CPU, and on a GPU a
part of the `Scratch` for each query. A loss whose kernels allocate is computed on the CPU.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwright.core.jit import inline_kernel
from rankwright.core.types import F64, I64

shared_range = range


class Lanes(int):
    """A constant that is a multiple of `LANES`; of the members of the team on a GPU."""


LANES = Lanes(8)  # numbers that a core of the CPU computes at once


class Scratch(NamedTuple):
    """Arrays for the kernels of a launch: query q has ``floats[begin[q] - first:]``."""

    floats: F64
    begin: I64
    first: int


# --- kernels ---------------------------------------------------------------------------------


@inline_kernel
def owns(i):
    """Whether the index i is this member's."""
    return i == i


@inline_kernel
def member():
    """Return the number of this member of the team, from 0."""
    return 0


@inline_kernel
def members():
    """Return how many members a team has."""
    return 1


@inline_kernel
def once(x):
    """Return x for one member and 0 for the others: what all know already, in a `team_sum`."""
    return x


@inline_kernel
def team_sum(x):
    """Return the sum over all members."""
    return x


@inline_kernel
def team_sums(x, y):
    """Return two sums at once."""
    return x, y


@inline_kernel
def team_max(x):
    """Return the largest of all members."""
    return x


@inline_kernel
def wait():
    """Wait until all members are here."""


@inline_kernel
def new_floats(scratch, lo, begin, size):  # noqa: ARG001
    """Return room for ``size`` numbers: on a GPU from ``begin`` on in the part of query lo."""
    return np.empty(size)


@inline_kernel
def new_table(scratch, lo, begin, rows, columns):  # noqa: ARG001
    """As `new_floats`, for rows of numbers."""
    return np.empty((rows, columns))


@inline_kernel
def own_table(room, begin, rows, columns, workers, worker):  # noqa: ARG001
    """Return rows of numbers of one of several workers, from its own number ``begin`` on.

    On a GPU the numbers of all workers take turns in ``room``: threads then read side by side.
    """
    return room[begin : begin + rows * columns].reshape((rows, columns))


@inline_kernel
def zero(array):
    """Write zeros."""
    for i in shared_range(0, len(array)):
        array[i] = 0.0
    wait()
