"""Functions by which the threads of a GPU share a query, in the source of the CPU's kernels.

On the CPU one thread computes a query. A GPU (`rankwright.core.cuda`) has more threads than there
are queries, so a kernel that uses these functions gives each query to a team of threads:

- ``for i in shared_range(lo, hi)`` divides the indices among the members; an index always belongs
  to the same member;
- ``owns(i)`` tests whether an index is this member's; ``members()`` is the size of the team;
- ``team_sum(x)``, ``team_sums(x, y)`` and ``team_max(x)`` combine the values of all members, and
  every member gets the result; ``once(x)`` lets one member contribute a value that all have;
- ``wait()`` waits for all members, before they read what others have written.

Everything else is computed by every member. That is correct for assignments, but not for ``+=`` to
an array, which belongs in a shared range. All members must take the same branches around ``wait``
and the ``team_`` functions, so the conditions must not depend on the member.

On the CPU a team has one member, `shared_range` is ``range``, and the other functions cost nothing.
"""

from __future__ import annotations

from rankwright.core.jit import inline_kernel

shared_range = range


# --- kernels ---------------------------------------------------------------------------------


@inline_kernel
def owns(i):
    """Return whether the index i is this member's."""
    return i == i


@inline_kernel
def members():
    """Return the number of members of the team."""
    return 1


@inline_kernel
def once(x):
    """Return x for one member and 0 for the others."""
    return x


@inline_kernel
def team_sum(x):
    """Return the sum over all members."""
    return x


@inline_kernel
def team_sums(x, y):
    """Return two sums over all members."""
    return x, y


@inline_kernel
def team_max(x):
    """Return the maximum over all members."""
    return x


@inline_kernel
def wait():
    """Wait for all members."""
