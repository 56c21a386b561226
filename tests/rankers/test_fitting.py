"""`run` and the callbacks of a fit, on rounds made by hand and on a small resumable model."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest

import rankwright as rw
from rankwright.core.types import Round
from rankwright.errors import DataError, UsageError
from rankwright.models.linear import FittedLinear
from rankwright.rankers.fitting import (
    EarlyStopping,
    EvaluationHistory,
    UserCallbacks,
    last_model,
    run,
)
from rankwright.testing.models import small_data


def history(data=None, **options):
    sets = {} if data is None else {"valid": data}
    return EvaluationHistory("ndcg@10", "standard", sets, **options)


def rounds_of(values, data, first=1):
    """Yield a round for each value: scores that rank like ``value`` x the grades."""
    rng = np.random.default_rng(0)
    for number, value in enumerate(values, start=first):
        scores = value * data.y + (1 - value) * rng.random(len(data.y))
        yield Round(number, 1.0 - value, scores, lambda n=number: f"model {n}")


def test_the_model_of_the_best_round_is_returned():
    data = small_data()
    result = run(rounds_of([0.1, 1.0, 0.2], data), history(data))
    assert (result.model, result.best_iteration, result.interrupted) == ("model 2", 2, False)


def test_without_validation_data_the_last_round_is_the_best():
    rounds = (Round(n, 0.0, None, lambda n=n: n) for n in (1, 2, 3))
    assert run(rounds, history()).model == 3
    assert last_model(Round(n, 0.0, None, lambda n=n: n) for n in (1, 2)) == 2


def test_early_stopping_ends_the_run_after_so_many_rounds():
    data = small_data()
    record = history(data)
    run(rounds_of([1.0, 0.1, 0.1, 0.1, 0.1], data), record, [EarlyStopping(record, 2)])
    assert record.last == 3
    assert record.best == 1


def test_a_smoothed_maximum_may_be_an_earlier_round():
    data = small_data()
    values = [*np.linspace(0, 1, 15), *np.linspace(1, 0, 15)]
    record = history(data, smooths=True)
    result = run(rounds_of(values, data), record)
    assert result.model == f"model {record.best}"
    assert 10 <= record.best <= 20


def test_ctrl_c_keeps_the_rounds_before_it_and_ends_a_run_without_any():
    data = small_data()

    def interrupted(count):
        yield from rounds_of([0.5] * count, data)
        raise KeyboardInterrupt

    result = run(interrupted(2), history(data))
    assert result.interrupted
    with pytest.raises(KeyboardInterrupt):
        run(interrupted(0), history(data))


def test_every_function_of_the_user_is_called_and_one_may_end_the_run():
    data = small_data()
    record, numbers = history(data), []
    functions = [lambda i: i.number == 2, lambda i: numbers.append(i.number)]
    run(rounds_of([0.1] * 5, data), record, [UserCallbacks(record, functions)])
    assert numbers == [1, 2]


def test_several_sets_are_evaluated_by_their_rows_and_the_last_selects():
    one, two = small_data(1), small_data(2, queries=5)
    record = EvaluationHistory("ndcg@10", "standard", {"one": one, "two": two})
    scores = np.concatenate([one.y, -two.y])
    record(Round(1, 0.0, scores, lambda: None))
    assert record.evals_result()["one"]["ndcg@10"] == [1.0]
    assert record.value < 0.8
    assert set(record.curve) == {"loss", "one ndcg@10", "valid ndcg@10"}


@dataclass(frozen=True)
class Walk:
    """A resumable model for these tests: weights of a random walk; no round can be rebuilt."""

    resumable: ClassVar[bool] = True

    n_rounds: int = 12

    def rounds(
        self, loss, data, valid=None, *, start=None, resume=None, random_state=0, n_jobs=None
    ):
        weights = np.zeros(data.n_features) if resume is None else resume["weights"].copy()
        first = 0 if resume is None else int(resume["round"][0])
        for t in range(first, self.n_rounds):
            weights = weights + np.random.default_rng([random_state, t]).normal(size=len(weights))
            model = FittedLinear(weights)
            scores = None if valid is None else model.scores(valid.X)
            arrays = {"weights": weights, "round": np.array([t + 1])}
            yield Round(
                t + 1, float(weights @ weights), scores, lambda m=model: m, lambda a=arrays: a
            )

    @staticmethod
    def restore(arrays, texts, n_features):
        return FittedLinear(arrays["coef"])


class StopError(Exception):
    pass


def test_a_resumed_run_ends_as_one_that_was_never_stopped(tmp_path):
    data, valid = small_data(), small_data(1)
    whole = rw.Ranker("ranknet", Walk()).fit(data, eval_set=valid)

    def fail(iteration):
        if iteration.number == 8:
            raise StopError

    folder = tmp_path / "run"
    begun = rw.Ranker("ranknet", Walk())
    with pytest.raises(StopError):
        begun.fit(data, eval_set=valid, callbacks=[fail], checkpoint=rw.Checkpoint(folder, every=1))
    again = rw.Ranker("ranknet", Walk())
    again.fit(data, eval_set=valid, checkpoint=rw.Checkpoint(folder, every=1, resume=True))
    assert again.resumed_from_ == 7
    assert again.curve_ == whole.curve_
    assert again.best_iteration_ == whole.best_iteration_
    assert np.array_equal(again.model_.coef, whole.model_.coef)


def test_a_model_that_cannot_be_resumed_refuses_a_checkpoint(tmp_path):
    fixed = SimpleNamespace(rounds=Walk().rounds, restore=Walk.restore)
    with pytest.raises(UsageError, match="cannot be resumed"):
        rw.Ranker("ranknet", fixed).fit(small_data(), checkpoint=tmp_path / "run")


class Forgetful(Walk):
    """Loses its state, as a checkpoint that another program has written would."""

    def rounds(self, *args, resume=None, **options):
        return super().rounds(*args, resume=None if resume is None else {}, **options)


def test_a_checkpoint_without_its_state_is_an_error_of_the_data(tmp_path):
    folder, data = tmp_path / "run", small_data()
    rw.Ranker("ranknet", Forgetful(3)).fit(data, checkpoint=folder)
    with pytest.raises(DataError, match="not from this run or damaged"):
        rw.Ranker("ranknet", Forgetful(3)).fit(data, checkpoint=rw.Checkpoint(folder, resume=True))
