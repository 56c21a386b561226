"""An experiment file: a table or figure of a paper, what it printed, and how it is run again.

A TOML file in the folder ``tables``, by the name of which ``python -m reproducibility`` knows it::

    title = "IntervalRank, Table 1"
    paper = "moon2010intervalrank"      # key in rankwright/references.bib
    kind = "table"                      # or "figure": curves over the number of trees, or over the
                                        # cut-offs of the columns; or "time": how long fits take;
                                        # or "topics": a ranking function per topic; or "ranks":
                                        # a table, and the average rank of its rows over studies
    note = "..."                        # what a reader must know, shown on the page of results
    baseline = "IntervalRank"           # the row that the others are tested against
    minutes = 5                         # what it takes, roughly, on two cores

    [printed]                           # what the paper shows, in its own units
    on = "MQ2007"                       # what it was measured on, where that is not what ours is
    columns = ["ndcg@1", "map"]
    [printed.rows]
    RankBoost = [0.4632, 0.4411]

    [shared.trees]                      # settings that rows take over by `use = "trees"`
    fixed = { "model.max_bins" = 63 }   # a parameter of the model; "loss.k" is one of the loss
    grid = { num_leaves = [4, 8] }      # every combination is tried, the best on valid is kept
    rounds = [100, 200]                 # numbers of trees to try; [] is the setting's own number,
                                        # and without this entry any round may be best

    [[rows]]
    name = "IntervalRank"
    family = "IntervalRank"             # rows of one family share a colour in a figure
    ranker = "intervalrank"
    use = "trees"
    grid = { lambda1 = [1.0, 10.0] }    # a loss, model or solver with parameters, where a list
                                        # names several: { name = "interval", lambda1 = 0.1 }

    [[studies]]                         # one data set each
    name = "OHSUMED"
    folds = "OHSUMED_LETOR3/QueryLevelNorm"   # below the data folder; or `synthetic = {...}`, with
                                        # sizes of train, valid and test, or sizes = "whole", or
                                        # `classes = {...}` (`reproducibility.study_data`)
                                        # or `ratings = {...}` (`...drawn_ratings`)
    select = "ndcg@10"                  # what chooses on valid, by `convention`
    trees = [1, 10, 100]                # where a figure's curves are measured; without it, at the
                                        # cut-offs of its columns, or at
    train_queries = [10, 20, 40]        # so many training queries, drawn at random: each column of
                                        # the study is then one column for each number
    rows = ["IntervalRank"]             # run these rows alone in this study
    repeats = 5                         # of each fit, where time is measured
    [[studies.columns]]
    metrics = "ndcg@1:5,map"
    convention = "letor3"
    name = "{metric}"                   # how a column is called; {k} is the metric's cut-off
                                        # metrics = "seconds", "speedup" (against the first study),
                                        # "iterations", "active" or "qp_share" (of the solver) are
                                        # the columns of a "time" experiment, and
                                        # "zero_weights", a percentage, of a "topics" one;
                                        # with train_queries, "seconds" is also what a row took to
                                        # train and choose, and {queries} stands for their number

    [[contrasts]]                       # is one row better than another, in words
    row = "IntervalRank"
    against = "GBDT"
    columns = ["ndcg@1"]                # a test each, p-values adjusted by Holm's rule
    test = "randomisation"              # paired, over test queries; or "welch_t", unpaired, over
                                        # the means of folds or draws

    [[claims]]                          # what the paper says; the page counts where ours agrees
    says = "IntervalRank is best at NDCG@1"
    row = "IntervalRank"                # higher than
    against = ["ListNet"]               # each of these rows; without this entry, all others
    columns = ["ndcg@1"]                # in each of these columns

    [[expected_metrics]]                # a run that is worse by more than this has failed
    row = "IntervalRank"
    column = "ndcg@1"
    value = 0.55
    tolerance = 0.02

In a "topics" experiment studies have ``topics = {...}`` (`reproducibility.topic_data`) for
their data, and the rankers of rows are those of `reproducibility.topics`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rankwright.core.parameters import PARTS, resolve_part, with_params
from rankwright.errors import UsageError
from rankwright.registry import unknown

KINDS = ("table", "figure", "time", "topics", "ranks")
SOLVES = ("iterations", "active", "qp_share")
TIMES = ("seconds", "speedup", *SOLVES)
ZERO_WEIGHTS = "zero_weights"
TREES = "model.n_estimators"
AVERAGE_RANK = "average rank"
"""The study that a table of kind "ranks" has besides its own."""


@dataclass(frozen=True, slots=True)
class Column:
    """One measure of one study, as a column of the table.

    ``train_queries`` is how many training queries it is learnt from; None: all.
    """

    name: str
    metric: str
    convention: str
    scale: float = 1.0
    cutoff: int | None = None
    train_queries: int | None = None


@dataclass(frozen=True, slots=True)
class ColumnGroup:
    """Columns that are shown side by side."""

    title: str
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Study:
    """One data set, what chooses on its valid part, and what is measured on its test part."""

    name: str
    folds: str | None
    synthetic: Mapping[str, Any] | None
    select: str
    convention: str
    groups: tuple[ColumnGroup, ...]
    fixed: Mapping[str, Any] = field(default_factory=dict)
    trees: tuple[int, ...] = ()
    repeats: int = 1
    topics: Mapping[str, Any] | None = None
    classes: Mapping[str, Any] | None = None
    ratings: Mapping[str, Any] | None = None
    train_queries: tuple[int, ...] = ()
    rows: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[Column, ...]:
        """All columns, group after group."""
        return tuple(column for group in self.groups for column in group.columns)

    @property
    def cutoffs(self) -> tuple[int | None, ...]:
        """The cut-off of each column, None where it has none."""
        return tuple(column.cutoff for column in self.columns)


@dataclass(frozen=True, slots=True)
class Row:
    """An algorithm: its ranker, and the settings among which valid data chooses.

    ``rounds`` are the numbers of trees that each setting is tried with: None for any up to its
    own number, an empty tuple for that number alone.
    """

    name: str
    ranker: str
    settings: tuple[Mapping[str, Any], ...]
    family: str
    rounds: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Expected:
    """The figure that a run must reach, or miss by no more than the tolerance."""

    row: str
    column: str
    value: float
    tolerance: float


@dataclass(frozen=True, slots=True)
class Contrast:
    """Two rows that are compared in words, by one test for each column."""

    row: str
    against: str
    columns: tuple[str, ...]
    test: str = "randomisation"


@dataclass(frozen=True, slots=True)
class Claim:
    """What a paper says of one row: that it is higher than others in some columns."""

    says: str
    row: str
    columns: tuple[str, ...]
    against: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Experiment:
    """A table or figure of a paper and everything that running it again needs."""

    name: str
    title: str
    paper: str
    kind: str
    studies: tuple[Study, ...]
    rows: tuple[Row, ...]
    printed: Mapping[str, Mapping[str, float]]
    baseline: str | None = None
    expected: tuple[Expected, ...] = ()
    contrasts: tuple[Contrast, ...] = ()
    claims: tuple[Claim, ...] = ()
    note: str | None = None
    printed_on: str | None = None
    minutes: float | None = None
    digest: str = ""  # of its file

    @property
    def row_names(self) -> tuple[str, ...]:
        """The paper's rows in its order, then ours that it does not have."""
        return tuple(dict.fromkeys([*self.printed, *(row.name for row in self.rows)]))

    def rows_of(self, study: Study) -> tuple[Row, ...]:
        """Return the rows that are run in a study: those it names, or all."""
        return tuple(row for row in self.rows if not study.rows or row.name in study.rows)

    def with_rows(self, names: list[str]) -> Experiment:
        """Return the experiment with only these rows of ours; the paper's stay."""
        known = [row.name for row in self.rows]
        for name in names:
            if name not in known:
                raise UsageError(unknown("row", name, known))
        chosen = tuple(row for row in self.rows if row.name in names)
        expected = tuple(bound for bound in self.expected if bound.row in names)
        contrasts = tuple(c for c in self.contrasts if {c.row, c.against} <= set(names))
        return replace(self, rows=chosen, expected=expected, contrasts=contrasts)


def parameters(setting: Mapping[str, Any]) -> dict[str, Any]:
    """Return a setting as a ranker takes it.

    ``model.max_bins`` is that parameter of the model, a list, such as targets, is a tuple, and a
    table with a ``name`` is the loss, model or solver of that name with the table's parameters.
    """
    return {key.replace(".", "__"): _parameter(key, value) for key, value in setting.items()}


def _parameter(key: str, value: Any) -> Any:
    if key in PARTS and isinstance(value, Mapping):
        given = parameters(value)
        return with_params(resolve_part(PARTS[key], given.pop("name")), given)
    return tuple(value) if isinstance(value, list) else value


def with_trees(setting: Mapping[str, Any], count: int) -> dict[str, Any]:
    """Return a setting with this number of trees, in place of its own."""
    others = {key: v for key, v in setting.items() if key not in ("n_estimators", TREES)}
    return {**others, TREES: count}
