"""Callbacks of a fit: what they are called with, how they end it, and early stopping too."""

import pytest
from small_data import small_data

import rankwright as rw
from rankwright.errors import UsageError

TRAIN, VALID = small_data(seed=1), small_data(seed=2)


def mart(**parameters):
    return rw.LambdaMART(**{"n_estimators": 12, "num_leaves": 4, **parameters})


def test_they_see_what_the_curves_record():
    seen = []
    fitted = mart().fit(TRAIN, eval_set={"b": TRAIN, "a": VALID}, callbacks=[seen.append])
    assert [one.number for one in seen] == list(range(1, 13))
    assert [one.loss for one in seen] == fitted.curve_["loss"]
    for name in ("a", "b"):
        curve = fitted.evals_result_[name]["ndcg@10"]
        assert [one.metrics[name] for one in seen] == curve
    assert seen[-1].best_iteration == fitted.best_iteration_


@pytest.mark.parametrize(
    "ranker",
    [mart(), rw.RankNet(epochs=6, hidden_layer_sizes=(3,)), rw.RankBoost(n_rounds=6)],
    ids=lambda one: one.name,
)
def test_true_ends_the_fit_and_the_others_are_still_called(ranker):
    seen = []
    fitted = ranker.fit(TRAIN, callbacks=[lambda now: now.number == 4, seen.append])
    assert len(seen) == fitted.best_iteration_ == 4
    assert seen[0].metrics == {}
    assert seen[-1].best_iteration == 4


def test_a_number_that_is_not_true_ends_nothing():
    assert mart().fit(TRAIN, callbacks=[lambda now: now.number]).best_iteration_ == 12


def test_early_stopping_and_callbacks_both_end_a_fit():
    stopping = {"n_estimators": 300, "learning_rate": 0.8, "early_stopping_rounds": 3}
    early = mart(**stopping).fit(TRAIN, eval_set=VALID)
    last = len(early.curve_["loss"])
    seen = []
    again = mart(**stopping).fit(TRAIN, eval_set=VALID, callbacks=[seen.append])
    assert len(seen) == last < 300
    assert again.best_iteration_ == early.best_iteration_ == last - 3
    sooner = mart(**stopping).fit(TRAIN, eval_set=VALID, callbacks=[lambda now: now.number == 2])
    assert len(sooner.curve_["loss"]) == 2


def test_an_error_of_a_callback_comes_through():
    def fails(now):
        raise RuntimeError(f"in iteration {now.number}")

    with pytest.raises(RuntimeError, match="in iteration 1"):
        mart().fit(TRAIN, callbacks=[fails])


def test_a_resumed_run_shows_each_iteration_once(tmp_path):
    class KilledError(Exception):
        pass

    first, second = [], []

    def killed(now):
        first.append(now.number)
        if now.number == 7:
            raise KilledError

    kept = {"checkpoint": rw.Checkpoint(tmp_path / "run", every=2)}
    with pytest.raises(KilledError):
        mart().fit(TRAIN, eval_set=VALID, callbacks=[killed], **kept)
    fitted = mart().fit(
        TRAIN,
        eval_set=VALID,
        callbacks=[lambda now: second.append(now.number)],
        checkpoint=rw.Checkpoint(tmp_path / "run", every=2, resume=True),
    )
    assert second == list(range(fitted.resumed_from_ + 1, 13))
    assert fitted.curve_ == mart().fit(TRAIN, eval_set=VALID).curve_


@pytest.mark.parametrize("wrong", [print, 3, [3], ["print"]])
def test_what_is_no_list_of_functions_is_refused(wrong):
    with pytest.raises(UsageError, match=r"callback.* function"):
        mart().fit(TRAIN, callbacks=wrong)


def test_progress_may_be_true_or_a_function(capsys):
    data = small_data(queries=6)
    shown = []
    boosted = rw.LambdaMART(n_estimators=3, min_child_samples=2)
    boosted.fit(data, progress=lambda t, text: shown.append((t, text)))
    assert len(shown) == 3
    assert capsys.readouterr().err == ""
    boosted.fit(data, progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert [tuple(line.strip().split("  ", 1)) for line in lines] == [
        (str(t), text) for t, text in shown
    ]
    boosted.set_params(verbose=True).fit(data, progress=False)
    assert capsys.readouterr().err == ""
    with pytest.raises(rw.errors.UsageError, match="progress must be True, or a function"):
        boosted.fit(data, progress=5)
