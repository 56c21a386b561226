"""Reading an experiment file; `reproducibility.experiment` says what may be in it."""

from __future__ import annotations

import hashlib
import itertools
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from rankwright.errors import DataError, UsageError
from rankwright.registry import unknown
from reproducibility.experiment import (
    KINDS,
    TIMES,
    ZERO_WEIGHTS,
    Claim,
    Column,
    ColumnGroup,
    Contrast,
    Expected,
    Experiment,
    Row,
    Study,
    parameters,
)
from reproducibility.peers import PEERS, contender

_TABLES = Path(__file__).resolve().parent / "tables"
_REQUIRED = ("title", "paper", "kind", "studies", "rows")
_OPTIONAL = (
    *("printed", "shared", "baseline", "expected_metrics", "contrasts", "minutes"),
    *("note", "claims"),
)
_SETTINGS = ("fixed", "grid", "rounds")
_SOURCES = ("folds", "synthetic", "classes", "ratings", "topics")


def names() -> dict[str, Path]:
    """Return the experiments that there are, by name, in order."""
    return {path.stem.replace("_", "-"): path for path in sorted(_TABLES.glob("*.toml"))}


def overview() -> dict[str, dict[str, Any]]:
    """Return what is said of each experiment, without checking the rest of its file.

    That is its title, paper, kind, rough minutes, note, claims, and the digest of the file.
    """
    contents = {
        name: {**tomllib.loads(path.read_text("utf-8")), "digest": file_digest(path)}
        for name, path in names().items()
    }
    entries = ("title", "paper", "kind", "minutes", "note", "claims", "digest")
    return {name: {key: one.get(key) for key in entries} for name, one in contents.items()}


def file_digest(path: Path) -> str:
    """Return a hash of an experiment's file, which tells results of other files apart."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def experiment(name: str | Path) -> Experiment:
    """Return the experiment called ``name``, or the one in a TOML file of your own."""
    if str(name).endswith(".toml"):
        return read(Path(name))
    there = names()
    key = str(name).replace("_", "-")
    if key not in there:
        raise UsageError(unknown("experiment", str(name), there))
    return read(there[key])


def read(path: Path) -> Experiment:
    """Read an experiment file; an error in it is reported with the file's name."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as fault:
        raise DataError(f"{path} cannot be read: {fault.strerror or fault}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as fault:
        raise DataError(f"{path} is not a TOML file: {fault}.") from None
    try:
        made = _experiment(path.stem.replace("_", "-"), content)
        return replace(made, digest=file_digest(path))
    except KeyError as fault:
        raise DataError(f"{path}: '{fault.args[0]}' is missing.") from None
    except (TypeError, AttributeError) as fault:
        raise DataError(f"{path}: an entry is not of the kind expected ({fault}).") from None
    except UsageError as fault:
        raise DataError(f"{path}: {fault}") from None


def _experiment(name: str, content: dict[str, Any]) -> Experiment:
    _known(content, "entry", (*_REQUIRED, *_OPTIONAL))
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
        contrasts=tuple(Contrast(**parameters(one)) for one in content.get("contrasts", ())),
        claims=tuple(Claim(**parameters(one)) for one in content.get("claims", ())),
        note=content.get("note"),
        printed_on=content.get("printed", {}).get("on"),
        minutes=content.get("minutes"),
    )
    _check(made)
    return made


def _study(content: dict[str, Any]) -> Study:
    known = tuple(field.name for field in fields(Study) if field.name != "groups")
    _known(content, "entry of a study", (*known, "columns"))
    if sum(source in content for source in _SOURCES) != 1:
        raise UsageError(
            "a study needs folds, synthetic, classes, ratings or topics, one of the five."
        )
    sizes = tuple(sorted(content.get("train_queries", ())))
    return Study(
        name=content["name"],
        folds=content.get("folds"),
        synthetic=content.get("synthetic"),
        select=content.get("select", "ndcg@10"),
        convention=content.get("convention", "standard"),
        groups=tuple(
            group for one in content["columns"] for group in _at_sizes(_group(one), one, sizes)
        ),
        fixed=content.get("fixed", {}),
        trees=tuple(sorted(content.get("trees", ()))),
        repeats=content.get("repeats", 1),
        topics=content.get("topics"),
        classes=content.get("classes"),
        ratings=content.get("ratings"),
        train_queries=sizes,
        rows=tuple(content.get("rows", ())),
    )


def _group(content: dict[str, Any]) -> ColumnGroup:
    from rankwright.metrics.base import named_metrics

    _known(content, "entry of columns", ("title", "metrics", "convention", "name", "scale"))
    convention = content.get("convention", "standard")
    template, scale = content.get("name", "{metric}"), float(content.get("scale", 1.0))
    if content["metrics"] in TIMES:
        name = content.get("name", content["metrics"])
        columns = [Column(name, content["metrics"], "time", scale)]
        return ColumnGroup(content.get("title", "time"), tuple(columns))
    listed = [text.strip() for text in content["metrics"].split(",")]
    asked = [text for text in listed if text != ZERO_WEIGHTS]
    found = named_metrics(",".join(asked), convention=convention) if asked else {}
    columns = [
        Column(template.format(metric=m, k=one.k, queries="all"), m, convention, scale, one.k)
        for m, one in found.items()
    ]
    if ZERO_WEIGHTS in listed:
        name = template.format(metric=ZERO_WEIGHTS, k=None)
        columns.append(Column(name, ZERO_WEIGHTS, convention, 100.0))
    return ColumnGroup(content.get("title", convention), tuple(columns))


