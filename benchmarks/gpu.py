"""Networks and losses on a GPU against plain PyTorch on padded lists, on the same card.

The net has 512, 256 and 128 rectifiers on 136 features, the optimiser is AdamW, and a batch has 500
or 2,000 lists: all of 120 documents, or of 1 to 1,250 as web search has them. The peer pads the
lists of a batch to the longest and computes its loss on whole tensors, as anyone writes it; its
padded features lie on the card before the clock starts. Figures are documents a second of the best
epoch of several, in TF32 and in bfloat16; those of a loss that has no usual form in PyTorch are
reported alone. NeuralNDCG is written as in its paper, with 10 rounds of scaling as here, and
SoftRank's ranks as tensors by document. A second peer loops as allRank does: a DataLoader in the
same process pads the lists of each batch and sends them to the card. Losses alone are timed on
2,000 lists of 120 against one core of the CPU beside the card, and metrics (NDCG@10, MAP, MRR and
ERR) on 10,000 against 16 threads. The share of matrix products is what the products of the layers
take by themselves, over the time of an epoch. Streamed features come from the host's memory in each
epoch. NDCG@10 is on held-out queries after the same epochs on the card and on the CPU.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from rankwright import Ranker, RankingData
from rankwright import losses as ours
from rankwright.metrics.evaluation import Evaluator
from rankwright.models import Network, network

from .contest import version
from .data_sets import NotHereError, ndcg, train_and_test
from .findings import OURS, Findings, Record
from .timing import seconds_of

HIDDEN, FEATURES, LISTS, EPOCHS = (512, 256, 128), 136, 12_000, 6
BATCHES = (500, 2_000)
SIZES_OF_NETS = ((128, 64), (512, 256, 128), (2048, 1024, 512))
PRECISIONS = {"tf32": "TF32", "mixed": "bfloat16"}
LOSSES: dict[str, Any] = {
    "ranknet": ours.RankNet(),
    "lambdarank": ours.LambdaRank(),
    "listnet": ours.ListNet(),
    "listmle": ours.ListMLE(),
    "approx_ndcg": ours.ApproxNDCG(),
    "memr": ours.Retarget(),
    "interval": ours.Interval(),
    "neural_ndcg": ours.NeuralNDCG(),
    "softrank": ours.SoftRank(metric="ndcg@10"),
    "dorm": ours.PositionSVM(),
}
SLOW = ("neural_ndcg", "softrank", "dorm")  # 1,000 equal lists in batches of 500 alone
LOOPED = ("ranknet", "listnet")  # by the peer that loops as allRank does
FORMULAS = ("ranknet", "lambdarank", "listnet", "listmle", "approx_ndcg", "neural_ndcg", "softrank")


def run() -> Findings:
    if not torch.cuda.is_available():
        raise NotHereError("torch finds no CUDA device")
    found = Findings()
    rng = np.random.default_rng(0)
    shapes = {"equal": np.full(LISTS, 120), "mslr": _lengths_of_web_search(rng)}
    for shape, sizes in shapes.items():
        data = _data(sizes, rng)
        for name in LOSSES:
            if name in SLOW and shape == "mslr":
                continue
            few = data.select(np.arange(1_000)) if name in SLOW else data
            for lists in BATCHES[: 1 if name in SLOW else None]:
                found.add(_epochs(name, few, shape, lists))
        if shape == "equal":
            found.add(_shares_of_products(data))
            found.add(_loops(data))
            found.add(_streamed(data))
    found.add(_kernels())
    found.add(_metrics())
    found.add(_quality())
    return found


def _lengths_of_web_search(rng: np.random.Generator) -> np.ndarray:
    """Return lengths like those of MSLR-WEB30K: 1 to 1,250, 120 on average."""
    lengths = np.clip(rng.lognormal(4.55, 0.7, LISTS), 1, 1250).astype(int)
    lengths[:2] = 1, 1250
    return lengths


def _data(sizes: np.ndarray, rng: np.random.Generator) -> RankingData:
    n = int(sizes.sum())
    X = rng.normal(size=(n, FEATURES)).astype(np.float32)
    y = rng.choice(5, n, p=(0.52, 0.32, 0.13, 0.02, 0.01))  # shares of MSLR
    return RankingData.from_arrays(X, y, group_sizes=sizes)


# --- epochs of networks --------------------------------------------------------------------------


def _epochs(name: str, data: RankingData, shape: str, lists: int) -> Findings:
    found = Findings()
    padded = None
    for precision, words in PRECISIONS.items():
        task = f"{name}, lists of {shape} lengths, {lists:,} a batch, {words}"
        key = f"{name}_{shape}_{lists}_{precision}"
        settings = f"{HIDDEN}, AdamW, {torch.cuda.get_device_name()}"
        seconds = _our_epoch(name, data, lists, precision)
        found.figures[f"{key}_documents_per_second"] = data.n_documents / seconds
        found.records.append(Record(task, OURS, version("rankwright"), settings, seconds))
        if name not in _PADDED:
            continue
        try:
            padded = padded or list(_padded_batches(data, lists))
            seconds = _padded_epoch(_PADDED[name], padded, precision)
        except torch.OutOfMemoryError:
            found.absent[f"PyTorch, {task}"] = "its pairs of padded lists exceed the card's memory"
            torch.cuda.empty_cache()
            continue
        found.figures[f"{key}_vs_padded"] = seconds / found.records[-1].seconds
        found.records.append(
            Record(task, "PyTorch", version("torch"), f"padded lists, {settings}", seconds)
        )
    return found


def _our_epoch(
    name: str, data: RankingData, lists: int, precision: str, hidden: tuple[int, ...] = HIDDEN
) -> float:
    """Return the seconds of the quickest epoch; the first ones compile and record."""
    ends: list[float] = []
    network = Network(
        hidden_layer_sizes=hidden,
        activation="relu",
        epochs=EPOCHS,
        learning_rate=0.001,
        batch_size=round(lists * data.n_documents / data.n_queries),
        device="cuda",
        precision=precision,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a loss is computed on the CPU
        Ranker(loss=LOSSES[name], model=network).fit(
            data, progress=lambda *_: ends.append(time.perf_counter())
        )
    return min(b - a for a, b in pairwise(ends))


# --- the peer ------------------------------------------------------------------------------------


def _padded_batches(data: RankingData, lists: int) -> Iterator[tuple[torch.Tensor, ...]]:
    order = np.random.default_rng(0).permutation(data.n_queries)
    X, y = torch.tensor(data.X, device="cuda"), torch.tensor(data.y, device="cuda").float()
    for first in range(0, data.n_queries, lists):
        chosen = order[first : first + lists]
        sizes = torch.tensor(data.sizes[chosen], device="cuda")
        begin = torch.tensor(data.indptr[chosen], device="cuda")
        place = torch.arange(int(sizes.max()), device="cuda")
        mask = place < sizes[:, None]
        row = torch.where(mask, begin[:, None] + place, 0)
        yield X[row] * mask[:, :, None], y[row] * mask, mask


def _pairs(s: torch.Tensor, y: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    better = (y[:, :, None] > y[:, None, :]) & mask[:, None, :]
    lead = s[:, :, None] - s[:, None, :]
    return (torch.nn.functional.softplus(-lead) * better).sum()


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
    shares, found = torch.softmax(y, dim=1), torch.log_softmax(s, dim=1)
    return -(shares * found.masked_fill(~mask, 0.0)).sum()


def _likelihood(s: torch.Tensor, y: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    order = y.masked_fill(~mask, -torch.inf).argsort(1, descending=True)
    s = s.masked_fill(~mask, -1e30).gather(1, order)
    below = s.flip(1).logcumsumexp(1).flip(1)
    return ((below - s) * mask.gather(1, order)).sum()


def _soft_ranks(s: torch.Tensor, y: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    gain = torch.where(mask, 2.0**y - 1.0, 0.0)
    above = torch.sigmoid((s[:, None, :] - s[:, :, None]) / 0.1) * mask[:, None, :]
    rank = 0.5 + above.sum(2)  # a document is half above itself
    ideal = (gain.sort(1, descending=True)[0] / _log_ranks(s)).sum(1).clamp(min=1e-9)
    return (1.0 - (gain / torch.log2(1.0 + rank)).sum(1) / ideal).sum()


def _neural_sort(s: torch.Tensor, y: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """NeuralNDCG: the gains by a soft sort, scaled to rows and columns of sum 1, over the ideal."""
    both = mask[:, :, None] & mask[:, None, :]
    n = mask.sum(1)[:, None, None]
    apart = ((s[:, :, None] - s[:, None, :]).abs() * both).sum(2)
    rank = torch.arange(1, s.shape[1] + 1, device=s.device)[None, :, None]
    z = (n + 1 - 2 * rank) * s[:, None, :] - apart[:, None, :]
    sort = torch.softmax(z.masked_fill(~mask[:, None, :], -torch.inf), dim=2) * both
    for _ in range(10):
        sort = sort / sort.sum(1, keepdim=True).clamp(min=1e-10)
        sort = sort / sort.sum(2, keepdim=True).clamp(min=1e-10)
    gain = torch.where(mask, 2.0**y - 1.0, 0.0)
    ideal = (gain.sort(1, descending=True)[0] / _log_ranks(s)).sum(1).clamp(min=1e-9)
    return (1.0 - ((sort @ gain[:, :, None])[:, :, 0] / _log_ranks(s)).sum(1) / ideal).sum()


def _noisy_ranks(s: torch.Tensor, y: torch.Tensor, mask: torch.Tensor, k: int = 10) -> torch.Tensor:
    """SoftRank of NDCG@k: the distribution of each document's rank, one other at a time."""
    gain = torch.where(mask, 2.0**y - 1.0, 0.0)
    above = 0.5 * torch.erfc((s[:, :, None] - s[:, None, :]) / 2.0) * mask[:, None, :]
    above = above * ~torch.eye(s.shape[1], dtype=torch.bool, device=s.device)
    chance = torch.zeros((*s.shape, k), dtype=s.dtype, device=s.device)
    chance[:, :, 0] = 1.0
    for j in range(s.shape[1]):
        p = above[:, :, j, None]
        chance = (1.0 - p) * chance + p * torch.nn.functional.pad(chance, (1, 0))[:, :, :k]
    discount = 1.0 / _log_ranks(s)[:k]
    ideal = (gain.sort(1, descending=True)[0][:, :k] * discount).sum(1).clamp(min=1e-9)
    return (1.0 - (gain * (chance * discount).sum(2)).sum(1) / ideal).sum()


