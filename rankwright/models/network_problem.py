"""A network, a loss on scores and the data, as Adam sees them: gradients by batches of queries.

The loss knows scores alone. Its gradient g in the scores of a batch goes back through the network,

    dJ/dtheta = (ds/dtheta)' g                                                                 (1)

which is torch's part, so that losses have no twin in torch. Queries stand one after the other in a
seeded order; a batch is a run of whole queries of about ``batch_size`` documents, and a chunk
a part of it. Chunks are worked on by threads, one thread of torch each, and their gradients added
in order: the same bytes for any number of threads. On a GPU a batch is one chunk, and the threads
share the work of the loss.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from itertools import pairwise
from typing import Any

import numpy as np

from rankwright.core.parallel import map_ranges, thread_count
from rankwright.core.rng import stream
from rankwright.core.types import F64, I64, AnyArray, Callback, FloatMatrix
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.losses.base import set_iteration
from rankwright.models.network_design import Design
from rankwright.solvers.adam import Arrays, load_torch

_CHUNK_WORK = 1 << 24  # multiplications of a forward pass: enough for a thread to be worth it
_CHUNK_DOCUMENTS = 2_048, 16_384
_KEPT_CELLS = 1 << 28  # scaled features are kept up to a gigabyte, and made anew each time beyond


class NetworkProblem:
    """(1) on one data set.

    Parameters
    ----------
    design, weights
        The network, and where it begins.
    X, rows
        Features, and which row of them each document of ``ordered`` has.
    ordered
        Queries in the order in which batches take them; without features.
    loss
        The loss, bound to ``ordered``.
    data
        The caller's data, which the callback is shown the scores of.
    """

    def __init__(
        self,
        design: Design,
        weights: Arrays,
        X: FloatMatrix,
        rows: I64,
        ordered: RankingData,
        loss: Any,
        data: RankingData,
        *,
        batch_size: int,
        device: str,
        precision: str,
        seed: int,
        n_jobs: int | None,
    ) -> None:
        self._torch = torch = load_torch()
        self._design, self._X, self._rows = design, X, rows
        self._loss, self._data, self._indptr = loss, data, ordered.indptr
        self._seed, self._n_jobs, self._device = seed, thread_count(n_jobs), device
        self._mixed = precision == "mixed" and device == "cuda"
        self._dtype = torch.float64 if precision == "double" else torch.float32
        self._all = [
            torch.tensor(array, dtype=self._dtype, device=device, requires_grad=True)
            for array in weights
        ]
        self._fixed = None if design.output_bias else 2 * len(design.sizes) - 1
        self.parameters = [p for k, p in enumerate(self._all) if k != self._fixed]
        self.decayed = [p.ndim == 2 for p in self.parameters]
        work = max(1, sum(array.size for array in weights))
        per_chunk = int(np.clip(_CHUNK_WORK // work, *_CHUNK_DOCUMENTS))
        self._cut(batch_size, len(rows) if device == "cuda" else per_chunk)
        self._kept: dict[int, Any] | None = {} if math.prod(X.shape) <= _KEPT_CELLS else None
        self._score, self._slope = np.zeros(len(rows)), np.zeros(len(rows))

    def _cut(self, batch_size: int, chunk_documents: int) -> None:
        """Cut the queries into batches, and these into chunks."""
        batches = runs_of_queries(self._indptr, 0, len(self._indptr) - 1, batch_size)
        cuts = [_even_parts(self._indptr, lo, hi, chunk_documents) for lo, hi in pairwise(batches)]
        self.n_batches = len(cuts)
        self._chunks = [span for cut in cuts for span in pairwise(cut)]
        self._begin = np.concatenate(([0], np.cumsum([len(cut) - 1 for cut in cuts])))

    def begin_epoch(self, t: int) -> None:
        """Draw the noise of epoch ``t``, where the loss has any."""
        set_iteration(self._loss, t)

    def state(self) -> dict[str, AnyArray]:
        """Return what the loss remembers beside the scores."""
        memory: dict[str, AnyArray] = self._loss.state() if hasattr(self._loss, "state") else {}
        return memory

    def load_state(self, kept: Mapping[str, AnyArray]) -> None:
        """Let the loss remember what was kept."""
        self._loss.load_state(kept)

    def batch_grad(self, t: int, batch: int) -> tuple[float, list[Any]]:
        """Return the loss of a batch and its gradient in each parameter."""
        first, last = self._begin[batch : batch + 2].tolist()
        found: list[Any] = [None] * (last - first)

        def work(lo: int, hi: int) -> None:
            for chunk in range(lo, hi):
                found[chunk - first] = self._chunk_grad(t, chunk)

        map_ranges(work, np.arange(first, last + 1), n_jobs=self._n_jobs)
        total = list(found[0][1])
        for _, gradient in found[1:]:
            for whole, part in zip(total, gradient, strict=True):
                whole += part
        return math.fsum(value for value, _ in found), total

    def weights(self, changing: Arrays | None = None) -> Arrays:
        """Return the weights as they are, or with ``changing`` in place of the parameters."""
        if changing is None:
            return tuple(p.detach().cpu().numpy() for p in self._all)
        given = iter(changing)
        return tuple(
            self._all[k].detach().cpu().numpy() if k == self._fixed else next(given)
            for k in range(len(self._all))
        )

    def watched_scores(self, callback: Callback) -> tuple[F64 | None, F64 | None]:
        """Return the scores on train and valid, those that ``callback`` wants."""
        if not callback.wants_train and callback.valid is None:
            return None, None
        now = self._design.fitted(self.weights())
        threads = self._n_jobs
        train = now.scores_of(self._data, n_jobs=threads) if callback.wants_train else None
        valid = None if callback.valid is None else now.scores_of(callback.valid, n_jobs=threads)
        return train, valid

    # --- a chunk -----------------------------------------------------------------------------

    def _chunk_grad(self, t: int, chunk: int) -> tuple[float, tuple[Any, ...]]:
        torch = self._torch
        lo, hi = self._chunks[chunk]
        rows = slice(int(self._indptr[lo]), int(self._indptr[hi]))
        noise = None
        if self._design.dropout > 0.0:
            noise = torch.Generator(device=self._device)
            noise.manual_seed(int(stream(self._seed, "dropout", t, chunk).integers(2**62)))
        with self._precision():
            s = self.forward(self._features(chunk), self._indptr[lo : hi + 1] - rows.start, noise)
        self._score[rows] = s.detach().to("cpu", torch.float64).numpy()
        if not math.isfinite(self._score[rows].sum()):
            raise UsageError(
                f"the network's scores are no longer finite in epoch {t + 1}; "
                "use a smaller learning_rate."
            )
        value = self._loss_of(lo, hi)
        g = torch.from_numpy(self._slope[rows]).to(self._device, s.dtype)
        return value, torch.autograd.grad(s, self.parameters, g)  # (1)

    def _loss_of(self, lo: int, hi: int) -> float:
        """Write the loss's gradient of the queries lo:hi and return its value."""
        if self._device == "cpu":  # a thread among others
            value: float = self._loss.grad_queries(lo, hi, self._score, self._slope)
            return value
        bounds = _even_parts(self._indptr, lo, hi, _CHUNK_DOCUMENTS[0] // 2)
        values = np.zeros(hi)

        def work(first: int, last: int) -> None:
            values[first] = self._loss.grad_queries(first, last, self._score, self._slope)

        map_ranges(work, bounds, n_jobs=self._n_jobs)
        return math.fsum(values)

    def forward(self, x: Any, indptr: I64, noise: Any = None) -> Any:
        """Return the scores of scaled features ``x``, whose lists begin at ``indptr``."""
        torch, design = self._torch, self._design
        activate = _activation(torch, design.activation)
        last = len(design.sizes) - 1
        for layer in range(last):
            weight, bias = self._all[2 * layer : 2 * layer + 2]
            x = self._dropped(activate(torch.addmm(bias, x, weight)), noise)
        if design.heads:
            x = x + self._dropped(self._looked_up(x, indptr), noise)
        weight, bias = self._all[2 * last : 2 * last + 2]
        with torch.autocast(self._device, enabled=False):  # in bfloat16 near scores would be equal
            return torch.addmm(bias, x.to(bias.dtype), weight)[:, 0]

    def _looked_up(self, h: Any, indptr: I64) -> Any:
        """Return what each document sees in its list."""
        torch, heads = self._torch, self._design.heads
        query, key, value, out = self._all[-4:]
        cut = np.diff(indptr).tolist()
        found = []
        for q, k, v in zip(*((h @ w).split(cut) for w in (query, key, value)), strict=True):
            q, k, v = (part.unflatten(1, (heads, -1)).transpose(0, 1) for part in (q, k, v))
            shares = torch.softmax(q @ k.transpose(1, 2) / math.sqrt(q.shape[2]), dim=2)
            found.append((shares @ v).transpose(0, 1).flatten(1))
        return torch.cat(found) @ out

    def _dropped(self, h: Any, noise: Any) -> Any:
        if noise is None:
            return h
        keep = 1.0 - self._design.dropout
        return h * (self._torch.empty_like(h).bernoulli_(keep, generator=noise) / keep)

    def _features(self, chunk: int) -> Any:
        """Return the scaled features of a chunk."""
        if self._kept is not None and chunk in self._kept:
            return self._kept[chunk]
        lo, hi = self._chunks[chunk]
        part: Any = self._X[self._rows[self._indptr[lo] : self._indptr[hi]]]
        wide = part if isinstance(part, np.ndarray) else part.toarray()
        scaled = (wide.astype(np.float64) - self._design.shift) / self._design.deviation
        made = self._torch.tensor(scaled, dtype=self._dtype, device=self._device)
        if self._kept is not None:
            self._kept[chunk] = made
        return made

    def _precision(self) -> AbstractContextManager[Any]:
        if not self._mixed:
            return nullcontext()
        autocast: AbstractContextManager[Any] = self._torch.autocast(
            "cuda", dtype=self._torch.bfloat16
        )
        return autocast


def runs_of_queries(indptr: I64, lo: int, hi: int, documents: int) -> I64:
    """Return where to cut the queries lo:hi into runs of at most ``documents``, or one query."""
    cuts = [lo]
    while cuts[-1] < hi:
        room = int(indptr[cuts[-1]]) + documents
        end = int(np.searchsorted(indptr[: hi + 1], room, side="right")) - 1
        cuts.append(min(max(end, cuts[-1] + 1), hi))
    return np.array(cuts, np.int64)


def _even_parts(indptr: I64, lo: int, hi: int, documents: int) -> I64:
    """Return where to cut the queries lo:hi into as few parts of about ``documents`` as will do."""
    first, last = int(indptr[lo]), int(indptr[hi])
    pieces = math.ceil((last - first) / documents)
    goals = first + (last - first) * np.arange(1, pieces) / max(1, pieces)
    inner = np.searchsorted(indptr, goals)
    return np.unique(np.concatenate(([lo], np.clip(inner, lo, hi), [hi]))).astype(np.int64)


def _activation(torch: Any, name: str) -> Any:
    return torch.nn.functional.elu if name == "elu" else getattr(torch, name)
