"""What a format says it holds comes back bit for bit; what it cannot hold is warned about."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reference.same_data import assert_same
from scipy import sparse

import rankwright
from rankwright import registry
from rankwright.data.files import convert, save
from rankwright.data.ranking_data import EVERYTHING, RankingData

TEXT = frozenset({"doc_id", "qid"})  # what a format holds that does not say
OTHERS = {"feature_log", "lightgbm"}  # with features of their own, or read only
GENERAL = sorted(registry.FORMATS.keys() - OTHERS)


def holds(form):
    return getattr(registry.resolve("formats", form), "holds", TEXT)


def suffix(form):
    extensions = registry.resolve("formats", form).extensions
    return extensions[0] if extensions else ".txt"


def full_data(layout=np.asarray, dtype=np.float64):
    X = np.array([[0.1, -0.0, 0], [1 / 3, np.nan, 5e-324], [2, 0, 1.7e38], [0, 0, 0]])
    return RankingData.from_arrays(
        layout(X.astype(dtype)),
        [0, 2.5, 1, 0],
        qid=["q1", "q1", "é", "007"],
        doc_id=["d1", "d2", "", "x y"],
        group=["h", "h", "g", "h"],
        position=[1, 2, 1, 1],
        sample_weight=[0.1, 1 / 3, 2, 0],
        query_weight=[1.5, 0.1, 2],
        feature_names=["price", "clicks", "age"],
    )


def kept(data, form):
    """Return ``data`` without what ``form`` cannot hold."""
    optional = ("doc_id", "group", "position", "sample_weight", "query_weight", "feature_names")
    data = replace(data, **{part: None for part in optional if part not in holds(form)})
    return data if "qid" in holds(form) else replace(data, qid=np.arange(data.n_queries))


def warned(form):
    """Expect a warning where the format does not hold everything of the data."""
    return pytest.warns(UserWarning, match=f"'{form}' cannot hold .*: left out")


def read_options(form, dtype=np.float64, layout=np.asarray):
    if form == "letor":
        return {"dtype": np.dtype(dtype).name, "sparse": layout is not np.asarray}
    return {"dtype": np.dtype(dtype).name} if form in ("csv", "tsv") else {}


@pytest.mark.parametrize("form", GENERAL)
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_what_a_format_holds_comes_back_and_the_rest_is_warned_about(form, layout, dtype, tmp_path):
    path, data = tmp_path / f"t{suffix(form)}", full_data(layout, dtype)
    lost = EVERYTHING - holds(form) - {"empty queries"}
    with warned(form) if lost else warnings.catch_warnings():
        save(data, path, format=form)
    back = rankwright.load(path, format=form, **read_options(form, dtype, layout))
    assert_same(back, kept(data, form))
    with warnings.catch_warnings():  # a second time nothing is lost
        save(back, path, format=form)
    assert_same(rankwright.load(path, format=form, **read_options(form, dtype, layout)), back)


@pytest.mark.parametrize("form", GENERAL)
def test_queries_without_documents_come_back_or_are_warned_about(form, tmp_path):
    path = tmp_path / f"t{suffix(form)}"
    data = RankingData.from_arrays(np.ones((2, 1)), [0, 1], group_sizes=[1, 0, 1])
    if "empty queries" in holds(form):
        save(data, path, format=form)
        assert_same(rankwright.load(path, format=form), data)
    else:
        with pytest.warns(UserWarning, match="the 1 query without documents"):
            save(data, path, format=form)
        assert rankwright.load(path, format=form).qid.tolist() == [0, 2]


@pytest.mark.parametrize("source", GENERAL)
@pytest.mark.parametrize("target", GENERAL)
def test_every_format_converts_to_every_other(source, target, tmp_path):
    """By way of the disk: what both hold is the same in the end."""
    data = kept(kept(full_data(), source), target)
    first, second = tmp_path / f"a{suffix(source)}", tmp_path / f"b{suffix(target)}"
    save(kept(data, source), first, format=source)
    options = {"sparse": False} if source == "letor" else {}
    convert(first, second, from_format=source, to_format=target, **options)
    back = rankwright.load(second, format=target)
    assert_same(back, kept(data, source))


finite = st.floats(allow_infinity=False)
names = st.text(st.characters(codec="utf-8", categories=["L", "N", "P"]), min_size=1, max_size=6)


@pytest.mark.parametrize("form", GENERAL)
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    rows=st.lists(st.tuples(finite, finite, st.floats(0, 1e6)), min_size=1, max_size=6),
    queries=st.lists(names.map("q".__add__), min_size=1, max_size=3, unique=True),
)
def test_any_numbers_and_ids_come_back(form, rows, queries, tmp_path):
    if form == "letor" and any("#" in query for query in queries):
        queries = [query.replace("#", "+") + str(i) for i, query in enumerate(queries)]
    queries = queries[: len(rows)]
    qid = [queries[min(i, len(queries) - 1)] for i in range(len(rows))]
    table = np.array(rows)
    data = RankingData.from_arrays(table[:, :2], table[:, 2], qid=qid)
    path = tmp_path / f"t{suffix(form)}"
    save(data, path, format=form)
    options = {"sparse": False} if form == "letor" else {}
    assert_same(rankwright.load(path, format=form, **options), data)
