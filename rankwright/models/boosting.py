"""Boosting: gradient steps in the space of scores, for any base learner.

Round t has scores f_t. The loss has the gradient g and a curvature h of each document; the base
learner fits -g/h with weights h by least squares, and f_{t+1} = f_t + rate * fit
(`moon2010intervalrank`, Algorithm 1, has curvature 1). With ``direction="lbfgs"`` it fits -d/h,

    d = H_t g,   from the last pairs (f_{k+1} - f_k, g_{k+1} - g_k),  H_0 = a multiple of 1/h  (1)

the L-BFGS estimate of Newton's step in the space of scores, limited as `QuasiNewton` describes.

The result depends on the data and the seed only:

- documents and queries are sorted by their content, so the order of the rows does not matter;
- g and h are rounded to a common grid on which every sum of n of them is exact in float64,

      step = 2^(exponent(max |g|) - 52 + ceil(log2 n)),                                       (2)

  so no histogram depends on the order of its additions;
- rows and columns of round t are sampled from streams named by t, so a resumed run samples as
  before.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankwright.core.jit import kernel
from rankwright.core.parallel import map_ranges, ordered_sum, row_ranges, thread_count
from rankwright.core.rng import stream
from rankwright.core.types import F64, I64, AnyArray, Loss
from rankwright.data.content import in_content_order
from rankwright.data.ranking_data import RankingData
from rankwright.losses.base import (
    bound_loss,
    document_weight,
    load_loss_state,
    loss_state,
    order_weight,
    set_iteration,
)

if TYPE_CHECKING:
    from rankwright.models.trees import Trees


_ROWS = 1 << 15  # rows of a range for one thread

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _round_to_grid(lo, hi, g, h, steps, rows, out):
    """Round gradient and curvature i to their grids and write them to column ``rows[i]``."""
    step_g, step_h = steps
    for i in range(lo, hi):
        out[0, rows[i]] = np.rint(g[i] / step_g) * step_g if step_g > 0.0 else 0.0
        out[1, rows[i]] = np.rint(h[i] / step_h) * step_h if step_h > 0.0 else 0.0


# --- API -------------------------------------------------------------------------------------


class Descent:
    """A boosting run: gradients and curvatures from scores, round by round.

    Parameters
    ----------
    model : Trees
        Parameters of boosting; the share of features must be a number.
    loss : Loss
        It is bound to the data.
    data : RankingData
        The training data, or a part of it.
    largest : float, optional
        For a part of a data set, the maximum that the loss needs over all parts (`SurveyedLoss`).
    first_query : int
        Number of the first query of the part among all queries.
    """

    def __init__(
        self,
        model: Trees,
        loss: Loss,
        data: RankingData,
        *,
        seed: int = 0,
        n_jobs: int | None = None,
        largest: float | None = None,
        first_query: int = 0,
    ) -> None:
        self._n_jobs = n_jobs = thread_count(n_jobs)  # once, not in each round
        options: dict[str, Any] = {} if largest is None else {"largest": largest}
        self._model, self._seed, self._traits = model, seed, loss.traits
        self._order, ordered = in_content_order(data, features=False, n_jobs=n_jobs)
        self._loss: Any = bound_loss(loss, ordered, n_jobs=n_jobs, **options)
        if first_query and loss.traits.stochastic:
            self._loss.number_from(first_query)
        self._has_curvature = hasattr(self._loss, "grad_curv")
        self._newton = model.leaves == "newton" and self._has_curvature
        self._weight = np.repeat(order_weight(ordered), ordered.sizes) * document_weight(ordered)
        self._query = ordered.query_of_row()
        self._n_queries, self._n_features = data.n_queries, data.n_features
        n = data.n_documents
        self._s, self._g, self._h = np.empty(n), np.empty(n), self._weight.copy()
        self._quasi: QuasiNewton | None = None

    def step(self, t: int, scores: F64) -> tuple[float, NDArray[np.float32], NDArray[np.float32]]:
        """Return the loss at ``scores`` and the gradient and curvature of round ``t``."""
        np.take(scores, self._order, out=self._s)
        set_iteration(self._loss, t)
        if self._newton:
            value = self._loss.grad_curv(self._s, self._g, self._h)
        else:
            value = self._loss.grad(self._s, self._g)
        gradient, curvature = self._g, self._h
        if self._model.direction == "lbfgs":
            if self._quasi is None:
                reach = min(1.0, self._relative_curvature())
                self._quasi = QuasiNewton(reach, reach)
            # before rows are sampled: pairs from two samples would be noise
            gradient = self._quasi.direction(self._centred_scores(), gradient, curvature)
        if self._model.query_fraction < 1.0:
            uniform = stream(self._seed, "boost", "queries", t).random(self._n_queries)
            is_sampled = (uniform < self._model.query_fraction)[self._query]
            gradient, curvature = gradient * is_sampled, curvature * is_sampled
        if self._model.subsample < 1.0:
            uniform = stream(self._seed, "boost", "rows", t).random(len(gradient))
            is_sampled = uniform < self._model.subsample
            gradient, curvature = gradient * is_sampled, curvature * is_sampled
        steps = _grid_step(gradient), _grid_step(curvature)
        rounded = np.empty((2, len(gradient)), np.float32)
        args = (gradient, curvature, steps, self._order, rounded)
        map_ranges(_round_to_grid, row_ranges(len(gradient), _ROWS), *args, n_jobs=self._n_jobs)
        return value, rounded[0], rounded[1]

    def columns(self, t: int) -> I64 | None:
        """Return the features that round ``t`` may use, or None for all."""
        share = float(self._model.colsample_bytree)
        if share >= 1.0:
            return None
        count = max(1, round(share * self._n_features))
        order = stream(self._seed, "boost", "columns", t).permutation(self._n_features)
        return np.sort(order[:count])

    @property
    def samples(self) -> bool:
        """Whether rounds sample documents, queries or features."""
        model = self._model
        shares = (model.subsample, model.query_fraction, float(model.colsample_bytree))
        return min(shares) < 1.0

    def state(self) -> dict[str, AnyArray]:
        """Return the arrays that the next round needs in addition to the scores."""
        arrays: dict[str, AnyArray] = loss_state(self._loss)
        return arrays if self._quasi is None else {**arrays, **self._quasi.arrays()}

    def load_state(self, state: Mapping[str, AnyArray]) -> None:
        """Continue from the `state` of another run."""
        load_loss_state(self._loss, state)
        if "quasi_numbers" in state:
            self._quasi = QuasiNewton.restore(state)

    def best_constant(self) -> float:
        """Return the initial score: 0 for shift-invariant losses, otherwise a Newton step."""
        if self._traits.shift_invariant:
            return 0.0
        derivative, curvature = self.at_zero()
        return -derivative / curvature if curvature > 0.0 else 0.0  # exact for squared error

    def at_zero(self) -> tuple[float, float]:
        """Return the sums of gradients and curvatures at scores of 0.

        For a loss without curvature, the curvature is the weight of a document.
        """
        self._s[:] = 0.0
        curvature = self._weight.copy()
        if self._has_curvature:
            self._loss.grad_curv(self._s, self._g, curvature)
        else:
            self._loss.grad(self._s, self._g)
        return float(self._g.sum()), float(curvature.sum())

    def _relative_curvature(self) -> float:
        """Return the curvature of the base learner relative to the curvature of the loss."""
        if self._newton or not self._has_curvature:
            return 1.0
        curvature = np.empty(len(self._s))
        self._loss.grad_curv(self._s, np.empty(len(self._s)), curvature)
        total = ordered_sum(curvature)
        return ordered_sum(self._h) / total if total > 0.0 else 1.0

    def _centred_scores(self) -> F64:
        """Return the scores, less the mean of each query for shift-invariant losses.

        A shift changes scores and not the gradient; L-BFGS would follow it without end.
        """
        if not self._traits.shift_invariant:
            return self._s.copy()
        size = np.bincount(self._query, minlength=self._n_queries)
        mean = np.bincount(self._query, self._s, self._n_queries) / np.maximum(size, 1)
        return self._s - mean[self._query]


def _grid_step(values: F64) -> float:
    """Return the step (2) of the grid, or 0 if the values are all 0 or not finite."""
    top = float(np.abs(values).max(initial=0.0))
    if not 0.0 < top < math.inf:
        return 0.0
    return 2.0 ** (math.frexp(top)[1] - 52 + math.ceil(math.log2(max(2, len(values)))))  # (2)


# --- the L-BFGS direction --------------------------------------------------------------------


_MEMORY = 8  # pairs of L-BFGS
_ACROSS = 1.0 / 3.0
_FARTHEST = 32.0  # times the plain step


@dataclass
class QuasiNewton:
    """The L-BFGS direction (1), limited because boosting has no line search.

    With |v|^2 = sum h v^2, the plain step p = g/h and d = H_t g, the direction is d

    - with its part across p limited to a third of its part along p, so that a base learner which
      fits it also descends along the gradient; p itself if d does not descend;
    - with a length between |p| and reach |p|, or of reach |p| if reach is below 1.

    The derivative along the last step, relative to its value before the step, changes the reach. It
    is 1 if the gradient did not turn and 0 at a minimum along the step. Above a quarter, the reach
    grows; below zero, it shrinks to half of the distance to the minimum, and the pairs are dropped.
    Only derivatives are used, because some gradients are not the gradient of any function.
    """

    reach: float
    length: float  # of the last direction
    last: tuple[F64, F64] | None = None  # scores and gradient
    pairs: list[tuple[F64, F64]] = field(default_factory=list)  # steps, changes of the gradient
    products: list[float] = field(default_factory=list)  # of both

    def arrays(self) -> dict[str, AnyArray]:
        """Return the state after a first direction."""
        return {
            "quasi_numbers": np.array([self.reach, self.length]),
            "quasi_last": np.array(self.last),
            "quasi_pairs": np.array(self.pairs),
            "quasi_products": np.array(self.products),
        }

    @classmethod
    def restore(cls, arrays: Mapping[str, AnyArray]) -> QuasiNewton:
        """Continue from the `arrays` of another run."""
        reach, length = arrays["quasi_numbers"].tolist()
        scores, gradient = arrays["quasi_last"]
        pairs = [(step, change) for step, change in arrays["quasi_pairs"]]
        return cls(reach, length, (scores, gradient), pairs, arrays["quasi_products"].tolist())

    def direction(self, s: F64, g: F64, h: F64) -> F64:
        """Return h d at scores ``s`` with gradient ``g`` and curvature ``h``."""
        present = h > 0.0
        inverse = np.divide(1.0, h, out=np.zeros(len(h)), where=present)
        if self.last is not None:
            self._learn((s - self.last[0]) * present, g, self.last[1], h)
        self.last = s, g.copy()
        plain = inverse * g
        size = _dot(g, plain)
        if size <= 0.0:
            return g
        d = self._two_loops(g, inverse)
        along = _dot(d, g) / size
        if along <= 0.0:
            d, along = plain, 1.0
        across = d - along * plain
        width = math.sqrt(_dot(across, h * across) / size)
        share = min(1.0, _ACROSS * along / width) if width > 0.0 else 1.0
        d = along * plain + share * across
        length = math.hypot(along, share * width)
        self.length = min(max(length, length / along * min(1.0, self.reach)), self.reach)
        return np.where(present, h * d * (self.length / length), g)

    def _learn(self, step: F64, g: F64, before: F64, h: F64) -> None:
        """Update the reach and the pairs after a step that changed the gradient ``before``."""
        fall = _dot(before, step)
        if fall >= 0.0:  # the base learner did not descend
            self.pairs, self.products, self.reach = [], [], min(1.0, self.reach)
            return
        derivative = _dot(g, step) / fall
        if derivative < 0.0:
            shrunk = max(1.0 / _FARTHEST, 0.5 / (1.0 - derivative))
            self.pairs, self.products, self.reach = [], [], self.length * shrunk
            return
        if derivative > 0.25:
            grown = min(4.0, 0.75 / max(1.0 - derivative, 0.1))
            self.reach = min(_FARTHEST, self.reach * grown)
        change = g - before
        product, most = _dot(step, change), _dot(step, h * step)
        if product > 0.0:
            missing = max(0.0, most / _FARTHEST - product)  # a lower bound of the curvature
            change = change + missing / most * (h * step)
            self.pairs = [*self.pairs[1 - _MEMORY :], (step, change)]
            self.products = [*self.products[1 - _MEMORY :], product + missing]

    def _two_loops(self, g: F64, inverse: F64) -> F64:  # (1)
        d, shares = g.copy(), []
        for (step, change), product in zip(self.pairs[::-1], self.products[::-1], strict=True):
            shares.append(_dot(step, d) / product)
            d -= shares[-1] * change
        d *= inverse
        if self.pairs:
            change = self.pairs[-1][1]
            d *= self.products[-1] / _dot(change, inverse * change)
        for (step, change), product in zip(self.pairs, self.products, strict=True):
            d += (shares.pop() - _dot(change, d) / product) * step
        return d


def _dot(a: F64, b: F64) -> float:
    return ordered_sum(a * b)  # the same bits with any BLAS
