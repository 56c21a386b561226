"""Parts of whole queries, from every source, whatever borders cut them before."""

from itertools import pairwise

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask.sizeof import sizeof
from distributed import wait
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_data import small_data

from rankwright.data.files import save
from rankwright.data.ranking_data import RankingData, consecutive
from rankwright.distributed.cluster import LocalBackend
from rankwright.distributed.partitions import Partitions
from rankwright.errors import DataError, UsageError

DATA = small_data(queries=9, documents=5, features=3)


def whole(parts):
    """All parts as one, in order."""
    from rankwright.data.ranking_data import concatenate

    return concatenate(parts.local().parts)


def same(a, b):
    np.testing.assert_array_equal(a.X, b.X)
    np.testing.assert_array_equal(a.y, b.y)
    np.testing.assert_array_equal(a.indptr, b.indptr)
    assert a.qid.tolist() == b.qid.tolist()


def arrays(data, rows, **columns):
    qid = np.repeat(data.qid, data.sizes)
    made = [da.from_array(a, chunks=(rows, *a.shape[1:])) for a in (data.X, data.y, qid)]
    return (*made, *(da.from_array(a, chunks=rows) for a in columns.values()))


# --- sources ---------------------------------------------------------------------------------


def test_data_of_this_process_are_cut_between_queries(client):
    parts = Partitions.of(DATA, n_parts=3)
    assert [s.tolist() for s in parts.sizes] == [[5, 5, 5]] * 3
    assert (parts.n_queries, parts.n_documents, parts.n_features) == (9, 45, 3)
    same(whole(parts), DATA)


def test_borders_of_blocks_are_moved_to_the_ends_of_queries(client):
    parts = Partitions.of(arrays(DATA, 7))  # borders at 7, 14, 21, …: within queries
    assert [q.tolist() for q in parts.qid] == [[0, 1], [2], [3, 4], [5], [6], [7, 8]]
    same(whole(parts), DATA)
    fewer = Partitions.of(arrays(DATA, 7), n_parts=3)
    assert [q.tolist() for q in fewer.qid] == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    same(whole(fewer), DATA)


def test_a_query_in_two_blocks_that_do_not_meet_is_refused(client):
    X, y = np.arange(4.0)[:, None], np.array([0.0, 1.0, 0.0, 1.0])
    columns = [da.from_array(a, chunks=(2, *a.shape[1:])) for a in (X, y, np.array([1, 2, 2, 1]))]
    with pytest.raises(DataError, match="query 1 is in block 0 and in block 1; put all rows of"):
        Partitions.of(tuple(columns))


def test_weights_of_a_block_may_all_be_zero(client):
    weight = da.from_array(np.repeat([0.0, 1.0, 2.0], 15), chunks=15)
    first, second, _ = Partitions.of((*arrays(DATA, 15), weight)).local().parts
    assert not first.sample_weight.any()
    assert second.sample_weight.tolist() == [1.0] * 15


def test_blocks_of_unknown_lengths_are_refused(client):
    X, y, qid = arrays(DATA, 15)
    with pytest.raises(DataError, match="X has blocks of unknown lengths; call compute_chunk_siz"):
        Partitions.of((X[X[:, 0] > -9.0], y, qid))
    with pytest.raises(DataError, match="y has 40 values, but X has 45 rows"):
        Partitions.of((X, y[:40], qid))
    with pytest.raises(DataError, match="X has no rows"):
        Partitions.of((X[:0], y[:0], qid[:0]))


def test_columns_of_dask_arrays_may_be_cut_otherwise_than_x(client):
    X, y, qid = arrays(DATA, 20)
    weight = np.arange(45.0)
    parts = Partitions.of((X, y.rechunk(11), qid.rechunk(45), da.from_array(weight, chunks=8)))
    same(whole(parts), DATA)
    assert whole(parts).sample_weight.tolist() == weight.tolist()


def test_features_in_several_blocks_are_put_side_by_side(client):
    X, y, qid = arrays(DATA, 20)
    same(whole(Partitions.of((X.rechunk((20, 2)), y, qid))), DATA)


