"""What a data set holds, and what in it biases training or evaluation.

One pass over the features, in ranges of whole queries. Columns, rows and hence duplicates are
compared by 64-bit hashes that add up over the entries,

    row i:    sum_f mix(x_if) a_f        column f:    sum_i mix(x_if) b_i        (mod 2^64),

with odd multipliers a, b and nothing for a zero, so that a sparse matrix gives the same hashes as
a dense one. Between files only these row hashes and the query ids are kept, so files may be handed
over one after the other and need not fit in memory together.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from rankwright.core.jit import inline_kernel, kernel
from rankwright.core.parallel import map_queries, map_ranges, query_ranges
from rankwright.core.rng import stream
from rankwright.core.types import F64, I64, AnyArray
from rankwright.data.ranking_data import RankingData
from rankwright.errors import quoted

_PIECES = 32
_EXAMPLES = 5
_MOST_GRADES = 50
_RANKS = 10  # of the NDCG that file order earns
_BY_CHANCE = 1.0 / 3000.0  # of each of three findings about the order of rows; 1/1000 in all

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _mix(x):  # type: ignore[no-untyped-def]
    """Scramble a number's 64 bits (splitmix64); 0 for zeros, one value for all NaN."""
    if x == 0:
        return np.uint64(0)
    h = np.float64(x).view(np.uint64) if x == x else np.uint64(0x7FF8000000000000)
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))


@inline_kernel
def _multiplier(i):  # type: ignore[no-untyped-def]
    return _mix(np.float64(i) + 0.5) | np.uint64(1)


@inline_kernel
def _same(a, b):  # type: ignore[no-untyped-def]
    return a == b or (a != a and b != b)


@kernel
def _scan_dense(lo, hi, bounds, indptr, X, low, high, known, varies, columns, rows):  # type: ignore[no-untyped-def]
    piece = np.searchsorted(bounds, lo)
    d = X.shape[1]
    multiplier = np.empty(d, np.uint64)
    for f in range(d):
        multiplier[f] = _multiplier(f)
    for q in range(lo, hi):
        start = indptr[q]
        for i in range(start, indptr[q + 1]):
            own = _multiplier(i)
            for f in range(d):
                x = X[i, f]
                if x == x:
                    known[piece, f] += 1
                    low[piece, f] = min(low[piece, f], x)
                    high[piece, f] = max(high[piece, f], x)
                if not _same(x, X[start, f]):
                    varies[piece, f] = True
                h = _mix(x)
                columns[piece, f] += h * own
                rows[i] += h * multiplier[f]


@kernel
def _scan_sparse(  # type: ignore[no-untyped-def]
    lo, hi, bounds, indptr, row, column, value, low, high, known, varies, columns, rows
):
    """As `_scan_dense`; here ``known`` counts the entries that are neither missing nor zero."""
    piece = np.searchsorted(bounds, lo)
    d = low.shape[1]
    stored, seen = np.zeros(d, np.int64), np.empty(d, value.dtype)
    for q in range(lo, hi):
        first, last = row[indptr[q]], row[indptr[q + 1]]
        for i in range(indptr[q], indptr[q + 1]):
            own = _multiplier(i)
            for e in range(row[i], row[i + 1]):
                f, x = column[e], value[e]
                if x == 0:
                    continue
                if x == x:
                    known[piece, f] += 1
                    low[piece, f] = min(low[piece, f], x)
                    high[piece, f] = max(high[piece, f], x)
                if stored[f] == 0:
                    seen[f] = x
                elif not _same(x, seen[f]):
                    varies[piece, f] = True
                stored[f] += 1
                h = _mix(x)
                columns[piece, f] += h * own
                rows[i] += h * _multiplier(f)
        for e in range(first, last):
            if 0 < stored[column[e]] < indptr[q + 1] - indptr[q]:
                varies[piece, column[e]] = True
            stored[column[e]] = 0


