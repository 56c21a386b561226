"""Boosting: steps against the gradient in the space of scores, whatever the base learner.

Round t has scores f_t. The loss gives the gradient g and a curvature h of each document; the base
learner fits -g/h with weights h by least squares, and f_{t+1} = f_t + rate * fit.
(`moon2010intervalrank`, Algorithm 1, is curvature 1.) With ``direction="lbfgs"`` the gradient is
first multiplied by the L-BFGS estimate of the inverse Hessian in function space:

    d = H_t g,   from the last pairs (f_{k+1} - f_k, g_{k+1} - g_k)                           (1)

Three things make the result depend on the data and the seed alone:

- documents and queries enter in an order fixed by their content, so shuffling rows changes no bit;
- g and h are rounded to a common grid on which every sum of n of them is exact in float64,

      step = 2^(exponent(max |g|) - 52 + ceil(log2 n)),                                       (2)

  so no histogram depends on the order of its additions;
- rows and columns of round t are drawn from streams named by t, so a resumed run draws alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rankwright.core.jit import kernel
from rankwright.core.parallel import map_ranges
from rankwright.core.rng import stream
from rankwright.core.types import F64, I64, BoundLoss, Loss
from rankwright.data.content import content_order
from rankwright.data.ranking_data import RankingData
from rankwright.losses.base import document_weight, order_weight

_ROWS = 1 << 15
_MEMORY = 8

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _round_to_grid(lo, hi, values, step, out):  # type: ignore[no-untyped-def]
    for i in range(lo, hi):
        out[i] = np.rint(values[i] / step) * step  # (2)


# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Boost:
    """How gradients become the targets of base learners.

    Parameters
    ----------
    leaves : "newton" or "constant"
        Weight documents by the loss's curvature, or all alike.
    direction : "gradient" or "lbfgs"
        Follow the gradient, or the L-BFGS direction in function space (with constant leaves). The
        second has no bound on its step yet and was seen to diverge under trees at low rates.
    row_fraction, query_fraction, feature_fraction : float
        Share of documents, of queries and of features drawn anew in each round.
    """

    needs: ClassVar[frozenset[str]] = frozenset()

    leaves: str = "newton"
    direction: str = "gradient"
    row_fraction: float = 1.0
    query_fraction: float = 1.0
    feature_fraction: float = 1.0

    def start(
        self, loss: Loss, data: RankingData, *, seed: int = 0, n_threads: int | None = None
    ) -> Descent:
        """Bind ``loss`` to ``data`` and return the state of a run."""
        return Descent(self, loss, data, seed, n_threads)


class Descent:
    """A boosting run: round by round, from scores to gradients and curvatures."""

    def __init__(
        self, boost: Boost, loss: Loss, data: RankingData, seed: int, n_threads: int | None
    ) -> None:
        self._boost, self._seed, self._n_threads = boost, seed, n_threads
        self._order, queries = content_order(data, n_threads=n_threads)
        ordered = _grades_in_order(data, self._order, queries)
        self._loss: BoundLoss = loss.bind(ordered, n_threads=n_threads)
        self._shift_invariant = loss.traits.shift_invariant
        self._newton = boost.leaves == "newton" and loss.traits.curvature
        self._weight = np.repeat(order_weight(ordered), ordered.sizes) * document_weight(ordered)
        self._query = ordered.query_of_row()
        self._n_queries, self._n_features = data.n_queries, data.n_features
        n = data.n_documents
        self._s, self._g, self._h = np.empty(n), np.empty(n), self._weight.copy()
        self._past: list[tuple[F64, F64]] = []
        self._last: tuple[F64, F64] | None = None

    def step(self, t: int, scores: F64) -> tuple[float, NDArray[np.float32], NDArray[np.float32]]:
        """Return the loss at ``scores`` and the gradient and curvature of round ``t``."""
        np.take(scores, self._order, out=self._s)
        if hasattr(self._loss, "next_round"):
            self._loss.next_round(t)
        if self._newton and self._boost.direction == "gradient":
            value = self._loss.grad_curv(self._s, self._g, self._h)
        else:
            value = self._loss.grad(self._s, self._g)
        gradient = self._g if self._boost.direction == "gradient" else self._lbfgs_direction()
        curvature = self._h
        drawn = self._draw_rows(t)
        if drawn is not None:
            gradient, curvature = gradient * drawn, curvature * drawn
        return value, self._on_grid(gradient), self._on_grid(curvature)

    def columns(self, t: int) -> I64 | None:
        """Return the features that round ``t`` may use, or None for all."""
        if self._boost.feature_fraction >= 1.0:
            return None
        count = max(1, round(self._boost.feature_fraction * self._n_features))
        return np.sort(
            stream(self._seed, "boost", "columns", t).permutation(self._n_features)[:count]
        )

    @property
    def samples(self) -> bool:
        """Whether rounds differ by what they draw."""
        boost = self._boost
        return min(boost.row_fraction, boost.query_fraction, boost.feature_fraction) < 1.0

    def best_constant(self) -> float:
        """Return the score to start from: 0 where a shift changes nothing, else a Newton step."""
        if self._shift_invariant:
            return 0.0
        self._s[:] = 0.0
        self._loss.grad_curv(self._s, self._g, self._h)  # exact for squared error
        total = float(self._h.sum())
        return -float(self._g.sum()) / total if total > 0.0 else 0.0

    def _draw_rows(self, t: int) -> F64 | None:
        drawn: F64 | None = None
        if self._boost.query_fraction < 1.0:
            picked = stream(self._seed, "boost", "queries", t).random(self._n_queries)
            drawn = (picked < self._boost.query_fraction)[self._query].astype(np.float64)
        if self._boost.row_fraction < 1.0:
            picked = stream(self._seed, "boost", "rows", t).random(len(self._g))
            rows = (picked < self._boost.row_fraction).astype(np.float64)
            drawn = rows if drawn is None else drawn * rows
        return drawn

    def _lbfgs_direction(self) -> F64:  # (1), the two-loop recursion
        if self._last is not None:
            moved, turned = self._s - self._last[0], self._g - self._last[1]
            if moved @ turned > 1e-12 * (turned @ turned):
                self._past = [*self._past[1 - _MEMORY :], (moved, turned)]
        self._last = self._s.copy(), self._g.copy()
        d, shares = self._g.copy(), []
        for moved, turned in reversed(self._past):
            share = (moved @ d) / (moved @ turned)
            d -= share * turned
            shares.append(share)
        if self._past:
            moved, turned = self._past[-1]
            d *= (moved @ turned) / (turned @ turned)
        for (moved, turned), share in zip(self._past, reversed(shares), strict=True):
            d += (share - (turned @ d) / (moved @ turned)) * moved
        return d

    def _on_grid(self, values: F64) -> NDArray[np.float32]:
        n = len(values)
        top = float(np.abs(values).max(initial=0.0))
        out = np.zeros(n, np.float32)
        if top > 0.0 and math.isfinite(top):
            step = 2.0 ** (math.frexp(top)[1] - 52 + math.ceil(math.log2(max(2, n))))
            bounds = np.append(np.arange(0, n, _ROWS), n)
            spare = np.empty(n)
            map_ranges(_round_to_grid, bounds, values, step, spare, n_threads=self._n_threads)
            out[self._order] = spare
        return out


def _grades_in_order(data: RankingData, rows: I64, queries: I64) -> RankingData:
    """Return what a loss may know of ``data``, with rows and queries in the given order."""
    return RankingData(
        X=np.empty((data.n_documents, 0)),
        y=data.y[rows],
        indptr=np.concatenate(([0], np.cumsum(data.sizes[queries]))).astype(np.int64),
        qid=data.qid[queries],
        query_weight=None if data.query_weight is None else data.query_weight[queries],
        sample_weight=None if data.sample_weight is None else data.sample_weight[rows],
    )
