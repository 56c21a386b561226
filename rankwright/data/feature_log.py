"""Feature logs of search engines: responses whose documents carry the features they were ranked by.

Elasticsearch and OpenSearch log with ``ext.ltr_log`` (``fields._ltrlog`` of each hit), Solr with
the transformer ``[features]``, Vespa with ``match-features``, ``summary-features`` or
``listFeatures``. A file has one JSON value per line, or values that are printed over many lines, as
engines and jq do it: a response, an array of responses, the answer of ``_msearch``, or one hit per
line. Any of these may be inside ``{"qid": ..., "response": ...}``. A response is the unit that is
held in memory, so that files of any length are read in parts.

The query of a response is what ``queries`` says, else the name ``qid:...`` of the log entry in
``log_specs``, a key ``qid`` beside the hits or of a hit, or of Solr, which repeats the parameters
of a request, the parameter ``qid`` or else ``q``. It is looked up in the judgments by id, then by
text.
"""

from __future__ import annotations

import warnings
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import import_module
from json import JSONDecoder
from math import nan
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Literal, NoReturn, Union

import numpy as np

from rankwright.core.dtypes import as_vector
from rankwright.core.types import AnyArray
from rankwright.data.formats import Format
from rankwright.data.frames import ids_of_text, listed
from rankwright.data.judgments import read_judgments
from rankwright.data.ranking_data import PartsDifferError, RankingData
from rankwright.data.streams import display_name, open_bytes, text_lines
from rankwright.errors import DataError, MissingExtraError, UsageError, quoted
from rankwright.registry import EXTENSIONS

_CELLS_PER_PART = 1 << 20
_CELLS_PER_BLOCK = 1 << 16
_VESPA = ("matchfeatures", "summaryfeatures", "rankfeatures")
_NOT_A_FEATURE = "vespa.summaryFeatures.cached"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_JSON = JSONDecoder()
_SHOWN = 3  # queries that a message names


class FeatureLog:
    """Logged features of Elasticsearch, OpenSearch, Solr and Vespa, with a judgment list."""

    extensions: ClassVar[tuple[str, ...]] = EXTENSIONS["feature_log"]
    holds: ClassVar[frozenset[str]] = frozenset({"doc_id", "qid", "feature_names", "query_weight"})

    def read(
        self,
        path: str | Path,
        *,
        judgments: Any = None,
        queries: Any = None,
        features: str | Sequence[str] | None = None,
        log: str | None = None,
        doc_id: str = "id",
        unjudged: Literal["drop", "zero"] = "drop",
        absent: Literal["zero", "missing"] | None = None,
        dtype: Literal["float32", "float64"] | None = None,
        grades: bool = True,
    ) -> RankingData:
        """Read a log and the grades of its documents.

        A query without judgments is left out, and so is a document that the log has a second time;
        warnings count what was left out, and judged documents that the log lacks.

        Parameters
        ----------
        path
            The log, plain or compressed.
        judgments
            What `rankwright.data.judgments.read_judgments` takes: a list ``grade qid:1 #
            document``, TREC judgments, a table such as Quepid's exports, or a mapping.
        queries
            The queries of the responses, in their order: ids, or a file with one id per line. Or a
            mapping from what the log calls a query to its id in the judgments.
        features
            Names of the features to read, in this order; by default those of the log, in the order
            of their first appearance.
        log
            Which log entry to read, where a hit has several: a name in ``log_specs``, the field of
            Solr's transformer, or one of matchfeatures, summaryfeatures and rankfeatures.
        doc_id
            The field of Solr's documents with their id.
        unjudged
            ``"drop"`` a document without judgment, or ``"zero"``: its grade is 0.
        absent
            What a feature without a value counts as: ``"missing"``, or ``"zero"``. By default
            missing; zero for Solr, whose sparse format leaves out zeros.
        dtype
            By default the engine's own precision: float64 for Vespa, float32 for the others.
        grades
            False: documents to be ranked, which need no judgments.
        """
        given = _Options(
            str(path), judgments, queries, features, log, doc_id, unjudged, absent, dtype, grades
        )
        (data,) = _Reader(given).parts(cells=None)
        return data

    def read_parts(self, path: str | Path, **options: Any) -> Iterator[RankingData]:
        """Yield the log in parts of whole queries; takes the options of `read`."""
        yield from _Reader(_Options(str(path), **options)).parts(cells=_CELLS_PER_PART)

    def names(self, path: str | Path) -> list[str]:
        """Return the features of the first document of a log."""
        first = next(_Reader(_Options(str(path), grades=False)).documents(), None)
        return [] if first is None else list(first[2])

    def write(self, data: RankingData, path: str | Path) -> None:  # noqa: ARG002
        """Refuse: engines write feature logs."""
        raise UsageError(
            f"{path}: feature logs are read, not written; write a table (.csv, .parquet), LETOR "
            "text (.txt) or a .store."
        )


