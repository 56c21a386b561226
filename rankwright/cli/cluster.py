"""``--dask``: work on the workers of a Dask cluster; shared by the verbs that can."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankwright.cli import console
from rankwright.errors import UsageError

if TYPE_CHECKING:
    from rankwright.distributed.partitions import Partitions
    from rankwright.rankers.base import Ranker

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
    from rankwright.cli.model import feature_names
    from rankwright.data.files import load, load_documents
    from rankwright.data.store_writer import is_store
    from rankwright.distributed.partitions import partitions

    several = "*" in data or (Path(data).is_dir() and not is_store(data))
    if several or (Path(data).exists() and is_store(data)):
        return partitions(data, client=client, n_parts=n_parts, **options)
    if ranker is not None:
        whole = load_documents(data, feature_names=feature_names(ranker), **options)
        n_features = ranker.n_features_in_
    else:
        whole = load(data, **options)
    wide = whole if n_features is None else whole.with_n_features(n_features)
    return partitions(wide, client=client, n_parts=n_parts)
