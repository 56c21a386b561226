"""Profile of ranking data: its size, and problems that bias training or evaluation.

Rows and columns are compared by 64-bit hashes that add up over the values,

    row i:    sum_f mix(x_if) a_f        column f:    sum_i mix(x_if) b_i        (mod 2^64),

with odd multipliers a and b. mix is a bijection of the 64 bits with mix(0) = 0, so a sparse matrix
has the same hashes as a dense one. Only the hashes of rows and the query ids are kept between
files, so files can be loaded one at a time.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse
from scipy.special import bdtrc, gammaln

from rankwright.core.rng import stream
from rankwright.core.types import F64, I64, AnyArray
from rankwright.data.content import mix_bits
from rankwright.data.ranking_data import RankingData
from rankwright.errors import quoted

_BLOCK = 1 << 17  # values that are hashed together
_EXAMPLES = 5
_MOST_GRADES = 50
_SIGNIFICANCE = 1.0 / 3000.0  # of the test for sorted rows

# --- API -------------------------------------------------------------------------------------

Inspectable: TypeAlias = (
    "RankingData | Mapping[str, RankingData] | Iterable[RankingData | tuple[str, RankingData]]"
)


def inspect(data: Inspectable) -> Profile:
    """Profile data sets and compare them.

    Parameters
    ----------
    data
        A data set, a dictionary of data sets by name, or an iterable of data sets or of pairs of
        name and data set. A generator that loads its data sets keeps only one in memory.
    """
    profiles: list[DataProfile] = []
    overlaps: list[Overlap] = []
    previous: list[tuple[str, dict[str, None], AnyArray]] = []
    for name, data_set in _named(data):
        data_set.check_width()
        profile, hashes = _profile(name, data_set)
        profiles.append(profile)
        ids = dict.fromkeys(map(str, data_set.qid.tolist()))
        for other, other_ids, other_hashes in previous:
            shared = [query for query in ids if query in other_ids]
            rows = np.isin(hashes, other_hashes) & (hashes != 0)
            examples = tuple(shared[:_EXAMPLES])
            overlaps.append(Overlap(other, name, len(shared), examples, int(rows.sum())))
        previous.append((name, ids, hashes))
    return Profile(tuple(profiles), tuple(overlaps))


def _named(data: Inspectable) -> Iterable[tuple[str, RankingData]]:
    if isinstance(data, RankingData):
        yield "data", data
    elif isinstance(data, Mapping):
        yield from data.items()
    else:
        for number, item in enumerate(data, start=1):
            yield (f"data {number}", item) if isinstance(item, RankingData) else item


def _profile(name: str, data: RankingData) -> tuple[DataProfile, AnyArray]:
    """Return the profile of a data set and the hashes of its rows."""
    features, hashes = _features(data)
    has_rows = data.sizes > 0
    lowest, highest = np.zeros(data.n_queries), np.zeros(data.n_queries)
    lowest[has_rows] = np.minimum.reduceat(data.y, data.indptr[:-1][has_rows])
    highest[has_rows] = np.maximum.reduceat(data.y, data.indptr[:-1][has_rows])
    scattered = _scattered(data)
    profile = DataProfile(
        name=name,
        documents=data.n_documents,
        queries=data.n_queries,
        features=data.n_features,
        sparse=sparse.issparse(data.X),
        list_lengths=Lengths(
            int(data.sizes.min()), float(np.median(data.sizes)), int(data.sizes.max())
        ),
        grades=_grades(data),
        empty_queries=int((highest == 0).sum()),
        one_grade_queries=int(((lowest == highest) & (highest > 0)).sum()),
        duplicate_documents=_duplicates(data, hashes),
        scattered_queries=len(scattered),
        scattered_examples=tuple(str(data.qid[q]) for q in scattered[:_EXAMPLES]),
        order=_file_order(data, lowest < highest),
        **features,
    )
    return profile, hashes


def _features(data: RankingData) -> tuple[dict[str, Any], AnyArray]:
    """Return the fields of a profile that describe features, and the hashes of the rows."""
    n, d = data.X.shape
    low, high, gaps = np.full(d, np.inf), np.full(d, -np.inf), np.zeros(d, np.int64)
    varies, columns = np.zeros(d, bool), np.zeros(d, np.uint64)
    of_feature, of_row = _multipliers(d), _multipliers(n)
    values = data.X.nnz if sparse.issparse(data.X) else n * d
    hashes: list[AnyArray] = []
    query = data.query_of_row()
    same_query = query[1:] == query[:-1]
    rows = max(1, _BLOCK * n // max(values, 1))
    for start in range(0, n, rows):
        X: Any = data.X[start : start + rows + 1]  # and the next row, to compare with it
        if isinstance(X, np.ndarray):
            mixed: Any = _mix(X)
            smallest, largest = np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)
            gaps += np.isnan(X[:rows]).sum(axis=0)
        else:
            mixed = sparse.csr_array((_mix(X.data), X.indices, X.indptr), X.shape)
            smallest, largest = (m(axis=0).toarray().ravel() for m in (X.nanmin, X.nanmax))
            stored = X[:rows]
            gaps += np.bincount(stored.indices[np.isnan(stored.data)], minlength=d)
        low, high = np.fmin(low, smallest), np.fmax(high, largest)
        differs = mixed[1:] != mixed[:-1]
        varies |= differs[same_query[start : start + rows]].sum(axis=0) > 0
        hashes.append(mixed[:rows] @ of_feature)
        columns += mixed[:rows].T @ of_row[start : start + rows]
    constant = ((low == high) & (gaps == 0)) | (gaps == n)
    label: list[Label] = list(data.feature_names or range(1, d + 1))

    def labels(features: Any) -> tuple[Label, ...]:
        return tuple(label[f] for f in features)

    fields = {
        "missing_values": int(gaps.sum()),
        "missing_by_feature": {label[f]: int(gaps[f]) for f in np.flatnonzero(gaps)},
        "negative_features": labels(np.flatnonzero(low < 0)),
        "constant_features": labels(np.flatnonzero(constant)),
        "query_constant_features": labels(np.flatnonzero(~varies & ~constant)),
        "duplicate_features": tuple(map(labels, _equal(columns, np.flatnonzero(~constant)))),
        "outcome_features": {label[f]: why for f, why in outcome_features(data).items()},
    }
    return fields, np.concatenate(hashes)


def _mix(values: AnyArray) -> AnyArray:
    """Hash numbers; -0.0 has the hash of 0, which is 0, and all NaN have the same hash."""
    x = values.astype(np.float64) + 0.0
    x[np.isnan(x)] = np.nan
    return mix_bits(x.view(np.uint64))


def _multipliers(count: int) -> AnyArray:
    return _mix(np.arange(count) + 0.5) | np.uint64(1)


def _equal(hashes: AnyArray, features: AnyArray) -> list[list[int]]:
    """Return the groups of two or more features with equal hashes, by their first member."""
    groups: dict[int, list[int]] = {}
    for f in features.tolist():
        groups.setdefault(int(hashes[f]), []).append(f)
    return [group for group in groups.values() if len(group) > 1]


def _groups(query: I64, values: AnyArray) -> tuple[I64, I64]:
    """Return the rows sorted by query and value, and the start of each group of equal values."""
    order = np.lexsort((values, query))
    query, values = query[order], values[order]
    is_new = (query[1:] != query[:-1]) | (values[1:] != values[:-1])
    return order, np.flatnonzero(np.append(True, is_new))


def _duplicates(data: RankingData, hashes: AnyArray) -> Copies:
    query = data.query_of_row()
    order, starts = _groups(query, hashes)
    extra = np.diff(np.append(starts, data.n_documents)) - 1
    y = data.y[order]
    conflicts = np.minimum.reduceat(y, starts) < np.maximum.reduceat(y, starts)
    queries = np.unique(query[order][starts][extra > 0])
    return Copies(int(extra.sum()), len(queries), int(conflicts.sum()))


def _grades(data: RankingData) -> Grades:
    values, counts = np.unique(data.y, return_counts=True)
    table = None
    if len(values) <= _MOST_GRADES:
        keys = [int(value) if value.is_integer() else value for value in values.tolist()]
        table = dict(zip(keys, counts.tolist(), strict=True))
    return Grades(len(values), float(values[0]), float(values[-1]), table)


def _scattered(data: RankingData) -> I64:
    """Return the queries whose rows were not contiguous in the input."""
    if data.row is None:
        return np.empty(0, np.int64)
    breaks = np.flatnonzero(np.diff(data.row) != 1) + 1
    inside = breaks[~np.isin(breaks, data.indptr)]
    return np.unique(np.searchsorted(data.indptr, inside, side="right") - 1)


def _file_order(data: RankingData, has_order: AnyArray) -> FileOrder:
    """Test whether more lists are sorted by grade than would be in random order.

    A list of n documents is sorted with probability prod_g (n_g)! / n!, for n_g documents of grade
    g. ``has_order`` selects the queries with several grades.
    """
    query, queries = data.query_of_row(), data.n_queries
    order, starts = _groups(query, data.y)
    counts = np.diff(np.append(starts, data.n_documents))
    logs = np.bincount(query[order][starts], gammaln(counts + 1.0), queries)
    chance = np.exp(logs - gammaln(data.sizes + 1.0))
    step = np.where(query[1:] == query[:-1], np.diff(data.y), 0.0)
    rises, falls = (np.bincount(query[1:][s > 0], minlength=queries) > 0 for s in (step, -step))
    lists, expected = int(has_order.sum()), float(chance[has_order].sum())
    best, worst = int((~rises & has_order).sum()), int((~falls & has_order).sum())
    most = max(best, worst)
    kind = None
    if most - expected >= 0.05 * lists and _p_value(most, expected, lists) < _SIGNIFICANCE:
        kind = "best first" if best >= worst else "worst first"
    return FileOrder(lists, best, worst, round(expected, 2), kind)


def _p_value(count: int, expected: float, lists: int) -> float:
    """Return a bound of the probability that ``count`` or more lists are sorted by chance.

    The number of sorted lists has a smaller tail than the binomial distribution of the same mean
    (Hoeffding 1956) from one above the mean. For one list the tail is at most the mean.
    """
    if count <= 1:
        return expected if count else 1.0
    return float(bdtrc(count - 1, lists, expected / lists)) if count >= expected + 1 else 1.0


# --- results ---------------------------------------------------------------------------------

Label: TypeAlias = "int | str"
"""The name of a feature, or its number from 1, as in LETOR files, if features have no names."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """Numbers of documents per list."""

    shortest: int
    median: float
    longest: int


@dataclass(frozen=True, slots=True)
class Grades:
    """Distribution of grades; ``counts`` is None if there are more than 50 grades."""

    distinct: int
    lowest: float
    highest: float
    counts: dict[float, int] | None


@dataclass(frozen=True, slots=True)
class Copies:
    """Documents with the same features as another document of their query.

    ``documents`` counts all but one document of each set of equal documents, and ``conflicting``
    the sets whose documents have different grades.
    """

    documents: int
    queries: int
    conflicting: int


@dataclass(frozen=True, slots=True)
class FileOrder:
    """Lists with several grades whose rows are sorted by grade.

    ``by_chance`` is the expected number for rows in random order. If ``sorted`` is "best first",
    a ranker with tied scores gets the ideal order from tools that break ties by file order.
    """

    lists: int
    best_first: int
    worst_first: int
    by_chance: float
    sorted: str | None


@dataclass(frozen=True, slots=True)
class DataProfile:
    """Profile of one data set."""

    name: str
    documents: int
    queries: int
    features: int
    sparse: bool
    list_lengths: Lengths
    grades: Grades
    empty_queries: int
    """Queries without a document of a grade above 0."""
    one_grade_queries: int
    """Queries whose documents all have the same grade above 0."""
    missing_values: int
    missing_by_feature: dict[Label, int]
    negative_features: tuple[Label, ...]
    """Features with a value below 0."""
    constant_features: tuple[Label, ...]
    query_constant_features: tuple[Label, ...]
    """Features that are constant within each query, but not over all queries."""
    duplicate_features: tuple[tuple[Label, ...], ...]
    outcome_features: dict[Label, str]
    """Features that look like outcomes, each with the reason."""
    duplicate_documents: Copies
    scattered_queries: int
    """Queries whose rows are not contiguous in the file."""
    scattered_examples: tuple[str, ...]
    order: FileOrder


@dataclass(frozen=True, slots=True)
class Overlap:
    """Queries and documents that two data sets share.

    ``queries`` counts equal query ids. ``documents`` counts the rows of the second data set whose
    features equal the features of a row in the first, without rows of zeros.
    """

    first: str
    second: str
    queries: int
    examples: tuple[str, ...]
    documents: int


@dataclass(frozen=True, slots=True)
class Profile:
    """Result of `inspect`: a profile for each data set, and an overlap for each pair."""

    data: tuple[DataProfile, ...]
    overlaps: tuple[Overlap, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain dicts, tuples, numbers and strings."""
        return asdict(self)