@dataclass(frozen=True)
class _Options:
    """The options of `FeatureLog.read`."""

    path: str
    judgments: Any = None
    queries: Any = None
    features: str | Sequence[str] | None = None
    log: str | None = None
    doc_id: str = "id"
    unjudged: str = "drop"
    absent: str | None = None
    dtype: str | None = None
    grades: bool = True

    def __post_init__(self) -> None:
        choices = {
            "unjudged": ("drop", "zero"),
            "absent": (None, "zero", "missing"),
            "dtype": (None, "float32", "float64"),
        }
        for name, known in choices.items():
            if getattr(self, name) not in known:
                said = " or ".join(repr(one) for one in known if one is not None)
                raise UsageError(f"{name} must be {said}, not {getattr(self, name)!r}.")
        if self.grades and self.judgments is None:
            raise UsageError(
                f"{self.path} is a feature log, which has no grades; name its judgment list with "
                "judgments=FILE."
            )


# --- one JSON value after the other ------------------------------------------------------------


def _values(path: str) -> Iterator[tuple[int, bytes]]:
    """Yield the JSON values of a file, each with the number of its first line.

    A value is a line, or begins with a line ``{`` or ``[`` alone. It then ends with a line that
    begins with a closing bracket, or, as Solr closes the last ones on an indented line, before the
    next line that begins with ``{``.
    """
    begun: list[bytes] = []
    first = 0
    with open_bytes(path) as stream:
        for number, line in enumerate(stream, 1):
            if number == 1:
                line = line.removeprefix(_BYTE_ORDER_MARK)
            if begun and line.startswith(b"{") and begun[0].startswith(b"{"):
                yield first, b"".join(begun)
                begun = []
            short = line.strip() if len(line) < 32 else line
            if begun:
                begun.append(line)
                if line.startswith((b"}", b"]")):
                    yield first, b"".join(begun)
                    begun = []
            elif short in (b"{", b"["):
                begun, first = [line], number
            elif short:
                yield number, line
    if begun:
        yield first, b"".join(begun)


def _split(content: bytes) -> list[bytes] | None:
    """Return the JSON values that follow each other on a line; None where there are not several.

    Elasticsearch ends no response with a line's end, so that ``curl ... >> log.jsonl`` writes such
    lines.
    """
    found: list[bytes] = []
    try:
        text, at = content.decode().strip(), 0
        while at < len(text):
            end = _JSON.raw_decode(text, at)[1]
            found.append(text[at:end].encode())
            at = end
            while text[at : at + 1].isspace():
                at += 1
    except (ValueError, RecursionError):
        return None
    return found if len(found) > 1 else None


@cache
def _msgspec() -> Any:
    try:
        return import_module("msgspec")
    except ModuleNotFoundError:
        raise MissingExtraError("msgspec", "logs", "a feature log") from None


