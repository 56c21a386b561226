"""Bodies as JSON and as npy matrices: equal answers, and refusals before any work."""

import io
import json
import struct
from types import SimpleNamespace

import numpy as np
import pytest
from cases import each
from served import NAMES, NPY, client, documents, npy, sentence

import rankwright
from rankwright.serve.bodies import address_fields, json_lists, npy_lists, npy_matrix, number_of
from rankwright.serve.schemas import RankBatch, RankRequest, RequestError, ScoreRequest
from rankwright.serve.settings import Settings

RANK, SCORE = "/v1/models/web/rank", "/v1/models/web/score"
STRICT, LENIENT = Settings(), Settings(missing="nan", unknown="ignore")
MODEL = SimpleNamespace(n_features=3, columns={"a": 0, "b": 1, "c": 2}, coded={})
ROWS = [
    [0.1, -2.5e-3, 3],
    [1e22, 123456789012345678, 0.30000000000000004],
    [2.5e-300, 1.7976931348623157e308, -0.0],
]


@pytest.fixture(scope="module")
def trees(files):
    return client(f"web={files / 'trees.rw'}")


def post(web, url, body, headers=NPY):
    return web.post(url, content=body, headers=headers)


# --- JSON --------------------------------------------------------------------------------------


def features(rows, settings=STRICT, model=MODEL):
    body = json.dumps({"documents": [{"features": row} for row in rows]}).encode()
    (asked,) = json_lists(ScoreRequest, body, b"")
    return asked.features(model, settings, "")


def named(rows, names="abc"):
    return [dict(zip(names, row, strict=True)) for row in rows]


@each("rows", [ROWS, named(ROWS), [ROWS[0], *named(ROWS[1:])]])
def test_numbers_are_read_exactly(rows):
    X = features(rows)
    assert X.dtype == np.float64
    assert X.flags.writeable
    assert X.tobytes() == np.array(ROWS, np.float64).tobytes()


@each(
    ("rows", "expected"),
    [
        ([[1, None, 2]], [[1, np.nan, 2]]),
        ([[True, 2, False]], [[1, 2, 0]]),
        ([{"a": 1, "b": None}, {"a": 2, "b": 3}], [[1, np.nan, np.nan], [2, 3, np.nan]]),
        ([{"a": 1, "z": 7, "c": 3}], [[1, np.nan, 3]]),
        ([{"c": 1, "a": 2}, {"a": 3, "c": 4}], [[2, np.nan, 1], [3, np.nan, 4]]),
        ([{}, {}], [[np.nan] * 3] * 2),
        ([], np.empty((0, 3))),
    ],
)
def test_missing_and_unknown_features_and_truth_values(rows, expected):
    np.testing.assert_array_equal(features(rows, LENIENT), expected)


@each(
    ("rows", "why"),
    [
        ([[1, 2]], "documents[0] has 2 features, the model has 3"),
        ([[1, 2, 3], [1, 2, 3, 4]], "documents[1] has 4 features"),
        ([[1, "2", 3]], "documents[0].features[1] must be a number"),
        ([{"a": "2"}], "documents[0].features.a must be a number"),
        ([[1, None, 3]], "documents[0] has no feature 'b'"),
        ([{"a": 1, "b": 2, "c": 3, "z": 4}], "documents[0]: the model has no feature 'z'"),
        ([{"a": 1, "b": 2}], "documents[0] has no feature 'c'"),
    ],
)
def test_features_that_are_refused(rows, why):
    with pytest.raises(RequestError) as caught:
        features(rows)
    assert why in str(caught.value)
    assert caught.value.status == 422


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


# --- npy ---------------------------------------------------------------------------------------


