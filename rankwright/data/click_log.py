"""`ClickLog`: result lists that users were shown, and what they clicked.

A session is one list shown for one query. Its impressions, one for each document shown, are
``indptr[s]:indptr[s + 1]``, in order of position. Queries and documents are codes (numbers from 0)
into ``query_ids`` and ``document_ids``. Features stay in a table of their own, a `RankingData`, and
``row`` points to them.
"""

from __future__ import annotations

import json
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwright.core.checks import ArraySpec, check_arrays
from rankwright.core.dtypes import as_array, as_float_vector, as_vector
from rankwright.core.jit import kernel
from rankwright.core.kernels import hash_step
from rankwright.core.types import F64, I64, AnyArray
from rankwright.data.frames import FrameColumns, checked_ids, columns_of_frame
from rankwright.data.ranking_data import (
    RankingData,
    boundaries_of_sizes,
    checked_weights,
    clean_ids,
    group_rows,
)
from rankwright.errors import DataError, UsageError, counted, quoted

I32 = NDArray[np.int32]

HIGHEST_POSITION = 10_000
"""The highest position of an impression: models keep numbers for each."""

_PER_IMPRESSION = ("document", "position", "click", "propensity", "row", "team", "credit")
_PER_SESSION = ("query", "time", "user", "weight")

_SPECS = (
    ArraySpec("indptr", "int64", ("sessions+1",), offsets="impressions"),
    ArraySpec("query", "int32", ("sessions",), below="queries"),
    ArraySpec("document", "int32", ("impressions",), below="documents"),
    ArraySpec("position", "int32", ("impressions",), low=1, high=HIGHEST_POSITION),
    ArraySpec("click", "bool", ("impressions",)),
    ArraySpec("propensity", "float64", ("impressions",), low=0.0, high=1.0, optional=True),
    ArraySpec("row", "int64", ("impressions",), below="rows", optional=True),
    ArraySpec("weight", "float64", ("sessions",), low=0.0, optional=True),
    ArraySpec("team", "int16", ("impressions",), low=-1, optional=True),
    ArraySpec("credit", "float64", ("impressions", "credits"), optional=True),
)


# --- kernels ---------------------------------------------------------------------------------


@kernel
def _hash_sessions(indptr, query, document, position, click, out):  # type: ignore[no-untyped-def]
    """Write a hash of each session: query, documents, positions and clicks."""
    for s in range(len(query)):
        state = hash_step(np.uint64(0), query[s])
        for i in range(indptr[s], indptr[s + 1]):
            state = hash_step(state, document[i])
            state = hash_step(state, 2 * position[i] + click[i])
        out[s] = state


@kernel
def _same_session(s, t, indptr, query, document, position, click):  # type: ignore[no-untyped-def]
    """Whether two sessions are equal."""
    size = indptr[s + 1] - indptr[s]
    if query[s] != query[t] or indptr[t + 1] - indptr[t] != size:
        return False
    for k in range(size):
        i, j = indptr[s] + k, indptr[t] + k
        if document[i] != document[j] or position[i] != position[j] or click[i] != click[j]:
            return False
    return True


@kernel
def _name_first(order, hashes, indptr, query, document, position, click, first):  # type: ignore[no-untyped-def]
    """Write the first session that equals each; ``order`` has equal hashes side by side."""
    head = -1
    for place in range(len(order)):
        s = order[place]
        equal = (
            head >= 0
            and hashes[s] == hashes[head]
            and _same_session(s, head, indptr, query, document, position, click)
        )
        if not equal:
            head = s
        first[s] = head


# --- API -------------------------------------------------------------------------------------


class Pairs(NamedTuple):
    """The different (query, document) pairs of a log, ordered by query, then by document.

    Attributes
    ----------
    query, document : (P,) int32
        Codes of each pair.
    code : (n,) int64
        The pair of each impression, a number from 0.
    """

    query: I32
    document: I32
    code: I64


