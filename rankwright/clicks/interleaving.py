"""Interleaving: combine the rankings of several rankers into one list, and credit its clicks.

Users see one list per query, with documents from two rankers (interleaving) or more
(multileaving). Each click gives credit to the rankers. Let r_j(d) be the rank of document d in the
ranking of ranker j, from 1. A ranking need not contain all documents.

team_draft     At each position, a ranker is drawn from the rankers with the fewest picks that have
               documents left. It adds its best remaining document, for its team
               (`radlinski2008how`, `schuth2014multileaved`). The credit of a ranker is
                   the number of clicked documents of its team                                  (1)
probabilistic  At each position a ranker is drawn, then a document with probability
                   P_j(d) = r_j(d)^-tau / sum over d' not in the list of r_j(d')^-tau           (2)
               (`hofmann2011probabilistic`, `schuth2015probabilistic`). Any ranker may have
               contributed a document, with the probability
                   P_j(d) / sum_i P_i(d)                                                        (3)
               The credit is the sum of (3) over the clicked documents.
optimised      The candidates are all lists that take the best remaining document of one of two
               rankers at each position. A list l is drawn with the probability p(l) that solves a
               linear program (`radlinski2013optimized`): minimise the expected sensitivity, the
               mean over lists of
                   sum_j (sum_k c_j(l_k) / k - mean over rankers of the same)^2                 (4)
               such that both rankers expect the same credit at each position k,
                   sum_l p(l) (c_1(l_k) - c_2(l_k)) = 0,     c_j(d) = 1 / r_j(d)                (5)
               with c_j(d) = 1 / (length of the ranking + 1) for documents that j does not return.
               The credit of a click is c_j. If there are more than ``max_lists`` candidates, a
               sample of this size replaces them. If no p satisfies (5), the one with the smallest
               violation is used.

A list has k documents, or all if there are fewer. Ties are in the order of `rankwright.core.order`.
A list depends only on the seed, the number of the query and the number or id of the session.

**Positions without credit.** A ranker without remaining documents cannot compete, and other
rankers fill its positions. Clicks on positions below the length of the shortest ranking therefore
give no credit: the team is -1 and the credit 0. Down to there, every ranker has documents left in
any list. A rule for each list would be biased. For example, team draft makes the lists a, b and
b, a of the rankings [a] and [b, c], and only the first ranker could get credit at the second
position.
Optimised interleaving also gives no credit at positions where (5) is violated.

**Outcomes.** The outcome of a session for rankers i and j is between -1 and 1, and its mean is 0 if
users click on positions regardless of documents. For team_draft it is the sign of the difference of
credits. For probabilistic it is P(i has more of the clicks) - P(j has more) under (3). For
optimised it is the difference of credits divided by the largest possible credit of as many clicks.
The signs of the last two do not have mean 0.

A server calls `interleave_scores` for each request and logs the result of
`InterleavedList.to_json`::

    method = clicks.TeamDraft(k=10)
    shown = clicks.interleave_scores([scores_a, scores_b], method, random_state=7, session=number)
    shown.order                      # rows of the documents to show, best first
    line = shown.to_json("query", ids, ("model-a", "model-b"))   # then line["clicks"] = [0, 1, ...]

`clicks.load_log` reads a file of these lines, and `clicks.score_interleaving` finds the winner.
"""

from __future__ import annotations

import hashlib
import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count, pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from rankwright import registry
from rankwright.clicks.simulation import log_of_lists, scores_of
from rankwright.core.dtypes import as_float_vector
from rankwright.core.order import ranking
from rankwright.core.parameters import (
    Part,
    check_parameters,
    check_whole,
    check_zero_or_more,
    params_of,
    seed_of,
    unknown_parameter,
)
from rankwright.core.types import F64, I64, AnyArray
from rankwright.data.click_log import ClickLog, Interleaving
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError, quoted

_SMALLEST_EXPONENT = 250.0  # r^-tau must be at least 10^-250 for the first k ranks
_PENALTY = 1e4  # of a violation of (5), against sensitivities of about 0.1
_FAIR = 1e-6  # maximum difference of expected credits for (5)

