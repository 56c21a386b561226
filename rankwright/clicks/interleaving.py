"""Interleaving: lists put together from those of several rankers, and credit for their clicks.

Users are shown one list for a query, with documents of two rankers (or of more: multileaving), and
each click is credit for the ranker that the document came from. With r_j(d) the rank of document d
in the ranking of ranker j, from 1, and documents that a ranker did not return absent from it:

team_draft     Of the rankers with the fewest picks so far, and documents left, one is drawn; it
               adds its best document that is not in the list, for its team
               (`radlinski2008how`, `schuth2014multileaved`). The credit is
                   the number of clicked documents of its team                                  (1)
probabilistic  A ranker is drawn for each position, and from it a document with probability
                   P_j(d) = r_j(d)^-tau / sum over d' not in the list of r_j(d')^-tau           (2)
               (`hofmann2011probabilistic`, `schuth2015probabilistic`). Any ranker may have given a
               document; the credit is the expectation over who did, with the shares
                   P_j(d) / sum_i P_i(d)                                                        (3)
               summed over the clicked documents.
optimised      A list is drawn among those that take, at each position, the best document left of
               one ranker, with probabilities p that solve a linear program
               (`radlinski2013optimized`): minimise the sum of p(l) times the sensitivity of l,
                   sum_j (sum_k c_j(l_k) / k - mean over rankers of the same)^2                 (4)
               such that at each position both rankers expect the same credit,
                   sum_l p(l) (c_1(l_k) - c_2(l_k)) = 0,     c_j(d) = 1 / r_j(d)                (5)
               with 1 / (length of the ranking + 1) for an absent document. The credit of a click
               is c_j. There are up to 2^k such lists: above ``max_lists``, a sample of so many
               takes their place, each made by drawing a ranker at each position. If no p
               fulfils (5), the one with the least violations is used.

A list has k documents, or all where there are fewer. Equal scores are in the order of
`rankwright.core.order`. What is drawn depends on the seed, the number of the query and the number
of the session alone.

**Positions without credit.** A ranker that has no new document left cannot compete, so that the
others get its positions. With rankings of m documents or more, every ranker has a document left for
the first m positions, whatever is drawn. Only these positions give credit: below them the team is
-1 and the credit 0. A rule for each list would not be fair: from [a] and [b, c], team
draft makes a, b or b, a, and the second position would give credit to the first ranker only.
Optimised interleaving also gives no credit at a position where no p fulfils (5).

**Outcomes.** What a session says about rankers i and j is a number from -1 to 1 whose mean is 0
where users click on positions, without regard to what they are shown: of team_draft the sign of the
difference of credits; of probabilistic P(i has more of the clicks) - P(j has more) over who gave
what; of optimised the difference of credits, relative to the most of so many clicks. The sign alone
is not enough for these two: its mean is not 0.

**A list for a request**, as a server makes it, and the line to log (`InterleavedList.to_json`)::

    method = clicks.TeamDraft(k=10)
    shown = clicks.interleave_scores([scores_a, scores_b], method, random_state=7, session=number)
    shown.order                      # rows of the documents to show, best first
    line = shown.to_json("query", ids, ("model-a", "model-b"))   # then line["clicks"] = [0, 1, ...]

`clicks.load_log` reads a file of such lines, and `clicks.score_interleaving` tells who wins.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from rankwright import registry
from rankwright.clicks.simulation import scores_of
from rankwright.core.dtypes import as_float_vector
from rankwright.core.jit import kernel
from rankwright.core.kernels import hash_step, hash_uniform
from rankwright.core.order import ranking
from rankwright.core.parallel import map_ranges, row_ranges
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
from rankwright.data.click_log import ClickLog, Interleaving, codes_of_ids
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError, quoted

I16 = NDArray[np.int16]
I32 = NDArray[np.int32]
_SESSIONS_PER_RANGE = 1024
_FRESH = 1e-3  # a sum from which this share is left is added up anew, before rounding shows
_SMALLEST = 250.0  # decimal places of the least r^-tau among the first k ranks
_PENALTY = 1e4  # of a violation of (5), against sensitivities of about 0.1
_FAIR = 1e-6  # difference of expected credits up to which (5) is fulfilled


class _Rankings(NamedTuple):
    """The rankings of R rankers for each query; documents are numbers from 0 in their query.

    ``order[j, indptr[q] + i]`` is the document at rank i + 1, ``length[j, q]`` how many there are,
    and ``rank[j, indptr[q] + d]`` the rank of a document from 1, 0 where it is absent. ``size[q]``
    counts the documents that any ranker has.
    """

    indptr: I64
    order: I32
    length: I32
    rank: I32
    size: I32


# --- kernels: lists --------------------------------------------------------------------------
#
# Each writes the list of one session from numbers u in [0, 1): documents, teams and, where the
# method has it, a row of ``credit`` for each document. ``used`` marks documents of the list.


@kernel
def _sample(seed, query, session, u):
    """Fill u with the random numbers of a session."""
    state = hash_step(hash_step(hash_step(np.uint64(0), seed), np.uint64(query)), session)
    for i in range(len(u)):
        u[i] = hash_uniform(hash_step(state, i))


@kernel
def _sample_sessions(seed, query, session, u):
    for s in range(len(query)):
        _sample(seed, query[s], session[s], u[s])


@kernel
def _best_left(order, length, begin, used):
    """Return the first rank, from 0 and at or after ``begin``, whose document is not used."""
    while begin < length and used[order[begin]]:
        begin += 1
    return begin


@kernel
def draft_list(order, length, u, used, place, picks, shown, team):
    """Team draft, of any number of rankers."""
    place[:] = 0
    picks[:] = 0
    for i in range(len(shown)):
        fewest, tied = len(shown) + 1, 0
        for j in range(len(length)):
            place[j] = _best_left(order[j], length[j], place[j], used)
            if place[j] < length[j]:
                if picks[j] < fewest:
                    fewest, tied = picks[j], 0
                tied += picks[j] == fewest
        chosen = int(u[i] * tied)
        for j in range(len(length)):
            if place[j] < length[j] and picks[j] == fewest:
                if chosen == 0:
                    shown[i] = order[j, place[j]]
                    team[i] = j
                chosen -= 1
        picks[team[i]] += 1
        used[shown[i]] = True


@kernel
def _mass_left(order, length, power, used):
    """Return the denominator of (2)."""
    mass = 0.0
    for r in range(length):
        if not used[order[r]]:
            mass += power[r]
    return mass


@kernel
def probabilistic_list(order, length, rank, power, u, used, left, mass, fresh, shown, team, credit):
    """Probabilistic interleaving; ``power[r]`` is (r + 1)^-tau, and credit gets the shares (3)."""
    n = len(length)
    for j in range(n):
        left[j] = length[j]
        mass[j] = fresh[j] = _mass_left(order[j], length[j], power, used)
    for i in range(len(shown)):
        able = 0
        for j in range(n):
            able += left[j] > 0
        chosen = int(u[2 * i] * able)
        giver = 0
        for j in range(n):
            if left[j] > 0:
                if chosen == 0:
                    giver = j
                chosen -= 1
        goal, found = u[2 * i + 1] * mass[giver], -1
        for r in range(length[giver]):
            if not used[order[giver, r]]:
                found = order[giver, r]
                goal -= power[r]
                if goal < 0.0:
                    break
        total = 0.0
        for j in range(n):
            r = rank[j, found]
            credit[i, j] = power[r - 1] / mass[j] if r > 0 else 0.0
            total += credit[i, j]
        used[found] = True
        shown[i], team[i] = found, giver
        for j in range(n):
            credit[i, j] /= total
            if rank[j, found] > 0:
                left[j] -= 1
                mass[j] -= power[rank[j, found] - 1]
                if mass[j] < _FRESH * fresh[j]:
                    mass[j] = fresh[j] = _mass_left(order[j], length[j], power, used)


class _Out(NamedTuple):
    """Lists of sessions one after the other, session s at ``indptr[s]:indptr[s + 1]``."""

    indptr: I64
    query: I32
    session: NDArray[np.uint64]
    shown: I32
    team: I16
    credit: F64


@kernel
def _draw_sessions(lo, hi, by_draft, rankings, power, seed, out):
    """Write the lists of sessions lo:hi, by team draft or by probabilistic interleaving."""
    n = len(rankings.length)
    longest = rows = 0
    for s in range(lo, hi):
        q = out.query[s]
        longest = max(longest, out.indptr[s + 1] - out.indptr[s])
        rows = max(rows, rankings.indptr[q + 1] - rankings.indptr[q])
    u, used = np.empty(2 * longest), np.zeros(rows, np.bool_)
    place, picks = np.empty(n, np.int64), np.empty(n, np.int64)
    mass, fresh = np.empty(n), np.empty(n)
    for s in range(lo, hi):
        q = out.query[s]
        first, end = rankings.indptr[q], rankings.indptr[q + 1]
        order, rank = rankings.order[:, first:end], rankings.rank[:, first:end]
        length = rankings.length[:, q]
        here = slice(out.indptr[s], out.indptr[s + 1])
        shown, team, credit = out.shown[here], out.team[here], out.credit[here]
        _sample(seed, q, out.session[s], u)
        if by_draft:
            draft_list(order, length, u, used, place, picks, shown, team)
        else:
            probabilistic_list(
                order, length, rank, power, u, used, place, mass, fresh, shown, team, credit
            )
        used[: end - first] = False


@kernel
def _rank_documents(lo, hi, indptr, order, length, rank, size):
    """Write the ranks of the documents of queries lo:hi, and how many have one."""
    for q in range(lo, hi):
        for j in range(len(order)):
            for i in range(length[j, q]):
                rank[j, indptr[q] + order[j, indptr[q] + i]] = i + 1
        found = 0
        for d in range(indptr[q], indptr[q + 1]):
            anywhere = False
            for j in range(len(rank)):
                anywhere |= rank[j, d] > 0
            found += anywhere
        size[q] = found


# --- kernels: lists that optimised interleaving chooses from ----------------------------------


@kernel
def _in_list(documents, n, d):
    found = False
    for i in range(n):
        found |= documents[i] == d
    return found


@kernel
def _first_absent(order, length, documents, n):
    """Return the best document of a ranking that is not among the first n; -1 without one."""
    for r in range(length):
        if not _in_list(documents, n, order[r]):
            return order[r]
    return -1


@kernel
def _allowed_lists(order, length, size, lists, spare):
    """Write all lists that are allowed; return how many, -1 where there are too many."""
    count = 1
    for i in range(size):
        found = 0
        for m in range(count):
            new = 0
            for j in range(len(length)):
                d = _first_absent(order[j], length[j], lists[m], i)
                again = d < 0
                for back in range(1, new + 1):
                    again |= spare[found - back, i] == d
                if not again:
                    if found == len(lists):
                        return -1
                    for at in range(i):
                        spare[found, at] = lists[m, at]
                    spare[found, i] = d
                    found += 1
                    new += 1
        for m in range(found):
            for at in range(i + 1):
                lists[m, at] = spare[m, at]
        count = found
    return count


@kernel
def _sample_lists(order, length, size, lists):
    """Write lists that draw a ranker with documents left at each position."""
    for m in range(len(lists)):
        for i in range(size):
            u = hash_uniform(hash_step(hash_step(np.uint64(0), m), i))
            able = 0
            for j in range(len(length)):
                able += _first_absent(order[j], length[j], lists[m], i) >= 0
            chosen = int(u * able)
            for j in range(len(length)):
                d = _first_absent(order[j], length[j], lists[m], i)
                if d >= 0:
                    if chosen == 0:
                        lists[m, i] = d
                        break
                    chosen -= 1


# --- kernels: credit --------------------------------------------------------------------------


@kernel
def _more_clicks(lo, hi, indptr, click, share, i, j, outcome):
    """Write P(ranker i gave more of the clicked documents) - P(j did) for sessions lo:hi.

    ``odds[m]`` is the probability that i is ahead by m - n after some clicks.
    """
    longest = 0
    for s in range(lo, hi):
        longest = max(longest, indptr[s + 1] - indptr[s])
    odds = np.empty(2 * longest + 3)
    for s in range(lo, hi):
        n = indptr[s + 1] - indptr[s]
        odds[: 2 * n + 3] = 0.0
        odds[n + 1] = 1.0
        for at in range(indptr[s], indptr[s + 1]):
            if click[at]:
                up, down = share[at, i], share[at, j]
                before = 0.0
                for m in range(1, 2 * n + 2):
                    here = odds[m]
                    odds[m] = before * up + here * (1.0 - up - down) + odds[m + 1] * down
                    before = here
        lead = 0.0
        for m in range(1, n + 1):
            lead += odds[n + 1 + m] - odds[n + 1 - m]
        outcome[s] = lead


# --- API: methods ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class _Method(Part):
    """What methods share.

    ``columns`` is how many numbers an impression has in ``credit`` of a log, for n rankers.
    """

    k: int = 10

    name: ClassVar[str] = ""
    most_rankers: ClassVar[int] = 2**15 - 1
    sign: ClassVar[bool] = False

    def columns(self, n: int) -> int:
        """Return how many numbers the credit of an impression has for n rankers."""
        return n

    def check(self, n_rankers: int) -> None:
        """Raise unless the parameters are sound, and right for so many rankers."""
        check_parameters(self)
        check_whole("k", self.k, 1)
        if n_rankers < 2:
            raise UsageError("there is nothing to interleave: give the rankings of two rankers.")
        if n_rankers > self.most_rankers:
            raise UsageError(
                f"{self.name} interleaves two rankers, not {n_rankers}; for more use team_draft "
                "or probabilistic."
            )

    def lists(
        self, rankings: _Rankings, query: I32, session: AnyArray, seed: int, n_jobs: int | None
    ) -> _Out:
        """Return the list of each session: of this query, with this number."""
        out = self._empty(rankings, query, session)
        self._draw(rankings, out, seed, n_jobs)
        fair = _has_credit(rankings, out)
        out.team[~fair] = -1
        out.credit[~fair] = 0.0
        return out

    def _draw(self, rankings: _Rankings, out: _Out, seed: int, n_jobs: int | None) -> None:
        """Write the lists of all sessions, with credit at all positions."""
        bounds = row_ranges(len(out.query), _SESSIONS_PER_RANGE)
        longest = int(rankings.length.max(initial=0))
        power = np.arange(1, longest + 1, dtype=np.float64) ** -self._tau()
        map_ranges(
            _draw_sessions,
            bounds,
            isinstance(self, TeamDraft),
            rankings,
            power,
            np.uint64(seed % 2**64),
            out,
            n_jobs=n_jobs,
        )

    def _empty(self, rankings: _Rankings, query: I32, session: AnyArray) -> _Out:
        n, sizes = len(rankings.length), np.minimum(rankings.size, self.k)[query]
        indptr = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        return _Out(
            indptr,
            query,
            session.astype(np.uint64),
            np.empty(indptr[-1], np.int32),
            np.full(indptr[-1], -1, np.int16),
            np.empty((indptr[-1], self.columns(n))),
        )

    def _tau(self) -> float:
        return 0.0

    def credits(self, log: ClickLog) -> F64:
        """Return the credit of each ranker for each session of an interleaved log."""
        held, n = self._held(log), _rankers_of(log)
        session = log.session_of_impression()
        total = [np.bincount(session, held[:, j] * log.click, log.n_sessions) for j in range(n)]
        return np.stack(total, axis=1)

    def outcomes(self, log: ClickLog, earned: F64, i: int, j: int) -> F64:  # noqa: ARG002
        """Return what each session says about rankers i and j, from -1 (j) to 1 (i)."""
        return np.sign(earned[:, i] - earned[:, j])

    def _held(self, log: ClickLog) -> F64:
        """Return the credit of the impressions of a log, as wide as this method writes it."""
        wide = self.columns(_rankers_of(log))
        if log.credit is None or log.credit.shape[1] != wide:
            found = 0 if log.credit is None else log.credit.shape[1]
            raise DataError(
                f"the log was interleaved by {self.name}, whose credit needs {wide} numbers for "
                f"each document; there are {found}. Keep what interleaving gave with the lists."
            )
        bad = self._impossible(log.credit)
        if bad.any():
            at = int(np.flatnonzero(bad)[0])
            raise DataError(
                f"the log was interleaved by {self.name}, which never gives the credit "
                f"{log.credit[at].tolist()} of impression {at}; the log is damaged."
            )
        return log.credit

    def _impossible(self, credit: F64) -> Any:
        """Return which rows of credit this method cannot have written; rows of 0 are no credit."""
        return (credit < 0.0).any(axis=1)


@dataclass(frozen=True, slots=True, repr=False)
class TeamDraft(_Method):
    """Team draft interleaving, and multileaving: rankers pick in turn, as captains do.

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

    def columns(self, n: int) -> int:  # noqa: ARG002
        """Return 0: the team is enough."""
        return 0

    def credits(self, log: ClickLog) -> F64:
        """Return the clicks of each team in each session."""
        if log.team is None:
            raise DataError(
                "the log was interleaved by team_draft but has no teams; keep the team of each "
                "document with the lists."
            )
        n, at = _rankers_of(log), log.click & (log.team >= 0)
        code = log.session_of_impression()[at] * n + log.team[at]
        counts = np.bincount(code, minlength=log.n_sessions * n).astype(np.float64)
        return counts.reshape(log.n_sessions, n)  # (1)