@lru_cache(maxsize=16)
def _decoder(names: tuple[str, ...], fill: float) -> Any:
    """Return a decoder of responses that builds what is read below and skips all else.

    It takes features of these names alone, or of any where there are none: known names are
    shared objects, which makes them quick to decode and compare.
    """
    ms = _msgspec()
    define, optional, text = ms.defstruct, ms.field, str | int | None
    name = Literal[names] if names else str
    feature = define("Feature", [("name", name), ("value", float | str | None, fill)], gc=False)
    entries = list[dict[str, list[feature]]]  # type: ignore[valid-type]
    fields = define(
        "Fields",
        [
            ("ltrlog", entries, optional(name="_ltrlog", default_factory=list)),
            ("documentid", text, None),
            *((kind, dict[str, Any] | None, None) for kind in _VESPA),
        ],
        gc=False,
    )
    own = [
        ("qid", str | int | float | None, None),
        ("hit_id", text, optional(name="_id", default=None)),
        ("id", text, None),
        ("fields", fields | None, None),
    ]
    hit = define("Hit", own, gc=False)
    hits = define("Hits", [("hits", list[hit])], gc=False)  # type: ignore[valid-type]
    children = [("children", list[hit], ()), ("errors", Any, None)]  # type: ignore[valid-type]
    root = define("Root", children, gc=False)
    header = define("Header", [("params", dict[str, Any], optional(default_factory=dict))])
    shards = define("Shards", [("failed", int, 0)])
    response: Any = None
    for _ in range(3):  # {"qid": ..., "response": the answer of _msearch: responses}
        response = define(
            "Response",
            [
                *own,
                ("hits", hits | list[hit] | None, None),  # type: ignore[valid-type]
                ("docs", list[dict[str, Any]] | None, None),
                ("root", root | None, None),
                ("error", Any, None),
                ("timed_out", bool, False),
                ("shards", shards | None, optional(name="_shards", default=None)),
                ("header", header | None, optional(name="responseHeader", default=None)),
                ("response", response | None if response else None, None),
                ("responses", list[response] if response else None, ()),
            ],
            gc=False,
        )
    return ms.json.Decoder(Union[response, list[response]])  # noqa: UP007


# --- documents ---------------------------------------------------------------------------------

Found = tuple[str | None, str, Sequence[str], Sequence[Any], int]
"""A document of a log: query, id, names of features, their values, and the line."""


