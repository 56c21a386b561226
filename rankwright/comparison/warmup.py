"""Compile all kernels at once, instead of each on first use.

Numba compiles a kernel for the types of its arguments. Therefore every part of the registry runs
once on small data: losses, metrics and rankers on dense float64 features, and products, scoring and
file formats also on float32 and sparse features.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse

from rankwright import registry
from rankwright.core.parallel import thread_count
from rankwright.data.ranking_data import RankingData
from rankwright.errors import MissingExtraError

_FEW_STEPS = {
    "n_estimators": 2,
    "epochs": 1,
    "n_rounds": 2,
    "n_generations": 1,
    "population": 10,
    "n_restarts": 1,
    "n_bags": 1,
}


def warmup(*, n_jobs: int | None = None) -> int:
    """Compile the kernels of all losses, metrics, rankers, click models and formats.

    Run it once after an installation, for example in the build of a container. The kernels are kept
    in the user's cache (``RANKWRIGHT_CACHE``).

    Parameters
    ----------
    n_jobs : int or None
        Number of processes; None is the number of CPUs.

    Returns
    -------
    int
        The number of parts that ran; parts whose optional package is missing are left out.

    Examples
    --------
    >>> from rankwright.comparison.warmup import warmup
    >>> warmup()  # doctest: +SKIP
    94
    """
    parts: list[Callable[[], None]] = [
        *(partial(_fit, name) for name in registry.names("rankers")),
        *(partial(_bind, name) for name in registry.names("losses")),
        _evaluate,
        _convert,
        _fit_other_features,
        *(partial(_fit_clicks, name) for name in ("pbm", "ubm", "dbn", "sdbn", "dcm", "cascade")),
        _evaluate_policy,
    ]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "A worker stopped")  # joblib starts a new one
        ran = Parallel(n_jobs=thread_count(n_jobs))(delayed(_run)(part) for part in parts)
    return sum(ran)


def _run(part: Callable[[], None]) -> bool:
    """Run a part, unless its optional package is missing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the data are small on purpose
        try:
            part()
        except MissingExtraError:
            return False
    return True


def _data(seed: int = 0, dtype: Any = np.float64) -> RankingData:
    rng = np.random.default_rng(seed)
    X = rng.random((120, 5)).astype(dtype)
    y = np.digitize(X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=120), [0.8, 1.2])
    return RankingData.from_arrays(X, y, qid=np.repeat(np.arange(12), 10))


def _fit(name: str) -> None:
    """Fit a ranker with few steps, on validation data too, and predict."""
    ranker = registry.resolve("rankers", name)()
    steps = {key: value for key, value in _FEW_STEPS.items() if key in ranker.get_params()}
    learns_ratings = ranker.model_name in ("factorization", "jrank")
    data, valid = (_ratings(), _ratings()) if learns_ratings else (_data(), _data(1))
    ranker.set_params(**steps).fit(data, eval_set=valid)
    ranker.predict(valid)


def _ratings() -> RankingData:
    from rankwright.data.ratings import ratings_of_triples

    user, item = np.divmod(np.arange(80), 10)
    rated = (user + item) % 3 > 0
    rating = np.random.default_rng(0).integers(1, 6, size=80)
    return ratings_of_triples(user[rated], item[rated], rating[rated])


def _bind(name: str) -> None:
    """Compute value, gradient, curvature and a Hessian product of a loss."""
    data = _data()
    loss = registry.resolve("losses", name)()
    bound = loss.bind(data)
    s, out, curvature = np.linspace(0, 1, data.n_documents), np.empty(120), np.empty(120)
    bound.value(s)
    bound.grad(s, out)
    bound.grad_curv(s, out, curvature)
    if getattr(loss, "hessian", None) is not None:
        bound.hess_vec(s, out)


def _evaluate() -> None:
    """Compute every metric, with ties averaged and with ties broken."""
    from rankwright.metrics.evaluation import evaluate

    data = _data()
    features: Any = data.X
    scores = np.round(features[:, 0], 1)
    for convention in ("standard", "trec_eval", "letor4"):
        evaluate(data, scores, list(registry.names("metrics")), convention=convention)


def _convert() -> None:
    """Write and read LETOR text, dense and sparse."""
    from rankwright.data.files import load, save

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.txt"
        save(_data(), path)
        for options in ({}, {"dtype": "float32"}, {"sparse": True}):
            load(path, **options)


def _fit_other_features() -> None:
    """Fit and score float32 and sparse features."""
    dense: Any = _data().X
    matrices: list[Any] = [dense.astype(np.float32), sparse.csr_array(dense)]
    for X in matrices:
        data = _data()._replace(X=X)
        for name in ("memr", "lambdamart"):
            ranker = registry.resolve("rankers", name)()
            ranker.fit(data).predict(data)


def _log() -> Any:
    from rankwright.clicks import simulate

    return simulate(_data(), 1, sessions=20, swaps="all")


def _fit_clicks(name: str) -> None:
    from rankwright.clicks import model

    log = _log()
    model(name).fit(log).evaluate(log)


def _evaluate_policy() -> None:
    from rankwright.clicks import debias, estimate_propensity

    log = _log()
    debias(log, estimate_propensity(log))