@dataclass(frozen=True, slots=True, repr=False)
class Probabilistic(_Method):
    """Probabilistic interleaving, and multileaving: documents are drawn by their ranks.

    Any document may be shown anywhere, which tells rankers apart that agree at the top; low ranks
    are shown to users.

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
        """Raise unless the parameters are sound."""
        _Method.check(self, n_rankers)
        check_zero_or_more("tau", self.tau)
        if self.tau * math.log10(self.k) > _SMALLEST:
            raise UsageError(
                f"tau must be {_SMALLEST / math.log10(self.k):g} or less for lists of {self.k}, "
                f"not {self.tau:g}: less likely documents have no number."
            )

    def _tau(self) -> float:
        return float(self.tau)

    def _impossible(self, credit: F64) -> Any:
        total = credit.sum(axis=1)
        return (credit < 0.0).any(axis=1) | ((np.abs(total - 1.0) > 1e-6) & (total != 0.0))

    def _held(self, log: ClickLog) -> F64:
        """Return the shares of the impressions of a log; 0 if the team is -1."""
        held = _Method._held(self, log)
        return held if log.team is None else held * (log.team >= 0)[:, None]

    def outcomes(self, log: ClickLog, earned: F64, i: int, j: int) -> F64:  # noqa: ARG002
        """Return P(i has more of the clicks) - P(j has more) for each session."""
        outcome = np.empty(log.n_sessions)
        bounds = row_ranges(log.n_sessions, _SESSIONS_PER_RANGE)
        map_ranges(_more_clicks, bounds, log.indptr, log.click, self._held(log), i, j, outcome)
        return outcome


@dataclass(frozen=True, slots=True, repr=False)
class Optimised(_Method):
    """Optimised interleaving of two rankers: the lists that tell most, drawn without bias.

    A linear program is solved for each pair of rankings, in 5 to 20 milliseconds for k = 10.

    Parameters
    ----------
    k : int, default 10
        Length of the lists.
    max_lists : int, default 2048
        How many lists are weighed; of more, which there may be for k above 11, a sample of so many.

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
        """Raise unless the parameters are sound."""
        _Method.check(self, n_rankers)
        check_whole("max_lists", self.max_lists, 2)

    def _draw(
        self,
        rankings: _Rankings,
        out: _Out,
        seed: int,
        n_jobs: int | None,  # noqa: ARG002
    ) -> None:
        """Write the lists of all sessions; positions that violate (5) get no credit."""
        query = out.query
        u = np.empty((len(query), 1))
        _sample_sessions(np.uint64(seed % 2**64), query, out.session, u)
        by_query = np.argsort(query, kind="stable")
        cuts = np.flatnonzero(np.diff(query[by_query])) + 1
        for sessions in np.split(by_query, cuts):
            programme = _shown_lists(self._content(rankings, int(query[sessions[0]])))
            last = len(programme.total) - 1
            at = np.minimum(np.searchsorted(programme.total, u[sessions, 0], side="right"), last)
            chosen = programme.lists[at]
            here = out.indptr[sessions][:, None] + np.arange(chosen.shape[1])
            out.shown[here] = chosen
            out.credit[here] = programme.credit[chosen] * programme.fair[:, None]

    def _impossible(self, credit: F64) -> Any:
        return ((credit <= 0.0) | (credit > 1.0)).any(axis=1) & credit.any(axis=1)

    def distribution(self, rankings: _Rankings, query: int) -> _Programme:
        """Return the lists that are allowed for a query, and their probabilities."""
        return _programme(self._content(rankings, query))

    def _content(self, rankings: _Rankings, query: int) -> _Content:
        """Return what the programme of a query depends on."""
        here = slice(int(rankings.indptr[query]), int(rankings.indptr[query + 1]))
        order, rank = rankings.order[:, here], rankings.rank[:, here]
        length = rankings.length[:, query]
        size = min(int(rankings.size[query]), self.k)
        orders, ranks, lengths = (
            np.ascontiguousarray(one).tobytes() for one in (order, rank, length)
        )
        return (orders, ranks, lengths), (len(order), order.shape[1]), size, int(self.max_lists)

    def outcomes(self, log: ClickLog, earned: F64, i: int, j: int) -> F64:
        """Return the difference of credits, relative to the most of so many clicks."""
        clicked = log.click & self._held(log).any(axis=1)
        number = np.bincount(log.session_of_impression(), clicked, log.n_sessions)
        most = np.cumsum(1.0 / np.arange(1, int(number.max(initial=1.0)) + 1))
        most = np.append(1.0, most)[number.astype(np.int64)]  # no rank is twice in a ranking
        found: F64 = (earned[:, i] - earned[:, j]) / most
        return found


