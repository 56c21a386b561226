"""Click logs in files: tables, JSON lines and User Behavior Insights of OpenSearch.

A reader yields parts of whole sessions, each a `ClickLog` of its own, so that a log need not fit
into memory; `load_log` joins them. Users are left out unless they are asked for.

========= =========================================================================================
format    what a file holds
========= =========================================================================================
csv, tsv  a row for each impression, under a line of column names
parquet   the same; also ``arrow``
jsonl     an object for each impression, with the names of columns as keys; or for each session:
          ``{"query": ..., "documents": [...], "clicks": [0, 1, ...]}``, and of interleaved lists
          ``"interleaving": {"method": ..., "rankers": [...]}, "teams": [...], "credits": [[...]]``;
          or ``{"session": ..., "query": ..., "documents": [...], "clicked": []}`` and, for
          positions that are clicked later, lines ``{"session": ..., "clicked": [2]}``
ubi       OpenSearch's indexes ``ubi_queries`` and ``ubi_events`` as JSON lines
========= =========================================================================================
"""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, groupby
from pathlib import Path
from typing import Any

import numpy as np

from rankwright import registry
from rankwright.core.dtypes import as_vector
from rankwright.core.types import AnyArray
from rankwright.data.click_log import (
    ClickLog,
    Interleaving,
    concatenate_logs,
    interleaving_columns,
    with_interleaving,
)
from rankwright.data.formats import check_options, format_named
from rankwright.data.frames import Columns, ids_of_text, listed
from rankwright.data.ranking_data import RankingData, first_repeated
from rankwright.data.streams import (
    display_name,
    open_target,
    plain_suffix,
    refuse_address,
    text_lines,
)
from rankwright.data.tables import naming
from rankwright.errors import DataError, UsageError, quoted

IMPRESSIONS_PER_PART = 1 << 20
_SESSIONS_AT_ONCE = 1 << 16
_TABLES = ("arrow", "csv", "parquet", "tsv")
_USUAL_NAMES = {
    "session": ("session", "session_id", "sessionid", "search_id"),
    "query": ("query", "query_id", "qid", "queryid", "query_text"),
    "document": ("document", "document_id", "doc", "doc_id", "docid", "item", "item_id", "url"),
    "click": ("click", "clicked", "clicks", "is_click"),
    "position": ("position", "rank", "pos"),
    "time": ("time", "timestamp", "date"),
    "propensity": ("propensity", "propensity_score"),
    "weight": ("weight", "count"),
}
"""Names of columns, lower case, that stand for a role unless another is given."""
_REQUIRED = ("session", "query", "document", "click")
_IDS = ("session", "query", "document", "user")


@dataclass(frozen=True)
class LogFile:
    """A click log in a file, which is read anew, part by part, each time it is asked for.

    Attributes
    ----------
    path : Path
    format : str
    options : dict
        Of the reader.
    features : RankingData or None
        Features that each part gets.

    Examples
    --------
    >>> from rankwright import clicks
    >>> log = clicks.ClickLog.from_arrays([7, 7], list("abba"), [1, 0, 0, 1], session_sizes=[2, 2])
    >>> clicks.save_log(log, "log.csv")
    >>> file = clicks.open_log("log.csv")
    >>> sum(part.n_sessions for part in file.parts())
    2
    """

    path: Path
    format: str
    options: dict[str, Any] = field(default_factory=dict)
    features: RankingData | None = None

    def parts(self) -> Iterator[ClickLog]:
        """Yield the log in parts of whole sessions."""
        for part in READERS[self.format](self.path, **self.options):
            yield part if self.features is None else part.with_features(self.features)

    def load(self) -> ClickLog:
        """Return the log as a whole."""
        if self.format in _TABLES:  # the rows of a session may lie apart
            log = _Table(self.format).whole(self.path, **self.options)
            return log if self.features is None else log.with_features(self.features)
        parts = list(self.parts())
        return parts[0] if len(parts) == 1 else concatenate_logs(parts)