# --- features that look like outcomes --------------------------------------------------------
# Clicks and purchases are known only after a document was shown. A ranker that learns from them is
# excellent on past data, but has no such values when it ranks. A column looks like an outcome
#
# - by its name, if it contains a word of `OUTCOMES` and no word for a value known beforehand
#   (``clicks_last_30d``, ``prior_ctr``);
# - by its content, if it orders documents nearly as the grades do: on sampled pairs of documents
#   with different grades of the same query,
#
#       agreement = (pairs in the order of the grades + half of the pairs with equal values) / pairs
#
#   is at least `AGREEMENT` or at most 1 - `AGREEMENT`.
#
# The highest agreement of a real feature is 0.87 (UCI page blocks), 0.80 in MQ2008, 0.65 in UCI
# digits, 0.63 in OHSUMED and 0.51 in Jester.


AGREEMENT = 0.95
_OUTCOMES = (
    "click clicks clicked clickthrough ctr impression impressions conversion conversions converted "
    "cvr purchase purchases purchased bought dwell rating ratings rated booking bookings booked"
)
_KNOWN_BEFORE = "past prior previous prev hist historical history last before earlier lag lagged"
OUTCOMES, KNOWN_BEFORE = frozenset(_OUTCOMES.split()), frozenset(_KNOWN_BEFORE.split())

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+[a-z]*")
_WINDOW = re.compile(r"\d+(d|h|w|m|y|day|days|week|weeks|month|months)")
_QUERIES = 100  # sampled queries
_PAIRS = 20  # sampled pairs of a query
_FEWEST_QUERIES = 10  # with different grades, for a test of the content
_FEWEST_PAIRS = 100
_COLUMNS = 256  # dense features that are processed together