def _has_credit(rankings: _Rankings, out: _Out) -> NDArray[np.bool_]:
    """Return whether every ranker is sure to have a document left for each impression."""
    sizes = np.diff(out.indptr)
    place = np.arange(out.indptr[-1]) - np.repeat(out.indptr[:-1], sizes)
    shortest = rankings.length.min(axis=0)[out.query]
    fair: NDArray[np.bool_] = place < np.repeat(shortest, sizes)
    return fair


Method = _Method
METHODS: Mapping[str, type[_Method]] = {
    one.name: one for one in (Optimised, Probabilistic, TeamDraft)
}


def interleaving_method(method: Any, **params: Any) -> _Method:
    """Return a method by its name with these parameters; an object is returned as it is."""
    if isinstance(method, _Method):
        if params:
            raise UsageError(
                f"the parameters of {method!r} are given with it; leave out {', '.join(params)}."
            )
        return method
    if not isinstance(method, str) or method not in METHODS:
        raise UsageError(registry.unknown("interleaving method", str(method), METHODS))
    kind = METHODS[method]
    known = params_of(kind())
    for name in params:
        if name not in known:
            raise unknown_parameter(kind.__name__, name, known)
    return kind(**params)


def method_of(log: ClickLog) -> _Method:
    """Return the method that a log was interleaved by."""
    if log.interleaving is None:
        raise DataError(
            "the log does not say how its lists were interleaved, so no ranker gets credit; keep "
            "'interleaving', 'team' and 'credit' with the lists that interleave gives."
        )
    how = log.interleaving
    made = interleaving_method(how.method, **how.params)
    made.check(len(how.rankers))
    return made


