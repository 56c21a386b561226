"""Frames of three packages become the same ranking data, and come back."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from reference.same_data import assert_same
from scipy import sparse

from rankwright.data.frames import column_of, frame_of_data, ids_of_text
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError

COLUMNS = {
    "query": ["b", "a", "b"],
    "grade": [2, 0, 1],
    "price": [1.5, 2.5, None],
    "clicks": [1, None, 3],
    "new": [True, False, True],
    "host": ["x", "y", "x"],
}

FRAMES = {
    "pandas": pd.DataFrame,
    "pandas-nullable": lambda columns: pd.DataFrame(columns).convert_dtypes(),
    "polars": pl.DataFrame,
    "polars-lazy": pl.LazyFrame,
    "pyarrow": pa.table,
}


@pytest.fixture(params=FRAMES.values(), ids=FRAMES)
def make(request):
    return request.param


def test_rows_are_grouped_and_null_features_are_missing(make):
    data = RankingData.from_frame(make(COLUMNS), qid="query", label="grade", group="host")
    assert data.qid.tolist() == ["b", "a"]
    assert data.row.tolist() == [0, 2, 1]
    assert data.y.tolist() == [2, 1, 0]
    assert data.group.tolist() == ["x", "x", "y"]
    assert data.feature_names == ("price", "clicks", "new")
    np.testing.assert_array_equal(data.X, [[1.5, 1, 1], [np.nan, 3, 1], [2.5, np.nan, 0]])


def test_features_can_be_named_or_dropped(make):
    frame = make(COLUMNS)
    named = RankingData.from_frame(frame, qid="query", label="grade", features=["new", "price"])
    assert named.feature_names == ("new", "price")
    dropped = RankingData.from_frame(frame, qid="query", label="grade", drop=["host", "new"])
    assert dropped.feature_names == ("price", "clicks")


def test_without_grades_all_are_zero(make):
    data = RankingData.from_frame(make(COLUMNS), qid="query", label=None, drop=["host", "grade"])
    assert data.y.tolist() == [0, 0, 0]


def test_text_features_are_named_with_what_to_do(make):
    wanted = r"not numeric: 'host' \(it holds 'x'\).*features=.*drop=\['host'\]"
    with pytest.raises(DataError, match=wanted):
        RankingData.from_frame(make(COLUMNS), qid="query", label="grade")


def test_an_unknown_column_is_answered_with_the_nearest(make):
    with pytest.raises(DataError, match=r"no column 'grades'; did you mean grade"):
        RankingData.from_frame(make(COLUMNS), qid="query", label="grades")
    with pytest.raises(DataError, match=r"no column 'prize'; did you mean price"):
        RankingData.from_frame(make(COLUMNS), qid="query", label="grade", features=["prize"])


def test_an_unknown_role_is_refused(make):
    with pytest.raises(UsageError, match=r"no column role 'groups'; did you mean group"):
        RankingData.from_frame(make(COLUMNS), qid="query", label="grade", groups="host")


@pytest.mark.parametrize(("column", "what"), [("query", "query id"), ("grade", "grade")])
def test_a_missing_id_or_grade_names_its_row(make, column, what):
    values = [*COLUMNS[column][:2], None]
    frame = make({**COLUMNS, column: values})
    sentence = rf"the {what} \(column '{column}'\) is missing at row 2"
    with pytest.raises(DataError, match=sentence):
        RankingData.from_frame(frame, qid="query", label="grade", drop=["host"])


def test_a_missing_weight_names_its_row_but_a_document_may_have_no_name(make):
    columns = {**COLUMNS, "name": ["u", None, "w"], "weight": [1.0, 2.0, None]}
    data = RankingData.from_frame(
        make(columns), qid="query", label="grade", features=["price"], doc_id="name"
    )
    assert data.doc_id.tolist() == ["u", "w", ""]
    with pytest.raises(DataError, match=r"sample_weight \(column 'weight'\) is missing at row 2"):
        RankingData.from_frame(
            make(columns), qid="query", label="grade", features=["price"], sample_weight="weight"
        )


def test_text_grades_name_their_row(make):
    frame = make({**COLUMNS, "grade": ["2", "0", "good"]})
    with pytest.raises(DataError, match=r"the grade \(column 'grade'\).*row 0 holds '2'"):
        RankingData.from_frame(frame, qid="query", label="grade", drop=["host"])


def test_the_grade_cannot_be_a_feature(make):
    with pytest.raises(DataError, match="'grade' holds the grades"):
        RankingData.from_frame(make(COLUMNS), qid="query", label="grade", features=["grade"])


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"q": pd.Categorical([30, 30, 10]), "y": [1, 0, 2], "x": [1.0, 2, 3]}),
        pl.DataFrame({"q": [30, 30, 10], "y": [1, 0, 2], "x": [1.0, 2, 3]}),
    ],
    ids=["pandas-category", "polars-int"],
)
def test_integer_ids_stay_integers_even_as_categories(frame):
    data = RankingData.from_frame(frame, qid="q", label="y")
    assert data.qid.tolist() == [30, 10]


def test_text_categories_are_ids():
    queries = ["u", "v", "u"]
    frames = [
        pd.DataFrame({"q": pd.Categorical(queries), "y": [1, 0, 2], "x": [1.0, 2, 3]}),
        pl.DataFrame(
            {"q": pl.Series(queries, dtype=pl.Categorical), "y": [1, 0, 2], "x": [1.0] * 3}
        ),
        pa.table({"q": pa.array(queries).dictionary_encode(), "y": [1, 0, 2], "x": [1.0] * 3}),
    ]
    for frame in frames:
        assert RankingData.from_frame(frame, qid="q", label="y").qid.tolist() == ["u", "v"]


def test_float32_stays_float32_only_where_all_features_are():
    x = np.array([0.1, 0.2], np.float32)
    both = pl.DataFrame({"q": [1, 1], "y": [0, 1], "a": x, "b": x})
    assert RankingData.from_frame(both, qid="q", label="y").X.dtype == np.float32
    mixed = both.with_columns(c=pl.Series([1, 2]))
    assert RankingData.from_frame(mixed, qid="q", label="y").X.dtype == np.float64


def test_object_columns_of_numbers_and_columns_of_nulls_are_features():
    frame = pd.DataFrame({"q": [1, 1], "y": [0, 1], "n": [None, None]})
    frame["o"] = np.array([1, None], object)
    data = RankingData.from_frame(frame, qid="q", label="y")
    np.testing.assert_array_equal(data.X, [[np.nan, 1], [np.nan, np.nan]])


def test_dates_are_no_features():
    frame = pl.DataFrame({"q": [1], "y": [0], "day": pl.Series(["2024-05-01"]).str.to_date()})
    with pytest.raises(DataError, match="not numeric: 'day'"):
        RankingData.from_frame(frame, qid="q", label="y")


def test_a_column_name_used_twice_is_refused():
    twice = pd.DataFrame([[1, 0, 5, 6]], columns=["q", "y", "x", "x"])
    with pytest.raises(DataError, match=r"used twice.*'x'"):
        RankingData.from_frame(twice, qid="q", label="y")


@pytest.mark.parametrize("thing", [np.ones((2, 2)), [[1, 2]], pd.Series([1.0])])
def test_what_is_no_frame_is_refused(thing):
    with pytest.raises(DataError, match=r"a pandas, polars or Arrow frame is expected"):
        RankingData.from_frame(thing, qid="q", label="y")


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_data_comes_back_from_its_frame(backend, layout):
    wanted = RankingData.from_arrays(
        layout(np.array([[0.1, -0.0], [np.nan, 5e-324], [3, 0]])),
        [0, 2.5, 1],
        qid=["007", "007", "é"],
        doc_id=["a", "", "c"],
        group=[3, 3, 4],
        position=[1, 2, 1],
        sample_weight=[0.1, 0.2, 0.3],
        query_weight=[1.5, 2],
        feature_names=["price", "clicks"],
    )
    roles = ("doc_id", "group", "position", "sample_weight", "query_weight")
    frame = frame_of_data(wanted, backend)
    back = RankingData.from_frame(frame, qid="qid", label="label", **{r: r for r in roles})
    assert_same(back, wanted)


def test_features_without_names_are_called_f1_to_fd():
    data = RankingData.from_arrays(np.ones((1, 3)), [0], qid=[1])
    assert frame_of_data(data, "polars").columns == ["qid", "label", "f1", "f2", "f3"]


def test_a_feature_named_like_a_role_is_refused():
    data = RankingData.from_arrays(np.ones((1, 1)), [0], qid=[1], feature_names=["label"])
    with pytest.raises(DataError, match="a feature is named 'label'"):
        frame_of_data(data)


def test_an_unknown_backend_is_answered_with_the_known():
    data = RankingData.from_arrays(np.ones((1, 1)), [0], qid=[1])
    with pytest.raises(UsageError, match=r"no frame backend 'panda'; did you mean pandas"):
        frame_of_data(data, "panda")


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        (["1", "-20", "300"], [1, -20, 300]),
        (["1", "007"], ["1", "007"]),
        (["1", "+2"], ["1", "+2"]),
        (["1", "1_0"], ["1", "1_0"]),
        (["1", "99999999999999999999"], ["1", "99999999999999999999"]),
        (["1", "2.0"], ["1", "2.0"]),
        (["1", ""], ["1", ""]),
        (["1", " 2"], ["1", " 2"]),
        (["-0"], ["-0"]),
    ],
)
def test_text_ids_are_numbers_only_where_all_are_written_as_such(text, ids):
    assert ids_of_text(text).tolist() == ids


def test_a_feature_is_found_by_name_or_number():
    X = np.ones((1, 3))
    named = RankingData.from_arrays(X, [0], qid=[1], feature_names=["price", "2", "clicks"])
    assert [column_of(named, f) for f in ("clicks", "2", 1)] == [2, 1, 0]
    plain = RankingData.from_arrays(X, [0], qid=[1])
    assert [column_of(plain, f) for f in ("f3", "3", 3)] == [2, 2, 2]
    with pytest.raises(UsageError, match="no feature 'prize'; did you mean price"):
        column_of(named, "prize")
    with pytest.raises(UsageError, match="no feature '4'; known: 1 to 3"):
        column_of(plain, 4)