Rankings = Sequence[Sequence[int]]
"""Document numbers of one query, from 0 and best first, for each ranker."""


class _Choice(NamedTuple):
    """A list of documents, the team of each, and a row of numbers of each for its credit."""

    documents: Sequence[int]
    teams: Sequence[int]
    credit: F64


# --- random numbers --------------------------------------------------------------------------


def _hash_step(state: int, word: int) -> int:
    """Return `core.kernels.hash_step` of Python integers."""
    mask = 2**64 - 1
    z = ((state ^ word) + 0x9E3779B97F4A7C15) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)


def _random_numbers(*key: int) -> Iterator[float]:
    """Yield uniform random numbers from [0, 1) that depend only on the key."""
    state = 0
    for word in key:
        state = _hash_step(state, word % 2**64)
    for number in count():
        yield (_hash_step(state, number) >> 11) * 2.0**-53


# --- methods ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class InterleavingMethod(Part):
    """Base of interleaving methods."""

    k: int = 10

    name: ClassVar[str] = ""
    most_rankers: ClassVar[int] = 2**15 - 1
    sign: ClassVar[bool] = False  # whether outcomes are signs

    def check(self, n_rankers: int) -> None:
        """Raise if a parameter is invalid or the number of rankers is not supported."""
        check_parameters(self)
        check_whole("k", self.k, 1)
        if n_rankers < 2:
            raise UsageError("there is nothing to interleave: give the rankings of two rankers.")
        if n_rankers > self.most_rankers:
            raise UsageError(
                f"{self.name} interleaves two rankers, not {n_rankers}; for more use team_draft "
                "or probabilistic."
            )

    @abstractmethod
    def choose(self, rankings: Rankings, numbers: Iterator[float]) -> _Choice:
        """Return a list, with credit at all positions."""

    def make_list(self, rankings: Rankings, *key: int) -> tuple[AnyArray, AnyArray, F64]:
        """Return documents, teams and credit of a list whose random numbers depend on the key."""
        choice = self.choose(rankings, _random_numbers(*key))
        documents = np.array(choice.documents, np.int32)
        teams = np.array(choice.teams, np.int16)
        credit = choice.credit.copy()
        shortest = min(map(len, rankings))
        teams[shortest:] = -1
        credit[shortest:] = 0.0
        return documents, teams, credit

    def credit_rows(self, log: ClickLog) -> AnyArray:
        """Return the credit that a click on each impression gives to each ranker."""
        assert log.interleaving is not None
        wide = len(log.interleaving.rankers)
        if log.credit is None or log.credit.shape[1] != wide:
            numbers = 0 if log.credit is None else log.credit.shape[1]
            raise DataError(
                f"the log was interleaved by {self.name}, whose credit needs {wide} numbers for "
                f"each document; there are {numbers}. Keep the credit that interleaving returned."
            )
        invalid = self._invalid(log.credit) & log.credit.any(axis=1)
        if invalid.any():
            at = int(np.flatnonzero(invalid)[0])
            raise DataError(
                f"the log was interleaved by {self.name}, which never gives the credit "
                f"{log.credit[at].tolist()} of impression {at}; the log is damaged."
            )
        return log.credit

    def _invalid(self, credit: F64) -> Any:
        """Return whether this method never writes each row of credit, apart from rows of 0."""
        raise NotImplementedError

    def credits(self, log: ClickLog) -> F64:
        """Return the credit of each ranker for each session of an interleaved log."""
        clicked = self.credit_rows(log) * log.click[:, None]
        session = log.session_of_impression()
        sums = [np.bincount(session, of_ranker, log.n_sessions) for of_ranker in clicked.T]
        return np.stack(sums, axis=1)

    @abstractmethod
    def outcomes(self, log: ClickLog, credit: F64, i: int, j: int) -> F64:
        """Return the outcome of each session for rankers i and j, from -1 (j) to 1 (i)."""


