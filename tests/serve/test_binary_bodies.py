"""Bodies as npy matrices and Arrow streams: the answers of JSON, and refusals before any work."""

import io
import struct

import numpy as np
import pyarrow as pa
import pytest
from cases import each
from served import ARROW, NAMES, NPY, arrow, client, documents, npy, sentence, vectors

import rankwright
from rankwright.serve.binary_bodies import address_fields, arrow_lists, npy_lists, npy_matrix
from rankwright.serve.schemas import RankBatch, RankRequest, RequestError, ScoreBatch, ScoreRequest
from rankwright.serve.settings import Settings

RANK, SCORE = "/v1/models/web/rank", "/v1/models/web/score"


def by_name(X, names=NAMES):
    return {name: X[:, k] for k, name in enumerate(names)}


@pytest.fixture(scope="module")
def trees(files):
    return client(f"web={files / 'trees.rw'}")


def post(web, url, body, headers):
    return web.post(url, content=body, headers=headers)


@each("kind", [np.float64, np.float32])
def test_arrays_get_the_answers_of_json(trees, files, kind):
    own, X = documents(30)
    X = X.astype(kind)
    listed = [{**one, "features": row} for one, row in zip(own, X.tolist(), strict=True)]
    asked = {"query": "q", "documents": listed, "top": 7, "explain": 2}
    expected = trees.post(RANK, json=asked).json()
    address = f"{RANK}?query=q&top=7&explain=2"
    ids = {"id": [one["id"] for one in own]}
    shuffled = dict(reversed(list(by_name(X).items())))
    bodies = [arrow({**ids, "features": vectors(X)}), arrow({**shuffled, **ids}, chunk=11)]
    for body in bodies:
        assert post(trees, address, body, ARROW).json() == expected
    for place in expected["ranking"]:
        place["id"] = None
    for version in ((1, 0), (2, 0), (3, 0)):
        assert post(trees, address, npy(X, version), NPY).json() == expected
    assert post(trees, address, npy(np.asfortranarray(X)), NPY).json() == expected
    scores = rankwright.load_model(files / "trees.rw").predict(X).tolist()
    assert post(trees, SCORE, npy(X), NPY).json()["scores"] == scores


def test_arrays_are_of_the_type_that_kernels_are_ready_for(trees):
    """A first request for another type would wait for Numba to compile."""
    model = trees.service.store.models[0].model
    _, X = documents(3)
    (matrix,) = npy_lists(RankRequest, npy(np.asfortranarray(X, np.float32)), b"")
    (table,) = arrow_lists(RankRequest, arrow({"features": vectors(X)}), b"")
    for asked in (matrix, table):
        made = asked.features(model, Settings(), "")
        assert made.dtype == np.float64
        assert made.flags.writeable
        assert made.flags.c_contiguous


def test_truth_values_are_one_and_zero(trees):
    _, X = documents(3)
    X[:, 1] = [1, 0, 1]
    columns = by_name(X)
    expected = post(trees, SCORE, arrow(columns), ARROW).json()
    truth = {**columns, "b": [True, False, True]}
    assert post(trees, SCORE, arrow(truth), ARROW).json() == expected


def test_many_lists_as_one_table(trees):
    _, X = documents(7)
    queries = ["p", "p", "p", "q", "r", "r", "r"]
    columns = {"query": queries, "id": list(range(7)), "group": [0] * 7, "features": vectors(X)}
    found = post(trees, f"{RANK}/batch?per_group=2", arrow(columns), ARROW).json()["results"]
    assert [len(one["ranking"]) for one in found] == [2, 1, 2]
    for one, rows in zip(found, ((0, 3), (3, 4), (4, 7)), strict=True):
        listed = [{"id": n, "group": 0, "features": X[n].tolist()} for n in range(*rows)]
        body = {"query": one["query"], "documents": listed, "per_group": 2}
        assert trees.post(RANK, json=body).json() == one


def test_the_query_of_one_list_may_be_a_column(trees):
    _, X = documents(2)
    for held, address, query in (
        (["p", "p"], "", "p"),
        ([7, 7], "", 7),
        ([7, 7], "?query=7", "7"),
        (["p", "q"], "", None),
        (["p", "p"], "?query=q", None),
    ):
        body = arrow({"query": pa.array(held), **by_name(X)})
        answer = post(trees, RANK + address, body, ARROW)
        if query is None:
            assert answer.status_code == 422
            assert "another query than the address, or several" in answer.json()["error"]
        else:
            assert answer.json()["query"] == query


def test_an_empty_table_or_matrix_is_an_empty_list(trees):
    none = np.empty((0, 6))
    assert post(trees, RANK, npy(none), NPY).json()["ranking"] == []
    assert post(trees, RANK, arrow(by_name(none)), ARROW).json()["ranking"] == []
    assert (
        post(trees, SCORE, arrow(pa.table(by_name(none)).schema.empty_table()), ARROW).json()[
            "scores"
        ]
        == []
    )
    columns = {"query": pa.array([], pa.string()), **by_name(none)}
    assert post(trees, f"{SCORE}/batch", arrow(columns), ARROW).json() == {"results": []}


