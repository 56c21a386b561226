"""Responses of search engines with logged features, and judgments, become ranking data."""

import gzip
import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reference.same_data import assert_same

import rankwright as rw
from rankwright.data.files import convert, load_documents
from rankwright.errors import DataError, RankwrightError, UsageError

JUDGED = {"1": {"7": 4, "8": 0}, "2": {"9": 1}}
LOGGED = {
    "1": {"7": {"bm25": 1.5, "age": 2.0}, "8": {"bm25": None, "age": 0.0}},
    "2": {"9": {"bm25": 0.25, "age": 3.0}},
}
X = np.array([[1.5, 2.0], [np.nan, 0.0], [0.25, 3.0]], np.float32)
X_ZERO = np.where(np.isnan(X), 0, X)


def hit(doc, features, entry="log", **more):
    pairs = features.items()
    values = [{"name": n} if v is None else {"name": n, "value": v} for n, v in pairs]
    return {"_index": "films", "_id": doc, "fields": {"_ltrlog": [{entry: values}]}, **more}


def plugin(query, docs, **more):
    """A response of Elasticsearch or OpenSearch."""
    hits = [hit(doc, features, _source={"title": "x"}) for doc, features in docs.items()]
    return {"took": 1, "timed_out": False, "hits": {"hits": hits}, **more, "qid": query}


def solr(query, docs, *, sparse=True, between="=,", field="[features]"):
    def text(features):
        kept = ((n, v or 0.0) for n, v in features.items() if v or not sparse)
        return between[1].join(f"{n}{between[0]}{v}" for n, v in kept)

    documents = [{"id": doc, field: text(features)} for doc, features in docs.items()]
    params = {"q": "text", "qid": query}
    return {"responseHeader": {"params": params}, "response": {"docs": documents}}


def solr_indented(query, docs):
    """A response as Solr prints it, which closes the last brackets on an indented line."""
    one = solr(query, docs, sparse=False)["response"]["docs"]
    documents = "},\n      {\n        ".join(json.dumps(doc)[1:-1] for doc in one)
    return (
        f'{{\n  "responseHeader":{{\n    "params":{{\n      "qid":"{query}"}}}},\n'
        f'  "response":{{"numFound":2,"docs":[\n      {{\n        {documents}}}]\n  }}}}\n'
    )


def vespa(query, docs, kind="matchfeatures"):
    hits = [
        {
            "id": f"id:films:film::{doc}",
            "relevance": 1.0,
            "fields": {kind: {n: v for n, v in features.items() if v is not None}},
        }
        for doc, features in docs.items()
    ]
    return {"qid": query, "root": {"children": hits}}


def lines(*values):
    return "".join(json.dumps(value) + "\n" for value in values)


def of_each(response, **options):
    return lines(*(response(query, docs, **options) for query, docs in LOGGED.items()))


def entry_ids():
    """Responses whose log entries name the query, as log_specs can say."""
    return [
        {"hits": {"hits": [hit(doc, f, f"qid:{query}") for doc, f in docs.items()]}}
        for query, docs in LOGGED.items()
    ]


def flat_hits():
    return [
        hit(doc, features, qid=int(query))
        for query, docs in LOGGED.items()
        for doc, features in docs.items()
    ]


responses = [plugin(query, docs) for query, docs in LOGGED.items()]
SHAPES = {
    "a response per line": (of_each(plugin), X),
    "an array of responses": (json.dumps(responses), X),
    "the answer of _msearch": (json.dumps({"took": 1, "responses": responses}), X),
    "one after the other on a line": ("".join(json.dumps(r) for r in responses), X),
    "printed over many lines": ("".join(json.dumps(r, indent=2) + "\n" for r in responses), X),
    "an array over many lines": (json.dumps(responses, indent=1), X),
    "in an envelope": (
        lines(*({"qid": q, "response": plugin(None, docs)} for q, docs in LOGGED.items())),
        X,
    ),
    "_msearch in an envelope": (json.dumps({"response": {"responses": responses}}), X),
    "queries in log entries": (lines(*entry_ids()), X),
    "_msearch with log entries": (json.dumps({"responses": entry_ids()}), X),
    "a hit per line": (lines(*flat_hits()), X),
    "solr, sparse": (of_each(solr), X_ZERO),
    "solr, dense": (of_each(solr, sparse=False), X_ZERO),
    "solr, other separators": (of_each(solr, between=": ", field="features"), X_ZERO),
    "solr, indented": ("".join(solr_indented(q, docs) for q, docs in LOGGED.items()), X_ZERO),
    "vespa, match features": (of_each(vespa), X.astype(np.float64)),
    "vespa, summary features": (of_each(vespa, kind="summaryfeatures"), X.astype(np.float64)),
    "vespa, rank features": (of_each(vespa, kind="rankfeatures"), X.astype(np.float64)),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_of_a_log_is_read(tmp_path, shape):
    text, features = SHAPES[shape]
    path = tmp_path / "log.jsonl"
    path.write_text(text)
    data = rw.load(path, judgments=JUDGED)
    assert data.feature_names == ("bm25", "age")
    assert data.X.dtype == features.dtype
    np.testing.assert_array_equal(data.X, features)
    assert data.y.tolist() == [4, 0, 1]
    assert data.qid.tolist() == [1, 2]
    assert data.indptr.tolist() == [0, 2, 3]
    assert data.doc_id.tolist() == ["7", "8", "9"]


def write(tmp_path, text, name="log.jsonl"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_compressed_logs_and_a_byte_order_mark(tmp_path):
    path = tmp_path / "log.ndjson.gz"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + of_each(plugin).encode() + b"\n\n"))
    np.testing.assert_array_equal(rw.load(path, judgments=JUDGED).X, X)


