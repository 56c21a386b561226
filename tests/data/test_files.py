"""`load`, `save` and `convert` find the format, pass options on, and lose nothing in silence."""

import io
import sys

import numpy as np
import pytest
from cases import each
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from reference.same_data import assert_same

import rankwright
from rankwright import registry
from rankwright.data import files, letor, ranking_data, tables
from rankwright.data.files import convert, save
from rankwright.data.formats import format_of
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError

LETOR = "0 qid:1 1:1.5 2:2\n2 qid:1 1:0.1 2:3\n1 qid:2 1:7 2:8\n"


def some_data(**more):
    X = np.array([[1.5, 2], [0.1, 3], [7, 8]])
    return RankingData.from_arrays(X, [0, 2, 1], qid=[1, 1, 2], **more)


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "t.txt"
    path.write_text(LETOR)
    return path


# --- finding the format ------------------------------------------------------------------------


@each(
    ("name", "form"),
    [
        ("a.txt", "letor"),
        ("a.svmlight", "letor"),
        ("A.TXT", "letor"),
        ("a.csv", "csv"),
        ("a.csv.gz", "csv"),
        ("a.csv.zst", "csv"),
        ("a.tsv.xz", "tsv"),
        ("a.parquet", "parquet"),
        ("a.feather", "arrow"),
        ("a.store", "store"),
        ("-", "letor"),
    ],
)
def test_the_suffix_tells_the_format(name, form):
    assert format_of(name, for_writing=True) == form


def test_no_two_formats_share_a_suffix():
    suffixes = [
        s for name in registry.FORMATS for s in registry.resolve("formats", name).extensions
    ]
    assert len(set(suffixes)) == len(suffixes)
    assert all(suffix == suffix.lower() for suffix in suffixes)


def test_an_unknown_suffix_lists_the_formats(tmp_path):
    path = tmp_path / "t.xyz"
    path.write_text(LETOR)
    with pytest.raises(
        UsageError, match=r"extension '\.xyz'.*format=.*csv \(\.csv\);.*letor \(\.txt"
    ):
        rankwright.load(path)
    assert_same(rankwright.load(path, format="letor"), some_data())
    with pytest.raises(UsageError, match="has no file extension"):
        save(some_data(), tmp_path / "t")


@pytest.mark.parametrize("name", ["a.zip", "a.txt.7z", "a.xlsx", "a.txt.lz4"])
def test_an_archive_is_to_be_unpacked_whatever_it_holds(tmp_path, name):
    (tmp_path / name).write_bytes(b"packed")
    with pytest.raises(DataError, match=r"in a compression format that is not supported; .* first"):
        rankwright.load(tmp_path / name)


def test_an_unknown_format_is_answered_with_the_nearest(text):
    with pytest.raises(UsageError, match=r"no format 'leter'; did you mean letor"):
        rankwright.load(text, format="leter")


def test_an_unknown_option_is_answered_with_the_known(text):
    with pytest.raises(UsageError, match=r"'letor' has no option 'label' to read; it takes dtype"):
        rankwright.load(text, label="y")
    with pytest.raises(UsageError, match=r"'store' has no option 'x' to write; it takes none"):
        save(some_data(), "d.store", x=1)


def test_options_reach_the_reader(text):
    assert rankwright.load(text, dtype="float32").X.dtype == np.float32


def test_what_does_not_exist_is_named(tmp_path):
    for name in ("none.txt", "none.csv", "none.store", "none", "none.xyz"):
        with pytest.raises(DataError, match=rf"{name} does not exist"):
            rankwright.load(tmp_path / name)


def test_standard_input_is_letor_text(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(LETOR.encode())))
    assert_same(rankwright.load("-"), some_data())


def test_names_of_the_catalogue_are_loaded(tmp_path, monkeypatch):
    assert rankwright.load("digits").n_features == 64
    monkeypatch.chdir(tmp_path)
    (tmp_path / "digits").write_text(LETOR)
    with pytest.raises(UsageError, match="has no file extension"):  # a file goes before a name
        rankwright.load("digits")


# --- folders -----------------------------------------------------------------------------------


def test_a_store_folder_is_known_by_its_content(tmp_path):
    save(some_data(), tmp_path / "any name", format="store")
    assert_same(rankwright.load(tmp_path / "any name"), some_data())