@kernel
def _scan_lists(lo, hi, indptr, y, rows, lowest, highest, falls, rises, chance, copies, conflicts):  # type: ignore[no-untyped-def]
    """Grades of each list, whether they stand in order, and documents equal to another."""
    for q in range(lo, hi):
        start, n = indptr[q], indptr[q + 1] - indptr[q]
        if n == 0:
            continue
        grades, hashes = y[start : start + n], rows[start : start + n]
        ordered = np.sort(grades)
        lowest[q], highest[q] = ordered[0], ordered[-1]
        chance[q] = -math.lgamma(n + 1.0)
        run = 0
        for i in range(1, n + 1):
            if i < n and grades[i] > grades[i - 1]:
                falls[q] = False
            if i < n and grades[i] < grades[i - 1]:
                rises[q] = False
            if i == n or ordered[i] != ordered[run]:
                chance[q] += math.lgamma(i - run + 1.0)
                run = i
        chance[q] = math.exp(chance[q])
        order = np.argsort(hashes, kind="mergesort")
        run = 0
        for i in range(1, n + 1):
            if i == n or hashes[order[i]] != hashes[order[run]]:
                group = grades[order[run:i]]
                copies[q] += len(group) - 1
                conflicts[q] += group.min() < group.max()
                run = i


@kernel
def _value_of_order(lo, hi, indptr, y, in_file, mean):  # type: ignore[no-untyped-def]
    """NDCG@10 of each list as it stands in the file, and on average over all its orders."""
    for q in range(lo, hi):
        grades = y[indptr[q] : indptr[q + 1]]
        if len(grades) == 0 or grades.max() <= 0.0:
            continue
        top = grades.max()
        ordered = np.sort(grades)[::-1]
        first = best = discounts = gains = 0.0
        for r in range(len(grades)):
            gain = 2.0 ** (grades[r] - top) - 2.0**-top  # in units that overflow for no grade
            gains += gain
            if r < _RANKS:
                discount = 1.0 / math.log2(r + 2.0)
                discounts += discount
                first += gain * discount
                best += (2.0 ** (ordered[r] - top) - 2.0**-top) * discount
        in_file[q], mean[q] = first / best, gains / len(grades) * discounts / best


# --- API -------------------------------------------------------------------------------------

Inspectable: TypeAlias = (
    "RankingData | Mapping[str, RankingData] | Iterable[RankingData | tuple[str, RankingData]]"
)


def inspect(data: Inspectable, *, n_jobs: int | None = None) -> Profile:
    """Profile one data set or several, and compare those.

    Parameters
    ----------
    data
        A data set; several by name; or several, or pairs of name and data, one after the other
        (a generator that loads each when asked keeps one at a time in memory).
    """
    profiles: list[DataProfile] = []
    overlaps: list[Overlap] = []
    seen: list[tuple[str, dict[str, None], AnyArray]] = []
    for name, one in _named(data):
        one.check_width()
        hashes = np.zeros(one.n_documents, np.uint64)
        profiles.append(_profile(name, one, hashes, n_jobs))
        ids = dict.fromkeys(map(str, one.qid.tolist()))
        for other, other_ids, other_hashes in seen:
            shared = [id_ for id_ in ids if id_ in other_ids]
            rows = np.isin(hashes, other_hashes) & (hashes != 0)
            examples = tuple(shared[:_EXAMPLES])
            overlaps.append(Overlap(other, name, len(shared), examples, int(rows.sum())))
        seen.append((name, ids, np.unique(hashes)))
    return Profile(tuple(profiles), tuple(overlaps))


def _named(data: Inspectable) -> Iterable[tuple[str, RankingData]]:
    if isinstance(data, RankingData):
        yield "data", data
    elif isinstance(data, Mapping):
        yield from data.items()
    else:
        for number, item in enumerate(data, start=1):
            yield (f"data {number}", item) if isinstance(item, RankingData) else item


