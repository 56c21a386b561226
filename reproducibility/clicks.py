"""Made-up image search: real-valued click counts on images, each described by a few visual words.

The image set of `stevens2010domination` is not public, so it is made up in its shape: sparse rows
(200 of 10,000 words there, about 2 %), a ranking function per query over all images, feedback that
is the number of times an image was selected for the query, and labels that are mostly noise.

A theme has ``words`` words; an image shows three themes, and half of its words are drawn from them,
the others from all words with a chance that falls with their rank (as in text), 1 / (i + 10)^0.7.
Counts are 1 + geometric, and a row is tf-idf weighted and of unit length. A query looks for three
themes: w_q is |normal| at their words, by which the utility and the clicks of an image are

    u_qi = sum_f w_qf x_if, standardised over the images                                       (1)
    v_qi = sqrt(1 - noise) u_qi + sqrt(noise) e_qi,     e normal                               (2)
    clicks_qi = floor(exp(sharpness (v_qi - t_q))) where v_qi > t_q, 0 elsewhere               (3)

where t_q lets the share ``relevant`` of the images through; counts are capped at 1,000. They are
heavy-tailed: most selected images have one or two clicks, a few have dozens. The images are
cut into train, valid and test at random; all share the queries.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from rankwright.core.rng import stream
from rankwright.core.types import F64, I64
from rankwright.errors import UsageError
from reproducibility.study_data import ends_of_parts

_MOST_CLICKS = 1_000.0
_THEMES_SHOWN = 3


def made_clicks(
    images: int,
    *,
    queries: int = 40,
    features: int = 5_000,
    row: int = 100,
    themes: int = 100,
    words: int = 20,
    relevant: float = 0.01,
    noise: float = 0.9,
    sharpness: float = 2.0,
    sizes: tuple[float, ...] = (0.5, 0.25, 0.25),
    seed: int = 0,
) -> tuple[tuple[str, ...], tuple[Any, Any], tuple[Any, Any], tuple[Any, Any]]:
    """Return the queries' names, and X and clicks of the train, the valid and the test images.

    Parameters
    ----------
    images, queries, features
        How many there are in all.
    row
        Draws of words for an image; some hit the same word.
    themes, words
        What images show, and the words of each theme.
    relevant, noise, sharpness
        Share of images that are selected, share of variance that is noise (2), and how far clicks
        are apart (3).
    sizes
        Shares of train, valid and test.
    """
    ends = ends_of_parts(sizes, images)  # rows are independent, so the first are for train
    if not 0.0 <= noise < 1.0 or not 0.0 < relevant < 1.0:
        raise UsageError("noise and relevant are shares of what there is, below 1.")
    if min(images, queries, row, themes) < 1 or not 1 <= words <= features:
        raise UsageError("clicks need images, queries and words, and no more words than features.")
    rng = stream(seed, "clicks", "themes")
    theme = np.array([rng.choice(features, size=words, replace=False) for _ in range(themes)])
    X = _images(images, features, row, theme, seed)
    clicks = np.empty((images, queries))
    for query in range(queries):
        clicks[:, query] = _clicks(X, query, theme, relevant, noise, sharpness, seed)
    train, valid, test = (
        (X[lo:hi], sparse.csc_array(clicks[lo:hi]))
        for lo, hi in ((0, ends[0]), (ends[0], ends[1]), (ends[1], images))
    )
    return tuple(f"query {number + 1}" for number in range(queries)), train, valid, test


def _images(images: int, features: int, row: int, theme: I64, seed: int) -> Any:
    rng = stream(seed, "clicks", "images")
    shown = rng.integers(len(theme), size=(images, _THEMES_SHOWN))
    half = row // 2
    which = rng.integers(_THEMES_SHOWN, size=(images, half))
    place = rng.integers(theme.shape[1], size=(images, half))
    of_themes = theme[np.take_along_axis(shown, which, axis=1), place]
    chance = (np.arange(features) + 10.0) ** -0.7
    others = rng.choice(features, size=(images, row - half), p=chance / chance.sum())
    drawn = np.hstack([of_themes, others])
    counts = rng.geometric(0.7, size=images * row).astype(np.float64)
    rows = np.repeat(np.arange(images), row)
    X = sparse.csr_array((counts, (rows, drawn.ravel())), shape=(images, features))
    X.sum_duplicates()
    holding = np.bincount(X.indices, minlength=features)
    X.data = np.log1p(X.data) * np.log((1.0 + images) / (1.0 + holding))[X.indices]
    lengths = np.sqrt(np.add.reduceat(X.data**2, X.indptr[:-1]))
    X.data /= np.repeat(np.maximum(lengths, 1e-300), np.diff(X.indptr))
    return X


def _clicks(
    X: Any, query: int, theme: I64, relevant: float, noise: float, sharpness: float, seed: int
) -> F64:
    rng = stream(seed, "clicks", "query", query)
    w = np.zeros(X.shape[1])
    sought = theme[rng.choice(len(theme), size=min(_THEMES_SHOWN, len(theme)), replace=False)]
    w[sought.ravel()] = np.abs(rng.normal(size=sought.size))
    utility = X @ w  # (1)
    utility = (utility - utility.mean()) / (utility.std() or 1.0)
    seen = np.sqrt(1.0 - noise) * utility + np.sqrt(noise) * rng.normal(size=X.shape[0])  # (2)
    above = seen - np.quantile(seen, 1.0 - relevant)
    counts: F64 = np.floor(np.exp(np.minimum(sharpness * above, np.log(_MOST_CLICKS))))  # (3)
    return np.where(above > 0.0, counts, 0.0)
