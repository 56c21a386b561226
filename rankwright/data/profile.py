"""What `inspect` finds out about data sets, as plain values: a `Profile` and its parts."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

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
    order alone earns a ranking that says nothing.
    """

    lists: int
    best_first: int
    worst_first: int
    by_chance: float
    sorted: str | None
    file_ndcg10: float
    mean_ndcg10: float

    @property
    def earns(self) -> float:
        """NDCG@10 that file order alone earns over the mean order."""
        return self.file_ndcg10 - self.mean_ndcg10


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
    constant_features: tuple[Label, ...]
    query_constant_features: tuple[Label, ...]
    """Features that differ between queries but never within one."""
    duplicate_features: tuple[tuple[Label, ...], ...]
    outcome_features: dict[Label, str]
    """Features that look like outcomes, and why (`rankwright.data.leakage`)."""
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
