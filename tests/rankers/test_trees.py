"""240,000 rows: where LightGBM by default gives another model for each number of threads."""

import numpy as np
import pytest

from rankwright.data.ranking_data import RankingData
from rankwright.rankers.base import ranker

N = 240_000
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 8)).astype(np.float32)
Y = np.clip((X[:, :3].sum(1) + RNG.normal(size=N)).round(), 0, 4)
QID = np.repeat(np.arange(N // 100), 100)
WEIGHT = np.exp(3 * RNG.normal(size=N))


def data(rows=slice(None)):
    return RankingData.from_arrays(X[rows], Y[rows], qid=QID[rows], sample_weight=WEIGHT[rows])


def fit(name, threads, given):
    return ranker(name, n_estimators=4, num_leaves=31, n_jobs=threads).fit(given)


@pytest.mark.parametrize("name", ["lambdamart", "intervalrank"])
def test_threads_and_shuffling_change_nothing(name, tmp_path):
    files = []
    for threads in (1, 2, 5):
        fitted = fit(name, threads, data())
        fitted.save(tmp_path / "m.rw")
        files.append((tmp_path / "m.rw").read_bytes())
    assert files[0] == files[1] == files[2]
    shuffled = fit(name, 2, data(RNG.permutation(N)))
    assert (shuffled.predict(X) == fitted.predict(X)).all()
