"""What commands share: options, model files with the data beside them, metrics to report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperOption

from rankwright.cli import console
from rankwright.comparison.key_values import parse_parameters, parse_settings
from rankwright.errors import UsageError
from rankwright.ranklib.model_files import is_ranklib, load_model

if TYPE_CHECKING:
    from rankwright.data.ranking_data import RankingData
    from rankwright.distributed.partitions import Partitions
    from rankwright.persist.checkpoint import Checkpoint
    from rankwright.rankers.base import Ranker


class OncePerOption(TyperCommand):
    """A command that refuses a second value of an option that takes one; Click keeps the last."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments once more than Click does, to count the options."""
        given = Counter(self.make_parser(ctx).parse_args(args=list(args))[2])
        for option, times in given.items():
            if times > 1 and isinstance(option, TyperOption) and _takes_one(option):
                flag = max(option.opts, key=len)
                raise UsageError(
                    f"{flag} is given {times} times and takes one value; "
                    f"{_SEVERAL.get(flag, 'leave all but one out')}."
                )
        return super().parse_args(ctx, args)


_SEVERAL = {
    "--run": "evaluate one run after the other; rankwright compare DATA "
    "--rankers a=run:A.txt,b=run:B.txt tests which of several is better"
}


def _takes_one(option: TyperOption) -> bool:
    return not (option.multiple or option.is_flag or option.count)


def _counted(threads: int | None) -> int | None:
    """Refuse a number of threads that cannot be, before anything is read."""
    if threads is not None:
        from rankwright.core.parallel import thread_count

        thread_count(threads)
    return threads


ModelOption = Annotated[str | None, typer.Option("--model", help="Model family, such as trees.")]
ConventionOption = Annotated[
    str, typer.Option("--convention", help="How metrics are computed; one of `list conventions`.")
]
FormatOption = Annotated[
    str | None,
    typer.Option("--format", help="Format of the data; by default from the file extension."),
]
SeedOption = Annotated[int, typer.Option("--seed", help="Random seed.")]
ThreadsOption = Annotated[
    int | None,
    typer.Option("--threads", callback=_counted, help="Threads; all cores by default."),
]

ReadOption = Annotated[
    list[str] | None,
    typer.Option(
        "--read",
        metavar="KEY=VALUE",
        help="Any option of the reader, such as zero_based=true; may be repeated.",
    ),
]


def set_option(what: str) -> Any:
    """Return the option ``--set``; ``what`` says whose parameters it sets."""
    return typer.Option("--set", metavar="KEY=VALUE", help=f"{what}; may be repeated.")


EstimatorOption = Annotated[
    str,
    typer.Option(
        help="How clicks are estimated from a log: ips, snips, dr, rips, cascade_dr, sips or pbm."
    ),
]
PropensityOption = Annotated[
    str | None,
    typer.Option(
        "--propensity",
        metavar="FILE",
        help="How much users look at each position, for pbm: a file that Propensity.save wrote.",
    ),
]


def propensity_options(path: str | None, estimator: str) -> dict[str, Any]:
    """Return the propensity of a file, as `evaluate_policy` takes it; nothing without a file."""
    if path is None:
        return {}
    if estimator != "pbm":
        raise UsageError(f"--propensity is for the estimator pbm, not for {estimator}.")
    from rankwright.clicks.position_bias import Propensity

    return {"propensity": Propensity.load(path)}


_OPTIONS = {
    **dict.fromkeys(("random_state", "seed"), "--seed"),
    **dict.fromkeys(("n_jobs", "threads"), "--threads"),
    "convention": "--convention",
}


def read_options(read: list[str] | None, **named: Any) -> dict[str, Any]:
    """Return the options of a reader: those of ``--read``, and the ones with flags of their own."""
    given = {name: value for name, value in named.items() if value is not None}
    return {**given, **parse_settings(read, "--read")} if read else given