class _Reader:
    """Reads the responses of a log, one after the other."""

    def __init__(self, given: _Options) -> None:
        self.given, self.path = given, display_name(given.path)
        self.judged = read_judgments(given.judgments) if given.grades else None
        self.queries = _queries(given.queries)
        self.fill = 0.0 if given.absent == "zero" else nan
        self.single = True
        self.responses = self.partial = 0
        self.known: dict[str, None] = {}
        self.decoders = [_decoder((), self.fill)]  # of any names, and of those that are known

    # Responses

    def documents(self) -> Iterator[Found]:
        """Yield the documents, response after response."""
        for line, content in _values(self.given.path):
            for response in self._decoded(content, line):
                yield from self._response(response, None, line)
        if isinstance(self.queries, list) and self.responses != len(self.queries):
            raise DataError(
                f"{self.path} has {self.responses} responses, but queries names "
                f"{len(self.queries)}; give the id of each, in order."
            )

    def _decoded(self, content: bytes, line: int) -> Iterator[Any]:
        """Yield the responses of a JSON value, or of several that follow without a line's end."""
        ms = _msgspec()
        try:
            try:
                value = self.decoders[-1].decode(content)
            except ms.ValidationError:  # a name that is new, or not a response at all
                value = self.decoders[0].decode(content)
        except ms.ValidationError as error:
            what, _, where = str(error).partition(" - at ")
            self.fail(line, f"this is no logged response: {_inside(what)} at {where or '`$`'}")
        except (ms.DecodeError, UnicodeDecodeError, RecursionError) as error:
            several = _split(content)
            if several is None:
                self.fail(line, f"this is not JSON: {_inside(str(error))}")
            for one in several:
                yield from self._decoded(one, line)
        else:
            yield from value if isinstance(value, list) else [value]

    def _response(self, value: Any, query: str | None, line: int) -> Iterator[Found]:
        """Yield the documents of a response, or of those inside it."""
        if value.error is not None or (value.root is not None and value.root.errors):
            reason = value.error if value.root is None else value.root.errors
            self.fail(line, f"the engine answered with an error: {quoted(_reason(reason))}")
        self.partial += value.timed_out or (value.shards is not None and value.shards.failed > 0)
        query = _text(value.qid) or query
        if value.header is not None:
            params = value.header.params
            query = query or _text(params.get("qid")) or _text(params.get("q"))
        for one in value.responses:
            yield from self._response(one, query, line)
        if value.response is not None:
            yield from self._response(value.response, query, line)
        if value.hits is not None:
            hits = value.hits if isinstance(value.hits, list) else value.hits.hits
            yield from self._plugin(hits, self._query(query), line)
        elif value.docs is not None:
            yield from self._solr(value.docs, self._query(query), line)
        elif value.root is not None:
            yield from self._vespa(value.root.children, self._query(query), line)
        elif value.fields is not None:
            one = [value]
            flat = self._plugin if value.fields.ltrlog else self._vespa
            yield from flat(one, self._named(query), line)
        elif value.response is None and not value.responses:
            self.fail(line, "this is no response with hits, docs or root, and no hit")

    def _query(self, name: str | None) -> str | None:
        """Return the query of the next response."""
        self.responses += 1
        if isinstance(self.queries, list):
            if self.responses > len(self.queries):
                raise DataError(
                    f"{self.path} has more responses than the {len(self.queries)} that queries "
                    "names; give the id of each, in order."
                )
            return self.queries[self.responses - 1]
        return self._named(name)

    def _named(self, name: str | None) -> str | None:
        mapped = self.queries
        return mapped.get(name, name) if name is not None and isinstance(mapped, dict) else name

    # Hits of each engine

    def _plugin(self, hits: list[Any], query: str | None, line: int) -> Iterator[Found]:
        """Yield hits of Elasticsearch and OpenSearch."""
        for at, hit in enumerate(hits, 1):
            logged = [] if hit.fields is None else hit.fields.ltrlog
            if len(logged) == 1 and len(logged[0]) == 1 and self.given.log is None:
                ((entry, features),) = logged[0].items()
            else:
                entry, features = self._entry(logged, line, at, hit.hit_id)
            own = _text(hit.qid) or (entry[4:] if entry.startswith("qid:") else None)
            of = query if own is None or isinstance(self.queries, list) else self._named(own)
            if hit.hit_id is None:
                self.fail(line, f"hit {at} has no _id")
            names = [one.name for one in features]
            yield of, str(hit.hit_id), names, [one.value for one in features], line
        if hits and not self.known.keys() >= set(names):
            self.known |= dict.fromkeys(names)
            self.decoders[1:] = [_decoder(tuple(self.known), self.fill)]

    def _entry(self, logged: list[dict[str, Any]], line: int, at: int, doc: Any) -> tuple[str, Any]:
        """Return the log entry that ``log`` names, of several."""
        where = f"hit {at}, document {quoted(doc)}"
        entries = {name: features for one in logged for name, features in one.items()}
        if not entries:
            self.fail(line, f"{where}: there is no _ltrlog; ask for it with ext.ltr_log")
        name = self.given.log
        if name is None or name not in entries:
            known = ", ".join(entries)
            self.fail(line, f"{where}: choose its log entry with log=..., one of: {known}")
        return name, entries[name]

    def _solr(self, docs: list[dict[str, Any]], query: str | None, line: int) -> Iterator[Found]:
        """Yield documents of Solr, whose features are one text: a=1.0,b=2.0."""
        field = self.given.log
        if self.given.absent is None:
            self.fill = 0.0
        for at, doc in enumerate(docs, 1):
            if field is None:
                field = next((key for key in ("[features]", "features") if key in doc), None)
            text = doc.get(field) if field is not None else None
            name = doc.get(self.given.doc_id)
            if name is None:
                self.fail(line, f"document {at} has no {self.given.doc_id}; add it to fl")
            if not isinstance(text, str):
                self.fail(
                    line,
                    f"document {quoted(name)} has no logged features; ask for them with "
                    "fl=id,[features], or name their field with log=...",
                )
            if "=" in text or ":" not in text:
                cells = text.replace("=", ",").split(",") if text else []
            else:  # as the transformer may be set up: a:1.0 b:2.0
                cells = text.replace(":", " ").split(" ")
            names, texts = cells[::2], cells[1::2]
            if len(names) != len(texts):
                what = f"{quoted(text)} is not name=value,name=value"
                self.fail(line, f"document {quoted(name)}: {what}")
            values: list[Any] = texts
            with suppress(ValueError):  # reported with the name of the feature
                values = list(map(float, texts))
            yield query, str(name), names, values, line

    def _vespa(self, hits: Sequence[Any], query: str | None, line: int) -> Iterator[Found]:
        """Yield hits of Vespa."""
        self.single = False
        for at, hit in enumerate(hits, 1):
            if hit.fields is None:  # a group of hits
                continue
            kinds = _VESPA if self.given.log is None else (self.given.log,)
            found = (getattr(hit.fields, kind, None) for kind in kinds)
            logged = next((one for one in found if one is not None), None)
            name = _text(hit.fields.documentid) or _text(hit.id)
            if logged is None or name is None:
                lacks = "no document id" if name is None else f"no {' or '.join(kinds)}"
                self.fail(line, f"hit {at} has {lacks}")
            logged.pop(_NOT_A_FEATURE, None)
            own = self._named(_text(hit.qid)) or query
            yield own, name, list(logged), list(logged.values()), line

    # Rows

    def parts(self, *, cells: int | None) -> Iterator[RankingData]:
        """Yield parts of whole queries of about so many cells, or all in one."""
        counts = _Counts(self, whole=cells is None)
        names = list(dict.fromkeys(listed(self.given.features) or ()))
        rows = _Rows(self, names, fixed=bool(names))
        for query, doc, found, values, line in self.documents():
            if query is None:
                self.fail(
                    line,
                    'the response does not say its query; add a key "qid" to it, or give the ids '
                    "of the responses with queries=...",
                )
            known, doc, grade = counts.judge(query, doc)
            if known is None:
                continue
            full = cells is not None and len(rows.docs) * max(1, len(rows.names)) >= cells
            if full and known != rows.queries[-1]:
                yield rows.data()
                rows = _Rows(self, rows.names, fixed=rows.fixed)
            rows.add(known, doc, grade, found, values, line)
        if not rows.docs:
            counts.refuse()
        yield rows.data()
        counts.warn()

    def fail(self, line: int, what: str) -> NoReturn:
        """Say what is wrong in a line of the log."""
        raise DataError(f"{self.path}, line {line}: {what}.")