class ClickCounts(NamedTuple):
    """Impressions and clicks of each (query, document, position), in that order.

    Attributes
    ----------
    query, document, position : (m,) int32
    impressions, clicks : (m,) float64
        Sums of the weights of sessions, which are 1 unless the log says otherwise.
    row : (m,) int64 or None
        The row of the feature table that holds the document.
    """

    query: I32
    document: I32
    position: I32
    impressions: F64
    clicks: F64
    row: I64 | None


@dataclass(frozen=True, slots=True)
class Interleaving:
    """How the lists of a log were put together from those of several rankers.

    Attributes
    ----------
    method : str
        Its name: ``"team_draft"``, ...
    rankers : tuple of str
        Names of the rankers; teams are numbers into them.
    params : dict
        Parameters of the method.

    Examples
    --------
    >>> from rankwright import clicks
    >>> clicks.Interleaving("team_draft", ("old", "new"), {"k": 10}).rankers
    ('old', 'new')
    """

    method: str
    rankers: tuple[str, ...]
    params: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return it as files keep it."""
        return {"method": self.method, "rankers": list(self.rankers), **self.params}

    @classmethod
    def from_dict(cls, held: Any) -> Interleaving:
        """Return what `to_dict` gave."""
        found = dict(held) if isinstance(held, Mapping) else {}
        method, rankers = found.pop("method", None), found.pop("rankers", None)
        names = rankers if isinstance(rankers, list) else []
        if (
            not isinstance(method, str)
            or len(names) < 2
            or not all(isinstance(one, str) for one in names)
            or len(set(names)) < len(names)
        ):
            raise DataError(
                "interleaving must be an object with a method and the names of two or more "
                'different rankers, such as {"method": "team_draft", "rankers": ["A", "B"]}, '
                f"not {quoted(str(held)[:80])}."
            )
        return cls(method, tuple(names), found)


@dataclass(frozen=True, slots=True, eq=False)
class ClickLog:
    """Result lists shown to users, and their clicks. Build it with `from_arrays` or `from_frame`.

    The constructor takes arrays as they are, and raises where they do not fit together.

    Attributes
    ----------
    indptr : (S + 1,) int64
        Boundaries of sessions.
    query : (S,) int32
        Query of each session, a code into ``query_ids``.
    document : (n,) int32
        Document of each impression, a code into ``document_ids``.
    position : (n,) int32
        Position at which it was shown, from 1; rises within a session.
    click : (n,) bool
        Whether it was clicked.
    query_ids, document_ids : arrays
        The caller's ids, of any type.
    time : (S,) array or None
        When each list was shown: dates, or numbers in any unit.
    user : (S,) array or None
        Who saw each list. Readers leave it out unless asked for it.
    weight : (S,) float64 or None
        How much each session counts, 1 if None: as so many sessions in sums and means. In
        intervals and tests a session is one observation, whatever its weight.
    propensity : (n,) float64 or None
        The probability, above 0, with which the document was shown there, as `evaluate_policy`
        takes it. It says nothing of whether users looked, so that learning does not use it.
    features : RankingData or None
        A table of features.
    row : (n,) int64 or None
        The row of ``features`` that holds the document of each impression.
    team : (n,) int16 or None
        Of interleaved lists: the ranker that gave the document, a number into the rankers of
        ``interleaving``; -1 if a click on it gives no credit to one ranker.
    credit : (n, c) float64 or None
        Of interleaved lists: what the method needs beside the team to give credit for clicks.
    interleaving : Interleaving or None
        How the lists were interleaved, and of which rankers.

    Examples
    --------
    >>> from rankwright import clicks
    >>> log = clicks.ClickLog.from_arrays(
    ...     query=["shoes", "shoes", "hats"],
    ...     document=["a", "b", "b", "a", "c"],
    ...     click=[1, 0, 0, 1, 0],
    ...     session_sizes=[2, 2, 1],
    ... )
    >>> log
    ClickLog(3 sessions, 5 impressions, 2 clicks, 2 queries, 3 documents, positions up to 2)
    >>> log.n_sessions, log.position.tolist()
    (3, [1, 2, 1, 2, 1])
    """

    indptr: I64
    query: I32
    document: I32
    position: I32
    click: NDArray[np.bool_]
    query_ids: AnyArray
    document_ids: AnyArray
    time: AnyArray | None = None
    user: AnyArray | None = None
    weight: F64 | None = None
    propensity: F64 | None = None
    features: RankingData | None = None
    row: I64 | None = None
    team: NDArray[np.int16] | None = None
    credit: F64 | None = None
    interleaving: Interleaving | None = None

    # --- building ----------------------------------------------------------------------------

    def __post_init__(self) -> None:
        if (self.features is None) != (self.row is None):
            raise DataError(
                "the click log: features and row belong together; with_features finds the rows."
            )
        present = {spec.name: getattr(self, spec.name) for spec in _SPECS}
        lengths = check_arrays(
            _SPECS,
            {name: array for name, array in present.items() if array is not None},
            "the click log",
            impressions=len(self.document),
            queries=len(self.query_ids),
            documents=len(self.document_ids),
            rows=0 if self.features is None else self.features.n_documents,
        )
        for name in ("time", "user"):
            values = getattr(self, name)
            if values is not None and np.shape(values) != (lengths["sessions"],):
                raise DataError(
                    f"the click log: the array '{name}' has the shape {np.shape(values)}; one "
                    f"value for each of the {lengths['sessions']} sessions is expected."
                )
        if self.propensity is not None and len(self.propensity) and self.propensity.min() == 0.0:
            at = int(np.flatnonzero(self.propensity == 0.0)[0])
            raise DataError(f"the click log: the propensity is 0 at number {at}; it must be above.")
        if self.team is not None:
            self._check_teams(self.team)
        self._check_order()

    def _check_teams(self, team: NDArray[np.int16]) -> None:
        """Refuse teams of rankers that are not there."""
        if self.interleaving is None:
            raise DataError("the click log has teams, but not how it was interleaved.")
        names = self.interleaving.rankers
        if len(team) and team.max() >= len(names):
            raise DataError(
                f"the click log has a document of team {team.max()}; teams are numbers from 0 to "
                f"{len(names) - 1}, for the rankers {', '.join(map(quoted, names))}, or -1."
            )

    def _check_order(self) -> None:
        """Refuse positions that do not rise within a session."""
        rises = self.position[1:] > self.position[:-1]
        first = self.indptr[1:-1]  # of the later sessions, and the end where these are empty
        rises[first[(first > 0) & (first < len(self.position))] - 1] = True
        if not rises.all():
            at = int(np.flatnonzero(~rises)[0]) + 1
            session = int(np.searchsorted(self.indptr, at, side="right")) - 1
            raise DataError(
                f"session {session} shows two documents at position {self.position[at]}, or in "
                "another order than by position; ClickLog.from_arrays puts them in order."
            )

    @classmethod
    def from_arrays(
        cls,
        query: Any,
        document: Any,
        click: Any,
        *,
        session: Any = None,
        session_sizes: Any = None,
        position: Any = None,
        time: Any = None,
        user: Any = None,
        weight: Any = None,
        propensity: Any = None,
        team: Any = None,
        credit: Any = None,
        interleaving: Interleaving | None = None,
        features: RankingData | None = None,
    ) -> ClickLog:
        """Check and group arrays with a value for each impression; these may come in any order.

        Parameters
        ----------
        query : array-like (n,) or (S,)
            Query id of each impression, the same in a session, or of each session in order of
            first appearance.
        document : array-like (n,)
            Document id of each impression.
        click : array-like (n,)
            Whether, or how often, it was clicked: 0 is no click, any higher number is one.
        session : array-like (n,)
            Session id of each impression, of any type.
        session_sizes : array-like (S,)
            Instead of ``session``: how many consecutive impressions each session has.
        position : array-like (n,)
            From 1; by default the order of impressions within their session.
        time, user, weight : array-like (n,) or (S,)
            As ``query``; see the attributes.
        propensity : array-like (n,)
            The probability with which each document was shown where it was.
        team, credit, interleaving
            Of interleaved lists: a team for each impression, a row of numbers for each, and the
            method; see the attributes.
        features : RankingData
            With ``doc_id``: the features of the documents, found by query and document id.
        """
        n = len(np.asarray(document))
        if (session is None) == (session_sizes is None):
            raise UsageError(
                "give session=..., the session id of each impression, or session_sizes=..., the "
                "number of impressions of each session."
            )
        if session_sizes is not None:
            indptr, _, order = boundaries_of_sizes(session_sizes, n, "session_sizes", "session")
        else:
            if not n:
                raise DataError("there are no impressions, so there is no log.")
            indptr, _, order = group_rows(as_vector(session, "session", n), "session id")
        clicks = as_float_vector(click, "click", n)
        if not (clicks >= 0).all():
            at = int(np.flatnonzero(~(clicks >= 0))[0])
            raise DataError(f"click must be 0 or more; row {at} has {clicks[at]}.")
        places = _positions(position, n, indptr, order)
        within = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        source = np.arange(n) if order is None else order
        if position is not None and not _in_order(places[source], within):
            source = source[np.lexsort((places[source], within))]
        query_codes, query_ids = codes_of_ids(
            _per_session(
                clean_ids(as_array(query, "query id"), "query id"), "query", indptr, source
            )
        )
        documents = clean_ids(as_vector(document, "document", n), "document id")
        document_codes, document_ids = codes_of_ids(documents[source])
        return cls(
            indptr=indptr,
            query=query_codes,
            document=document_codes,
            position=np.ascontiguousarray(places[source]),
            click=clicks[source] > 0,
            query_ids=query_ids,
            document_ids=document_ids,
            time=None if time is None else _per_session(time, "time", indptr, source),
            user=None if user is None else _per_session(user, "user", indptr, source),
            weight=(
                None
                if weight is None
                else checked_weights(
                    _per_session(weight, "weight", indptr, source), "weight", len(indptr) - 1
                )
            ),
            propensity=(
                None if propensity is None else as_float_vector(propensity, "propensity", n)[source]
            ),
            team=None if team is None else _teams(team, n)[source],
            credit=None if credit is None else _credits(credit, n)[source],
            interleaving=interleaving,
        )._given(features)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        session: str = "session",
        query: str = "query",
        document: str = "document",
        click: str = "click",
        features: RankingData | None = None,
        **columns: str,
    ) -> ClickLog:
        """Build from a pandas, polars or Arrow frame with a row for each impression.

        Parameters
        ----------
        session, query, document, click
            Names of the columns.
        features
            As in `from_arrays`.
        **columns
            Names of further columns: ``position``, ``time``, ``user``, ``weight``, ``propensity``.
            A column ``position`` is used where there is one, and so are the columns of
            interleaved lists: ``interleaving``, ``team``, ``credit_1``, ...
        """
        for role in columns:
            if role not in OPTIONAL_COLUMNS:
                raise UsageError(
                    f"there is no column role {quoted(role)}; further columns are "
                    f"{', '.join(OPTIONAL_COLUMNS)}."
                )
        column = columns_of_frame(frame)
        named = {"session": session, "query": query, "document": document, "click": click}
        named |= columns
        if "position" not in named and "position" in column:
            named["position"] = "position"
        named |= interleaving_columns(column)
        return cls.from_columns(column, named, features=features)

    @classmethod
    def from_columns(
        cls, column: Any, named: dict[str, str], *, features: RankingData | None = None
    ) -> ClickLog:
        """Build from columns: ``column(name)`` has the values, ``named`` the name of each role."""
        ids = {"session": "session id", "query": "query id", "document": "document id"}
        arrays = {
            role: checked_ids(column(name), name, ids[role]) if role in ids else column(name)
            for role, name in named.items()
        }
        return cls.from_arrays(**with_interleaving(arrays), features=features)

    def _given(self, features: RankingData | None) -> ClickLog:
        return self if features is None else self.with_features(features)

    def _replace(self, **changes: Any) -> ClickLog:
        """Return the log with other arrays that are known to fit together."""
        log = object.__new__(type(self))
        for name in FIELDS:
            object.__setattr__(log, name, changes.get(name, getattr(self, name)))
        return log

    # --- shape -------------------------------------------------------------------------------

    @property
    def n_sessions(self) -> int:
        """Number of sessions."""
        return len(self.indptr) - 1

    @property
    def n_impressions(self) -> int:
        """Number of documents shown, over all sessions."""
        return len(self.document)

    @property
    def n_queries(self) -> int:
        """Number of query ids."""
        return len(self.query_ids)

    @property
    def n_documents(self) -> int:
        """Number of document ids."""
        return len(self.document_ids)

    @property
    def n_positions(self) -> int:
        """The highest position."""
        return int(self.position.max()) if len(self.position) else 0

    @property
    def sizes(self) -> I64:
        """Number of impressions of each session."""
        return np.diff(self.indptr)

    def __len__(self) -> int:
        return self.n_sessions

    def __repr__(self) -> str:
        optional = ("time", "user", "weight", "propensity", "features", "interleaving")
        given = [name for name in optional if getattr(self, name) is not None]
        about = [
            counted(self.n_sessions, "session"),
            counted(self.n_impressions, "impression"),
            counted(int(self.click.sum()), "click"),
            counted(self.n_queries, "query"),
            counted(self.n_documents, "document"),
            f"positions up to {self.n_positions}",
            *([f"with {', '.join(given)}"] if given else []),
        ]
        return f"ClickLog({', '.join(about)})"

    # --- parts -------------------------------------------------------------------------------

    def select(self, sessions: Any) -> ClickLog:
        """Return the log of these session numbers, in their order; or of those that are True."""
        chosen = np.asarray(sessions)
        if chosen.dtype == bool:
            chosen = np.flatnonzero(as_vector(chosen, "sessions", self.n_sessions))
        if chosen.size and not (chosen.min() >= 0 and chosen.max() < self.n_sessions):
            raise UsageError(f"session numbers go from 0 to {self.n_sessions - 1}.")
        chosen = chosen.astype(np.int64)
        sizes = self.sizes[chosen]
        indptr = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        at = np.arange(indptr[-1]) + np.repeat(self.indptr[chosen] - indptr[:-1], sizes)
        return self._replace(indptr=indptr, **self._taken(at, chosen))

    def _taken(self, at: Any, sessions: Any) -> dict[str, Any]:
        taken = {name: _take(getattr(self, name), at) for name in _PER_IMPRESSION}
        return taken | {name: _take(getattr(self, name), sessions) for name in _PER_SESSION}

    def session_of_impression(self) -> I64:
        """Return the session number of each impression."""
        return np.repeat(np.arange(self.n_sessions), self.sizes)

    def impression_weights(self) -> F64:
        """Return the weight of each impression: that of its session, or 1."""
        if self.weight is None:
            return np.ones(self.n_impressions)
        return np.repeat(self.weight, self.sizes)

    # --- queries and documents ---------------------------------------------------------------

    def pairs(self) -> Pairs:
        """Return the different (query, document) pairs, and the pair of each impression."""
        query = np.repeat(self.query, self.sizes).astype(np.int64)
        keys, code = np.unique(query * self.n_documents + self.document, return_inverse=True)
        codes = np.divmod(keys, max(self.n_documents, 1))
        return Pairs(codes[0].astype(np.int32), codes[1].astype(np.int32), code)

    def counts(self) -> ClickCounts:
        """Return impressions and clicks of each (query, document, position)."""
        pairs = self.pairs()
        keys, first, code = np.unique(
            pairs.code * (HIGHEST_POSITION + 1) + self.position,
            return_index=True,
            return_inverse=True,
        )
        pair, position = np.divmod(keys, HIGHEST_POSITION + 1)
        weight = self.impression_weights()
        return ClickCounts(
            query=pairs.query[pair],
            document=pairs.document[pair],
            position=position.astype(np.int32),
            impressions=_sums(code, weight, len(keys)),
            clicks=_sums(code, weight * self.click, len(keys)),
            row=None if self.row is None else self.row[first],
        )

    def with_features(self, features: RankingData) -> ClickLog:
        """Return the log with the features of its documents, found by query and document id.

        Parameters
        ----------
        features
            With ``doc_id``; its ``qid`` are query ids of this log. It may hold more.
        """
        if features.doc_id is None:
            raise DataError(
                "the features have no document ids, so the documents of the log cannot be found "
                "in them: build the data with doc_id=..."
            )
        query = _places(features.qid, self.query_ids)
        document = _places(features.doc_id, self.document_ids)
        of_row = query[features.query_of_row()]
        known = np.flatnonzero((of_row >= 0) & (document >= 0))
        keys = of_row[known] * self.n_documents + document[known]
        order = np.argsort(keys, kind="stable")
        keys, known = keys[order], known[order]
        asked = np.repeat(self.query, self.sizes).astype(np.int64) * self.n_documents
        asked += self.document
        at = np.searchsorted(keys, asked)
        found = at < len(keys)
        found[found] = keys[at[found]] == asked[found]
        if not found.all():
            first = int(np.flatnonzero(~found)[0])
            session = int(np.searchsorted(self.indptr, first, side="right")) - 1
            raise DataError(
                f"document {quoted(self.document_ids[self.document[first]])} of query "
                f"{quoted(self.query_ids[self.query[session]])} (session {session}) is not among "
                f"the features, and {int((~found).sum()) - 1} further impressions are not; leave "
                "these sessions out, or add their features."
            )
        return self._replace(features=features, row=known[at])

    def to_ranking_data(self, by: Literal["session", "query"] = "session") -> RankingData:
        """Return the log as data to learn from, with clicks as grades and positions.

        Parameters
        ----------
        by
            ``"session"``: a list for each session, as it was shown; grades are 0 and 1, and
            ``qid`` is the session number. ``"query"``: a list for each query, with a row for each
            document and position; grades are click rates and ``sample_weight`` the impressions.
        """
        if self.features is None or self.row is None:
            raise DataError(
                "the log has no features to learn from; log.with_features(data) adds them."
            )
        if by == "session":
            return RankingData.from_arrays(
                self.features.X[self.row],
                self.click,
                group_sizes=self.sizes,
                query_weight=self.weight,
                doc_id=self.document_ids[self.document],
                position=self.position,
                feature_names=self.features.feature_names,
                categories=self.features.categories,
            )
        if by != "query":
            raise UsageError(f"by must be 'session' or 'query', not {quoted(by)}.")
        counts = self.counts()
        return RankingData.from_arrays(
            self.features.X[np.asarray(counts.row)],
            counts.clicks / np.where(counts.impressions > 0, counts.impressions, 1.0),
            qid=self.query_ids[counts.query],
            sample_weight=counts.impressions,
            doc_id=self.document_ids[counts.document],
            position=counts.position,
            feature_names=self.features.feature_names,
            categories=self.features.categories,
        )

    def merged(self) -> ClickLog:
        """Return the log with equal sessions once, and how often each occurred as its weight.

        Equal are the query, the documents, their positions and their clicks. Times, users,
        propensities and what belongs to interleaving are left out; models that count fit the
        result as they do the log.
        """
        content = self.indptr, self.query, self.document, self.position, self.click
        hashes = np.empty(self.n_sessions, np.uint64)
        _hash_sessions(*content, hashes)
        named = np.empty(self.n_sessions, np.int64)
        _name_first(np.argsort(hashes, kind="stable"), hashes, *content, named)
        first, number = np.unique(named, return_inverse=True)
        weight = np.ones(self.n_sessions) if self.weight is None else self.weight
        left_out = ("time", "user", "propensity", "team", "credit", "interleaving")
        kept = self._replace(**dict.fromkeys(left_out)).select(first)
        return kept._replace(weight=_sums(number, weight, len(first)))


FIELDS = tuple(field.name for field in fields(ClickLog))
OPTIONAL_COLUMNS = ("position", "time", "user", "weight", "propensity")


def concatenate_logs(logs: Sequence[ClickLog]) -> ClickLog:
    """Return the sessions of all logs, one log after the other; ids are matched by their value.

    An optional array is kept where every log has it; features where all have the same. Logs that
    were interleaved in different ways are refused.

    Examples
    --------
    >>> from rankwright import clicks
    >>> monday = clicks.ClickLog.from_arrays(["q"], ["a", "b"], [1, 0], session_sizes=[2])
    >>> tuesday = clicks.ClickLog.from_arrays(["r"], ["b", "c"], [0, 1], session_sizes=[2])
    >>> clicks.concatenate_logs([monday, tuesday])
    ClickLog(2 sessions, 4 impressions, 2 clicks, 2 queries, 3 documents, positions up to 2)
    """
    if not logs:
        raise DataError("there is nothing to concatenate.")
    interleaving = _joined_interleaving(logs)
    query_ids, query = _joined_ids([(log.query_ids, log.query) for log in logs])
    document_ids, document = _joined_ids([(log.document_ids, log.document) for log in logs])

    def joined(name: str) -> Any:
        arrays = [getattr(log, name) for log in logs]
        return None if any(one is None for one in arrays) else np.concatenate(arrays)

    shared = all(log.features is logs[0].features for log in logs)
    weights = [np.ones(log.n_sessions) if log.weight is None else log.weight for log in logs]
    sizes = np.concatenate([log.sizes for log in logs])
    return ClickLog(
        indptr=np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
        query=query,
        document=document,
        position=joined("position"),
        click=joined("click"),
        query_ids=query_ids,
        document_ids=document_ids,
        time=joined("time"),
        user=joined("user"),
        weight=None if all(log.weight is None for log in logs) else np.concatenate(weights),
        propensity=joined("propensity"),
        features=logs[0].features if shared else None,
        row=joined("row") if shared else None,
        team=None if interleaving is None else joined("team"),
        credit=None if interleaving is None else joined("credit"),
        interleaving=interleaving,
    )


def _joined_interleaving(logs: Sequence[ClickLog]) -> Interleaving | None:
    """Return how all logs were interleaved, None where one was not."""
    first = logs[0].interleaving
    for log in logs:
        if log.interleaving is None:
            return None
        if first is not None and log.interleaving != first:
            raise DataError(
                "the logs were interleaved in different ways: "
                f"{quoted(str(first.to_dict()))} and {quoted(str(log.interleaving.to_dict()))}; "
                "keep them apart."
            )
    return first


# --- interleaved lists in tables ---------------------------------------------------------------


def interleaving_columns(names: Container[str] | FrameColumns) -> dict[str, str]:
    """Return the columns of interleaved lists by role; none where no column says how they were.

    ``interleaving`` has the same object, written as JSON, in each row; ``team`` a number,
    ``credit_1``, ``credit_2``, ... the numbers of a row of ``credit``.
    """
    if "interleaving" not in names:
        return {}
    found = ["interleaving", *(["team"] if "team" in names else [])]
    number = 1
    while f"credit_{number}" in names:
        found.append(f"credit_{number}")
        number += 1
    return {name: name for name in found}


def with_interleaving(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments of `ClickLog.from_arrays` for columns by role, also of interleaved lists."""
    if "interleaving" not in arrays:
        return dict(arrays)
    columns = {role: values for role, values in arrays.items() if not role.startswith("credit_")}
    first, *others = list(columns["interleaving"]) or [None]
    different = next((other for other in others if other != first), None)
    if different is not None:
        raise DataError(
            f"the sessions were interleaved in different ways: {quoted(str(first))} and "
            f"{quoted(str(different))}; keep them apart."
        )
    if isinstance(first, str):
        with suppress(ValueError, RecursionError):
            first = json.loads(first)
    columns["interleaving"] = Interleaving.from_dict(first)
    if len(columns) < len(arrays):
        numbers = [
            as_float_vector(values, "credit", len(values))
            for role, values in arrays.items()
            if role.startswith("credit_")
        ]
        columns["credit"] = np.column_stack(numbers)
    return columns