def open_log(
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002
    features: RankingData | None = None,
    **options: Any,
) -> LogFile:
    """Return a click log that stays in its file: `score_interleaving` reads it part by part.

    Parameters
    ----------
    path, format, features, **options
        As for `load_log`. The rows of a session must follow each other.

    Examples
    --------
    >>> from rankwright import clicks
    >>> log = clicks.ClickLog.from_arrays([7, 7], list("abba"), [1, 0, 0, 1], session_sizes=[2, 2])
    >>> clicks.save_log(log, "log.parquet")
    >>> sum(part.n_impressions for part in clicks.open_log("log.parquet").parts())
    4
    """
    refuse_address(path)
    name = format or _format_of(path)
    if name not in READERS:
        raise UsageError(registry.unknown("format of click logs", name, READERS))
    check_options(name, "read", options, _OPTIONS[name])
    return LogFile(Path(path), name, options, features)


def load_log(
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002
    features: RankingData | None = None,
    **options: Any,
) -> ClickLog:
    """Read a click log from a file.

    Parameters
    ----------
    path
        Plain or compressed (``.gz``, ``.xz``, ``.bz2``, ``.zst``).
    format
        ``"csv"``, ``"tsv"``, ``"parquet"``, ``"arrow"``, ``"jsonl"`` or ``"ubi"``; by default
        found by the suffix.
    features
        Features of the documents, found by query and document id.
    **options
        What the reader takes. Tables and JSON lines: the name of the column of ``session``,
        ``query``, ``document``, ``click``, ``position``, ``time``, ``propensity``, ``weight`` and
        ``user``. UBI: ``events``, ``actions``, ``user``. Without ``user`` nothing
        about users is kept.

    Examples
    --------
    >>> from rankwright import clicks
    >>> log = clicks.ClickLog.from_arrays([7, 7], list("abba"), [1, 0, 0, 1], session_sizes=[2, 2])
    >>> clicks.save_log(log, "log.parquet")
    >>> clicks.load_log("log.parquet")
    ClickLog(2 sessions, 4 impressions, 2 clicks, 1 query, 2 documents, positions up to 2)
    """
    return open_log(path, format=format, features=features, **options).load()


def save_log(log: ClickLog, path: str | Path) -> None:
    """Write a log: as a table with a row for each impression, or a session in a line of JSON.

    Parameters
    ----------
    log
    path
        Its extension says how: .csv, .tsv, .parquet, .arrow or .jsonl.

    Examples
    --------
    >>> from pathlib import Path
    >>> from rankwright import clicks
    >>> log = clicks.ClickLog.from_arrays([7, 7], list("abba"), [1, 0, 0, 1], session_sizes=[2, 2])
    >>> clicks.save_log(log, "log.csv")
    >>> print(Path("log.csv").read_text())
    "session","query","document","position","click"
    0,7,"a",1,1
    0,7,"b",2,0
    1,7,"b",1,0
    1,7,"a",2,1
    """
    name = written_format(path)
    if name == "jsonl":
        _write_lines(json_lines(log), path)
        return
    session = log.session_of_impression()
    columns: dict[str, AnyArray] = {
        "session": session,
        "query": log.query_ids[log.query[session]],
        "document": log.document_ids[log.document],
        "position": log.position,
        "click": log.click.astype(np.int8),
    }
    for one in ("time", "user", "weight"):
        values = getattr(log, one)
        if values is not None:
            columns[one] = values[session]
    if log.propensity is not None:
        columns["propensity"] = log.propensity
    if log.interleaving is not None:
        how = json.dumps(log.interleaving.to_dict())
        columns["interleaving"] = np.full(log.n_impressions, how)
        if log.team is not None:
            columns["team"] = log.team
        if log.credit is not None:
            columns |= {f"credit_{number + 1}": one for number, one in enumerate(log.credit.T)}
    format_named(name).table.write_columns(columns, path)


def save_lists(log: ClickLog, path: str | Path) -> None:
    """Write lists that are to be shown: as `save_log`, but lines of JSON have no clicks.

    On standard output (``-``) these are JSON lines.
    """
    if str(path) == "-" or written_format(path) == "jsonl":
        _write_lines(json_lines(log, clicks=False), path)
    else:
        save_log(log, path)


