"""Small ranking data: random for models and rankers, by hand for metrics."""

import numpy as np

from rankwright.data.ranking_data import RankingData
from rankwright.metrics.evaluation import evaluate


def small_data(queries=30, documents=20, features=6, grades=3, seed=0, dtype=np.float64, **more):
    """Grades follow the sum of the first two features, with noise."""
    rng = np.random.default_rng(seed)
    n = queries * documents
    X = rng.normal(size=(n, features)).astype(dtype)
    utility = X[:, 0] + X[:, 1] + rng.normal(size=n) * 0.5
    y = np.digitize(utility, np.quantile(utility, np.arange(1, grades) / grades))
    return RankingData.from_arrays(X, y, qid=np.repeat(np.arange(queries), documents), **more)


def lists(*grades, **columns):
    """Return queries with these grades and no features."""
    y = np.concatenate([np.asarray(g, float) for g in grades])
    sizes = [len(g) for g in grades]
    return RankingData.from_arrays(np.zeros((len(y), 1)), y, group_sizes=sizes, **columns)


def value_of_ranking(name, *grades, scores=None, **options):
    """Return a metric of one query, by default of documents with these grades from the top down."""
    scores = range(len(grades), 0, -1) if scores is None else scores
    return evaluate(lists(grades), list(scores), name, **options)[name]
