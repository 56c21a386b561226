import os
import threading
from dataclasses import replace

import numpy as np
import pytest
from distributed import Client, LocalCluster
from scipy import sparse
from small_data import Onlooker, small_data

from rankwright import registry
from rankwright.data.files import consecutive
from rankwright.distributed import tree_network
from rankwright.distributed.cluster import ClusterError
from rankwright.distributed.fitting import fit
from rankwright.distributed.partitions import partitions
from rankwright.distributed.tree_machine import Descents, TreeMachine
from rankwright.distributed.tree_network import NetworkBrokenError
from rankwright.distributed.trees import fit_trees
from rankwright.errors import UsageError
from rankwright.losses import loss
from rankwright.models.tree_text import tree_blocks
from rankwright.models.trees import Trees, empty_forest
from rankwright.persist.checkpoint import Checkpoint
from rankwright.persist.model_file import load_model
from rankwright.rankers.base import ranker

SMALL = Trees(n_trees=6, num_leaves=4, min_documents=5)


def graded(seed=0, **more):
    """Data with fractional grades, and some far above LightGBM's limit of 31."""
    data = small_data(seed=seed, **more)
    return replace(data, y=np.array([0.0, 0.25, 40.5])[data.y.astype(int)])


def cut(data, *bounds):
    ends = [*bounds, data.n_queries]
    return [consecutive(data, lo, hi) for lo, hi in zip([0, *bounds], ends, strict=True)]


@pytest.fixture(scope="module")
def client():
    """Two workers in this process; the machines of LightGBM's network are processes anyway."""
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


# --- one machine, without a cluster ------------------------------------------------------------