@dataclass(frozen=True, slots=True, repr=False)
class TeamDraft(InterleavingMethod):
    """Team draft interleaving and multileaving: rankers pick documents in turn, like captains.

    Parameters
    ----------
    k : int, default 10
        Length of the lists.

    Examples
    --------
    >>> from rankwright import clicks
    >>> shown = clicks.interleave_rankings([["a", "b", "c"], ["b", "d", "a"]], clicks.TeamDraft(3))
    >>> sorted(shown.team.tolist()) in ([0, 0, 1], [0, 1, 1])
    True
    """

    name: ClassVar[str] = "team_draft"
    sign: ClassVar[bool] = True

    def choose(self, rankings: Rankings, numbers: Iterator[float]) -> _Choice:
        """Draw a list; each number chooses the ranker of a position."""
        shown: list[int] = []
        teams: list[int] = []
        place = [0] * len(rankings)  # of the best remaining document of each ranker
        while len(shown) < self.k:
            for j, documents in enumerate(rankings):
                while place[j] < len(documents) and documents[place[j]] in shown:
                    place[j] += 1
            able = [j for j, documents in enumerate(rankings) if place[j] < len(documents)]
            if not able:
                break
            fewest = min(teams.count(j) for j in able)
            tied = [j for j in able if teams.count(j) == fewest]
            team = tied[int(next(numbers) * len(tied))]
            shown.append(rankings[team][place[team]])
            teams.append(team)
        return _Choice(shown, teams, np.empty((len(shown), 0)))

    def credit_rows(self, log: ClickLog) -> AnyArray:
        """Return whether each impression is of the team of each ranker."""
        assert log.interleaving is not None
        if log.team is None:
            raise DataError(
                "the log was interleaved by team_draft but has no teams; keep the team of each "
                "document with the lists."
            )
        return np.equal.outer(log.team, np.arange(len(log.interleaving.rankers)))  # (1)

    def outcomes(self, log: ClickLog, credit: F64, i: int, j: int) -> F64:  # noqa: ARG002
        """Return the signs of the differences of credits."""
        return np.sign(credit[:, i] - credit[:, j])


