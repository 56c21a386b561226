"""Feature logs of search engines: responses with the features of the ranked documents.

Elasticsearch and OpenSearch log with ``ext.ltr_log`` (``fields._ltrlog`` of each hit), Solr with
the transformer ``[features]``, Vespa with ``match-features``, ``summary-features`` or
``listFeatures``. A file contains JSON values, on one line each or formatted over several lines: a
response, an array of responses, the answer of ``_msearch``, or a single hit. Each of these may be
inside ``{"qid": ..., "response": ...}``.

The query of a response is taken from ``queries``, the name ``qid:...`` of its log entry in
``log_specs``, a key ``qid`` next to the hits or in a hit, or, for Solr, which repeats the
parameters of a request, the parameter ``qid`` or else ``q``. It is looked up in the judgments by
id, then by text.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import nan
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn

import numpy as np
from msgspec import Struct
from msgspec import field as key

from rankwright.core.dtypes import as_vector
from rankwright.core.parameters import check_choice
from rankwright.core.types import AnyArray
from rankwright.data.formats import Format
from rankwright.data.frames import ids_of_text, listed
from rankwright.data.json_values import as_struct, json_values
from rankwright.data.judgments import Judgments, read_judgments
from rankwright.data.ranking_data import RankingData, first_repeated
from rankwright.data.streams import display_name, error_at, text_lines
from rankwright.errors import DataError, UsageError, quoted
from rankwright.registry import EXTENSIONS

_VESPA_KINDS = ("matchfeatures", "summaryfeatures", "rankfeatures")
_NOT_A_FEATURE = "vespa.summaryFeatures.cached"
_SOLR_FIELDS = ("[features]", "features")
_ERROR_TEXTS = ("reason", "msg", "message", "summary")
_MOST_NAMED = 3  # queries in a message


class FeatureLog:
    """Logged features of Elasticsearch, OpenSearch, Solr and Vespa, with a judgment list."""

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

        Omit queries without judgments and repeated documents of a query, and warn with the number
        of omitted queries and documents, and of judged documents that are not in the log.

        Parameters
        ----------
        path
            The log, plain or compressed.
        judgments
            As in `rankwright.data.judgments.read_judgments`: a list ``grade qid:1 # document``,
            TREC judgments, a table such as Quepid's exports, or a mapping.
        queries
            The queries of the responses, in their order: ids, or a file with one id per line. Or a
            mapping from the queries of the log to ids in the judgments.
        features
            Names of the features to read, in this order; by default those of the log, in the order
            of their first appearance.
        log
            The log entry to read if a hit has several: a name in ``log_specs``, the field of
            Solr's transformer, or one of matchfeatures, summaryfeatures and rankfeatures.
        doc_id
            The field of Solr's documents that contains their id.
        unjudged
            ``"drop"`` documents without judgment, or give them grade 0 with ``"zero"``.
        absent
            The value of features without a value: ``"missing"`` or ``"zero"``. By default missing;
            zero for Solr, whose sparse format omits zeros.
        dtype
            By default the precision of the engine: float64 for Vespa, float32 for the others.
        grades
            False: documents that are only ranked and need no judgments.
        """
        check_choice("unjudged", unjudged, ("drop", "zero"))
        if absent is not None:
            check_choice("absent", absent, ("zero", "missing"))
        if dtype is not None:
            check_choice("dtype", dtype, ("float32", "float64"))
        if grades and judgments is None:
            raise UsageError(
                f"{path} is a feature log, which has no grades; name its judgment list with "
                "judgments=FILE."
            )
        reader = _Reader(str(path), _query_ids(queries), log, doc_id)
        judged = _Judged(read_judgments(judgments) if grades else None, unjudged == "drop")
        columns = {name: at for at, name in enumerate(dict.fromkeys(listed(features) or ()))}
        documents, matrices, fill = list[_Document](), list[AnyArray](), nan
        for response in reader.responses():
            selected = judged.select(response.documents, reader.path, response.line)
            if features is None:
                for name in (name for document in selected for name in document.features):
                    columns.setdefault(name, len(columns))
            fill = 0.0 if (absent or _ABSENT[response.engine]) == "zero" else nan
            precision = dtype or _DTYPES[response.engine]
            place = f"{display_name(path)}, line {response.line}"
            matrices.append(_matrix(selected, columns, fill, precision, place))
            documents += [document._replace(features={}) for document in selected]
        if not documents:
            judged.refuse(display_name(path))
        if not columns:
            raise DataError(f"{display_name(path)}: no document has a logged feature.")
        judged.warn(display_name(path), reader.n_partial)
        return _joined(documents, matrices, columns, fill, judged.judgments)


