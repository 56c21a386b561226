"""Checks that every model passes: `check_model` runs them, `model_checks` lists them.

Models are fitted to 20 queries of 12 documents under two losses, or under one if the model refuses
the others with a sentence. A model that optimises a metric instead of a loss is fitted to metrics.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from rankwright.core.parameters import check_parameters, params_of, part_name, resolve_part
from rankwright.core.types import F64, Round
from rankwright.data.ranking_data import RankingData
from rankwright.errors import RankwrightError
from rankwright.metrics.base import metric
from rankwright.metrics.evaluation import evaluate
from rankwright.testing.contract import Check, require, require_close, require_equal, run_checks

LOSSES = ("ranknet", "squared", "listnet", "pair_hinge")
METRICS = ("ndcg@10", "map")


def check_model(model: Any) -> None:
    """Raise `ContractError` if ``model`` fails a check of models.

    Parameters
    ----------
    model : model or str
        An object with ``rounds(loss, data, valid, ...)``, or a name of ``rankwright list models``.
        Few rounds make the checks fast.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.testing.check_model(rw.models.Linear())
    """
    part = resolve_part("models", model)
    run_checks(f"model '{part_name('models', part)}'", part, model_checks(part))


def model_checks(model: Any) -> list[Check]:  # noqa: ARG001
    """Return the checks that ``model`` must pass.

    Returns
    -------
    list of callables
        Each takes the model and raises an error if the model fails.

    Examples
    --------
    >>> import rankwright as rw
    >>> model = rw.models.Linear()
    >>> for check in rw.testing.model_checks(model)[:2]:
    ...     check(model)
    """
    return [
        check_fit,
        check_scores,
        check_random_state,
        check_row_order,
        check_rounds,
        check_model_of_a_round,
        check_resume,
        check_restore,
    ]


# --- helpers of the checks -----------------------------------------------------------------------


def small_data(seed: int = 0, queries: int = 20, documents: int = 12) -> RankingData:
    """Return data whose grades follow the sum of the first two of four features, with noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(queries * documents, 4))
    utility = X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=len(X))
    y = np.digitize(utility, np.quantile(utility, [1 / 3, 2 / 3]))
    return RankingData.from_arrays(X, y, qid=np.repeat(np.arange(queries), documents))


def objectives(model: Any) -> Iterator[Any]:
    """Yield two losses that the model accepts, or two metrics."""
    if next(iter(inspect.signature(model.rounds).parameters), "loss") == "metric":
        yield from map(metric, METRICS)
        return
    accepted, refusal = 0, ""
    for name in LOSSES:
        loss = resolve_part("losses", name)
        try:
            fitted(model, loss, small_data(queries=4))
        except RankwrightError as error:
            refusal = str(error)
            continue
        yield loss
        accepted += 1
        if accepted == 2:
            return
    require(accepted, f"it refuses all of the losses {', '.join(LOSSES)}: {refusal}")


def fitted(model: Any, objective: Any, data: RankingData, **options: Any) -> Any:
    """Return the fitted model of the last round."""
    rounds = list(model.rounds(objective, data, **options))
    require(rounds, "rounds yields no round.")
    return rounds[-1].model()


def scores_of(learnt: Any, data: RankingData) -> F64:
    """Return the scores of a fitted model, which may depend on the other documents of a query."""
    in_lists: Callable[[RankingData], F64] | None = getattr(learnt, "scores_of", None)
    return learnt.scores(data.X) if in_lists is None else in_lists(data)


# --- checks --------------------------------------------------------------------------------------


def check_fit(model: Any) -> None:
    """The model has rounds(loss, data, valid, start=, random_state=, n_jobs=), and learns."""
    require(hasattr(model, "rounds"), "it has no method rounds(loss, data).")
    check_parameters(model)
    parameters = inspect.signature(model.rounds).parameters
    for name in ("valid", "start", "random_state", "n_jobs"):
        require(name in parameters, f"rounds has no parameter {name}.")
    before, data = repr(params_of(model)), small_data()
    chance = np.random.default_rng(1).random(data.n_documents)
    for objective in objectives(model):
        ndcg, ndcg_by_chance = (
            evaluate(data, s, "ndcg@10")["ndcg@10"]
            for s in (scores_of(fitted(model, objective, data), data), chance)
        )
        require(
            ndcg > ndcg_by_chance + 0.05,
            f"under {objective!r} its NDCG@10 on the training data is {ndcg:.3f}; random scores "
            f"have {ndcg_by_chance:.3f}.",
        )
    require(repr(params_of(model)) == before, "rounds changes a parameter.")


