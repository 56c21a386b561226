"""Networks against plain PyTorch on padded lists, on the CPU.

The peer is the same network, loss and optimiser as usually written in PyTorch: the lists of a batch
padded to the longest, with a mask. Batches are padded before the clock starts. Seconds are those of
the fastest epoch on 1,000 queries of the mslr10k shape, NDCG@10 on 300 others after as many epochs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from rankwright import Ranker, RankingData, losses
from rankwright.core.parallel import thread_count
from rankwright.models import Network

from .contest import OURS, Results, Row
from .data_sets import ndcg, train_and_test

HIDDEN, LISTS, EPOCHS, ROUNDS = (64, 32), 64, 4, 3
QUERIES, HELD_OUT = 1_000, 300
LOSSES: dict[str, Any] = {
    "ranknet": losses.RankNet(),
    "lambdarank": losses.LambdaRank(),
    "listnet": losses.ListNet(),
    "approx_ndcg": losses.ApproxNDCG(),
}
Tensors = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
"""Features, grades and mask of padded lists."""


def run() -> Results:
    results = Results()
    train, test = train_and_test("mslr10k", QUERIES, HELD_OUT)
    for name in ("ranknet", "listnet"):
        results.add(_against_padded_lists(name, train, test))
    return results


def _against_padded_lists(name: str, train: RankingData, test: RankingData) -> Results:
    settings = f"{HIDDEN}, {LISTS} queries a batch, {EPOCHS} epochs, {thread_count()} threads"
    mean, deviation = train.X.mean(axis=0), train.X.std(axis=0) + 1e-9
    batches = list(padded_batches(train, (train.X - mean) / deviation, LISTS, "cpu"))
    ours, theirs = [], []
    threads = torch.get_num_threads()
    for _ in range(ROUNDS):
        ours.append(our_epoch(name, train, HIDDEN, EPOCHS, LISTS, device="cpu"))
        torch.set_num_threads(thread_count())
        theirs.append(padded_epoch(name, batches, HIDDEN, EPOCHS))
        torch.set_num_threads(threads)
    model, net = ours[-1][1], theirs[-1][1]
    with torch.no_grad():
        scores = net(torch.tensor((test.X - mean) / deviation))[:, 0].double().numpy()
    seconds = [min(taken for taken, _ in runs) for runs in (ours, theirs)]
    task = f"{name}, an epoch of {train.n_documents:,} documents"
    quality = ndcg(test, model.predict(test)), ndcg(test, scores)
    return Results(
        {f"{name}_vs_padded_lists": seconds[1] / seconds[0]},
        [
            Row(task, OURS, settings, seconds[0], quality[0]),
            Row(task, "torch", settings, seconds[1], quality[1]),
        ],
    )


# --- epochs, also for the area gpu ---------------------------------------------------------------


def our_epoch(
    name: str,
    data: RankingData,
    hidden: tuple[int, ...],
    epochs: int,
    lists: int,
    **options: Any,
) -> tuple[float, Ranker]:
    """Return the seconds of the fastest epoch after the first, and the ranker."""
    ends: list[float] = []
    network = Network(
        hidden_layer_sizes=hidden,
        activation="relu",
        epochs=epochs,
        learning_rate=0.001,
        batch_size=round(lists * data.n_documents / data.n_queries),
        **options,
    )
    model = Ranker(loss=LOSSES[name], model=network)
    model.fit(data, progress=lambda *_: ends.append(time.perf_counter()))
    return min(b - a for a, b in pairwise(ends)), model


def padded_batches(data: RankingData, X: np.ndarray, lists: int, device: str) -> Iterator[Tensors]:
    """Yield batches of lists, padded to the longest list of the batch."""
    order = np.random.default_rng(0).permutation(data.n_queries)
    features = torch.tensor(X, dtype=torch.float32, device=device)
    grades = torch.tensor(data.y, device=device).float()
    for first in range(0, data.n_queries, lists):
        batch = order[first : first + lists]
        sizes = torch.tensor(data.sizes[batch], device=device)
        begin = torch.tensor(data.indptr[batch], device=device)
        place = torch.arange(int(sizes.max()), device=device)
        mask = place < sizes[:, None]
        row = torch.where(mask, begin[:, None] + place, 0)
        yield features[row] * mask[:, :, None], grades[row] * mask, mask


def padded_epoch(
    name: str,
    batches: list[Tensors],
    hidden: tuple[int, ...],
    epochs: int,
) -> tuple[float, torch.nn.Module]:
    """Return the seconds of the fastest epoch of plain PyTorch, and the network."""
    device = batches[0][0].device
    layers: list[torch.nn.Module] = []
    for n_in, n_out in pairwise((batches[0][0].shape[2], *hidden)):
        layers += [torch.nn.Linear(n_in, n_out), torch.nn.ReLU()]
    net = torch.nn.Sequential(*layers, torch.nn.Linear(hidden[-1], 1)).to(device)
    adam = torch.optim.AdamW(
        net.parameters(), lr=0.001, weight_decay=0.0, fused=device.type == "cuda"
    )
    seconds = []
    for _ in range(epochs):
        synchronize(device)
        start = time.perf_counter()
        for x, y, mask in batches:
            s = net(x)[:, :, 0]
            adam.zero_grad()
            PADDED[name](s, y, mask).backward()
            adam.step()
        synchronize(device)
        seconds.append(time.perf_counter() - start)
    return min(seconds), net


def synchronize(device: torch.device) -> None:
    """Wait for the work on a GPU."""
    if device.type == "cuda":
        torch.cuda.synchronize()


# --- losses on padded lists ----------------------------------------------------------------------


def _pairs(s: torch.Tensor, y: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    better = (y[:, :, None] > y[:, None, :]) & mask[:, :, None] & mask[:, None, :]
    lead = s[:, :, None] - s[:, None, :]
    if s.is_cuda:  # selecting pairs is slower than a product on a GPU, and faster on a CPU
        return (torch.nn.functional.softplus(-lead) * better).sum()
    return torch.nn.functional.softplus(-lead[better]).sum()


def _lambda_pairs(s: torch.Tensor, y: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    better = (y[:, :, None] > y[:, None, :]) & mask[:, None, :]
    with torch.no_grad():
        gain = torch.where(mask, 2.0**y - 1.0, 0.0)
        rank = s.masked_fill(~mask, -torch.inf).argsort(1, descending=True).argsort(1)
        discount = 1.0 / torch.log2(rank + 2.0)
        ideal = (gain.sort(1, descending=True)[0] / _log_ranks(s)).sum(1)
        change = (gain[:, :, None] - gain[:, None, :]).abs()
        change *= (discount[:, :, None] - discount[:, None, :]).abs()
        change *= better / ideal.clamp(min=1e-9)[:, None, None]
    lead = s[:, :, None] - s[:, None, :]
    return (torch.nn.functional.softplus(-lead) * change).sum()


def _softmax(s: torch.Tensor, y: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    s, y = s.masked_fill(~mask, -torch.inf), y.masked_fill(~mask, -torch.inf)
    target, log_shares = torch.softmax(y, dim=1), torch.log_softmax(s, dim=1)
    return -(target * log_shares.masked_fill(~mask, 0.0)).sum()


def _soft_ranks(s: torch.Tensor, y: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    gain = torch.where(mask, 2.0**y - 1.0, 0.0)
    above = torch.sigmoid((s[:, None, :] - s[:, :, None]) / 0.1) * mask[:, None, :]
    rank = 0.5 + above.sum(2)  # a document is half above itself
    ideal = (gain.sort(1, descending=True)[0] / _log_ranks(s)).sum(1).clamp(min=1e-9)
    return (1.0 - (gain / torch.log2(1.0 + rank)).sum(1) / ideal).sum()


def _log_ranks(s: torch.Tensor) -> torch.Tensor:
    return torch.log2(torch.arange(s.shape[1], device=s.device) + 2.0)


PADDED: dict[str, Callable[..., torch.Tensor]] = {
    "ranknet": _pairs,
    "lambdarank": _lambda_pairs,
    "listnet": _softmax,
    "approx_ndcg": _soft_ranks,
}
