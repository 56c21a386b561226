"""An experiment file: a table or figure of a paper, what it printed, and how it is run again.

A TOML file in the folder ``experiments``, by the name of which ``rankwright reproduce`` knows it::

    title = "IntervalRank, Table 1"
    paper = "moon2010intervalrank"      # key in docs/references.bib
    kind = "table"                      # or "figure": curves over the number of trees, or over the
                                        # cut-offs of the columns; or "time": how long fits take;
                                        # or "topics": a ranking function per topic
    baseline = "IntervalRank"           # the row that the others are tested against

    [printed]                           # what the paper shows, in its own units
    columns = ["ndcg@1", "map"]
    [printed.rows]
    RankBoost = [0.4632, 0.4411]

    [shared.trees]                      # settings that rows take over by `use = "trees"`
    fixed = { learning_rate = 0.05 }
    grid = { num_leaves = [4, 8] }      # every combination is tried, the best on valid is kept
    rounds = [100, 200]                 # numbers of trees to try; [] is the setting's own number,
                                        # and without this entry any round may be best

    [[rows]]
    name = "IntervalRank"
    family = "IntervalRank"             # rows of one family share a colour in a figure
    ranker = "intervalrank"
    use = "trees"
    grid = { lambda1 = [1.0, 10.0] }

    [[studies]]                         # one data set each
    name = "OHSUMED"
    folds = "OHSUMED_LETOR3/QueryLevelNorm"   # below the data folder; or `synthetic = {...}`, with
                                        # sizes of train, valid and test, or sizes = "whole", or
                                        # `classes = {...}` (`rankwright.experiments.drawn_queries`)
    select = "ndcg@10"                  # what chooses on valid, by `convention`
    trees = [1, 10, 100]                # where a figure's curves are measured; without it, at the
                                        # cut-offs of its columns
    repeats = 5                         # of each fit, where time is measured
    [[studies.columns]]
    metrics = "ndcg@1:5,map"
    convention = "letor3"
    name = "{metric}"                   # how a column is called; {k} is the metric's cut-off
                                        # metrics = "seconds", "speedup" (against the first study),
                                        # "iterations", "active" or "qp_share" (of the solver) are
                                        # the columns of a "time" experiment, and
                                        # "zero_weights", a percentage, of a "topics" one

    [[expected_metrics]]                # a run that is worse by more than this has failed
    row = "IntervalRank"
    column = "ndcg@1"
    value = 0.55
    tolerance = 0.02

In a "topics" experiment studies have ``topics = {...}`` (`rankwright.experiments.topic_folds`) for
their data, and the rankers of rows are those of `rankwright.experiments.topic_methods`.
"""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from rankwright.errors import DataError, UsageError
from rankwright.registry import unknown

_CHECKOUT = Path(__file__).resolve().parents[2] / "experiments"
_INSTALLED = Path(__file__).resolve().parent / "tables"
_REQUIRED = ("title", "paper", "kind", "studies", "rows")
_SETTINGS = ("fixed", "grid", "rounds")
KINDS = ("table", "figure", "time", "topics")
SOLVES = ("iterations", "active", "qp_share")
TIMES = ("seconds", "speedup", *SOLVES)
ZERO_WEIGHTS = "zero_weights"
_SOURCES = ("folds", "synthetic", "classes", "topics")


@dataclass(frozen=True, slots=True)
class Column:
    """One measure of one study, as a column of the table."""

    name: str
    metric: str
    convention: str
    scale: float = 1.0
    cutoff: int | None = None


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

    @property
    def row_names(self) -> tuple[str, ...]:
        """The paper's rows in its order, then ours that it does not have."""
        return tuple(dict.fromkeys([*self.printed, *(row.name for row in self.rows)]))

    def with_rows(self, names: list[str]) -> Experiment:
        """Return the experiment with only these rows of ours; the paper's stay."""
        known = [row.name for row in self.rows]
        for name in names:
            if name not in known:
                raise UsageError(unknown("row", name, known))
        chosen = tuple(row for row in self.rows if row.name in names)
        expected = tuple(bound for bound in self.expected if bound.row in names)
        return replace(self, rows=chosen, expected=expected)


# --- finding ---------------------------------------------------------------------------------


