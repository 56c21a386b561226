"""Policies over lists: the probability of a document at a slot, and of a list.

A ranker that shows documents by score is a policy without chance. With a temperature T, lists are
sampled from Plackett-Luce: documents are drawn one after the other, each with a probability
proportional to v_d = exp(score_d / T) among the remaining documents,

    P(d at l | above) = v_d / sum of v over documents not above                                 (1)
    P(list down to l) = product of (1)                                                          (2)

The probability of a document at a slot is a sum over all documents that can be above. It equals the
probability that d arrives as number l if each document arrives after an exponential time with rate
v_d,

    P(d at l) = integral over t of v_d exp(-v_d t) P(l - 1 other documents arrive before t)     (3)

which the trapezoidal rule in log t approximates to nine digits.
"""

from __future__ import annotations

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.types import F64, I64

_STEP = 0.15  # of log t in (3)
_EARLY, _LATE = -24.0, 3.7  # log t before and after which a document of rate 1 arrives hardly ever


# --- kernels ---------------------------------------------------------------------------------


@kernel
def _arrival_counts(log_rate, log_t, slots, before, after, out):
    """Add a time t of (3) to ``out[d, l]``; ``before`` and ``after`` are scratch (n + 1, slots).

    ``before[d, k]`` is the probability that k of the documents 0 to d - 1 have arrived, and
    ``after[d, k]`` that k of the documents from d on have.
    """
    n = len(log_rate)
    before[0, :] = 0.0
    before[0, 0] = 1.0
    for d in range(n):
        late = np.exp(-np.exp(log_rate[d] + log_t))
        for k in range(slots):
            arrived = before[d, k - 1] * (1.0 - late) if k > 0 else 0.0
            before[d + 1, k] = before[d, k] * late + arrived
    after[n, :] = 0.0
    after[n, 0] = 1.0
    for d in range(n - 1, -1, -1):
        late = np.exp(-np.exp(log_rate[d] + log_t))
        for k in range(slots):
            arrived = after[d + 1, k - 1] * (1.0 - late) if k > 0 else 0.0
            after[d, k] = after[d + 1, k] * late + arrived
    for d in range(n):
        arrival = log_rate[d] + log_t
        if arrival > 2.0 * _LATE:
            continue  # the density is 0 in double precision
        density = _STEP * np.exp(arrival - np.exp(arrival))  # in log t
        for k in range(slots):
            both = 0.0
            for j in range(k + 1):
                both += before[d, j] * after[d + 1, k - j]
            out[d, k] += density * both


@kernel
def _slot_probabilities(lo, hi, scores, temperature, slots, out):
    """Write (3) for documents lo:hi of one query.

    Rates can overflow, so the code uses logarithms of rates and times. The first slots are filled
    when as many documents with the highest rates have arrived. Between the arrivals of two
    documents with very different rates, the integrand is 0 and is skipped.
    """
    n = hi - lo
    log_rate = (scores[lo:hi] - scores[lo:hi].max()) / temperature
    falling = -np.sort(-log_rate)
    before = np.empty((n + 1, slots))
    after = np.empty((n + 1, slots))
    out[lo:hi, :] = 0.0
    log_t = -np.inf
    for d in range(min(n, slots)):
        log_t = max(log_t, _EARLY - np.log(n) - falling[d])
        while log_t <= _LATE - falling[d]:
            _arrival_counts(log_rate, log_t, slots, before, after, out[lo:hi])
            log_t += _STEP


@kernel
def _conditional(indptr, row, documents, query, scores, temperature, values, out, mean):
    """Write (1) of each impression given the documents above, and the mean of ``values`` there."""
    longest = 0
    for q in query:
        longest = max(longest, documents[q + 1] - documents[q])
    used = np.zeros(longest, np.bool_)
    for s in range(len(indptr) - 1):
        lo, hi = documents[query[s]], documents[query[s] + 1]
        first = indptr[s]
        used[: hi - lo] = False
        for i in range(first, indptr[s + 1]):
            highest = -np.inf  # of the remaining documents, whose rates can all underflow
            for d in range(lo, hi):
                if not used[d - lo]:
                    highest = max(highest, scores[d])
            left = total = 0.0
            for d in range(lo, hi):
                if not used[d - lo]:
                    rate = np.exp((scores[d] - highest) / temperature)
                    left += rate
                    total += rate * values[d, i - first]
            here = row[i] - lo
            out[i] = 0.0 if used[here] else np.exp((scores[row[i]] - highest) / temperature) / left
            mean[i] = total / left if left > 0.0 else 0.0
            used[here] = True


@kernel
def multiply_down(indptr, conditional, out):
    """Write the product of ``conditional`` down to each impression of a session, (2)."""
    for s in range(len(indptr) - 1):
        product = 1.0
        for i in range(indptr[s], indptr[s + 1]):
            product *= conditional[i]
            out[i] = product


# --- API -------------------------------------------------------------------------------------


def slot_probabilities(scores: F64, indptr: I64, slots: int, temperature: float) -> F64:
    """Return the probability of each document at each of the first slots, (3), as (n, slots).

    Parameters
    ----------
    scores : (n,) array
        Scores of the documents.
    indptr : (Q + 1,) array
        Documents of query q are ``indptr[q]:indptr[q + 1]``.
    slots : int
        Number of slots.
    temperature : float
        Temperature of Plackett-Luce, above 0.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwright import clicks
    >>> scores, indptr = np.log([3.0, 1.0]), np.array([0, 2])
    >>> clicks.slot_probabilities(scores, indptr, slots=2, temperature=1.0).round(2)
    array([[0.75, 0.25],
           [0.25, 0.75]])
    """
    out = np.zeros((len(scores), slots))
    for lo, hi in zip(indptr[:-1].tolist(), indptr[1:].tolist(), strict=True):
        if hi > lo:
            _slot_probabilities(lo, hi, scores, float(temperature), slots, out)
    return out


def conditional_probabilities(
    indptr: I64, row: I64, documents: I64, query: I64, scores: F64, temperature: float, values: F64
) -> tuple[F64, F64]:
    """Return (1) of each impression, and the mean of ``values`` under (1).

    Parameters
    ----------
    indptr, row
        Impressions of sessions, and the document of each.
    documents : (Q + 1,) array
        Documents of query q are ``documents[q]:documents[q + 1]``.
    query
        Query of each session.
    values : (n, slots) array
        A number for each document at each slot.
    """
    out, mean = np.empty(len(row)), np.empty(len(row))
    _conditional(indptr, row, documents, query, scores, float(temperature), values, out, mean)
    return out, mean
