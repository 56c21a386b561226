"""Click logs: `ClickLog` contains lists of documents that users saw, and their clicks.

A session is one list for one query. Its impressions, one for each document, are the rows
``indptr[s]:indptr[s + 1]`` in order of position. Queries and documents are codes (numbers from 0),
which are indices of ``query_ids`` and ``document_ids``. Features are in a separate table, a
`RankingData`, and ``row`` contains the row of each impression.
"""

from __future__ import annotations

import json
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwright.core.checks import ArraySpec, check_arrays
from rankwright.core.dtypes import as_array, as_float_vector, as_vector
from rankwright.core.types import F64, I64, AnyArray
from rankwright.data.content import mix_bits
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
"""The highest position of an impression. Models have parameters for each position."""

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


# --- API -------------------------------------------------------------------------------------


class Pairs(NamedTuple):
    """The distinct (query, document) pairs of a log, ordered by query, then by document.

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
        Sums of session weights (1 for a log without weights).
    row : (m,) int64 or None
        The row of the document in the feature table.
    """

    query: I32
    document: I32
    position: I32
    impressions: F64
    clicks: F64
    row: I64 | None


@dataclass(frozen=True, slots=True)
class Interleaving:
    """Description of how the lists of several rankers were interleaved.

    Attributes
    ----------
    method : str
        Name of the method, for example ``"team_draft"``.
    rankers : tuple of str
        Names of the rankers. Teams are indices of this tuple.
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
        """Return the description as a JSON object."""
        return {"method": self.method, "rankers": list(self.rankers), **self.params}

    @classmethod
    def from_dict(cls, content: Any) -> Interleaving:
        """Build from the result of `to_dict`."""
        params = dict(content) if isinstance(content, Mapping) else {}
        method, rankers = params.pop("method", None), params.pop("rankers", None)
        names = rankers if isinstance(rankers, list) else []
        if (
            not isinstance(method, str)
            or len(names) < 2
            or not all(isinstance(name, str) for name in names)
            or len(set(names)) < len(names)
        ):
            raise DataError(
                "interleaving must be an object with a method and the names of two or more "
                'different rankers, such as {"method": "team_draft", "rankers": ["A", "B"]}, '
                f"not {quoted(str(content)[:80])}."
            )
        return cls(method, tuple(names), params)


@dataclass(frozen=True, slots=True, eq=False)
class ClickLog:
    """Lists of documents that users saw, and their clicks.

    Build a log with `from_arrays` or `from_frame`. The constructor does not convert arrays; it
    raises an error if they are inconsistent.

    Attributes
    ----------
    indptr : (S + 1,) int64
        Boundaries of sessions.
    query : (S,) int32
        Query of each session, an index of ``query_ids``.
    document : (n,) int32
        Document of each impression, an index of ``document_ids``.
    position : (n,) int32
        Position of each impression, from 1, increasing within a session.
    click : (n,) bool
        Whether the document was clicked.
    query_ids, document_ids : arrays
        The caller's ids, of any type.
    time : (S,) array or None
        Time of each list: dates, or numbers in any unit.
    user : (S,) array or None
        User of each list. File readers omit users by default.
    weight : (S,) float64 or None
        Weight of each session in sums and means; None is 1. In intervals and tests, a session is
        one observation, independent of its weight.
    propensity : (n,) float64 or None
        Probability, above 0, that the document was shown at this position, for `evaluate_policy`.
        It is not the probability of examination, so learning does not use it.
    features : RankingData or None
        A table of features.
    row : (n,) int64 or None
        Row of each impression in ``features``.
    team : (n,) int16 or None
        For interleaved lists, the ranker that contributed the document, an index of the rankers of
        ``interleaving``; -1 if a click gives no credit to a single ranker.
    credit : (n, c) float64 or None
        For interleaved lists, further numbers of the method to give credit for clicks.
    interleaving : Interleaving or None
        Method and rankers of interleaved lists.

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
                "the click log: features and row belong together; use with_features to set both."
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
                    f"the click log: the array '{name}' has the shape {np.shape(values)}, but "
                    f"needs one value for each of the {lengths['sessions']} sessions."
                )
        if self.propensity is not None and len(self.propensity) and self.propensity.min() == 0.0:
            at = int(np.flatnonzero(self.propensity == 0.0)[0])
            raise DataError(f"the click log: the propensity is 0 at number {at}; it must be above.")
        if self.team is not None:
            self._check_teams(self.team)
        self._check_order()

    def _check_teams(self, team: NDArray[np.int16]) -> None:
        """Raise if a team is not one of the rankers."""
        if self.interleaving is None:
            raise DataError("the click log has teams, but not how it was interleaved.")
        names = self.interleaving.rankers
        if len(team) and team.max() >= len(names):
            raise DataError(
                f"the click log has a document of team {team.max()}; teams are numbers from 0 to "
                f"{len(names) - 1}, for the rankers {', '.join(map(quoted, names))}, or -1."
            )

    def _check_order(self) -> None:
        """Raise if positions do not increase within a session."""
        rises = self.position[1:] > self.position[:-1]
        first = self.indptr[1:-1]  # equal to the number of impressions for empty last sessions
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
        """Build from arrays with a value for each impression, in any order.

        Parameters
        ----------
        query : array-like (n,) or (S,)
            Query id of each impression, constant in a session, or of each session in order of
            first appearance.
        document : array-like (n,)
            Document id of each impression.
        click : array-like (n,)
            Whether, or how often, the document was clicked. Numbers above 0 are clicks.
        session : array-like (n,)
            Session id of each impression, of any type.
        session_sizes : array-like (S,)
            Instead of ``session``: the number of consecutive impressions of each session.
        position : array-like (n,)
            From 1; by default the order of impressions in their session.
        time, user, weight : array-like (n,) or (S,)
            As ``query``; see the attributes.
        propensity : array-like (n,)
            Probability that each document was shown at its position.
        team, credit, interleaving
            For interleaved lists: a team and a row of numbers for each impression, and the method;
            see the attributes.
        features : RankingData
            Features of the documents with ``doc_id``, joined by query and document id.
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
                raise DataError("the log has no impressions.")
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
        queries = clean_ids(as_array(query, "query id"), "query id")
        query_codes, query_ids = codes_of_ids(_per_session(queries, "query", indptr, source))
        documents = clean_ids(as_vector(document, "document", n), "document id")
        document_codes, document_ids = codes_of_ids(documents[source])
        of_sessions: dict[str, Any] = {
            name: _per_session(values, name, indptr, source)
            for name, values in (("time", time), ("user", user), ("weight", weight))
            if values is not None
        }
        if "weight" in of_sessions:
            weights = checked_weights(of_sessions["weight"], "weight", len(indptr) - 1)
            of_sessions["weight"] = weights
        log = cls(
            indptr=indptr,
            query=query_codes,
            document=document_codes,
            position=np.ascontiguousarray(places[source]),
            click=clicks[source] > 0,
            query_ids=query_ids,
            document_ids=document_ids,
            propensity=(
                None if propensity is None else as_float_vector(propensity, "propensity", n)[source]
            ),
            team=None
            if team is None
            else _whole_numbers(team, "team", n, -1, 2**15 - 1)[source].astype(np.int16),
            credit=None if credit is None else _credits(credit, n)[source],
            interleaving=interleaving,
            **of_sessions,
        )
        return log if features is None else log.with_features(features)

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
            By default, ``position`` and the columns of interleaved lists (``interleaving``,
            ``team``, ``credit_1``, ...) are used if the frame has them.
        """
        for role in columns:
            if role not in OPTIONAL_COLUMNS:
                raise UsageError(
                    f"column role {quoted(role)} is unknown; further columns are "
                    f"{', '.join(OPTIONAL_COLUMNS)}."
                )
        column = columns_of_frame(frame)
        named = {"session": session, "query": query, "document": document, "click": click}
        named |= columns
        if "position" not in named and "position" in column:
            named["position"] = "position"
        named |= interleaving_columns(column)
        ids = {"session": "session id", "query": "query id", "document": "document id"}
        arrays = {
            role: checked_ids(column(name), name, ids[role]) if role in ids else column(name)
            for role, name in named.items()
        }
        return cls.from_arrays(**with_interleaving(arrays), features=features)

    def _replace(self, **changes: Any) -> ClickLog:
        """Return a copy with other arrays, without checks."""
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
        present = [name for name in optional if getattr(self, name) is not None]
        about = [
            counted(self.n_sessions, "session"),
            counted(self.n_impressions, "impression"),
            counted(int(self.click.sum()), "click"),
            counted(self.n_queries, "query"),
            counted(self.n_documents, "document"),
            f"positions up to {self.n_positions}",
            *([f"with {', '.join(present)}"] if present else []),
        ]
        return f"ClickLog({', '.join(about)})"

    # --- parts -------------------------------------------------------------------------------

    def select(self, sessions: Any) -> ClickLog:
        """Return the log of some sessions, by their numbers in any order or by a boolean mask."""
        numbers = np.asarray(sessions)
        if numbers.dtype == bool:
            numbers = np.flatnonzero(as_vector(numbers, "sessions", self.n_sessions))
        if numbers.size and not (numbers.min() >= 0 and numbers.max() < self.n_sessions):
            raise UsageError(f"session numbers are from 0 to {self.n_sessions - 1}.")
        numbers = numbers.astype(np.int64)
        sizes = self.sizes[numbers]
        indptr = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        rows = np.arange(indptr[-1]) + np.repeat(self.indptr[numbers] - indptr[:-1], sizes)
        arrays = {name: getattr(self, name) for name in (*_PER_IMPRESSION, *_PER_SESSION)}
        selected = {
            name: values[rows if name in _PER_IMPRESSION else numbers]
            for name, values in arrays.items()
            if values is not None
        }
        return self._replace(indptr=indptr, **selected)

    def session_of_impression(self) -> I64:
        """Return the session number of each impression."""
        return np.repeat(np.arange(self.n_sessions), self.sizes)

    def impression_weights(self) -> F64:
        """Return the weight of the session of each impression; 1 without weights."""
        if self.weight is None:
            return np.ones(self.n_impressions)
        return np.repeat(self.weight, self.sizes)

    # --- queries and documents ---------------------------------------------------------------

    def pairs(self) -> Pairs:
        """Return the distinct (query, document) pairs, and the pair of each impression."""
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
        """Return the log with features of its documents, joined by query and document id.

        Parameters
        ----------
        features
            Features with ``doc_id``, whose ``qid`` are query ids of this log. Further queries and
            documents are ignored.
        """
        if features.doc_id is None:
            raise DataError(
                "the features have no document ids, which are needed to join them with the log: "
                "build the data with doc_id=..."
            )
        query = places_of_ids(features.qid, self.query_ids)
        document = places_of_ids(features.doc_id, self.document_ids)
        of_row = query[features.query_of_row()]
        rows = np.flatnonzero((of_row >= 0) & (document >= 0))
        keys = of_row[rows] * self.n_documents + document[rows]
        order = np.argsort(keys, kind="stable")
        keys, rows = keys[order], rows[order]
        wanted = np.repeat(self.query, self.sizes).astype(np.int64) * self.n_documents
        wanted += self.document
        places = np.searchsorted(keys, wanted)
        present = places < len(keys)
        present[present] = keys[places[present]] == wanted[present]
        if not present.all():
            first = int(np.flatnonzero(~present)[0])
            session = int(np.searchsorted(self.indptr, first, side="right")) - 1
            raise DataError(
                f"document {quoted(self.document_ids[self.document[first]])} of query "
                f"{quoted(self.query_ids[self.query[session]])} (session {session}) and "
                f"{int((~present).sum()) - 1} further impressions have no features; omit these "
                "sessions, or add their features."
            )
        return self._replace(features=features, row=rows[places])

    def to_ranking_data(self, by: Literal["session", "query"] = "session") -> RankingData:
        """Return the log as training data, with clicks as grades and with positions.

        Parameters
        ----------
        by
            ``"session"``: a list for each session; grades are 0 and 1, and ``qid`` is the session
            number. ``"query"``: a list for each query with a row for each document and position;
            grades are click rates and ``sample_weight`` the impressions.
        """
        if self.features is None or self.row is None:
            raise DataError("the log has no features; add them with log.with_features(data).")
        columns: dict[str, Any]
        if by == "session":
            rows, grades = self.row, self.click.astype(np.float64)
            columns = {
                "group_sizes": self.sizes,
                "query_weight": self.weight,
                "doc_id": self.document_ids[self.document],
                "position": self.position,
            }
        elif by == "query":
            counts = self.counts()
            rows = np.asarray(counts.row)
            grades = counts.clicks / np.where(counts.impressions > 0, counts.impressions, 1.0)
            columns = {
                "qid": self.query_ids[counts.query],
                "sample_weight": counts.impressions,
                "doc_id": self.document_ids[counts.document],
                "position": counts.position,
            }
        else:
            raise UsageError(f"by must be 'session' or 'query', not {quoted(by)}.")
        data = RankingData.from_arrays(
            self.features.X[rows],
            grades,
            feature_names=self.features.feature_names,
            categories=self.features.categories,
            **columns,
        )
        return replace(data, feature_ids=self.features.feature_ids)

    def merged(self) -> ClickLog:
        """Return the log without repeated sessions, weighted by the number of repetitions.

        Sessions are equal if their query, documents, positions and clicks are equal. The result has
        no times, users, propensities and interleaving. Click models based on counts have the same
        fit on the result as on the log.
        """
        # Positions increase within a session, so the sum of its hashed impressions identifies it.
        impressions = self.document.astype(np.uint64) << np.uint64(32)
        impressions |= (2 * self.position + self.click).astype(np.uint64)
        sums = np.append(np.zeros(1, np.uint64), np.cumsum(mix_bits(impressions)))
        hashes = mix_bits(~self.query.astype(np.uint64))
        hashes += sums[self.indptr[1:]] - sums[self.indptr[:-1]]
        _, first, number = np.unique(hashes, return_index=True, return_inverse=True)
        order = np.argsort(first)
        weight = np.ones(self.n_sessions) if self.weight is None else self.weight
        omitted = ("time", "user", "propensity", "team", "credit", "interleaving")
        sessions = self._replace(**dict.fromkeys(omitted)).select(first[order])
        return sessions._replace(weight=_sums(number, weight, len(first))[order])