def test_missing_values_are_refused_or_scored_as_missing(trees, files):
    _, X = documents(3)
    X[1, 2] = np.nan
    holes = pa.array(X[:, 2], mask=np.isnan(X[:, 2]))
    bodies = [(npy(X), NPY), (arrow({**by_name(X), "c": holes}), ARROW)]
    lenient = client(f"web={files / 'trees.rw'}", missing="nan", unknown="ignore")
    expected = rankwright.load_model(files / "trees.rw").predict(X).tolist()
    for body, headers in bodies:
        assert sentence(post(trees, SCORE, body, headers), 422) == (
            "documents[1] has no feature 'c'; send it, or start the server with --missing nan."
        )
        assert post(lenient, SCORE, body, headers).json()["scores"] == expected
    some = arrow({"z": ["?"] * 3, **by_name(X[:, :2], "ab")})
    X[:, 2:] = np.nan
    expected = rankwright.load_model(files / "trees.rw").predict(X).tolist()
    assert post(lenient, SCORE, some, ARROW).json()["scores"] == expected


def test_categories_are_texts_in_a_table_and_codes_in_a_matrix(tmp_path):
    import pandas as pd

    rng = np.random.default_rng(0)
    town = pd.Categorical(rng.choice(["Bonn", "York"], 60))
    frame = pd.DataFrame({"town": town, "age": rng.normal(size=60)})
    y = rng.integers(0, 3, 60)
    rankwright.GBDT(n_estimators=3).fit(frame, y, qid=np.arange(60) // 10).save(tmp_path / "m.rw")
    web = client(f"web={tmp_path / 'm.rw'}")
    features = [{"town": "York", "age": 0.5}, {"town": "Bonn", "age": -1.0}]
    listed = [{"features": one} for one in features]
    expected = web.post(SCORE, json={"documents": listed}).json()["scores"]
    towns, ages = pa.array(["York", "Bonn"]), pa.array([0.5, -1.0], pa.float32())
    for column in (towns, towns.dictionary_encode(), towns.cast(pa.large_string())):
        body = arrow({"town": column, "age": ages})
        assert post(web, SCORE, body, ARROW).json()["scores"] == expected
    values = list(pd.Categorical(town).categories)
    codes = np.array([[values.index("York"), 0.5], [values.index("Bonn"), -1.0]])
    assert post(web, SCORE, npy(codes), NPY).json()["scores"] == expected
    codes[1, 0] = 2
    assert sentence(post(web, SCORE, npy(codes), NPY), 422) == (
        "documents[1]: feature 'town' is a category; in a matrix it is its number from 0 to 1."
    )
    why = sentence(post(web, SCORE, arrow({"town": ["Oslo"], "age": [1.0]}), ARROW), 422)
    assert why.startswith("documents[0]: the model does not know the category 'Oslo'")
    view = pa.array(["York"]).cast(pa.string_view())
    why = sentence(post(web, SCORE, arrow({"town": view, "age": [1.0]}), ARROW), 422)
    assert why == "column 'town' holds string_view; send texts, numbers or truth values."


# --- refusals --------------------------------------------------------------------------------


GOOD = npy(np.zeros((2, 6)))


def header(text, version=1):
    size = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + size + text


@each(
    ("body", "status", "why"),
    [
        (b"", 400, "does not begin as an npy file"),
        (b"PK\x03\x04" + GOOD, 400, "does not begin as an npy file"),
        (GOOD[:-1], 400, "a matrix of 2 x 6 f8 does not have the 95 bytes of the body"),
        (GOOD + b"\0", 400, "does not have the 97 bytes"),
        (GOOD[:6] + b"\x04" + GOOD[7:], 400, "the npy version 4 is not known"),
        (header(b"x" * 5000), 400, "the header of the npy body is too long"),
        (b"\x93NUMPY\x02\x00" + b"\xff" * 4, 400, "the header of the npy body is too long"),
        (npy(np.zeros((2, 6), np.int64)), 422, "must be a matrix of float32 or float64"),
        (npy(np.zeros((2, 6), ">f8")), 422, "must be a matrix of float32 or float64"),
        (npy(np.zeros(6)), 422, "must be a matrix"),
        (npy(np.zeros((2, 3, 1))), 422, "must be a matrix"),
        (header(b"{'descr': '|O', 'fortran_order': False, 'shape': (2, 6), }"), 422, "a matrix"),
        (
            header(b"{'descr': '<f8', 'fortran_order': False, 'shape': (9999999999, 9999999999)}"),
            400,
            "a matrix of 9999999999 x 9999999999 f8",
        ),
        (npy(np.zeros((2, 5))), 422, "documents have 5 features, the model has 6"),
        (npy(np.full((2, 6), np.inf)), 422, r"documents[0]: feature 'a' must be a finite number"),
    ],
)
def test_npy_bodies_that_are_refused(trees, body, status, why):
    assert why in sentence(post(trees, RANK, body, NPY), status)


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


def _offsets_beyond_the_text():
    body = bytearray(arrow({"id": ["abcd", "efgh"], "features": vectors(np.zeros((2, 6)))}))
    at = body.rindex(struct.pack("<iii", 0, 4, 8))
    body[at : at + 12] = struct.pack("<iii", 0, 4, 1 << 20)
    return bytes(body)


X2 = np.zeros((2, 6))
TABLE = arrow(by_name(X2))


@each(
    ("body", "status", "why"),
    [
        (b"ARROW1", 400, "the body is not an Arrow stream"),
        (TABLE[:200], 400, "the body is not an Arrow stream"),
        (_offsets_beyond_the_text(), 400, "the body is not an Arrow stream"),
        (arrow(by_name(X2), compression="zstd"), 422, "the Arrow stream is compressed"),
        (arrow({"id": pa.array(["a"] * 2).dictionary_encode(), **by_name(X2)}, compression="lz4"),
         422, "the Arrow stream is compressed"),
        (arrow({**by_name(X2), "z": [1, 2]}), 422, "the model has no feature 'z'; leave the"),
        (arrow({**by_name(X2), "c": ["x", "y"]}), 422, "column 'c' holds string; send numbers"),
        (arrow({**by_name(X2), "c": [[1.0], [2.0]]}), 422, "column 'c' holds list"),
        (arrow({**by_name(X2), "id": [0.5, 1.5]}), 422, "column 'id' holds double; send texts or"),
        (arrow({**by_name(X2), "id": ["x" * 1025, ""]}), 422, "column 'id': at most 1024"),
        (arrow({"features": [[1.0] * 6] * 2}), 422, "send fixed-size lists of float or double"),
        (arrow({"features": vectors(X2), "z": [1, 2]}), 422, "the model has no feature 'z'"),
        (arrow({"features": vectors(np.zeros((2, 5)))}), 422, "documents have 5 features, the"),
        (arrow({"features": pa.array([None, [1.0] * 6], pa.list_(pa.float64(), 6))}), 422,
         "documents[0] has no features"),
        (arrow(pa.table([[1.0], [2.0]], names=["a", "a"])), 422, "two columns of the same name"),
    ],
)  # fmt: skip
def test_arrow_bodies_that_are_refused(trees, body, status, why):
    assert why in sentence(post(trees, RANK, body, ARROW), status)


@each(
    ("columns", "why"),
    [
        (by_name(X2), "a batch needs a column 'query'"),
        ({"query": ["p", None], **by_name(X2)}, "documents[1] has no query"),
        (
            {"query": ["p", "q", "p"], **by_name(np.zeros((3, 6)))},
            "the documents of a query must stand together",
        ),
    ],
)
def test_tables_that_do_not_say_which_lists_they_hold(trees, columns, why):
    assert why in sentence(post(trees, f"{RANK}/batch", arrow(columns), ARROW), 422)


def test_a_matrix_is_no_batch(trees):
    why = sentence(post(trees, f"{RANK}/batch", GOOD, NPY), 415)
    assert why.startswith("an npy body holds one list; send many as JSON, or as Arrow")


def test_limits_are_those_of_json(files):
    web = client(f"web={files / 'trees.rw'}", max_documents=1)
    for body, headers in ((GOOD, NPY), (TABLE, ARROW)):
        assert sentence(post(web, RANK, body, headers), 413) == (
            "documents: 2 are more than the 1 allowed."
        )


# --- fields in the address -------------------------------------------------------------------


def test_fields_of_an_address():
    assert address_fields(RankRequest, b"") == {}
    found = address_fields(RankRequest, b"query=a%20b&top=3&per_group=1&explain=2")
    assert found == {"query": "a b", "top": 3, "per_group": 1, "explain": 2}
    assert address_fields(ScoreRequest, b"query=") == {"query": ""}
    assert address_fields(RankBatch, b"top=3") == {"top": 3}


@each(
    ("kind", "text", "why"),
    [
        (RankRequest, b"top", "has name=value; names are query, top, per_group, explain"),
        (RankRequest, b"top=0", "top must be a whole number from 1 to"),
        (RankRequest, b"top=3.5", "top must be a whole number"),
        (RankRequest, b"top=99999999999", "top must be a whole number"),
        (RankRequest, b"top=1&top=2", "'top' in the address is there twice"),
        (RankRequest, b"topp=1", "'topp' in the address is not a field"),
        (RankRequest, b"&".join([b"top=1"] * 9), "has name=value"),
        (RankRequest, b"query=%ff", "has name=value"),
        (RankRequest, b"query=" + b"x" * 1025, "query must have at most 1024 characters"),
        (ScoreRequest, b"top=1", "'top' in the address is not a field"),
        (ScoreBatch, b"query=1", "'query' in the address is not a field"),
    ],
)
def test_addresses_that_are_refused(kind, text, why):
    with pytest.raises(RequestError) as caught:
        address_fields(kind, text)
    assert why in str(caught.value)
    assert caught.value.status == 422