def ranker_settings(settings: list[str] | None, **given: Any) -> dict[str, Any]:
    """Return the parameters that ``--set`` and options such as ``--model`` give a ranker."""
    own = {name: value for name, value in given.items() if value is not None}
    parsed = parse_parameters(settings or [])
    for name in parsed:
        if name in _OPTIONS:
            option = _OPTIONS[name]
            raise UsageError(f"{name} is set by {option}; write {option} {parsed[name]}.")
        if name in own:
            raise UsageError(f"{name} is given twice, by --{name} and by --set; leave one out.")
    return {**own, **parsed}


def checked_ranker(name: str, /, **parameters: Any) -> Ranker:
    """Return a ranker whose parts, parameters and metrics are sound, before any data is read."""
    from rankwright.metrics.base import metric
    from rankwright.rankers.base import ranker

    made = ranker(name, **parameters)
    made.build()
    for name_of_metric in {made.metric, made.selection_metric}:
        metric(name_of_metric, convention=made.convention)
    return made


# --- --checkpoint FOLDER --every N --resume --------------------------------------------------

FolderOption = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint", help="Save checkpoints to this folder, to resume a run that was killed."
    ),
]
EveryOption = Annotated[
    int | None, typer.Option("--every", help="Iterations between checkpoints; 10 by default.")
]
ResumeOption = Annotated[
    bool, typer.Option("--resume", help="Resume from the last checkpoint in the folder.")
]


def checkpoint_of(folder: Path | None, every: int | None, resume: bool) -> Checkpoint | None:
    """Return the checkpoint that the options ask for, its folder checked."""
    if folder is None:
        if every is not None or resume:
            option = "--resume" if resume else "--every"
            raise UsageError(f"{option} needs --checkpoint FOLDER, the folder for the checkpoints.")
        return None
    from rankwright.persist.checkpoint import EVERY, Checkpoint

    made = Checkpoint(folder, every=EVERY if every is None else every, resume=resume)
    made.check()
    return made


# --- --dask: work on the workers of a Dask cluster -------------------------------------------

DaskOption = Annotated[
    str | None,
    typer.Option("--dask", help="Work on this cluster: local:4, or a scheduler's address or file."),
]
PartsOption = Annotated[
    int | None,
    typer.Option("--parts", min=1, help="With --dask: parts that the data is cut into."),
]


def client_of(context: typer.Context, where: str | None, n_parts: int | None = None) -> Any:
    """Return the client of a cluster until the command ends; None where no cluster is asked for."""
    if where is None:
        if n_parts is not None:
            raise UsageError("--parts needs --dask, the cluster that the parts go to.")
        return None
    from importlib.util import find_spec

    from rankwright.distributed.cluster import cluster

    client = context.with_resource(cluster(where))
    if find_spec("bokeh"):  # without it there is none
        console.say(f"dashboard: {client.dashboard_link}")
    return client


def on_workers(
    client: Any,
    data: str,
    n_parts: int | None,
    options: dict[str, Any],
    *,
    n_features: int | None = None,
    ranker: Ranker | None = None,
) -> Partitions:
    """Return data as parts on the workers.

    They read folders, patterns and stores themselves; a single file is read here, made as wide as
    ``n_features`` where that is given, and sent. For a ``ranker`` to rank it needs no grades.
    """
    from rankwright.data.files import load, load_documents
    from rankwright.data.store import is_store
    from rankwright.distributed.partitions import Partitions, listed_files

    several = "*" in data or (Path(data).is_dir() and not is_store(data))
    if several and ranker is not None:
        first = listed_files(data, options.get("format"), {})[0][0]
        options = read_options_for(ranker, first, options)
    if several or (Path(data).exists() and is_store(data)):
        return Partitions.of(data, client=client, n_parts=n_parts, **options)
    if ranker is not None:
        whole = load_documents(data, **features_of(ranker), **options)
        n_features = ranker.n_features_in_
    else:
        whole = load(data, **options)
    wide = whole if n_features is None else whole.with_n_features(n_features)
    return Partitions.of(wide, client=client, n_parts=n_parts)


# --- model files, and the data beside them ---------------------------------------------------