FIELDS = tuple(field.name for field in fields(ClickLog))
OPTIONAL_COLUMNS = ("position", "time", "user", "weight", "propensity")


def concatenate_logs(logs: Sequence[ClickLog]) -> ClickLog:
    """Concatenate logs. Ids are matched by their values.

    The result has an optional array if all logs have it, and features if they are the same object
    in all logs. Logs must have the same interleaving.

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
    interleavings = [log.interleaving for log in logs]
    interleaved = all(interleaving is not None for interleaving in interleavings)
    sizes = np.concatenate([log.sizes for log in logs])
    query_ids, query = _joined_ids([(log.query_ids, log.query) for log in logs])
    document_ids, document = _joined_ids([(log.document_ids, log.document) for log in logs])
    shared = all(log.features is logs[0].features for log in logs)
    weights = [np.ones(log.n_sessions) if log.weight is None else log.weight for log in logs]

    def joined(name: str) -> Any:
        arrays = [getattr(log, name) for log in logs]
        return None if any(array is None for array in arrays) else np.concatenate(arrays)

    return ClickLog(
        indptr=np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
        query=query,
        document=document,
        query_ids=query_ids,
        document_ids=document_ids,
        weight=None if all(log.weight is None for log in logs) else np.concatenate(weights),
        features=logs[0].features if shared else None,
        row=joined("row") if shared else None,
        team=joined("team") if interleaved else None,
        credit=joined("credit") if interleaved else None,
        interleaving=_shared_interleaving(interleavings) if interleaved else None,
        **{name: joined(name) for name in ("position", "click", "time", "user", "propensity")},
    )


def _shared_interleaving(interleavings: Sequence[Any]) -> Any:
    """Return the interleaving of all sessions, or raise if it differs."""
    for interleaving in interleavings:
        if interleaving != interleavings[0]:
            raise DataError(
                "the sessions were interleaved in different ways: "
                f"{quoted(str(interleavings[0]))} and {quoted(str(interleaving))}; keep them apart."
            )
    return interleavings[0]


# --- interleaved lists in tables ---------------------------------------------------------------


def interleaving_columns(names: Container[str] | FrameColumns) -> dict[str, str]:
    """Return the columns of interleaved lists by role, if there is a column ``interleaving``.

    This column has the same JSON object in each row. ``team`` has the numbers of rankers, and
    ``credit_1``, ``credit_2``, ... are the columns of ``credit``.
    """
    if "interleaving" not in names:
        return {}
    columns = ["interleaving", *(["team"] if "team" in names else [])]
    number = 1
    while f"credit_{number}" in names:
        columns.append(f"credit_{number}")
        number += 1
    return {name: name for name in columns}


def with_interleaving(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Convert columns by role, including interleaved lists, to arguments of `from_arrays`."""
    if "interleaving" not in arrays:
        return dict(arrays)
    columns = {role: values for role, values in arrays.items() if not role.startswith("credit_")}
    content = _shared_interleaving(list(columns["interleaving"]) or [None])
    if isinstance(content, str):
        with suppress(ValueError, RecursionError):
            content = json.loads(content)
    columns["interleaving"] = Interleaving.from_dict(content)
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
    """Return a code for each id, and the distinct ids in the order of codes."""
    if ids.dtype.kind == "O":
        number: dict[Any, int] = {}
        codes = np.array(
            [number.setdefault(value, len(number)) for value in ids.tolist()], np.int32
        )
        names = np.empty(len(number), object)
        names[:] = list(number)
        return codes, names
    distinct, inverse = np.unique(ids, return_inverse=True)
    return inverse.astype(np.int32), distinct


