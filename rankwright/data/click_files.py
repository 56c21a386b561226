"""Click logs in files: tables, JSON lines and User Behavior Insights of OpenSearch.

Users are not read unless the caller names their column.

========= =========================================================================================
format    content
========= =========================================================================================
csv, tsv  a row for each impression, below a line of column names
parquet   the same; also ``arrow``
jsonl     an object for each impression, with column names as keys; or for each session:
          ``{"query": ..., "documents": [...], "clicks": [0, 1, ...]}``, and for interleaved lists
          ``"interleaving": {"method": ..., "rankers": [...]}, "teams": [...], "credits": [[...]]``;
          or ``{"session": ..., "query": ..., "documents": [...], "clicked": []}`` and, for later
          clicks on positions, lines ``{"session": ..., "clicked": [2]}``
ubi       the indexes ``ubi_queries`` and ``ubi_events`` of OpenSearch as JSON lines
========= =========================================================================================
"""

from __future__ import annotations

import json
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, groupby
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from rankwright import registry
from rankwright.core.types import AnyArray
from rankwright.data.click_log import (
    ClickLog,
    interleaving_columns,
    with_interleaving,
)
from rankwright.data.formats import format_named
from rankwright.data.frames import ids_of_text, listed, match_columns
from rankwright.data.json_values import as_struct, json_values
from rankwright.data.ranking_data import RankingData, first_repeated
from rankwright.data.streams import (
    display_name,
    error_at,
    open_target,
    plain_suffix,
    refuse_address,
)
from rankwright.data.tables import naming
from rankwright.errors import DataError, UsageError, counted, quoted

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
    "user": (),
}
"""Column names of each role in lower case; users must be named by the caller."""
_REQUIRED = ("session", "query", "document", "click")
_OF_SESSION = ("query", "time", "user", "weight")
_IDS = ("session", "query", "document", "user")
_SUFFIXES = {
    **{suffix: kind for kind in _TABLES for suffix in registry.EXTENSIONS[kind]},
    **dict.fromkeys((".jsonl", ".ndjson"), "jsonl"),
}
_OPTIONS = {
    **dict.fromkeys((*_TABLES, "jsonl"), tuple(_USUAL_NAMES)),
    "ubi": ("events", "actions", "user"),
}


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
        determined by the suffix.
    features
        Features of the documents, joined by query and document id.
    **options
        For tables and JSON lines, the column of ``session``, ``query``, ``document``, ``click``,
        ``position``, ``time``, ``propensity``, ``weight`` and ``user``; without ``user``, users are
        not read. For UBI: ``events``, the file of the index ``ubi_events`` (by default the lines of
        ``path`` with an ``action_name``); ``actions``, the values of ``action_name`` that are
        clicks (default ``"click"``); and ``user=True`` to read ``client_id``.

    Examples
    --------
    >>> from rankwright import clicks
    >>> log = clicks.ClickLog.from_arrays([7, 7], list("abba"), [1, 0, 0, 1], session_sizes=[2, 2])
    >>> clicks.save_log(log, "log.parquet")
    >>> clicks.load_log("log.parquet")
    ClickLog(2 sessions, 4 impressions, 2 clicks, 1 query, 2 documents, positions up to 2)
    """
    refuse_address(path)
    name = format or _SUFFIXES.get(plain_suffix(path))
    if name is None:
        raise UsageError(
            f"{path} has no file extension of a click log; name the format (format=..., "
            f"--format): {', '.join(_OPTIONS)}."
        )
    if name not in _OPTIONS:
        raise UsageError(registry.unknown("format of click logs", name, _OPTIONS))
    for option in options:
        if option not in _OPTIONS[name]:
            accepted = ", ".join(_OPTIONS[name])
            raise UsageError(
                f"format '{name}' has no option '{option}' to read; it takes {accepted}."
            )
    if name in _TABLES:
        log = _read_table(name, path, options)
    else:
        log = _read_ubi(path, **options) if name == "ubi" else _read_json(path, options)
    return log if features is None else log.with_features(features)


def save_log(log: ClickLog, path: str | Path) -> None:
    """Write a log as a table with a row for each impression, or as JSON lines of sessions.

    Parameters
    ----------
    log
    path
        The extension determines the format: .csv, .tsv, .parquet, .arrow or .jsonl.

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
    kind = written_format(path)
    if kind == "jsonl":
        _write_lines(log, path)
        return
    session = log.session_of_impression()
    columns: dict[str, AnyArray] = {
        "session": session,
        "query": log.query_ids[log.query[session]],
        "document": log.document_ids[log.document],
        "position": log.position,
        "click": log.click.astype(np.int8),
    }
    for name in _OF_SESSION[1:]:
        values = getattr(log, name)
        if values is not None:
            columns[name] = values[session]
    if log.propensity is not None:
        columns["propensity"] = log.propensity
    if log.interleaving is not None:
        interleaving = json.dumps(log.interleaving.to_dict())
        columns["interleaving"] = np.full(log.n_impressions, interleaving)
        if log.team is not None:
            columns["team"] = log.team
        if log.credit is not None:
            columns |= {f"credit_{at}": credit for at, credit in enumerate(log.credit.T, 1)}
    format_named(kind).table.write_columns(columns, path)


