"""Simulate clicks of users on the lists of a ranker, from data with grades.

For each session of a query, a logger ranks the documents, the first ``positions`` are shown, and a
user clicks. Let g be the grade of a document, G the highest grade and theta_k = (1/k)^eta the
examination of position k:

    relevance   r = (2^g - 1) / (2^G - 1),      attraction  p = noise + (1 - noise) r           (1)
    pbm         P(click at k) = theta_k p                                                       (2)
    trust       P(click at k) = theta_k (e_k r + f_k (1 - r)),  e_k = 1 - (k + 1)/100,
                f_k = 0.65 / k: users trust the top (`agarwal2019addressing`)                   (3)
    cascade     each examined document is clicked with p, from the top; the first click is
                the last                                                                        (4)
    dbn         like cascade, but after a click the user is satisfied and leaves with r; other
                users continue to the next position with ``continuation``                       (5)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
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
from rankwright.core.types import F64, I64, AnyArray
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
        With grades, which determine relevance for the users.
    logger : int, str, array, fitted ranker or callable; or a list of loggers
        What ranks the documents: a feature by its number (from 1) or name, a score for each row, a
        ranker, or a function of ``data`` that returns scores. The members of a list rank equal
        parts of the sessions of each query, one after the other, like a ranker that is replaced.
    model : {"pbm", "trust", "cascade", "dbn"}, default "pbm"
        Model of the users.
    eta : float, default 1.0
        How fast examination decreases with the position, for pbm and trust.
    noise : float, default 0.1
        Click probability of an examined document without relevance; not for trust.
    continuation : float, default 0.9
        Probability that a user of dbn who is not satisfied continues.
    sessions : int, default 200
        Number of lists for each query.
    positions : int, default 10
        Maximum length of a list.
    temperature : float, default 0.0
        Scale of Gumbel noise on the logarithm of the rank, sampled for each session: 1 samples from
        Plackett-Luce with the weights 1/rank, 0 shows the same list each time.
    swaps : {"all", "first"} or None, default None
        Randomised interventions: "all" shuffles the documents shown, "first" swaps the document at
        position 1 with the document at a random position (possibly itself).
    propensity : {"slot", "conditional"} or None, default None
        Log the probability of each document at its position, or given the documents above, for
        `evaluate_policy`. Available for lists that are sampled with a temperature or shuffled by
        ``swaps="all"``.
    random_state : int, RandomState, Generator or None, default 0
        The samples of a query depend only on the seed and the number of the query.

    Returns
    -------
    ClickLog
        ``time`` numbers the sessions of each query.

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
                "propensity=... needs lists that are either sampled with a temperature or shuffled "
                "by swaps='all'."
            )
    check_zero_or_more("temperature", temperature)
    check_whole("sessions", sessions, 1)
    check_whole("positions", positions, 1)
    users = _users_of(data, model, eta, noise, continuation)
    loggers = list(logger) if isinstance(logger, list | tuple) else [logger]
    scores = [scores_of(member, data) for member in loggers]
    turn = np.arange(sessions) * len(scores) // sessions  # the logger of each session
    seed = seed_of(random_state)
    rows, clicks, sizes = [], [], np.zeros(data.n_queries, np.int64)
    probabilities: list[F64] = []
    for query in range(data.n_queries):
        lo, hi = data.indptr[query], data.indptr[query + 1]
        if lo == hi:
            continue
        rng = stream(seed, "clicks", query)
        order = np.stack([np.argsort(-values[lo:hi], kind="stable") for values in scores])[turn]
        shown = min(positions, hi - lo)
        if temperature > 0.0:
            log_rank = np.log(np.arange(1, hi - lo + 1))
            sampled = log_rank - rng.gumbel(size=order.shape) * temperature
            rank = np.argsort(sampled, axis=1, kind="stable")
            order = np.take_along_axis(order, rank, axis=1)
            if propensity is not None:
                probabilities.append(_probabilities(rank, shown, temperature, propensity).ravel())
        lists = lo + order[:, :shown]
        if swaps == "all":
            lists = rng.permuted(lists, axis=1)
            if propensity is not None:
                left = np.full(shown, shown) if propensity == "slot" else np.arange(shown, 0, -1)
                probabilities.append(np.broadcast_to(1.0 / left, lists.shape).ravel())
        elif swaps == "first":
            lists = _swap_first(lists, rng)
        sizes[query] = shown
        rows.append(lists.ravel())
        clicks.append(users.click(lists, rng).ravel())
    asked = np.flatnonzero(sizes)
    if not len(asked):
        raise DataError("the data has no documents to show.")
    return log_of_lists(
        data,
        np.concatenate(rows).astype(np.int64),
        np.repeat(sizes[asked], sessions),
        query=np.repeat(asked, sessions).astype(np.int32),
        time=np.tile(np.arange(sessions), len(asked)),
        click=np.concatenate(clicks),
        propensity=np.concatenate(probabilities) if propensity is not None else None,
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
    """Return a log with the clicks of simulated users on its lists, such as interleaved lists.

    Parameters
    ----------
    log : ClickLog
        With features whose grades determine relevance; the clicks of the log are ignored.
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
        raise DataError("the log has no features, whose grades determine relevance for users.")
    users = _users_of(log.features, model, eta, noise, continuation)
    click = np.zeros(log.n_impressions, bool)
    rng = stream(seed_of(random_state), "clicks on lists")
    for size in np.unique(log.sizes):
        at = log.indptr[:-1][log.sizes == size][:, None] + np.arange(size)
        click[at] = users.click(log.row[at], rng)
    return replace(log, click=click)