@each("kind", [np.float64, np.float32])
def test_matrices_get_the_answers_of_json(trees, files, kind):
    listed, X = documents(30)
    X = X.astype(kind)
    listed = [{**one, "features": row} for one, row in zip(listed, X.tolist(), strict=True)]
    asked = {"query": "q", "documents": listed, "top": 7, "explain": 2}
    expected = trees.post(RANK, json=asked).json()
    for place in expected["ranking"]:
        place["id"] = None
    address = f"{RANK}?query=q&top=7&explain=2"
    for version in ((1, 0), (2, 0)):
        assert post(trees, address, npy(X, version)).json() == expected
    assert post(trees, address, npy(np.asfortranarray(X))).json() == expected
    scores = rankwright.load_model(files / "trees.rw").predict(X).tolist()
    assert post(trees, SCORE, npy(X)).json()["scores"] == scores


def test_matrices_are_of_the_type_that_kernels_are_ready_for(trees):
    """A first request for another type would wait for Numba to compile."""
    model = trees.service.store.models[0].model
    _, X = documents(3)
    (asked,) = npy_lists(RankRequest, npy(np.asfortranarray(X, np.float32)), b"")
    made = asked.features(model, Settings(), "")
    assert made.dtype == np.float64
    assert made.flags.writeable
    assert made.flags.c_contiguous


def test_an_empty_matrix_is_an_empty_list(trees):
    assert post(trees, RANK, npy(np.empty((0, len(NAMES))))).json()["ranking"] == []


def test_missing_values_are_refused_or_scored_as_missing(trees, files):
    _, X = documents(3)
    X[1, 2] = np.nan
    lenient = client(f"web={files / 'trees.rw'}", missing="nan", unknown="ignore")
    expected = rankwright.load_model(files / "trees.rw").predict(X).tolist()
    assert sentence(post(trees, SCORE, npy(X)), 422) == (
        "documents[1] has no feature 'c'; send it, or start the server with --missing nan."
    )
    assert post(lenient, SCORE, npy(X)).json()["scores"] == expected