def _joined_ids(parts: Sequence[tuple[AnyArray, I32]]) -> tuple[AnyArray, I32]:
    """Return the distinct ids of all parts, and the new codes of all parts."""
    ids = np.concatenate([ids for ids, _ in parts])
    codes, names = codes_of_ids(ids)
    starts = np.cumsum([0, *(len(ids) for ids, _ in parts)])
    return names, np.concatenate(
        [codes[start + old] for start, (_, old) in zip(starts, parts, strict=False)]
    )


def places_of_ids(ids: AnyArray, names: AnyArray) -> I64:
    """Return the index of each id in ``names``, -1 for other ids.

    Numbers and their texts are the same id, because readers of files return either.
    """
    if (ids.dtype.kind in "iu") != (names.dtype.kind in "iu"):
        ids, names = ids.astype(str), names.astype(str)
    number = {name: code for code, name in enumerate(names.tolist())}
    return np.array([number.get(value, -1) for value in ids.tolist()], np.int64)


def _sums(code: I64, weight: F64, n: int) -> F64:
    """Return the sum of the weights of each code."""
    return np.bincount(code, weight, n).astype(np.float64)


def _positions(position: Any, n: int, indptr: I64, order: I64 | None) -> I32:
    """Return the positions of rows in the order of the arguments."""
    if position is None:
        places = np.empty(n, np.int32)
        counted = np.arange(n) - np.repeat(indptr[:-1], np.diff(indptr)) + 1
        places[slice(None) if order is None else order] = counted
        return places
    zero_based = " Add 1 if the first document has position 0."
    return _whole_numbers(position, "position", n, 1, HIGHEST_POSITION, zero_based)


