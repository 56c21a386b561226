"""What a comparison holds: runs, wins, tests against brute force, and letters."""

import numpy as np
import pytest
from compared import QUICK

import rankwright
from rankwright.comparison.compare import compare


def test_scores_and_models_go_with_the_test_part_of_their_fold(found):
    for number, fold in enumerate(found.folds):
        for label in found.rankers:
            scores = found.scores[label][number]
            assert scores.shape == fold.test.y.shape
            loaded = rankwright.load_model(found.models[label][number])
            np.testing.assert_array_equal(loaded.predict(fold.test), scores)


def test_runs_tell_parameters_curves_time_and_size(found):
    run = found.runs["gbdt:n_estimators=5"][1]
    assert run.fold == 1
    assert run.parameters["n_estimators"] == 5
    assert run.tuned == {}
    assert len(run.curve["valid ndcg@10"]) == 5
    assert 1 <= run.best_iteration <= 5
    assert run.seconds > 0
    assert run.size == run.model.stat().st_size


def test_wins_ties_and_losses_are_counted_query_by_query(found):
    test = found.test("ranksvm", "ndcg@5")
    a, b = (found.per_query[label]["ndcg@5"] for label in ("ranksvm", found.baseline))
    gain = [x - y for x, y in zip(a, b, strict=True)]
    assert test.wins == sum(g > 1e-12 for g in gain)
    assert test.losses == sum(g < -1e-12 for g in gain)
    assert test.wins + test.ties + test.losses == len(found.qid)
    assert test.difference == pytest.approx(np.mean(gain))
    assert found.test(found.baseline, "ndcg@5") is None


def test_where_less_is_better_a_win_is_a_lower_value(data, cache):
    found = compare(data, QUICK, metrics="pair_error", folds=3, cache=cache)
    test = found.test("ranksvm", "pair_error")
    a, b = (found.per_query[label]["pair_error"] for label in ("ranksvm", found.baseline))
    assert test.wins == int((a < b - 1e-12).sum()) > 0


def test_letters_name_what_a_ranker_is_significantly_better_than(data, cache):
    given = {"good": "ranksvm", "none": np.zeros(240), "bad": np.random.default_rng(0).random(240)}
    found = compare(data, given, folds=3, cache=cache, baseline="all", metrics="ndcg@10")
    lines = str(found).splitlines()
    assert lines[1].split()[:4] == [
        "a",
        "good",
        f"{found.intervals['good']['ndcg@10'].mean:.4f}",
        "bc",
    ]
    assert lines[2].split()[:2] == ["b", "none"]
    assert "a letter after a value: significantly better" in lines[-1]
