"""Clients, and the errors where there are none."""

import asyncio
import pickle
import sys

import distributed
import pytest
from small_data import small_data

from rankwright.distributed import cluster as cluster_module
from rankwright.distributed.cluster import Cluster, ClusterError, connected, executor
from rankwright.distributed.fitting import fit
from rankwright.distributed.partitions import Partitions
from rankwright.errors import MissingExtraError, UsageError
from rankwright.rankers.base import ranker

DATA = small_data(queries=4, documents=3)


def test_without_a_client_the_next_step_is_reported():
    with pytest.raises(UsageError, match=r"there is no Dask client: start one"):
        Partitions.of(DATA)


def test_without_dask_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'rankwright\[dask\]'"):
        Partitions.of(DATA)


def test_the_last_client_is_taken_where_none_is_given():
    with distributed.Client(processes=False, dashboard_address="127.0.0.1:0") as made:
        assert connected() is made


def test_an_address_is_no_client():
    with pytest.raises(UsageError, match=r"make it with distributed\.Client\('tcp://here:1'\)"):
        Partitions.of(DATA, client="tcp://here:1")


def one_more(x):
    return x + 1


def test_an_executor_runs_calls_on_the_workers(client):
    assert executor(client).submit(one_more, 1).result() == 2


def too_much():
    raise MemoryError


def test_what_a_worker_cannot_do_for_an_executor_is_reported_in_a_sentence(client):
    with pytest.raises(ClusterError, match="larger than the memory limit of every worker"):
        executor(client).submit(too_much).result()


def broken(x):
    raise UsageError(f"{x} is not for me.")


def test_a_sentence_of_a_worker_reaches_the_caller_as_it_was(client):
    place = Cluster(client)
    with pytest.raises(UsageError, match="3 is not for me"):
        place.results(place.call(broken, [3]))


def test_results_that_take_long_to_come_are_fetched_once(client, monkeypatch):
    plain, asked = client.gather, []

    async def slowly(held, **options):
        asked.append(len(held))
        await asyncio.sleep(0.3)
        return await plain(held, **options)

    monkeypatch.setattr(cluster_module, "_INTERVAL", 0.05)
    monkeypatch.setattr(client, "gather", slowly)
    place = Cluster(client)
    assert place.results(place.call(one_more, [1, 2])) == [2, 3]
    assert asked == [2]


def late(x):
    raise TimeoutError(f"{x} came too late")


def test_a_timeout_of_the_work_itself_reaches_the_caller(client):
    place = Cluster(client)
    with pytest.raises(TimeoutError, match="3 came too late"):
        place.results(place.call(late, [3]))


def test_a_package_that_a_worker_lacks_is_reported_as_one_that_is_missing_here():
    error = MissingExtraError("torch", "neural", "a network")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)  # noqa: S301


def test_when_no_worker_is_left_the_run_ends_with_a_sentence():
    with (
        distributed.LocalCluster(
            n_workers=0, processes=False, dashboard_address="127.0.0.1:0"
        ) as c,
        distributed.Client(c, set_as_default=False) as made,
    ):
        place = Cluster(made, patience=0.1)
        with pytest.raises(ClusterError, match="no worker is left on the cluster"):
            place.results(place.call(one_more, [1]))


def test_errors_of_the_cluster_become_sentences_and_others_stay():
    for name, sentence in (
        ("KilledWorker", "died, several times over"),
        ("CancelledError", "parts of the data were lost"),
        ("CommClosedError", "does not respond any more"),
    ):
        found = Cluster._explained(type(name, (Exception,), {})())
        assert isinstance(found, ClusterError)
        assert sentence in str(found)
    assert "larger than the memory limit" in str(Cluster._explained(MemoryError()))
    other = ValueError("of the work itself")
    assert Cluster._explained(other) is other


def test_after_the_client_is_closed_the_next_step_is_reported():
    with distributed.Client(processes=False, dashboard_address="127.0.0.1:0") as made:
        parts = Partitions.of(DATA, client=made)
        workers = executor(made)
    for use in (
        lambda: parts.map(len),
        lambda: fit(ranker("memr"), parts),
        lambda: fit(ranker("memr"), DATA, client=made),
        lambda: workers.submit(one_more, 1),
    ):
        with pytest.raises(ClusterError, match="the Dask client is closed"):
            use()