@dataclass(frozen=True, slots=True, repr=False)
class Probabilistic(InterleavingMethod):
    """Probabilistic interleaving and multileaving: documents are drawn by their ranks.

    Any document may be shown anywhere. This distinguishes rankers that agree at the top, but shows
    some low ranks to users.

    Parameters
    ----------
    k : int, default 10
        Length of the lists.
    tau : float, default 3.0
        How fast the probability falls with the rank; 0 shuffles.

    Examples
    --------
    >>> from rankwright import clicks
    >>> rankings = [["a", "b", "c"], ["b", "a", "c"]]
    >>> shown = clicks.interleave_rankings(rankings, clicks.Probabilistic(k=3), session=1)
    >>> sorted(shown.documents)
    ['a', 'b', 'c']
    """

    tau: float = 3.0

    name: ClassVar[str] = "probabilistic"

    def check(self, n_rankers: int) -> None:
        """Raise if a parameter is invalid or the number of rankers is not supported."""
        InterleavingMethod.check(self, n_rankers)
        check_zero_or_more("tau", self.tau)
        if self.tau * math.log10(self.k) > _SMALLEST_EXPONENT:
            raise UsageError(
                f"tau must be {_SMALLEST_EXPONENT / math.log10(self.k):g} or less for lists of "
                f"{self.k}, not {self.tau:g}: less likely documents have no number."
            )

    def choose(self, rankings: Rankings, numbers: Iterator[float]) -> _Choice:
        """Draw a list; the numbers choose a ranker and a document of each position in turn."""
        shown: list[int] = []
        teams: list[int] = []
        credit: list[list[float]] = []
        rank = [{document: r for r, document in enumerate(documents)} for documents in rankings]
        weight = np.zeros((len(rankings), max(1, *map(len, rankings))))  # by rank, 0 once shown
        for j, documents in enumerate(rankings):
            weight[j, : len(documents)] = np.arange(1.0, len(documents) + 1.0) ** -self.tau
        while len(shown) < self.k:
            cumulative = np.cumsum(weight, axis=1)
            total = cumulative[:, -1].tolist()
            able = [j for j, remaining in enumerate(total) if remaining > 0.0]
            if not able:
                break
            team = able[int(next(numbers) * len(able))]
            goal = next(numbers) * total[team]
            document = rankings[team][int(np.searchsorted(cumulative[team], goal, side="right"))]
            probability = [0.0] * len(rankings)
            for j, ranks in enumerate(rank):
                if document in ranks:
                    probability[j] = float(weight[j, ranks[document]]) / total[j]  # (2)
                    weight[j, ranks[document]] = 0.0
            shown.append(document)
            teams.append(team)
            credit.append([p / sum(probability) for p in probability])  # (3)
        return _Choice(shown, teams, np.array(credit).reshape(len(shown), len(rankings)))

    def _invalid(self, credit: F64) -> Any:
        return (credit < 0.0).any(axis=1) | (np.abs(credit.sum(axis=1) - 1.0) > 1e-6)

    def credit_rows(self, log: ClickLog) -> AnyArray:
        """Return the probability that each ranker contributed each impression; 0 for team -1."""
        shares = InterleavingMethod.credit_rows(self, log)
        return shares if log.team is None else shares * (log.team >= 0)[:, None]

    def outcomes(self, log: ClickLog, credit: F64, i: int, j: int) -> F64:  # noqa: ARG002
        """Return P(i has more of the clicks) - P(j has more) for each session."""
        clicked = np.flatnonzero(log.click)
        rows = self.credit_rows(log)[clicked]
        clicks_of_session = np.bincount(log.session_of_impression()[clicked], minlength=len(log))
        n_clicks = np.repeat(clicks_of_session, clicks_of_session)
        outcome = np.zeros(len(log))
        for n in np.unique(n_clicks).tolist():  # sessions with as many clicks
            ahead, behind = rows[n_clicks == n].reshape(-1, n, rows.shape[1])[:, :, [i, j]].T
            lead = np.zeros((ahead.shape[1], 2 * n + 1))  # P(i is ahead by m - n), column m
            lead[:, n] = 1.0
            for up, down in zip(ahead[:, :, None], behind[:, :, None], strict=True):
                after_click = lead * (1.0 - up - down)
                after_click[:, 1:] += lead[:, :-1] * up
                after_click[:, :-1] += lead[:, 1:] * down
                lead = after_click
            won = lead[:, n + 1 :].sum(axis=1) - lead[:, :n].sum(axis=1)
            outcome[clicks_of_session == n] = won
        return outcome


@dataclass(frozen=True, slots=True, repr=False)
class Optimised(InterleavingMethod):
    """Optimised interleaving of two rankers: the unbiased lottery of the most sensitive lists.

    A linear program is solved for each new pair of rankings, in 5 to 10 milliseconds for k = 10,
    and about 80 for k = 14.

    Parameters
    ----------
    k : int, default 10
        Length of the lists.
    max_lists : int, default 2048
        Maximum number of candidate lists. If there are more, which is possible for k above 11, a
        sample of this size is used.

    Examples
    --------
    >>> from rankwright import clicks
    >>> rankings = [["a", "b", "c"], ["b", "c", "a"]]
    >>> shown = clicks.interleave_rankings(rankings, clicks.Optimised(k=3), session=1)
    >>> shown.documents[0] in ("a", "b")  # each list shown begins as one of the rankings
    True
    """

    max_lists: int = 2048

    name: ClassVar[str] = "optimised"
    most_rankers: ClassVar[int] = 2

    def check(self, n_rankers: int) -> None:
        """Raise if a parameter is invalid or the number of rankers is not supported."""
        InterleavingMethod.check(self, n_rankers)
        check_whole("max_lists", self.max_lists, 2)

    def choose(self, rankings: Rankings, numbers: Iterator[float]) -> _Choice:
        """Draw one of the lists of the linear program by a single number."""
        content = tuple(np.array(documents, np.int32).tobytes() for documents in rankings)
        programme = _shown_lists(content, self.k, self.max_lists)
        cumulative = np.cumsum(programme.probability)
        at = int(np.searchsorted(cumulative, next(numbers), side="right"))
        at = min(at, len(cumulative) - 1)  # rounding
        documents = programme.lists[at]
        credit = programme.credit[at] * programme.fair[:, None]
        return _Choice(documents, [-1] * len(documents), credit)

    def _invalid(self, credit: F64) -> Any:
        return ((credit <= 0.0) | (credit > 1.0)).any(axis=1)

    def outcomes(self, log: ClickLog, credit: F64, i: int, j: int) -> F64:
        """Return differences of credits, divided by the largest credit of as many clicks."""
        clicked = log.click & self.credit_rows(log).any(axis=1)
        number = np.bincount(log.session_of_impression(), clicked, log.n_sessions).astype(np.int64)
        most = np.cumsum(1.0 / np.arange(1, number.max(initial=1) + 1))  # ranks are all different
        outcome: F64 = (credit[:, i] - credit[:, j]) / np.append(1.0, most)[number]
        return outcome