def _log_ranks(s: torch.Tensor) -> torch.Tensor:
    return torch.log2(torch.arange(s.shape[1], device=s.device) + 2.0)


_PADDED: dict[str, Callable[..., torch.Tensor]] = {
    "ranknet": _pairs,
    "lambdarank": _lambda_pairs,
    "listnet": _softmax,
    "listmle": _likelihood,
    "approx_ndcg": _soft_ranks,
    "neural_ndcg": _neural_sort,
    "softrank": _noisy_ranks,
}


def _padded_epoch(
    loss: Callable[..., torch.Tensor],
    batches: Iterable[tuple[torch.Tensor, ...]],
    precision: str,
    epochs: int = EPOCHS,
) -> float:
    """Return the seconds of the quickest epoch of plain PyTorch, of batches on the card or not."""
    torch.set_float32_matmul_precision("high")
    layers: list[torch.nn.Module] = []
    for n_in, n_out in pairwise((FEATURES, *HIDDEN)):
        layers += [torch.nn.Linear(n_in, n_out), torch.nn.ReLU()]
    net = torch.nn.Sequential(*layers, torch.nn.Linear(HIDDEN[-1], 1)).cuda()
    adam = torch.optim.AdamW(net.parameters(), lr=0.001, weight_decay=0.0, fused=True)
    seconds = math.inf
    for _ in range(epochs):
        torch.cuda.synchronize()
        began = time.perf_counter()
        for batch in batches:
            x, y, mask = (part.to("cuda", non_blocking=True) for part in batch)
            with torch.autocast("cuda", torch.bfloat16, enabled=precision == "mixed"):
                s = net(x)[:, :, 0].float()
            adam.zero_grad()
            loss(s, y, mask).backward()
            adam.step()
        torch.cuda.synchronize()
        seconds = min(seconds, time.perf_counter() - began)
    torch.set_float32_matmul_precision("highest")
    return seconds