def written_format(path: str | Path) -> str:
    """Return the format that the name of a file to be written says."""
    try:
        name = _format_of(path)
    except UsageError:
        name = ""
    if name != "jsonl" and name not in _TABLES:
        raise UsageError(
            f"{path}: click logs are written as .csv, .tsv, .parquet, .arrow or .jsonl."
        )
    return name


def _write_lines(lines: Iterable[str], path: str | Path) -> None:
    with open_target(path) as stream:
        for line in lines:
            stream.write(line.encode())


def json_lines(log: ClickLog, *, clicks: bool = True) -> Iterator[str]:
    """Yield a line of JSON for each session; without clicks they are lists that are to be shown."""
    several = {"documents": log.document_ids[log.document], "positions": log.position}
    if clicks:
        several["clicks"] = log.click.astype(np.int8)
    optional = {"propensities": log.propensity, "teams": log.team, "credits": log.credit}
    several |= {name: values for name, values in optional.items() if values is not None}
    once = {
        name: values
        for name in ("time", "user", "weight")
        if (values := getattr(log, name)) is not None
    }
    how = {} if log.interleaving is None else {"interleaving": log.interleaving.to_dict()}
    for session in range(log.n_sessions):
        here = slice(int(log.indptr[session]), int(log.indptr[session + 1]))
        line = {"session": session, "query": _plain(log.query_ids[log.query[session]])}
        line |= {name: _plain(values[session]) for name, values in once.items()}
        line |= {name: values[here].tolist() for name, values in several.items()}
        yield json.dumps(line | how, default=str, ensure_ascii=False) + "\n"


def _plain(value: Any) -> Any:
    """Return a scalar of NumPy as Python's, and a date as its text."""
    if isinstance(value, np.datetime64):
        return str(value)
    return value.item() if isinstance(value, np.generic) else value