def save_lists(log: ClickLog, path: str | Path) -> None:
    """Write lists to show to users, as `save_log` does, but JSON lines without clicks.

    The format of standard output (``-``) is JSON lines.
    """
    if str(path) == "-" or written_format(path) == "jsonl":
        _write_lines(log, path, clicks=False)
    else:
        save_log(log, path)


def written_format(path: str | Path) -> str:
    """Return the format for writing a file, determined by its suffix."""
    name = _SUFFIXES.get(plain_suffix(path))
    if name is None:
        raise UsageError(
            f"{path}: click logs are written as .csv, .tsv, .parquet, .arrow or .jsonl."
        )
    return name


def _write_lines(log: ClickLog, path: str | Path, *, clicks: bool = True) -> None:
    with open_target(path) as stream:
        for line in json_lines(log, clicks=clicks):
            stream.write(line.encode())


def json_lines(log: ClickLog, *, clicks: bool = True) -> Iterator[str]:
    """Yield a line of JSON for each session, optionally without its clicks."""
    columns = {"document": log.document_ids[log.document], "click": log.click.astype(np.int8)}
    lists = {
        name: columns.get(role, getattr(log, role))
        for name, role in _LISTS.items()
        if clicks or role != "click"
    }
    scalars = {"query": log.query_ids[log.query], **{n: getattr(log, n) for n in _OF_SESSION[1:]}}
    how = {} if log.interleaving is None else {"interleaving": log.interleaving.to_dict()}
    for session in range(log.n_sessions):
        here = slice(int(log.indptr[session]), int(log.indptr[session + 1]))
        line = {name: _plain(v[session]) for name, v in scalars.items() if v is not None}
        line |= {name: v[here].tolist() for name, v in lists.items() if v is not None}
        yield (
            json.dumps({"session": session, **line, **how}, default=str, ensure_ascii=False) + "\n"
        )


def _plain(value: Any) -> Any:
    """Convert a NumPy scalar to Python, and a date to text."""
    if isinstance(value, np.datetime64):
        return str(value)
    return value.item() if isinstance(value, np.generic) else value


# --- tables ----------------------------------------------------------------------------------


def _read_table(kind: str, path: str | Path, options: Mapping[str, str | None]) -> ClickLog:
    texts = (*_IDS, "time", "interleaving")
    table = format_named(kind).table
    roles, column = table.chosen_columns(path, lambda names: _roles(names, options), text=texts)
    with naming(path):
        return _log_of_rows(column, roles)


def _roles(
    names: Sequence[str], options: Mapping[str, str | None], *, has_sessions: bool = False
) -> dict[str, str]:
    """Return role -> name of columns of impressions, or of keys of sessions."""
    if has_sessions:
        usual_names = {role: _USUAL_NAMES[role] for role in _OF_SESSION}
        return match_columns(names, usual_names, options, required=("query",))
    roles = match_columns(names, _USUAL_NAMES, options, required=_REQUIRED)
    return roles | interleaving_columns(names)


def _log_of_rows(column: Callable[[str], AnyArray], roles: Mapping[str, str]) -> ClickLog:
    """Return the log of columns with a value for each impression."""
    arrays: dict[str, Any] = {}
    for role, name in roles.items():  # one column at a time, since texts take much memory
        values = column(name)
        if role in _IDS:
            _refuse_missing_ids(values.tolist(), name)
        arrays[role] = _parsed(role, values)
    if not len(arrays["session"]):
        raise DataError("the table has no rows.")
    return ClickLog.from_arrays(**with_interleaving(arrays))


def _refuse_missing_ids(ids: list[Any], name: str) -> None:
    if "" in ids or not {dict, list, type(None)}.isdisjoint(map(type, ids)):
        row = next(
            row
            for row, value in enumerate(ids)
            if value in (None, "") or isinstance(value, dict | list)
        )
        raise DataError(f"column {quoted(name)} has no id at row {row}.")