def test_categories_are_texts_in_json_and_codes_in_a_matrix(tmp_path):
    import pandas as pd

    rng = np.random.default_rng(0)
    town = pd.Categorical(rng.choice(["Bonn", "York"], 60))
    frame = pd.DataFrame({"town": town, "age": rng.normal(size=60)})
    y = rng.integers(0, 3, 60)
    rankwright.GBDT(n_estimators=3).fit(frame, y, qid=np.arange(60) // 10).save(tmp_path / "m.rw")
    web = client(f"web={tmp_path / 'm.rw'}")
    rows = [{"town": "York", "age": 0.5}, {"town": "Bonn", "age": -1.0}]
    listed = [{"features": one} for one in rows]
    expected = web.post(SCORE, json={"documents": listed}).json()["scores"]
    values = list(pd.Categorical(town).categories)
    codes = np.array([[values.index("York"), 0.5], [values.index("Bonn"), -1.0]])
    assert post(web, SCORE, npy(codes)).json()["scores"] == expected
    codes[1, 0] = 2
    assert sentence(post(web, SCORE, npy(codes)), 422) == (
        "documents[1]: feature 'town' is a category; in a matrix it is its number from 0 to 1."
    )


GOOD = npy(np.zeros((2, 6)))


def header(text, version=1):
    size = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + size + text


@each(
    ("body", "status", "why"),
    [
        (b"", 400, "the body is not in the npy format"),
        (b"PK\x03\x04" + GOOD, 400, "the body is not in the npy format: the magic string"),
        (GOOD[:-1], 400, "a matrix of 2 x 6 float64 does not have the 95 bytes of the body"),
        (GOOD + b"\0", 400, "does not have the 97 bytes"),
        (GOOD[:6] + b"\x03" + GOOD[7:], 400, "version 3.0 is not 1.0 or 2.0"),
        (header(b"x" * 5000), 400, "the body is not in the npy format: Header info length"),
        (header(b"(" * 4000), 400, "the body is not in the npy format"),
        (header(b"{'descr': '<f8'"), 400, "the body is not in the npy format"),
        (b"\x93NUMPY\x02\x00" + b"\xff" * 4, 400, "the body is not in the npy format"),
        (npy(np.zeros((2, 6), np.int64)), 422, "must be a matrix of float32 or float64"),
        (npy(np.zeros((2, 6), ">f8")), 422, "must be a matrix of float32 or float64"),
        (npy(np.zeros(6)), 422, "must be a matrix"),
        (npy(np.zeros((2, 3, 1))), 422, "must be a matrix"),
        (header(b"{'descr': '|O', 'fortran_order': False, 'shape': (2, 6), }"), 422, "a matrix"),
        (
            header(b"{'descr': '<f8', 'fortran_order': False, 'shape': (9999999999, 9999999999)}"),
            400,
            "a matrix of 9999999999 x 9999999999 float64",
        ),
        (header(b"{'descr': '<f8', 'fortran_order': False, 'shape': (-1, 0)}"), 400, "a matrix of"),
        (npy(np.zeros((2, 5))), 422, "documents have 5 features, the model has 6"),
        (npy(np.full((2, 6), np.inf)), 422, r"documents[0]: feature 'a' must be a finite number"),
    ],
)
def test_npy_bodies_that_are_refused(trees, body, status, why):
    assert why in sentence(post(trees, RANK, body), status)


def test_no_object_of_an_npy_body_is_unpickled():
    ran = []

    class Trap:
        def __reduce__(self):
            return ran.append, (1,)

    stream = io.BytesIO()
    np.save(stream, np.array([[Trap()]], object), allow_pickle=True)
    with pytest.raises(RequestError, match="must be a matrix of float32 or float64"):
        npy_matrix(stream.getvalue())
    assert ran == []


def test_a_matrix_is_not_a_batch(trees):
    why = sentence(post(trees, f"{RANK}/batch", GOOD), 415)
    assert why == "send application/json, not 'application/x-npy'."


def test_limits_are_those_of_json(files):
    web = client(f"web={files / 'trees.rw'}", max_documents=1)
    assert sentence(post(web, RANK, GOOD), 413) == "documents: 2 are more than the 1 allowed."


def test_fewer_documents_are_explained_than_scored(files):
    web = client(f"web={files / 'trees.rw'}", max_explained=1)
    assert post(web, RANK, GOOD).status_code == 200
    assert sentence(post(web, f"{RANK}?explain=1", GOOD), 413) == (
        "explain: 2 documents are more than the 1 that can be explained at a time; send only the "
        "best ones, or leave explain out."
    )


# --- fields in the address -------------------------------------------------------------------


def test_fields_of_an_address():
    assert address_fields(RankRequest, b"") == {}
    fields = address_fields(RankRequest, b"query=a%20b&top=3&per_group=1&explain=2")
    assert fields == {"query": "a b", "top": 3, "per_group": 1, "explain": 2}
    assert address_fields(ScoreRequest, b"query=") == {"query": ""}


@each(
    ("kind", "text", "why"),
    [
        (RankRequest, b"top", "must have name=value after its ?; names are query, top, per_group"),
        (RankRequest, b"top=0", "top must be a whole number from 1 to"),
        (RankRequest, b"top=3.5", "top must be a whole number"),
        (RankRequest, b"top=99999999999", "top must be a whole number"),
        (RankRequest, b"top=1&top=2", "'top' in the address is there twice"),
        (RankRequest, b"topp=1", "'topp' in the address is not a field"),
        (RankRequest, b"&".join([b"top=1"] * 9), "must have name=value"),
        (RankRequest, b"query=%ff", "must have name=value"),
        (RankRequest, b"query=" + b"x" * 1025, "query must have at most 1024 characters"),
        (ScoreRequest, b"top=1", "'top' in the address is not a field"),
    ],
)
def test_addresses_that_are_refused(kind, text, why):
    with pytest.raises(RequestError) as caught:
        address_fields(kind, text)
    assert why in str(caught.value)
    assert caught.value.status == 422


def test_a_batch_has_the_lists_of_its_queries():
    body = b'{"queries": [{"documents": [], "query": 3}, {"documents": [], "top": 2}]}'
    first, second = json_lists(RankBatch, body, b"")
    assert (first.query, first.top, second.query, second.top) == (3, None, None, 2)