# --- JSON values -----------------------------------------------------------------------------


class _Feature(Struct):
    name: str
    value: float | str | None = None


class _Fields(Struct):
    ltrlog: list[dict[str, list[_Feature]]] = key(name="_ltrlog", default_factory=list)
    documentid: str | int | None = None
    matchfeatures: dict[str, Any] | None = None
    summaryfeatures: dict[str, Any] | None = None
    rankfeatures: dict[str, Any] | None = None


class _Hit(Struct):
    qid: str | int | float | None = None
    hit_id: str | int | None = key(name="_id", default=None)
    id: str | int | None = None
    fields: _Fields | None = None


class _Hits(Struct):
    hits: list[_Hit]


class _Root(Struct):
    children: list[_Hit] = []
    errors: Any = None


class _Header(Struct):
    params: dict[str, Any] = {}


class _Shards(Struct):
    failed: int = 0


class _Answer(_Hit):
    """A response, an envelope around responses, or a hit."""

    hits: _Hits | list[_Hit] | None = None
    docs: list[dict[str, Any]] | None = None
    root: _Root | None = None
    error: Any = None
    timed_out: bool = False
    shards: _Shards = key(name="_shards", default_factory=_Shards)
    header: _Header = key(name="responseHeader", default_factory=_Header)
    response: _Answer | None = None
    responses: list[_Answer] = []


# --- responses and their documents -----------------------------------------------------------

_ABSENT = {"plugin": "missing", "solr": "zero", "vespa": "missing"}
_DTYPES = {"plugin": "float32", "solr": "float32", "vespa": "float64"}

_Logged = Iterator[tuple[str | None, str, dict[str, Any]]]  # queries, document ids, features


class _Document(NamedTuple):
    query: str | None
    doc_id: str
    features: dict[str, Any]
    grade: float = 0.0


class _Response(NamedTuple):
    engine: str
    line: int
    documents: Iterable[_Document]


