"""CofiRank on Jester: NDCG@10 and time against MMMF, implicit's ALS and BPR; recommendations.

For 10, 20 and 50 training ratings a user, drawn at random from 5,000 users who rated 60 jokes or
more, rankers order what is left of each user's ratings; NDCG has the rating, from 0 to 20, as gain.
Every method is tuned in the same way: on three tenths of the training ratings, then fitted to all
of them. Losses, numbers of factors and the grids below were chosen on other users (the first 5,000
of the same permutation; these are the last). Differences are tested by pairs over users.

ALS and BPR see likes, as they are made for: ratings above the middle of the scale, weighted by the
rating for ALS. Where the package ``implicit`` is installed they are its own; otherwise they are
those below, the published algorithms (Hu, Koren and Volinsky 2008; Rendle et al. 2009) with
implicit's sampling, start and defaults. Seconds are the least of three fits with what was chosen,
on all cores.

Recommendations are the best 10 items of every user without those that the user has rated: of our
own model, of implicit's with the same vectors, and by a blocked float32 product with NumPy's
``argpartition``.

``RANKWRIGHT_DATA`` names the folder of Jester1; ``RANKWRIGHT_BENCH_USERS`` takes fewer users;
``RANKWRIGHT_BENCH_LARGE=1`` adds synthetic ratings of 100,000 users, 20,000 items and 10 million
ratings, of which a tenth is left out, with the memory that a fit adds: each contender in a process
of its own, two minutes and 4 GB in all. Penalties there were chosen on another draw.
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
from rankwright.data.ratings import Ratings, ratings_of_matrix
from rankwright.metrics.evaluation import evaluate
from rankwright.metrics.significance import paired_t
from rankwright.models.factorization import FittedFactorization

from .contest import version
from .data_sets import data_folder
from .findings import OURS, Findings, Record
from .timing import apart, least, memory_in_use, peak_memory, seconds_of

USERS = int(os.environ.get("RANKWRIGHT_BENCH_USERS", "5000"))
LARGE = os.environ.get("RANKWRIGHT_BENCH_LARGE", "") not in ("", "0")
TRAINING, NEEDED, PART, MIDDLE = (10, 20, 50), 60, 0.7, 10.0
REPEATS, BEST, BLOCK = 3, 10, 256
Scorer = Callable[[RankingData], np.ndarray]


def run() -> Findings:
    path = data_folder() / "Jester1" / "jester-data-1.csv.xz"
    ratings = Ratings().read(path, layout="jester")
    found = Findings()
    found.figures["seconds_for_1810455_ratings"] = seconds_of(CofiRank(n_jobs=2).fit, ratings)
    if not _installed():
        found.absent["implicit"] = "implicit is not installed; ALS and BPR are written out here"
    for n in TRAINING:
        found.add(_compare(ratings, n))
    for users, items, rated in ((25_000, 100, 70), (20_000, 20_000, 100)):
        found.add(_recommendations(users, items, rated))
    if LARGE:
        found.add(_large())
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
    seconds = {one.peer: one.seconds for one in found.records}
    for name in ("als", "bpr"):
        if _installed():
            found.figures[f"time_vs_{name}_{n}"] = seconds[OURS] / seconds[WHO[name][0]]
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
    seconds = least({"fit": lambda: made.append(make())}, REPEATS, warm_up=False)["fit"]
    return Fitted(made[-1], settings, seconds)


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


def _likes(data: RankingData, middle: float) -> sparse.csr_matrix:
    liked = data.y > middle
    place = data.query_of_row()[liked], sparse.csr_array(data.X).indices[liked]
    shape = data.n_queries, data.n_features
    return sparse.csr_matrix((data.y[liked].astype(np.float32), place), shape=shape)


def _by_products(data: RankingData, U: np.ndarray, V: np.ndarray) -> Scorer:
    number = {user: row for row, user in enumerate(data.qid.tolist())}

    def scores(other: RankingData) -> np.ndarray:
        rows = np.array([number[user] for user in other.qid.tolist()])[other.query_of_row()]
        return np.einsum("ij,ij->i", U[rows], V[sparse.csr_array(other.X).indices])

    return scores


def _als(
    train: RankingData,
    *,
    factors: int,
    regularization: float,
    alpha: float,
    middle: float = MIDDLE,
) -> Scorer:
    likes = _likes(train, middle)
    try:
        from implicit.cpu.als import AlternatingLeastSquares
    except ImportError:
        U, V = _alternating_least_squares(likes * alpha, factors, regularization)
    else:
        made = AlternatingLeastSquares(factors, regularization, alpha, random_state=0)
        U, V = _factors_of_implicit(made, likes)
    return _by_products(train, U, V)


def _bpr(train: RankingData, *, factors: int, regularization: float, rate: float) -> Scorer:
    likes = _likes(train, MIDDLE)
    try:
        from implicit.cpu.bpr import BayesianPersonalizedRanking
    except ImportError:
        U, V = _pairwise(likes, factors, regularization, rate)
    else:
        made = BayesianPersonalizedRanking(factors, rate, regularization, random_state=0)
        U, V = _factors_of_implicit(made, likes)
    return _by_products(train, U, V)


def _factors_of_implicit(model: Any, likes: sparse.csr_matrix) -> tuple[np.ndarray, np.ndarray]:
    with threadpool_limits(1, "blas"):  # as implicit asks; its own threads do the work
        model.fit(likes, show_progress=False)
    return model.user_factors, model.item_factors


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


# --- recommendations -------------------------------------------------------------------------


def _recommendations(users: int, items: int, rated: int) -> Findings:
    """Return the seconds of the best items of all users, of random vectors."""
    rng = np.random.default_rng(0)
    U, V = (rng.normal(size=(n, 10)) for n in (users, items))
    begin = np.arange(users + 1) * rated
    seen = np.concatenate([np.sort(rng.choice(items, rated, replace=False)) for _ in range(users)])
    nothing = np.zeros(users), np.zeros(items)
    ours = FittedFactorization(
        np.arange(users), U, nothing[0], V, nothing[1], begin, seen, n_features=items, l2=1.0
    )
    everyone = np.arange(users)
    matrix = sparse.csr_matrix((np.ones(len(seen), np.float32), seen, begin), (users, items))
    U32, V32 = U.astype(np.float32), V.astype(np.float32)
    calls: dict[str, Callable[[], Any]] = {
        OURS: lambda: ours.best_items(everyone, BEST),
        "NumPy": lambda: _by_argpartition(U32, V32, matrix),
    }
    packages = {OURS: "rankwright", "NumPy": "numpy", "implicit": "implicit"}
    if _installed():
        from implicit.cpu.als import AlternatingLeastSquares

        theirs = AlternatingLeastSquares(10, random_state=0)
        theirs.user_factors, theirs.item_factors = U32, V32
        calls["implicit"] = lambda: theirs.recommend(everyone, matrix, N=BEST)
    with threadpool_limits(1, "blas"):
        seconds = least(calls, REPEATS)
    found = Findings()
    task = f"The best {BEST} of {items:,} items for {users:,} users"
    for peer, taken in seconds.items():
        found.records.append(
            Record(task, peer, version(packages[peer]), "10 factors, rated items left out", taken)
        )
    for peer in (peer for peer in seconds if peer != OURS):
        name = f"recommend_time_vs_{peer.lower()}_{users}x{items}"
        found.figures[name] = seconds[OURS] / seconds[peer]
    return found


def _by_argpartition(U: np.ndarray, V: np.ndarray, rated: sparse.csr_matrix) -> np.ndarray:
    best = np.empty((len(U), BEST), np.int64)
    for begin in range(0, len(U), BLOCK):
        rows = slice(begin, begin + BLOCK)
        scores = U[rows] @ V.T
        own = rated[rows]
        scores[np.repeat(np.arange(len(scores)), np.diff(own.indptr)), own.indices] = -np.inf
        top = np.argpartition(-scores, BEST - 1, axis=1)[:, :BEST]
        order = np.argsort(-np.take_along_axis(scores, top, axis=1), axis=1, kind="stable")
        best[rows] = np.take_along_axis(top, order, axis=1)
    return best


# --- the large shape -------------------------------------------------------------------------

LARGE_SHAPE = 100_000, 20_000, 10_000_000


def _large() -> Findings:
    found, seconds = Findings(), {}
    users, items, ratings = LARGE_SHAPE
    task = f"Synthetic ratings, {users:,} x {items:,}, {ratings:,}"
    values = {}
    for name in ("cofirank", "als") if _installed() else ("cofirank",):
        peer, package = WHO[name]
        seconds[name], added, values[name] = apart(_measure_large, name, 1)
        found.records.append(
            Record(
                task, peer, version(package), LARGE_SETTINGS[name], seconds[name],
                float(np.nanmean(values[name])), "NDCG@10 of ratings left out",
                peak_megabytes=added / 2**20,
            )
        )  # fmt: skip
        found.figures[f"large_megabytes_{name}"] = added / 2**20
    if "als" in seconds:
        found.figures["large_time_vs_als"] = seconds["cofirank"] / seconds["als"]
        tested = paired_t(values["cofirank"], values["als"])
        found.figures["large_ndcg10_x100_minus_als"] = 100.0 * tested.difference
    return found


def _measure_large(name: str, seed: int) -> tuple[float, int, np.ndarray]:
    """Return the seconds and the bytes of a fit, and NDCG of each user's ratings left out."""
    train, test = _made_up(*LARGE_SHAPE, seed)
    fit = _large_als if name == "als" else _large_ours
    fit(train.select(np.arange(500)))  # loads and compiles
    made: list[Scorer] = []
    before = memory_in_use()
    seconds = seconds_of(lambda: made.append(fit(train)))
    return seconds, peak_memory() - before, _ndcg(test, made[0](test))