def _at_sizes(
    group: ColumnGroup, content: dict[str, Any], sizes: tuple[int, ...]
) -> Iterator[ColumnGroup]:
    """Yield the group as it is or, for each of its columns, a group with a column for each size."""
    if not sizes:
        yield group
        return
    template = content.get("name", "{metric}, {queries} queries")
    for column in group.columns:
        named = {"metric": column.metric, "k": column.cutoff}
        columns = [
            replace(column, name=template.format(queries=n, **named), train_queries=n)
            for n in sizes
        ]
        alone = len(group.columns) == 1
        yield ColumnGroup(
            group.title if alone else f"{column.metric} ({group.title})", tuple(columns)
        )


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
        _try_to_make(kind, content["ranker"], setting)  # a wrong name is reported before any work
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
        from reproducibility.topics import topic_method

        topic_method(ranker, **setting)
    else:
        made: Any = contender(ranker, **parameters(setting))
        if ranker not in PEERS:
            made.make_model()
            if made.has_loss:
                made.make_loss()


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
        _check_study(made, study)
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
    for contrast in made.contrasts:
        _check_contrast(contrast, made, columns)
    for claim in made.claims:
        _check_claim(claim, made)


def _check_study(made: Experiment, study: Study) -> None:
    _check_topics(made.kind, study)
    if study.classes is not None:
        from reproducibility.study_data import check_classes

        check_classes(study.classes)
    if study.ratings is not None:
        from reproducibility.study_data import check_ratings

        check_ratings(study.ratings)
    _check_sizes(made, study)
    for row in made.rows_of(study) if study.fixed else ():
        if row.ranker not in PEERS:
            for setting in row.settings:
                _try_to_make(made.kind, row.ranker, {**study.fixed, **setting})
    if made.kind != "figure" and study.trees:
        raise UsageError(f"study '{study.name}' has trees, which only a figure is drawn over.")
    over = study.trees or study.train_queries
    if made.kind == "figure" and not over and None in study.cutoffs:
        raise UsageError(
            f"study '{study.name}': a figure is drawn over trees, over train_queries, or over "
            "the cut-offs of its columns, such as ndcg@1:10."
        )
    allowed = TIMES if made.kind == "time" else ("seconds",) if study.train_queries else ()
    if any(column.metric in TIMES and column.metric not in allowed for column in study.columns):
        raise UsageError(f"study '{study.name}' measures time, which needs kind = \"time\".")


def _check_sizes(made: Experiment, study: Study) -> None:
    for row in study.rows:
        known = [one.name for one in made.rows]
        if row not in known:
            raise UsageError(unknown(f"row (of study '{study.name}')", row, known))
    if not study.train_queries:
        return
    if made.kind not in ("table", "figure") or study.trees:
        raise UsageError(
            f"study '{study.name}': train_queries are for tables, and figures without trees."
        )
    if study.train_queries[0] < 1:
        raise UsageError(f"study '{study.name}': train_queries are numbers from 1.")


def _check_contrast(contrast: Contrast, made: Experiment, columns: list[str]) -> None:
    from reproducibility.table import TESTS

    if contrast.test not in TESTS:
        raise UsageError(unknown("test of a contrast", contrast.test, TESTS))
    for column in contrast.columns:
        if column not in columns:
            raise UsageError(unknown("column (of a contrast)", column, columns))
    for study in made.studies:
        if not {column.name for column in study.columns}.isdisjoint(contrast.columns):
            there = [row.name for row in made.rows_of(study)]
            for row in (contrast.row, contrast.against):
                if row not in there:
                    raise UsageError(unknown(f"row (in study '{study.name}')", row, there))


def _check_claim(claim: Claim, made: Experiment) -> None:
    from reproducibility.table import more_is_better

    where = {column.name: (study, column) for study in made.studies for column in study.columns}
    for name in claim.columns:
        if name not in where:
            raise UsageError(unknown("column (of a claim)", name, where))
        study, column = where[name]
        if not more_is_better(study, column):
            raise UsageError(f"a claim is about columns where more is better; {name} is not one.")
        there = [row.name for row in made.rows_of(study)]
        for row in (claim.row, *claim.against):
            if row not in there:
                raise UsageError(unknown(f"row (in study '{study.name}')", row, there))


def _check_topics(kind: str, study: Study) -> None:
    if (kind == "topics") != (study.topics is not None):
        raise UsageError(
            f"study '{study.name}': topics = {{...}} and kind = \"topics\" need each other."
        )
    if study.topics is not None:
        from reproducibility.topic_data import check_source

        check_source(study.topics)
    elif any(column.metric == ZERO_WEIGHTS for column in study.columns):
        raise UsageError(f"study '{study.name}' counts {ZERO_WEIGHTS}: kind is to be \"topics\".")


def _known(content: Mapping[str, Any], what: str, allowed: tuple[str, ...]) -> None:
    for key in content:
        if key not in allowed:
            raise UsageError(unknown(what, key, allowed))