METHODS: Mapping[str, type[InterleavingMethod]] = {
    kind.name: kind for kind in (Optimised, Probabilistic, TeamDraft)
}


def interleaving_method(method: Any, **params: Any) -> InterleavingMethod:
    """Return the method with this name and parameters; return an object unchanged."""
    if isinstance(method, InterleavingMethod):
        if params:
            raise UsageError(
                f"the parameters of {method!r} belong to the object; leave out {', '.join(params)}."
            )
        return method
    if not isinstance(method, str) or method not in METHODS:
        raise UsageError(registry.unknown("interleaving method", str(method), METHODS))
    kind = METHODS[method]
    names = params_of(kind())
    for name in params:
        if name not in names:
            raise unknown_parameter(kind.__name__, name, names)
    return kind(**params)


def method_of(log: ClickLog) -> InterleavingMethod:
    """Return the interleaving method of a log."""
    if log.interleaving is None:
        raise DataError(
            "the log does not contain the interleaving method, so no ranker gets credit; keep "
            "'interleaving', 'team' and 'credit' with the lists that interleave gives."
        )
    method = interleaving_method(log.interleaving.method, **log.interleaving.params)
    method.check(len(log.interleaving.rankers))
    return method


# --- the linear program of optimised interleaving --------------------------------------------


class Programme(NamedTuple):
    """The candidate lists of optimised interleaving, and their probabilities.

    Attributes
    ----------
    lists : (m, k) int array
    probability, sensitivity : (m,) arrays
        p(l), and (4) over the positions with credit.
    credit : (m, k, 2) array
        c_j of each document of each list.
    fair : (k,) bool array
        Whether a position gives credit.
    """

    lists: I64
    probability: F64
    sensitivity: F64
    credit: F64
    fair: NDArray[np.bool_]


