"""CofiRank on Jester: NDCG@10 against MMMF, implicit's ALS and BPR; and time for all ratings.

For 10, 20 and 50 training ratings a user, drawn at random from 5,000 users who rated 60 jokes or
more, rankers order what is left of each user's ratings; NDCG has the rating, from 0 to 20, as gain.
Every method is tuned in the same way: on three tenths of the training ratings, then fitted to all
of them. Losses, numbers of factors and the grids below were chosen on other users (the first 5,000
of the same permutation; these are the last). Differences are tested by pairs over users.

ALS and BPR see likes, as they are made for: ratings above the middle of the scale, weighted by the
rating for ALS. Where the package ``implicit`` is installed they are its own; otherwise they are
those below, the published algorithms (Hu, Koren and Volinsky 2008; Rendle et al. 2009) with
implicit's sampling, start and defaults. Seconds are those of the last fit, with what was chosen.

``RANKWRIGHT_DATA`` names the folder of Jester1; ``RANKWRIGHT_BENCH_USERS`` takes fewer users.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.util import find_spec
from itertools import product
from typing import Any, NamedTuple

import numba
import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from rankwright import MMMF, CofiRank, RankingData
from rankwright.data.ratings import Ratings
from rankwright.metrics.evaluation import evaluate
from rankwright.metrics.significance import paired_t

from .contest import version
from .data_sets import data_folder
from .findings import OURS, Findings, Record
from .timing import seconds_of

USERS = int(os.environ.get("RANKWRIGHT_BENCH_USERS", "5000"))
TRAINING, NEEDED, PART, MIDDLE = (10, 20, 50), 60, 0.7, 10.0
Scorer = Callable[[RankingData], np.ndarray]


def run() -> Findings:
    path = data_folder() / "Jester1" / "jester-data-1.csv.xz"
    ratings = Ratings().read(path, layout="jester")
    found = Findings()
    found.figures["seconds_for_1810455_ratings"] = seconds_of(CofiRank(n_threads=2).fit, ratings)
    if not _installed():
        found.absent["implicit"] = "implicit is not installed; ALS and BPR are written out here"
    for n in TRAINING:
        found.add(_compare(ratings, n))
    return found


def _compare(ratings: RankingData, n: int) -> Findings:
    many = np.random.default_rng(0).permutation(np.flatnonzero(ratings.sizes >= NEEDED))
    train, test = _draw(ratings.select(np.sort(many[-USERS:])), n, seed=n)
    values, found = {}, Findings()
    task = f"Jester, {USERS:,} users, {n} ratings each"
    for name, method in METHODS.items():
        fitted = method(train, n)
        values[name] = _ndcg(test, fitted.scores(test))
        peer, package = WHO[name]
        if package == "implicit" and not _installed():
            peer, package = f"{name.upper()} as published", "rankwright"
        found.records.append(
            Record(
                task, peer, version(package), fitted.settings, fitted.seconds,
                float(np.nanmean(values[name])), "NDCG@10 of ratings left out",
            )
        )  # fmt: skip
    ours = values.pop("cofirank")
    for name, theirs in values.items():
        tested = paired_t(ours, theirs)
        found.figures[f"ndcg10_x100_minus_{name}_{n}"] = 100.0 * tested.difference
        found.figures[f"p_against_{name}_{n}"] = tested.p_value
    return found


def _installed() -> bool:
    return find_spec("implicit") is not None


def _draw(data: RankingData, n: int, seed: int) -> tuple[RankingData, RankingData]:
    """Return n ratings of each user, drawn at random, and the others."""
    order = np.argsort(data.query_of_row() + np.random.default_rng(seed).random(data.n_documents))
    place = np.arange(data.n_documents) - np.repeat(data.indptr[:-1], data.sizes)
    user = np.repeat(data.qid, data.sizes)

    def of(rows: np.ndarray) -> RankingData:
        rows = np.sort(rows)
        return RankingData.from_arrays(
            data.X[rows], data.y[rows], qid=user[rows], feature_names=data.feature_names
        )

    return of(order[place < n]), of(order[place >= n])


def _ndcg(data: RankingData, scores: np.ndarray) -> np.ndarray:
    return evaluate(data, scores, "ndcg@10", convention="sklearn").per_query["ndcg@10"]


class Fitted(NamedTuple):
    """What a method made of the training ratings, with what it chose, in how many seconds."""

    scores: Scorer
    settings: str
    seconds: float


def _fitted(settings: str, make: Callable[[], Scorer]) -> Fitted:
    made: list[Scorer] = []
    seconds = seconds_of(lambda: made.append(make()))
    return Fitted(made[0], settings, seconds)


def _tuned(make: Callable[..., Scorer], grid: dict[str, list[Any]]) -> Callable[..., Fitted]:
    """Return a method that takes the best point of ``grid`` on part of the training ratings."""

    def fit(train: RankingData, n: int) -> Fitted:
        part, valid = _draw(train, round(PART * n), seed=1)
        points = [dict(zip(grid, point, strict=True)) for point in product(*grid.values())]
        best = max(points, key=lambda p: np.nanmean(_ndcg(valid, make(part, **p)(valid))))
        settings = ", ".join(f"{key}={value}" for key, value in best.items())
        return _fitted(settings, lambda: make(train, **best))

    return fit


# --- ours ------------------------------------------------------------------------------------


def _factors(kind: Any, **params: Any) -> Callable[..., Fitted]:
    """Return a method that chooses l2 on valid; it grows with the root of the lists' length."""

    def fit(train: RankingData, n: int) -> Fitted:
        kept = round(PART * n)
        part, valid = _draw(train, kept, seed=1)
        chosen = kind(**params).fit(part, eval_set=valid).model_.l2 * np.sqrt(n / kept)
        return _fitted(f"l2={chosen:.3g}", lambda: kind(l2=chosen, **params).fit(train).predict)

    return fit


