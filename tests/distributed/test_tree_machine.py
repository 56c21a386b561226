"""The process beside a worker that grows trees: the same trees, and no process left behind."""

import io
from dataclasses import replace

import numpy as np
import pytest
from forests import as_bytes
from graded_parts import SMALL, cut, graded
from scipy import sparse
from small_data import small_data

from rankwright.distributed import trees
from rankwright.distributed.tree_machine import TreeMachine, receive, send
from rankwright.distributed.trees import NetworkBrokenError
from rankwright.losses import loss
from rankwright.models.forest import Forest
from rankwright.rankers.fitting import last_model


@pytest.mark.parametrize("as_sparse", [False, True])
def test_one_machine_grows_the_trees_of_one_process(as_sparse):
    data = graded()
    one = last_model(SMALL.rounds(loss("squared"), data, n_jobs=1))
    parts = cut(data, 10)
    if as_sparse:
        parts[1] = replace(parts[1], X=sparse.csr_array(parts[1].X))
    machine = TreeMachine(SMALL, loss("squared"), Forest.empty(6, offset=one.offset), data.X, 0, 1)
    for number, part in enumerate(parts):
        machine.add(number, 10 * number, part)
    machine.join("127.0.0.1:1", machine.listen())
    grown = []
    for first, rounds in ((0, 4), (4, 2)):
        losses, some = machine.grow(first, rounds, True)
        assert [sorted(of_part) for of_part in losses] == [[0, 1]] * rounds
        grown += some
    forest = Forest.empty(6, offset=one.offset).join(grown)
    assert as_bytes(forest) == as_bytes(one)


def test_a_machine_that_can_grow_no_more_sends_fewer_rounds():
    data = small_data()
    flat = replace(data, y=np.zeros(data.n_documents))  # fitted well by a score of 0
    machine = TreeMachine(SMALL, loss("squared"), Forest.empty(6), flat.X, 0, 1)
    machine.add(0, 0, flat)
    machine.join("127.0.0.1:1", machine.listen())
    assert machine.grow(0, 6, True) == ([], [])


def test_a_machine_ends_with_its_worker():
    machine = trees.Machine()
    machine._process.stdin.close()  # as when the worker is killed
    assert machine._process.wait(timeout=30) == 1
    with pytest.raises(NetworkBrokenError):
        machine.call("listen")
    machine.end()


def test_a_message_arrives_with_its_arrays_as_they_were():
    data, file = small_data(), io.BytesIO()
    sent = data.X, np.asfortranarray(data.X), data.X[::2], np.empty(0), data, "text"
    send(file, sent)
    file.seek(0)
    found = receive(file)
    for array, own in zip(sent[:4], found[:4], strict=True):
        np.testing.assert_array_equal(own, array)
        assert own.flags.writeable
    np.testing.assert_array_equal(found[4].X, data.X)
    assert found[5] == "text"


class Unreadable:
    def __reduce__(self):
        return int, ("no number",)


def test_a_call_that_cannot_be_read_is_an_error_and_the_next_one_is_answered():
    machine = trees.Machine()
    with pytest.raises(ValueError, match="no number"):
        machine.call("listen", Unreadable())
    with pytest.raises(AttributeError, match="listen"):
        machine.call("listen")
    machine.end()