class _Rows:
    """Rows of features in the order of ``names``, which grows unless it is ``fixed``."""

    def __init__(self, reader: _Reader, names: list[str], *, fixed: bool) -> None:
        self.reader, self.names, self.fixed = reader, names, fixed
        self.queries: list[str] = []
        self.docs: list[str] = []
        self.grades = array("d")
        self.blocks: list[AnyArray] = []  # of rows, the last ones wider where names were added
        self.waiting: list[Any] = []  # cells after the last block
        self.lines: list[int] = []  # of their rows
        self.place = {name: at for at, name in enumerate(names)}

    def add(
        self, query: str, doc: str, grade: float, names: Sequence[str], values: Any, line: int
    ) -> None:
        """Add a document."""
        row = values if names == self.names else self._row(names, values, doc, line)
        self.waiting += row
        self.queries.append(query)
        self.docs.append(doc)
        self.grades.append(grade)
        self.lines.append(line)
        if len(self.waiting) >= _CELLS_PER_BLOCK:
            self._finish_block()

    def _row(self, names: Sequence[str], values: Any, doc: str, line: int) -> list[Any]:
        """Return values in their places, after those of new names are added."""
        if len(set(names)) < len(names):
            twice = next(name for at, name in enumerate(names) if name in names[:at])
            self.reader.fail(line, f"document {quoted(doc)}: feature {quoted(twice)} appears twice")
        if not (self.fixed or self.place.keys() >= set(names)):
            self._finish_block()
            self.names = [*self.names, *(name for name in names if name not in self.place)]
            self.place = {name: at for at, name in enumerate(self.names)}
        row: list[Any] = [self.reader.fill] * len(self.names)
        for name, value in zip(names, values, strict=True):
            if name in self.place:
                row[self.place[name]] = value
        return row

    def _finish_block(self) -> None:
        """Turn the cells that wait into numbers."""
        if not self.lines:
            return
        try:
            cells = np.fromiter(self.waiting, np.float64, len(self.waiting))
        except (TypeError, ValueError, OverflowError):  # a null, or what is no number
            cells = np.array([self._number(at, cell) for at, cell in enumerate(self.waiting)])
        dtype = self.reader.given.dtype or ("float32" if self.reader.single else "float64")
        with np.errstate(over="ignore"):  # found at the end
            self.blocks.append(cells.reshape(len(self.lines), len(self.names)).astype(dtype))
        self.waiting, self.lines = [], []

    def _number(self, at: int, cell: Any) -> float:
        if cell is None:
            return self.reader.fill
        try:
            if isinstance(cell, bool | dict | list):
                raise ValueError
            return float(cell)
        except (TypeError, ValueError, OverflowError):
            row, column = divmod(at, len(self.names))
            first = len(self.docs) - len(self.lines)
            self.reader.fail(
                self.lines[row],
                f"{self._place(first + row, column)} is {quoted(cell)}, where a number is "
                "expected; choose other features with features=...",
            )

    def _place(self, row: int, column: int) -> str:
        return (
            f"query {self.queries[row]}, document {quoted(self.docs[row])}: feature "
            f"{quoted(self.names[column])}"
        )

    def data(self) -> RankingData:
        """Return the rows as ranking data."""
        if not self.names:  # of a part this may be
            raise PartsDifferError(f"{self.reader.path}: no document has a logged feature.")
        self._finish_block()
        width, start = len(self.names), 0
        X = np.full((len(self.docs), width), self.reader.fill, self.blocks[0].dtype)
        for block in self.blocks:
            X[start : start + len(block), : block.shape[1]] = block
            start += len(block)
        if np.isinf(X).any():
            row, column = np.argwhere(np.isinf(X))[0]
            what = f"{self._place(row, column)} is infinite, or too large for {X.dtype}"
            raise DataError(f"{self.reader.path}, {what}.")
        judged = self.reader.judged
        weights = {} if judged is None else judged.weights
        whole = judged is not None and ids_of_text([*judged.grades]).dtype.kind == "i"
        queries = as_vector(self.queries, "query id", len(self.docs))
        return RankingData.from_arrays(
            X,
            np.frombuffer(self.grades),
            qid=queries.astype(np.int64) if whole else queries,
            doc_id=self.docs,
            query_weight=[weights.get(query, 1.0) for query in self.queries] if weights else None,
            feature_names=self.names,
        )