@dataclass
class _Reader:
    """Read the responses of a log."""

    path: str
    queries: list[str] | dict[str, str] | None = None
    log: str | None = None
    doc_id: str = "id"
    n_responses: int = 0
    n_partial: int = 0

    def responses(self) -> Iterator[_Response]:
        """Yield the responses with their documents."""
        for line, value in json_values(self.path):
            kind = _Answer | list[_Answer]
            answers = as_struct(value, kind, self.path, line, "a logged response")
            for answer in answers if isinstance(answers, list) else [answers]:
                yield from self._unwrapped(answer, None, line)
        if isinstance(self.queries, list) and self.n_responses != len(self.queries):
            raise DataError(
                f"{display_name(self.path)} has {self.n_responses} responses, but queries names "
                f"{len(self.queries)}; give the id of each, in order."
            )

    def _unwrapped(self, answer: _Answer, query: str | None, line: int) -> Iterator[_Response]:
        """Yield the responses in an envelope, or the answer itself."""
        if reason := answer.error or (answer.root is not None and answer.root.errors):
            text = quoted(_error_text(reason))
            error_at(self.path, line, f"the engine answered with an error: {text}")
        self.n_partial += answer.timed_out or answer.shards.failed > 0
        query = _id_text(answer.qid) or query or _id_text(answer.header.params.get("qid"))
        query = query or _id_text(answer.header.params.get("q"))
        envelope = [*answer.responses, *([] if answer.response is None else [answer.response])]
        for response in envelope:
            yield from self._unwrapped(response, query, line)
        if answer.fields is not None and answer.fields.ltrlog:  # a single hit
            answer.hits = [answer]
        elif answer.fields is not None:
            answer.root = _Root([answer])
        if answer.hits is not None:
            hits = answer.hits.hits if isinstance(answer.hits, _Hits) else answer.hits
            engine, logged = "plugin", self._plugin(hits, line)
        elif answer.docs is not None:
            engine, logged = "solr", self._solr(answer.docs, line)
        elif answer.root is not None:
            engine, logged = "vespa", self._vespa(answer.root.children, line)
        elif envelope:
            return
        else:
            problem = "this is neither a response with hits, docs or root, nor a hit"
            error_at(self.path, line, problem)
        yield _Response(engine, line, self._documents(logged, query))

    def _documents(self, logged: _Logged, name: str | None) -> Iterator[_Document]:
        """Yield the documents of the next response, with the queries that ``queries`` assigns."""
        number, queries = self.n_responses, self.queries
        self.n_responses += 1
        if isinstance(queries, list) and number >= len(queries):
            raise DataError(
                f"{display_name(self.path)} has more responses than the {len(queries)} that "
                "queries names; give the id of each, in order."
            )
        for hit_query, doc_id, features in logged:
            query = hit_query or name
            if isinstance(queries, list):
                query = queries[number]
            elif queries is not None and query is not None:
                query = queries.get(query, query)
            yield _Document(query, doc_id, features)

    def _plugin(self, hits: Sequence[_Hit], line: int) -> _Logged:
        """Read the hits of Elasticsearch and OpenSearch."""
        for number, hit in enumerate(hits, 1):
            logged = [] if hit.fields is None else hit.fields.ltrlog
            entries = {name: features for entry in logged for name, features in entry.items()}
            name = next(iter(entries)) if self.log is None and len(entries) == 1 else self.log
            if name is None or name not in entries:
                advice = f"choose its log entry with log=..., one of: {', '.join(entries)}"
                if not entries:
                    advice = "no _ltrlog; request it with ext.ltr_log"
                where = f"hit {number}, document {quoted(hit.hit_id)}"
                error_at(self.path, line, f"{where}: {advice}")
            if hit.hit_id is None:
                error_at(self.path, line, f"hit {number} has no _id")
            query = _id_text(hit.qid) or (name[4:] if name.startswith("qid:") else None)
            pairs = [(feature.name, feature.value) for feature in entries[name]]
            yield query, str(hit.hit_id), self._by_name(pairs, hit.hit_id, line)

    def _solr(self, docs: list[dict[str, Any]], line: int) -> _Logged:
        """Read the documents of Solr, whose features are a text such as a=1.0,b=2.0."""
        fields = _SOLR_FIELDS if self.log is None else (self.log,)
        for number, doc in enumerate(docs, 1):
            text = next((doc[name] for name in fields if name in doc), None)
            doc_id = doc.get(self.doc_id)
            if doc_id is None:
                error_at(self.path, line, f"document {number} has no {self.doc_id}; add it to fl")
            where = f"document {quoted(doc_id)}"
            if not isinstance(text, str):
                advice = "request them with fl=id,[features], or name their field with log=..."
                error_at(self.path, line, f"{where} has no logged features; {advice}")
            usual = "=" in text or ":" not in text  # the transformer can also write a:1.0 b:2.0
            cells = re.split("[=,]" if usual else "[: ]", text) if text else []
            if len(cells) % 2:
                problem = f"{quoted(text)} is not name=value,name=value"
                error_at(self.path, line, f"{where}: {problem}")
            pairs = list(zip(cells[::2], cells[1::2], strict=True))
            yield None, str(doc_id), self._by_name(pairs, doc_id, line)

    def _vespa(self, hits: Sequence[_Hit], line: int) -> _Logged:
        """Read the hits of Vespa; groups of hits have no fields."""
        kinds = _VESPA_KINDS if self.log is None else (self.log,)
        for number, hit in enumerate(hits, 1):
            if hit.fields is None:
                continue
            logged = (getattr(hit.fields, kind, None) for kind in kinds)
            features = next((values for values in logged if values is not None), None)
            doc_id = _id_text(hit.fields.documentid) or _id_text(hit.id)
            if features is None or doc_id is None:
                missing = "document id" if doc_id is None else " or ".join(kinds)
                error_at(self.path, line, f"hit {number} has no {missing}")
            features.pop(_NOT_A_FEATURE, None)
            yield _id_text(hit.qid), doc_id, features

    def _by_name(self, pairs: list[tuple[str, Any]], doc_id: Any, line: int) -> dict[str, Any]:
        features = dict(pairs)
        if len(features) < len(pairs):
            name = quoted(first_repeated(name for name, _ in pairs))
            problem = f"document {quoted(doc_id)}: feature {name} appears twice"
            error_at(self.path, line, problem)
        return features


