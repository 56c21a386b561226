"""Shapes of synthetic data: how many queries, documents and features, and how the grades fall.

`rankwright.data.synthetic` makes data of a shape; `SHAPES` has those of the well-known sets, with
their real numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

from rankwright.errors import UsageError


@dataclass(frozen=True, slots=True)
class Shape:
    """What a synthetic data set looks like.

    Parameters
    ----------
    name
        Part of the random streams' names: two shapes of different names share no numbers.
    queries, documents, features
        Totals. With another number of queries the lists are drawn as long as in the original.
    grades
        Share (or number) of documents of grade 0, 1, 2, ...
    shortest, longest, spread
        Lists are log-normally long, clipped; ``spread`` is the deviation of the logarithm.
    density
        Share of entries that are not zero, which makes the matrix sparse; None makes it dense.
    hosts
        Number of hosts named in ``group``; 0 for none.
    interactions
        Share of the utility's variance that is products of two features (dense shapes only).
    noise
        Share of the variance of (2) within a query that no ranker can know.
    query_spread
        How much richer in good documents some queries are than others.
    """

    name: str
    queries: int
    documents: int
    features: int
    grades: tuple[float, ...]
    shortest: int = 1
    longest: int = 10_000
    spread: float = 0.5
    density: float | None = None
    hosts: int = 0
    interactions: float = 0.3
    noise: float = 0.5
    query_spread: float = 0.5

    def __post_init__(self) -> None:
        if min(self.queries, self.documents, self.features) < 1:
            raise UsageError("a shape needs at least one query, one document and one feature.")
        if not self.shortest * self.queries <= self.documents <= self.longest * self.queries:
            raise UsageError(
                f"{self.queries} lists of {self.shortest} to {self.longest} documents cannot hold "
                f"{self.documents} in all."
            )
        if not 0 <= self.interactions < 1 or not 0 <= self.noise < 1:
            raise UsageError("interactions and noise are shares from 0 to below 1.")
        if len(self.grades) < 2 or min(self.grades) < 0:
            raise UsageError("grades needs the shares of two or more grades.")


SHAPES = {
    shape.name: shape
    for shape in (
        Shape("ohsumed", 106, 16_140, 45, (11_303, 2_585, 2_252), 35, 320, 0.43),
        Shape("mq2007", 1_692, 69_623, 46, (51_632, 14_128, 3_863), 6, 147, 0.35, query_spread=1),
        Shape("mq2008", 784, 15_211, 46, (12_279, 2_001, 931), 5, 121, 0.73, query_spread=0.9),
        Shape(
            "mslr10k", 10_000, 1_200_192, 136, (624_263, 386_280, 159_451, 21_317, 8_881), 1, 908
        ),
        Shape(
            "mslr30k",
            31_531,
            3_771_125,
            136,
            (1_940_952, 1_225_770, 504_958, 69_010, 30_435),
            1,
            1_251,
        ),
        Shape("web", 8_180, 341_300, 136, (75, 17, 15, 2, 1), 5, 300, 0.5, hosts=10_000),
        Shape(
            "rcv1",
            101,
            781_265,
            47_236,
            (0.969, 0.031),
            1_000,
            50_000,
            density=0.0016,
            interactions=0,
        ),
    )
}


def descriptions() -> dict[str, str]:
    """Return a line on each preset shape."""
    return {
        name: f"{s.queries:,} queries, {s.documents:,} documents, {s.features:,} features"
        f"{'' if s.density is None else f', {s.density:.2%} of the entries not zero'}"
        f", {len(s.grades)} grades{', hosts as groups' if s.hosts else ''}"
        for name, s in SHAPES.items()
    }