def _whole_numbers(
    values: Any, name: str, n: int, low: int, high: int, advice_for_zero: str = ""
) -> I32:
    numbers = as_float_vector(values, name, n)
    valid = (numbers >= low) & (numbers <= high) & (numbers == np.floor(numbers))
    if not valid.all():
        row = int(np.argmin(valid))
        advice = advice_for_zero if numbers[row] == 0 else ""
        raise DataError(
            f"{name} must be a whole number from {low} to {high:,}; row {row} has "
            f"{numbers[row]:g}.{advice}"
        )
    return numbers.astype(np.int32)


def _credits(credit: Any, n: int) -> F64:
    try:
        rows = np.asarray(credit, np.float64)
    except (TypeError, ValueError):
        raise DataError("credit must be rows of numbers, as many in each.") from None
    if rows.ndim != 2 or len(rows) != n:
        raise DataError(
            f"credit has the shape {rows.shape}, but needs a row of numbers for each of the {n} "
            "impressions."
        )
    return rows


def _in_order(position: AnyArray, session: AnyArray) -> bool:
    """Return whether positions increase within each session."""
    return bool(((position[1:] > position[:-1]) | (session[1:] != session[:-1])).all())


def _per_session(values: Any, name: str, indptr: I64, source: I64) -> AnyArray:
    """Return values per session, from as many values or one per impression."""
    array, n_sessions = as_array(values, name), len(indptr) - 1
    empty = (np.diff(indptr) == 0).any()
    if array.shape == (n_sessions,) and (n_sessions != len(source) or empty):
        return array
    if empty:
        raise DataError(
            f"session {int(np.flatnonzero(np.diff(indptr) == 0)[0])} has no impressions; give "
            f"{name} per session, or omit the session."
        )
    per_row = as_vector(array, name, len(source))[source]
    first = per_row[indptr[:-1]]
    same = per_row == np.repeat(first, np.diff(indptr))
    if name == "time":  # logs can contain the time of each click; use the first
        return first
    if not same.all():
        at = int(np.flatnonzero(~same)[0])
        session = int(np.searchsorted(indptr, at, side="right")) - 1
        raise DataError(
            f"session {session} has two values of {name}: {quoted(first[session])} and "
            f"{quoted(per_row[at])}; a session is one list for one query."
        )
    return first