def test_queries_of_responses_in_their_order(tmp_path):
    silent = [{"hits": one["hits"]} for one in responses]
    path = write(tmp_path, lines(*silent))
    ids = write(tmp_path, "1\n2\n", "queries.txt")
    for queries in (["1", "2"], [1, 2], ids):
        assert rw.load(path, judgments=JUDGED, queries=queries).qid.tolist() == [1, 2]
    with pytest.raises(DataError, match="has 2 responses, but queries names 3; give the id of"):
        rw.load(path, judgments=JUDGED, queries=["1", "2", "3"])
    with pytest.raises(DataError, match="more responses than the 1 that queries names"):
        rw.load(path, judgments=JUDGED, queries=["1"])
    with pytest.raises(DataError, match=r"line 1: the response does not name its query; add a key"):
        rw.load(path, judgments=JUDGED)


def test_queries_by_their_text_and_by_a_mapping(tmp_path):
    named = [{**one, "qid": name} for one, name in zip(responses, ("rambo", "rocky"), strict=True)]
    path = write(tmp_path, lines(*named))
    judgments = write(
        tmp_path, "# qid:1: rambo\n# qid:2: rocky\n4 qid:1 # 7\n0 qid:1 # 8\n1 qid:2 # 9\n", "j.txt"
    )
    by_text = rw.load(path, judgments=judgments)
    by_mapping = rw.load(path, judgments=JUDGED, queries={"rambo": 1, "rocky": 2})
    assert_same(by_text, by_mapping)
    assert by_text.qid.tolist() == [1, 2]


def test_solr_names_a_query_by_its_text(tmp_path):
    asked = solr(None, LOGGED["1"])
    path = write(tmp_path, lines(asked))
    assert rw.load(path, judgments={"text": {"7": 1, "8": 0}}).qid.tolist() == ["text"]


def test_weights_of_queries_are_kept(tmp_path):
    path = write(tmp_path, of_each(plugin))
    j = write(tmp_path, "# qid:2: b*3\n4 qid:1 # 7\n0 qid:1 # 8\n1 qid:2 # 9\n", "j.txt")
    assert rw.load(path, judgments=j).query_weight.tolist() == [1, 3]


def test_absent_features_are_missing_or_zero_by_choice(tmp_path):
    path = write(tmp_path, of_each(plugin))
    np.testing.assert_array_equal(rw.load(path, judgments=JUDGED, absent="zero").X, X_ZERO)
    path = write(tmp_path, of_each(solr))
    kept = rw.load(path, judgments=JUDGED, absent="missing").X
    assert np.isnan(kept).tolist() == [[False, False], [True, True], [False, False]]
    assert rw.load(path, judgments=JUDGED, dtype="float64").X.dtype == np.float64


def test_features_come_in_any_order_and_new_ones_at_the_end(tmp_path):
    docs = {"7": {"a": 1}, "8": {"b": 2, "a": 3}, "9": {"c": None, "b": "NaN"}, "10": {"b": None}}
    path = write(tmp_path, lines(plugin("1", docs)))
    judged = {"1": {"7": 0, "8": 1, "9": 0, "10": 0}}
    data = rw.load(path, judgments=judged)
    nan = np.nan
    assert data.feature_names == ("a", "b", "c")
    expected = np.array([[1, nan, nan], [3, 2, nan], [nan] * 3, [nan] * 3])
    np.testing.assert_array_equal(data.X, expected)
    chosen = rw.load(path, judgments=judged, features="b,d,a")
    assert chosen.feature_names == ("b", "d", "a")
    np.testing.assert_array_equal(chosen.X, np.insert(expected[:, [1, 0]], 1, nan, axis=1))


