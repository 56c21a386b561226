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
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankwright.core.jit import kernel
from rankwright.core.parallel import map_ranges, ordered_sum, row_ranges, thread_count
from rankwright.core.rng import stream
from rankwright.core.types import F64, I64, AnyArray, Loss
from rankwright.data.content import in_content_order
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.losses.base import (
    bound_loss,
    document_weight,
    load_loss_state,
    loss_state,
    order_weight,
    set_iteration,
)
from rankwright.registry import unknown

_ROWS = 1 << 15
_CHOICES = {"leaves": ("newton", "constant"), "direction": ("gradient", "lbfgs")}

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _round_to_grid(lo, hi, values, rows, step, out):  # type: ignore[no-untyped-def]
    """Round value i to the grid and write it to its row."""
    for i in range(lo, hi):
        out[rows[i]] = np.rint(values[i] / step) * step  # (2)


# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Boost:
    """The parameters of boosting that do not depend on the base learner.

    Parameters
    ----------
    leaves : "newton" or "constant"
        Weight documents by the curvature of the loss, or by their own weights.
    direction : "gradient" or "lbfgs"
        Follow the gradient, or the L-BFGS direction in the space of scores. A run that continues
        from a fitted model has no pairs at first, so its trees are not those of one long run.
    subsample, query_fraction, colsample_bytree : float
        Shares of documents, queries and features that are sampled in each round.
    """

    leaves: str = "newton"
    direction: str = "gradient"
    subsample: float = 1.0
    query_fraction: float = 1.0
    colsample_bytree: float = 1.0

    def check(self) -> None:
        """Raise for parameters out of range."""
        for name in ("subsample", "query_fraction", "colsample_bytree"):
            if not 0.0 < getattr(self, name) <= 1.0:
                raise UsageError(
                    f"{name} must be a share above 0, up to 1 for all, not {getattr(self, name)}."
                )
        for name, known in _CHOICES.items():
            if getattr(self, name) not in known:
                raise UsageError(unknown(name, getattr(self, name), known))

    @classmethod
    def of(cls, model: Any) -> Self:
        """Return the parameters of a model that has them among its own."""
        return cls(**{field.name: getattr(model, field.name) for field in fields(cls)})

    def start(
        self,
        loss: Loss,
        data: RankingData,
        *,
        largest: float | None = None,
        first_query: int = 0,
        seed: int = 0,
        n_jobs: int | None = None,
    ) -> Descent:
        """Bind ``loss`` to ``data`` and return the state of a run.

        For a part of a data set, ``largest`` is the maximum that the loss needs over all parts
        (`SurveyedLoss`), and ``first_query`` the number of its first query among all.
        """
        self.check()
        options = {} if largest is None else {"largest": largest}
        return Descent(self, loss, data, seed, n_jobs, first_query, **options)


class Descent:
    """A boosting run: gradients and curvatures from scores, round by round."""

    def __init__(
        self,
        boost: Boost,
        loss: Loss,
        data: RankingData,
        seed: int,
        n_jobs: int | None,
        first_query: int = 0,
        **options: Any,
    ) -> None:
        n_jobs = thread_count(n_jobs)  # once, not in each round
        self._boost, self._seed, self._n_jobs = boost, seed, n_jobs
        self._order, ordered = in_content_order(data, features=False, n_jobs=n_jobs)
        self._loss: Any = bound_loss(loss, ordered, n_jobs=n_jobs, **options)
        if first_query and loss.traits.stochastic:
            self._loss.number_from(first_query)
        self._traits = loss.traits
        self._newton = boost.leaves == "newton" and loss.traits.curvature
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
        if self._boost.direction == "lbfgs":
            if self._quasi is None:
                self._quasi = QuasiNewton(min(1.0, self._relative_curvature()))
            # before rows are sampled: pairs from two samples would be noise
            gradient = self._quasi.direction(self._centred_scores(), gradient, curvature)
        for name, share in (
            ("queries", self._boost.query_fraction),
            ("rows", self._boost.subsample),
        ):
            if share < 1.0:
                sampled = self._sample(t, name, share)
                gradient, curvature = gradient * sampled, curvature * sampled
        return value, self._on_grid(gradient), self._on_grid(curvature)

    def columns(self, t: int) -> I64 | None:
        """Return the features that round ``t`` may use, or None for all."""
        if self._boost.colsample_bytree >= 1.0:
            return None
        count = max(1, round(self._boost.colsample_bytree * self._n_features))
        return np.sort(
            stream(self._seed, "boost", "columns", t).permutation(self._n_features)[:count]
        )

    def state(self) -> dict[str, AnyArray]:
        """Return the arrays that the next round needs in addition to the scores."""
        memory: dict[str, AnyArray] = loss_state(self._loss)
        return memory if self._quasi is None else {**memory, **self._quasi.arrays()}

    def load_state(self, state: Mapping[str, AnyArray]) -> None:
        """Continue from the `state` of another run."""
        load_loss_state(self._loss, state)
        if "quasi_numbers" in state:
            self._quasi = QuasiNewton.restore(state)

    @property
    def samples(self) -> bool:
        """Whether rounds sample documents, queries or features."""
        boost = self._boost
        return min(boost.subsample, boost.query_fraction, boost.colsample_bytree) < 1.0

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
        if self._traits.curvature:
            self._loss.grad_curv(self._s, self._g, curvature)
        else:
            self._loss.grad(self._s, self._g)
        return float(self._g.sum()), float(curvature.sum())

    def _sample(self, t: int, name: str, share: float) -> F64:
        """Return 1 for each sampled document and 0 for others; ``name`` is queries or rows."""
        n = self._n_queries if name == "queries" else len(self._g)
        sampled = (stream(self._seed, "boost", name, t).random(n) < share).astype(np.float64)
        return sampled[self._query] if name == "queries" else sampled

    def _relative_curvature(self) -> float:
        """Return the curvature of the base learner relative to the curvature of the loss."""
        if self._newton or not self._traits.curvature:
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

    def _on_grid(self, values: F64) -> NDArray[np.float32]:
        n = len(values)
        top = float(np.abs(values).max(initial=0.0))
        out = np.zeros(n, np.float32)
        if top > 0.0 and math.isfinite(top):
            step = 2.0 ** (math.frexp(top)[1] - 52 + math.ceil(math.log2(max(2, n))))
            bounds = row_ranges(n, _ROWS)
            args = (values, self._order, step, out)
            map_ranges(_round_to_grid, bounds, *args, n_jobs=self._n_jobs)
        return out