# --- judgments -------------------------------------------------------------------------------


@dataclass
class _Judged:
    """Select the documents with judgments, and count the omitted ones."""

    judgments: Judgments | None
    drop: bool
    documents: dict[str, set[str]] = field(default_factory=dict)  # of queries with judgments
    other_queries: dict[str, None] = field(default_factory=dict)  # in order of appearance
    n_repeated: int = 0

    def select(self, documents: Iterable[_Document], path: str, line: int) -> list[_Document]:
        """Return the documents to use, with their queries, ids and grades in the judgments."""
        selected = []
        for name, doc_id, features, _ in documents:
            if name is None:
                problem = "the response does not name its query; add a key"
                problem += ' "qid" to it, or give the ids of the responses with queries=...'
                error_at(path, line, problem)
            query: str | None = name
            grades: dict[str, float] | None = {}
            if self.judgments is not None:
                query = self.judgments.find(name)
                grades = self.judgments.grades.get(query or "")
            if query is None or grades is None:  # a list can contain queries without judgments
                self.other_queries[name] = None
                continue
            if doc_id not in grades and "::" in doc_id:  # id:namespace:type::key of Vespa
                doc_id = doc_id.partition("::")[2]
            previous = self.documents.setdefault(query, set())
            if doc_id in previous:
                self.n_repeated += 1
            elif doc_id in grades or self.judgments is None or not self.drop:
                selected.append(_Document(query, doc_id, features, grades.get(doc_id, 0.0)))
            previous.add(doc_id)
        return selected

    def refuse(self, path: str) -> NoReturn:
        """Raise because no document was selected."""
        queries = [*self.documents, *self.other_queries]
        if self.judgments is None or not queries:
            raise DataError(f"{path} has no documents.")
        raise DataError(
            f"the judgments grade no document of {path}: its queries are {_some(queries)}, "
            f"but the judgments have {_some([*self.judgments.grades])}."
        )

    def warn(self, path: str, n_partial: int) -> None:
        """Warn of omitted and missing data."""
        grades = {} if self.judgments is None else self.judgments.grades
        n_documents = sum(map(len, self.documents.values()))
        n_judged = sum(
            len(ids & grades[query].keys()) for query, ids in self.documents.items() if grades
        )
        n_total, queries = n_documents + self.n_repeated, [*self.other_queries]
        advice = "unjudged='zero' gives them grade 0"
        counts = {
            f"documents without a judgment, omitted of {n_total} ({advice})": (
                n_documents - n_judged if grades and self.drop else 0
            ),
            f"queries without judgments, omitted ({_some(queries)})": len(queries),
            "repeated documents of a query, omitted": self.n_repeated,
            "judged documents that are not in the log": sum(map(len, grades.values())) - n_judged,
            "partial responses, because a shard failed or time ran out": n_partial,
        }
        for text, count in counts.items():
            if count:
                warnings.warn(f"{path}: {text}: {count}.", stacklevel=3)


