"""Clicks of simulated users on the lists of a ranker, from data with grades.

For each session of a query a logger ranks the documents, the first ``positions`` are shown, and a
user clicks. With g the grade of a document, G the highest and theta_k = (1/k)^eta the examination
of position k,

    relevance   r = (2^g - 1) / (2^G - 1),      attraction  p = noise + (1 - noise) r           (1)
    pbm         P(click at k) = theta_k p                                                       (2)
    trust       P(click at k) = theta_k (e_k r + f_k (1 - r)),  e_k = 1 - (k + 1)/100,
                f_k = 0.65 / k: the top is trusted (`agarwal2019addressing`)                    (3)
    cascade     from the top, each document looked at is clicked with p; the first click ends   (4)
    dbn         as cascade, but after a click the user is satisfied and leaves with r; anybody
                else goes on to the next position with ``continuation``                         (5)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from rankwright.clicks.policies import slot_probabilities
from rankwright.core.parameters import (
    check_choice,
    check_whole,
    check_zero_or_more,
    seed_of,
)
from rankwright.core.rng import stream
from rankwright.core.types import F64, I64
from rankwright.data.click_log import ClickLog, codes_of_ids
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError, quoted

MODELS = ("pbm", "trust", "cascade", "dbn")
SWAPS = ("all", "first")
PROPENSITIES = ("slot", "conditional")


def simulate(
    data: RankingData,
    logger: Any,
    *,
    model: str = "pbm",
    eta: float = 1.0,
    noise: float = 0.1,
    continuation: float = 0.9,
    sessions: int = 200,
    positions: int = 10,
    temperature: float = 0.0,
    swaps: str | None = None,
    propensity: str | None = None,
    random_state: Any = 0,
) -> ClickLog:
    """Return the log of simulated users, with ``data`` as its features.

    Parameters
    ----------
    data : RankingData
        With grades, from which users know relevance.
    logger : int, str, array, fitted ranker or callable; or a list of them
        What ranked the lists: a feature by its number (from 1) or name, a score for each row, a
        ranker, or a function of ``data`` that returns scores. Those of a list take turns in time,
        each for an equal part of the sessions of a query: a logger that drifts.
    model : {"pbm", "trust", "cascade", "dbn"}, default "pbm"
        How users look and click.
    eta : float, default 1.0
        How fast examination falls with the position, for pbm and trust.
    noise : float, default 0.1
        How often a document without relevance is clicked when looked at; trust has its own.
    continuation : float, default 0.9
        How often a user of dbn who is not satisfied goes on.
    sessions : int, default 200
        Lists shown for each query.
    positions : int, default 10
        The most documents of a list.
    temperature : float, default 0.0
        Of Gumbel noise on the logarithm of the logger's rank, anew for each session (1 samples
        from Plackett-Luce with weights 1/rank); 0 shows the same list each time.
    swaps : {"all", "first"} or None, default None
        Randomised interventions: "all" shuffles the documents shown, "first" swaps that at
        position 1 with that at a random position (its own included).
    propensity : {"slot", "conditional"} or None, default None
        Log the probability of each document at its position, or given the documents above, for
        `evaluate_policy`: of lists sampled with a temperature, or shuffled by ``swaps="all"``.
    random_state : int, RandomState, Generator or None, default 0
        What is sampled for a query depends on the seed and the query's number alone.

    Returns
    -------
    ClickLog
        ``time`` is the number of a session among those of its query.

    Examples
    --------
    >>> import rankwright as rw
    >>> from rankwright import clicks
    >>> log = clicks.simulate(rw.synthetic("mq2008", queries=30), 41, sessions=20, positions=5)
    >>> log.n_sessions, log.n_positions
    (600, 5)
    """
    if swaps is not None:
        check_choice("swaps", swaps, SWAPS)
    if propensity is not None:
        check_choice("propensity", propensity, PROPENSITIES)
        if (temperature > 0.0) == (swaps == "all") or swaps == "first":
            raise UsageError(
                "propensity=... is known of lists sampled with a temperature, or shuffled by "
                "swaps='all', not of both or of others."
            )
    check_zero_or_more("temperature", temperature)
    check_whole("sessions", sessions, 1)
    check_whole("positions", positions, 1)
    user = _User(model, eta, noise, continuation, data)
    loggers = list(logger) if isinstance(logger, list | tuple) else [logger]
    scores = [scores_of(one, data) for one in loggers]
    turn = np.arange(sessions) * len(scores) // sessions  # the logger of each session
    seed = seed_of(random_state)
    shown, clicks, sizes = [], [], np.zeros(data.n_queries, np.int64)
    chances: list[F64] = []
    for query in range(data.n_queries):
        lo, hi = data.indptr[query], data.indptr[query + 1]
        if lo == hi:
            continue
        rng = stream(seed, "clicks", query)
        order = np.stack([np.argsort(-one[lo:hi], kind="stable") for one in scores])[turn]
        if temperature > 0.0:
            rank = _resampled(order.shape, temperature, rng)
            order = np.take_along_axis(order, rank, axis=1)
            if propensity is not None:
                chances.append(_chances(rank, positions, temperature, propensity).ravel())
        lists = lo + order[:, :positions]
        if swaps == "all" and propensity is not None:
            n = lists.shape[1]
            left = np.full(n, n) if propensity == "slot" else np.arange(n, 0, -1)
            chances.append(np.broadcast_to(1.0 / left, lists.shape).ravel())
        if swaps is not None:
            lists = _swapped(lists, swaps, rng)
        sizes[query] = lists.shape[1]
        shown.append(lists.ravel())
        clicks.append(user.clicks(lists, rng).ravel())
    asked = np.flatnonzero(sizes)
    if not len(asked):
        raise DataError("the data has no documents to show.")
    row = np.concatenate(shown).astype(np.int64)
    ids = np.arange(data.n_documents) if data.doc_id is None else data.doc_id
    code, names = codes_of_ids(ids)
    per_session = np.repeat(sizes[asked], sessions)
    indptr = np.concatenate(([0], np.cumsum(per_session))).astype(np.int64)
    place = np.arange(len(row)) - np.repeat(indptr[:-1], per_session) + 1
    return ClickLog(
        indptr=indptr,
        query=np.repeat(asked, sessions).astype(np.int32),
        document=code[row],
        position=place.astype(np.int32),
        click=np.concatenate(clicks),
        query_ids=data.qid,
        document_ids=names,
        time=np.tile(np.arange(sessions), len(asked)),
        propensity=np.concatenate(chances) if propensity is not None else None,
        features=data,
        row=row,
    )


def simulate_clicks(
    log: ClickLog,
    *,
    model: str = "pbm",
    eta: float = 1.0,
    noise: float = 0.1,
    continuation: float = 0.9,
    random_state: Any = 0,
) -> ClickLog:
    """Return a log with the clicks of simulated users on its lists, such as interleaved ones.

    Parameters
    ----------
    log : ClickLog
        With features, whose grades users know relevance from; its own clicks are not used.
    model, eta, noise, continuation, random_state
        As for `simulate`.

    Examples
    --------
    >>> import rankwright as rw
    >>> from rankwright import clicks
    >>> data = rw.synthetic("mq2008", queries=30)
    >>> shown = clicks.interleave(data, {"old": 41, "new": 1}, sessions=20)
    >>> log = clicks.simulate_clicks(shown, eta=1.0)
    >>> bool(log.click.any())
    True
    """
    if log.features is None or log.row is None:
        raise DataError("the log has no features, whose grades tell users what is relevant.")
    user = _User(model, eta, noise, continuation, log.features)
    click = np.zeros(log.n_impressions, bool)
    rng = stream(seed_of(random_state), "clicks on lists")
    for size in np.unique(log.sizes):
        at = log.indptr[:-1][log.sizes == size][:, None] + np.arange(size)
        click[at] = user.clicks(log.row[at], rng)
    return replace(log, click=click)


def scores_of(logger: Any, data: RankingData) -> F64:
    """Return the score that a logger, as `simulate` takes it, gives to each document."""
    if isinstance(logger, str):
        if data.feature_names is None or logger not in data.feature_names:
            raise UsageError(f"the data has no feature called {quoted(logger)} to log by.")
        logger = data.feature_names.index(logger) + 1
    if isinstance(logger, int | np.integer):
        if not 1 <= logger <= data.n_features:
            raise UsageError(
                f"logger={logger} names no feature: they are numbered from 1 to {data.n_features}."
            )
        column = data.X[:, [int(logger) - 1]]
        dense = column if isinstance(column, np.ndarray) else column.toarray()
        return np.nan_to_num(np.asarray(dense, np.float64).ravel(), nan=-np.inf)
    ranked: Callable[[RankingData], Any] | None = getattr(logger, "predict", None)
    if ranked is None and callable(logger):
        ranked = logger
    scores = np.asarray(logger if ranked is None else ranked(data), np.float64)
    if scores.shape != (data.n_documents,):
        raise UsageError(
            f"a logger gives one score for each of the {data.n_documents} documents; this one is, "
            f"or returns, an array of the shape {scores.shape}."
        )
    return scores


def _relevance(data: RankingData) -> F64:
    """Return r of (1)."""
    gain = np.exp2(data.y) - 1.0
    highest = gain.max(initial=0.0)
    if not highest > 0.0:
        raise DataError("all grades are 0: simulated users need documents of some relevance.")
    relevance: F64 = gain / highest
    return relevance


def _resampled(shape: tuple[int, ...], temperature: float, rng: np.random.Generator) -> I64:
    """Return the logger's rank, from 0, at each place of each session, by Gumbel noise."""
    rank = np.log(np.arange(1, shape[1] + 1))
    noise = rng.gumbel(size=shape) * temperature
    return np.argsort(rank - noise, axis=1, kind="stable")