# --- likes -----------------------------------------------------------------------------------


def _likes(data: RankingData) -> sparse.csr_matrix:
    liked = data.y > MIDDLE
    place = data.query_of_row()[liked], sparse.csr_array(data.X).indices[liked]
    shape = data.n_queries, data.n_features
    return sparse.csr_matrix((data.y[liked].astype(np.float32), place), shape=shape)


def _by_products(data: RankingData, U: np.ndarray, V: np.ndarray) -> Scorer:
    number = {user: row for row, user in enumerate(data.qid.tolist())}

    def scores(other: RankingData) -> np.ndarray:
        rows = np.array([number[user] for user in other.qid.tolist()])[other.query_of_row()]
        return np.einsum("ij,ij->i", U[rows], V[sparse.csr_array(other.X).indices])

    return scores


def _als(train: RankingData, *, factors: int, regularization: float, alpha: float) -> Scorer:
    likes = _likes(train)
    try:
        from implicit.cpu.als import AlternatingLeastSquares
    except ImportError:
        U, V = _alternating_least_squares(likes * alpha, factors, regularization)
    else:
        made = AlternatingLeastSquares(factors, regularization, alpha, random_state=0)
        with threadpool_limits(1, "blas"):  # as implicit asks; its own threads do the work
            made.fit(likes, show_progress=False)
        U, V = made.user_factors, made.item_factors
    return _by_products(train, U, V)


def _bpr(train: RankingData, *, factors: int, regularization: float, rate: float) -> Scorer:
    likes = _likes(train)
    try:
        from implicit.cpu.bpr import BayesianPersonalizedRanking
    except ImportError:
        U, V = _pairwise(likes, factors, regularization, rate)
    else:
        made = BayesianPersonalizedRanking(factors, rate, regularization, random_state=0)
        with threadpool_limits(1, "blas"):  # as implicit asks; its own threads do the work
            made.fit(likes, show_progress=False)
        U, V = made.user_factors, made.item_factors
    return _by_products(train, U, V)


def _alternating_least_squares(
    confidence: sparse.csr_matrix, factors: int, l2: float, rounds: int = 15
) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    U, V = (rng.random((n, factors)) * 0.01 for n in confidence.shape)
    columns = sparse.csr_matrix(confidence.T)
    for _ in range(rounds):
        _least_squares(*_arrays(confidence), V, V.T @ V, l2, U)
        _least_squares(*_arrays(columns), U, U.T @ U, l2, V)
    return U, V


def _arrays(matrix: sparse.csr_matrix) -> tuple[np.ndarray, ...]:
    return matrix.indptr, matrix.indices, matrix.data.astype(np.float64)


@numba.njit
def _least_squares(indptr, indices, confidence, Y, YtY, l2, out):
    for u in range(len(indptr) - 1):
        A = YtY + l2 * np.eye(Y.shape[1])
        b = np.zeros(Y.shape[1])
        for j in range(indptr[u], indptr[u + 1]):
            y = Y[indices[j]]
            A += (confidence[j] - 1.0) * np.outer(y, y)
            b += confidence[j] * y
        out[u] = np.linalg.solve(A, b)


def _pairwise(
    likes: sparse.csr_matrix, factors: int, l2: float, rate: float, epochs: int = 100
) -> tuple[np.ndarray, np.ndarray]:
    likes.sort_indices()
    rng = np.random.default_rng(0)
    U, V = ((rng.random((n, factors + 1)) - 0.5) / factors for n in likes.shape)
    U[:, factors] = 1.0  # the last column of V is the bias of an item
    user = np.repeat(np.arange(likes.shape[0]), np.diff(likes.indptr))
    for _ in range(epochs):
        drawn = rng.integers(0, likes.nnz, (likes.nnz, 2))
        _pairwise_epoch(drawn, user, likes.indices, likes.toarray() > 0, rate, l2, U, V)
    return U, V


@numba.njit
def _pairwise_epoch(drawn, user, item, liked, rate, l2, U, V):
    last = U.shape[1] - 1
    for first, second in drawn:
        u, i, j = user[first], item[first], item[second]
        if liked[u, j]:
            continue
        z = 1.0 / (1.0 + np.exp(np.dot(U[u], V[i] - V[j])))
        for f in range(last):
            x = U[u, f]
            U[u, f] += rate * (z * (V[i, f] - V[j, f]) - l2 * x)
            V[i, f] += rate * (z * x - l2 * V[i, f])
            V[j, f] += rate * (-z * x - l2 * V[j, f])
        V[i, last] += rate * (z - l2 * V[i, last])
        V[j, last] += rate * (-z - l2 * V[j, last])


METHODS = {
    "cofirank": _factors(CofiRank),
    "mmmf": _factors(MMMF, levels=10),
    "als": _tuned(
        _als, {"factors": [4, 16], "regularization": [100.0, 300.0, 1000.0], "alpha": [0.1, 1.0]}
    ),
    "bpr": _tuned(_bpr, {"factors": [4, 16], "regularization": [0.1, 0.3], "rate": [0.01, 0.05]}),
}
WHO = {
    "cofirank": (OURS, "rankwright"),
    "mmmf": (f"{OURS}, MMMF", "rankwright"),
    "als": ("implicit ALS", "implicit"),
    "bpr": ("implicit BPR", "implicit"),
}