# --- matrices --------------------------------------------------------------------------------


def _matrix(
    documents: list[_Document], columns: dict[str, int], fill: float, dtype: str, place: str
) -> AnyArray:
    """Return the features of the documents of a response; errors begin with ``place``."""

    def refuse(row: int, name: str, problem: str) -> NoReturn:
        query, doc_id = documents[row][:2]
        where = f"{place}: query {query}, document {quoted(doc_id)}"
        raise DataError(f"{where}: feature {quoted(name)} is {problem}.")

    matrix = np.full((len(documents), len(columns)), fill, dtype)
    with np.errstate(over="ignore"):  # refused below
        for row, document in enumerate(documents):
            for name, cell in document.features.items():
                try:
                    if cell is not None and name in columns:
                        matrix[row, columns[name]] = float(cell)
                except (TypeError, ValueError, OverflowError):
                    problem = f"{quoted(cell)}, not a number; choose other features"
                    refuse(row, name, f"{problem} with features=...")
    for row, column in np.argwhere(np.isinf(matrix)):
        refuse(row, list(columns)[column], f"infinite, or too large for {dtype}")
    return matrix


def _joined(
    documents: list[_Document],
    matrices: list[AnyArray],
    columns: dict[str, int],
    fill: float,
    judgments: Judgments | None,
) -> RankingData:
    """Return the documents of all responses; matrices lack the columns of later features."""
    dtype = np.result_type(*{matrix.dtype for matrix in matrices})
    X = np.full((len(documents), len(columns)), fill, dtype)
    start = 0
    for matrix in matrices:
        X[start : start + len(matrix), : matrix.shape[1]] = matrix
        start += len(matrix)
    queries = [document.query for document in documents]
    qid = as_vector(queries, "query id", len(documents))
    if judgments is not None and ids_of_text([*judgments.grades]).dtype.kind == "i":
        qid = qid.astype(np.int64)
    weights = {} if judgments is None else judgments.weights
    return RankingData.from_arrays(
        X,
        [document.grade for document in documents],
        qid=qid,
        doc_id=[document.doc_id for document in documents],
        query_weight=[weights.get(str(query), 1.0) for query in queries] if weights else None,
        feature_names=list(columns),
    )


# --- texts -----------------------------------------------------------------------------------


def _query_ids(queries: Any) -> list[str] | dict[str, str] | None:
    """Return the ids of responses in their order, or a mapping from queries to ids."""
    if queries is None:
        return None
    if isinstance(queries, Mapping):
        return {str(name): str(query) for name, query in queries.items()}
    if isinstance(queries, str | PathLike):
        return [text.strip() for _, text in text_lines(str(queries))]
    return [str(query) for query in queries]


def _id_text(value: Any) -> str | None:
    """Return an id as text; None for a value that is not an id."""
    if value is None or value == "" or isinstance(value, dict | list):
        return None
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _error_text(error: Any) -> Any:
    """Return the message in an error of an engine."""
    if isinstance(error, list):
        return _error_text(error[0])
    texts = error if isinstance(error, dict) else {}
    return next((texts[name] for name in _ERROR_TEXTS if name in texts), error)


def _some(queries: Sequence[str]) -> str:
    return ", ".join(queries[:_MOST_NAMED]) + (", ..." if len(queries) > _MOST_NAMED else "")


FEATURE_LOG = Format(
    description=(
        "Logged features of Elasticsearch, OpenSearch, Solr and Vespa, with a judgment list."
    ),
    extensions=EXTENSIONS["feature_log"],
    read=FeatureLog().read,
    read_options=(
        *("judgments", "queries", "features", "log", "doc_id", "unjudged", "absent", "dtype"),
        "grades",
    ),
    holds=frozenset({"doc_id", "qid", "feature_names", "query_weight"}),
)
