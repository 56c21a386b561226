"""Synthetic image search: click counts on images that are described by a few visual words.

The images of the domination loss paper are not public. These have their shape: sparse rows (about
2 % of the words), a ranking function per query over all images, feedback that is the number of
times an image was selected for the query, and labels that are mostly noise.

A theme has 20 words. An image shows three themes, and half of its words are drawn from them, the
others from all words with a probability that falls with their rank, 1 / (i + 10)^0.7. Counts are
1 + geometric, and a row is tf-idf weighted and of unit length. A query looks for three themes: w_q
is |normal| at their words. The utility and the clicks of an image are

    u_qi = sum_f w_qf x_if, standardised over the images                                       (1)
    v_qi = sqrt(1 - noise) u_qi + sqrt(noise) e_qi,     e normal                               (2)
    clicks_qi = floor(exp(sharpness (v_qi - t_q))) if v_qi > t_q, else 0                       (3)

where the threshold t_q lets 1 % of the images through. Clicks are heavy-tailed: most selected
images have one or two, a few have dozens.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from reproducibility.protocol import generator
from reproducibility.reuters import Part, TopicFold

RELEVANT, NOISE, SHARPNESS, MOST_CLICKS = 0.01, 0.9, 2.0, 1_000.0
THEMES, WORDS, THEMES_SHOWN, WORDS_DRAWN = 100, 20, 3, 100


def image_search(images: int, queries: int, features: int, seed: int) -> TopicFold:
    """Return images and their clicks for each query: half train, a quarter validation."""
    random = generator(seed, "clicks", "themes")
    themes = np.array([random.choice(features, WORDS, replace=False) for _ in range(THEMES)])
    X = _images(images, features, themes, seed)
    clicks = np.column_stack([_clicks(X, query, themes, seed) for query in range(queries)])
    first, second = np.rint(np.array([0.5, 0.75]) * images).astype(int)
    parts = (slice(0, first), slice(first, second), slice(second, images))
    names = tuple(f"query {number + 1}" for number in range(queries))
    return TopicFold(names, *(Part(X[part], sparse.csc_array(clicks[part])) for part in parts))


def _images(images: int, features: int, themes: Any, seed: int) -> Any:
    random = generator(seed, "clicks", "images")
    shown = random.integers(THEMES, size=(images, THEMES_SHOWN))
    half = WORDS_DRAWN // 2
    theme = random.integers(THEMES_SHOWN, size=(images, half))
    word = random.integers(WORDS, size=(images, half))
    of_themes = themes[np.take_along_axis(shown, theme, axis=1), word]
    p = (np.arange(features) + 10.0) ** -0.7
    others = random.choice(features, size=(images, WORDS_DRAWN - half), p=p / p.sum())
    counts = random.geometric(0.7, size=images * WORDS_DRAWN).astype(np.float64)
    rows = np.repeat(np.arange(images), WORDS_DRAWN)
    words = np.hstack([of_themes, others]).ravel()
    X = sparse.csr_array((counts, (rows, words)), shape=(images, features))
    X.sum_duplicates()
    frequency = np.bincount(X.indices, minlength=features)
    X.data = np.log1p(X.data) * np.log((1.0 + images) / (1.0 + frequency))[X.indices]
    lengths = np.sqrt(np.add.reduceat(X.data**2, X.indptr[:-1]))
    X.data /= np.repeat(np.maximum(lengths, 1e-300), np.diff(X.indptr))
    return X


def _clicks(X: Any, query: int, themes: Any, seed: int) -> Any:
    random = generator(seed, "clicks", "query", query)
    w = np.zeros(X.shape[1])
    sought = themes[random.choice(THEMES, THEMES_SHOWN, replace=False)]
    w[sought.ravel()] = np.abs(random.normal(size=sought.size))
    utility = X @ w  # (1)
    utility = (utility - utility.mean()) / (utility.std() or 1.0)
    noise = random.normal(size=X.shape[0])
    noisy = np.sqrt(1.0 - NOISE) * utility + np.sqrt(NOISE) * noise  # (2)
    above = noisy - np.quantile(noisy, 1.0 - RELEVANT)
    counts = np.floor(np.exp(np.minimum(SHARPNESS * above, np.log(MOST_CLICKS))))  # (3)
    return np.where(above > 0.0, counts, 0.0)
