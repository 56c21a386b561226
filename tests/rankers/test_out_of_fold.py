"""`out_of_fold` against loops written out by hand."""

import time
from dataclasses import replace

import numpy as np
import pytest
from small_data import small_data

import rankwright as rw
from rankwright import comparison
from rankwright.data.query_folds import deal_queries
from rankwright.errors import DataError, UsageError
from rankwright.rankers.out_of_fold import best_rounds, fold_scores

DATA = small_data(queries=12, documents=8)
ALL = np.arange(12)


def by_hand(make, folds):
    scores = np.empty(DATA.n_documents)
    for test in folds:
        fitted = make().fit(DATA.select(np.setdiff1d(ALL, test)))
        scores[DATA.rows_of(test)] = fitted.predict(DATA.select(test))
    return scores


def test_every_document_is_scored_by_the_fit_without_its_query():
    folds = deal_queries(DATA, 3, seed=4)
    began = time.perf_counter()
    found = comparison.out_of_fold(rw.MEMR(l2=0.5), DATA, 3, random_state=4)
    assert sum(fit.seconds for fit in found.fits) <= time.perf_counter() - began
    np.testing.assert_array_equal(found.scores, by_hand(lambda: rw.MEMR(l2=0.5), folds))
    assert [fit.queries.tolist() for fit in found.fits] == [test.tolist() for test in folds]
    assert [fit.n_fitted for fit in found.fits] == [8, 8, 8]
    assert all(fit.ranker is None and fit.seconds > 0.0 for fit in found.fits)
    assert sorted(np.concatenate(folds)) == ALL.tolist()


def best_of(curves):
    total = np.sum(curves, axis=0)
    return int(np.argmax([total[max(0, t - 2) : t + 3].mean() for t in range(len(total))])) + 1


def test_rounds_of_a_fold_are_those_of_the_best_mean_curve_of_the_others():
    def make(n=25):
        return rw.GBDT(n_estimators=n, min_child_samples=3)

    folds, curves = deal_queries(DATA, 3), []
    for test in folds:
        fitted = make().fit(DATA.select(np.setdiff1d(ALL, test)), eval_set=DATA.select(test))
        curves.append(len(test) * np.array(fitted.curve_["valid ndcg@10"]))
    of_fold = [best_of(curves[:k] + curves[k + 1 :]) for k in range(3)]
    ranker = make()
    found = rw.out_of_fold(ranker, DATA, 3, choose_rounds=True)
    assert found.rounds == best_of(curves)
    assert [fit.best_iteration for fit in found.fits] == of_fold
    assert len(set(of_fold)) > 1
    rounds = iter(of_fold)
    np.testing.assert_array_equal(found.scores, by_hand(lambda: make(next(rounds)), folds))
    assert found.rounds_for(8) == found.rounds
    assert found.rounds_for(32) == 2 * found.rounds
    assert ranker.n_estimators == 25


def test_the_grades_of_a_single_fold_choose_nothing():
    test = deal_queries(DATA, 3)[0]
    parts = [(np.setdiff1d(ALL, test), test)]
    made = rw.GBDT(n_estimators=20, min_child_samples=3)
    other = DATA.y.copy()
    other[DATA.rows_of(test)] = other[DATA.rows_of(test)][::-1]
    one, same = (best_rounds(made, data, parts) for data in (DATA, replace(DATA, y=other)))
    assert one == same
    assert one.of_fold == (one.of_all,)


def test_a_metric_that_falls_chooses_its_lowest_round(monkeypatch):
    made = rw.GBDT(n_estimators=12, metric="pair_error", early_stopping_rounds=3)
    found = rw.out_of_fold(made, DATA, 2, choose_rounds=True)
    rising = rw.GBDT(n_estimators=12, metric="pair_error", early_stopping_rounds=3)
    monkeypatch.setattr(type(rw.metric("pair_error")), "maximise", True)
    assert rw.out_of_fold(rising, DATA, 2, choose_rounds=True).rounds != found.rounds


def test_a_model_without_rounds_is_fitted_as_it_is():
    plain, chosen = (rw.out_of_fold("memr", DATA, 3, choose_rounds=c) for c in (False, True))
    assert chosen.rounds is None
    assert chosen.rounds_for(100) is None
    np.testing.assert_array_equal(plain.scores, chosen.scores)


def test_neither_names_nor_the_order_of_rows_change_the_folds():
    rows = np.random.default_rng(0).permutation(DATA.n_documents)
    names = np.array([f"q{number:02}" for number in 11 - DATA.query_of_row()])
    shuffled = rw.RankingData.from_arrays(DATA.X[rows], DATA.y[rows], qid=names[rows])
    a = rw.out_of_fold("memr", DATA, 3).scores
    b = shuffled.in_caller_order(rw.out_of_fold("memr", shuffled, 3).scores)
    np.testing.assert_allclose(b, a[rows], rtol=1e-9, atol=1e-9)


def test_ctrl_c_in_a_fit_ends_all_after_it_was_shown():
    shown = []

    def interrupt(t, _text):
        if t == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fold_scores(rw.GBDT(), DATA, [(ALL[4:], ALL[:4])], shown.append, interrupt)
    assert [fit.best_iteration for fit in shown] == [3]


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        ((3, DATA), UsageError, "takes a ranker or its name, not int"),
        (("memr", DATA.X), UsageError, "takes RankingData, not ndarray; RankingData.from_arrays"),
        (("memr", DATA, 1), UsageError, "folds must be 2 or more, not 1"),
        (("memr", DATA, 13), DataError, "12 queries cannot be cut into 13 folds"),
        (("memr", DATA, "five"), UsageError, "folds must be a whole number"),
    ],
)
def test_wrong_arguments_are_reported(arguments, error, sentence):
    with pytest.raises(error, match=sentence):
        rw.out_of_fold(*arguments)
