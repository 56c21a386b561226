"""Small models of LightGBM, XGBoost and CatBoost, and rows that find out where scores differ."""

import numpy as np
import pytest

from rankwright.errors import RankwrightError

SIZES = np.full(20, 20)
QID = np.repeat(np.arange(20), 20)
NAMES = ["price", "clicks", "tiny", "age", "kind", "side"]
CATEGORY = 4  # the column that holds category numbers


def training_data(seed=0):
    """Return features with gaps, zeros, tiny numbers and a column of categories, and grades."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(400, 6))
    X[:, 1] = np.round(X[:, 1] * 2)  # zeros, and ties with thresholds
    X[:, 2] *= 1e-38  # below what LightGBM takes for 0
    X[:, CATEGORY] = rng.integers(0, 40, 400)
    X[:, 5] = rng.integers(0, 3, 400) - 1.0
    effect = rng.normal(size=40)
    y = np.nan_to_num(X[:, 0]) + X[:, 1] + X[:, 2] * 1e38 + effect[X[:, CATEGORY].astype(int)]
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, np.digitize(y, [-1.0, 0.5, 2.0])


def rows(thresholds=(), *, infinite=False):
    """Return rows to be scored: ordinary ones, and numbers at and beside thresholds."""
    rng = np.random.default_rng(1)
    X, _ = training_data(2)
    near = [np.float64(t) for t in thresholds]
    near += [np.nextafter(t, side) for t in near for side in (-np.inf, np.inf)]
    with np.errstate(over="ignore", under="ignore"):
        single = np.array(list(thresholds), np.float32)
    for side in (-np.inf, np.inf):
        with np.errstate(over="ignore", under="ignore"):
            beside = np.nextafter(single, np.float32(side))
        near += [np.float64(t) for t in beside]
        near += [(np.float64(a) + np.float64(b)) / 2 for a, b in zip(single, beside, strict=True)]
    odd = [0.0, -0.0, 1e-45, -1e-45, 1e-40, 1e-35, -1e-35, 1e30, -1e30, 5e-324, 40.0, 1.5, -0.5]
    odd += [0.99999999999, 1e300, -1e300, 3.4028235e38, np.nan, *near]
    odd = [number for number in odd if not np.isinf(number)]
    odd += [np.inf, -np.inf] if infinite else []
    more = X[rng.integers(0, len(X), 300)]
    more[np.arange(300), rng.integers(0, X.shape[1], 300)] = rng.choice(odd, 300)
    return np.concatenate([X, more, np.zeros((1, 6)), np.full((1, 6), np.nan)])


def refused(call, *words):
    """Check that a call is refused with one line that has these words."""
    with pytest.raises(RankwrightError) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text
    assert all(word in text for word in words), text
