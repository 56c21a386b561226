"""Data that areas share: public sets by their folder, synthetic ones cut into train and test."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from rankwright import RankingData, evaluate, synthetic


class NotHereError(Exception):
    """What an area needs is not at hand; the message says what."""


def data_folder() -> Path:
    """Return the folder of public data sets, for the areas that need one."""
    named = os.environ.get("RANKWRIGHT_DATA")
    if not named:
        raise NotHereError("the variable RANKWRIGHT_DATA names no folder of data sets")
    return Path(named)


def train_and_test(shape: str, train: int, test: int) -> tuple[RankingData, RankingData]:
    """Return so many queries of a shape to learn from, and so many others to be judged on."""
    data = synthetic(shape, queries=train + test)
    return data.select(np.arange(train)), data.select(np.arange(train, train + test))


def ndcg(data: RankingData, scores: np.ndarray) -> float:
    """Return NDCG@10 by the standard convention: the one measure of every contender."""
    return evaluate(data, scores, "ndcg@10")["ndcg@10"]