def test_other_folders_are_refused(tmp_path):
    with pytest.raises(DataError, match="is a folder, but neither a store nor a LETOR fold"):
        rankwright.load(tmp_path)


# --- saving ------------------------------------------------------------------------------------


def test_what_a_format_cannot_hold_is_warned_about(tmp_path):
    data = some_data(sample_weight=[1, 2, 3], group=[1, 1, 1], feature_names=["a", "b"])
    wanted = "'letor' cannot hold sample_weight, group, feature_names: left out"
    with pytest.warns(UserWarning, match=wanted):
        save(data, tmp_path / "t.txt")
    assert_same(rankwright.load(tmp_path / "t.txt"), some_data())


def test_empty_queries_and_ids_are_warned_about(tmp_path):
    empty = RankingData.from_arrays(np.ones((1, 1)), [1], group_sizes=[0, 1, 0])
    with pytest.warns(UserWarning, match="'csv' cannot hold the 2 queries without documents"):
        save(empty, tmp_path / "t.csv")


def test_rows_are_written_query_after_query(tmp_path):
    data = RankingData.from_arrays([[1.0], [2], [3]], [0, 0, 0], qid=["b", "a", "b"])
    save(data, tmp_path / "t.txt")
    back = rankwright.load(tmp_path / "t.txt")
    assert back.row is None
    assert back.X.ravel().tolist() == [1, 3, 2]


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(DataError, match=r"none/t\.csv cannot be written: No such file"):
        save(some_data(), tmp_path / "none" / "t.csv")


# --- converting --------------------------------------------------------------------------------


def test_conversion_reports_what_was_written(text, tmp_path):
    done = convert(text, tmp_path / "t.csv")
    assert (done.queries, done.documents, done.features) == (2, 3, 2)
    assert_same(rankwright.load(tmp_path / "t.csv"), some_data())


def test_formats_can_be_named(text, tmp_path):
    text.rename(tmp_path / "data")
    convert(tmp_path / "data", tmp_path / "table", from_format="letor", to_format="tsv")
    assert_same(rankwright.load(tmp_path / "table", format="tsv"), some_data())


def test_options_go_to_who_takes_them_the_reader_first(text, tmp_path):
    convert(text, tmp_path / "u.txt", zero_based=True, zeros=False)
    assert (
        tmp_path / "u.txt"
    ).read_text() == "0 qid:1 2:1.5 3:2\n2 qid:1 2:0.1 3:3\n1 qid:2 2:7 3:8\n"
    convert(text, tmp_path / "u.txt", write_options={"zero_based": True})
    assert (tmp_path / "u.txt").read_text().startswith("0 qid:1 0:1.5 1:2\n")
    with pytest.raises(UsageError, match="'letor' has no option 'speed' to read"):
        convert(text, tmp_path / "u.csv", speed=9)
    with pytest.raises(UsageError, match="'csv' has no option 'speed' to write"):
        convert(text, tmp_path / "u.csv", write_options={"speed": 9})


@pytest.fixture
def small_parts(monkeypatch):
    """Every reader that streams gives parts of a few rows."""
    monkeypatch.setattr(tables, "_ROWS_PER_BATCH", 3)
    monkeypatch.setattr(ranking_data, "_CELLS_PER_PART", 4)
    monkeypatch.setattr(ranking_data, "_FEWEST_ROWS_PER_PART", 2)
    whole = letor.Letor.read_parts
    few = staticmethod(lambda path, **options: whole(path, part_bytes=40, **options))
    monkeypatch.setattr(letor.Letor, "read_parts", few)


def many(path, qids):
    lines = [f"{i % 3} qid:{qid} 1:{i} 2:{i / 7} # d{i}\n" for i, qid in enumerate(qids)]
    path.write_text("".join(lines))


@pytest.mark.parametrize("form", ["csv", "tsv", "parquet", "arrow", "store", "letor"])
def test_data_goes_by_parts_and_back(form, tmp_path, small_parts, monkeypatch):
    many(tmp_path / "a.txt", np.repeat(np.arange(20), 3))
    wanted = rankwright.load(tmp_path / "a.txt")
    monkeypatch.setattr(files, "save", None)  # nothing is read as a whole
    target = tmp_path / f"b.{form}"
    done = convert(tmp_path / "a.txt", target)
    assert (done.queries, done.documents) == (20, 60)
    assert_same(rankwright.load(target), wanted)
    convert(target, tmp_path / "c.txt")
    assert_same(rankwright.load(tmp_path / "c.txt"), wanted)