# --- judgments ---------------------------------------------------------------------------------


class _Counts:
    """Gives documents their grades, and counts those that have none.

    Unless all is read as a ``whole``, a query may not come back, and what it had is forgotten.
    """

    def __init__(self, reader: _Reader, *, whole: bool) -> None:
        self.reader, self.whole = reader, whole
        self.documents = self.unjudged = self.repeated = self.judged = self.lost = 0
        self.examples: list[str] = []  # of queries without judgments
        self.seen: dict[str, set[str]] = {}
        self.name: str | None = None
        self.query: str | None = None

    def judge(self, name: str, doc: str) -> tuple[str | None, str, float]:
        """Return query, id and grade of a document; no query where it is left out."""
        judged = self.reader.judged
        if name != self.name:
            self._begin(name)
        query = self.query
        if query is None:
            return None, doc, 0.0
        grades = {} if judged is None else judged.grades[query]
        if doc not in grades and "::" in doc:  # id:namespace:type::key of Vespa
            doc = doc.partition("::")[2]
        self.documents += 1
        grade = grades.get(doc)
        seen = self.seen[query]
        if doc in seen:
            self.repeated += 1
            return None, doc, 0.0
        seen.add(doc)
        if grade is None and judged is not None:
            self.unjudged += 1
            if self.reader.given.unjudged == "drop":
                return None, doc, 0.0
        self.judged += grade is not None
        return query, doc, grade or 0.0

    def _begin(self, name: str) -> None:
        """Go on to another query."""
        judged = self.reader.judged
        if not self.whole:
            self.seen.clear()
        self.name, self.query = name, name if judged is None else judged.find(name)
        if judged is not None and self.query not in judged.grades:  # named, without a judgment
            self.query = None
        if self.query is not None:
            self.seen.setdefault(self.query, set())
            return
        self.lost += 1
        self.examples = [*self.examples, name][: _SHOWN + 1]

    def refuse(self) -> NoReturn:
        """Say why nothing is left."""
        log, judged = self.reader.path, self.reader.judged
        if judged is None or not (self.documents or self.lost):
            raise DataError(f"{log} has no documents.")
        here, there = _some([*self.seen, *self.examples]), _some([*judged.grades])
        raise DataError(
            f"the judgments grade no document of {log}: its queries are {here}, those of the "
            f"judgments {there}."
        )

    def warn(self) -> None:
        """Warn of what was left out."""
        log, judged = self.reader.path, self.reader.judged
        said = []
        if self.unjudged and self.reader.given.unjudged == "drop":
            said.append(
                f"documents without a judgment, left out: {self.unjudged} of {self.documents}; "
                "unjudged='zero' takes them with the grade 0"
            )
        if self.lost:
            said.append(
                f"queries without judgments, left out: {self.lost} ({_some(self.examples)})"
            )
        if self.repeated:
            said.append(f"documents that are in a query again, left out: {self.repeated}")
        absent = 0 if judged is None else sum(map(len, judged.grades.values())) - self.judged
        if absent:
            said.append(f"judged documents that are not in the log: {absent}")
        partial = self.reader.partial
        if partial:
            said.append(f"partial responses, where a shard failed or time ran out: {partial}")
        for sentence in said:
            warnings.warn(f"{log}: {sentence}.", stacklevel=2)


