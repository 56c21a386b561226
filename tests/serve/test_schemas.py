"""Fields of requests: strict types, limits of ids and counts, and no unknown fields."""

import json

import msgspec
import pytest
from cases import each

from rankwright.serve.schemas import MAX_COUNT, MAX_NAME, ClickRequest, RankRequest, RequestError

LIST = {"documents": [{"features": [1.0], "id": "a", "group": 2}]}


def read(kind, fields):
    return msgspec.json.decode(json.dumps(fields), type=kind)


@each(
    ("kind", "fields"),
    [
        (RankRequest, {**LIST, "query": "q" * MAX_NAME, "top": MAX_COUNT}),
        (RankRequest, {**LIST, "query": 2**63 - 1, "explain": 1, "per_group": 1}),
        (RankRequest, {"documents": [{"features": {"a": "x", "b": None, "c": True, "d": 1}}]}),
        (ClickRequest, {"session": "s" * 64, "position": 1}),
        (ClickRequest, {"session": "s", "document": 7}),
    ],
)
def test_requests_at_their_limits_are_taken_as_they_are(kind, fields):
    fields_read = msgspec.to_builtins(read(kind, fields))
    assert {name: value for name, value in fields_read.items() if name in fields} == {
        **fields,
        **({"documents": fields_read["documents"]} if "documents" in fields else {}),
    }


@each(
    ("kind", "fields"),
    [
        (RankRequest, {**LIST, "query": "q" * (MAX_NAME + 1)}),
        (RankRequest, {**LIST, "query": 2**63}),
        (RankRequest, {**LIST, "top": MAX_COUNT + 1}),
        (RankRequest, {**LIST, "top": 0}),
        (RankRequest, {**LIST, "top": True}),
        (RankRequest, {**LIST, "user": "x"}),
        (RankRequest, {"documents": [{"features": [1.0], "feature": [1.0]}]}),
        (ClickRequest, {"session": "s" * 65, "position": 1}),
        (ClickRequest, {"session": 5, "position": 1}),
        (ClickRequest, {"session": "s", "position": 0}),
    ],
)
def test_what_is_over_a_limit_or_of_another_type_is_refused(kind, fields):
    with pytest.raises(msgspec.ValidationError):
        read(kind, fields)


def test_a_refusal_has_a_status_and_one_line():
    refusal = RequestError(422, "two\nlines")
    assert (refusal.status, str(refusal)) == (422, "two\\nlines")