def _rankers_of(log: ClickLog) -> int:
    assert log.interleaving is not None
    return len(log.interleaving.rankers)


# --- the linear program of optimised interleaving --------------------------------------------


class _Programme(NamedTuple):
    """Lists, their probabilities and running totals, and the credits of documents.

    ``fair`` marks the positions with credit. ``sensitivity`` is (4) over the positions at which
    every ranker has a document left.
    """

    lists: I32
    probability: F64
    total: F64
    credit: F64
    sensitivity: F64
    fair: NDArray[np.bool_]


_Content = tuple[tuple[bytes, bytes, bytes], tuple[int, int], int, int]


@lru_cache(maxsize=4096)
def _shown_lists(content: _Content) -> _Programme:
    """Return the programme with the lists that are ever shown, a dozen of perhaps thousands."""
    whole = _programme(content)
    kept = np.flatnonzero(whole.probability)
    return whole._replace(
        lists=whole.lists[kept],
        probability=whole.probability[kept],
        total=whole.total[kept],
        sensitivity=whole.sensitivity[kept],
    )


def _programme(content: _Content) -> _Programme:
    (orders, ranks, lengths), shape, size, max_lists = content
    order, rank, length = (np.frombuffer(one, np.int32) for one in (orders, ranks, lengths))
    order, rank = order.reshape(shape), rank.reshape(shape)
    lists = np.zeros((max_lists, size), np.int32)
    count = _allowed_lists(order, length, size, lists, np.zeros_like(lists))
    if count < 0:
        _sample_lists(order, length, size, lists)
        lists = np.unique(lists, axis=0)
    else:
        lists = lists[:count].copy()
    credit = 1.0 / np.where(rank > 0, rank, length[:, None] + 1.0)
    of_list = credit[:, lists]  # ranker, list, position
    shortest = int(length.min())
    of_list[:, :, shortest:] = 0.0  # a ranker may have no document left
    seen = (of_list / np.arange(1, size + 1)).sum(axis=2)
    sensitivity = ((seen - seen.mean(axis=0)) ** 2).sum(axis=0)  # (4)
    gap = (of_list[0] - of_list[1]).T  # (5), a row for each position
    probability = _solved(sensitivity, gap)
    return _Programme(
        lists,
        probability,
        np.cumsum(probability),
        np.ascontiguousarray(credit.T),
        sensitivity,
        (np.abs(gap @ probability) < _FAIR) & (np.arange(size) < shortest),
    )