# --- the L-BFGS direction --------------------------------------------------------------------


_MEMORY = 8  # pairs of L-BFGS
_ACROSS = 1.0 / 3.0
_FARTHEST = 32.0  # times the plain step


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

    def __init__(self, reach: float) -> None:
        self._pairs: list[tuple[F64, F64, float]] = []  # step, change of gradient, their product
        self._last: tuple[F64, F64] | None = None  # scores and gradient
        self._reach = self._length = reach

    def arrays(self) -> dict[str, AnyArray]:
        """Return the state after a first direction."""
        assert self._last is not None
        arrays = {
            "quasi_numbers": np.array([self._reach, self._length]),
            "quasi_last": np.array(self._last),
            "quasi_products": np.array([product for _, _, product in self._pairs]),
        }
        if self._pairs:
            arrays["quasi_pairs"] = np.array([pair[:2] for pair in self._pairs])
        return arrays

    @classmethod
    def restore(cls, arrays: Mapping[str, AnyArray]) -> QuasiNewton:
        """Continue from the `arrays` of another run."""
        reach, length = arrays["quasi_numbers"].tolist()
        quasi = cls(reach)
        quasi._length = length
        quasi._last = arrays["quasi_last"][0], arrays["quasi_last"][1]
        products = arrays["quasi_products"].tolist()
        pairs = arrays["quasi_pairs"] if products else ()
        quasi._pairs = [(*pair, product) for pair, product in zip(pairs, products, strict=True)]
        return quasi

    def direction(self, s: F64, g: F64, h: F64) -> F64:
        """Return h d at scores ``s`` with gradient ``g`` and curvature ``h``."""
        present = h > 0.0
        inverse = np.divide(1.0, h, out=np.zeros(len(h)), where=present)
        if self._last is not None:
            self._learn((s - self._last[0]) * present, g, self._last[1], h)
        self._last = s, g.copy()
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
        self._length = min(max(length, length / along * min(1.0, self._reach)), self._reach)
        return np.where(present, h * d * (self._length / length), g)

    def _learn(self, step: F64, g: F64, before: F64, h: F64) -> None:
        """Update the reach and the pairs after a step that changed the gradient ``before``."""
        fall = _dot(before, step)
        if fall >= 0.0:  # the base learner did not descend
            self._pairs, self._reach = [], min(1.0, self._reach)
            return
        derivative = _dot(g, step) / fall
        if derivative < 0.0:
            shrunk = max(1.0 / _FARTHEST, 0.5 / (1.0 - derivative))
            self._pairs, self._reach = [], self._length * shrunk
            return
        if derivative > 0.25:
            grown = min(4.0, 0.75 / max(1.0 - derivative, 0.1))
            self._reach = min(_FARTHEST, self._reach * grown)
        change = g - before
        product, most = _dot(step, change), _dot(step, h * step)
        if product > 0.0:
            missing = max(0.0, most / _FARTHEST - product)  # a lower bound of the curvature
            change = change + missing / most * (h * step)
            self._pairs = [*self._pairs[1 - _MEMORY :], (step, change, product + missing)]

    def _two_loops(self, g: F64, inverse: F64) -> F64:  # (1)
        d, shares = g.copy(), []
        for step, change, product in reversed(self._pairs):
            shares.append(_dot(step, d) / product)
            d -= shares[-1] * change
        d *= inverse
        if self._pairs:
            _, change, product = self._pairs[-1]
            d *= product / _dot(change, inverse * change)
        for (step, change, product), share in zip(self._pairs, reversed(shares), strict=True):
            d += (share - _dot(change, d) / product) * step
        return d


def _dot(a: F64, b: F64) -> float:
    return ordered_sum(a * b)  # the same bits with any BLAS
