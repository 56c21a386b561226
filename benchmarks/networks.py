"""Networks against plain PyTorch on padded lists, and against RankLib's recorded times.

The peer is the same network, loss and optimiser as anyone writes them in PyTorch: lists of a batch
padded to the longest, a mask, RankNet over all pairs of a list, ListNet as a masked softmax. Its
batches are padded once, before the clock starts, and it has as many threads as we. Figures are of
the best epoch, interleaved, on 1,000 queries of the mslr10k shape, with NDCG@10 on 300 others
after the same number of epochs.

RankLib 2.18 took 41.6 s for RankNet (100 epochs, one hidden layer of 10) and 11.6 s for ListNet
(1,500 epochs, a linear network) on OHSUMED fold 1, on such a machine. Ours have the same networks
and epochs, on data of that fold's size; compiling is left out.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from rankwright import RankingData, ranker, synthetic
from rankwright.core.parallel import thread_count
from rankwright.models import Network

from .contest import version
from .data_sets import ndcg, train_and_test
from .findings import OURS, Findings, Record
from .timing import least

HIDDEN, BATCH_QUERIES, EPOCHS, ROUNDS = (64, 32), 64, 3, 3
QUERIES, HELD_OUT = 1_000, 300
RANKLIB_SECONDS = {"ranknet": 41.6, "listnet": 11.6}
RANKLIB_NETS = {
    "ranknet": {"hidden_layer_sizes": (10,), "activation": "sigmoid", "epochs": 100},
    "listnet": {"hidden_layer_sizes": (), "epochs": 1500, "batch_size": 1_000_000},
}


def run() -> Findings:
    found = _against_padded_lists()
    found.add(_against_ranklib())
    return found


def _against_padded_lists() -> Findings:
    data, test = train_and_test("mslr10k", QUERIES, HELD_OUT)
    mean, deviation = data.X.mean(axis=0), data.X.std(axis=0) + 1e-9
    batches = _padded_batches(data, mean, deviation)
    found = Findings()
    for name, loss in _LOSSES.items():
        ours = theirs = math.inf
        for _ in range(ROUNDS):
            seconds, our_model = _best_epoch(name, data)
            ours = min(ours, seconds)
            seconds, net = _padded_epoch(loss, batches, data.n_features)
            theirs = min(theirs, seconds)
        with torch.no_grad():
            scores = net(torch.tensor((test.X - mean) / deviation))[:, 0].double().numpy()
        found.figures[f"{name}_documents_per_second"] = data.n_documents / ours
        found.figures[f"{name}_vs_padded_lists"] = theirs / ours
        size = f"{HIDDEN}, {BATCH_QUERIES} queries a batch, {EPOCHS + 1} epochs"
        size = f"{size}, {thread_count()} threads, CPU"
        task = f"{name}, an epoch of {data.n_documents:,} documents"
        found.records += [
            Record(
                task, OURS, version("rankwright"), size, ours, ndcg(test, our_model.predict(test))
            ),
            Record(
                task, "PyTorch", version("torch"), f"padded lists, AdamW, {size}", theirs,
                ndcg(test, scores),
            ),
        ]  # fmt: skip
    return found


def _best_epoch(name: str, data: RankingData) -> tuple[float, Any]:
    """Return the seconds of the quickest epoch after the first, and the ranker."""
    ends: list[float] = []
    network = Network(
        hidden_layer_sizes=HIDDEN,
        activation="relu",
        epochs=EPOCHS + 1,
        batch_size=round(BATCH_QUERIES * data.n_documents / data.n_queries),
        device="cpu",
    )
    made = ranker(name, model=network)
    made.fit(data, progress=lambda *_: ends.append(time.perf_counter()))
    return min(b - a for a, b in pairwise(ends)), made


def _against_ranklib() -> Findings:
    data = synthetic("ohsumed", queries=63)  # 9,219 documents in the fold
    found = Findings()
    for name, net in RANKLIB_NETS.items():
        ranker(name, model=Network(**{**net, "epochs": 2})).fit(data)  # compiles
        made = ranker(name, model=Network(device="cpu", **net))
        seconds = least({name: lambda m=made: m.fit(data)}, ROUNDS, warm_up=False)[name]
        found.figures[f"{name}_vs_ranklib"] = RANKLIB_SECONDS[name] / seconds
        task = f"{name}, the size of OHSUMED fold 1"
        settings = ", ".join(f"{key}={value}" for key, value in net.items())
        recorded = f"recorded on the fold itself, {settings}"
        found.records += [
            Record(task, OURS, version("rankwright"), settings, seconds),
            Record(task, "RankLib", "2.18", recorded, RANKLIB_SECONDS[name]),
        ]
    return found


# --- the peer ------------------------------------------------------------------------------------


def _padded_batches(
    data: RankingData, mean: np.ndarray, deviation: np.ndarray
) -> list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    X = (data.X - mean) / deviation
    order = np.random.default_rng(0).permutation(data.n_queries)
    batches = []
    for first in range(0, data.n_queries, BATCH_QUERIES):
        spans = [data.indptr[q : q + 2] for q in order[first : first + BATCH_QUERIES]]
        longest = max(hi - lo for lo, hi in spans)
        x = torch.zeros(len(spans), longest, data.n_features)
        y, mask = torch.zeros(len(spans), longest), torch.zeros(len(spans), longest, dtype=bool)
        for k, (lo, hi) in enumerate(spans):
            x[k, : hi - lo] = torch.tensor(X[lo:hi], dtype=torch.float32)
            y[k, : hi - lo] = torch.tensor(data.y[lo:hi])
            mask[k, : hi - lo] = True
        batches.append((x, y, mask))
    return batches


def _pairs(s: torch.Tensor, y: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    better = (y[:, :, None] > y[:, None, :]) & mask[:, :, None] & mask[:, None, :]
    lead = s[:, :, None] - s[:, None, :]
    return torch.nn.functional.softplus(-lead[better]).sum()


def _softmax(s: torch.Tensor, y: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    s, y = s.masked_fill(~mask, -torch.inf), y.masked_fill(~mask, -torch.inf)
    shares, found = torch.softmax(y, dim=1), torch.log_softmax(s, dim=1)
    return -(shares * found.masked_fill(~mask, 0.0)).sum()


_LOSSES = {"ranknet": _pairs, "listnet": _softmax}


def _padded_epoch(
    loss: Callable[..., torch.Tensor], batches: list[tuple[torch.Tensor, ...]], n_features: int
) -> tuple[float, torch.nn.Module]:
    """Return the seconds of the quickest epoch of plain PyTorch, and the network."""
    before = torch.get_num_threads()
    torch.set_num_threads(thread_count())
    layers: list[torch.nn.Module] = []
    for n_in, n_out in zip((n_features, *HIDDEN[:-1]), HIDDEN, strict=True):
        layers += [torch.nn.Linear(n_in, n_out), torch.nn.ReLU()]
    net = torch.nn.Sequential(*layers, torch.nn.Linear(HIDDEN[-1], 1))
    adam = torch.optim.AdamW(net.parameters(), lr=0.001, weight_decay=0.0)
    seconds = math.inf
    for _ in range(EPOCHS + 1):
        began = time.perf_counter()
        for x, y, mask in batches:
            adam.zero_grad()
            loss(net(x)[:, :, 0], y, mask).backward()
            adam.step()
        seconds = min(seconds, time.perf_counter() - began)
    torch.set_num_threads(before)
    return seconds, net
