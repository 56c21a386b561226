"""A cluster in this process for most tests, and one of real processes for a few."""

import pytest

dask = pytest.importorskip("dask")

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def client():
    """Two workers in this process, a thread each."""
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=False,
            dashboard_address="127.0.0.1:0",
        ) as cluster,
        distributed.Client(cluster) as made,
    ):
        yield made


@pytest.fixture
def cluster_of():
    """Make clusters in this process, of as many workers as asked for; all are closed."""
    open_ones = []

    # A worker in this process would rest where the process has more memory than its limit.
    watchful = ("target", "spill", "pause")
    restless = {f"distributed.worker.memory.{name}": False for name in watchful}

    def made(workers, **options):
        cluster = distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=False,
            dashboard_address="127.0.0.1:0",
            **options,
        )
        found = distributed.Client(cluster, set_as_default=False)
        open_ones[:0] = [found, cluster]
        return found

    with dask.config.set(restless):
        yield made
        for one in open_ones:
            one.close()