def test_a_dask_frame_goes_by_the_names_of_its_columns(client):
    frame = pd.DataFrame(DATA.X, columns=["bm25", "age", "rank"])
    frame["grade"], frame["query"] = DATA.y, np.repeat(DATA.qid, DATA.sizes)
    parts = Partitions.of(dd.from_pandas(frame, npartitions=3))  # whole queries: as they are
    assert parts.feature_names == ("bm25", "age", "rank")
    assert [q.tolist() for q in parts.qid] == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    same(whole(parts), DATA)
    fewer = Partitions.of(dd.from_pandas(frame, npartitions=3), drop=["age"], n_parts=2)
    assert (len(fewer), fewer.feature_names) == (2, ("bm25", "rank"))


def test_a_frame_that_cuts_queries_is_shuffled_by_query(client):
    frame = pd.DataFrame(DATA.X, columns=["bm25", "age", "rank"])
    frame["grade"], frame["query"] = DATA.y, np.repeat(DATA.qid, DATA.sizes)
    parts = Partitions.of(dd.from_pandas(frame, npartitions=4))
    assert sorted(query for qid in parts.qid for query in qid.tolist()) == list(range(9))
    shuffled = whole(parts)
    for query in DATA.qid:  # the rows of a query keep their order
        np.testing.assert_array_equal(shuffled[query].X, DATA[query].X)
        np.testing.assert_array_equal(shuffled[query].y, DATA[query].y)
    same(whole(Partitions.of(dd.from_pandas(frame, npartitions=4))), shuffled)


def test_partitions_without_rows_are_passed_over(client):
    frame = pd.DataFrame({"qid": [1, 1, 2, 2], "label": [0, 1, 1, 0], "x": [1.0, 2.0, 3.0, 4.0]})
    cut = dd.from_pandas(frame, npartitions=2)
    parts = Partitions.of(cut[cut.qid == 2])
    assert [q.tolist() for q in parts.qid] == [[2]]


def test_a_folder_of_parquet_files_is_read_where_the_workers_are(client, tmp_path):
    for k in range(3):
        save(DATA.select(slice(3 * k, 3 * k + 3)), tmp_path / f"part-{9 + k}.parquet")
    (tmp_path / "_SUCCESS").write_text("")
    parts = Partitions.of(tmp_path)
    assert len(parts) == 3
    same(whole(parts), DATA)  # part-9 before part-10: as people count
    same(whole(Partitions.of(str(tmp_path / "*.parquet"), n_parts=2)), DATA)


def test_letor_parts_agree_on_the_number_of_features(client, tmp_path):
    (tmp_path / "a.txt").write_text("1 qid:1 1:1\n0 qid:1 2:1\n")
    (tmp_path / "b.txt").write_text("1 qid:2 4:1\n0 qid:2 1:1\n1 qid:3 3:7\n")
    parts = Partitions.of(tmp_path)
    assert parts.n_features == 4
    first, second = parts.local().parts
    assert first.qid.tolist() == [1]
    assert second.qid.tolist() == [2, 3]
    np.testing.assert_array_equal(first.X, [[1, 0, 0, 0], [0, 1, 0, 0]])


def test_a_query_in_two_files_is_refused_with_both_names(client, tmp_path):
    (tmp_path / "a.txt").write_text("1 qid:1 1:1\n0 qid:2 2:1\n")
    (tmp_path / "b.txt").write_text("1 qid:2 4:1\n")
    with pytest.raises(DataError, match=r"query 2 is in .*a.txt and in .*b.txt; put all rows of"):
        Partitions.of(tmp_path)


def test_the_first_letor_file_says_where_feature_ids_start(client, tmp_path):
    (tmp_path / "a.txt").write_text("1 qid:1 0:1 1:2\n")
    (tmp_path / "b.txt").write_text("1 qid:2 1:3\n")
    a, b = Partitions.of(tmp_path).local().parts
    assert (a.X.tolist(), b.X.tolist()) == ([[1.0, 2.0]], [[0.0, 3.0]])