def _queries(given: Any) -> list[str] | dict[str, str] | None:
    """Return ids of responses in their order, or what names of queries stand for."""
    if given is None:
        return None
    if isinstance(given, Mapping):
        return {str(name): str(query) for name, query in given.items()}
    if isinstance(given, str | PathLike):
        return [text.strip() for _, text in text_lines(str(given))]
    return [str(query) for query in given]


def _text(value: Any) -> str | None:
    """Return an id as text; None where there is none."""
    if value is None or value == "" or isinstance(value, dict | list):
        return None
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _inside(message: str) -> str:
    """Return a message of the parser as part of a sentence."""
    return message[:1].lower() + message[1:].rstrip(".")


def _reason(error: Any) -> Any:
    """Return what an engine says of an error."""
    if isinstance(error, list) and error:
        return _reason(error[0])
    said = error if isinstance(error, dict) else {}
    return next(
        (said[key] for key in ("reason", "msg", "message", "summary") if key in said), error
    )


def _some(queries: Sequence[str]) -> str:
    return ", ".join(queries[:_SHOWN]) + (", ..." if len(queries) > _SHOWN else "")


_feature_log = FeatureLog()
FEATURE_LOG = Format(
    description=(
        "Logged features of Elasticsearch, OpenSearch, Solr and Vespa, with a judgment list."
    ),
    extensions=FeatureLog.extensions,
    read=_feature_log.read,
    read_options=(
        *("judgments", "queries", "features", "log", "doc_id", "unjudged", "absent", "dtype"),
        "grades",
    ),
    write=_feature_log.write,
    read_parts=_feature_log.read_parts,
    column_names=_feature_log.names,
    holds=FeatureLog.holds,
)
