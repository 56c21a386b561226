"""Trees over partitions: the gradients of the whole, two workers, resumed and lost ones."""

import io
import os
import subprocess
import threading
from dataclasses import replace

import numpy as np
import pytest
from distributed import Client, LocalCluster
from forests import as_bytes
from graded_parts import SMALL, cut, graded
from small_data import small_data

from rankwright import registry
from rankwright.data.ranking_data import concatenate
from rankwright.distributed import trees
from rankwright.distributed.cluster import ClusterError
from rankwright.distributed.fitting import fit
from rankwright.distributed.partitions import Partitions, largest_of_all
from rankwright.distributed.tree_machine import PartDescents
from rankwright.distributed.trees import NetworkBrokenError, PartitionedTrees
from rankwright.errors import DataError, UsageError
from rankwright.losses import loss
from rankwright.losses.squared import Squared
from rankwright.models.boosting import Descent
from rankwright.models.forest import Forest
from rankwright.persist.checkpoint import Checkpoint
from rankwright.persist.model_file import load_model
from rankwright.rankers.base import ranker
from rankwright.rankers.fitting import last_model


def grown(model, loss, parts, **options):
    """Return the trees after the last round."""
    *_, last = PartitionedTrees(model).rounds(loss, parts, **options)
    return last.model()