def solve_programme(rankings: Rankings, k: int, max_lists: int) -> Programme:
    """Return the candidate lists of two rankings with their probabilities."""
    lists = np.array(_candidate_lists(rankings, k, max_lists), np.int64)
    credit_of_document = np.empty((int(lists.max(initial=-1)) + 1, 2))
    for j, documents in enumerate(rankings):
        rank = {document: r for r, document in enumerate(documents, 1)}
        absent = len(documents) + 1
        credit_of_document[:, j] = [
            1.0 / rank.get(document, absent) for document in range(len(credit_of_document))
        ]
    credit = credit_of_document[lists]
    positions = np.arange(lists.shape[1])
    complete = positions < min(map(len, rankings))
    counted = credit * complete[:, None]
    seen = (counted / (positions[:, None] + 1.0)).sum(axis=1)  # of list and ranker
    sensitivity = ((seen - seen.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)  # (4)
    gap = (counted[:, :, 0] - counted[:, :, 1]).T  # (5), a row for each position
    probability = _solve(sensitivity, gap)
    fair = (np.abs(gap @ probability) < _FAIR) & complete
    return Programme(lists, probability, sensitivity, credit, fair)


def _candidate_lists(rankings: Rankings, k: int, max_lists: int) -> list[tuple[int, ...]]:
    """Return all candidate lists, or a sample if there are more than ``max_lists``."""
    lists: list[tuple[int, ...]] = [()]
    while len(lists[0]) < k and len(lists) <= max_lists and _next_documents(rankings, lists[0]):
        lists = [
            (*shown, document)
            for shown in lists
            for document in dict.fromkeys(_next_documents(rankings, shown))
        ]
    if len(lists) <= max_lists:
        return lists
    return sorted({_sample_list(rankings, k, number) for number in range(max_lists)})


def _next_documents(rankings: Rankings, shown: tuple[int, ...]) -> list[int]:
    """Return the best remaining document of each ranker that has one."""
    best = (
        next((document for document in documents if document not in shown), None)
        for documents in rankings
    )
    return [document for document in best if document is not None]


def _sample_list(rankings: Rankings, k: int, number: int) -> tuple[int, ...]:
    """Return a list that draws a ranker at each position."""
    shown: tuple[int, ...] = ()
    numbers = _random_numbers(number)
    while len(shown) < k and (best := _next_documents(rankings, shown)):
        shown = (*shown, best[int(next(numbers) * len(best))])
    return shown


def _solve(sensitivity: F64, gap: F64) -> F64:
    """Return the probabilities of the lists; violations of (5) have a penalty."""
    n, rows = len(sensitivity), len(gap)
    slack = np.eye(rows)
    solution = optimize.linprog(
        np.concatenate([sensitivity, np.full(2 * rows, _PENALTY)]),
        A_eq=np.block([[np.ones((1, n)), np.zeros((1, 2 * rows))], [gap, slack, -slack]]),
        b_eq=np.append(1.0, np.zeros(rows)),
        bounds=(0.0, None),
        method="highs",
    )
    if solution.x is None:
        raise DataError(
            f"the linear program of optimised interleaving was not solved: {solution.message}"
        )
    p = np.maximum(solution.x[:n], 0.0)
    probability: F64 = p / p.sum()
    return probability


@lru_cache(maxsize=4096)
def _shown_lists(content: tuple[bytes, ...], k: int, max_lists: int) -> Programme:
    """Return the lists with a positive probability, a dozen of perhaps thousands of candidates.

    ``content`` has two rankings, whose int32 numbers are bytes.
    """
    rankings = [np.frombuffer(documents, np.int32).tolist() for documents in content]
    programme = solve_programme(rankings, k, max_lists)
    shown = np.flatnonzero(programme.probability)
    return Programme(
        programme.lists[shown],
        programme.probability[shown],
        programme.sensitivity[shown],
        programme.credit[shown],
        programme.fair,
    )


# --- API -------------------------------------------------------------------------------------


class InterleavedList(NamedTuple):
    """A list to show to a user, and the numbers to log with it.

    Attributes
    ----------
    order : (k,) int array
        Documents, best first: row numbers of the scores, or places in ``documents``.
    team : (k,) int16
        The ranker that contributed each document; -1 if a click gives no credit to a single ranker:
        below the length of the shortest ranking, and always with "optimised".
    credit : (k, c) float64
        Numbers of the method for the credit of clicks; c may be 0. All 0 if a click gives none.
    method : object
        The method, with its parameters.
    documents : list
        Ids of the documents in order, for rankings of ids.
    n_rankers : int
        Number of rankings that were interleaved.

    Examples
    --------
    >>> from rankwright import clicks
    >>> shown = clicks.interleave_rankings([["a", "b"], ["c", "a"]], "team_draft", session=1)
    >>> dict(zip(shown.documents, shown.team.tolist()))  # -1: the second ranker has nothing left
    {'c': 1, 'a': 0, 'b': -1}
    """

    order: AnyArray
    team: AnyArray
    credit: F64
    method: Any
    documents: list[Any]
    n_rankers: int

    def to_json(
        self,
        query: Any,
        documents: Sequence[Any] | None = None,
        rankers: Sequence[str] = ("A", "B"),
    ) -> dict[str, Any]:
        """Return a line of a click log as JSON lines, without ``clicks``.

        Parameters
        ----------
        query
            Id or text of the query.
        documents
            Ids of all documents that were scored, in the order of the scores.
        rankers
            Names of the rankers.
        """
        n = len(rankers)
        if n != self.n_rankers:
            raise UsageError(f"the list is not of {n} rankers; give rankers=..., a name for each.")
        if documents is None and len(self.documents) < len(self.order):
            raise UsageError("give the ids of all documents that were scored: documents=...")
        shown = self.documents if documents is None else [documents[i] for i in self.order.tolist()]
        line: dict[str, Any] = {"query": query, "documents": shown, "teams": self.team.tolist()}
        if self.credit.shape[1]:
            line["credits"] = self.credit.tolist()
        how = Interleaving(self.method.name, tuple(rankers), self.method.get_params())
        return {**line, "interleaving": how.to_dict()}


def interleave_scores(
    scores: Sequence[Any],
    method: Any = "team_draft",
    *,
    session: int | str = 0,
    random_state: Any = 0,
) -> InterleavedList:
    """Return one list from the scores of each ranker for the documents of a query.

    Parameters
    ----------
    scores : sequence of arrays (n,)
        One array per ranker; NaN means that a ranker does not return the document.
    method : str or method, default "team_draft"
        ``"team_draft"``, ``"probabilistic"``, ``"optimised"``, or an object with parameters.
    session : int or str, default 0
        Number or id of the session: the same seed and session give the same list.
    random_state : int, RandomState, Generator or None, default 0
        The seed.

    Examples
    --------
    >>> from rankwright import clicks
    >>> shown = clicks.interleave_scores([[0.3, 0.9], [0.8, 0.1]], "team_draft", session=1)
    >>> sorted(shown.order.tolist())
    [0, 1]
    """
    chosen = interleaving_method(method)
    chosen.check(len(scores))
    arrays = [as_float_vector(values, "scores", np.size(values)) for values in scores]
    if any(values.shape != arrays[0].shape or values.ndim != 1 for values in arrays):
        raise UsageError(
            "every ranker gives one score to each document; the arrays have the shapes "
            f"{', '.join(str(values.shape) for values in arrays)}."
        )
    (rankings,) = _rankings_of_queries(arrays, np.array([0, len(arrays[0])]))
    return _one_list(rankings, chosen, session, random_state, [])


def interleave_rankings(
    rankings: Sequence[Sequence[Any]],
    method: Any = "team_draft",
    *,
    session: int | str = 0,
    random_state: Any = 0,
) -> InterleavedList:
    """Return one list from rankings of document ids, which may contain different documents.

    Parameters
    ----------
    rankings : sequence of sequences
        The ids that each ranker returns, best first.
    method, session, random_state
        As for `interleave_scores`.

    Examples
    --------
    >>> from rankwright import clicks
    >>> rankings = [["a", "b"], ["a", "c"]]
    >>> clicks.interleave_rankings(rankings, "team_draft").documents[0]
    'a'
    """
    chosen = interleaving_method(method)
    chosen.check(len(rankings))
    number: dict[Any, int] = {}
    coded = [[number.setdefault(document, len(number)) for document in ids] for ids in rankings]
    for j, documents in enumerate(coded):
        if len(set(documents)) < len(documents):
            raise DataError(f"ranking {j} has a document twice.")
    return _one_list(coded, chosen, session, random_state, list(number))


def _one_list(
    rankings: Rankings,
    method: InterleavingMethod,
    session: int | str,
    random_state: Any,
    ids: list[Any],
) -> InterleavedList:
    """Return the list of a session; documents are indices of ``ids``, if there are any."""
    if isinstance(session, str):
        text = session.encode("utf-8", "surrogatepass")
        number = int.from_bytes(hashlib.sha256(text).digest()[:8], "little")
    elif isinstance(session, int | np.integer):
        number = int(session)
    else:
        raise UsageError(f"session is a whole number or a text, not {type(session).__name__}.")
    order, team, credit = method.make_list(rankings, seed_of(random_state), 0, number)
    documents = [ids[i] for i in order.tolist()] if ids else []
    return InterleavedList(order, team, credit, method, documents, len(rankings))


def _rankings_of_queries(
    scores: Sequence[F64], indptr: I64, n_jobs: int | None = 1
) -> Iterator[list[list[int]]]:
    """Yield the rankings of each query, without documents whose score is NaN."""
    arrays = [np.ascontiguousarray(values) for values in scores]
    orders = [ranking(values, indptr, n_jobs=n_jobs) for values in arrays]
    for lo, hi in pairwise(indptr.tolist()):
        sizes = [hi - lo - np.count_nonzero(np.isnan(values[lo:hi])) for values in arrays]
        yield [
            (order[lo : lo + size] - lo).tolist() for order, size in zip(orders, sizes, strict=True)
        ]


def interleave(
    data: RankingData,
    rankers: Mapping[str, Any] | Sequence[Any],
    method: Any = "team_draft",
    *,
    sessions: int = 1,
    random_state: Any = 0,
    n_jobs: int | None = None,
    **params: Any,
) -> ClickLog:
    """Return interleaved lists for each query of ``data``, as a log without clicks.

    Parameters
    ----------
    data : RankingData
        The documents of each query; grades are not used.
    rankers : mapping from names, or sequence
        Two or more: fitted rankers, arrays of scores, features by number (from 1) or name, or
        functions of ``data``. Documents with a NaN score are not in a ranking.
    method : str or method, default "team_draft"
        See `rankwright.clicks.interleaving`.
    sessions : int, default 1
        Lists for each query.
    random_state : int, RandomState, Generator or None, default 0
        A list depends only on the seed and the numbers of its query and session.
    **params
        Parameters of the method, such as ``k``.

    Returns
    -------
    ClickLog
        With ``team``, ``credit`` and ``interleaving``; ``time`` numbers the sessions of each
        query.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwright import clicks
    >>> from rankwright.data import RankingData
    >>> data = RankingData.from_arrays(np.array([[1.0, 3.0], [2.0, 1.0]]), [0, 1], qid=[7, 7])
    >>> log = clicks.interleave(data, {"first": 1, "second": 2}, sessions=3)
    >>> log.n_sessions, log.interleaving.rankers
    (3, ('first', 'second'))
    """
    check_whole("sessions", sessions, 1)
    named = dict(rankers) if isinstance(rankers, Mapping) else _with_names(rankers)
    chosen = interleaving_method(method, **params)
    chosen.check(len(named))
    scores = [scores_of(ranker, data) for ranker in named.values()]
    seed = seed_of(random_state)
    queries, lists = [], []
    for number, rankings in enumerate(_rankings_of_queries(scores, data.indptr, n_jobs)):
        if any(rankings):
            queries.append(number)
            lists += [chosen.make_list(rankings, seed, number, time) for time in range(sessions)]
    if not lists:
        raise DataError("the data has no documents to show.")
    documents, teams, credit = (np.concatenate(parts) for parts in zip(*lists, strict=True))
    query = np.repeat(queries, sessions).astype(np.int32)
    sizes = np.array([len(shown) for shown, _, _ in lists])
    return log_of_lists(
        data,
        documents.astype(np.int64) + np.repeat(data.indptr[query], sizes),
        sizes,
        query=query,
        time=np.tile(np.arange(sessions), len(queries)),
        click=np.zeros(len(documents), bool),
        team=teams,
        credit=credit if credit.shape[1] else None,
        interleaving=Interleaving(chosen.name, tuple(named), chosen.get_params()),
    )


def _with_names(rankers: Sequence[Any]) -> dict[str, Any]:
    """Return rankers by the names A, B, ..."""
    if isinstance(rankers, str):
        raise UsageError(f"rankers must be two or more, not {quoted(rankers)}.")
    return {chr(ord("A") + j) if j < 26 else str(j + 1): r for j, r in enumerate(rankers)}