def _profile(name: str, data: RankingData, hashes: AnyArray, threads: int | None) -> DataProfile:
    features = _features(data, hashes, threads)
    queries = data.n_queries
    lowest, highest, chance = np.zeros(queries), np.zeros(queries), np.ones(queries)
    falls, rises = np.ones(queries, bool), np.ones(queries, bool)
    copies, conflicts = np.zeros(queries, np.int64), np.zeros(queries, np.int64)
    orders = (lowest, highest, falls, rises, chance, copies, conflicts)
    map_queries(_scan_lists, data.indptr, data.y, hashes, *orders, n_jobs=threads)
    earned = np.zeros((2, queries))
    map_queries(_value_of_order, data.indptr, data.y, earned[0], earned[1], n_jobs=threads)
    scattered = _scattered(data)
    return DataProfile(
        name=name,
        documents=data.n_documents,
        queries=queries,
        features=data.n_features,
        sparse=sparse.issparse(data.X),
        list_lengths=Lengths(
            int(data.sizes.min()), float(np.median(data.sizes)), int(data.sizes.max())
        ),
        grades=_grades(data),
        empty_queries=int((highest == 0).sum()),
        one_grade_queries=int(((lowest == highest) & (highest > 0)).sum()),
        duplicate_documents=Copies(
            int(copies.sum()), int((copies > 0).sum()), int(conflicts.sum())
        ),
        scattered_queries=len(scattered),
        scattered_examples=tuple(str(data.qid[q]) for q in scattered[:_EXAMPLES]),
        order=_file_order(data, falls, rises, chance, lowest < highest, earned),
        **features,
    )


def _features(data: RankingData, hashes: AnyArray, n_jobs: int | None) -> dict[str, Any]:
    """Return the fields of a profile that come from the features; fills the row hashes."""
    X, n, d = data.X, data.n_documents, data.n_features
    bounds = query_ranges(data.indptr)
    bounds = np.append(bounds[: -1 : math.ceil(len(bounds) / _PIECES)], bounds[-1])
    shape = (len(bounds) - 1, d)
    low, high = np.full(shape, np.inf), np.full(shape, -np.inf)
    known, varies = np.zeros(shape, np.int64), np.zeros(shape, bool)
    columns = np.zeros(shape, np.uint64)
    found = (low, high, known, varies, columns, hashes)
    if sparse.issparse(X):
        entries = (X.indptr, X.indices, X.data)
        map_ranges(_scan_sparse, bounds, bounds, data.indptr, *entries, *found, n_jobs=n_jobs)
        gaps = np.bincount(X.indices[np.isnan(X.data)], minlength=d)
        zeros = known.sum(axis=0) + gaps < n
        low[0, zeros], high[0, zeros] = np.minimum(low[0, zeros], 0), np.maximum(high[0, zeros], 0)
    else:
        map_ranges(_scan_dense, bounds, bounds, data.indptr, X, *found, n_jobs=n_jobs)
        gaps = n - known.sum(axis=0)
    lowest, highest = low.min(axis=0), high.max(axis=0)
    constant = ((lowest == highest) & (gaps == 0)) | (gaps == n)
    still = ~varies.any(axis=0) & ~constant
    label: list[Label] = list(data.feature_names or range(1, d + 1))

    def labels(chosen: AnyArray) -> tuple[Label, ...]:
        return tuple(label[f] for f in np.flatnonzero(chosen))

    return {
        "missing_values": int(gaps.sum()),
        "missing_by_feature": {label[f]: int(gaps[f]) for f in np.flatnonzero(gaps)},
        "negative_features": labels(lowest < 0),
        "constant_features": labels(constant),
        "query_constant_features": labels(still),
        "duplicate_features": tuple(
            tuple(label[f] for f in group)
            for group in _equal(columns.sum(axis=0, dtype=np.uint64), ~constant)
        ),
        "outcome_features": {label[f]: why for f, why in outcome_features(data).items()},
    }


def _equal(hashes: AnyArray, among: AnyArray) -> list[list[int]]:
    """Return the groups of two or more equal hashes, by their first member."""
    groups: dict[int, list[int]] = {}
    for f in np.flatnonzero(among).tolist():
        groups.setdefault(int(hashes[f]), []).append(f)
    return [group for group in groups.values() if len(group) > 1]