@pytest.mark.parametrize("form", ["csv", "parquet", "store"])
@pytest.mark.parametrize(
    "qids",
    [
        [1, 1, 2, 2, 1, 3, 3, 3, 2],
        [*range(20), "x"],
    ],
    ids=["a query comes back", "the last id is text"],
)
def test_parts_that_do_not_fit_together_are_read_as_a_whole(form, tmp_path, qids, small_parts):
    many(tmp_path / "a.txt", qids)
    convert(tmp_path / "a.txt", tmp_path / f"b.{form}")
    got, wanted = rankwright.load(tmp_path / f"b.{form}"), rankwright.load(tmp_path / "a.txt")
    assert_same(got, wanted)


def test_losses_are_warned_about_when_streaming_too(tmp_path):
    save(some_data(sample_weight=[1, 2, 3]), tmp_path / "a.store")
    with pytest.warns(UserWarning, match="'letor' cannot hold sample_weight"):
        convert(tmp_path / "a.store", tmp_path / "b.txt")


def test_an_error_late_in_the_source_leaves_no_target(tmp_path, small_parts):
    many(tmp_path / "a.txt", range(30))
    with (tmp_path / "a.txt").open("a") as file:
        file.write("1 qid:99 1:abc\n")
    for target in ("b.csv", "b.store", "b.txt", "b.parquet"):
        with pytest.raises(DataError, match="line 31"):
            convert(tmp_path / "a.txt", tmp_path / target)
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_a_file_can_be_converted_to_itself(text):
    convert(text, text, write_options={"zero_based": True})
    assert text.read_text().startswith("0 qid:1 0:1.5 1:2\n")


def test_catalogued_data_and_folds_can_be_converted(tmp_path):
    assert convert("digits/test", tmp_path / "d.store").features == 64
    for part in ("train", "vali", "test"):
        (tmp_path / f"{part}.txt").write_text(LETOR)
    assert convert(tmp_path, tmp_path / "t.csv", part="vali").queries == 2


# --- anything at all -----------------------------------------------------------------------------

WORDS = ["qid", "label", "user", "rating", "Q0", "1", "0.5", "-3", "nan", "1e999", "99", "é"]
SIGNS = [",", "\t", " ", "::", "\n", "\r\n", ":", "#", '"', "\0", "\ufeff"]
PIECES = st.sampled_from([*WORDS, *SIGNS])
CONTENT = st.binary(max_size=60) | st.lists(PIECES, max_size=40).map("".join).map(str.encode)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("t.csv", {}),
        ("t.csv", {"qid": "qid", "label": ""}),
        ("t.tsv", {}),
        ("t.parquet", {}),
        ("t.arrow", {}),
        ("lgb.txt", {"format": "lightgbm"}),
    ],
)
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@example(content=b'",\n"')  # a quoted name with a line break in it
@example(content=b'",\n')
@given(content=CONTENT)
def test_any_content_gives_data_or_a_sentence(name, options, content, tmp_path):
    path = tmp_path / name
    path.write_bytes(content)
    if name.startswith("lgb"):
        (tmp_path / f"{name}.query").write_text("1\n")
    try:
        data = rankwright.load(path, **options)
    except (DataError, UsageError) as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017
    else:
        assert data.n_documents > 0


@pytest.mark.parametrize("name", ["new.txt", "new.csv"])
def test_documents_without_grades_come_in_parts_too(tmp_path, name):
    from rankwright.data.letor import Letor
    from rankwright.data.tables import Table

    path = tmp_path / name
    if name == "new.txt":
        path.write_text("# new\n" + "".join(f"qid:{q} 1:{q} 2:5\n" for q in (1, 1, 2, 3, 3)))
        parts = list(Letor.read_parts(path, part_bytes=10, grades=False))
    else:
        path.write_text("qid,f1,f2\n" + "".join(f"{q},{q},5\n" for q in (1, 1, 2, 3, 3)))
        parts = list(Table("csv").read_parts(path, grades=False))
    assert np.concatenate([part.X for part in parts]).tolist() == [[q, 5] for q in (1, 1, 2, 3, 3)]
    assert np.concatenate([part.qid for part in parts]).tolist() == [1, 2, 3]
    assert not any(part.y.any() for part in parts)
