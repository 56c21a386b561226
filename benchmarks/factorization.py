"""CofiRank on Jester: NDCG@10 and time against MMMF, implicit's ALS and BPR; recommendations.

5,000 users who rated 60 jokes or more; 10 or 50 ratings of each, drawn at random, are for training
and the others for NDCG@10, with the rating (0 to 20) as gain. Every method is tuned on three tenths
of the training ratings and then fitted to all of them, three times, on all cores. The grids were
chosen on other users. ALS and BPR see likes: ratings above the middle of the scale.

*Recommendations* are the 10 best items of every user, rated items left out: of our model, and of
implicit's with the same vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from rankwright import MMMF, CofiRank, RankingData, evaluate
from rankwright.models.best_items import best_items

from .contest import OURS, Contender, Results, Row, contest
from .data_sets import jester
from .timing import least, seconds_of

USERS, TRAINING, RATED, PART, MIDDLE = 5000, (10, 50), 60, 0.7, 10.0
REPEATS, BEST = 3, 10
SHAPES = ((25_000, 100, 70), (20_000, 20_000, 100))  # users, items and ratings of each user
Scorer = Callable[[RankingData], np.ndarray]


class Fitted(NamedTuple):
    """The scorer of a tuned method, the chosen settings, and the seconds of a fit."""

    scores: Scorer
    settings: str
    seconds: float


def run() -> Results:
    ratings = jester()
    results = Results()
    results.ratios["seconds_for_1810455_ratings"] = seconds_of(
        lambda: CofiRank(n_jobs=2).fit(ratings)
    )
    for n in TRAINING:
        results.add(_compare(ratings, n))
    for shape in SHAPES:
        results.add(_recommendations(*shape))
    return results


# --- ratings -------------------------------------------------------------------------------------


def _compare(ratings: RankingData, n: int) -> Results:
    users = np.random.default_rng(0).permutation(np.flatnonzero(ratings.sizes >= RATED))
    train, test = _split(ratings.select(np.sort(users[-USERS:])), n, seed=n)
    results = Results()
    for tool, method in METHODS.items():
        try:
            fitted = method(train, n)
        except Exception as error:
            results.add_failure(tool, error)
            continue
        about = tool, fitted.settings, fitted.seconds
        quality = float(np.nanmean(_ndcg(test, fitted.scores(test))))
        task = f"Jester, {USERS:,} users, {n} ratings each"
        results.rows.append(Row(task, *about, quality, "NDCG@10 of the other ratings"))
    quality = {row.tool: row.quality for row in results.rows}
    if "implicit, ALS" in quality:
        results.set_ratio(f"time_vs_als_{n}", OURS, "implicit, ALS")
        lead = quality[OURS] - quality["implicit, ALS"]
        results.ratios[f"ndcg10_x100_minus_als_{n}"] = 100.0 * lead
    return results


def _split(data: RankingData, n: int, seed: int) -> tuple[RankingData, RankingData]:
    """Return n ratings of each user, drawn at random, and the others."""
    order = np.argsort(data.query_of_row() + np.random.default_rng(seed).random(data.n_documents))
    place = np.arange(data.n_documents) - np.repeat(data.indptr[:-1], data.sizes)
    user = np.repeat(data.qid, data.sizes)

    def part(rows: np.ndarray) -> RankingData:
        rows = np.sort(rows)
        return RankingData.from_arrays(
            data.X[rows], data.y[rows], qid=user[rows], feature_names=data.feature_names
        )

    return part(order[place < n]), part(order[place >= n])


def _ndcg(data: RankingData, scores: np.ndarray) -> np.ndarray:
    return evaluate(data, scores, "ndcg@10", convention="sklearn").per_query["ndcg@10"]


def _timed(settings: str, fit: Callable[[], Scorer]) -> Fitted:
    scorers: list[Scorer] = []
    seconds = least({"fit": lambda: scorers.append(fit())}, REPEATS, warm_up=False)["fit"]
    return Fitted(scorers[-1], settings, seconds)


def _ours(kind: Any, **params: Any) -> Callable[[RankingData, int], Fitted]:
    """Return a method that chooses l2 on validation ratings."""

    def fit(train: RankingData, n: int) -> Fitted:
        part_size = round(PART * n)
        part, valid = _split(train, part_size, seed=1)
        # The best l2 grows with the root of the number of ratings.
        l2 = kind(**params).fit(part, eval_set=valid).model_.l2 * np.sqrt(n / part_size)
        return _timed(f"l2={l2:.3g}", lambda: kind(l2=l2, **params).fit(train).predict)

    return fit


def _tuned(
    fit_once: Callable[..., Scorer], grid: dict[str, list[Any]]
) -> Callable[[RankingData, int], Fitted]:
    """Return a method that chooses the best point of ``grid`` on validation ratings."""

    def fit(train: RankingData, n: int) -> Fitted:
        part, valid = _split(train, round(PART * n), seed=1)
        points = [dict(zip(grid, point, strict=True)) for point in product(*grid.values())]
        best = max(points, key=lambda p: np.nanmean(_ndcg(valid, fit_once(part, **p)(valid))))
        settings = ", ".join(f"{key}={value}" for key, value in best.items())
        return _timed(settings, lambda: fit_once(train, **best))

    return fit


def _als(train: RankingData, *, factors: int, regularization: float, alpha: float) -> Scorer:
    from implicit.cpu.als import AlternatingLeastSquares

    model = AlternatingLeastSquares(factors, regularization, alpha, random_state=0)
    return _fit_implicit(model, train)


def _bpr(train: RankingData, *, factors: int, regularization: float, rate: float) -> Scorer:
    from implicit.cpu.bpr import BayesianPersonalizedRanking

    model = BayesianPersonalizedRanking(factors, rate, regularization, random_state=0)
    return _fit_implicit(model, train)


def _fit_implicit(model: Any, train: RankingData) -> Scorer:
    liked = train.y > MIDDLE
    place = train.query_of_row()[liked], sparse.csr_array(train.X).indices[liked]
    shape = train.n_queries, train.n_features
    likes = sparse.csr_matrix((train.y[liked].astype(np.float32), place), shape=shape)
    with threadpool_limits(1, "blas"):  # as implicit asks for
        model.fit(likes, show_progress=False)
    row_of_user = {user: row for row, user in enumerate(train.qid.tolist())}

    def scores(data: RankingData) -> np.ndarray:
        rows = np.array([row_of_user[user] for user in data.qid.tolist()])[data.query_of_row()]
        items = sparse.csr_array(data.X).indices
        return np.einsum("ij,ij->i", model.user_factors[rows], model.item_factors[items])

    return scores


METHODS: dict[str, Callable[[RankingData, int], Fitted]] = {
    OURS: _ours(CofiRank),
    f"{OURS}, MMMF": _ours(MMMF, levels=10),
    "implicit, ALS": _tuned(
        _als, {"factors": [4, 16], "regularization": [100.0, 300.0, 1000.0], "alpha": [0.1, 1.0]}
    ),
    "implicit, BPR": _tuned(
        _bpr, {"factors": [4, 16], "regularization": [0.1, 0.3], "rate": [0.01, 0.05]}
    ),
}


# --- recommendations -----------------------------------------------------------------------------


def _recommendations(users: int, items: int, rated: int) -> Results:
    rng = np.random.default_rng(0)
    U, V = (rng.normal(size=(n, 10)) for n in (users, items))
    begin = np.arange(users + 1) * rated
    seen = np.concatenate([np.sort(rng.choice(items, rated, replace=False)) for _ in range(users)])
    everyone = np.arange(users)
    parts = U, np.zeros(users), V, np.zeros(items)
    matrix = sparse.csr_matrix((np.ones(len(seen), np.float32), seen, begin), (users, items))
    U32, V32 = U.astype(np.float32), V.astype(np.float32)
    settings = "10 factors, rated items left out"
    contenders = [
        Contender(
            OURS, settings, lambda: lambda: best_items(everyone, BEST, parts, rated=(begin, seen))
        ),
        Contender("implicit", settings, lambda: _implicit_best(U32, V32, matrix)),
    ]
    task = f"The {BEST} best of {items:,} items for {users:,} users"
    with threadpool_limits(1, "blas"):
        results = contest(task, contenders, rounds=REPEATS)
    results.set_ratio(f"recommend_time_vs_implicit_{users}x{items}", OURS, "implicit")
    return results


def _implicit_best(U: np.ndarray, V: np.ndarray, rated: Any) -> Callable[[], Any]:
    from implicit.cpu.als import AlternatingLeastSquares

    model = AlternatingLeastSquares(10, random_state=0)
    model.user_factors, model.item_factors = U, V
    return lambda: model.recommend(np.arange(len(U)), rated, N=BEST)