def test_a_letor_file_without_features_leaves_the_start_to_the_next(client, tmp_path):
    (tmp_path / "a.txt").write_text("1 qid:1\n")
    (tmp_path / "b.txt").write_text("1 qid:2 0:3 1:4\n")
    a, b = Partitions.of(tmp_path, n_features=2).local().parts
    assert (a.X.tolist(), b.X.tolist()) == ([[0.0, 0.0]], [[3.0, 4.0]])


def test_parts_of_a_store_map_their_own_range(client, tmp_path):
    save(DATA, tmp_path / "data.store")
    parts = Partitions.of(tmp_path / "data.store", n_parts=4)
    assert len(parts) == 4
    same(whole(parts), DATA)
    assert len(Partitions.of(tmp_path / "data.store", n_parts=4, format=None)) == 4
    with pytest.raises(UsageError, match="a store has no option 'zero_based'; leave it out"):
        Partitions.of(tmp_path / "data.store", zero_based=True)


def test_query_ids_that_are_text_in_one_file_are_text_in_all(client, tmp_path):
    (tmp_path / "a.txt").write_text("1 qid:7 1:1\n")
    (tmp_path / "b.txt").write_text("1 qid:x 1:1\n0 qid:8 1:2\n")
    parts = Partitions.of(tmp_path)
    assert [q.tolist() for q in parts.qid] == [["7"], ["x", "8"]]
    (tmp_path / "c.txt").write_text("1 qid:7 1:1\n")
    with pytest.raises(DataError, match=r"query 7 is in .*a.txt and in .*c.txt"):
        Partitions.of(tmp_path)


# --- other numbers of partitions -------------------------------------------------------------


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=12),
    borders=st.lists(st.integers(1, 11), max_size=4),
    n_parts=st.one_of(st.none(), st.integers(1, 6)),
)
def test_partitions_are_the_whole_data_in_order(sizes, borders, n_parts):
    n = sum(sizes)
    X, y = np.arange(n, dtype=float)[:, None], np.arange(n) % 3
    data = RankingData.from_arrays(X, y, group_sizes=sizes)
    cuts = sorted({0, len(sizes), *(b for b in borders if b < len(sizes))})
    raws = [consecutive(data, lo, hi) for lo, hi in pairwise(cuts)]
    parts = Partitions.build(LocalBackend(), raws, list(map(str, cuts[:-1])), n_parts=n_parts)
    same(whole(parts), data)
    assert [q.tolist() for q in parts.qid] == [part.qid.tolist() for part in parts.parts]
    assert [s.tolist() for s in parts.sizes] == [part.sizes.tolist() for part in parts.parts]
    assert len(parts) == len(raws) if n_parts is None else len(parts) <= n_parts


def test_dask_knows_what_a_part_weighs():
    """Else it would copy parts about as if they were nothing."""
    assert sizeof(DATA) >= DATA.X.nbytes + DATA.y.nbytes


# --- map -------------------------------------------------------------------------------------


def lowest(part, more):
    return float(part.X.min()) + more


def test_results_come_in_the_order_of_the_parts(client):
    parts = Partitions.of(DATA, n_parts=4)
    expected = [lowest(part, 1.0) for part in parts.local().parts]
    assert parts.map(lowest, 1.0) == parts.local().map(lowest, 1.0) == expected


def test_every_worker_gets_as_many_parts(client):
    parts = Partitions.of(DATA, n_parts=6)
    places = [worker for (worker,) in client.who_has(parts.parts).values()]
    assert sorted(places.count(worker) for worker in set(places)) == [3, 3]


# --- sentences -------------------------------------------------------------------------------


def test_a_query_that_no_worker_can_hold_is_named(cluster_of):
    client = cluster_of(1, memory_limit="1kB")
    with pytest.raises(DataError, match=r"query 0 has 60 documents, about 1\.\d+ kiB"):
        Partitions.of(small_data(queries=2, documents=60, features=3), n_parts=2, client=client)


def test_a_query_that_only_its_blocks_together_make_too_large_is_named(cluster_of):
    client = cluster_of(1, memory_limit="1kB")
    one = small_data(queries=1, documents=60, features=3)
    with pytest.raises(DataError, match=r"query 0 has 60 documents, about [12]\.\d+ kiB"):
        Partitions.of(arrays(one, 15), client=client)


