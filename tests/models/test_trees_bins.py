"""Trees whose bins come from a sample of the documents."""

from dataclasses import replace

import numpy as np
import pytest
from forests import as_bytes
from scipy import sparse

from rankwright import LambdaMART
from rankwright.data.synthetic_data import synthetic
from rankwright.models import lightgbm_engine
from rankwright.persist.checkpoint import Checkpoint

DATA = synthetic("mq2008", queries=60)
SHUFFLED = np.random.default_rng(0).permutation(DATA.n_documents)


def numbers(data=DATA, **parameters):
    """The trees that come of a small fit."""
    given = {"n_estimators": 4, "num_leaves": 7, "min_child_samples": 5, "n_jobs": 1, **parameters}
    return as_bytes(LambdaMART(**given).fit(data).model_)


@pytest.fixture
def small_sample(monkeypatch):
    """Take thresholds from 299 of the documents."""
    monkeypatch.setattr(lightgbm_engine, "BIN_ROWS", 299)
    assert DATA.n_documents > 2 * 299


@pytest.mark.usefixtures("small_sample")
def test_a_sample_gives_the_same_trees_for_any_threads_and_order_of_rows():
    sampled = numbers()
    assert sampled == numbers(n_jobs=2) == numbers(n_jobs=5)
    rows = np.concatenate(
        [SHUFFLED[DATA.query_of_row()[SHUFFLED] == q] for q in range(DATA.n_queries)]
    )
    assert numbers(DATA.in_order(rows, np.arange(DATA.n_queries))) == sampled


@pytest.mark.usefixtures("small_sample")
def test_a_sample_serves_sparse_features_too():
    wide = replace(DATA, X=sparse.csr_array(DATA.X))
    assert numbers(wide) == numbers()


@pytest.mark.usefixtures("small_sample")
def test_a_sample_gives_other_thresholds(monkeypatch):
    sampled = numbers()
    monkeypatch.setattr(lightgbm_engine, "BIN_ROWS", 1 << 16)
    assert numbers() != sampled


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