def _parsed(role: str, values: Any) -> Any:
    """Convert ids to integers and times to floats if all texts of a column are numbers."""
    if role not in (*_IDS, "time"):
        return values
    kind = np.asarray(values).dtype.kind
    if role in _IDS and kind in "OUb":
        ids = values.tolist() if isinstance(values, np.ndarray) else values
        return ids_of_text([str(value) for value in ids])
    if role == "time" and kind in "OU":
        with suppress(TypeError, ValueError):
            return np.asarray(values).astype(np.float64)
    return values


# --- JSON lines ------------------------------------------------------------------------------

_Id = str | int | float | bool


class Session(msgspec.Struct, gc=False):
    """A list of documents that was shown to a user.

    Clicks are numbers for all documents, or positions that were clicked.
    """

    query: _Id
    documents: list[_Id]
    clicks: list[float | bool] | None = None
    clicked: list[int] | None = None
    session: _Id | None = None
    positions: list[float] | None = None
    propensities: list[float] | None = None
    teams: list[float] | None = None
    credits: list[list[float]] | None = None
    time: _Id | None = None
    weight: float | None = None
    user: _Id | None = None
    interleaving: Any = None
    line: int = 0


class Report(msgspec.Struct):
    """Clicks on the list of another line."""

    session: _Id
    clicked: list[int]
    line: int = 0


_LISTS = {
    "documents": "document",
    "positions": "position",
    "clicks": "click",
    "propensities": "propensity",
    "teams": "team",
    "credits": "credit",
}
"""The arguments of `ClickLog.from_arrays` for lists of a session."""
_VALUES = (*_OF_SESSION, "interleaving")


def _read_json(path: str | Path, options: Mapping[str, str | None]) -> ClickLog:
    """Read lines that contain a session or an impression each."""
    sessions, reports, rows = list[Session](), list[Report](), list[dict[str, Any]]()
    roles: dict[str, str] = {}
    with naming(path):
        for number, line in _objects(path):
            if isinstance(line.get("clicked"), list) and "query" not in line:
                line["line"] = number
                reports.append(as_struct(line, Report, path, number, "a report of clicks"))
                continue
            if not roles:
                has_sessions = isinstance(line.get("documents"), list)
                roles = _roles(list(line), options, has_sessions=has_sessions)
            if has_sessions:
                sessions.append(_session(line, roles, path, number))
            else:
                rows.append(line)
        if not rows:
            apply_reports(sessions, reports, path)
            return _log_of_sessions(sessions, path)
        log = _log_of_rows(partial(_column, rows), roles)
        _refuse_repeated([session for session, _ in groupby(row[roles["session"]] for row in rows)])
        return log


