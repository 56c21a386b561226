"""Bodies as JSON: the kernel reads numbers as pydantic does, or leaves them to pydantic."""

import json
import random
from types import SimpleNamespace

import numpy as np
import pytest
from cases import each
from served import NAMES, client, documents

from rankwright.errors import RankwrightError
from rankwright.serve.json_bodies import NotPlainError, asked_lists, number_of, plain_lists
from rankwright.serve.schemas import RankRequest, RequestError, ScoreRequest
from rankwright.serve.settings import Settings

STRICT, LENIENT = Settings(), Settings(missing="nan", unknown="ignore")
MODEL = SimpleNamespace(n_features=3, columns={"a": 0, "b": 1, "c": 2}, coded={})
ROWS = [
    [0.1, -2.5e-3, 3],
    [1e22, 123456789012345678, 0.30000000000000004],
    [2.5e-300, 1.7976931348623157e308, -0.0],
]


def read(lists, settings=STRICT, model=MODEL):
    """Return all that lists ask for; features as bits, NaN included, with -0 as 0."""
    return [
        (
            *(one.query, one.size, one.ids, one.groups, one.top, one.per_group, one.explain),
            (one.features(model, settings, "") + 0.0).tobytes(),
        )
        for one in lists
    ]


def body(rows, **fields):
    listed = [{"id": f"d{n}", "group": n, "features": row} for n, row in enumerate(rows)]
    return json.dumps({"query": "q", "documents": listed, **fields}).encode()


def named(rows, names="abc"):
    return [dict(zip(names, row, strict=True)) for row in rows]


@each(
    ("rows", "settings"),
    [
        (ROWS, STRICT),
        (named(ROWS), STRICT),
        (named(ROWS, "cab"), STRICT),
        ([[1, None, 2]], LENIENT),
        ([{"a": 1, "b": None}, {"a": 2, "b": 3}], LENIENT),
        ([{"a": 1, "z": 7, "c": 3}], LENIENT),
        ([{}, {}], LENIENT),
        ([], STRICT),
    ],
)
def test_a_plain_body_is_read_as_pydantic_reads_it(rows, settings):
    for text in (body(rows, top=2, explain=1), body(rows).replace(b",", b" ,\n\t ")):
        expected = read(asked_lists(RankRequest, text), settings)
        assert read(plain_lists(RankRequest, text), settings) == expected


@each(
    ("rows", "settings"),
    [
        ([[1, 2]], STRICT),
        ([[1, 2, 5e-324]], STRICT),
        ([[1, 2, 3, 4]], STRICT),
        ([[1, None, 2]], STRICT),
        ([[1, "2", 3]], STRICT),
        ([[1, True, 3]], STRICT),
        ([[1, 2, 3], {}], LENIENT),
        ([{}, [1, 2, 3]], LENIENT),
        ([{"a": 1, "b": 2, "c": 3}, {"b": 2, "a": 1, "c": 3}], STRICT),
        ([{"a": 1, "b": 2, "c": 3, "z": 4}], STRICT),
        ([{"a": 1, "b": 2}], STRICT),
        ([{"a": 1, 'b"': 2}], LENIENT),
        ([7], STRICT),
    ],
)
def test_features_that_are_not_plain_are_left_to_pydantic(rows, settings):
    (asked,) = plain_lists(ScoreRequest, body(rows))
    with pytest.raises(NotPlainError):
        asked.features(MODEL, settings, "")


def test_features_with_categories_are_left_to_pydantic():
    model = SimpleNamespace(n_features=3, columns=MODEL.columns, coded={0: {"x": 0}})
    (asked,) = plain_lists(ScoreRequest, body([[1, 2, 3]]))
    with pytest.raises(NotPlainError):
        asked.features(model, STRICT, "")


@each("text", [
    b"", b"[]", b"{}", b'{"documents": 3}', b'{"documents": [], "topp": 3}', b"[" * 100_000,
    b'{"documents": [], "top": 3.0}', b'{"documents": [], "query": "\xff"}',
    b'{"documents": [{"features": [1e5}]}', b'{"documents": [{"features": [01,2,3]}]}',
    b'{"documents": [{"features": [NaN,2,3]}]}',
])  # fmt: skip
def test_a_body_that_pydantic_refuses_is_not_plain(text):
    assert plain_lists(RankRequest, text) is None
    with pytest.raises(RequestError):
        asked_lists(RankRequest, text)


def test_damaged_bodies_are_read_alike_or_left_to_pydantic():
    """Whatever the kernel reads, pydantic reads too, with the same numbers."""
    rng = random.Random(0)
    pieces = b' ,:[]{}"0123456789.eE+-ntab\\\x00\xff'
    whole = {kind: body(rows, top=2) for kind, rows in (("lists", ROWS), ("maps", named(ROWS)))}
    both = 0
    for number in range(3000):
        text = bytearray(whole["maps" if number % 2 else "lists"])
        for _ in range(rng.randint(1, 2)):
            at = rng.randrange(len(text))
            text[at : at + rng.randint(0, 2)] = rng.choices(pieces, k=rng.randint(0, 2))
        try:
            found = read(plain_lists(RankRequest, bytes(text)) or [], LENIENT)
        except NotPlainError:
            continue
        if found:
            assert found == read(asked_lists(RankRequest, bytes(text)), LENIENT), bytes(text)
            both += 1
    assert both > 300


def test_a_plain_body_does_not_reach_pydantic(files, monkeypatch):
    def refuse(*_):
        raise RankwrightError("read by pydantic")

    monkeypatch.setattr("rankwright.serve.app.asked_lists", refuse)
    web = client(f"web={files / 'linear.rw'}")
    own, X = documents(3)
    by_name = [{"features": dict(zip(NAMES, row, strict=True))} for row in X.tolist()]
    answers = [
        web.post("/v1/models/web/score", json={"documents": some}).json()["scores"]
        for some in (own, by_name)
    ]
    assert answers[0] == answers[1]
    assert np.isfinite(answers[0]).all()


def test_a_category_is_its_code_and_a_number_itself():
    model = SimpleNamespace(columns={"town": 0, "age": 1}, coded={0: {"Rome": 0, "Oslo": 1}})
    strict, lenient = Settings(missing="error"), Settings(missing="nan")

    def number(column, value, settings=strict):
        return number_of(model, column, value, settings, "documents[3]", column)

    assert number(0, "Oslo") == 1.0
    assert number(1, 2.5) == 2.5
    assert np.isnan(number(0, None))
    assert np.isnan(number(0, "Paris", lenient))
    for settings in (strict, lenient):
        with pytest.raises(
            RequestError, match="feature 'town' is a category; give it as text, not"
        ):
            number(0, 7.0, settings)
    with pytest.raises(RequestError, match="does not know the category 'Paris' of feature 'town'"):
        number(0, "Paris")
    with pytest.raises(RequestError, match=r"documents\[3\].features\[1\] must be a number"):
        number(1, "Rome")
