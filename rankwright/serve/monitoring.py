"""Every request: its id, the API key, a line of the log, and metrics."""

from __future__ import annotations

import json
import logging
import re
import sys
import time
import uuid
from datetime import UTC, datetime
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rankwright.serve.model_store import LoadedModel, ModelStore
from rankwright.serve.settings import Settings

OPEN_TO_ALL = ("/healthz", "/readyz")
_REQUEST_ID = re.compile(r"[\x21-\x7e]{1,128}")
_CLIENT_LEFT = 499  # the status by which proxies log a client that did not wait
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

logger = logging.getLogger("rankwright.serve")


class RequestMiddleware:
    """ASGI middleware around the whole application."""

    def __init__(self, app: ASGIApp, settings: Settings, metrics: ServerMetrics) -> None:
        self.app, self._settings, self._metrics = app, settings, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        request_id = headers.get("x-request-id", "")
        if not _REQUEST_ID.fullmatch(request_id):
            request_id = uuid.uuid4().hex
        state = scope.setdefault("state", {})
        state["request_id"] = request_id
        status = _CLIENT_LEFT

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["x-request-id"] = request_id
            await send(message)

        started = time.perf_counter()
        self._metrics.under_way.inc()
        try:
            key = _key(headers)
            if scope["path"] in OPEN_TO_ALL or self._settings.lets_in(key):
                await self.app(scope, receive, answer)
            else:
                await _unauthorized(request_id, key)(scope, receive, answer)
        except ClientDisconnect:
            pass  # no client is left to answer; the log has the request with its own status
        except Exception:  # Starlette has answered 500 by now
            logger.exception("error", extra={"fields": {"request_id": request_id}})
        finally:
            self._metrics.under_way.dec()
            self._record(scope, state, status, time.perf_counter() - started)

    def _record(self, scope: Scope, state: dict[str, Any], status: int, seconds: float) -> None:
        route = state.get("route", "other")
        self._metrics.requests.labels(route, str(status)).inc()
        self._metrics.seconds.labels(route).observe(seconds)
        client = scope.get("client")
        log_event(
            "request",
            level=logging.ERROR if status >= 500 and status != 503 else logging.INFO,
            request_id=state["request_id"],
            method=scope["method"],
            path=scope["path"],
            status=status,
            milliseconds=round(1000 * seconds, 3),
            client=client[0] if client else None,
            **{name: state[name] for name in ("queries", "documents", "error") if name in state},
        )


def _key(headers: Headers) -> str:
    bearer = headers.get("authorization", "")
    if bearer.lower().startswith("bearer "):
        return bearer[7:].strip()
    return headers.get("x-api-key", "")


def _unauthorized(request_id: str, key: str) -> JSONResponse:
    sentence = "an API key is required: Authorization: Bearer KEY, or X-API-Key: KEY."
    if key:
        sentence = "the API key is not valid; send one of the keys that this server was given."
    content = {"error": sentence, "request_id": request_id}
    return JSONResponse(content, 401, {"www-authenticate": "Bearer"})


# --- logs --------------------------------------------------------------------------------------
# One JSON object per line, on standard error.


def log_event(event: str, *, level: int = logging.INFO, **fields: Any) -> None:
    """Write a line about ``event``."""
    logger.log(level, event, extra={"fields": fields})


class JsonLines(logging.Formatter):
    """A record as one JSON object: time, level, event, and the fields of the event."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        when = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {"time": when, "level": record.levelname.lower(), "event": record.getMessage()}
        line.update(getattr(record, "fields", {}))
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def log_to_standard_error() -> None:
    """Send our lines and the warnings of uvicorn to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name, level in (("rankwright.serve", logging.INFO), ("uvicorn", logging.WARNING)):
        log = logging.getLogger(name)
        log.handlers, log.propagate = [handler], False
        log.setLevel(level)


# --- metrics -----------------------------------------------------------------------------------


class ServerMetrics:
    """Counters of one server; labels are names that the operator chose, never a client's."""

    def __init__(self, store: ModelStore) -> None:
        registry = self._registry = CollectorRegistry()
        which = ["model", "version"]

        def counter(name: str, text: str, labels: list[str] | None = None) -> Counter:
            return Counter(f"rankwright_{name}", text, labels or [], registry=registry)

        self.requests = counter("requests", "Requests.", ["route", "status"])
        self.seconds = Histogram(
            "rankwright_request_seconds",
            "Time from a request to its answer.",
            ["route"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.under_way = Gauge(
            "rankwright_requests_under_way", "Requests not yet answered.", registry=registry
        )
        self.queries = counter("queries", "Queries scored.", which)
        self.documents = counter("documents", "Documents scored.", which)
        self.reloads = counter("reloads", "Replaced model files.", [*which, "outcome"])
        self.file_is_valid = Gauge(
            "rankwright_model_file_is_valid",
            "1 if the file holds the model that is served, 0 after an unusable replacement.",
            which,
            registry=registry,
        )
        self.impressions = counter("impressions", "Interleaved lists that were shown.")
        self.clicks = counter("clicks", "Clicks on interleaved lists, each document once.")
        self.lost_lines = counter(
            "impression_lines_lost",
            "Lines of the log of impressions that could not be written, or not fast enough.",
            ["reason"],
        )
        for loaded in store.models:
            self.file_is_valid.labels(loaded.version.name, loaded.version.version).set(1)

    def count_reload(self, loaded: LoadedModel) -> None:
        """Count a replaced file."""
        names = loaded.version.name, loaded.version.version
        outcome = "served" if loaded.error is None else "refused"
        self.reloads.labels(*names, outcome).inc()
        self.file_is_valid.labels(*names).set(loaded.error is None)

    def count_lost_lines(self, reason: str, lines: int) -> None:
        """Count lines that are not in the log of impressions."""
        self.lost_lines.labels(reason).inc(lines)

    def text(self) -> bytes:
        """Return all metrics in Prometheus's format."""
        return generate_latest(self._registry)
