"""Copies inside kernels, compiled at once.

An array that is assigned to a slice, ``target[:n] = source``, makes Numba compile the sentence
that it would say of shapes that do not fit, which takes two seconds in every first fit. Here
nothing is checked: ``target`` must have room.
"""

from __future__ import annotations

from rankwright.core.jit import kernel


@kernel
def copy_values(source, target):  # type: ignore[no-untyped-def]
    """Copy ``source`` to the first places of ``target``."""
    for i in range(len(source)):
        target[i] = source[i]


@kernel
def take(source, places, target):  # type: ignore[no-untyped-def]
    """Copy ``source[places]`` to the first places of ``target``."""
    for i in range(len(places)):
        target[i] = source[places[i]]