@lru_cache(maxsize=64)
def _slots_by_rank(n: int, shown: int, temperature: float) -> F64:
    """Return the probability of the document of each rank, of n, at each place."""
    scores = -np.log(np.arange(1, n + 1))
    return slot_probabilities(scores, np.array([0, n]), shown, temperature)


def _chances(rank: I64, positions: int, temperature: float, kind: str) -> F64:
    """Return the probability of the document of each rank at its place, or given those above."""
    n, shown = rank.shape[1], min(positions, rank.shape[1])
    if kind == "slot":
        return _slots_by_rank(n, shown, temperature)[rank[:, :shown], np.arange(shown)]
    log_rate = (-np.log(np.arange(1, n + 1)) / temperature)[rank]
    log_left = np.logaddexp.accumulate(log_rate[:, ::-1], axis=1)[:, ::-1]
    found: F64 = np.exp(log_rate - log_left)[:, :shown]
    return found


def _swapped(lists: I64, swaps: str, rng: np.random.Generator) -> I64:
    if swaps == "all":
        return rng.permuted(lists, axis=1)
    swapped = lists.copy()
    other = rng.integers(lists.shape[1], size=len(lists))
    session = np.arange(len(lists))
    swapped[session, 0], swapped[session, other] = lists[session, other], lists[:, 0]
    return swapped


