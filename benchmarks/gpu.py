"""Networks on a GPU against plain PyTorch on padded lists, on the same card. Needs a CUDA GPU.

The network has 512, 256 and 128 units on 136 features, the optimiser is AdamW, and a batch has 500
or 2,000 lists: all of 120 documents, or of 1 to 1,250 as in web search. Seconds are those of the
fastest epoch in TF32. The padded features are on the card before the clock starts.
NDCG@10 of held-out queries is compared with that of the same network trained on the CPU.
"""

from __future__ import annotations

import numpy as np
import torch

from rankwright import RankingData

from .contest import OURS, Results, Row
from .data_sets import UnavailableError, ndcg, train_and_test
from .networks import LOSSES, our_epoch, padded_batches, padded_epoch

HIDDEN, FEATURES, LISTS, EPOCHS, BATCHES = (512, 256, 128), 136, 12_000, 6, (500, 2_000)


def run() -> Results:
    if not torch.cuda.is_available():
        raise UnavailableError("this area needs a GPU, and torch finds no CUDA device")
    torch.set_float32_matmul_precision("high")
    results, rng = Results(), np.random.default_rng(0)
    lengths = np.clip(rng.lognormal(4.55, 0.7, LISTS), 1, 1250).astype(int)
    for shape, sizes in {"equal": np.full(LISTS, 120), "mslr": lengths}.items():
        data = _data(sizes, rng)
        for lists in BATCHES:
            for name in LOSSES:
                results.add(_epochs(name, data, shape, lists))
    torch.set_float32_matmul_precision("highest")
    results.add(_quality())
    return results


def _data(sizes: np.ndarray, rng: np.random.Generator) -> RankingData:
    n = int(sizes.sum())
    X = rng.normal(size=(n, FEATURES)).astype(np.float32)
    y = rng.choice(5, n, p=(0.52, 0.32, 0.13, 0.02, 0.01))  # as often as in MSLR
    return RankingData.from_arrays(X, y, group_sizes=sizes)


def _epochs(name: str, data: RankingData, shape: str, lists: int) -> Results:
    task = f"{name}, lists of {shape} lengths, {lists:,} a batch, tf32"
    settings = f"{HIDDEN}, AdamW, {torch.cuda.get_device_name()}"
    ours, _ = our_epoch(name, data, HIDDEN, EPOCHS, lists, device="cuda")
    results = Results(rows=[Row(task, OURS, settings, ours)])
    try:
        batches = list(padded_batches(data, data.X, lists, "cuda"))
        theirs, _ = padded_epoch(name, batches, HIDDEN, EPOCHS)
    except torch.OutOfMemoryError:
        results.absent[f"torch, {task}"] = "the padded pairs exceed the card's memory"
        torch.cuda.empty_cache()
        return results
    results.rows.append(Row(task, "torch", f"padded, {settings}", theirs))
    results.ratios[f"{name}_{shape}_{lists}_tf32_vs_padded"] = theirs / ours
    return results


def _quality() -> Results:
    """Return NDCG@10 after training on the card, less that after training on the CPU."""
    results = Results()
    train, test = train_and_test("mslr10k", 1_000, 300)
    for name in ("ranknet", "listnet"):
        quality = {}
        for device in ("cuda", "cpu"):
            _, model = our_epoch(name, train, (64, 32), 4, 64, device=device)
            quality[device] = ndcg(test, model.predict(test))
        results.ratios[f"{name}_ndcg10_minus_cpu"] = quality["cuda"] - quality["cpu"]
    return results