# --- ids and codes ---------------------------------------------------------------------------


def codes_of_ids(ids: AnyArray) -> tuple[I32, AnyArray]:
    """Return a code for each id, and the different ids in the order of codes."""
    if ids.dtype.kind == "O":
        number: dict[Any, int] = {}
        codes = np.array([number.setdefault(one, len(number)) for one in ids.tolist()], np.int32)
        names = np.empty(len(number), object)
        names[:] = list(number)
        return codes, names
    different, places = np.unique(ids, return_inverse=True)
    return places.astype(np.int32), different


def _joined_ids(parts: Sequence[tuple[AnyArray, I32]]) -> tuple[AnyArray, I32]:
    """Return ids that hold those of all parts, and the codes of all parts in them."""
    ids = np.concatenate([ids for ids, _ in parts])
    codes, names = codes_of_ids(ids)
    starts = np.cumsum([0, *(len(ids) for ids, _ in parts)])
    return names, np.concatenate(
        [codes[start + old] for start, (_, old) in zip(starts, parts, strict=False)]
    )


def _places(ids: AnyArray, names: AnyArray) -> I64:
    """Return the code in ``names`` of each id, -1 where it is not there.

    Numbers and their texts are the same id: files bring one or the other.
    """
    if (ids.dtype.kind in "iu") != (names.dtype.kind in "iu"):
        ids, names = ids.astype(str), names.astype(str)
    number = {name: code for code, name in enumerate(names.tolist())}
    return np.array([number.get(one, -1) for one in ids.tolist()], np.int64)


