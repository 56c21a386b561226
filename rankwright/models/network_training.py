"""Training of networks with torch: the forward pass, the batches and the steps.

A loss depends only on scores. Autograd passes its gradient g in the scores of a batch back through
the network,

    dJ/dtheta = (ds/dtheta)' g                                                                 (1)

so losses need no second implementation in torch. A step of AdamW (`kingma2015adam`, with the weight
decay of `loshchilov2019adamw`) follows each batch. Because AdamW normalises the gradient, one
learning rate fits losses that differ by orders of magnitude.

A batch is a run of whole queries, the same in every epoch; the order of the batches is sampled from
the seed and the epoch. If the loss is computed on the CPU, a batch is cut into chunks that depend
only on the data. Threads compute the gradients of the chunks, which are added in order, so the
result has the same bytes for any number of threads. If the loss is computed on a GPU, a batch is
one chunk, and features, scores and gradients stay there. Each batch is then recorded as a CUDA
graph in the second epoch and replayed from then on, and the CPU waits for the GPU only once per
epoch.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from rankwright.core.checks import ArraySpec, check_arrays
from rankwright.core.jit import without_collecting
from rankwright.core.openmp import passive_waiting
from rankwright.core.parallel import map_ranges, query_ranges
from rankwright.core.rng import stream
from rankwright.core.types import F64, I64, AnyArray, FloatMatrix, Loss
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.losses.base import (
    bound_loss,
    device_loss,
    load_loss_state,
    loss_state,
    set_iteration,
)

if TYPE_CHECKING:
    from rankwright.models.network import Network, Scaling

with passive_waiting():  # torch may share its OpenMP library with LightGBM
    import torch

_CHUNK_WORK = 1 << 24  # multiplications of a forward pass that are worth a thread
_CHUNK_DOCUMENTS = 2_048, 16_384
_SCORED_DOCUMENTS = 1 << 18  # scored together on the GPU
_MAX_GRAPHS = 2_000
_GPU_SHARE = 1 / 3  # of its free memory, for features
_CPU_BYTES = 1 << 30  # for scaled features
_WORKSPACE = "CUBLAS_WORKSPACE_CONFIG"

_DTYPES = {"single": torch.float32, "double": torch.float64}


def choose_device(device: str) -> str:
    """Return "cpu" or "cuda"."""
    if device != "cpu" and torch.cuda.is_available():
        return "cuda"
    if device == "cuda":
        raise UsageError("torch finds no CUDA device here; use device='cpu' or 'auto'.")
    return "cpu"


@contextmanager
def torch_settings(*, deterministic: bool) -> Iterator[None]:
    """Let each operation use one thread and, on demand, only reproducible algorithms."""
    threads, mode = torch.get_num_threads(), torch.get_deterministic_debug_mode()
    workspace = os.environ.get(_WORKSPACE)
    torch.set_num_threads(1)
    if deterministic:
        os.environ.setdefault(_WORKSPACE, ":4096:8")  # required by torch
        torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(mode)
        torch.set_num_threads(threads)
        if workspace is None:
            os.environ.pop(_WORKSPACE, None)


class Net(torch.nn.Module):  # type: ignore[misc]
    """The forward pass of `rankwright.models.fitted_network`, with dropout.

    Parameters
    ----------
    network
        Activation, list context, dropout and precision.
    weights
        W and b of each layer, and Q, K, V and O of the list context if there is one.
    output_bias
        Whether the bias of the score is learned.
    device
        "cpu" or "cuda".
    """

    def __init__(
        self, network: Network, weights: Sequence[AnyArray], *, output_bias: bool, device: str
    ) -> None:
        super().__init__()
        self.device, self.dtype = device, _DTYPES[network.precision]
        self.heads, self.dropout = int(network.list_context), float(network.dropout)
        self.weights = torch.nn.ParameterList(
            torch.tensor(array, dtype=self.dtype, device=device) for array in weights
        )
        self._activate = getattr(torch.nn.functional, network.activation)
        self._n_layers = (len(weights) - (4 if self.heads else 0)) // 2
        self.weights[2 * self._n_layers - 1].requires_grad_(output_bias)

    def forward(self, x: Any, indptr: I64, noise: Any = None) -> Any:
        """Return the scores of scaled features in lists that begin at ``indptr``.

        With ``noise``, a torch.Generator, units are dropped.
        """
        weights = list(self.weights)
        *hidden, (weight, bias) = [weights[2 * k : 2 * k + 2] for k in range(self._n_layers)]
        for hidden_weight, hidden_bias in hidden:
            x = self._activate(torch.addmm(hidden_bias, x, hidden_weight))
            x = self._drop(x, noise)
        if self.heads:
            x = x + self._drop(self._attend(x, indptr, *weights[-4:]), noise)
        return torch.addmm(bias, x, weight)[:, 0]

    def _attend(self, h: Any, indptr: I64, query: Any, key: Any, value: Any, out: Any) -> Any:
        """Return the sum over the documents of the list that each document attends to."""
        sizes = np.diff(indptr).tolist()
        attended = []
        for q, k, v in zip(*((h @ w).split(sizes) for w in (query, key, value)), strict=True):
            q, k, v = (part.unflatten(1, (self.heads, -1)).transpose(0, 1) for part in (q, k, v))
            attention = torch.softmax(q @ k.transpose(1, 2) / math.sqrt(q.shape[2]), dim=2)
            attended.append((attention @ v).transpose(0, 1).flatten(1))
        return torch.cat(attended) @ out

    def _drop(self, h: Any, noise: Any) -> Any:
        if noise is None:
            return h
        share = 1.0 - self.dropout
        return h * (torch.empty_like(h).bernoulli_(share, generator=noise) / share)


@dataclass(eq=False)
class Chunks:
    """Ranges of queries with their scaled features, as tensors on the device.

    The features remain there if memory suffices. Otherwise they are copied and scaled for each use.

    Parameters
    ----------
    X, rows
        Features, and the row of each document.
    indptr
        Where the lists of the queries begin in ``rows``.
    ranges
        The first query of each chunk and the first query after it.
    """

    X: FloatMatrix
    rows: I64
    indptr: I64
    ranges: Sequence[tuple[int, int]]
    scaling: Scaling
    net: Net

    def __post_init__(self) -> None:
        limit = _CPU_BYTES
        if self.net.device == "cuda":
            limit = torch.cuda.mem_get_info()[0] * _GPU_SHARE
        self.fit_in_memory = math.prod(self.X.shape) * self.net.dtype.itemsize <= limit
        self._features: dict[int, Any] = {}

    def __getitem__(self, number: int) -> tuple[Any, I64]:
        """Return the features of a chunk, scaled in double precision, and where its lists begin."""
        lo, hi = self.ranges[number]
        begin = self.indptr[lo : hi + 1]
        x = self._features.get(number)
        if x is None:
            part = self.X[self.rows[begin[0] : begin[-1]]]
            dense = part.toarray() if sparse.issparse(part) else np.ascontiguousarray(part)
            arrays = (dense, *self.scaling)
            x, shift, deviation = (torch.as_tensor(a, device=self.net.device) for a in arrays)
            x = ((x - shift) / deviation).to(self.net.dtype)
            if self.fit_in_memory:
                self._features[number] = x
        return x, begin - begin[0]


class BatchLoss:
    """A bound loss whose scores and gradients are tensors, on the CPU or on a GPU."""

    def __init__(self, bound: Any, indptr: I64, *, on_gpu: bool, device: str) -> None:
        self.bound, self.on_gpu, self._indptr = bound, on_gpu, indptr
        self.scores = torch.zeros(int(indptr[-1]), dtype=torch.float64, device=device)
        self._gradient = torch.zeros_like(self.scores)
        self._buffers = [self.scores, self._gradient]
        if not on_gpu:  # arrays that share the memory of the tensors
            self._buffers = [tensor.numpy() for tensor in self._buffers]

    def grad_queries(self, lo: int, hi: int, s: Any) -> tuple[Any, Any]:
        """Return the loss of the queries lo:hi and its gradient in their scores ``s``."""
        rows = slice(int(self._indptr[lo]), int(self._indptr[hi]))
        self.scores[rows] = s
        value = self.bound.grad_queries(lo, hi, *self._buffers)
        return value, self._gradient[rows].to(s.device, s.dtype)


def batch_loss(loss: Loss, data: RankingData, device: str, *, n_jobs: int | None) -> BatchLoss:
    """Bind the loss on the device, or on the CPU with a warning if it cannot run on the GPU."""
    bound = bound_loss(loss, data, needs=["grad_queries"], n_jobs=n_jobs)
    bound_on_gpu = device_loss(loss, bound, torch) if device == "cuda" else None
    if bound_on_gpu is None:
        return BatchLoss(bound, data.indptr, on_gpu=False, device="cpu")
    return BatchLoss(bound_on_gpu, data.indptr, on_gpu=True, device=device)


class Trainer:
    """The epochs of a network on one data set.

    Parameters
    ----------
    network
        Epochs, learning rate, schedule, weight decay and batch size.
    net, loss
        The network and the loss of its scores.
    X, rows
        Features, and the row of each document.
    indptr
        Where the lists of the queries begin in ``rows``, in the order in which they fill batches.
    seed
        Of dropout and of the order of the batches.
    """

    def __init__(
        self,
        network: Network,
        net: Net,
        loss: BatchLoss,
        X: FloatMatrix,
        rows: I64,
        indptr: I64,
        scaling: Scaling,
        *,
        seed: int,
        n_jobs: int | None,
    ) -> None:
        self._network, self._net, self._loss = network, net, loss
        self._seed, self._n_jobs, self.epochs = seed, n_jobs, 0
        work = max(1, sum(weight.numel() for weight in net.weights))
        documents = int(np.clip(_CHUNK_WORK // work, *_CHUNK_DOCUMENTS))
        if loss.on_gpu:
            documents = len(rows)
        batches = pairwise(runs_of_queries(indptr, network.batch_size))
        cuts = [lo + query_ranges(indptr[lo : hi + 1], documents) for lo, hi in batches]
        ranges = [chunk for batch in cuts for chunk in pairwise(batch.tolist())]
        first_chunk = np.cumsum([0, *(len(batch) - 1 for batch in cuts)]).tolist()
        self._batches = [range(*chunks) for chunks in pairwise(first_chunk)]
        self._chunks = Chunks(X, rows, indptr, ranges, scaling, net)
        self._values = torch.zeros(len(ranges), dtype=torch.float64, device=loss.scores.device)

        learned = [p for p in net.parameters() if p.requires_grad]
        matrices, biases = ([p for p in learned if p.ndim == ndim] for ndim in (2, 1))
        self.parameters = [*matrices, *biases]
        groups = [
            {"params": matrices, "weight_decay": network.weight_decay},
            {"params": biases, "weight_decay": 0.0},
        ]
        self._optimizer = torch.optim.AdamW(groups, fused=True)
        first, second = ([torch.zeros_like(p) for p in self.parameters] for _ in range(2))
        for p, exp_avg, exp_avg_sq in zip(self.parameters, first, second, strict=True):
            p.grad = torch.zeros_like(p)  # recorded graphs write to it
            step = torch.zeros((), dtype=torch.float32, device=net.device)
            moments = {"step": step, "exp_avg": exp_avg, "exp_avg_sq": exp_avg_sq}
            self._optimizer.state[p] = moments
        weights = [p.detach() for p in self.parameters]
        self._tensors = {"weights": weights, "exp_avg": first, "exp_avg_sq": second}

        self._records = loss.on_gpu and net.device == "cuda" and self._chunks.fit_in_memory
        self._records &= net.dropout == 0.0 and len(cuts) <= _MAX_GRAPHS
        self._is_warm = False  # whether kernels are compiled and features copied
        self._graphs: dict[int, Any] = {}
        self._pool = self._stream = None
        if self._records:
            self._pool = torch.cuda.graph_pool_handle()  # batches never run at the same time
            self._stream = torch.cuda.Stream()

    def epoch(self) -> float:
        """Take a step for each batch; return the loss, computed with the weights of each step."""
        t = self.epochs
        for group in self._optimizer.param_groups:
            group["lr"] = self._network.rate(t)
        set_iteration(self._loss.bound, t)
        for batch in stream(self._seed, "adam", t).permutation(len(self._batches)).tolist():
            self.batch_grad(t, batch)
            self._optimizer.step()
        self.epochs, self._is_warm = t + 1, True
        if not math.isfinite(self._loss.scores.sum().item()):
            raise UsageError(
                f"the network's scores are no longer finite in epoch {t + 1}; "
                "use a smaller learning_rate."
            )
        values = self._values.tolist()
        return math.fsum(math.fsum(values[k] for k in chunks) for chunks in self._batches)

    def batch_grad(self, t: int, batch: int) -> None:
        """Compute the loss of a batch and its gradient in each parameter."""
        if not (self._records and self._is_warm):
            with self._graph_stream():
                self._compute(t, batch)
            return
        if batch not in self._graphs:
            graph = torch.cuda.CUDAGraph()
            # The collector could free the graphs of an earlier fit, which ends a capture.
            with (
                without_collecting(),
                torch.cuda.graph(
                    graph,
                    pool=self._pool,
                    stream=self._stream,
                    capture_error_mode="thread_local",
                ),
            ):
                self._compute(t, batch)
            self._graphs[batch] = graph
        self._graphs[batch].replay()

    @contextmanager
    def _graph_stream(self) -> Iterator[None]:
        """Run work on the stream on which graphs are captured, if there will be any.

        Autograd accumulates on the stream of the first pass. If this is the default stream, the
        capture makes the default stream depend on it, which CUDA refuses.
        """
        if self._stream is None:
            yield
            return
        current = torch.cuda.current_stream()
        self._stream.wait_stream(current)
        with torch.cuda.stream(self._stream):
            yield
        current.wait_stream(self._stream)

    def _compute(self, t: int, batch: int) -> None:
        chunks = self._batches[batch]
        gradients: list[Any] = [None] * len(chunks)

        def work(chunk: int, _: int) -> None:
            gradients[chunk - chunks.start] = self._chunk_grad(t, chunk)

        map_ranges(work, np.arange(chunks.start, chunks.stop + 1), n_jobs=self._n_jobs)
        for parameter, parts in zip(self.parameters, zip(*gradients, strict=True), strict=True):
            parameter.grad.copy_(reduce(torch.add, parts))

    def _chunk_grad(self, t: int, chunk: int) -> Sequence[Any]:
        """Write the loss of a chunk to its place; return its gradient in each parameter."""
        noise = None
        if self._net.dropout > 0.0:
            noise = torch.Generator(device=self._net.device)
            noise.manual_seed(int(stream(self._seed, "dropout", t, chunk).integers(2**62)))
        s = self._net(*self._chunks[chunk], noise)
        self._values[chunk], g = self._loss.grad_queries(*self._chunks.ranges[chunk], s.detach())
        gradients: Sequence[Any] = torch.autograd.grad(s, self.parameters, g)  # (1)
        return gradients

    def weights(self) -> list[Any]:
        """Return copies of the weights of the network."""
        return [weight.detach().clone() for weight in self._net.weights]

    def state(self) -> dict[str, AnyArray]:
        """Return the arrays from which `load_state` continues after the last epoch."""
        arrays = {"epochs": np.array([self.epochs])}
        for name, tensors in self._tensors.items():
            arrays[name] = torch.cat([tensor.flatten() for tensor in tensors]).cpu().numpy()
        return arrays | loss_state(self._loss.bound)

    def load_state(self, state: Mapping[str, AnyArray]) -> None:
        """Continue after the last epoch of another run."""
        arrays = {name: array for name, array in state.items() if not name.startswith("memory.")}
        sizes, dtype = [p.numel() for p in self.parameters], str(self._net.dtype)[len("torch.") :]
        specs = [ArraySpec(name, dtype, (sum(sizes),)) for name in self._tensors]
        check_arrays([*specs, ArraySpec("epochs", "int64", (1,), low=1)], arrays, "the checkpoint")
        self.epochs = int(arrays["epochs"][0])
        for name, tensors in self._tensors.items():
            for tensor, part in zip(tensors, torch.tensor(arrays[name]).split(sizes), strict=True):
                tensor.copy_(part.view_as(tensor))
        for p in self.parameters:
            self._optimizer.state[p]["step"].fill_(self.epochs * len(self._batches))
        load_loss_state(self._loss.bound, state)


def gpu_scorer(net: Net, X: FloatMatrix, indptr: I64, scaling: Scaling) -> Callable[[], F64]:
    """Return a function that computes scores on the GPU with the current weights of ``net``."""
    ranges = [*pairwise(runs_of_queries(indptr, _SCORED_DOCUMENTS))]
    chunks = Chunks(X, np.arange(indptr[-1]), indptr, ranges, scaling, net)

    def scores() -> F64:
        with torch.no_grad():
            parts = [net(*chunks[k]) for k in range(len(ranges))]
        array: F64 = torch.cat(parts).double().cpu().numpy()
        return array

    return scores


def runs_of_queries(indptr: I64, documents: int) -> list[int]:
    """Cut the queries into runs of at most ``documents``, or of one query."""
    cuts, n_queries = [0], len(indptr) - 1
    while cuts[-1] < n_queries:
        end = int(np.searchsorted(indptr, indptr[cuts[-1]] + documents, side="right")) - 1
        cuts.append(max(end, cuts[-1] + 1))
    return cuts