def _grades(data: RankingData) -> Grades:
    values, counts = np.unique(data.y, return_counts=True)
    table = None
    if len(values) <= _MOST_GRADES:
        keys = [int(value) if value.is_integer() else value for value in values.tolist()]
        table = dict(zip(keys, counts.tolist(), strict=True))
    return Grades(len(values), float(values[0]), float(values[-1]), table)


def _scattered(data: RankingData) -> I64:
    if data.row is None:
        return np.empty(0, np.int64)
    breaks = np.flatnonzero(np.diff(data.row) != 1) + 1
    inside = breaks[~np.isin(breaks, data.indptr)]
    return np.unique(np.searchsorted(data.indptr, inside, side="right") - 1)


def _file_order(
    data: RankingData,
    falls: AnyArray,
    rises: AnyArray,
    chance: AnyArray,
    several: AnyArray,
    earned: AnyArray,
) -> FileOrder:
    """Judge the order of rows: more lists in order, or more NDCG, than random orders would have."""
    lists, expected = int(several.sum()), float(chance[several].sum())
    best, worst = int((falls & several).sum()), int((rises & several).sum())
    found = max(best, worst)
    kind = None
    if found - expected >= 0.05 * lists and _chance_of_sorted(found, expected, lists) < _BY_CHANCE:
        kind = "best first" if best >= worst else "worst first"
    in_file, mean = earned.mean(axis=1).tolist() if earned.size else (0.0, 0.0)
    p_value = _chance_of_earning(data, *earned)
    return FileOrder(lists, best, worst, round(expected, 2), kind, in_file, mean, p_value)


def _chance_of_sorted(found: int, expected: float, lists: int) -> float:
    """Return a bound of the probability that ``found`` or more lists are sorted by chance.

    The number of sorted lists has a smaller tail than the binomial distribution of the same mean
    (Hoeffding 1956), from one above the mean; of one list the tail is at most the mean.
    """
    from scipy.special import bdtrc

    if found <= 1:
        return expected if found else 1.0
    return float(bdtrc(found - 1, lists, expected / lists)) if found >= expected + 1 else 1.0


def _chance_of_earning(data: RankingData, in_file: F64, mean: F64) -> float:
    """Return a bound of the probability that rows in random order earn as much NDCG.

    Bennett's inequality: for independent x_q of mean 0, variances that add up to V and x_q <= b,
    P(sum x_q >= s) <= exp(-V / b^2 h(b s / V)) with h(u) = (1 + u) log(1 + u) - u. The DCG of n
    gains in random order has the variance sum (g - mean g)^2 sum (d - mean d)^2 / (n - 1), where
    d are the discounts.
    """
    earned = float((in_file - mean).sum())
    if not earned > 0.0:
        return 1.0
    n = np.maximum(data.sizes, 1).astype(np.float64)
    top = np.zeros(data.n_queries)
    query = data.query_of_row()
    np.maximum.at(top, query, data.y)
    gains = 2.0 ** (data.y - top[query]) - 2.0 ** -top[query]
    first, second = (np.bincount(query, gains**k, data.n_queries) for k in (1, 2))
    discounts = np.concatenate(([0.0], np.cumsum(1.0 / np.log2(np.arange(2, _RANKS + 2)))))
    squares = np.concatenate(([0.0], np.cumsum(1.0 / np.log2(np.arange(2, _RANKS + 2)) ** 2)))
    seen = np.minimum(data.sizes, _RANKS)
    with np.errstate(divide="ignore", invalid="ignore"):
        best = first / n * discounts[seen] / mean
        spread = (second - first**2 / n) * (squares[seen] - discounts[seen] ** 2 / n) / (n - 1.0)
        variance = np.where((mean > 0.0) & (n > 1.0), spread / best**2, 0.0).clip(min=0.0)
    total, bound = float(variance.sum()), float((1.0 - mean)[mean > 0.0].max())
    if total <= 0.0:
        return 1.0
    u = bound * earned / total
    return math.exp(-total / bound**2 * ((1.0 + u) * math.log1p(u) - u))