def _sums(code: I64, weight: F64, n: int) -> F64:
    """Return the sum of the weights of each code."""
    return np.bincount(code, weight, n).astype(np.float64)


def _take(values: AnyArray | None, at: Any) -> Any:
    return None if values is None else values[at]


def _positions(position: Any, n: int, indptr: I64, order: I64 | None) -> I32:
    """Return the position of each row of the caller."""
    if position is None:
        places = np.empty(n, np.int32)
        counted = np.arange(n) - np.repeat(indptr[:-1], np.diff(indptr)) + 1
        places[slice(None) if order is None else order] = counted
        return places
    given = as_float_vector(position, "position", n)
    bad = ~((given >= 1) & (given <= HIGHEST_POSITION) & (given == np.floor(given)))
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        raise DataError(
            f"positions are whole numbers from 1 to {HIGHEST_POSITION:,}; row {at} has "
            f"{given[at]:g}."
            + (" Add 1 where the first document has position 0." if given[at] == 0 else "")
        )
    return given.astype(np.int32)


def _teams(team: Any, n: int) -> NDArray[np.int16]:
    given = as_float_vector(team, "team", n)
    bad = ~((given >= -1) & (given < 2**15) & (given == np.floor(given)))
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        raise DataError(f"teams are whole numbers from 0, or -1; row {at} has {given[at]:g}.")
    return given.astype(np.int16)


