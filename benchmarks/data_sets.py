"""Data shared by several areas: public sets below RANKWRIGHT_DATA, and synthetic sets."""

from __future__ import annotations

import lzma
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import sparse

from rankwright import RankingData, evaluate, synthetic
from rankwright.data.ratings import ratings_of_matrix

LETOR_SETS = ("OHSUMED_LETOR3/QueryLevelNorm", "OHSUMED_LETOR3/Feature-null", "MQ2008")


class UnavailableError(Exception):
    """Data or hardware that an area needs is not available; the message says which."""


def data_folder() -> Path:
    """Return the folder of public data sets, named by the variable RANKWRIGHT_DATA."""
    folder = os.environ.get("RANKWRIGHT_DATA")
    if not folder:
        raise UnavailableError("set the variable RANKWRIGHT_DATA to the folder of public data sets")
    return Path(folder)


def train_and_test(shape: str, train: int, test: int) -> tuple[RankingData, RankingData]:
    """Return synthetic data of a shape: queries for training, and other queries for testing."""
    data = synthetic(shape, queries=train + test)
    return data.select(np.arange(train)), data.select(np.arange(train, train + test))


def ndcg(data: RankingData, scores: np.ndarray) -> float:
    """Return NDCG@10 by the standard convention."""
    return evaluate(data, scores, "ndcg@10")["ndcg@10"]


def jester() -> RankingData:
    """Return the ratings of Jester, shifted from -10..10 to 0..20; 99 means not rated."""
    with lzma.open(data_folder() / "Jester1" / "jester-data-1.csv.xz") as stream:
        table = np.loadtxt(stream, delimiter=",")[:, 1:]  # the first column counts the ratings
    rated = table != 99
    matrix = sparse.csr_array((table[rated], np.nonzero(rated)), shape=table.shape)
    return ratings_of_matrix(matrix, shift=-10.0)


class Texts(NamedTuple):
    """A sparse matrix of documents and words, and whether each document is relevant."""

    X: sparse.csr_array
    y: np.ndarray


def sparse_texts(documents: int = 781_265, words: int = 47_236) -> Texts:
    """Return one topic of the shape of RCV1: 0.16 % of the entries, 3.1 % of the documents.

    Word frequencies follow a power law. Relevance is a sparse linear function with noise.
    """
    rng = np.random.default_rng(0)
    sizes = np.clip(np.rint(rng.lognormal(np.log(66.0), 0.5, documents)), 1, words).astype(int)
    indptr = np.concatenate(([0], np.cumsum(sizes))).astype(np.int32)  # as LIBLINEAR needs
    columns = (words * rng.random(indptr[-1]) ** 2.5).astype(np.int32)
    values = (1 + rng.standard_exponential(indptr[-1], np.float32)) * np.log(2 + columns)
    X = sparse.csr_array((values.astype(np.float32), columns, indptr), (documents, words))
    X.sum_duplicates()
    length = np.sqrt(X.multiply(X).sum(axis=1))
    X.data /= np.repeat(length, np.diff(X.indptr)).astype(np.float32)
    utility = X @ np.where(rng.random(words) < 0.02, rng.standard_normal(words), 0.0)
    utility += utility.std() * rng.standard_normal(documents)
    return Texts(X, (utility > np.quantile(utility, 0.969)).astype(float))