def warn_of_outcomes(data: RankingData, *, chosen: Collection[str] = ()) -> None:
    """Warn about named features that look like outcomes.

    The names of features that the caller has ``chosen`` are not tested, only their content.
    """
    if data.feature_names is None:
        return
    outcomes = outcome_features(data, chosen=chosen)
    if not outcomes:
        return
    names = [str(data.feature_names[column]) for column in outcomes]
    why = [f"{quoted(name)} {text}" for name, text in zip(names, outcomes.values(), strict=True)]
    single = len(names) == 1
    warnings.warn(
        f"{'a feature looks' if single else f'{len(names)} features look'} like outcomes, which "
        f"are not known when documents are ranked: {'; '.join(why)}. Leave "
        f"{'it' if single else 'them'} "
        f"out with drop={names} (--read drop={','.join(names)}), unless known beforehand.",
        stacklevel=4,
    )


def outcome_features(data: RankingData, *, chosen: Collection[str] = ()) -> dict[int, str]:
    """Return the columns, from 0, that look like outcomes, each with the reason."""
    reasons: dict[int, str] = {}
    for column, share in _agreements(data).items():
        if max(share, 1.0 - share) >= AGREEMENT:
            verb, share = ("falls", 1.0 - share) if share < 0.5 else ("rises", share)
            reasons[column] = f"({verb} with the grade in {share:.1%} of sampled pairs)"
    for column, name in enumerate(data.feature_names or ()):
        word = None if name in chosen else outcome_word(name)
        if word is not None:
            reasons.setdefault(column, "(by its name)")
    return dict(sorted(reasons.items()))