def check_scores(model: Any) -> None:
    """There is a finite score for each row, in float64, and the number of features is known."""
    data, other = small_data(), small_data(1, queries=3)
    for objective in objectives(model):
        learnt = fitted(model, objective, data)
        require(learnt.n_features == data.n_features, "n_features differs from the data.")
        s = scores_of(learnt, other)
        require(isinstance(s, np.ndarray) and s.dtype == np.float64, "scores are not float64.")
        require(s.shape == (other.n_documents,), f"scores have the shape {s.shape}.")
        require(np.isfinite(s).all(), "a score is not finite.")


def check_random_state(model: Any) -> None:
    """The same random_state gives the same bits, for any number of threads."""
    data = small_data()
    for objective in objectives(model):
        runs = [
            scores_of(fitted(model, objective, data, random_state=3, n_jobs=n_jobs), data)
            for n_jobs in (1, 1, 2)
        ]
        require_equal(runs[1], runs[0], ("the score of a second fit", "that of the first"))
        require_equal(runs[2], runs[0], ("the score of two threads", "that of one"))


def check_row_order(model: Any) -> None:
    """Shuffled rows and renamed queries change nothing."""
    data = small_data()
    rows = np.random.default_rng(2).permutation(data.n_documents)
    names = np.array([f"q{number}" for number in data.query_of_row()])
    moved = RankingData.from_arrays(data.X[rows], data.y[rows], qid=names[rows])
    for objective in objectives(model):
        before = scores_of(fitted(model, objective, data), data)
        after = moved.in_caller_order(scores_of(fitted(model, objective, moved), moved))
        require_close(after, before[rows], ("the score after", "before"), rtol=1e-4, atol=1e-5)


def check_rounds(model: Any) -> None:
    """Rounds count from 1 and have a finite loss and the scores of the validation data."""
    data, valid = small_data(), small_data(1)
    for objective in objectives(model):
        rounds: list[Round] = list(model.rounds(objective, data, valid))
        require(rounds, "rounds yields no round.")
        numbers = [round_.number for round_ in rounds]
        require(
            numbers == list(range(1, len(numbers) + 1)),
            f"the numbers of the rounds are {numbers[:5]}, not 1, 2, ...",
        )
        for round_ in rounds:
            require(np.isfinite(round_.loss), f"the loss of round {round_.number} is not finite.")
            s = round_.valid_scores
            require(s is not None, f"round {round_.number} has no scores of the validation data.")
            require(np.shape(s) == (valid.n_documents,), f"valid_scores have shape {np.shape(s)}.")


def check_model_of_a_round(model: Any) -> None:
    """The model of a round, also if built after later rounds, has the scores of that round."""
    data, valid = small_data(), small_data(1)
    for objective in objectives(model):
        shown = [
            (round_, np.array(round_.valid_scores))
            for round_ in model.rounds(objective, data, valid)
        ]
        for round_, s in (shown[0], shown[-1]):
            names = ("a score of the fitted model", f"valid_scores of round {round_.number}")
            require_close(scores_of(round_.model(), valid), s, names, rtol=1e-6, atol=1e-9)


def check_resume(model: Any) -> None:
    """A run that is resumed from the state of a round ends with the same model."""
    if not getattr(model, "resumable", False):
        return
    data, valid = small_data(), small_data(1)
    for objective in objectives(model):
        whole = model.rounds(objective, data, valid)
        first = next(whole)
        state = {name: np.array(array) for name, array in first.state().items()}
        last = [first, *whole][-1]
        again = fitted(model, objective, data, valid=valid, resume=state)
        names = ("the score of the resumed model", "that of an uninterrupted fit")
        require_equal(scores_of(again, valid), scores_of(last.model(), valid), names)


def check_restore(model: Any) -> None:
    """A model restored from its arrays and texts has the same scores, if it has them."""
    data = small_data()
    for objective in objectives(model):
        learnt = fitted(model, objective, data)
        if not hasattr(learnt, "arrays") and not hasattr(model, "restore"):
            return
        for method in ("arrays", "texts"):
            require(hasattr(learnt, method), f"the fitted model has no {method}().")
        require(hasattr(model, "restore"), "the model has no restore(arrays, texts, n_features).")
        arrays = {name: np.array(array) for name, array in learnt.arrays().items()}
        texts = learnt.texts()
        require(all(isinstance(text, str) for text in texts.values()), "a text is no str.")
        again = type(model).restore(arrays, texts, learnt.n_features)
        names = ("the score of the restored model", "that of the fitted one")
        require_equal(scores_of(again, data), scores_of(learnt, data), names)
