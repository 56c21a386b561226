"""Building blocks of kernels: functions of one number, hashes and copies."""

from __future__ import annotations

import math

import numpy as np

from rankwright.core.jit import inline_kernel, kernel


@kernel
def query_seed(random_key, q):
    """Return a hash of q and ``random_key``: seed, iteration and number of the first query."""
    iteration = hash_step(hash_step(np.uint64(0), random_key[0]), random_key[1])
    return hash_step(iteration, np.uint64(q) + random_key[2])


# --- functions of one number -----------------------------------------------------------------
#
# They are exact when the textbook formula overflows or cancels.


_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_SHIFT_1, _SHIFT_2, _SHIFT_3 = np.uint64(30), np.uint64(27), np.uint64(31)
_TOP_53 = np.uint64(11)


@kernel
def log1p_exp(x):
    """Return log(1 + exp(x)), for any x."""
    return x + math.log1p(math.exp(-x)) if x > 0.0 else math.log1p(math.exp(x))


@kernel
def twice_artanh(u):
    """Return 2 artanh(u) for u in [0, 1/3], to 3e-15 relative.

    The polynomial is 2 artanh(u) / u in u^2, interpolated at the nine Chebyshev nodes of [0, 1/9].
    """
    x = u * u
    p = 0.18758019601047687
    p = p * x + 0.11744977819559474
    p = p * x + 0.1557070720148144
    p = p * x + 0.18169333991893807
    p = p * x + 0.22222709754719172
    p = p * x + 0.2857141793475505
    p = p * x + 0.4000000011581452
    p = p * x + 0.6666666666618257
    p = p * x + 2.000000000000003
    return u * p


@kernel
def sigmoid(x):
    """Return 1 / (1 + exp(-x)), to full relative precision at both ends."""
    if x >= 0.0:
        return 1.0 / (1.0 + math.exp(-x))
    e = math.exp(x)
    return e / (1.0 + e)


@kernel
def hash_step(state, word):
    """Return the next state (uint64) of a hash that takes in ``word``: SplitMix64's mixer."""
    z = (state ^ np.uint64(word)) + _GOLDEN
    z = (z ^ (z >> _SHIFT_1)) * _MIX_1
    z = (z ^ (z >> _SHIFT_2)) * _MIX_2
    return z ^ (z >> _SHIFT_3)


@inline_kernel
def hash_uniform(state):
    """Return a number in [0, 1) from the 53 upper bits of a hash."""
    return np.float64(state >> _TOP_53) * 2.0**-53


# --- copies ----------------------------------------------------------------------------------
#
# For ``target[:n] = source`` Numba compiles the error message for different shapes, which takes two
# seconds. These copies check nothing: ``target`` must be long enough.


@kernel
def copy_values(source, target):
    """Copy ``source`` to the first places of ``target``."""
    for i in range(len(source)):
        target[i] = source[i]


@kernel
def take(source, places, target):
    """Copy ``source[places]`` to the first places of ``target``."""
    for i in range(len(places)):
        target[i] = source[places[i]]
