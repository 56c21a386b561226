"""What every model promises: `check_model` runs it on any, `model_checks` lists the properties.

Models are fitted to 20 queries of 12 documents under two losses, or under one where the model
refuses the others by a sentence; a model whose ``fit`` takes a metric is fitted to that.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from rankwright.core.parameters import check_parameters, params_of, part_name, resolve_part
from rankwright.core.types import F64
from rankwright.data.ranking_data import RankingData
from rankwright.errors import RankwrightError
from rankwright.metrics.base import metric
from rankwright.metrics.evaluation import evaluate
from rankwright.testing.contract import Check, require, require_close, require_equal, run_checks

LOSSES = ("ranknet", "squared", "listnet", "pair_hinge")
METRICS = ("ndcg@10", "map")


def check_model(model: Any) -> None:
    """Raise `ContractError` unless ``model`` keeps what every model promises.

    Parameters
    ----------
    model : model or str
        An object with ``fit(loss, data, ...)``, or a name of ``rankwright list models``. One with
        few rounds is checked sooner.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.testing.check_model(rw.models.Linear())
    """
    made = resolve_part("models", model)
    run_checks(f"model '{part_name('models', made)}'", made, model_checks(made))


def model_checks(model: Any) -> list[Check]:  # noqa: ARG001
    """Return the properties that ``model`` must have.

    Returns
    -------
    list of callables
        Each takes the model, and raises where the property does not hold.

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
        check_callback,
        check_best_iteration,
        check_stop,
        check_restore,
    ]


# --- what the checks share -----------------------------------------------------------------------


