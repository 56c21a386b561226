"""Categories over partitions: each part may know others, and all are brought together by value."""

import numpy as np
import pandas as pd
import pytest

import rankwright as rw
from rankwright.distributed.fitting import fit
from rankwright.distributed.partitions import Partitions
from rankwright.errors import IncompatibleError

SMALL = {"n_estimators": 4, "num_leaves": 7, "min_child_samples": 10}


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    n = 800
    made = pd.DataFrame({"qid": np.arange(n) // 10, "x": rng.normal(size=n)})
    shops = np.where(
        np.arange(n) < n // 2, rng.choice(list("abcd"), n), rng.choice(list("cdef"), n)
    )
    made["shop"] = pd.Categorical(shops)
    worth = made["shop"].astype(str).map(dict(zip("abcdef", (0, 3, 1, 4, 0, 3), strict=True)))
    made["label"] = np.digitize(made["x"] + worth, [1, 3])
    return made


def test_files_with_other_categories_make_the_data_of_the_whole(client, frame, tmp_path):
    for number, half in enumerate((frame[:400], frame[400:])):
        part = half.assign(shop=half["shop"].cat.remove_unused_categories())
        part.to_parquet(tmp_path / f"part-{number}.parquet")
    parts = Partitions.of(str(tmp_path / "part-*.parquet"), client=client)
    assert parts.categories["shop"].values == tuple("abcdef")
    whole = rw.RankingData.from_frame(frame, qid="qid", label="label")
    here = [part.X for part in parts.backend.results(parts.parts)]
    np.testing.assert_array_equal(np.concatenate(here), whole.X)
    fitted = fit(rw.GBDT(**SMALL), parts)
    alone = fit(rw.GBDT(**SMALL), Partitions.of(whole, client=client, n_parts=2))
    assert fitted.categories_ == alone.categories_ == whole.categories
    assert (fitted.predict(frame) == alone.predict(whole)).all()
    near = rw.GBDT(**SMALL).fit(whole)  # bins of all rows, in one process
    np.testing.assert_allclose(fitted.predict(whole), near.predict(whole), atol=1e-6)
    with pytest.raises(IncompatibleError, match="'shop' is a category"):
        fit(rw.MEMR(), parts)


def test_a_dask_frame_has_categories(client, frame):
    dask_frames = pytest.importorskip("dask.dataframe")
    parts = Partitions.of(dask_frames.from_pandas(frame, npartitions=2), client=client)
    assert parts.categories["shop"].values == tuple("abcdef")