class _Lists(torch.utils.data.Dataset):  # type: ignore[type-arg]
    """Lists that are padded when they are asked for."""

    def __init__(self, data: RankingData) -> None:
        self._data, self._most = data, int(data.sizes.max())

    def __len__(self) -> int:
        return self._data.n_queries

    def __getitem__(self, q: int) -> tuple[torch.Tensor, ...]:
        rows = slice(*self._data.indptr[q : q + 2].tolist())
        n = rows.stop - rows.start
        x = np.zeros((self._most, FEATURES), np.float32)
        y, mask = np.zeros(self._most, np.float32), np.zeros(self._most, bool)
        x[:n], y[:n], mask[:n] = self._data.X[rows], self._data.y[rows], True
        return torch.from_numpy(x), torch.from_numpy(y), torch.from_numpy(mask)


def _loops(data: RankingData) -> Findings:
    """Return epochs of the loop of allRank's kind."""
    found, lists = Findings(), BATCHES[0]
    loader = torch.utils.data.DataLoader(
        _Lists(data), batch_size=lists, shuffle=True, pin_memory=True
    )
    for name in LOOPED:
        task = f"{name}, lists of equal lengths, {lists:,} a batch, {PRECISIONS['tf32']}"
        seconds = _padded_epoch(_PADDED[name], loader, "tf32", epochs=2)
        ours = _our_epoch(name, data, lists, "tf32")
        found.figures[f"{name}_equal_{lists}_tf32_vs_loader"] = seconds / ours
        settings = f"padded lists from a DataLoader as in allRank, {HIDDEN}, AdamW"
        found.records.append(Record(task, "PyTorch", version("torch"), settings, seconds))
    return found


