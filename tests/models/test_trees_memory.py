"""Trees in less memory: bins from a sample by content, the same trees by column."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from rankwright import LambdaMART
from rankwright.core.memory import memory_limit
from rankwright.data.synthetic_data import synthetic
from rankwright.models import trees
from rankwright.models.trees import plan_bins, tree_bytes
from rankwright.persist.checkpoint import Checkpoint

DATA = synthetic("mq2008", queries=60)
SHUFFLED = np.random.default_rng(0).permutation(DATA.n_documents)


def text(data=DATA, **parameters):
    """The trees that come of a small fit."""
    given = {"n_estimators": 4, "num_leaves": 7, "min_child_samples": 5, "n_jobs": 1, **parameters}
    return LambdaMART(**given).fit(data).model_.text


@pytest.fixture(params=["many documents", "a bound"])
def small_sample(request, monkeypatch):
    """Take thresholds from 299 of the documents, as there are many or 90 GB pay for no more."""
    if request.param == "a bound":
        monkeypatch.setattr(trees, "_PER_VALUE", 90 * 10**9 // (4 * 46 * 300))
    else:
        monkeypatch.setattr(trees, "BIN_ROWS", 299)
    with memory_limit("90GB" if request.param == "a bound" else None):
        assert plan_bins(DATA.n_documents, 46, 255, 4).sample == 299 < DATA.n_documents / 2
        yield


def test_thresholds_come_from_all_documents_or_a_sample_of_them():
    assert plan_bins(3_771_125, 136, 255, 4) == (65_536, True)
    assert plan_bins(900, 136, 255, 4).sample >= 900


def test_a_bound_decides_sample_and_layout():
    with memory_limit("90GB"):
        assert plan_bins(3_771_125, 136, 255, 4) == (65_536, True)
        assert not plan_bins(377_112_500, 136, 255, 4).by_row
    with memory_limit("500MB"):
        assert plan_bins(3_771_125, 136, 255, 4).sample == 5 * 10**8 // (4 * 136 * 28) < 65_536


def test_fewer_bins_take_less():
    sizes = [tree_bytes(1000, 100, bins) for bins in (15, 255, 1023)]
    assert np.diff(sizes).tolist() == [50_000, 100_000]


def test_a_bound_that_has_room_for_all_changes_nothing():
    with memory_limit("90GB"):
        within = text()
    assert within == text()


def test_bins_by_column_give_the_same_trees(monkeypatch):
    by_row = text()
    plan = trees.BinPlan(200_000, by_row=False)
    monkeypatch.setattr("rankwright.models.trees.plan_bins", lambda *_: plan)
    assert text() == by_row


@pytest.mark.usefixtures("small_sample")
def test_a_sample_gives_the_same_trees_for_any_threads_and_order_of_rows():
    sampled = text()
    assert sampled == text(n_jobs=2) == text(n_jobs=5)
    rows = np.concatenate(
        [SHUFFLED[DATA.query_of_row()[SHUFFLED] == q] for q in range(DATA.n_queries)]
    )
    assert text(DATA.in_order(rows, np.arange(DATA.n_queries))) == sampled


@pytest.mark.usefixtures("small_sample")
def test_a_sample_serves_sparse_features_too():
    wide = replace(DATA, X=sparse.csr_array(DATA.X))
    assert text(wide) == text()


@pytest.mark.usefixtures("small_sample")
def test_a_sample_gives_other_thresholds(monkeypatch):
    sampled = text()
    monkeypatch.setattr(trees, "BIN_ROWS", 1 << 16)
    with memory_limit(None):
        assert text() != sampled


@pytest.mark.usefixtures("small_sample")
def test_a_run_on_a_sample_is_resumed_to_the_same_file(tmp_path):
    def made():
        return LambdaMART(n_estimators=4, num_leaves=7, n_jobs=2)

    def stop(t, _):
        if t == 3:
            raise InterruptedError

    made().fit(DATA).save(tmp_path / "whole.rw")
    with pytest.raises(InterruptedError):
        made().fit(DATA, checkpoint=Checkpoint(tmp_path / "kept", every=1), progress=stop)
    again = made().fit(DATA, checkpoint=Checkpoint(tmp_path / "kept", every=1, resume=True))
    again.save(tmp_path / "resumed.rw")
    assert again.resumed_from_ == 2
    assert (tmp_path / "resumed.rw").read_bytes() == (tmp_path / "whole.rw").read_bytes()