def _solved(sensitivity: F64, gap: F64) -> F64:
    """Return the probabilities of the lists."""
    n, rows = len(sensitivity), len(gap)
    slack = np.eye(rows)
    found = optimize.linprog(
        np.concatenate([sensitivity, np.full(2 * rows, _PENALTY)]),
        A_eq=np.block([[np.ones((1, n)), np.zeros((1, 2 * rows))], [gap, slack, -slack]]),
        b_eq=np.append(1.0, np.zeros(rows)),
        bounds=(0.0, None),
        method="highs",
    )
    if found.x is None:
        raise DataError(
            f"the linear program of optimised interleaving was not solved: {found.message}"
        )
    p = np.maximum(found.x[:n], 0.0)
    chosen: F64 = p / p.sum()
    return chosen


# --- API: lists ------------------------------------------------------------------------------


class InterleavedList(NamedTuple):
    """A list to show, and what to log with it.

    Attributes
    ----------
    order : (k,) int array
        Documents, best first: row numbers of the scores, or places in ``documents``.
    team : (k,) int16
        The ranker that gave each document; -1 if a click on it gives no credit to one ranker. That
        is so below the length of the shortest ranking, and always with "optimised".
    credit : (k, c) float64
        What the method needs in addition to the team to give credit for clicks; c may be 0. All 0
        if a click gives no credit.
    method : object
        The method, with its parameters.
    documents : list
        Ids of the documents in order, where rankings of ids were given.
    n_rankers : int
        How many rankings were interleaved.

    Examples
    --------
    >>> from rankwright import clicks
    >>> shown = clicks.interleave_rankings([["a", "b"], ["c", "a"]], "team_draft", session=1)
    >>> dict(zip(shown.documents, shown.team.tolist()))  # -1: the second ranker has nothing left
    {'c': 1, 'a': 0, 'b': -1}
    """

    order: I32
    team: I16
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
        """Return a line for a log of clicks as JSON lines; it lacks ``clicks``.

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
    n_jobs: int | None = 1,
) -> InterleavedList:
    """Return one list from the scores that each ranker gives to the documents of a query.

    Parameters
    ----------
    scores : sequence of arrays (n,)
        One for each ranker; NaN says that a ranker does not return the document.
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
    arrays = [as_float_vector(one, "scores", np.size(one)) for one in scores]
    if any(one.shape != arrays[0].shape or one.ndim != 1 for one in arrays):
        raise UsageError(
            "every ranker gives one score to each document; the arrays have the shapes "
            f"{', '.join(str(one.shape) for one in arrays)}."
        )
    indptr = np.array([0, len(arrays[0])])
    return _one_list(_ranked(arrays, indptr, n_jobs), chosen, session, random_state, [])