def _credits(credit: Any, n: int) -> F64:
    try:
        given = np.asarray(credit, np.float64)
    except (TypeError, ValueError):
        raise DataError("credit must be rows of numbers, as many in each.") from None
    if given.ndim != 2 or len(given) != n:
        raise DataError(
            f"credit has the shape {given.shape}; a row of numbers for each of the {n} impressions "
            "is expected."
        )
    return given


def _in_order(position: AnyArray, session: AnyArray) -> bool:
    """Whether positions rise within each session."""
    return bool(((position[1:] > position[:-1]) | (session[1:] != session[:-1])).all())


def _per_session(values: Any, name: str, indptr: I64, source: I64) -> AnyArray:
    """Return a value per session, of as many, or of one per impression, the same in a session."""
    array, n_sessions = as_array(values, name), len(indptr) - 1
    empty = (np.diff(indptr) == 0).any()
    if array.shape == (n_sessions,) and (n_sessions != len(source) or empty):
        return array
    if empty:
        raise DataError(
            f"session {int(np.flatnonzero(np.diff(indptr) == 0)[0])} has no impressions; give "
            f"{name} per session, or leave the session out."
        )
    per_row = as_vector(array, name, len(source))[source]
    first = per_row[indptr[:-1]]
    same = per_row == np.repeat(first, np.diff(indptr))
    if name == "time":  # a log may hold the time of each click: the first is kept
        return first
    if not same.all():
        at = int(np.flatnonzero(~same)[0])
        session = int(np.searchsorted(indptr, at, side="right")) - 1
        raise DataError(
            f"session {session} has two values of {name}: {quoted(first[session])} and "
            f"{quoted(per_row[at])}; a session is one list for one query."
        )
    return first
