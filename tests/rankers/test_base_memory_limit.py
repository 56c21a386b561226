"""Rankers learn the same within a bound on memory, where what they copy goes to mapped files."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from rankwright import ranker
from rankwright.core import memory
from rankwright.core.memory import memory_limit
from rankwright.data.synthetic_data import synthetic

DATA = synthetic("mq2008", queries=12)
GAPS = np.where(np.random.default_rng(0).random(DATA.X.shape) < 0.1, np.float32(np.nan), DATA.X)

CASES = {
    "rows in order": ("memr", {"solver": "sgd", "max_iter": 2}, DATA),
    "sparse rows in order": (
        "memr",
        {"solver": "sgd", "max_iter": 2},
        replace(DATA, X=sparse.csr_array(DATA.X)),
    ),
    "gaps filled": ("memr", {"missing": "mean", "max_iter": 3}, replace(DATA, X=GAPS)),
    "rules": ("rankboost", {"n_rounds": 3}, DATA),
    "trees": ("lambdamart", {"n_estimators": 2}, DATA),
}


@pytest.mark.parametrize("case", CASES)
def test_the_same_model_comes_within_a_bound(case, monkeypatch):
    name, parameters, data = CASES[case]
    free = ranker(name, **parameters).fit(data)
    monkeypatch.setattr(memory, "_SMALL_SHARE", 1 << 60)  # every copy is large
    monkeypatch.setattr(memory, "_BLOCK_BYTES", 1 << 10)
    monkeypatch.setattr(memory, "_SPARSE_ROWS", 50)
    with memory_limit("90GB"):
        within = ranker(name, **parameters).fit(data)
        scores = within.predict(data)
    arrays = within.model_.arrays()
    assert all((arrays[key] == held).all() for key, held in free.model_.arrays().items())
    assert within.model_.texts() == free.model_.texts()
    assert (scores == free.predict(data)).all()