@pytest.mark.parametrize("name", registry.KINDS["losses"])
def test_the_gradients_of_parts_are_those_of_the_whole(name):
    data, made = small_data(queries=9), loss(name)
    scores = np.random.default_rng(1).normal(size=data.n_documents)
    parts = list(enumerate(cut(data, 2, 6)))
    value, gradient, curvature = Descents(SMALL, made, parts, 0, n_threads=1).step(0, scores)
    wholes = [part for _, part in parts] if made.traits.stochastic else [data]  # noise is a part's
    ends = np.cumsum([whole.n_documents for whole in wholes])[:-1]
    found = [
        SMALL.descent(made, whole, seed=0, n_threads=1).step(0, own)
        for whole, own in zip(wholes, np.split(scores, ends), strict=True)
    ]
    assert value == pytest.approx(sum(step[0] for step in found), rel=1e-12)
    expected = [np.concatenate([step[k] for step in found]) for k in (1, 2)]
    np.testing.assert_allclose(gradient, expected[0], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(curvature, expected[1], rtol=1e-6, atol=1e-9)


def test_what_is_drawn_depends_on_the_part_and_not_on_the_machine():
    model = replace(SMALL, row_fraction=0.5, query_fraction=0.7, feature_fraction=0.5)
    first, second = cut(small_data(), 12)
    zeros = np.zeros(first.n_documents), np.zeros(second.n_documents)

    def run(parts, scores):
        made = Descents(model, loss("squared"), parts, 3, n_threads=1)
        return made.step(4, scores)[1], made.columns(4)

    together, columns = run([(0, first), (1, second)], np.concatenate(zeros))
    alone = [run([(k, part)], zeros[k]) for k, part in enumerate((first, second))]
    np.testing.assert_array_equal(together, np.concatenate([gradient for gradient, _ in alone]))
    for _, own in alone:
        np.testing.assert_array_equal(own, columns)
    same = [run([(k, first)], zeros[0])[0] for k in (0, 1)]
    assert (same[0] != same[1]).any()


@pytest.mark.parametrize("as_sparse", [False, True])
def test_one_machine_grows_the_trees_of_one_process(as_sparse):
    data = graded()
    one = SMALL.fit(loss("squared"), data, watch=Onlooker(), n_threads=1)
    parts = cut(data, 10)
    if as_sparse:
        parts[1] = replace(parts[1], X=sparse.csr_array(parts[1].X))
    machine = TreeMachine(SMALL, loss("squared"), empty_forest(one.initial, 6), data.X, 0, 1)
    for number, part in enumerate(parts):
        machine.add(number, part)
    machine.join("127.0.0.1:1", machine.listen())
    blocks = []
    for first, rounds in ((0, 4), (4, 2)):
        losses, counts, text = machine.grow(first, rounds, True)
        assert counts == list(range(1, rounds + 1))
        assert [sorted(of_part) for of_part in losses] == [[0, 1]] * rounds
        blocks += tree_blocks(text)
    assert blocks == tree_blocks(one.text)


def test_a_machine_that_can_grow_no_more_sends_fewer_rounds():
    data = small_data()
    flat = replace(data, y=np.zeros(data.n_documents))  # fitted well by a score of 0
    machine = TreeMachine(SMALL, loss("squared"), empty_forest(0.0, 6), flat.X, 0, 1)
    machine.add(0, flat)
    machine.join("127.0.0.1:1", machine.listen())
    assert machine.grow(0, 6, True)[:2] == ([], [])


def test_a_machine_ends_with_its_worker():
    machine = tree_network.Machine()
    machine._process.stdin.close()  # as when the worker is killed
    assert machine._process.wait(timeout=30) == 1
    with pytest.raises(NetworkBrokenError):
        machine.call("listen")
    machine.end()


# --- on a cluster ------------------------------------------------------------------------------


def test_two_workers_fit_the_ranker_of_one_process(client, tmp_path):
    data, valid = graded(), graded(seed=1)

    def fresh():
        return ranker("gbdt", n_trees=9, num_leaves=4, targets="linear", early_stopping=5)

    one = fresh().fit(data, eval_set=valid)
    two = fit(fresh(), partitions(data, client=client, n_parts=3), valid)
    np.testing.assert_allclose(two.predict(valid), one.predict(valid), rtol=1e-7)
    np.testing.assert_allclose(two.curve_["loss"], one.curve_["loss"], rtol=1e-7)
    assert two.curve_["valid ndcg@10"] == pytest.approx(one.curve_["valid ndcg@10"], abs=1e-9)
    assert two.best_iteration_ == one.best_iteration_
    two.save(tmp_path / "m.rw")
    np.testing.assert_array_equal(load_model(tmp_path / "m.rw").predict(valid), two.predict(valid))
    assert tree_network.MACHINES == {}


def test_a_run_that_is_given_up_names_its_checkpoint_and_is_resumed(client, tmp_path, monkeypatch):
    parts = partitions(small_data(), client=client, n_parts=2)

    def fresh():
        return ranker("intervalrank", n_trees=6, num_leaves=4, row_fraction=0.8)

    whole = fit(fresh(), parts)

    with monkeypatch.context() as patch:
        grow = tree_network.TreeNetwork.grow

        def breaks_after_four_rounds(network, grown, rounds):
            if grown.rounds < 4:
                return grow(network, grown, rounds)
            raise NetworkBrokenError("the worker tcp://somewhere was lost")

        patch.setattr(tree_network.TreeNetwork, "grow", breaks_after_four_rounds)
        with pytest.raises(ClusterError) as told:
            fit(fresh(), parts, checkpoint=Checkpoint(tmp_path, every=2))
    assert str(told.value) == (
        "trees cannot grow beyond round 4: the worker tcp://somewhere was lost, 3 times in a row. "
        f"{tmp_path} has the trees up to round 4; resume it."
    )
    resumed = fit(fresh(), parts, checkpoint=Checkpoint(tmp_path, every=2, resume=True))
    assert resumed.resumed_from_ == 4
    assert resumed.model_.text == whole.model_.text
    assert resumed.curve_ == whole.curve_


def test_lbfgs_directions_are_refused(client):
    parts = partitions(small_data(queries=4), client=client, n_parts=1)
    with pytest.raises(UsageError, match="direction='lbfgs' needs the gradients of all"):
        fit_trees(replace(SMALL, direction="lbfgs"), loss("squared"), parts, watch=Onlooker())


def test_a_worker_killed_while_trees_grow_is_done_without():
    data = graded()
    model = replace(SMALL, n_trees=12)
    one = model.fit(loss("squared"), data, watch=Onlooker(), n_threads=1)
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50
        ) as cluster,
        Client(cluster) as client,
    ):
        parts = partitions(data, client=client, n_parts=4)
        victim = min(client.run(os.getpid).values())

        class Killer(Onlooker):
            wants_train = False

            def seen(self, t, value, train, valid):
                if t == 4:
                    threading.Timer(0.01, os.kill, (victim, 9)).start()
                return super().seen(t, value, train, valid)

        watch = Killer()
        grown = fit_trees(model, loss("squared"), parts, watch=watch, every=4)
        assert victim not in client.run(os.getpid).values()
    assert len(watch.values) == 12  # no round is shown twice
    np.testing.assert_allclose(grown.scores(data.X), one.scores(data.X), rtol=1e-7)
