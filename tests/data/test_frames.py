"""Frames of three packages become the same ranking data, and come back."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from cases import each
from reference.same_data import assert_same
from scipy import sparse

import rankwright as rw
from rankwright.data.files import convert, save
from rankwright.data.frames import (
    USUAL_NAMES,
    Categories,
    categories_from_json,
    choose_columns,
    column_of,
    frame_columns,
    ids_of_text,
    match_columns,
)
from rankwright.data.ranking_data import RankingData, concatenate
from rankwright.data.store import Store
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
    wanted = r"not numeric: 'host' \(it holds 'x'\).*--read doc_id=.*features=.*drop=\['host'\]"
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
    frame = wanted.to_frame(backend)
    back = RankingData.from_frame(frame, qid="qid", label="label", **{r: r for r in roles})
    assert_same(back, wanted)


def test_features_without_names_are_called_f1_to_fd():
    data = RankingData.from_arrays(np.ones((1, 3)), [0], qid=[1])
    assert data.to_frame("polars").columns == ["qid", "label", "f1", "f2", "f3"]


def test_a_feature_named_like_a_role_is_refused():
    data = RankingData.from_arrays(np.ones((1, 1)), [0], qid=[1], feature_names=["label"])
    with pytest.raises(DataError, match="a feature is named 'label'"):
        data.to_frame()


def test_an_unknown_backend_is_answered_with_the_known():
    data = RankingData.from_arrays(np.ones((1, 1)), [0], qid=[1])
    with pytest.raises(UsageError, match=r"no frame backend 'panda'; did you mean pandas"):
        data.to_frame("panda")


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


# --- which column is what: named, found by its usual name, or asked for; never guessed --------


def chosen(names, *, features=None, drop=(), **given):
    roles = {**dict.fromkeys(USUAL_NAMES), **given}
    return choose_columns(names, roles, features=features, drop=drop)


@each("qid", ["qid", "QID", "query", "Query_ID", "group_id"])
@each("label", ["label", "Grade", "rel", "relevance", "y"])
def test_usual_names_are_found_in_any_case(qid, label):
    assert chosen(["a", label, qid, "b"]) == ({"qid": qid, "label": label}, ["a", "b"])


def test_blanks_around_a_name_do_not_matter():
    names = ["qid", " label", " x"]
    assert chosen(names) == ({"qid": "qid", "label": " label"}, [" x"])


def test_optional_columns_are_found():
    names = ["qid", "label", "DocID", "host", "weight", "query_weight", "position", "x"]
    roles, features = chosen(names)
    assert features == ["x"]
    assert roles["doc_id"] == "DocID"
    assert roles["group"] == "host"
    assert roles["sample_weight"] == "weight"
    assert (roles["query_weight"], roles["position"]) == ("query_weight", "position")


def test_what_the_caller_says_goes_before_usual_names():
    roles, features = chosen(["qid", "label", "session"], qid="session")
    assert roles == {"qid": "session", "label": "label"}
    assert features == ["qid"]


def test_a_column_named_as_a_feature_plays_no_role():
    roles, features = chosen(["qid", "label", "weight", "x"], features="weight,x")
    assert "sample_weight" not in roles
    assert features == ["weight", "x"]


def test_an_empty_name_says_that_there_is_no_such_column():
    roles, features = chosen(["qid", "x", "weight"], label="", sample_weight="")
    assert roles == {"qid": "qid"}
    assert features == ["x", "weight"]


def test_the_first_usual_name_is_used_if_users_cannot_specify_columns():
    usual = {"qid": ("qid", "query")}
    assert match_columns(["Query", " QID "], usual) == {"qid": " QID "}
    with pytest.raises(DataError, match=r"'Query' and ' QID ' could each be the qid; specify it"):
        match_columns(["Query", " QID "], usual, {})
    with pytest.raises(DataError, match=r"no query id column found.*'x'\. Rename one of them\."):
        match_columns(["x"], usual, required=usual)


def test_two_candidates_are_asked_about():
    with pytest.raises(DataError, match=r"'qid' and 'query_id' could each be the qid; specify it"):
        chosen(["qid", "query_id", "label"])
    roles, features = chosen(["qid", "query_id", "label"], qid="qid", drop=["query_id"])
    assert (roles, features) == ({"qid": "qid", "label": "label"}, [])


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (
            ["label", "x"],
            r"no query id column found .* the rows ranked against .*'label', 'x'.*--read qid=",
        ),
        (["qid", "x"], r"no label column found .* relevance of a row .*'qid', 'x'.*--read label="),
        ([f"c{i}" for i in range(20)], r"'c11' and 8 more"),
    ],
)
def test_what_is_not_found_is_asked_for_with_the_columns_listed(names, sentence):
    with pytest.raises(DataError, match=sentence):
        chosen(names)


def test_unknown_columns_are_answered_with_the_nearest():
    with pytest.raises(DataError, match=r"no column 'prise'; did you mean price"):
        chosen(["qid", "label", "price"], drop="prise")


def test_the_index_of_a_frame_is_no_feature():
    assert chosen(["qid", "label", "x", "__index_level_0__"])[1] == ["x"]
    with pytest.raises(DataError, match="a column has no name"):
        chosen(["", "qid", "label", "x"])
    assert chosen(["", "qid", "label", "x"], drop=[""])[1] == ["x"]


# --- categories: columns of three packages become the same codes, and keep their values in files


SHOPS = ["z", "m", None, "a", "m"]
CATEGORY_COLUMNS = {
    "query": ["p", "p", "q", "q", "q"],
    "grade": [1, 0, 2, 0, 1],
    "x": [1.0, 2, 3, 4, 5],
}


def chunks(values):
    """Two chunks, each with a dictionary of its own in order of appearance."""
    parts = [pa.array(values[:2]), pa.array(values[2:])]
    return pa.chunked_array([part.dictionary_encode() for part in parts])


CATEGORY_FRAMES = {
    "pandas": pd.DataFrame({**CATEGORY_COLUMNS, "shop": pd.Categorical(SHOPS)}),
    "pandas-reversed": pd.DataFrame(
        {**CATEGORY_COLUMNS, "shop": pd.Categorical(SHOPS, ["z", "m", "a"])}
    ),
    "polars-categorical": pl.DataFrame(
        {**CATEGORY_COLUMNS, "shop": pl.Series(SHOPS, dtype=pl.Categorical)}
    ),
    "polars-enum": pl.DataFrame(
        {**CATEGORY_COLUMNS, "shop": pl.Series(SHOPS, dtype=pl.Enum(["m", "z", "a"]))}
    ),
    "pyarrow": pa.table({**CATEGORY_COLUMNS, "shop": chunks(SHOPS)}),
}


def data_of(frame):
    return RankingData.from_frame(frame, qid="query", label="grade")


@pytest.fixture
def data():
    return data_of(CATEGORY_FRAMES["pandas"])


def same(got, wanted):
    assert got.categories == wanted.categories
    assert got.feature_names == wanted.feature_names
    np.testing.assert_array_equal(got.X, wanted.X)


@pytest.mark.parametrize("frame", CATEGORY_FRAMES.values(), ids=CATEGORY_FRAMES)
def test_codes_are_places_among_the_sorted_values_whatever_their_order(frame):
    data = data_of(frame)
    assert data.feature_names == ("x", "shop")
    assert data.categories == {"shop": Categories(("a", "m", "z"))}
    np.testing.assert_array_equal(data.X[:, 1], [2, 1, np.nan, 0, 1])


def test_ordered_categories_keep_their_order():
    ordered = pd.Categorical(["s", "l", "m", "l", "s"], ["s", "m", "l"], ordered=True)
    data = data_of(pd.DataFrame({**CATEGORY_COLUMNS, "size": ordered}))
    assert data.categories == {"size": Categories(("s", "m", "l"), ordered=True)}
    assert data.X[:, 1].tolist() == [0, 2, 1, 2, 0]


def test_categories_that_no_row_has_are_kept_where_they_are_declared():
    frame = pd.DataFrame({**CATEGORY_COLUMNS, "shop": pd.Categorical(SHOPS, list("abmz"))})
    assert data_of(frame).categories["shop"].values == ("a", "b", "m", "z")


def test_numbers_and_dates_may_be_categories():
    stamps = pd.to_datetime(["2026-01-02", "2026-01-01", "2026-01-01", None, "2026-01-02"])
    frame = pd.DataFrame(
        {**CATEGORY_COLUMNS, "n": pd.Categorical([3, 1, 3, 2, None]), "day": pd.Categorical(stamps)}
    )
    data = data_of(frame)
    assert data.categories["n"].values == (1, 2, 3)
    assert data.categories["day"].values == ("2026-01-01 00:00:00", "2026-01-02 00:00:00")
    np.testing.assert_array_equal(data.X[:, 2], [1, 0, 0, np.nan, 1])


def test_intervals_and_mixed_types_of_pandas_are_categories():
    frame = pd.DataFrame({**CATEGORY_COLUMNS, "bin": pd.cut([1, 2, 3, 4, np.nan], [0, 2, 4])})
    frame["mixed"] = pd.Categorical([1, "a", None, 0.5, "a"], ["a", 1, 0.5])
    data = data_of(frame)
    assert data.categories["bin"] == Categories(("(0, 2]", "(2, 4]"), ordered=True)
    assert data.categories["mixed"] == Categories((0.5, 1, "a"))
    np.testing.assert_array_equal(data.X[:, 1:].T, [[0, 0, 1, 1, np.nan], [1, 2, np.nan, 0, 2]])


def test_polars_has_no_categories_of_other_rows():
    shop = pl.Series(SHOPS, dtype=pl.Categorical)
    frame = pl.DataFrame({**CATEGORY_COLUMNS, "shop": shop}).filter(pl.col("query") == "q")
    assert data_of(frame).categories == {"shop": Categories(("a", "m"))}


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_a_frame_of_the_data_has_them_again(data, backend):
    frame = data.to_frame(backend)
    same(RankingData.from_frame(frame, qid="qid", label="label"), data)
    values = frame["shop"].to_pylist() if backend == "pyarrow" else frame["shop"].to_list()
    assert [None if value != value else value for value in values] == SHOPS


def test_a_text_column_is_refused_with_what_makes_it_a_category():
    with pytest.raises(DataError, match=r"'shop' \(it holds 'z'\).*astype\(\"category\"\)"):
        data_of(pd.DataFrame({**CATEGORY_COLUMNS, "shop": SHOPS}))


def test_the_rows_of_a_query_and_a_split_keep_them(data):
    assert data.select([1]).categories == data.categories
    train, _, test = rw.train_valid_test_split(data, sizes=(0.5, 0.0, 0.5))
    assert train.categories == test.categories == data.categories
    frame = CATEGORY_FRAMES["pandas"]
    halves = rw.train_valid_test_split(
        frame[["x", "shop"]], frame["grade"], qid=frame["query"], sizes=(0.5, 0.0, 0.5)
    )
    same(halves.train, train)


def test_parts_are_joined_by_value(data):
    other = pd.DataFrame(
        {"query": ["r"] * 2, "grade": [1, 0], "x": [1, 2], "shop": pd.Categorical(["b", "z"])}
    )
    both = concatenate([data, data_of(other)])
    assert both.categories["shop"].values == ("a", "b", "m", "z")
    np.testing.assert_array_equal(both.X[:, 1], [3, 2, np.nan, 0, 2, 1, 3])
    np.testing.assert_array_equal(data.X[:, 1], [2, 1, np.nan, 0, 1])  # which stays as it was


def test_codes_may_be_given_with_their_values():
    data = RankingData.from_arrays(
        [[0.0], [1.0]], [1, 0], qid=[1, 1], feature_names=["shop"], categories={"shop": ["a", "b"]}
    )
    assert data.to_frame()["shop"].tolist() == ["a", "b"]
    with pytest.raises(DataError, match="categories of 'shops', which is not a feature"):
        RankingData.from_arrays(
            [[0.0]], [1], qid=[1], feature_names=["shop"], categories={"shops": ["a"]}
        )


# --- files -----------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["parquet", "arrow", "store"])
def test_a_file_keeps_them_and_their_order(data, tmp_path, ending):
    size = pd.Categorical(["m", "l", "m", None, "s"], ["s", "m", "l"], ordered=True)
    data = data_of(CATEGORY_FRAMES["pandas"].assign(size=size))
    save(data, tmp_path / f"data.{ending}")
    same(rw.load(tmp_path / f"data.{ending}"), data)


def test_files_of_pandas_and_polars_have_categories(data, tmp_path):
    CATEGORY_FRAMES["pandas"].to_parquet(tmp_path / "pandas.parquet")
    CATEGORY_FRAMES["polars-categorical"].write_parquet(tmp_path / "polars.parquet")
    CATEGORY_FRAMES["polars-enum"].write_ipc(tmp_path / "polars.arrow")
    for name in ("pandas.parquet", "polars.parquet", "polars.arrow"):
        same(rw.load(tmp_path / name), data)


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_text_has_their_values_and_needs_to_know_which_columns_they_are(data, tmp_path, ending):
    path = tmp_path / f"data.{ending}"
    with pytest.warns(UserWarning, match=r"read them back with categorical=\['shop'\]"):
        save(data, path)
    same(rw.load(path, categorical="shop"), data)
    with pytest.raises(DataError, match=r"'shop'.*astype"):
        rw.load(path)
    with pytest.raises(DataError, match="no feature column 'shops'; did you mean shop"):
        rw.load(path, categorical=["shops"])


def test_a_format_without_categories_is_refused(data, tmp_path):
    with pytest.raises(DataError, match="cannot hold categories \\('shop'\\); write parquet"):
        save(data, tmp_path / "data.txt")


@pytest.mark.filterwarnings("ignore:categories are written as text")
@pytest.mark.parametrize("target", ["store", "arrow", "csv"])
@pytest.mark.parametrize("source", ["parquet", "csv"])
def test_parts_of_a_file_have_the_codes_of_the_whole(tmp_path, monkeypatch, source, target):
    """Every part sees other categories first."""
    monkeypatch.setattr("rankwright.data.tables._ROWS_PER_BATCH", 3)
    n = 24
    shops = [f"s{n - row:02d}" for row in range(n)]
    frame = pd.DataFrame(
        {"qid": np.arange(n) // 2, "label": np.arange(n) % 2, "x": 1.0, "shop": shops}
    )
    given = {"categorical": "shop"} if source == "csv" else {}
    if source == "csv":
        frame.to_csv(tmp_path / "in.csv", index=False)
    else:
        frame["shop"] = frame["shop"].astype("category")
        frame.to_parquet(tmp_path / "in.parquet", row_group_size=3)
    convert(tmp_path / f"in.{source}", tmp_path / f"out.{target}", **given)
    back = rw.load(
        tmp_path / f"out.{target}", **({"categorical": "shop"} if target == "csv" else {})
    )
    same(back, rw.load(tmp_path / f"in.{source}", **given))
    assert back.X[:, 1].tolist() == list(range(n - 1, -1, -1))


def test_a_store_with_damaged_categories_is_refused(data, tmp_path):
    Store().write(data, tmp_path / "d.store")
    meta = tmp_path / "d.store" / "meta.json"
    meta.write_text(meta.read_text().replace('"shop": {', '"shops": {'))
    with pytest.raises((DataError, UsageError), match="categories"):
        rw.load(tmp_path / "d.store")


@pytest.mark.parametrize("held", [{"a": {"values": [[1]], "ordered": False}}, {"a": {"values": 3}}])
def test_only_plain_values_are_read_from_json(held):
    with pytest.raises((ValueError, KeyError)):
        categories_from_json(held, ["a"])


def test_only_frames_have_columns():
    for frame in (pd.DataFrame({"a": [1]}), pl.DataFrame({"a": [1]}), pa.table({"a": [1]})):
        assert frame_columns(frame) == ["a"]
    for other in (np.ones((1, 1)), [[1.0]], sparse.eye_array(2), object(), "a", None):
        assert frame_columns(other) is None