def _objects(path: str | Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the JSON objects of a file with their line numbers; of search hits the ``_source``."""
    for number, value in json_values(path):
        if isinstance(value, dict) and isinstance(value.get("_source"), dict):
            value = value["_source"]
        if not isinstance(value, dict):
            error_at(path, number, "this is not a JSON object")
        yield number, value


def _column(rows: Sequence[Mapping[str, Any]], name: str) -> AnyArray:
    column = np.empty(len(rows), object)
    column[:] = [row.get(name) for row in rows]
    return column


def _session(
    line: Mapping[str, Any], roles: Mapping[str, str], path: str | Path, number: int
) -> Session:
    keys = {key: key for key in ("session", "clicked", "interleaving", *_LISTS)} | dict(roles)
    fields = {field: line[key] for field, key in keys.items() if line.get(key) is not None}
    session: Session = as_struct(fields | {"line": number}, Session, path, number, "a session")
    return session


def apply_reports(sessions: Sequence[Session], reports: Sequence[Report], path: str | Path) -> None:
    """Set the clicks of sessions from their clicked positions and from later reports."""
    sessions = [session for session in sessions if session.clicks is None]
    clicked = defaultdict[Any, set[int]](set)
    lines: list[Session | Report] = [*sessions, *reports] if sessions else []
    for report in lines:
        if report.clicked is None:
            error_at(path, report.line, "the session has no list 'clicks'")
        if report.session is None:
            error_at(path, report.line, "the session has no key 'session'")
        if min(report.clicked, default=1) < 1:
            error_at(path, report.line, "clicked positions must be 1 or more")
        clicked[report.session].update(report.clicked)
    for session in sessions:
        positions = session.positions or range(1, len(session.documents) + 1)
        session.clicks = [position in clicked[session.session] for position in positions]
        if missing := clicked[session.session].difference(positions):
            problem = f"position {min(missing)} was clicked, but has no document"
            error_at(path, session.line, problem)
    _refuse_repeated([session.session for session in sessions])


def _refuse_repeated(sessions: Sequence[Any]) -> None:
    if len(set(sessions)) < len(sessions):
        raise DataError(
            f"session {quoted(first_repeated(sessions))} appears again after other sessions; sort "
            "the lines by session, and remove repeated lines."
        )


def _log_of_sessions(sessions: Sequence[Session], path: str | Path) -> ClickLog:
    """Return the log of sessions that have the same fields."""
    if not any(session.documents for session in sessions):
        raise DataError("the log has no sessions.")
    fields = (*_LISTS, *_VALUES)
    present = [field for field in fields if getattr(sessions[0], field) is not None]
    for session in sessions:
        for field in fields:
            values = getattr(session, field)
            if (values is not None) != (field in present):
                problem = f"{'no ' if field in present else ''}{quoted(field)}"
                error_at(path, session.line, f"the session has {problem}, unlike the first session")
            if field in _LISTS and values is not None and len(values) != len(session.documents):
                n_documents = counted(len(session.documents), "document")
                error_at(path, session.line, f"{len(values)} {field} for {n_documents}")
    sessions = [session for session in sessions if session.documents]
    columns: dict[str, list[Any]] = {}
    for field in present:
        values = [getattr(session, field) for session in sessions]
        columns[_LISTS.get(field, field)] = [*chain(*values)] if field in _LISTS else values
    sizes = [len(session.documents) for session in sessions]
    arrays = {role: _parsed(role, values) for role, values in columns.items()}
    return ClickLog.from_arrays(**with_interleaving(arrays), session_sizes=sizes)


# --- OpenSearch ------------------------------------------------------------------------------

_HITS = ("query_response_object_ids", "query_response_objects_ids", "query_response_hit_ids")


class _UbiQuery(msgspec.Struct):
    query_id: _Id
    user_query: _Id
    query_response_object_ids: list[_Id]
    timestamp: Any = ""
    client_id: Any = ""


class _UbiObject(msgspec.Struct):
    object_id: _Id


class _UbiAttributes(msgspec.Struct):
    object: _UbiObject


class _UbiEvent(msgspec.Struct):
    query_id: _Id
    event_attributes: _UbiAttributes


def _read_ubi(
    path: str | Path,
    *,
    events: str | Path | None = None,
    actions: str | Iterable[str] = ("click",),
    user: bool = False,
) -> ClickLog:
    """Read a log of User Behavior Insights."""
    lines = list(_objects(path))
    source = path if events is None else events
    clicked = _ubi_clicks(lines if events is None else _objects(events), source, listed(actions))
    sessions, n_missed = list[Session](), 0
    for number, line in lines:
        if "action_name" in line:
            continue
        hits = next((line[key] for key in _HITS if isinstance(line.get(key), list)), None)
        query = as_struct(line | {_HITS[0]: hits}, _UbiQuery, path, number, "a query of UBI")
        documents: list[_Id] = [str(document) for document in query.query_response_object_ids]
        clicks = clicked.pop(str(query.query_id), set())
        n_missed += len(clicks.difference(documents))
        session = Session(
            query=str(query.user_query),
            documents=documents,
            clicks=[document in clicks for document in documents],
            time=str(query.timestamp),
            user=str(query.client_id) if user else None,
            line=number,
        )
        sessions.append(session)
    with naming(path):
        log = _log_of_sessions(sessions, path)
    n_missed += sum(map(len, clicked.values()))
    if n_missed:
        warnings.warn(
            f"{n_missed} clicks of {display_name(source)} are on documents that no logged query "
            "showed; they are omitted.",
            stacklevel=3,
        )
    return log


def _ubi_clicks(
    lines: Iterable[tuple[int, dict[str, Any]]], path: str | Path, actions: Sequence[str] | None
) -> dict[str, set[str]]:
    """Return the clicked documents of each query id."""
    clicked, other_actions = defaultdict[str, set[str]](set), Counter[str]()
    for number, line in lines:
        action = line.get("action_name")
        if actions and action in actions:
            noun = f"a {action} with query_id and event_attributes.object.object_id"
            event = as_struct(line, _UbiEvent, path, number, noun)
            clicked[str(event.query_id)].add(str(event.event_attributes.object.object_id))
        elif action is not None:
            other_actions[str(action)] += 1
    if not clicked:
        names = ", ".join(quoted(name) for name, _ in other_actions.most_common(5)) or "none"
        raise DataError(
            f"{display_name(path)} has no event of the actions "
            f"{', '.join(map(quoted, sorted(actions or ())))}; its action names are {names}. "
            "Choose with actions=... (--read actions=NAME)."
        )
    return clicked