def features_of(ranker: Ranker) -> dict[str, Any]:
    """Return what a ranker knows of the columns of its data, as `load_documents` takes it."""
    names = getattr(ranker, "feature_names_in_", None)
    return {
        "feature_names": names,
        "n_features": ranker.n_features_in_,
        "qid_column": getattr(ranker, "qid_column_", None),
        "zero_based": zero_based_of(ranker),
    }


def zero_based_of(ranker: Ranker | None) -> bool | None:
    """Return whether the feature ids of the training data started at 0; None if not known."""
    first_id = getattr(ranker, "first_feature_id_", None)
    return None if first_id is None else first_id == 0


def with_common_feature_ids(options: dict[str, Any], *paths: str | None) -> dict[str, Any]:
    """Return the options with ``zero_based``, which all LETOR files decide together.

    Each file is read once more. Standard input, pipes and other formats are not.
    """
    from rankwright.data.formats import format_of
    from rankwright.data.letor import Letor

    files = [path for path in paths if path is not None]
    if len(files) < 2 or "zero_based" in options:
        return options
    for path in files:
        if not Path(path).is_file() or (options.get("format") or format_of(path)) != "letor":
            return options
    return {**options, "zero_based": any(Letor.starts_at_zero(path) for path in files)}


def read_options_for(ranker: Ranker | None, path: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of `load`, completed by the ranker's columns."""
    from rankwright.data.files import model_options

    rest = {name: value for name, value in options.items() if name != "format"}
    name = options.get("format")
    completed = model_options(
        path,
        name,
        rest,
        qid_column=getattr(ranker, "qid_column_", None),
        zero_based=zero_based_of(ranker),
    )
    return completed if name is None else {"format": name, **completed}


def open_with(
    paths: Sequence[str | Path], read: Callable[[Ranker | None], RankingData]
) -> tuple[list[Ranker], RankingData]:
    """Return the rankers of model files, and the data that ``read`` gives, as wide as the first.

    ``read`` is called with the first ranker, or None for a RankLib model, which needs the data to
    be loaded. An error in another model file is raised before the data is read.
    """
    ours = {path: load_model(path) for path in paths if not is_ranklib(path)}
    data = read(ours.get(paths[0]))
    rankers: list[Ranker] = []
    for path in paths:
        rankers.append(ours.get(path) or load_model(path, n_features=data.n_features))
        data = data.with_n_features(rankers[0].n_features_in_)
    return rankers, data


def open_with_documents(
    paths: Sequence[str | Path], data: str, options: dict[str, Any]
) -> tuple[list[Ranker], RankingData]:
    """Return the rankers of model files, and documents to rank, which need no grades."""
    from rankwright.data.files import load_documents

    def read(first: Ranker | None) -> RankingData:
        columns = {} if first is None else features_of(first)
        return load_documents(data, **columns, **options)

    return open_with(paths, read)


# --- validation and test data: read beside the training data, evaluated after the fit --------

REPORTED = ("ndcg@1", "ndcg@5", "ndcg@10", "map")


def load_evaluation_data(
    n_features: int, options: dict[str, Any], **paths: str | None
) -> dict[str, RankingData]:
    """Read the files that are given, by their names, as wide as the training data."""
    from rankwright.data.files import load

    return {
        name: load(path, **options).with_n_features(n_features)
        for name, path in paths.items()
        if path is not None
    }


def score_and_save(
    ranker: Ranker, parts: dict[str, RankingData], save: Path | None
) -> dict[str, dict[str, float]]:
    """Save the model, then return the metrics on each part: Ctrl-C while scoring loses no model."""
    if save is not None:
        ranker.save(save)
    return {name: metrics_of(ranker, part) for name, part in parts.items()}


def metrics_of(ranker: Ranker, data: RankingData) -> dict[str, float]:
    """Return the selection metric and the usual ones."""
    from rankwright.metrics.evaluation import evaluate

    selected = ranker.selection_metric
    names = list(dict.fromkeys([selected, *REPORTED]))
    return dict(evaluate(data, ranker.predict(data), names, convention=ranker.convention))
