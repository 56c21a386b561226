"""Synthetic data part by part are those made at once."""

from dataclasses import replace

import pytest
from reference.same_data import assert_same

from rankwright.data import synthetic_data as made_up
from rankwright.data.files import load, save_parts
from rankwright.data.ranking_data import concatenate
from rankwright.data.synthetic_data import SHAPES, synthetic, synthetic_parts
from rankwright.errors import UsageError

SPARSE = replace(SHAPES["rcv1"], queries=12, documents=400, features=60, shortest=5, density=0.1)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(made_up, "_BLOCK_ROWS", 256)
    monkeypatch.setattr(made_up, "_PART_ROWS", 512)


@pytest.mark.parametrize("shape", ["mq2008", "web", SPARSE], ids=["dense", "groups", "sparse"])
def test_parts_make_up_the_whole(shape):
    whole = synthetic(shape, queries=40, seed=3)
    parts = list(synthetic_parts(shape, queries=40, seed=3))
    assert len(parts) > 1
    assert_same(concatenate(parts), whole)


@pytest.mark.parametrize("shape", ["mq2008", SPARSE], ids=["dense", "sparse"])
def test_queries_that_are_left_out_leave_the_others_as_they_are(shape):
    whole = synthetic(shape, queries=40)
    rest = concatenate(list(synthetic_parts(shape, first=17, queries=23)))
    assert_same(rest, whole.select(range(17, 40)))


def test_no_queries_or_fewer_are_refused():
    with pytest.raises(UsageError, match="0 or more"):
        next(synthetic_parts("mq2008", first=-1))
    with pytest.raises(UsageError, match="784 queries"):
        next(synthetic_parts("mq2008", first=784))


def test_parts_are_written_one_after_the_other(tmp_path):
    done = save_parts(synthetic_parts("mq2008", queries=40), tmp_path / "t.store")
    assert (done.queries, done.features) == (40, 46)
    assert_same(load(tmp_path / "t.store"), synthetic("mq2008", queries=40))
