"""The nearest sequence that never falls: isotonic regression by pooling adjacent violators.

    min over x_lo <= … <= x_{hi-1} of  sum_k w_k/2 (x_k - y_k)^2,    w_k > 0                  (1)

Neighbours in the wrong order are replaced by their weighted mean until none is left, in one pass.
"""

from __future__ import annotations

from rankwright.core.jit import kernel

# --- kernels ---------------------------------------------------------------------------------


@kernel
def pav(lo, hi, y, w, x, weight, first):  # type: ignore[no-untyped-def]
    """Write the solution of (1) to ``x[lo:hi]``, which may be ``y`` itself.

    ``weight`` and ``first`` (of integers) are scratch as long as ``y``.
    """
    top = lo - 1  # the last block: x its level, weight its weight, first where it begins
    for k in range(lo, hi):
        level, heavy, begin = y[k], w[k], k
        while top >= lo and x[top] >= level:
            both = weight[top] + heavy
            level += (x[top] - level) * (weight[top] / both)
            heavy, begin = both, first[top]
            top -= 1
        top += 1
        x[top], weight[top], first[top] = level, heavy, begin
    end = hi
    for block in range(top, lo - 1, -1):
        level = x[block]
        for k in range(first[block], end):
            x[k] = level
        end = first[block]
