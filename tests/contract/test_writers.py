"""Commands that write on a full disk, in a read-only folder, or beside one another."""

import numpy as np
from forks import statuses_of_forks
from small_data import small_data
from writing_verbs import OBSTACLES, run_all

import rankwright
from rankwright.comparison.run_cache import RunCache

QUICK = (
    *("train", "checkpoint", "tune storage", "evaluate", "rank csv", "ranklib", "export json"),
    *("convert txt", "convert store", "convert parquet"),
)
"""One for each way of writing; `make soak` runs all."""


def test_what_cannot_be_written_is_a_sentence_and_leaves_what_was_there(tmp_path):
    nothing_wrong = dict.fromkeys(QUICK, "")
    assert run_all(OBSTACLES, tmp_path, QUICK) == dict.fromkeys(OBSTACLES, nothing_wrong)


def test_processes_that_store_the_same_run_at_once_all_find_it_whole(tmp_path):
    ranker = rankwright.ranker("ranksvm").fit(small_data(queries=4, documents=5, features=2))
    scores = np.arange(20.0)

    def store_and_find():
        for key in range(20):
            cache = RunCache(tmp_path)
            cache.store(f"{key:064d}", ranker, scores, {"seconds": 1.0})
            found = cache.find(f"{key:064d}")
            assert found is not None
            assert np.array_equal(found.scores, scores)

    assert statuses_of_forks(4, store_and_find) == [0] * 4
    assert not list(tmp_path.glob(".*"))
