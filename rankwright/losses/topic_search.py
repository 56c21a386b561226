"""Best and worst orders of a query whose documents belong to several topics, each with a limit.

With w_it the share of document i in topic t, and the worth of each document at each rank,

    maximise over orders of ``top`` documents  sum_j worth[i(j), j]
    such that  sum_j w_i(j),t <= limit  for every topic t                                       (1)

where i(j) is the document at rank j (`le2007dorm`, end of section 5.1). If every document has one
topic, this is an assignment. With overlapping topics it contains set packing and is NP-hard, so
both problems here are integer programmes, which HiGHS solves exactly.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankwright.core.types import F64, I64
from rankwright.errors import UsageError

TIME_LIMIT = 60.0
"""Seconds for one integer programme."""


def most_documents(sizes: I64, topics: F64, limit: int, cut: int) -> int:
    """Return the largest number of documents, up to ``cut``, within the limits.

    ``sizes`` has the number of documents with each row of ``topics``.
    """
    total = np.ones((1, len(sizes)))
    rows = np.vstack([total, topics.T])
    upper = np.append(float(cut), np.full(topics.shape[1], float(limit)))
    return int(np.rint(_solve(-total[0], rows, -np.inf, upper, sizes).sum()))


def best_order(worth: F64, sizes: I64, topics: F64, limit: int) -> I64:
    """Return the class of documents at each rank that solves (1).

    Each class has a row of ``worth`` by rank, a number of documents and a row of ``topics``. There
    must be an order for that many ranks.
    """
    from scipy.sparse import csr_array, eye_array, kron, vstack

    topics = topics[:, topics.any(axis=0)]
    k, top = worth.shape
    if top == 0:
        return np.empty(0, np.int64)
    each_rank = kron(np.ones((1, k)), eye_array(top))  # for variables class by class
    each_class = kron(eye_array(k), np.ones((1, top)))
    rows = vstack([each_rank, each_class, csr_array(topics.T) @ each_class])
    lower = np.append(np.ones(top), np.full(k + topics.shape[1], -np.inf))
    upper = np.concatenate([np.ones(top), sizes, np.full(topics.shape[1], float(limit))])
    largest = np.abs(worth).max()
    # HiGHS stops at an absolute gap of 1e-6: 1e-10 of the largest worth.
    scale = 1e4 / largest if largest > 0.0 else 1.0
    solution = _solve(-scale * worth.ravel(), rows, lower, upper, np.ones(k * top))
    order: I64 = solution.reshape(k, top).argmax(axis=0)
    return order


def _solve(cost: F64, rows: Any, lower: Any, upper: Any, most: Any) -> F64:
    """Return the integers from 0 to ``most`` of the least cost with lower <= rows x <= upper."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    result = milp(
        cost,
        constraints=LinearConstraint(rows, lower, upper),
        integrality=np.ones(len(cost), np.int64),
        bounds=Bounds(0.0, np.asarray(most, np.float64)),
        options={"time_limit": TIME_LIMIT, "mip_rel_gap": 0.0},
    )
    if result.status != 0:
        raise UsageError(
            "the best order within the limits per topic was not found in "
            f"{TIME_LIMIT:g} seconds. Use fewer topics, shorter lists or a smaller cut-off."
        )
    solution: F64 = result.x
    return solution