def small_data(seed: int = 0, queries: int = 20, documents: int = 12) -> RankingData:
    """Return data whose grades follow the sum of the first two of four features, with noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(queries * documents, 4))
    utility = X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=len(X))
    y = np.digitize(utility, np.quantile(utility, [1 / 3, 2 / 3]))
    return RankingData.from_arrays(X, y, qid=np.repeat(np.arange(queries), documents))


class RecordingCallback:
    """A callback that keeps what it is shown, ends the run at ``stop_at`` and keeps ``keep``."""

    wants_train = True
    wants_state = False

    def __init__(
        self, valid: RankingData | None = None, stop_at: int | None = None, keep: int | None = None
    ) -> None:
        self.valid, self.stop_at, self.keep = valid, stop_at, keep
        self.interrupted = False
        self.shown: list[tuple[int, float, F64 | None, F64 | None]] = []

    def on_iteration(self, t: int, value: float, train: F64 | None, valid: F64 | None) -> bool:
        """Keep what was shown."""
        train, valid = (None if one is None else np.array(one) for one in (train, valid))
        self.shown.append((t, value, train, valid))
        return t == self.stop_at

    def best(self) -> int:
        """Return the iteration to keep: the last one, unless another was chosen."""
        return self.keep or (self.shown[-1][0] if self.shown else 0)

    def load_state(self) -> None:
        """Begin at the beginning."""

    def save_state(self, *_: Any) -> None:
        """Keep nothing."""


def objectives(model: Any) -> Iterator[Any]:
    """Yield what the model is fitted to: two losses that it does not refuse, or two metrics."""
    first = next(iter(inspect.signature(_fitting_method(model)).parameters), "loss")
    if first == "metric":
        yield from map(metric, METRICS)
        return
    taken, refused = 0, ""
    for name in LOSSES:
        loss = resolve_part("losses", name)
        try:
            fitted(model, loss, small_data(queries=4))
        except RankwrightError as sentence:
            refused = str(sentence)
            continue
        yield loss
        taken += 1
        if taken == 2:
            return
    require(taken, f"it refuses all of the losses {', '.join(LOSSES)}: {refused}")


def _fitting_method(model: Any) -> Callable[..., Any]:
    method: Callable[..., Any] = getattr(model, "rounds", None) or model.fit
    return method


def fitted(
    model: Any, objective: Any, data: RankingData, callback: Any = None, **options: Any
) -> Any:
    """Return what ``model`` learns."""
    watched = RecordingCallback() if callback is None else callback
    if not hasattr(model, "rounds"):
        return model.fit(objective, data, callback=watched, **options)
    models = {}
    for round_ in model.rounds(objective, data, watched.valid, **options):
        models[round_.number] = round_.model
        if watched.on_iteration(round_.number, round_.loss, None, round_.valid_scores):
            break
    return models[watched.best()]()


def scores_of(learnt: Any, data: RankingData) -> F64:
    """Return the scores of a fitted model, by lists where it looks at lists."""
    in_lists: Callable[[RankingData], F64] | None = getattr(learnt, "scores_of", None)
    return learnt.scores(data.X) if in_lists is None else in_lists(data)


# --- properties ----------------------------------------------------------------------------------


def check_fit(model: Any) -> None:
    """The model has fit(loss, data, callback=, start=, random_state=, n_jobs=), and learns."""
    require(
        hasattr(model, "rounds") or hasattr(model, "fit"), "it has no method rounds(loss, data)."
    )
    check_parameters(model)
    method = _fitting_method(model)
    known = inspect.signature(method).parameters
    for name in ("valid" if method.__name__ == "rounds" else "callback", "start", "n_jobs"):
        require(name in known, f"{method.__name__} takes no {name}.")
    before, data = repr(params_of(model)), small_data()
    chance = np.random.default_rng(1).random(data.n_documents)
    for objective in objectives(model):
        found, by_chance = (
            evaluate(data, s, "ndcg@10")["ndcg@10"]
            for s in (scores_of(fitted(model, objective, data), data), chance)
        )
        require(
            found > by_chance + 0.05,
            f"under {objective!r} its NDCG@10 on the training data is {found:.3f}, that of random "
            f"scores {by_chance:.3f}.",
        )
    require(repr(params_of(model)) == before, "fit changes a parameter.")


def check_scores(model: Any) -> None:
    """There is a finite score for each row, in float64, and the number of features is known."""
    data, other = small_data(), small_data(1, queries=3)
    for objective in objectives(model):
        learnt = fitted(model, objective, data)
        require(learnt.n_features == data.n_features, "n_features is not that of the data.")
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


def check_callback(model: Any) -> None:
    """The callback is shown every iteration from 1, its loss and the scores of both data sets."""
    data, valid = small_data(), small_data(1)
    for objective in objectives(model):
        callback = RecordingCallback(valid)
        learnt = fitted(model, objective, data, callback)
        require(callback.shown, "on_iteration was never called.")
        times = [t for t, *_ in callback.shown]
        require(
            times == list(range(1, len(times) + 1)), f"the iterations are {times[:5]}, not 1, 2, …"
        )
        for t, value, train, held in callback.shown:
            require(np.isfinite(value), f"the loss of iteration {t} is {value}.")
            for what, s, of in (("training", train, data), ("validation", held, valid)):
                if s is not None:
                    require(s.shape == (of.n_documents,), f"{what} scores have shape {s.shape}.")
        last = callback.shown[-1][3]
        require(last is not None, "there is validation data, but none of its scores are shown.")
        names = ("a score of the fitted model", "that shown for the last iteration")
        require_close(scores_of(learnt, valid), last, names, rtol=1e-6, atol=1e-9)


def check_best_iteration(model: Any) -> None:
    """The model that is kept is that of the iteration which the callback calls best."""
    data, valid = small_data(), small_data(1)
    for objective in objectives(model):
        callback = RecordingCallback(valid, keep=1)
        learnt = fitted(model, objective, data, callback)
        first = callback.shown[0][3]
        names = ("a score of the fitted model", "that shown for iteration 1")
        require_close(scores_of(learnt, valid), first, names, rtol=1e-6, atol=1e-9)


def check_stop(model: Any) -> None:
    """A callback that answers True ends the run."""
    data, valid = small_data(), small_data(1)
    for objective in objectives(model):
        callback = RecordingCallback(valid, stop_at=2)
        fitted(model, objective, data, callback)
        require(len(callback.shown) <= 2, f"it went on to iteration {callback.shown[-1][0]}.")


def check_restore(model: Any) -> None:
    """A model restored from its arrays and texts scores to the same bits; where it has them."""
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
