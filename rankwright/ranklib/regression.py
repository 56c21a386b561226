"""Linear regression's constant, and the regression that RankLib solves in its place.

RankLib leaves the last feature out of the equations and saves the constant as that feature's
weight, and the first feature's weight as the constant (feature 0). ``--strict`` does the same.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import linalg

from rankwright.core.types import F64
from rankwright.data.ranking_data import RankingData
from rankwright.ranklib.columns import matrix
from rankwright.ranklib.java_numbers import java_double
from rankwright.ranklib.model_text import ModelText
from rankwright.ranklib.model_weights import Terms


def with_constant(model: ModelText, data: RankingData, l2: float) -> ModelText:
    """Return a regression with the constant that makes scores on ``data`` right in the mean."""
    body = model.body
    assert isinstance(body, Terms)
    constant = float(np.mean(data.y - body.scores(data.X)))
    terms = Terms(np.append(0, body.features), np.append(constant, body.weights))
    return replace(model, settings=_settings(l2), body=terms)


def as_ranklib_solves(data: RankingData, l2: float) -> ModelText:
    """Return RankLib's own regression on ``data``, slips included."""
    d = data.n_features
    known = matrix(data.X, list(range(1, d)))
    A: F64 = np.column_stack([known, np.ones(data.n_documents)])
    equations = A.T @ A + l2 * np.eye(d)
    w: F64 = linalg.solve(equations, A.T @ data.y, assume_a="pos")
    return ModelText(
        "Linear Regression", _settings(l2), Terms(np.arange(d + 1), np.append(w[0], w))
    )


def _settings(l2: float) -> tuple[tuple[str, str], ...]:
    return (("Lambda", java_double(l2)),)