def _format_of(path: str | Path) -> str:
    suffix = plain_suffix(path)
    found = {".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
    found |= dict.fromkeys(registry.EXTENSIONS["parquet"], "parquet")
    found |= dict.fromkeys(registry.EXTENSIONS["arrow"], "arrow")
    name = found.get(suffix)
    if name is None:
        raise UsageError(
            f"{path} has no file extension of a click log; name the format (format=..., "
            f"--format): {', '.join(READERS)}."
        )
    return name


# --- sessions one after the other ------------------------------------------------------------


class _Sessions:
    """Gathers sessions that come one after the other."""

    def __init__(self) -> None:
        self._columns: dict[str, list[Any]] = {}
        self._interleaving: Any = None
        self.sizes: list[int] = []
        self.impressions = 0

    def add(self, *, document: list[Any], click: list[Any], **columns: Any) -> None:
        """Take a session: lists with a value per impression, other values of the session."""
        for name, values in (("document", document), ("click", click)):
            self._columns.setdefault(name, []).extend(values)
        for name, value in columns.items():
            if name == "interleaving":
                if self._interleaving not in (None, value):
                    raise DataError(
                        "the sessions were interleaved in different ways: "
                        f"{quoted(str(self._interleaving))} and {quoted(str(value))}; keep them "
                        "apart."
                    )
                self._interleaving = value
            elif name in ("position", "propensity", "team", "credit"):
                self._columns.setdefault(name, []).extend(value)
            else:
                self._columns.setdefault(name, []).append(value)
        self.sizes.append(len(document))
        self.impressions += len(document)

    @property
    def full(self) -> bool:
        return self.impressions >= IMPRESSIONS_PER_PART

    def log(self) -> ClickLog:
        """Return what was gathered."""
        columns: dict[str, Any] = {
            name: _as_ids(name, values) if name in _IDS else _as_array(name, values)
            for name, values in self._columns.items()
        }
        if self._interleaving is not None:
            columns["interleaving"] = Interleaving.from_dict(self._interleaving)
        return ClickLog.from_arrays(**columns, session_sizes=self.sizes)


def _in_parts(sessions: Iterable[dict[str, Any]], path: str | Path) -> Iterator[ClickLog]:
    """Yield logs of so many sessions as make a part."""
    gathered, some = _Sessions(), False
    with naming(path):
        for session in sessions:
            some = True
            gathered.add(**session)
            if gathered.full:
                yield gathered.log()
                gathered = _Sessions()
        if gathered.sizes:
            yield gathered.log()
        elif not some:
            raise DataError("there are no sessions.")


def _as_array(name: str, values: list[Any]) -> AnyArray:
    try:
        array = np.asarray(values)
        return _times(array) if name == "time" else array
    except ValueError:  # rows of different lengths
        raise DataError(f"{name} must be numbers, as many for each document.") from None


def _as_ids(name: str, values: list[Any]) -> AnyArray:
    """Return ids as texts, or as whole numbers where all are, and int64 holds them."""
    kinds = set(map(type, values))
    if not kinds <= {str, int, float, bool}:
        bad = next(one for one in values if not isinstance(one, str | int | float))
        raise DataError(f"the id of a {name} must be a text or a number, not {quoted(str(bad))}.")
    if kinds == {str}:
        return ids_of_text(values)
    if kinds == {int} and -(2**63) <= min(values) <= max(values) < 2**63:
        return np.array(values, np.int64)
    return as_vector([str(one) for one in values], f"id of a {name}", len(values))


# --- tables ----------------------------------------------------------------------------------


def _choose(
    names: list[str], given: Mapping[str, str | None], required: Iterable[str] = _REQUIRED
) -> dict[str, str]:
    """Return the column of each role, by what was given or by its usual names."""
    chosen = {}
    for role in (*_USUAL_NAMES, "user"):
        name = given.get(role)
        if name is not None and name not in names:
            raise DataError(registry.unknown("column", name, names))
        usual = [one for one in names if one.strip().lower() in _USUAL_NAMES.get(role, ())]
        if name is None and len(usual) > 1:
            raise DataError(
                f"columns {' and '.join(map(repr, usual))} could each be the {role}; specify it "
                f"with {role}=..."
            )
        if name is not None or usual:
            chosen[role] = name or usual[0]
        elif role in required:
            raise DataError(
                f"no column of the {role} found ({', '.join(_USUAL_NAMES[role])}); the columns are "
                f"{', '.join(map(repr, names))}. Specify it with {role}=NAME (--read {role}=NAME)."
            )
    return chosen | interleaving_columns(names)


def _table_log(path: str | Path, column: Columns, roles: dict[str, str]) -> ClickLog:
    with naming(path):
        return _log_of_columns(column, roles)


def _log_of_columns(column: Columns, roles: dict[str, str]) -> ClickLog:
    arrays: dict[str, Any] = {}
    for role, name in roles.items():
        values = column(name)
        if role in _IDS:
            missing = [one is None or one == "" for one in values.tolist()]
            if any(missing):
                raise DataError(f"column {quoted(name)} is empty at row {missing.index(True)}.")
            if values.dtype.kind in "OU":
                values = ids_of_text([str(one) for one in values.tolist()])
        arrays[role] = _times(values) if role == "time" else values
    if not len(arrays["session"]):
        raise DataError("there are no rows.")
    return ClickLog.from_arrays(**with_interleaving(arrays))


def _times(values: AnyArray) -> AnyArray:
    """Return times as numbers where all are; else as they are written."""
    if values.dtype.kind not in "OU":
        return values
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError):
        return values


