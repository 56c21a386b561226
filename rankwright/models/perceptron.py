"""Linear scores corrected at each mistake: PRank on documents, PAMIR on sampled pairs.

**PRank** (`crammer2002prank`, Figure 2, in which c = 1) cuts the score into grades. Weights w and
thresholds b_1 <= b_2 <= ..., one between each two grades of the data, start at 0. For a document x
of grade y, with y_r = 1 if y is above threshold r and -1 below,

    tau_r = y_r  if  y_r (w.x - b_r) <= 0,  else 0                                              (1)
    w += (sum_r tau_r) x,      b_r -= c tau_r                                                   (2)

Steps of equal size keep the thresholds in order. The weight of a document, times that of its query,
multiplies its step, and then a threshold may pass the next one. The nearest ordered thresholds
replace them (`rankwright.losses.pav`). The distance to any ordered thresholds does not grow, so the
bound on mistakes holds.

A threshold is the weight of a feature with the same value for all documents, and c is the square of
that value. If c = 1 and documents are much longer than 1, a step moves scores by |x|^2 and
thresholds hardly at all, so w has to learn the level of the grades in addition to their order. By
default c is the mean of |x|^2. A dense feature whose mean is `_FAR` deviations or more from 0, such
as a time, would still dominate all other features. Its mean is subtracted, which changes no
ranking.

Each pass draws a new order of the queries, and of the documents within each, from an order that
depends only on their content: shuffled rows and renamed queries change nothing. The thresholds are
common to all queries. If queries are visited one after the other, the thresholds adapt to each, and
w learns the order within queries instead of which queries have more relevant documents.

**PAMIR** (`grangier2008pamir`, `crammer2006pa`) samples a document i and a document j of lower
grade in the same query. If i does not lead by 1, the weights take the smallest step after which it
does, limited by C (PA-I):

    w += tau (x_i - x_j),     tau = min(C m, (1 - w.(x_i - x_j))_+ / |x_i - x_j|^2)            (3)

with m = min(1, g_i - g_j): 1 for whole grades, the difference for estimated relevance. A step costs
the non-zeros of two rows.

Both return the mean of w over all T steps, which ranks better than the last w. If step t adds d_t,
this mean needs only a sum that a step updates at the same cost:

    w - (1/T) sum_t (t - 1) d_t                                                                 (4)

The loss is only reported: the mean hinge over pairs for PAMIR, all_threshold for PRank.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from rankwright.core.jit import kernel
from rankwright.core.parameters import Auto, Count, Missing, Positive
from rankwright.core.products import times_vector
from rankwright.core.rng import stream
from rankwright.core.types import F64, FloatMatrix, Loss, Round
from rankwright.data.content import content_order
from rankwright.data.ranking_data import RankingData
from rankwright.losses.base import bound_loss, document_weight, order_weight
from rankwright.losses.pair_sampler import PairSampler, sample_pair
from rankwright.losses.pav import pav
from rankwright.models.linear import FittedLinear, LinearRounds, deviations, means
from rankwright.models.schema import ModelPart

_FAR = 30.0
_ROUNDS = 10  # of PAMIR

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _mean_square(visits, indptr, indices, values, scale):
    total = 0.0
    for i in visits:
        for k in range(indptr[i], indptr[i + 1]):
            total += (values[k] * scale[indices[k]]) ** 2
    return total / max(len(visits), 1)


@kernel
def prank_steps(visits, indptr, indices, values, scale, grade, weight, c, t, w, late, b):
    """Take the steps (2) of visited documents, from step ``t + 1``; ``late`` is the sum in (4)."""
    n = len(b)
    unit, mass, first = np.ones(n), np.empty(n), np.empty(n, np.int64)
    for i in visits:
        score = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            score += w[indices[k]] * values[k] * scale[indices[k]]
        total = 0.0
        for r in range(n):
            side = 1.0 if grade[i] > r else -1.0
            if side * (score - b[r]) <= 0.0:  # (1)
                total += side
                b[r] -= c * weight[i] * side  # (2)
        for r in range(1, n):
            if b[r] < b[r - 1]:
                pav(0, n, b, unit, b, mass, first)
                break
        if total != 0.0:
            for k in range(indptr[i], indptr[i + 1]):
                j = indices[k]
                step = weight[i] * total * values[k] * scale[j]
                w[j] += step
                late[j] += t * step
        t += 1.0


@kernel
def pamir_steps(first, end, seed, sampler, indptr, indices, values, grade, C, w, late):
    """Take the steps (3) first + 1, ..., end. The columns of each row must be ascending."""
    if sampler.queries[-1] <= 0.0:
        return
    for t in range(first, end):
        i, j = sample_pair(seed, t, sampler)
        lead, square = _compare(i, j, indptr, indices, values, w)
        if lead < 1.0 and square > 0.0:
            tau = min(C * min(grade[i] - grade[j], 1.0), (1.0 - lead) / square)  # (3)
            _add(i, tau, t, indptr, indices, values, w, late)
            _add(j, -tau, t, indptr, indices, values, w, late)


@kernel
def _compare(i, j, indptr, indices, values, w):
    """Return w.(x_i - x_j) and |x_i - x_j|^2, from a merge of two rows."""
    lead = square = 0.0
    a, b = indptr[i], indptr[j]
    while a < indptr[i + 1] or b < indptr[j + 1]:
        left = indices[a] if a < indptr[i + 1] else len(w)
        right = indices[b] if b < indptr[j + 1] else len(w)
        x = 0.0
        if left <= right:
            x += values[a]
            a += 1
        if right <= left:
            x -= values[b]
            b += 1
        lead += w[min(left, right)] * x
        square += x * x
    return lead, square


@kernel
def _add(i, tau, t, indptr, indices, values, w, late):
    for k in range(indptr[i], indptr[i + 1]):
        step = tau * values[k]
        w[indices[k]] += step
        late[indices[k]] += t * step


# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class PRankLinear(ModelPart):
    """A weight for each feature and a threshold between grades, corrected at each mistake.

    Parameters
    ----------
    n_passes : int
        Number of passes over the data; the validation set selects the best pass.
    averaging : bool
        Return the mean of the weights over all steps; False returns the last weights.
    threshold_step : float or "auto"
        c of (2); "auto" is the mean squared length of a document, 1 is as published.
    by_query : bool
        Visit documents query after query; False ignores queries in the order of visits.
    scale : bool
        Take steps as if all features had unit standard deviation.
    missing : None, "mean" or "zero"
        Replacement of missing values; None refuses them.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.PRank(model=rw.models.PRankLinear(n_passes=20))
    PRank(model=PRankLinear(n_passes=20))
    """

    fitted_class: ClassVar[Any] = FittedLinear

    n_passes: Count = 10
    averaging: bool = True
    threshold_step: Positive | Auto = "auto"
    by_query: bool = True
    scale: bool = True
    missing: Missing = None

    def rounds(
        self,
        loss: Loss,
        data: RankingData,
        valid: RankingData | None = None,
        *,
        start: FittedLinear | None = None,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> Iterator[Round]:
        """Yield a round for each pass, from the weights of ``start``."""
        run = LinearRounds(data, valid, self.missing, n_jobs)
        deviation = deviations(run.data.X, document_weight(data), scale=self.scale)
        w = np.zeros(data.n_features) if start is None else start.coef * deviation
        passes = self._passes(run.data, w, 1.0 / deviation, random_state, n_jobs)
        yield from _rounds(run, loss, (scaled / deviation for scaled in passes), n_jobs)

    def _passes(
        self, data: RankingData, w: F64, scale: F64, random_state: int, n_jobs: int | None
    ) -> Iterator[F64]:
        """Yield the weights of features times ``scale`` after each pass."""
        X = _near_zero(data.X, document_weight(data))
        cells = X.indptr, X.indices, X.data
        weight = document_weight(data) * np.repeat(order_weight(data), data.sizes)
        rows, queries = content_order(data, n_jobs=n_jobs)
        counts = weight[rows] > 0.0
        query = np.repeat(np.arange(data.n_queries), data.sizes[queries])[counts]
        rows = rows[counts]
        c = self.threshold_step
        if c == "auto":
            c = _mean_square(rows, *cells, scale) or 1.0
        grades, grade = np.unique(data.y, return_inverse=True)
        b, late = np.zeros(max(len(grades) - 1, 0)), np.zeros(data.n_features)
        for number in range(self.n_passes):
            rng = stream(random_state, "prank", number + 1)
            position = rng.random(len(rows))
            if self.by_query:
                position += rng.permutation(query.max(initial=-1) + 1)[query]
            visits = rows[np.argsort(position, kind="stable")]
            t = float(number * len(rows))
            prank_steps(visits, *cells, scale, grade, weight, c, t, w, late, b)
            yield w - late / max(t + len(rows), 1.0) if self.averaging else w  # (4)


@dataclass(frozen=True, slots=True, repr=False)
class PassiveAggressiveLinear(ModelPart):
    """A weight for each feature, corrected for each sampled pair in the wrong order.

    Parameters
    ----------
    C : float
        Maximum step size.
    n_steps : int
        Number of sampled pairs, in ten rounds; the validation set selects the best round.
    averaging : bool
        Return the mean of the weights over all steps; False returns the last weights.
    missing : None, "mean" or "zero"
        Replacement of missing values; None refuses them.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.PAMIR(model=rw.models.PassiveAggressiveLinear(C=1.0))
    PAMIR(model=PassiveAggressiveLinear(C=1.0))
    """

    fitted_class: ClassVar[Any] = FittedLinear

    C: Positive = 0.1
    n_steps: Count = 100_000
    averaging: bool = True
    missing: Missing = None

    def rounds(
        self,
        loss: Loss,
        data: RankingData,
        valid: RankingData | None = None,
        *,
        start: FittedLinear | None = None,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> Iterator[Round]:
        """Yield ten rounds of equally many steps, from the weights of ``start``."""
        run = LinearRounds(data, valid, self.missing, n_jobs)
        w = np.zeros(data.n_features) if start is None else start.coef.copy()
        yield from _rounds(run, loss, self._weights(run.data, w, random_state, n_jobs), n_jobs)

    def _weights(
        self, data: RankingData, w: F64, random_state: int, n_jobs: int | None
    ) -> Iterator[F64]:
        """Yield the weights after each round of steps."""
        X: Any = sparse.csr_array(data.X)
        cells = X.indptr, X.indices, X.data
        sampler, late = sampler_by_content(data, n_jobs=n_jobs), np.zeros(data.n_features)
        ends = np.linspace(0, self.n_steps, min(_ROUNDS, self.n_steps) + 1).astype(int)
        for first, end in pairwise(ends.tolist()):
            pamir_steps(first, end, random_state, sampler, *cells, data.y, float(self.C), w, late)
            yield w - late / end if self.averaging else w.copy()  # (4)


def _rounds(
    run: LinearRounds, loss: Loss, weights: Iterator[F64], n_jobs: int | None
) -> Iterator[Round]:
    """Yield a round for each of ``weights``."""
    bound: Any = bound_loss(loss, run.data, n_jobs=n_jobs)
    total = float(order_weight(run.data).sum()) or 1.0
    for number, coef in enumerate(weights, start=1):
        value = bound.value(times_vector(run.data.X, coef, n_jobs=n_jobs)) / total
        yield run.round(number, value, FittedLinear(coef, run.fill))


def _near_zero(X: FloatMatrix, weight: F64) -> Any:
    """Return X by rows, with the mean subtracted from dense features that are far from 0."""
    if not sparse.issparse(X):
        mean = means(X, weight)
        is_far = np.abs(mean) >= _FAR * deviations(X, weight)
        if is_far.any():
            X = X - np.where(is_far, mean, 0.0)
    return sparse.csr_array(X)


def sampler_by_content(data: RankingData, *, n_jobs: int | None = None) -> PairSampler:
    """Return the sampler of pairs of rows of ``data``, whose order depends on the content only."""
    rows, queries = content_order(data, n_jobs=n_jobs)
    ordered = RankingData(
        X=np.empty((data.n_documents, 0)),
        y=data.y[rows],
        indptr=np.append(0, np.cumsum(data.sizes[queries])),
        qid=data.qid[queries],
    )
    weight = document_weight(data)[rows]
    sampler = PairSampler.of(ordered, order_weight(data)[queries], weight)
    return sampler._replace(rows=rows[sampler.rows])
