"""``rankwright serve``: rankings over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rankwright.cli.options import ThreadsOption


def serve(
    models: Annotated[
        list[str],
        typer.Argument(metavar="MODEL", help="FILE, NAME=FILE or NAME@VERSION=FILE:10%."),
    ],
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 takes a free one.")] = 8000,
    missing: Annotated[
        str, typer.Option(help="How to treat a missing feature: error, or nan.")
    ] = "error",
    unknown: Annotated[
        str, typer.Option(help="How to treat an unknown feature: error, or ignore.")
    ] = "error",
    max_body: Annotated[int, typer.Option(help="Maximum bytes of a request.")] = 8 << 20,
    max_documents: Annotated[int, typer.Option(help="Maximum documents of a query.")] = 10_000,
    max_queries: Annotated[int, typer.Option(help="Maximum queries of a batch.")] = 1_000,
    max_values: Annotated[
        int, typer.Option(help="Maximum documents x features of a request.")
    ] = 50_000_000,
    max_explained: Annotated[
        int, typer.Option(help="Maximum documents of a query with explanations.")
    ] = 1_000,
    seconds: Annotated[float, typer.Option(help="Timeout of a request in seconds.")] = 10.0,
    max_waiting: Annotated[
        int, typer.Option(help="Maximum number of queued requests; more are answered 503.")
    ] = 256,
    threads: ThreadsOption = None,
    reload_seconds: Annotated[
        float, typer.Option(help="Interval at which model files are checked for changes; 0: never.")
    ] = 1.0,
    interleave: Annotated[
        str | None,
        typer.Option(
            metavar="METHOD",
            help="Interleave the lists of all models: team_draft, probabilistic or optimised; "
            "needs --impressions.",
        ),
    ] = None,
    interleave_k: Annotated[int, typer.Option(help="Length of interleaved lists.")] = 10,
    impressions: Annotated[
        Path | None,
        typer.Option(help="File to append interleaved lists and clicks to, as JSON lines."),
    ] = None,
    max_impressions: Annotated[
        int, typer.Option(help="Bytes of that file, after which it is put aside.")
    ] = 1 << 30,
    api_keys: Annotated[
        Path | None,
        typer.Option(help="File with one API key per line; RANKWRIGHT_API_KEYS may hold more."),
    ] = None,
    tls_cert: Annotated[Path | None, typer.Option(help="Certificate, for https.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Its private key.")] = None,
    max_connections: Annotated[
        int, typer.Option(help="Maximum connections; requests on more are answered 503.")
    ] = 1_000,
    idle_seconds: Annotated[
        float, typer.Option(help="How long a connection stays open between requests.")
    ] = 75.0,
) -> None:
    """Serve models over HTTP: rankings, scores, health checks, metrics."""
    from rankwright.serve import serve as run
    from rankwright.serve.settings import Listening, Settings, with_keys

    settings = Settings(
        missing=missing,
        unknown=unknown,
        max_body=max_body,
        max_documents=max_documents,
        max_queries=max_queries,
        max_values=max_values,
        max_explained=max_explained,
        seconds=seconds,
        max_waiting=max_waiting,
        threads=threads,
        reload_seconds=reload_seconds,
        interleave=interleave,
        interleave_k=interleave_k,
        impressions=impressions,
        max_impressions=max_impressions,
    )
    where = Listening(
        host,
        port,
        tls_cert,
        tls_key,
        max_connections=max_connections,
        idle_seconds=idle_seconds,
    )
    run(models, settings=with_keys(settings, api_keys), listening=where)