# --- what is found: a `Profile` and its parts, plain values ----------------------------------

Label: TypeAlias = "int | str"
"""A feature: its name where it has one, else its number from 1, as in LETOR files."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """How many documents the lists have."""

    shortest: int
    median: float
    longest: int


@dataclass(frozen=True, slots=True)
class Grades:
    """Which grades there are; ``counts`` is None where there are more than 50."""

    distinct: int
    lowest: float
    highest: float
    counts: dict[float, int] | None


@dataclass(frozen=True, slots=True)
class Copies:
    """Documents with the features of another in their query.

    ``documents`` counts all but one of each set of equal ones, ``conflicting`` the sets whose
    members have different grades.
    """

    documents: int
    queries: int
    conflicting: int


@dataclass(frozen=True, slots=True)
class FileOrder:
    """How many lists of several grades stand in the order of the grades, and what the order earns.

    ``by_chance`` is how many would if the rows came in random order. Where ``sorted`` says "best
    first", a ranker whose scores tie gets the ideal order for nothing. ``file_ndcg10`` is the
    NDCG@10 (gain 2^g - 1, a query of grades 0 counts 0) of equal scores for all documents with ties
    in file order, ``mean_ndcg10`` the same over all orders of ties: the difference is what file
    order alone earns a ranking that says nothing. ``p_value`` bounds the probability that rows in
    random order earn as much.
    """

    lists: int
    best_first: int
    worst_first: int
    by_chance: float
    sorted: str | None
    file_ndcg10: float
    mean_ndcg10: float
    p_value: float = 1.0

    @property
    def earns(self) -> float:
        """NDCG@10 that file order alone earns over the mean order."""
        return self.file_ndcg10 - self.mean_ndcg10

    @property
    def earns_by_chance(self) -> bool:
        """Whether random orders may well earn as much, in 1 of 3,000 files or more."""
        return self.sorted != "best first" and self.p_value >= _BY_CHANCE


@dataclass(frozen=True, slots=True)
class DataProfile:
    """What one data set holds."""

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
    """Features that differ between queries but never within one."""
    duplicate_features: tuple[tuple[Label, ...], ...]
    outcome_features: dict[Label, str]
    """Features that look like outcomes, and why (`rankwright.data.inspect`)."""
    duplicate_documents: Copies
    scattered_queries: int
    """Queries whose rows are not contiguous in the file."""
    scattered_examples: tuple[str, ...]
    order: FileOrder


@dataclass(frozen=True, slots=True)
class Overlap:
    """What two files share.

    ``queries`` counts equal query ids, ``documents`` the rows of the second file whose features
    are those of a row of the first (rows of zeros left out).
    """

    first: str
    second: str
    queries: int
    examples: tuple[str, ...]
    documents: int


@dataclass(frozen=True, slots=True)
class Profile:
    """What `inspect` found: each data set by itself, and what any two share."""

    data: tuple[DataProfile, ...]
    overlaps: tuple[Overlap, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain dicts, tuples, numbers and strings."""
        return asdict(self)


# --- features that look like outcomes --------------------------------------------------------
# Clicks, purchases and the like come after a document was shown: a ranker that learns from them
# looks excellent on the past and has no such values when it ranks. A column is suspected
#
# - by name, if a word of it is one of `OUTCOMES` and none says that it is known beforehand
#   (``clicks_last_30d``, ``prior_ctr``);
# - by content, if it alone orders documents nearly as the grades do: of sampled pairs of documents
#   of a query with different grades, the share
#
#       agreement = (pairs in the order of the grades + half of the pairs with equal values) / pairs
#
#   is at least `AGREEMENT`, or at most 1 - `AGREEMENT`.
#
# Of real features the highest agreement is 0.87 (UCI page blocks), 0.80 in MQ2008, 0.65 in UCI
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
        stacklevel=4,
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