def outcome_word(name: str) -> str | None:
    """Return the outcome-like word in a column name, or None."""
    words = [word.lower() for word in _WORD.findall(name)]
    if KNOWN_BEFORE.intersection(words) or any(_WINDOW.fullmatch(word) for word in words):
        return None
    return next((word for word in words if word in OUTCOMES), None)


def _agreements(data: RankingData) -> dict[int, float]:
    """Return the agreement with the grades of each feature that differs within sampled pairs."""
    better, worse = _sampled_pairs(data)
    if len(better) < _FEWEST_PAIRS:
        return {}
    pairs, unequal, sums = _counted_signs(data, better, worse)
    enough = np.flatnonzero((pairs >= _FEWEST_PAIRS) & (unequal > 0))
    return {int(f): float(0.5 + 0.5 * sums[f] / pairs[f]) for f in enough}


def _counted_signs(data: RankingData, better: I64, worse: I64) -> tuple[I64, I64, F64]:
    """Return for each feature the number of pairs without missing values, and of unequal pairs.

    The third array is the number of pairs with the larger value in the better document, minus the
    number of pairs with the larger value in the worse document.
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
    """Return pairs of rows of the same query; the first has a higher grade than the second."""
    random = stream(0, "leakage")
    queries = random.permutation(data.n_queries)[: 4 * _QUERIES]
    pairs: list[I64] = []
    for q in queries.tolist():
        start, end = int(data.indptr[q]), int(data.indptr[q + 1])
        sampled = random.integers(start, end, (2, 4 * _PAIRS)) if end > start + 1 else None
        if sampled is None:
            continue
        grade = data.y[sampled]
        ordered = np.where(grade[0] > grade[1], sampled, sampled[::-1])[:, grade[0] != grade[1]]
        if ordered.size:
            pairs.append(ordered[:, :_PAIRS])
        if len(pairs) == _QUERIES:
            break
    if len(pairs) < _FEWEST_QUERIES:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    better, worse = np.concatenate(pairs, axis=1)
    return better, worse
