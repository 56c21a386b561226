"""Categories: columns of three packages become the same codes, and keep their values in files."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import rankwright as rw
from rankwright.data.files import convert, save
from rankwright.data.frames import Categories, categories_from_json
from rankwright.data.ranking_data import RankingData, concatenate
from rankwright.data.store import Store
from rankwright.errors import DataError, UsageError

SHOPS = ["z", "m", None, "a", "m"]
COLUMNS = {"query": ["p", "p", "q", "q", "q"], "grade": [1, 0, 2, 0, 1], "x": [1.0, 2, 3, 4, 5]}


def chunks(values):
    """Two chunks, each with a dictionary of its own in order of appearance."""
    parts = [pa.array(values[:2]), pa.array(values[2:])]
    return pa.chunked_array([part.dictionary_encode() for part in parts])


FRAMES = {
    "pandas": pd.DataFrame({**COLUMNS, "shop": pd.Categorical(SHOPS)}),
    "pandas-reversed": pd.DataFrame({**COLUMNS, "shop": pd.Categorical(SHOPS, ["z", "m", "a"])}),
    "polars-categorical": pl.DataFrame({**COLUMNS, "shop": pl.Series(SHOPS, dtype=pl.Categorical)}),
    "polars-enum": pl.DataFrame(
        {**COLUMNS, "shop": pl.Series(SHOPS, dtype=pl.Enum(["m", "z", "a"]))}
    ),
    "pyarrow": pa.table({**COLUMNS, "shop": chunks(SHOPS)}),
}


def data_of(frame):
    return RankingData.from_frame(frame, qid="query", label="grade")


@pytest.fixture
def data():
    return data_of(FRAMES["pandas"])


def same(got, wanted):
    assert got.categories == wanted.categories
    assert got.feature_names == wanted.feature_names
    np.testing.assert_array_equal(got.X, wanted.X)


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_codes_are_places_among_the_sorted_values_whatever_their_order(frame):
    data = data_of(frame)
    assert data.feature_names == ("x", "shop")
    assert data.categories == {"shop": Categories(("a", "m", "z"))}
    np.testing.assert_array_equal(data.X[:, 1], [2, 1, np.nan, 0, 1])


def test_ordered_categories_keep_their_order():
    ordered = pd.Categorical(["s", "l", "m", "l", "s"], ["s", "m", "l"], ordered=True)
    data = data_of(pd.DataFrame({**COLUMNS, "size": ordered}))
    assert data.categories == {"size": Categories(("s", "m", "l"), ordered=True)}
    assert data.X[:, 1].tolist() == [0, 2, 1, 2, 0]


def test_categories_that_no_row_has_are_kept_where_they_are_declared():
    frame = pd.DataFrame({**COLUMNS, "shop": pd.Categorical(SHOPS, list("abmz"))})
    assert data_of(frame).categories["shop"].values == ("a", "b", "m", "z")


def test_numbers_and_dates_may_be_categories():
    stamps = pd.to_datetime(["2026-01-02", "2026-01-01", "2026-01-01", None, "2026-01-02"])
    frame = pd.DataFrame(
        {**COLUMNS, "n": pd.Categorical([3, 1, 3, 2, None]), "day": pd.Categorical(stamps)}
    )
    data = data_of(frame)
    assert data.categories["n"].values == (1, 2, 3)
    assert data.categories["day"].values == ("2026-01-01 00:00:00", "2026-01-02 00:00:00")
    np.testing.assert_array_equal(data.X[:, 2], [1, 0, 0, np.nan, 1])


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_a_frame_of_the_data_has_them_again(data, backend):
    frame = data.to_frame(backend)
    same(RankingData.from_frame(frame, qid="qid", label="label"), data)
    values = frame["shop"].to_pylist() if backend == "pyarrow" else frame["shop"].to_list()
    assert [None if value != value else value for value in values] == SHOPS


def test_a_text_column_is_refused_with_what_makes_it_a_category():
    with pytest.raises(DataError, match=r"'shop' \(it holds 'z'\).*astype\(\"category\"\)"):
        data_of(pd.DataFrame({**COLUMNS, "shop": SHOPS}))


def test_the_rows_of_a_query_and_a_split_keep_them(data):
    assert data.select([1]).categories == data.categories
    train, _, test = rw.train_valid_test_split(data, sizes=(0.5, 0.0, 0.5))
    assert train.categories == test.categories == data.categories
    frame = FRAMES["pandas"]
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
    with pytest.raises(DataError, match="categories of 'shops', which is no feature"):
        RankingData.from_arrays(
            [[0.0]], [1], qid=[1], feature_names=["shop"], categories={"shops": ["a"]}
        )


# --- files -----------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["parquet", "arrow", "store"])
def test_a_file_keeps_them_and_their_order(data, tmp_path, ending):
    size = pd.Categorical(["m", "l", "m", None, "s"], ["s", "m", "l"], ordered=True)
    data = data_of(FRAMES["pandas"].assign(size=size))
    save(data, tmp_path / f"data.{ending}")
    same(rw.load(tmp_path / f"data.{ending}"), data)


def test_files_of_pandas_and_polars_have_categories(data, tmp_path):
    FRAMES["pandas"].to_parquet(tmp_path / "pandas.parquet")
    FRAMES["polars-categorical"].write_parquet(tmp_path / "polars.parquet")
    FRAMES["polars-enum"].write_ipc(tmp_path / "polars.arrow")
    for name in ("pandas.parquet", "polars.parquet", "polars.arrow"):
        same(rw.load(tmp_path / name), data)


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_text_has_their_values_and_is_told_which_columns_they_are(data, tmp_path, ending):
    path = tmp_path / f"data.{ending}"
    with pytest.warns(UserWarning, match=r"read them back with categorical=\['shop'\]"):
        save(data, path)
    same(rw.load(path, categorical="shop"), data)
    with pytest.raises(DataError, match=r"'shop'.*astype"):
        rw.load(path)
    with pytest.raises(DataError, match="no feature column 'shops'; did you mean shop"):
        rw.load(path, categorical=["shops"])


@pytest.mark.parametrize("ending", ["txt", "lightgbm"])
def test_a_format_without_categories_is_refused(data, tmp_path, ending):
    format_name = None if ending == "txt" else ending
    with pytest.raises(DataError, match="cannot hold categories \\('shop'\\); write parquet"):
        save(data, tmp_path / "data.txt", format=format_name)


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