def scores_of(logger: Any, data: RankingData) -> F64:
    """Return the score of each document by a logger, as for `simulate`."""
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
    rank = getattr(logger, "predict", logger if callable(logger) else None)
    scores = np.asarray(logger if rank is None else rank(data), np.float64)
    if scores.shape != (data.n_documents,):
        raise UsageError(
            f"a logger gives one score for each of the {data.n_documents} documents; this one is, "
            f"or returns, an array of the shape {scores.shape}."
        )
    return scores


def log_of_lists(data: RankingData, row: I64, sizes: I64, **arrays: Any) -> ClickLog:
    """Return a log of lists of documents of ``data``.

    Parameters
    ----------
    row : (n,) int64
        Rows of the documents, list after list.
    sizes : (S,) int64
        Number of documents of each list.
    arrays
        Further arrays of the `ClickLog`.
    """
    indptr = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    position = np.arange(len(row)) - np.repeat(indptr[:-1], sizes) + 1
    ids = np.arange(data.n_documents) if data.doc_id is None else data.doc_id
    code, document_ids = codes_of_ids(ids)
    return ClickLog(
        indptr=indptr,
        document=code[row],
        position=position.astype(np.int32),
        query_ids=data.qid,
        document_ids=document_ids,
        features=data,
        row=row,
        **arrays,
    )


@lru_cache(maxsize=64)
def _slots_by_rank(n: int, shown: int, temperature: float) -> F64:
    """Return the probability of the document of each rank at each slot, of n documents."""
    scores = -np.log(np.arange(1, n + 1))
    return slot_probabilities(scores, np.array([0, n]), shown, temperature)


def _probabilities(rank: I64, shown: int, temperature: float, kind: str) -> F64:
    """Return the probability of each rank at its slot, or given the ranks above."""
    n = rank.shape[1]
    if kind == "slot":
        return _slots_by_rank(n, shown, temperature)[rank[:, :shown], np.arange(shown)]
    log_rate = (-np.log(np.arange(1, n + 1)) / temperature)[rank]
    log_left = np.logaddexp.accumulate(log_rate[:, ::-1], axis=1)[:, ::-1]
    probabilities: F64 = np.exp(log_rate - log_left)[:, :shown]
    return probabilities


def _swap_first(lists: I64, rng: np.random.Generator) -> I64:
    """Return lists whose first document is swapped with that of a random position."""
    swapped, session = lists.copy(), np.arange(len(lists))
    other = rng.integers(lists.shape[1], size=len(lists))
    swapped[session, 0], swapped[session, other] = lists[session, other], lists[:, 0]
    return swapped


@dataclass(frozen=True)
class _Users:
    """Users who click on lists of documents, with relevance and attraction of each document."""

    model: str
    eta: float
    continuation: float
    relevance: F64
    attraction: F64

    def click(self, lists: I64, rng: np.random.Generator) -> AnyArray:
        """Return whether each document of each list is clicked."""
        draw = rng.random(lists.shape)
        k = np.arange(1, lists.shape[1] + 1)
        examination = (1.0 / k) ** self.eta
        if self.model == "pbm":
            return draw < examination * self.attraction[lists]  # (2)
        if self.model == "trust":
            r = self.relevance[lists]
            return draw < examination * ((1.0 - (k + 1) / 100) * r + 0.65 / k * (1.0 - r))  # (3)
        clicked = draw < self.attraction[lists]
        examining = np.ones(len(lists), bool)
        leave, stop = rng.random(lists.shape), rng.random(lists.shape)
        for slot in range(lists.shape[1]):
            clicked[:, slot] &= examining
            if self.model == "cascade":
                examining &= ~clicked[:, slot]  # (4)
            else:
                satisfied = clicked[:, slot] & (leave[:, slot] < self.relevance[lists[:, slot]])
                examining &= ~satisfied & (stop[:, slot] < self.continuation)  # (5)
        return clicked


def _users_of(
    data: RankingData, model: str, eta: float, noise: float, continuation: float
) -> _Users:
    """Return the users of a model, to whom the grades of ``data`` are relevance."""
    check_choice("model", model, MODELS)
    check_zero_or_more("eta", eta)
    for name, share in (("noise", noise), ("continuation", continuation)):
        if not 0.0 <= share <= 1.0:
            raise UsageError(f"{name} is a probability, from 0 to 1; it is {share}.")
    gain = np.exp2(data.y) - 1.0
    highest = gain.max(initial=0.0)
    if not highest > 0.0:
        raise DataError("all grades are 0: simulated users need documents of some relevance.")
    relevance = gain / highest  # (1)
    return _Users(model, eta, continuation, relevance, noise + (1.0 - noise) * relevance)
