"""``rankwright evaluate``: how good is a ranking, under which convention, and what ties decide."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankwright.cli import console
from rankwright.cli.options import (
    DaskOption,
    FormatOption,
    PartsOption,
    ReadOption,
    client_of,
    on_workers,
    open_with,
    read_options,
    read_options_for,
)
from rankwright.errors import DataError, UsageError, counted

if TYPE_CHECKING:
    from rankwright.core.types import F64
    from rankwright.data.ranking_data import RankingData
    from rankwright.metrics.evaluation import Evaluation


def evaluate(
    context: typer.Context,
    data: Annotated[
        str | None, typer.Argument(help="A file, or the name of a data set; none with --run.")
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option(help="Evaluate this TREC run, or table of qid, doc_id, score; see --qrels."),
    ] = None,
    qrels: Annotated[
        Path | None, typer.Option(help="The judgments of --run: 'qid iteration docid grade'.")
    ] = None,
    complete: Annotated[
        bool,
        typer.Option("-c", "--complete", help="With --run: count every query with judgments."),
    ] = False,
    relevance_level: Annotated[
        float | None,
        typer.Option("-l", "--relevance-level", help="With --run: lowest grade that is relevant."),
    ] = None,
    load: Annotated[Path | None, typer.Option(help="Model file to evaluate.")] = None,
    scores: Annotated[
        Path | None,
        typer.Option(help="One score per line, RankLib's three columns, or a TREC run."),
    ] = None,
    feature: Annotated[
        str | None, typer.Option(help="Rank by one feature: its id in the file, or its name.")
    ] = None,
    metrics: Annotated[
        str, typer.Option(help="Such as ndcg@1:5,p@1:5,map,err(max=4)@10.")
    ] = "ndcg@1,ndcg@5,ndcg@10,map",
    convention: Annotated[
        str | None,
        typer.Option(
            help="One or several, such as standard,letor4; by default standard, or trec_eval of "
            "a run."
        ),
    ] = None,
    per_query: Annotated[
        Path | None, typer.Option(help="Write the metric of each query to this TSV file.")
    ] = None,
    format: FormatOption = None,  # noqa: A002
    read: ReadOption = None,
    ties: Annotated[
        bool, typer.Option("--ties", help="Show worst, mean and best over the orders of ties.")
    ] = False,
    dask: DaskOption = None,
    n_parts: PartsOption = None,
    json: console.JsonOption = False,
) -> None:
    """Evaluate a model, scores, a single feature or a TREC run, under named conventions."""
    from rankwright.data.streams import check_target
    from rankwright.metrics.base import named_metrics
    from rankwright.metrics.evaluation import evaluate as evaluate_scores

    of_run = {"complete": complete, "relevance_level": relevance_level}
    _check_run(data, run, qrels, of_run, format, read)
    _check_choice(run, load, scores, feature, ties, dask)
    usual = "standard" if run is None else "trec_eval"
    names = [name.strip() for name in (convention or usual).split(",")]
    for name in names:
        named_metrics(metrics, convention=name)  # a wrong one is an error before anything is read
    check_target(per_query, "--per-query")
    options = read_options(read, format=format)
    client = client_of(context, dask, n_parts)
    if run is not None:
        results = _of_run(run, qrels, metrics, names, of_run)
        qid = next(iter(results.values())).qid.tolist()
    elif client is None:
        assert data is not None
        loaded, chosen = _scored(data, options, load, scores, feature)
        results = {
            name: evaluate_scores(loaded, chosen, metrics, convention=name) for name in names
        }
        qid = loaded.qid.tolist()
    else:
        assert load is not None
        assert data is not None
        results, qid = _on_cluster(client, load, data, metrics, names, n_parts, options)
    if per_query is not None:
        _write_per_query(per_query, qid, results)
    if json:
        console.print_json(_as_json(results, ties))
        return
    _print_table(results, ties)
    _print_remarks(results)


def _check_run(
    data: str | None,
    run: Path | None,
    qrels: Path | None,
    of_run: dict[str, Any],
    format: str | None,  # noqa: A002
    read: list[str] | None,
) -> None:
    """Refuse a run as data, a run without judgments, and options that do not work with a run."""
    from rankwright.data.streams import plain_suffix

    if run is not None:
        if qrels is None:
            raise UsageError(f"{run} is a run; name its judgments with --qrels FILE.")
        given = {"DATA": data, "--format": format, "--read": read}
        for option, value in given.items():
            if value is not None:
                raise UsageError(f"--run RUN --qrels QRELS is all there is to read; omit {option}.")
        return
    if qrels is not None or of_run["complete"] or of_run["relevance_level"] is not None:
        raise UsageError(
            "--qrels, --complete and --relevance-level belong to a run: give --run RUN."
        )
    if data is None:
        raise UsageError("say what to evaluate: DATA, or --run RUN --qrels QRELS.")
    if format is None and plain_suffix(data) in (".run", ".trec"):
        raise UsageError(
            f"{data} is a TREC run: write rankwright evaluate --run {data} --qrels QRELS, which "
            "counts the relevant documents that it did not retrieve."
        )


def _of_run(
    run: Path, qrels: Path | None, metrics: str, conventions: list[str], of_run: dict[str, Any]
) -> dict[str, Evaluation]:
    """Return the evaluation of a run under each convention."""
    from rankwright.data.judgments import read_subtopics
    from rankwright.data.trec import read_qrels, read_run
    from rankwright.metrics.base import named_metrics
    from rankwright.metrics.evaluation import evaluate_run

    allow_empty = of_run["complete"]
    with_subtopics = any(metric.takes_subtopics for metric in named_metrics(metrics).values())
    judgments: Any = (
        read_subtopics(qrels) if with_subtopics else read_qrels(qrels, allow_empty=allow_empty)
    )
    files = read_run(run, allow_empty=allow_empty), judgments
    return {name: evaluate_run(*files, metrics, convention=name, **of_run) for name in conventions}


def _check_choice(
    run: Path | None,
    model: Path | None,
    scores: Path | None,
    feature: str | None,
    ties: bool,
    dask: str | None,
) -> None:
    """Refuse options that do not work together, and a file of scores that is not there."""
    if sum(choice is not None for choice in (run, model, scores, feature)) != 1:
        raise UsageError(
            "specify what to evaluate, one of --load MODEL, --scores FILE, --feature ID and --run "
            "RUN."
        )
    if dask is not None and model is None:
        raise UsageError("--dask evaluates models: give --load MODEL, or leave --dask out.")
    if dask is not None and ties:
        raise UsageError("--ties looks at all queries in one process; leave --dask out.")
    if scores is not None and str(scores) != "-" and not scores.exists():
        from rankwright.data.streams import missing_file

        raise DataError(missing_file(scores))


def _on_cluster(
    client: Any,
    model: Path,
    data: str,
    metrics: str,
    conventions: list[str],
    n_parts: int | None,
    options: dict[str, Any],
) -> tuple[dict[str, Evaluation], list[Any]]:
    """Return the evaluation of a model where the parts of the data are, and the query ids."""
    from rankwright.distributed.evaluation import evaluate as evaluate_parts
    from rankwright.ranklib.model_files import load_model

    ranker = load_model(model)
    parts = on_workers(client, data, n_parts, options, n_features=ranker.n_features_in_)
    found = {name: evaluate_parts(ranker, parts, metrics, convention=name) for name in conventions}
    return found, [qid for part in parts.qid for qid in part.tolist()]


def _scored(
    data: str,
    options: dict[str, Any],
    model: Path | None,
    scores: Path | None,
    feature: str | None,
) -> tuple[RankingData, F64]:
    """Read the data; return it with the scores of the model, the file or the feature."""
    from rankwright.data.files import load

    if model is not None:
        rankers, wide = open_with(
            [model], lambda ranker: load(data, **read_options_for(ranker, data, options))
        )
        return wide, rankers[0].predict(wide)
    loaded = load(data, **options)
    if scores is not None:
        from rankwright.data.rankings import read_scores

        return loaded, read_scores(scores, loaded)
    assert feature is not None
    return loaded, _column(loaded, feature)


def _column(data: RankingData, feature: str) -> F64:
    import numpy as np
    from scipy import sparse

    from rankwright.data.frames import column_of

    X = data.X[:, [column_of(data, feature)]]
    values = np.asarray(X.todense() if sparse.issparse(X) else X, np.float64).ravel()
    if np.isnan(values).any():
        row = int(np.flatnonzero(np.isnan(values))[0])
        raise DataError(
            f"feature {feature} is missing in row {row}; documents cannot be ranked by it alone."
        )
    return values


def _as_json(results: dict[str, Evaluation], ties: bool) -> dict[str, Any]:
    def one(result: Evaluation) -> dict[str, Any]:
        record: dict[str, Any] = {
            "convention": result.convention.name,
            "queries": result.n_queries,
            "empty_queries": result.empty_queries,
            "metrics": dict(result),
            "queries_by_metric": result.counts,
        }
        if result.left_out:
            record["left_out"] = result.left_out
        if ties:
            record["ties"] = dict(result.tie_intervals())
        return record

    if len(results) == 1:
        return one(next(iter(results.values())))
    return {name: one(result) for name, result in results.items()}


def _print_table(results: dict[str, Evaluation], ties: bool) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("metric")
    for name in results:
        table.add_column(name, justify="right")
        if ties:
            table.add_column("worst / mean / best over ties", justify="right")
    intervals = {name: result.tie_intervals() for name, result in results.items()} if ties else {}
    for key in next(iter(results.values())):
        cells = []
        for name, result in results.items():
            cells.append(f"{result[key]:.4f}")
            if ties:
                cells.append(" ".join(f"{value:.4f}" for value in intervals[name][key]))
        table.add_row(key, *cells)
    console.out.print(table)


def _print_remarks(results: dict[str, Evaluation]) -> None:
    from rankwright.metrics.convention import differences

    first = next(iter(results.values()))
    share = first.empty_queries / max(first.n_queries, 1)
    names = ", ".join(result.convention.name for result in results.values())
    console.show(
        f"{counted(first.n_queries, 'query')}, {first.empty_queries} of them ({share:.1%}) "
        f"without a relevant document; convention {names}."
    )
    for name, result in results.items():
        fewer = [f"{key} {n:,}" for key, n in result.counts.items() if n < result.n_queries]
        if fewer:
            under = f" under {name}" if len(results) > 1 else ""
            console.show(
                f"Queries with a value{under}, over which the mean is: {', '.join(fewer)}."
            )
    for remark in first.remarks():
        console.show(f"{remark}.")
    for other in list(results.values())[1:]:
        console.show(f"{first.convention.name} and {other.convention.name} differ:")
        for clause in differences(first.convention, other.convention):
            console.show(f"  {clause}")
    if first.tie_queries:
        console.say(
            f"Note: in {counted(first.tie_queries, 'query')}, documents of different grade "
            "have equal scores, and the convention's tie rule decides; --ties shows how much."
        )


def _write_per_query(path: Path, qids: list[Any], results: dict[str, Evaluation]) -> None:
    from rankwright.data.streams import atomic_text

    with atomic_text(path) as stream:
        names = list(next(iter(results.values())))
        stream.write("\t".join(["convention", "qid", *names]) + "\n")
        for convention, result in results.items():
            columns = [result.per_query[name] for name in names]
            for q, qid in enumerate(qids):
                values = [repr(float(column[q])) for column in columns]
                stream.write("\t".join([convention, str(qid), *values]) + "\n")
