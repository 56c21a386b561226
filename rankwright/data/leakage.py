"""Features that look like outcomes of a ranking: by their names, or because they tell the grade.

Clicks, purchases and the like come after a document was shown: a ranker that learns from them looks
excellent on the past and has nothing to go by when it ranks. A column is suspected

- by name, if a word of it is one of `OUTCOMES` and none says that it is known beforehand
  (``clicks_last_30d``, ``prior_ctr``);
- by content, if it alone orders documents nearly as the grades do: of sampled pairs of documents of
  a query with different grades, the share

      agreement = (pairs in the order of the grades + half of the pairs with equal values) / pairs

  is at least `AGREEMENT`, or at most 1 - `AGREEMENT`.

Of real features the highest agreement is 0.87 (UCI page blocks), 0.80 in MQ2008, 0.65 in UCI
digits, 0.63 in OHSUMED and 0.51 in Jester.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection

import numpy as np
from scipy import sparse

from rankwright.core.rng import stream
from rankwright.core.types import F64, I64
from rankwright.data.ranking_data import RankingData
from rankwright.errors import quoted

AGREEMENT = 0.95
_OUTCOMES = (
    "click clicks clicked clickthrough ctr impression impressions conversion conversions converted "
    "cvr purchase purchases purchased bought dwell rating ratings rated booking bookings booked"
)
_KNOWN_BEFORE = "past prior previous prev hist historical history last before earlier lag lagged"
OUTCOMES, KNOWN_BEFORE = frozenset(_OUTCOMES.split()), frozenset(_KNOWN_BEFORE.split())

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+[a-z]*")
_WINDOW = re.compile(r"\d+(d|h|w|m|y|day|days|week|weeks|month|months)")
_QUERIES = 100  # that are sampled
_PAIRS = 20  # of each
_FEWEST_QUERIES = 10  # with documents of different grades, or the content says nothing
_FEWEST_PAIRS = 100
_COLUMNS = 256  # of dense features that are looked at together


def warn_of_outcomes(data: RankingData, *, chosen: Collection[str] = ()) -> None:
    """Warn of named features that look like outcomes, in one sentence.

    Features that the caller has ``chosen`` by name are suspected by their content alone.
    """
    if data.feature_names is None:
        return
    found = outcome_features(data, chosen=chosen)
    if not found:
        return
    names = [str(data.feature_names[column]) for column in found]
    why = [f"{quoted(name)} {reason}" for name, reason in zip(names, found.values(), strict=True)]
    one = len(names) == 1
    warnings.warn(
        f"{'a feature looks' if one else f'{len(names)} features look'} like outcomes, which are "
        f"not known when documents are ranked: {'; '.join(why)}. Leave {'it' if one else 'them'} "
        f"out with drop={names} (--read drop={','.join(names)}), unless known beforehand.",
        stacklevel=3,
    )


def outcome_features(data: RankingData, *, chosen: Collection[str] = ()) -> dict[int, str]:
    """Return the columns that look like outcomes, from 0, and why."""
    found: dict[int, str] = {}
    for column, share in _agreements(data).items():
        if max(share, 1.0 - share) >= AGREEMENT:
            order = "falls" if share < 0.5 else "rises"
            agreed = max(share, 1.0 - share)
            found[column] = f"({order} with the grade in {agreed:.1%} of sampled pairs)"
    for column, name in enumerate(data.feature_names or ()):
        word = None if name in chosen else outcome_word(name)
        if word is not None:
            found.setdefault(column, "(by its name)")
    return dict(sorted(found.items()))


def outcome_word(name: str) -> str | None:
    """Return the word of a column's name that is that of an outcome, if any is."""
    words = [word.lower() for word in _WORD.findall(name)]
    if KNOWN_BEFORE.intersection(words) or any(_WINDOW.fullmatch(word) for word in words):
        return None
    return next((word for word in words if word in OUTCOMES), None)


def _agreements(data: RankingData) -> dict[int, float]:
    """Return the agreement of each feature that varies with the grade, on sampled pairs."""
    better, worse = _sampled_pairs(data)
    if len(better) < _FEWEST_PAIRS:
        return {}
    known, moved, sums = _counted_signs(data, better, worse)
    enough = np.flatnonzero((known >= _FEWEST_PAIRS) & (moved > 0))
    return {int(f): float(0.5 + 0.5 * sums[f] / known[f]) for f in enough}


def _counted_signs(data: RankingData, better: I64, worse: I64) -> tuple[I64, I64, F64]:
    """Count for each feature pairs without missing values, and those whose values differ.

    The third array has how many more pairs have the larger value in the better document.
    """
    d, pairs = data.n_features, len(better)
    missing, moved, sums = np.zeros(d, np.int64), np.zeros(d, np.int64), np.zeros(d)
    if sparse.issparse(data.X):
        difference = sparse.coo_array(data.X[better] - data.X[worse])
        signs, column = np.sign(difference.data), difference.coords[1]
        gap = np.isnan(signs)
        missing += np.bincount(column[gap], minlength=d)
        moved += np.bincount(column[~gap & (signs != 0)], minlength=d)
        sums += np.bincount(column[~gap], signs[~gap], minlength=d)
        return pairs - missing, moved, sums
    for lo in range(0, d, _COLUMNS):
        block = slice(lo, lo + _COLUMNS)
        with np.errstate(invalid="ignore"):
            signs = np.sign(data.X[better, block] - data.X[worse, block])
        gap = np.isnan(signs)
        missing[block] = gap.sum(axis=0)
        signs[gap] = 0
        moved[block] = np.count_nonzero(signs, axis=0)
        sums[block] = signs.sum(axis=0, dtype=np.float64)
    return pairs - missing, moved, sums


def _sampled_pairs(data: RankingData) -> tuple[I64, I64]:
    """Return rows of documents of one query each, the first of a higher grade than the second."""
    random = stream(0, "leakage")
    queries = random.permutation(data.n_queries)[: 4 * _QUERIES]
    pairs: list[I64] = []
    for q in queries.tolist():
        start, end = int(data.indptr[q]), int(data.indptr[q + 1])
        drawn = random.integers(start, end, (2, 4 * _PAIRS)) if end > start + 1 else None
        if drawn is None:
            continue
        grade = data.y[drawn]
        ordered = np.where(grade[0] > grade[1], drawn, drawn[::-1])[:, grade[0] != grade[1]]
        if ordered.size:
            pairs.append(ordered[:, :_PAIRS])
        if len(pairs) == _QUERIES:
            break
    if len(pairs) < _FEWEST_QUERIES:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    better, worse = np.concatenate(pairs, axis=1)
    return better, worse