class _Table:
    """Reads tables of one format."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def parts(self, path: str | Path, given: Mapping[str, str | None]) -> Iterator[ClickLog]:
        """Yield the parts of a table; ``given`` names columns."""
        seen = _SeenSessions(display_name(path))
        for roles, column in self._columns(path, given, run="session"):
            seen.add_rows(column(roles["session"]))
            yield _table_log(path, column, roles)

    def whole(self, path: str | Path, **given: str | None) -> ClickLog:
        """Return the whole table, whose rows may come in any order."""
        ((roles, column),) = self._columns(path, given, run=None)
        return _table_log(path, column, roles)

    def _columns(
        self, path: str | Path, given: Mapping[str, str | None], run: str | None
    ) -> Iterator[tuple[dict[str, str], Columns]]:
        table = format_named(self.kind).table
        found: Iterator[tuple[dict[str, str], Columns]] = table.column_parts(
            path,
            lambda names: _choose(names, given),
            text=(*_IDS, "time", "interleaving"),
            run=run,
        )
        return found


class _SeenSessions:
    """Refuses a session that comes back after others; eight bytes for each session."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._hashes = np.empty(0, np.int64)

    def add_rows(self, session: AnyArray) -> None:
        """Take the session of each row of a part that ends where a session does."""
        first = np.flatnonzero(np.append(True, session[1:] != session[:-1]))
        self.add(session[first].tolist())

    def add(self, runs: list[Any]) -> None:
        """Take sessions, each once, that came after those before."""
        hashes = np.array([hash(one) for one in runs], np.int64)
        again = np.isin(hashes, self._hashes)
        twice = len(np.unique(hashes)) < len(hashes)
        if again.any() or twice:
            back = runs[int(np.flatnonzero(again)[0])] if again.any() else first_repeated(runs)
            raise DataError(
                f"{self._name}: session {quoted(back)} comes back after others; sort the rows by "
                "session, read a table as a whole (load_log), or leave out what is there twice."
            )
        self._hashes = np.concatenate((self._hashes, hashes))


# --- JSON lines ------------------------------------------------------------------------------


