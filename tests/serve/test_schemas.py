"""Fields of requests: strict types, limits of ids and counts, and nothing that is not a field."""

import json

import pytest
from cases import each
from pydantic import ValidationError

from rankwright.serve.schemas import MAX_COUNT, MAX_NAME, ClickRequest, RankRequest, RequestError

LIST = {"documents": [{"features": [1.0], "id": "a", "group": 2}]}


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
    found = kind.model_validate_json(json.dumps(fields)).model_dump(exclude_unset=True)
    assert found == fields


@each(
    ("kind", "fields"),
    [
        (RankRequest, {**LIST, "query": "q" * (MAX_NAME + 1)}),
        (RankRequest, {**LIST, "query": 2**63}),
        (RankRequest, {**LIST, "top": MAX_COUNT + 1}),
        (RankRequest, {**LIST, "top": 0}),
        (RankRequest, {**LIST, "top": True}),
        (RankRequest, {**LIST, "user": "x"}),
        (RankRequest, {"documents": [{"features": [float("nan")]}]}),
        (ClickRequest, {"session": "s" * 65, "position": 1}),
        (ClickRequest, {"session": 5, "position": 1}),
        (ClickRequest, {"session": "s", "position": 0}),
    ],
)
def test_what_is_over_a_limit_or_of_another_type_is_refused(kind, fields):
    with pytest.raises(ValidationError):
        kind.model_validate_json(json.dumps(fields))


def test_a_refusal_has_a_status_and_one_line():
    refusal = RequestError(422, "two\nlines")
    assert (refusal.status, str(refusal)) == (422, "two\\nlines")