# --- what else is asked --------------------------------------------------------------------------


def _shares_of_products(data: RankingData) -> Findings:
    """Return the share of an epoch that the products of the layers take, for three nets."""
    found = Findings()
    lists = BATCHES[-1]
    for hidden in SIZES_OF_NETS:
        whole = _our_epoch("ranknet", data, lists, "tf32", hidden)
        documents = lists * data.n_documents // data.n_queries
        alone = _products(hidden, documents) * data.n_documents / documents
        found.figures[f"share_of_products_{'_'.join(map(str, hidden))}"] = alone / whole
    return found


def _products(hidden: tuple[int, ...], documents: int) -> float:
    """Return the seconds of the products of a step: forward, and back to weights and inputs."""
    torch.set_float32_matmul_precision("high")
    ends = (FEATURES, *hidden)
    made = [
        (torch.randn(documents, a, device="cuda"), torch.randn(a, b, device="cuda"))
        for a, b in pairwise(ends)
    ]

    def step() -> None:
        for number, (x, weight) in enumerate(made):
            back = x @ weight
            x.T @ back
            if number:
                back @ weight.T
        torch.cuda.synchronize()

    step()
    seconds = min(seconds_of(step) for _ in range(10))
    torch.set_float32_matmul_precision("highest")
    return seconds


def _streamed(data: RankingData) -> Findings:
    """Return documents a second where features may not stay on the card."""
    found, share = Findings(), network._SHARE_OF_GPU
    network._SHARE_OF_GPU = 0.0
    try:
        seconds = _our_epoch("listnet", data, BATCHES[-1], "tf32")
    finally:
        network._SHARE_OF_GPU = share
    found.figures["listnet_streamed_documents_per_second"] = data.n_documents / seconds
    return found


def _metrics() -> Findings:
    """Return how many times as fast as 16 threads the metrics of scores on the card are."""
    found, rng = Findings(), np.random.default_rng(2)
    data = _data(np.full(10_000, 120), rng)
    s = rng.normal(size=data.n_documents)
    evaluator = Evaluator(data, "ndcg@10,map,mrr,err(max=4)", n_jobs=16)
    there, on_card = evaluator.on_device(torch), torch.tensor(s, device="cuda")
    means = list(evaluator.means(s).values())
    worst = float(np.abs(there.means(on_card).cpu().numpy() - means).max())
    threads = min(seconds_of(evaluator.means, s) for _ in range(3))
    card = min(seconds_of(lambda: there.means(on_card).tolist()) for _ in range(5))
    found.figures["metrics_vs_16_threads"] = threads / card
    found.figures["metrics_largest_difference"] = worst
    return found


def _kernels() -> Findings:
    """Return how many times as fast as one core of the CPU the losses alone are."""
    found = Findings()
    rng = np.random.default_rng(1)
    data = _data(np.full(BATCHES[-1], 120), rng)
    s = rng.normal(size=data.n_documents)
    there, out = torch.tensor(s, device="cuda"), torch.empty(len(s), device="cuda").double()
    gradient = np.empty(len(s))
    for name in (*FORMULAS, "memr", "interval", "dorm"):
        bound = LOSSES[name].bind(data, n_jobs=1)
        bound.grad(s, gradient)
        core = min(seconds_of(bound.grad, s, gradient) for _ in range(3))
        loss = bound.on_device(torch)
        card = math.inf
        for _ in range(5):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            loss.grad_queries(0, data.n_queries, there, out)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                loss.grad_queries(0, data.n_queries, there, out)
            begin.record()
            graph.replay()
            end.record()
            torch.cuda.synchronize()
            card = min(card, begin.elapsed_time(end) / 1000.0)
        worst = float(np.abs(out.cpu().numpy() - gradient).max() / np.abs(gradient).max())
        found.figures[f"{name}_kernel_vs_one_core"] = core / card
        found.figures[f"{name}_kernel_milliseconds"] = 1000.0 * card
        found.figures[f"{name}_largest_difference"] = worst
    return found


def _quality() -> Findings:
    """Return what the card learns less what the CPU learns, in NDCG@10."""
    found = Findings()
    train, test = train_and_test("mslr10k", 1_000, 300)
    for name in ("ranknet", "listnet"):
        scores = {}
        for device in ("cuda", "cpu"):
            net = Network(
                hidden_layer_sizes=(64, 32), activation="relu", epochs=4, batch_size=8192,
                device=device,
            )  # fmt: skip
            made = Ranker(loss=LOSSES[name], model=net).fit(train)
            scores[device] = ndcg(test, made.predict(test))
        found.figures[f"{name}_ndcg10_minus_cpu"] = scores["cuda"] - scores["cpu"]
    return found