def test_a_block_that_no_worker_can_hold_is_named_by_its_first_query(cluster_of):
    client = cluster_of(1, memory_limit="1kB")
    with pytest.raises(DataError, match=r"part that begins with query 0 takes about 1\.\d+ kiB"):
        Partitions.of(arrays(DATA, 45), client=client)


def test_a_part_that_no_worker_can_hold_is_named_by_its_first_query(cluster_of):
    client = cluster_of(1, memory_limit="1kB")
    with pytest.raises(DataError, match=r"part that begins with query 0 takes about 1\.\d+ kiB"):
        Partitions.of(DATA, n_parts=1, client=client)


def test_parts_of_different_width_are_refused(client, tmp_path):
    save(small_data(queries=2, features=3), tmp_path / "a.parquet")
    save(small_data(queries=2, features=4), tmp_path / "b.parquet")
    with pytest.raises(DataError, match=r"a.parquet has 3 features, but .*b.parquet has 4"):
        Partitions.of(tmp_path)


def test_features_of_other_names_are_refused(client):
    named = [
        RankingData.from_arrays([[1.0, 2.0]], [1], qid=[q], feature_names=names)
        for q, names in enumerate([("a", "b"), ("a", "c")])
    ]
    with pytest.raises(DataError, match="column 1 is 'b' in the first and 'c' in the second"):
        Partitions.from_list(named)


def test_a_letor_fold_is_not_taken_for_parts_of_one_set(client, tmp_path):
    for name in ("train", "vali", "test"):
        (tmp_path / f"{name}.txt").write_text("1 qid:1 1:1\n")
    with pytest.raises(DataError, match="is a LETOR fold"):
        Partitions.of(tmp_path)


def test_what_parts_are_made_with_comes_too_late_for_parts(client):
    parts = Partitions.of(DATA, n_parts=2)
    assert Partitions.of(parts) is Partitions.of(parts, client=client) is parts
    for asked in ({"n_parts": 3}, {"qid": "query"}, {"client": object()}):
        with pytest.raises(UsageError, match=f"{next(iter(asked))} is given where Partitions are"):
            Partitions.of(parts, **asked)


def test_an_option_that_the_reader_does_not_have_is_reported(client, tmp_path):
    save(DATA, tmp_path / "a.txt")
    with pytest.raises(UsageError, match="format 'letor' has no option 'zero_base' to read; it"):
        Partitions.of(tmp_path, client=client, zero_base=True)


def test_data_that_are_read_already_take_no_options(client):
    with pytest.raises(UsageError, match="RankingData has no option 'zero_based'; leave it out"):
        Partitions.of(DATA, zero_based=True)
    with pytest.raises(UsageError, match="Dask arrays has no option 'label'; it takes sample_w"):
        Partitions.of(arrays(DATA, 9), label="y")


def test_what_is_no_data_and_what_is_not_there_is_reported(client, tmp_path):
    with pytest.raises(UsageError, match="int is not data for a cluster"):
        Partitions.of(3)
    with pytest.raises(DataError, match="does not exist, and no file fits it"):
        Partitions.of(tmp_path / "no-*.parquet")
    with pytest.raises(UsageError, match="y must be a Dask array"):
        Partitions.of((arrays(DATA, 9)[0], DATA.y, DATA.y))


def test_the_parts_of_a_worker_are_one_task_and_come_back_in_order(client):
    parts = Partitions.of(small_data(), client=client, n_parts=5)
    wait(parts.parts)
    calls = []
    plain = parts.backend.call
    parts.backend.call = lambda function, *columns: (
        calls.append(len(columns[0])),
        plain(function, *columns),
    )[1]
    firsts = [int(part.qid[0]) for part in parts.local().parts]
    assert parts.map(_first_query) == firsts
    assert calls[0] == len(parts._by_worker()) <= 2
    assert sorted(part for own, _ in parts._by_worker() for part in own) == list(range(5))


def _first_query(part):
    return int(part.qid[0])
