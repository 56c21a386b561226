"""Rankings over HTTP: `rankwright serve MODEL...`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rankwright.errors import MissingExtraError

if TYPE_CHECKING:
    from rankwright.serve.settings import Listening, Settings


def serve(models: Sequence[str], *, settings: Settings, listening: Listening) -> None:
    """Serve model files until a signal ends it; see `rankwright.serve.settings` for the models."""
    for package in ("starlette", "uvicorn", "prometheus_client"):
        try:
            __import__(package)
        except ModuleNotFoundError:
            raise MissingExtraError(package, "serve", "rankwright serve") from None
    from rankwright.serve.server import run_server

    run_server(models, settings=settings, listening=listening)
