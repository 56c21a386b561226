"""Reading feature logs of search engines, beside the bare parsing of the same bytes by orjson.

Responses of 100 documents with 40 features, nearly a third of them without a value: of
Elasticsearch and OpenSearch with the source of the documents, of Solr (dense, and sparse without
zeros), and of Vespa. orjson makes Python objects of all of it and stops there; we skip what is not
needed, look up the judgments and return ranking data. Of Solr it does next to nothing: there all
features of a document are one text. Memory is what the conversion of a longer log to a store adds
to a process of its own, as a share of the log.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .contest import Contender, contest
from .findings import OURS, Findings
from .timing import apart, memory_in_use, peak_memory

QUERIES, DOCUMENTS, FEATURES, ROUNDS = 200, 100, 40, 5
NAMES = [f"title_query_{number}" for number in range(FEATURES)]
PARSER = "orjson, parsing alone"


def run() -> Findings:
    found = Findings()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for engine in (plugin, solr_dense, solr_sparse, vespa):
            path = folder / f"{engine.__name__}.jsonl"
            write_log(path, engine, QUERIES)
            one = found.add(_speeds(engine.__name__, path))
            called = engine.__name__
            found.note_figure(f"{called}_vs_orjson", one.ratio(PARSER, OURS))
            seconds = one.seconds(OURS)
            if seconds is not None:
                found.figures[f"{called}_documents_per_second"] = QUERIES * DOCUMENTS / seconds
        path = folder / "long.jsonl"
        write_log(path, plugin, 6 * QUERIES)
        found.figures["memory_of_a_conversion_vs_log"] = apart(_memory, path)
    return found


# --- logs --------------------------------------------------------------------------------------


def plugin(query: int, values: Any, docs: list[int]) -> dict[str, Any]:
    """Return a response of Elasticsearch or OpenSearch."""
    source = {"title": "First Blood " * 3, "overview": "a veteran goes to a small town " * 8}
    hits = [
        {
            "_index": "films",
            "_id": str(doc),
            "_score": 1.0,
            "_source": source,
            "fields": {
                "_ltrlog": [
                    {
                        "log": [
                            {"name": n} if v == 0 else {"name": n, "value": v}
                            for n, v in zip(NAMES, row, strict=True)
                        ]
                    }
                ]
            },
            "matched_queries": ["logged"],
        }
        for doc, row in zip(docs, values, strict=True)
    ]
    return {"took": 3, "timed_out": False, "hits": {"hits": hits}, "qid": query}


def solr_dense(query: int, values: Any, docs: list[int], *, zeros: bool = True) -> dict[str, Any]:
    """Return a response of Solr."""
    documents = []
    for doc, row in zip(docs, values, strict=True):
        pairs = [f"{n}={v}" for n, v in zip(NAMES, row, strict=True) if v or zeros]
        documents.append({"id": str(doc), "[features]": ",".join(pairs)})
    return {"responseHeader": {"params": {"q": str(query)}}, "response": {"docs": documents}}


def solr_sparse(query: int, values: Any, docs: list[int]) -> dict[str, Any]:
    """Return a response of Solr without zeros."""
    return solr_dense(query, values, docs, zeros=False)


def vespa(query: int, values: Any, docs: list[int]) -> dict[str, Any]:
    """Return a response of Vespa."""
    hits = [
        {
            "id": f"id:films:film::{doc}",
            "relevance": 1.0,
            "fields": {"matchfeatures": dict(zip(NAMES, row, strict=True))},
        }
        for doc, row in zip(docs, values, strict=True)
    ]
    return {"qid": query, "root": {"children": hits}}


def write_log(path: Path, engine: Callable[..., dict[str, Any]], queries: int) -> None:
    """Write one response per line."""
    rng = np.random.default_rng(0)
    with path.open("w") as stream:
        for query in range(queries):
            X = rng.random((DOCUMENTS, FEATURES)) * (rng.random((DOCUMENTS, FEATURES)) > 0.3)
            response = engine(query, (20 * X).round(6).tolist(), documents_of(query))
            stream.write(json.dumps(response, separators=(",", ":")) + "\n")


def documents_of(query: int) -> list[int]:
    """Return the documents that a query has in the log."""
    return list(range(query * DOCUMENTS, (query + 1) * DOCUMENTS))


def judgments(queries: int) -> Any:
    """Return a judgment for each document."""
    from rankwright.data.judgments import Judgments

    grades = {str(q): {str(doc): float(doc % 5) for doc in documents_of(q)} for q in range(queries)}
    return Judgments(grades)


# --- measuring ---------------------------------------------------------------------------------


def _speeds(engine: str, path: Path) -> Findings:
    size = f"{QUERIES * DOCUMENTS:,} x {FEATURES}, {path.stat().st_size >> 20} MB"
    return contest(
        f"feature log, {engine.replace('_', ', ')}, {size}",
        [
            Contender(OURS, "rankwright", "one thread", lambda: _ours(path), _check),
            Contender(PARSER, "orjson", "loads of each line", lambda: _orjson(path)),
        ],
        rounds=ROUNDS,
    )


def _ours(path: Path) -> Callable[[], Any]:
    from rankwright.data.feature_log import FeatureLog

    judged = judgments(QUERIES)
    return lambda: FeatureLog().read(path, judgments=judged)


def _check(data: Any) -> None:
    if data.X.shape != (QUERIES * DOCUMENTS, FEATURES):
        raise AssertionError("not all documents and features were read")


def _orjson(path: Path) -> Callable[[], Any]:
    import orjson

    def parse() -> None:
        with path.open("rb") as stream:
            for line in stream:
                orjson.loads(line)

    return parse


def _memory(path: Path) -> float:
    """Return what a conversion adds to the process as a share of the log, judgments left out."""
    from rankwright.data.files import convert

    with path.open("rb") as stream:
        judged = judgments(sum(1 for _ in stream))
    before = memory_in_use()
    convert(path, path.with_suffix(".store"), judgments=judged)
    return (peak_memory() - before) / path.stat().st_size