def names() -> dict[str, Path]:
    """Return the experiments that there are, by name, in order."""
    folder = _INSTALLED if _INSTALLED.is_dir() else _CHECKOUT
    return {path.stem.replace("_", "-"): path for path in sorted(folder.glob("*.toml"))}


def titles() -> dict[str, str]:
    """Return each experiment's name and title, without checking the rest of the file."""
    return {name: tomllib.loads(path.read_text("utf-8"))["title"] for name, path in names().items()}


def experiment(name: str | Path) -> Experiment:
    """Return the experiment called ``name``, or the one in a TOML file of your own."""
    if str(name).endswith(".toml"):
        return read(Path(name))
    there = names()
    key = str(name).replace("_", "-")
    if key not in there:
        raise UsageError(unknown("experiment", str(name), there))
    return read(there[key])


# --- reading ---------------------------------------------------------------------------------


def read(path: Path) -> Experiment:
    """Read an experiment file; a fault in it is told with the file's name."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as fault:
        raise DataError(f"{path} cannot be read: {fault.strerror or fault}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as fault:
        raise DataError(f"{path} is not a TOML file: {fault}.") from None
    try:
        return _experiment(path.stem.replace("_", "-"), content)
    except KeyError as fault:
        raise DataError(f"{path}: '{fault.args[0]}' is missing.") from None
    except (TypeError, AttributeError) as fault:
        raise DataError(f"{path}: an entry is not of the kind expected ({fault}).") from None
    except UsageError as fault:
        raise DataError(f"{path}: {fault}") from None


def _experiment(name: str, content: dict[str, Any]) -> Experiment:
    _known(content, "entry", (*_REQUIRED, "printed", "shared", "baseline", "expected_metrics"))
    shared = content.get("shared", {})
    made = Experiment(
        name=name,
        title=content["title"],
        paper=content["paper"],
        kind=content["kind"],
        studies=tuple(_study(one) for one in content["studies"]),
        rows=tuple(_row(one, shared, content["kind"]) for one in content["rows"]),
        printed=_printed(content.get("printed", {"columns": [], "rows": {}})),
        baseline=content.get("baseline"),
        expected=tuple(Expected(**one) for one in content.get("expected_metrics", ())),
    )
    _check(made)
    return made


def _study(content: dict[str, Any]) -> Study:
    known = tuple(field.name for field in fields(Study) if field.name != "groups")
    _known(content, "entry of a study", (*known, "columns"))
    if sum(source in content for source in _SOURCES) != 1:
        raise UsageError("a study needs folds, synthetic, classes or topics, one of the four.")
    return Study(
        name=content["name"],
        folds=content.get("folds"),
        synthetic=content.get("synthetic"),
        select=content.get("select", "ndcg@10"),
        convention=content.get("convention", "standard"),
        groups=tuple(_group(one) for one in content["columns"]),
        fixed=content.get("fixed", {}),
        trees=tuple(sorted(content.get("trees", ()))),
        repeats=content.get("repeats", 1),
        topics=content.get("topics"),
        classes=content.get("classes"),
    )


def _group(content: dict[str, Any]) -> ColumnGroup:
    from rankwright.metrics.evaluate import measures

    _known(content, "entry of columns", ("title", "metrics", "convention", "name", "scale"))
    convention = content.get("convention", "standard")
    template, scale = content.get("name", "{metric}"), float(content.get("scale", 1.0))
    if content["metrics"] in TIMES:
        columns = [Column(content["name"], content["metrics"], "time", scale)]
        return ColumnGroup(content.get("title", "time"), tuple(columns))
    listed = [text.strip() for text in content["metrics"].split(",")]
    asked = [text for text in listed if text != ZERO_WEIGHTS]
    found = measures(",".join(asked), convention=convention) if asked else {}
    columns = [
        Column(template.format(metric=m, k=one.k), m, convention, scale, one.k)
        for m, one in found.items()
    ]
    if ZERO_WEIGHTS in listed:
        name = template.format(metric=ZERO_WEIGHTS, k=None)
        columns.append(Column(name, ZERO_WEIGHTS, convention, 100.0))
    return ColumnGroup(content.get("title", convention), tuple(columns))


def _row(content: dict[str, Any], shared: dict[str, Any], kind: str) -> Row:
    _known(content, "entry of a row", ("name", "family", "ranker", "use", *_SETTINGS))
    base: dict[str, Any] = {}
    if "use" in content:
        if content["use"] not in shared:
            raise UsageError(unknown("shared settings", content["use"], shared))
        base = shared[content["use"]]
        _known(base, "entry of shared settings", _SETTINGS)
    fixed = {**base.get("fixed", {}), **content.get("fixed", {})}
    grid = {**base.get("grid", {}), **content.get("grid", {})}
    settings = tuple({**fixed, **point} for point in _points(grid))
    for setting in settings:
        _try_to_make(kind, content["ranker"], setting)  # a wrong name is told before any work
    family = content.get("family", content["name"])
    rounds = content.get("rounds", base.get("rounds"))
    return Row(
        name=content["name"],
        ranker=content["ranker"],
        settings=settings,
        family=family,
        rounds=None if rounds is None else tuple(sorted(rounds)),
    )


def _try_to_make(kind: str, ranker: str, setting: Mapping[str, Any]) -> None:
    if kind == "topics":
        from rankwright.experiments.topic_methods import topic_method

        topic_method(ranker, **setting)
    else:
        from rankwright.experiments.peers import contender

        contender(ranker, **parameters(setting))


def parameters(setting: Mapping[str, Any]) -> dict[str, Any]:
    """Return a setting as a ranker takes it: a list, such as targets, is a tuple there."""
    return {k: tuple(v) if isinstance(v, list) else v for k, v in setting.items()}


def _points(grid: Mapping[str, list[Any]]) -> Iterator[dict[str, Any]]:
    for values in itertools.product(*grid.values()):
        yield dict(zip(grid, values, strict=True))


def _printed(content: dict[str, Any]) -> dict[str, dict[str, float]]:
    columns = content["columns"]
    for row, values in content["rows"].items():
        if len(values) != len(columns):
            raise UsageError(
                f"printed row '{row}' has {len(values)} figures for {len(columns)} columns."
            )
    return {row: dict(zip(columns, values, strict=True)) for row, values in content["rows"].items()}


def _check(made: Experiment) -> None:
    if made.kind not in KINDS:
        raise UsageError(f"kind must be {', '.join(KINDS[:-1])} or {KINDS[-1]}, not '{made.kind}'.")
    for study in made.studies:
        _check_topics(made.kind, study)
        if study.classes is not None:
            from rankwright.experiments.drawn_queries import check_classes

            check_classes(study.classes)
        if made.kind != "figure" and study.trees:
            raise UsageError(f"study '{study.name}' has trees, which only a figure is drawn over.")
        if made.kind == "figure" and not study.trees and None in study.cutoffs:
            raise UsageError(
                f"study '{study.name}': a figure is drawn over trees, or over the cut-offs of its "
                "columns, such as ndcg@1:10."
            )
        if made.kind != "time" and any(column.metric in TIMES for column in study.columns):
            raise UsageError(f"study '{study.name}' measures time, which needs kind = \"time\".")
    columns = [column.name for study in made.studies for column in study.columns]
    rows = [row.name for row in made.rows]
    for what, listed in (("column", columns), ("row", rows)):
        twice = {name for name in listed if listed.count(name) > 1}
        if twice:
            raise UsageError(f"two {what}s are called '{min(twice)}'.")
    if made.baseline is not None and made.baseline not in rows:
        raise UsageError(unknown("row (for the baseline)", made.baseline, rows))
    for values in made.printed.values():
        for column in values:
            if column not in columns:
                raise UsageError(unknown("column (that was printed)", column, columns))
    for bound in made.expected:
        if bound.row not in rows or bound.column not in columns:
            raise UsageError(f"expected_metrics: no '{bound.column}' of row '{bound.row}' here.")


def _check_topics(kind: str, study: Study) -> None:
    if (kind == "topics") != (study.topics is not None):
        raise UsageError(
            f"study '{study.name}': topics = {{...}} and kind = \"topics\" go together."
        )
    if study.topics is not None:
        from rankwright.experiments.topic_folds import check_source

        check_source(study.topics)
    elif any(column.metric == ZERO_WEIGHTS for column in study.columns):
        raise UsageError(f"study '{study.name}' counts {ZERO_WEIGHTS}: kind is to be \"topics\".")


def _known(content: Mapping[str, Any], what: str, allowed: tuple[str, ...]) -> None:
    for key in content:
        if key not in allowed:
            raise UsageError(unknown(what, key, allowed))