def _large_ours(train: RankingData) -> Scorer:
    return CofiRank(l2=LARGE_L2).fit(train).predict


def _large_als(train: RankingData) -> Scorer:
    return _als(train, factors=10, regularization=LARGE_PENALTY, alpha=1.0, middle=2.0)


def _made_up(users: int, items: int, ratings: int, seed: int) -> tuple[RankingData, RankingData]:
    """Return 1 to 5 stars of six tastes and noise, popular items rated more often; and a tenth."""
    rng = np.random.default_rng(seed)
    often = np.cumsum(1.0 / np.arange(10, items + 10) ** 0.7)
    busy = np.cumsum(rng.gamma(2.0, size=users))
    draws = rng.random((2, ratings + ratings // 5))
    user, item = (
        np.searchsorted(busy, draws[0] * busy[-1]),
        np.searchsorted(often, draws[1] * often[-1]),
    )
    code = np.unique(user * items + item)
    code = code[np.sort(rng.choice(len(code), min(ratings, len(code)), replace=False))]
    user, item = np.divmod(code, items)
    U, V = (rng.normal(size=(n, 6)).astype(np.float32) for n in (users, items))
    taste = 0.5 * np.einsum("ij,ij->i", U[user], V[item]) + 0.7 * rng.normal(size=items)[item]
    stars = np.clip(np.round(3.0 + taste + rng.normal(size=len(user))), 1, 5)
    left_out = rng.random(len(user)) < 0.1
    left_out[np.flatnonzero(np.diff(user, prepend=-1))] = False  # of each user one is known

    def of(rows: np.ndarray) -> RankingData:
        part = sparse.csr_array((stars[rows], (user[rows], item[rows])), shape=(users, items))
        return ratings_of_matrix(part, shift=1.0)

    return of(~left_out), of(left_out)


LARGE_L2, LARGE_PENALTY = 0.2, 1.0
LARGE_SETTINGS = {
    "cofirank": f"n_factors=10, l2={LARGE_L2}",
    "als": f"factors=10, regularization={LARGE_PENALTY}, likes of 4 stars or more",
}

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