def test_documents_without_judgment_are_left_out_and_counted(tmp_path):
    docs = {"7": {"a": 1}, "8": {"a": 2}}
    other = plugin("lost", {"7": {"a": 1}})
    path = write(tmp_path, lines(plugin("1", docs), plugin("1", docs), other))
    judged = {"1": {"7": 2, "gone": 1}}
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        data = rw.load(path, judgments=judged)
    assert data.doc_id.tolist() == ["7"]
    assert [str(one.message).partition(": ")[2] for one in said] == [
        "documents without a judgment, omitted of 4 (unjudged='zero' gives them grade 0): 1.",
        "queries without judgments, omitted (lost): 1.",
        "repeated documents of a query, omitted: 2.",
        "judged documents that are not in the log: 1.",
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        zero = rw.load(path, judgments=judged, unjudged="zero")
    assert dict(zip(zero.doc_id.tolist(), zero.y.tolist(), strict=True)) == {"7": 2, "8": 0}


def test_a_query_that_a_list_names_and_does_not_judge_is_left_out(tmp_path):
    judged = tmp_path / "judged.txt"
    judged.write_text("# qid:1: rambo\n# qid:2: rocky\n\n3 qid:1 # d1 rambo\n")
    path = write(tmp_path, lines(plugin("rambo", {"d1": {"a": 1}}), plugin("rocky", {"d1": {}})))
    with pytest.warns(UserWarning, match=r"queries without judgments, omitted \(rocky\): 1"):
        assert rw.load(path, judgments=judged).n_documents == 1


def test_partial_responses_are_counted(tmp_path):
    failed = {**responses[0], "_shards": {"total": 2, "failed": 1}}
    path = write(tmp_path, lines(failed, {**responses[1], "timed_out": True}))
    with pytest.warns(UserWarning, match="partial responses, .*: 2"):
        rw.load(path, judgments=JUDGED)


def test_several_log_entries_need_a_choice(tmp_path):
    both = hit("7", {"a": 1}, qid="1")
    both["fields"]["_ltrlog"].append({"other": [{"name": "b", "value": 2}]})
    path = write(tmp_path, lines(both))
    with pytest.raises(DataError, match=r"hit 1, document '7': .* log=..., one of: log, other"):
        rw.load(path, judgments={"1": {"7": 1}})
    assert rw.load(path, judgments={"1": {"7": 1}}, log="other").feature_names == ("b",)


def test_documents_that_are_only_to_be_ranked(tmp_path):
    path = write(tmp_path, of_each(plugin))
    data = load_documents(path, feature_names=["age"])
    assert data.feature_names == ("age",)
    assert data.y.tolist() == [0, 0, 0]
    assert data.qid.tolist() == ["1", "2"]
    load_documents(path, feature_names=["f1"])  # of a ranker whose features have no names


def test_pages_of_a_query_are_joined_and_converted(tmp_path):
    pages = [plugin("1", {"7": {"a": 1}}), plugin("2", {"9": {"a": 2, "b": 3}}), responses[0]]
    path = write(tmp_path, lines(*pages))
    with pytest.warns(UserWarning, match="repeated documents of a query, omitted: 1"):
        data = rw.load(path, judgments=JUDGED)
    assert data.feature_names == ("a", "b", "bm25", "age")
    assert data.doc_id.tolist() == ["7", "8", "9"]
    for suffix in (".store", ".csv", ".parquet"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of csv, that ids will be numbers
            convert(path, tmp_path / f"log{suffix}", judgments=JUDGED)
        again = rw.load(tmp_path / f"log{suffix}")
        assert again.feature_names == data.feature_names
        np.testing.assert_array_equal(again.X, data.X)


NOT_READ = {
    '{"hits": ': r"line 1: this is not JSON: expecting value in column 10",
    "{\n": r"line 2: this is not JSON",
    "[1, 2]": r"line 1: this is not a logged response: expected .* at `\$\[0\]`",
    '{"took": 1}': "line 1: this is neither a response with hits, docs or root, nor a hit",
    '{"error": {"reason": "no such index"}}': "answered with an error: 'no such index'",
    '{"error": {"msg": "undefined field"}}': "answered with an error: 'undefined field'",
    '{"root": {"errors": [{"code": 8, "message": "timeout"}]}}': "an error: 'timeout'",
    lines({"qid": 1, "hits": {"hits": [{"_id": "7", "fields": {}}]}}): (
        "line 1: hit 1, document '7': no _ltrlog; request it with ext.ltr_log"
    ),
    lines({"qid": 1, "hits": {"hits": [hit(None, {"a": 1})]}}): "line 1: hit 1 has no _id",
    lines(plugin("1", {"7": {"a": "high"}})): (
        "line 1: query 1, document '7': feature 'a' is 'high', not a number"
    ),
    lines(plugin("1", {"7": {"a": 1e39}})): (
        "query 1, document '7': feature 'a' is infinite, or too large for float32"
    ),
    lines(plugin("1", {"7": {"a": [1]}})): r"expected .* at `\$.hits.hits\[0\].fields._ltrlog",
    lines({"qid": 1, "response": {"docs": [{"id": 7}]}}): "document '7' has no logged features",
    lines({"qid": 1, "response": {"docs": [{"[features]": "a=1"}]}}): "document 1 has no id; add",
    lines({"qid": 1, "response": {"docs": [{"id": 7, "[features]": "a=1,b"}]}}): (
        "document '7': 'a=1,b' is not name=value,name=value"
    ),
    lines({"qid": 1, "response": {"docs": [{"id": 7, "[features]": "a=1,a=2"}]}}): (
        "document '7': feature 'a' appears twice"
    ),
    lines(vespa("1", {"7": {"a": {"cells": {}}}})): "feature 'a' is .*cells.*, not a number",
    lines({"qid": 1, "root": {"children": [{"id": "7", "fields": {}}]}}): "hit 1 has no matchf",
    lines(plugin("5", {"7": {"a": 1}})): (
        "judgments grade no document of .*: its queries are 5, but the judgments have 1, 2"
    ),
    lines({"qid": 1, "response": {"docs": [{"id": 7, "[features]": ""}]}}): (
        "no document has a logged feature"
    ),
    "\n": "has no documents",
}


@pytest.mark.parametrize("text", NOT_READ)
def test_errors_are_one_sentence_with_the_place(tmp_path, text):
    path = write(tmp_path, text)
    with pytest.raises(DataError, match=NOT_READ[text]) as caught:
        rw.load(path, judgments=JUDGED)
    assert str(path) in str(caught.value)


def test_options_are_checked(tmp_path):
    path = write(tmp_path, of_each(plugin))
    with pytest.raises(UsageError, match="has no grades; name its judgment list with judgments="):
        rw.load(path)
    with pytest.raises(UsageError, match="unjudged must be drop or zero, not 'keep'"):
        rw.load(path, judgments=JUDGED, unjudged="keep")
    with pytest.raises(UsageError, match="is read, not written; write LETOR text"):
        convert(path, tmp_path / "out.json", judgments=JUDGED)


NUMBERS = st.none() | st.floats(-1e6, 1e6, width=32) | st.integers(-9, 9)
DOCUMENTS = st.dictionaries(st.sampled_from("abcd"), NUMBERS, min_size=1)
QUERIES = st.lists(st.lists(DOCUMENTS, min_size=1, max_size=4), min_size=1, max_size=5)


@given(queries=QUERIES, engine=st.sampled_from([plugin, solr, vespa]))
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_features_are_found_as_a_plain_loop_finds_them(tmp_path, queries, engine):
    logged = {f"q{q}": {f"d{d}": one for d, one in enumerate(q_)} for q, q_ in enumerate(queries)}
    path = write(tmp_path, lines(*(engine(query, docs) for query, docs in logged.items())))
    judged = {query: dict.fromkeys(docs, 1) for query, docs in logged.items()}

    def value(features, name):
        left_out = features.get(name) is None or (engine is solr and not features[name])
        return np.nan if left_out else float(features[name])

    documents = [one for docs in logged.values() for one in docs.values()]
    if engine is not plugin and all(
        np.isnan(value(one, name)) for one in documents for name in one
    ):
        with pytest.raises(DataError, match="no document has a logged feature"):
            rw.load(path, judgments=judged)
        return
    expected = np.array([[value(one, name) for name in "abc"] for one in documents])
    options = {"judgments": judged, "absent": "missing", "dtype": "float64"}
    chosen, free = rw.load(path, features="a,b,c", **options), rw.load(path, **options)
    np.testing.assert_array_equal(chosen.X, expected)
    for column, name in enumerate(free.feature_names):
        np.testing.assert_array_equal(free.X[:, column], [value(one, name) for one in documents])


VALID = [text.encode() for text, _ in SHAPES.values()]
PIECES = [b"", b"null", b"0", b'"', b"[", b"]", b"{", b"}", b",", b":", b"\n", b"NaN", b"1e999"]
PIECES += [b"\xff", b"\\ud800", b'"qid"', b'"hits"', b'"response"', b"[" * 3000, b"9" * 400, b"\0"]


@given(
    content=st.sampled_from(VALID),
    changes=st.lists(
        st.tuples(st.floats(0, 1), st.integers(0, 40), st.sampled_from(PIECES) | st.binary()),
        max_size=4,
    ),
)
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_damaged_logs_are_read_or_refused_in_a_sentence(tmp_path, content, changes):
    for where, length, piece in changes:
        at = int(where * len(content))
        content = content[:at] + piece + content[at + length :]
    path = Path(tmp_path / "damaged.jsonl")
    path.write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            data = rw.load(path, judgments=JUDGED)
        except RankwrightError:  # whose message is one line
            return
        assert np.isfinite(data.X[~np.isnan(data.X)]).all()
