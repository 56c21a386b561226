"""Two worker processes, one of which is killed in the middle of a fit."""

import os
import signal
import subprocess
import sys

import distributed
import numpy as np
import pytest
from small_data import small_data

from rankwright.data.files import save
from rankwright.distributed import evaluate, fit
from rankwright.distributed.cluster import Cluster, ClusterError
from rankwright.distributed.partitions import Partitions
from rankwright.models import Linear
from rankwright.rankers.base import Ranker

DATA = small_data(queries=12, documents=8, features=5)


@pytest.fixture
def workers(tmp_path):
    """Start worker processes without nannies; all are ended."""
    running = []
    with (
        distributed.LocalCluster(
            n_workers=0, processes=True, dashboard_address="127.0.0.1:0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):

        def start(count):
            command = [sys.executable, "-m", "distributed.cli.dask_worker"]
            command += [cluster.scheduler_address, "--no-nanny", "--nthreads", "1"]
            command += ["--no-dashboard", "--local-directory", str(tmp_path / "scratch")]
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            running.extend(subprocess.Popen(command, **quiet) for _ in range(count))
            client.wait_for_workers(count, timeout=120)
            return client, running

        yield start
        for process in running:
            process.kill()
            process.wait()


def killing(monkeypatch, processes, at):
    """Kill these worker processes before the driver waits for its ``at``-th round of answers."""
    plain, rounds = Cluster.results, []

    def results(self, held):
        rounds.append(len(held))
        if len(rounds) == at:
            for process in processes:
                os.kill(process.pid, signal.SIGKILL)
        return plain(self, held)

    monkeypatch.setattr(Cluster, "results", results)
    return rounds


def test_a_fit_ends_with_the_same_bits_after_a_worker_was_killed(workers, tmp_path, monkeypatch):
    for k in range(4):
        save(DATA.select(slice(3 * k, 3 * k + 3)), tmp_path / f"part-{k}.txt")
    client, running = workers(2)
    parts = Partitions.of(str(tmp_path / "part-*.txt"), client=client)

    def made():
        return Ranker("ranknet", Linear(tol=1e-9), solver="lbfgs")

    here, undisturbed = fit(made(), parts.local()), fit(made(), parts)
    np.testing.assert_array_equal(undisturbed.coef_, here.coef_)
    rounds = killing(monkeypatch, running[:1], at=6)
    found = fit(made(), parts)
    assert len(rounds) > 8
    assert len(client.scheduler_info()["workers"]) == 1
    np.testing.assert_array_equal(found.coef_, undisturbed.coef_)
    assert found.data_digest_ == undisturbed.data_digest_
    values = evaluate(found, parts, "ndcg@10")
    assert values["ndcg@10"] == evaluate(here, parts.local(), "ndcg@10")["ndcg@10"]


def test_when_the_last_worker_is_killed_the_fit_ends_with_a_sentence(workers, monkeypatch):
    client, running = workers(1)
    parts = Partitions.of(DATA, n_parts=2, client=client)
    monkeypatch.setattr(parts.backend, "_patience", 0.5)
    killing(monkeypatch, running, at=4)
    with pytest.raises(ClusterError, match="no worker is left on the cluster"):
        fit(Ranker("ranknet", "linear", solver="lbfgs"), parts)
