"""What was fitted is found again, what differs is fitted anew, and damaged runs are run again."""

import os

import numpy as np
import pytest
from compared import QUICK, compare_module, count_fits, table

from rankwright.comparison import run_cache
from rankwright.comparison.compare import compare
from rankwright.comparison.run_cache import RunCache, source_digest
from rankwright.data.ranking_data import RankingData
from rankwright.data.streams import partial_beside


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_same_ranker_under_two_names_is_fitted_once(data, tmp_path, jobs):
    found = compare(data, "ranksvm,same=ranksvm", folds=3, cache=tmp_path, jobs=jobs, n_jobs=2)
    assert found.fits == 3
    assert found.per_query["same"]["ndcg@10"] == pytest.approx(
        found.per_query["ranksvm"]["ndcg@10"], abs=0.0
    )


def test_other_libraries_or_sources_are_other_runs(monkeypatch):
    before = source_digest()
    monkeypatch.setattr(run_cache, "_versions", lambda: {"numpy": "0.0"})
    source_digest.cache_clear()
    after = source_digest()
    source_digest.cache_clear()
    assert after != before


def test_a_run_is_not_dropped_because_its_folder_cannot_be_touched(found, cache, monkeypatch):
    def refuse(_):
        raise PermissionError

    kept = RunCache(cache)
    key = found.runs["ranksvm"][0].model.parent.name
    monkeypatch.setattr(run_cache.os, "utime", refuse)
    assert kept.find(key) is not None


def test_the_second_run_fits_nothing_and_says_the_same(found, data, cache, monkeypatch):
    fitted, drawn = count_fits(monkeypatch), []
    for name in ("randomisation", "bootstrap_interval"):
        monkeypatch.setattr(compare_module, name, lambda *_, **__: drawn.append(1))
    again = compare(data, QUICK, folds=3, cache=cache)
    assert fitted == []
    assert drawn == []
    assert (found.fits, again.fits) == (9, 0)
    assert table(again) == table(found)
    assert again.seconds == found.seconds


def test_another_ranker_fits_that_one_alone(data, cache, found, monkeypatch):
    fitted = count_fits(monkeypatch)
    compare(data, [*QUICK, "listnet"], folds=3, cache=cache)
    assert fitted == ["listnet"] * 3


def test_other_metrics_fit_nothing(data, cache, found, monkeypatch):
    fitted = count_fits(monkeypatch)
    compare(data, QUICK, metrics="err@5,p@3", folds=3, cache=cache)
    assert fitted == []


@pytest.mark.parametrize(
    "changed",
    [{"random_state": 1}, {"select": "map"}, {"convention": "letor4"}, {"folds": 4}],
    ids=lambda changed: next(iter(changed)),
)
def test_what_a_fit_depends_on_is_fitted_anew(changed, data, cache, found, monkeypatch):
    fitted = count_fits(monkeypatch)
    compare(data, "ranksvm", **{"folds": 3, "cache": cache, **changed})
    assert fitted == ["ranksvm"] * changed.get("folds", 3)


def test_data_changed_in_one_value_is_other_data(data, cache, found, monkeypatch):
    fitted = count_fits(monkeypatch)
    X = data.X.copy()
    X[0, 0] += 1e-9
    rows = np.repeat(data.qid, data.sizes)
    compare(RankingData.from_arrays(X, data.y, qid=rows), "ranksvm", folds=3, cache=cache)
    assert fitted == ["ranksvm"] * 3


def test_a_damaged_run_is_run_again(data, tmp_path, monkeypatch):
    before = compare(data, "ranksvm", folds=3, cache=tmp_path)
    before.models["ranksvm"][0].write_bytes(b"short")
    (before.models["ranksvm"][1].parent / "run.json").write_text("{")
    fitted = count_fits(monkeypatch)
    again = compare(data, "ranksvm", folds=3, cache=tmp_path)
    assert len(fitted) == 2
    assert table(again) == table(before)


def test_old_runs_and_leftovers_are_dropped_and_nothing_else(tmp_path, data):
    found = compare(data, "ranksvm", folds=3, cache=tmp_path)
    old, *recent = (path.parent for path in found.models["ranksvm"])
    leftover = tmp_path / ".abc.1.partial"  # of a writer that was killed long ago
    leftover.mkdir()
    (tmp_path / "mine.txt").write_text("keep")
    old_test, *tests = tmp_path.glob("*.test.json")
    for path in (old, old_test, leftover, tmp_path / "mine.txt"):
        os.utime(path, (0, 0))
    with partial_beside(tmp_path / "xyz", folder=True) as living:
        RunCache(tmp_path).drop_old()
        assert sorted(tmp_path.iterdir()) == sorted(
            [*recent, *tests, living, tmp_path / "mine.txt"]
        )