class _User:
    """How users click on lists of documents of ``data``."""

    def __init__(
        self, model: str, eta: float, noise: float, continuation: float, data: RankingData
    ) -> None:
        check_choice("model", model, MODELS)
        check_zero_or_more("eta", eta)
        for name, share in (("noise", noise), ("continuation", continuation)):
            if not 0.0 <= share <= 1.0:
                raise UsageError(f"{name} is a probability, from 0 to 1; it is {share}.")
        self.model, self.eta, self.continuation = model, eta, continuation
        self.relevance = _relevance(data)
        self.attraction = noise + (1.0 - noise) * self.relevance

    def clicks(self, lists: I64, rng: np.random.Generator) -> Any:
        """Return whether each document of each list is clicked."""
        draw = rng.random(lists.shape)
        k = np.arange(1, lists.shape[1] + 1)
        examination = (1.0 / k) ** self.eta
        if self.model == "pbm":
            return draw < examination * self.attraction[lists]  # (2)
        if self.model == "trust":
            r = self.relevance[lists]
            return draw < examination * ((1.0 - (k + 1) / 100) * r + 0.65 / k * (1.0 - r))  # (3)
        return self._from_the_top(lists, draw, rng)

    def _from_the_top(self, lists: I64, draw: F64, rng: np.random.Generator) -> Any:
        clicked = draw < self.attraction[lists]
        looking = np.ones(len(lists), bool)
        leave, stop = rng.random(lists.shape), rng.random(lists.shape)
        for place in range(lists.shape[1]):
            clicked[:, place] &= looking
            hit = clicked[:, place]
            if self.model == "cascade":
                looking &= ~hit  # (4)
            else:
                satisfied = hit & (leave[:, place] < self.relevance[lists[:, place]])
                looking &= ~satisfied & (stop[:, place] < self.continuation)  # (5)
        return clicked