# --- one machine, without a cluster ------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "params"), [*((name, {}) for name in registry.LOSSES), ("pair_hinge", {"pairs": "ir"})]
)
def test_the_gradients_of_parts_are_those_of_the_whole(name, params):
    long = replace(small_data(queries=1, documents=35, seed=3), qid=np.array([99]))
    data, made = concatenate([small_data(queries=9), long]), loss(name, **params)
    scores = np.random.default_rng(1).normal(size=data.n_documents)
    parts = list(zip(range(3), (0, 2, 6), cut(data, 2, 6), strict=True))
    largest = largest_of_all(Partitions.from_list([part for *_, part in parts]), made)
    run = PartDescents(SMALL, made, parts, 0, largest=largest, n_jobs=1)
    value, gradient, curvature = run.step(0, scores)
    wholes = [(0, data)]
    if made.traits.stochastic:  # queries are numbered by their content, in each part
        wholes = [(first, part) for _, first, part in parts]
    ends = np.cumsum([whole.n_documents for _, whole in wholes])[:-1]
    found = [
        Descent(SMALL, made, whole, first_query=first, n_jobs=1).step(0, own)
        for (first, whole), own in zip(wholes, np.split(scores, ends), strict=True)
    ]
    assert value == pytest.approx(sum(step[0] for step in found), rel=1e-12)
    expected = [np.concatenate([step[k] for step in found]) for k in (1, 2)]
    np.testing.assert_allclose(gradient, expected[0], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(curvature, expected[1], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    ("name", "params"), [("xendcg", {}), ("boltzrank", {}), ("listnet", {"k": 2, "samples": 3})]
)
def test_no_noise_is_sampled_twice_for_queries_of_different_parts(name, params):
    part = small_data(queries=4)
    scores = np.random.default_rng(1).normal(size=part.n_documents)
    parts = [(0, 0, part), (1, 4, part)]
    run = PartDescents(SMALL, loss(name, **params), parts, 0, n_jobs=1)
    first, second = np.split(run.step(0, np.tile(scores, 2))[1], 2)
    assert (first != second).any()


def test_what_is_sampled_depends_on_the_part_and_not_on_the_machine():
    model = replace(SMALL, subsample=0.5, query_fraction=0.7, colsample_bytree=0.5)
    first, second = cut(small_data(), 12)
    zeros = np.zeros(first.n_documents), np.zeros(second.n_documents)

    def run(parts, scores):
        made = PartDescents(model, loss("squared"), parts, 3, n_jobs=1)
        return made.step(4, scores)[1], made.columns(4)

    together, columns = run([(0, 0, first), (1, 12, second)], np.concatenate(zeros))
    alone = [run([(k, 12 * k, part)], zeros[k]) for k, part in enumerate((first, second))]
    np.testing.assert_array_equal(together, np.concatenate([gradient for gradient, _ in alone]))
    for _, own in alone:
        np.testing.assert_array_equal(own, columns)
    same = [run([(k, 0, first)], zeros[0])[0] for k in (0, 1)]
    assert (same[0] != same[1]).any()


def test_a_process_that_does_not_start_is_not_left_behind(monkeypatch):
    started, plain = [], subprocess.Popen

    def popen(command, **options):
        started.append(plain([command[0], "-c", "import time; time.sleep(60)"], **options))
        started[0].stdout.close()
        started[0].stdout = io.BytesIO()  # no result comes
        return started[0]

    monkeypatch.setattr(trees.subprocess, "Popen", popen)
    machine = trees.Machine()
    with pytest.raises(NetworkBrokenError, match="the process beside a worker ended"):
        machine.call("listen")
    machine.end()
    assert started[0].returncode is not None


def test_a_call_of_a_process_that_was_ended_before_it_began_says_so():
    machine = trees.Machine()
    machine.end()
    with pytest.raises(NetworkBrokenError, match="the process beside a worker ended"):
        machine.call("listen")


# --- on a cluster ------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:the highest grade is 40.5:UserWarning")
def test_two_workers_fit_the_ranker_of_one_process(client, tmp_path):
    data, valid = graded(), graded(seed=1)

    def fresh():
        return ranker(
            "gbdt", n_estimators=9, num_leaves=4, targets="linear", early_stopping_rounds=5
        )

    one = fresh().fit(data, eval_set=valid)
    two = fit(fresh(), Partitions.of(data, client=client, n_parts=3), valid)
    np.testing.assert_allclose(two.predict(valid), one.predict(valid), rtol=1e-7)
    np.testing.assert_allclose(two.curve_["loss"], one.curve_["loss"], rtol=1e-7)
    assert two.curve_["valid ndcg@10"] == pytest.approx(one.curve_["valid ndcg@10"], abs=1e-9)
    assert two.best_iteration_ == one.best_iteration_
    two.save(tmp_path / "m.rw")
    np.testing.assert_array_equal(load_model(tmp_path / "m.rw").predict(valid), two.predict(valid))
    assert trees.MACHINES == {}


def test_a_run_that_is_given_up_names_its_checkpoint_and_is_resumed(client, tmp_path, monkeypatch):
    parts = Partitions.of(small_data(), client=client, n_parts=2)

    def fresh():
        return ranker("intervalrank", n_estimators=6, num_leaves=4, subsample=0.8)

    whole, folder = fit(fresh(), parts), tmp_path / "Upper Case"

    with monkeypatch.context() as patch:
        grow = trees.TreeNetwork.grow

        def breaks_after_four_rounds(network, grown, losses, rounds):
            if len(grown.trees) < 4:
                return grow(network, grown, losses, rounds)
            raise NetworkBrokenError("the worker tcp://somewhere was lost")

        patch.setattr(trees.TreeNetwork, "grow", breaks_after_four_rounds)
        with pytest.raises(ClusterError) as error:
            fit(fresh(), parts, checkpoint=Checkpoint(folder, every=2))
    assert str(error.value) == (
        "trees cannot grow beyond round 4: the worker tcp://somewhere was lost, 3 times in a row. "
        f"{folder} has the trees up to round 4; resume it."
    )
    resumed = fit(fresh(), parts, checkpoint=Checkpoint(folder, every=2, resume=True))
    assert resumed.resumed_from_ == 4
    assert as_bytes(resumed.model_) == as_bytes(whole.model_)
    assert resumed.curve_ == whole.curve_
    other = Partitions.of(small_data(), client=client, n_parts=3)
    with pytest.raises((UsageError, DataError), match="training data"):
        fit(fresh(), other, checkpoint=Checkpoint(folder, every=2, resume=True))


@pytest.mark.parametrize(("every", "machines"), [(1, 2), (20, 1)])
def test_a_run_that_ended_early_is_resumed_to_the_same_trees(every, machines, client, tmp_path):
    data, valid = small_data(), small_data(seed=1)
    noise = replace(valid, y=np.random.default_rng(0).permutation(valid.y))
    parts = Partitions.of(data, client=client, n_parts=machines)

    def run(**kept):
        made = ranker("gbdt", n_estimators=30, num_leaves=4, early_stopping_rounds=3)
        return fit(made, parts, noise, checkpoint=Checkpoint(tmp_path, every=every, **kept))

    first, again = run(), run(resume=True)
    rounds = len(first.curve_["loss"])
    assert rounds < 20
    assert again.resumed_from_ == (rounds - 1 if every == 1 else None)
    assert as_bytes(again.model_) == as_bytes(first.model_)
    assert again.curve_ == first.curve_
    assert again.best_iteration_ == first.best_iteration_


def test_a_loss_of_the_users_own_script_goes_to_the_machines(client):
    scope = {"__name__": "__main__", "Squared": Squared}
    exec("class Own(Squared):\n    pass\n", scope)  # noqa: S102
    parts = Partitions.of(small_data(queries=8), client=client, n_parts=1)
    own = grown(SMALL, scope["Own"](), parts)
    assert as_bytes(own) == as_bytes(grown(SMALL, Squared(), parts))


def test_bins_are_made_of_all_rows_or_of_about_as_many_as_they_need(client, monkeypatch):
    data = Partitions.of(small_data(), client=client, n_parts=2)
    assert trees._bin_sample(data).result().shape == (600, 6)
    monkeypatch.setattr(trees, "BIN_ROWS", 60)
    sample = trees._bin_sample(data).result()
    assert sample.shape == (60, 6)
    rows = {tuple(row) for row in small_data().X.tolist()}
    assert {tuple(row) for row in sample.tolist()} < rows


def test_an_error_that_would_come_again_is_raised_at_once(client, monkeypatch):
    begun = []
    begin = trees.TreeNetwork._begin
    monkeypatch.setattr(trees.TreeNetwork, "_begin", lambda *args: (begun.append(1), begin(*args)))
    parts = Partitions.of(small_data(queries=8), client=client, n_parts=2)
    scope = {"__name__": "__main__", "Squared": Squared}
    broken = "def bind(self, data, n_jobs=None):\n        raise ZeroDivisionError('mine')\n"
    exec(f"class Broken(Squared):\n    {broken}", scope)  # noqa: S102
    with pytest.raises(ZeroDivisionError, match="mine"):
        grown(SMALL, scope["Broken"](), parts, start=Forest.empty(6))
    assert len(begun) == 1
    assert trees.MACHINES == {}


def test_without_any_worker_the_run_ends_with_a_sentence(client, monkeypatch):
    parts = Partitions.of(small_data(queries=8), client=client, n_parts=2)
    monkeypatch.setattr(trees, "PATIENCE", 0.1)
    monkeypatch.setattr(trees, "_threads", lambda _: {})
    with pytest.raises(ClusterError) as error:
        grown(SMALL, loss("squared"), parts)
    assert str(error.value) == (
        "trees cannot grow beyond round 0: no worker is left. No checkpoint was written; begin "
        "again, with one."
    )


def test_parts_are_not_waited_for_where_a_worker_was_lost(client, monkeypatch):
    parts = Partitions.of(small_data(queries=8), client=client, n_parts=2)
    network = trees.TreeNetwork(SMALL, loss("squared"), parts, 0, 1, None)

    class Never:
        @staticmethod
        def wait(parts, timeout):
            raise TimeoutError

    monkeypatch.setattr(trees, "import_distributed", lambda: Never)
    with pytest.raises(NetworkBrokenError, match="the worker tcp://gone:1 was lost"):
        network._assigned([*client.nthreads(), "tcp://gone:1"])


def test_lbfgs_directions_are_refused(client):
    parts = Partitions.of(small_data(queries=4), client=client, n_parts=1)
    with pytest.raises(UsageError, match="direction='lbfgs' needs the gradients of all"):
        grown(replace(SMALL, direction="lbfgs"), loss("squared"), parts)


def test_a_worker_killed_while_trees_grow_is_done_without(monkeypatch):
    monkeypatch.setattr(trees, "EVERY", 4)
    data = graded()
    model = replace(SMALL, n_estimators=12)
    one = last_model(model.rounds(loss("squared"), data, n_jobs=1))
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50
        ) as cluster,
        Client(cluster) as client,
    ):
        parts = Partitions.of(data, client=client, n_parts=4)
        victim = min(client.run(os.getpid).values())

        rounds = []
        for round_ in PartitionedTrees(model).rounds(loss("squared"), parts):
            rounds.append(round_)
            if len(rounds) == 4:
                threading.Timer(0.01, os.kill, (victim, 9)).start()
        assert victim not in client.run(os.getpid).values()
    assert [round_.number for round_ in rounds] == list(range(1, 13))  # each is yielded once
    forest = rounds[-1].model()
    np.testing.assert_allclose(forest.scores(data.X), one.scores(data.X), rtol=1e-7)


def test_only_what_another_network_may_not_have_is_tried_again():
    lost = type("CommClosedError", (Exception,), {})
    for error, again in (
        (UsageError("num_leaves must be 2 or more."), False),
        (Exception("Check failed: (num_leaves) > (1)"), False),
        (ValueError("a bug"), False),
        (NetworkBrokenError("a machine is gone"), True),
        (ConnectionResetError(), True),
        (lost("closed"), True),
    ):
        assert trees._is_passing(error) == again, error