def _objects(path: str | Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the object of each line; of a search hit what it holds (``_source``)."""
    for number, line in text_lines(path):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            raise _wrong(path, number, "is not JSON; there must be one object per line") from None
        if isinstance(value, dict) and isinstance(value.get("_source"), dict):
            value = value["_source"]
        if not isinstance(value, dict):
            raise _wrong(path, number, "is no JSON object")
        yield number, value


def _wrong(path: str | Path, line: int, what: str) -> DataError:
    return DataError(f"{display_name(path)}, line {line} {what}.")


def _json_parts(path: str | Path, given: Mapping[str, str | None]) -> Iterator[ClickLog]:
    """Yield the parts of JSON lines; ``given`` names keys."""
    lines = (line for line in _objects(path) if not _is_report(line[1]))
    first = next(lines, None)
    if first is None:
        raise DataError(f"{display_name(path)}: there are no sessions.")
    everything = chain([first], lines)
    if isinstance(first[1].get("documents"), list):
        roles = _choose([*first[1]], given, required=("query",))
        yield from _in_parts(_json_sessions(path, everything, roles), path)
    else:
        roles = _choose([*first[1]], given)
        yield from _in_parts(_json_impressions(path, everything, roles), path)


def _json_sessions(
    path: str | Path, lines: Iterable[tuple[int, dict[str, Any]]], roles: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """Yield the sessions of lines that are one each."""
    several = {"documents": "document", "clicks": "click", "positions": "position"}
    several |= {"propensities": "propensity", "teams": "team", "credits": "credit"}
    reported: dict[Any, set[int]] | None = None
    seen, waiting = _SeenSessions(display_name(path)), list[Any]()
    keys: set[str] | None = None
    for number, one in lines:
        found: dict[str, Any] = {}
        if "clicks" not in one and isinstance(one.get("clicked"), list):
            if reported is None:
                reported = _reported_clicks(path)
            own = _held(one, "session", path, number)
            waiting.append(own)
            if len(waiting) == _SESSIONS_AT_ONCE:
                seen.add(waiting)
                waiting = []
            one = _with_clicks(one, reported.get(own, set()), path, number)
        for key, role in several.items():
            if key in one or role in ("document", "click"):
                found[role] = one.get(key)
                if not isinstance(found[role], list):
                    raise _wrong(path, number, f"has no list {quoted(key)}")
                if len(found[role]) != len(found["document"]):
                    raise _wrong(
                        path,
                        number,
                        f"has {len(found[role])} {key} for {len(found['document'])} documents",
                    )
        for role in ("query", "time", "weight", "user"):
            if role in roles:
                found[role] = _held(one, roles[role], path, number)
        if "interleaving" in one:
            found["interleaving"] = one["interleaving"]
        keys = set(found) if keys is None else keys
        if odd := sorted(keys ^ set(found)):
            name = next((key for key, role in several.items() if role == odd[0]), odd[0])
            has = "has no" if odd[0] in keys else "has"
            raise _wrong(path, number, f"{has} {quoted(name)}, unlike the lines above")
        if found["document"]:
            yield found
    seen.add(waiting)


def _is_report(one: dict[str, Any]) -> bool:
    """Whether a line only reports clicks on a list that another line has."""
    return isinstance(one.get("clicked"), list) and "query" not in one


def _reported_clicks(path: str | Path) -> dict[Any, set[int]]:
    """Return the positions of each session that its lines name as clicked."""
    found: dict[Any, set[int]] = {}
    for number, one in _objects(path):
        clicked = one.get("clicked")
        if isinstance(clicked, list):
            if any(type(position) is not int or position < 1 for position in clicked):
                raise _wrong(path, number, "reports clicks that are not positions, from 1")
            session = _held(one, "session", path, number)
            if clicked:
                found.setdefault(session, set()).update(clicked)
    return found


def _with_clicks(
    one: dict[str, Any], clicked: set[int], path: str | Path, number: int
) -> dict[str, Any]:
    documents = one.get("documents")
    if not isinstance(documents, list):
        return one
    positions = one.get("positions", [*range(1, len(documents) + 1)])
    if not isinstance(positions, list):
        return one
    if elsewhere := clicked - {at for at in positions if type(at) is int}:
        raise _wrong(path, number, f"has no document at position {min(elsewhere)}, a click says")
    return {**one, "clicks": [int(type(at) is int and at in clicked) for at in positions]}


def _json_impressions(
    path: str | Path, lines: Iterable[tuple[int, dict[str, Any]]], roles: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """Yield the sessions of lines that are an impression each; those of a session are together."""
    seen, waiting = _SeenSessions(display_name(path)), list[Any]()
    per_row = ("document", "click", "position", "propensity", "team")
    by_row = [role for role in per_row if role in roles]
    numbers = [role for role in roles if role.startswith("credit_")]
    of_session = [role for role in ("query", "time", "weight", "user") if role in roles]
    for session, group in groupby(lines, lambda line: line[1].get(roles["session"])):
        rows: dict[str, list[Any]] = {role: [] for role in by_row}
        found: dict[str, Any] = {}
        for number, one in group:
            _held(one, roles["session"], path, number)
            for role in by_row:
                rows[role].append(_held(one, roles[role], path, number))
            if numbers:
                rows.setdefault("credit", []).append(
                    [_held(one, role, path, number) for role in numbers]
                )
            if "interleaving" in roles:
                found.setdefault("interleaving", one.get("interleaving"))
            for role in of_session:
                found.setdefault(role, _held(one, roles[role], path, number))
            if found["query"] != one[roles["query"]]:
                raise _wrong(path, number, f"has another query than session {quoted(session)}")
        waiting.append(session)
        if len(waiting) == _SESSIONS_AT_ONCE:
            seen.add(waiting)
            waiting = []
        yield rows | found
    seen.add(waiting)


def _held(one: dict[str, Any], key: str, path: str | Path, number: int) -> Any:
    value = one.get(key)
    if value is None or isinstance(value, list | dict):
        raise _wrong(path, number, f"has no {quoted(key)}")
    return value


# --- OpenSearch ------------------------------------------------------------------------------

_HITS = ("query_response_object_ids", "query_response_objects_ids", "query_response_hit_ids")


def _read_ubi(
    path: str | Path,
    *,
    events: str | Path | None = None,
    actions: str | Iterable[str] = ("click",),
    user: bool = False,
) -> Iterator[ClickLog]:
    """Yield the parts of a log of User Behavior Insights.

    Parameters
    ----------
    path
        The index ``ubi_queries``, one object per line: what was asked (``user_query``) and shown.
    events
        The index ``ubi_events``; by default the lines of ``path`` that have an ``action_name``.
    actions
        Values of ``action_name`` that are clicks.
    user
        Whether to keep ``client_id``.
    """
    wanted = set(listed(actions) or [])
    clicked: dict[str, set[str]] = {}
    other: Counter[str] = Counter()
    for number, event in _objects(path if events is None else events):
        action = event.get("action_name")
        if action not in wanted:
            other[str(action)] += action is not None
            continue
        query_id, document = event.get("query_id"), _ubi_object(event)
        if query_id is None or document is None:
            raise _wrong(
                path if events is None else events,
                number,
                f"is a {action} without query_id or event_attributes.object.object_id",
            )
        clicked.setdefault(str(query_id), set()).add(str(document))
    if not clicked:
        named = ", ".join(quoted(name) for name, _ in other.most_common(5)) or "none"
        raise DataError(
            f"{display_name(events or path)} has no event of the actions "
            f"{', '.join(map(quoted, sorted(wanted)))}; its action names are {named}. Choose with "
            "actions=... (--read actions=NAME)."
        )
    yield from _in_parts(_ubi_sessions(path, clicked, user), path)
    missed = sum(map(len, clicked.values()))
    if missed:
        warnings.warn(
            f"{missed} clicks of {display_name(events or path)} are on documents that no logged "
            "query showed; they are left out.",
            stacklevel=2,
        )


def _ubi_sessions(
    path: str | Path, clicked: dict[str, set[str]], user: bool
) -> Iterator[dict[str, Any]]:
    """Yield the lists that queries showed; what was clicked is taken out of ``clicked``."""
    for number, one in _objects(path):
        if "action_name" in one:
            continue
        shown = next((one[key] for key in _HITS if isinstance(one.get(key), list)), None)
        if shown is None:
            raise _wrong(path, number, f"has no list {quoted(_HITS[0])}")
        text, query_id = one.get("user_query"), one.get("query_id")
        if text is None or query_id is None:
            missing = "user_query" if text is None else "query_id"
            raise _wrong(path, number, f"has no {quoted(missing)}")
        if not shown:
            continue
        documents = [str(document) for document in shown]
        found = clicked.pop(str(query_id), set())
        session: dict[str, Any] = {
            "query": str(text),
            "document": documents,
            "click": [document in found for document in documents],
            "time": str(one.get("timestamp", "")),
        }
        if user:
            session["user"] = str(one.get("client_id", ""))
        if left := found - set(documents):
            clicked[f"{query_id} (not shown)"] = left
        yield session


def _ubi_object(event: dict[str, Any]) -> Any:
    attributes = event.get("event_attributes")
    held = attributes.get("object") if isinstance(attributes, dict) else None
    return held.get("object_id") if isinstance(held, dict) else None


def _by_names(
    parts: Callable[[str | Path, Mapping[str, str | None]], Iterator[ClickLog]],
) -> Callable[..., Iterator[ClickLog]]:
    """Return a reader whose options name the columns of a table or the keys of JSON lines."""

    def read(
        path: str | Path,
        *,
        session: str | None = None,
        query: str | None = None,
        document: str | None = None,
        click: str | None = None,
        position: str | None = None,
        time: str | None = None,
        propensity: str | None = None,
        weight: str | None = None,
        user: str | None = None,
    ) -> Iterator[ClickLog]:
        given = {
            "session": session,
            "query": query,
            "document": document,
            "click": click,
            "position": position,
            "time": time,
            "propensity": propensity,
            "weight": weight,
            "user": user,
        }
        return parts(path, given)

    return read


READERS: dict[str, Callable[..., Iterator[ClickLog]]] = {
    **{name: _by_names(_Table(name).parts) for name in _TABLES},
    "jsonl": _by_names(_json_parts),
    "ubi": _read_ubi,
}
"""Readers by the name of their format: each yields the parts of a file."""

_OPTIONS = {
    **dict.fromkeys((*_TABLES, "jsonl"), (*_USUAL_NAMES, "user")),
    "ubi": ("events", "actions", "user"),
}