def interleave_rankings(
    rankings: Sequence[Sequence[Any]],
    method: Any = "team_draft",
    *,
    session: int | str = 0,
    random_state: Any = 0,
) -> InterleavedList:
    """Return one list from rankings of document ids, which need not hold the same documents.

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
    scores = []
    for j, one in enumerate(rankings):
        if len(set(one)) < len(one):
            raise DataError(f"ranking {j} has a document twice.")
        for document in one:
            number.setdefault(document, len(number))
    for one in rankings:
        given = np.full(len(number), np.nan)
        given[[number[document] for document in one]] = -np.arange(len(one), dtype=np.float64)
        scores.append(given)
    ranked = _ranked(scores, np.array([0, len(number)]), 1)
    return _one_list(ranked, chosen, session, random_state, list(number))


def _one_list(
    rankings: _Rankings, method: _Method, session: int | str, random_state: Any, ids: list[Any]
) -> InterleavedList:
    number = int(session) if isinstance(session, int | np.integer) else _number_of(session)
    query, numbers = np.zeros(1, np.int32), np.array([number % 2**64], np.uint64)
    out = method.lists(rankings, query, numbers, seed_of(random_state), 1)
    documents = [ids[i] for i in out.shown.tolist()] if ids else []
    n_rankers = len(rankings.length)
    return InterleavedList(out.shown, out.team, out.credit, method, documents, n_rankers)


def _number_of(session: Any) -> int:
    if not isinstance(session, str):
        raise UsageError(f"session is a whole number or a text, not {type(session).__name__}.")
    text = session.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "little")


def _ranked(scores: Sequence[F64], indptr: I64, n_jobs: int | None) -> _Rankings:
    """Return the rankings of scores; NaN is absent."""
    n_queries, n = len(indptr) - 1, int(indptr[-1])
    start = np.repeat(indptr[:-1], np.diff(indptr))
    order = np.empty((len(scores), n), np.int32)
    length = np.empty((len(scores), n_queries), np.int32)
    query = np.repeat(np.arange(n_queries), np.diff(indptr))
    for j, one in enumerate(scores):
        order[j] = ranking(np.ascontiguousarray(one), indptr, n_jobs=n_jobs) - start
        length[j] = np.bincount(query, ~np.isnan(one), n_queries)
    rank = np.zeros((len(scores), n), np.int32)
    size = np.empty(n_queries, np.int32)
    bounds = row_ranges(n_queries, _SESSIONS_PER_RANGE)
    map_ranges(_rank_documents, bounds, indptr, order, length, rank, size, n_jobs=n_jobs)
    return _Rankings(indptr, order, length, rank, size)


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
        functions of ``data``. Scores that are NaN leave a document out of a ranking.
    method : str or method, default "team_draft"
        See `rankwright.clicks.interleaving`.
    sessions : int, default 1
        Lists for each query.
    random_state : int, RandomState, Generator or None, default 0
        A list depends on the seed and the numbers of its query and session alone.
    **params
        Parameters of the method, such as ``k``.

    Returns
    -------
    ClickLog
        With ``team``, ``credit`` and ``interleaving``; ``time`` is the number of a session among
        those of its query.

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
    named = dict(rankers) if isinstance(rankers, Mapping) else _named(rankers)
    chosen = interleaving_method(method, **params)
    chosen.check(len(named))
    scores = [scores_of(one, data) for one in named.values()]
    rankings = _ranked(scores, data.indptr, n_jobs)
    asked = np.flatnonzero(rankings.size)
    if not len(asked):
        raise DataError("the data has no documents to show.")
    query = np.repeat(asked, sessions).astype(np.int32)
    time = np.tile(np.arange(sessions), len(asked))
    out = chosen.lists(rankings, query, time, seed_of(random_state), n_jobs)
    sizes = np.diff(out.indptr)
    row = out.shown.astype(np.int64) + np.repeat(data.indptr[query], sizes)
    ids = np.arange(data.n_documents) if data.doc_id is None else data.doc_id
    code, names = codes_of_ids(ids)
    position = np.arange(len(row)) - np.repeat(out.indptr[:-1], sizes) + 1
    return ClickLog(
        indptr=out.indptr,
        query=query,
        document=code[row],
        position=position.astype(np.int32),
        click=np.zeros(len(row), bool),
        query_ids=data.qid,
        document_ids=names,
        time=time,
        features=data,
        row=row,
        team=out.team,
        credit=out.credit if out.credit.shape[1] else None,
        interleaving=Interleaving(chosen.name, tuple(named), chosen.get_params()),
    )


def _named(rankers: Sequence[Any]) -> dict[str, Any]:
    if isinstance(rankers, str):
        raise UsageError(f"rankers must be two or more, not {quoted(rankers)}.")
    return {chr(ord("A") + j) if j < 26 else str(j + 1): one for j, one in enumerate(rankers)}
