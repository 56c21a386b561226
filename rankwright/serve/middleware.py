"""Middleware for every request: its id, the API key, a log line, metrics, and draining."""

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
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rankwright.serve.model_store import LoadedModel, ModelStore
from rankwright.serve.settings import Settings

OPEN_TO_ALL = ("/healthz", "/readyz", "/docs")  # the page says nothing of the models
_OWN_ID = re.compile(r"[\x21-\x7e]{1,128}")
_WENT_AWAY = 499  # what proxies log for a client that did not wait


class RequestMiddleware:
    """ASGI middleware around the whole application."""

    def __init__(self, app: ASGIApp, settings: Settings, metrics: ServerMetrics) -> None:
        self.app, self._settings, self._metrics = app, settings, metrics
        self.draining = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        given = headers.get("x-request-id", "")
        request_id = given if _OWN_ID.fullmatch(given) else uuid.uuid4().hex
        state = scope.setdefault("state", {})
        state["request_id"] = request_id
        status = _WENT_AWAY

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                own = MutableHeaders(scope=message)
                own["x-request-id"] = request_id
                if self.draining:
                    own["connection"] = "close"
            await send(message)

        started = time.perf_counter()
        self._metrics.under_way.inc()
        try:
            if scope["path"] in OPEN_TO_ALL or self._settings.lets_in(_key(headers)):
                await self.app(scope, receive, answer)
            else:
                await _refuse(answer, request_id, has_key=bool(_key(headers)))
        except ClientDisconnect:
            pass  # there is no client to answer; the log has the request with its own status
        except Exception:  # our own error: the client gets a 500, the log the traceback
            logger.exception("error", extra={"fields": {"request_id": request_id}})
        finally:
            self._metrics.under_way.dec()
            self._record(scope, state, status, time.perf_counter() - started)

    def _record(self, scope: Scope, state: dict[str, Any], status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "other")
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


async def _refuse(send: Send, request_id: str, *, has_key: bool) -> None:
    sentence = "an API key is required: Authorization: Bearer KEY, or X-API-Key: KEY."
    if has_key:
        sentence = "the API key is not valid; send one of the keys that this server was given."
    body = json.dumps({"error": sentence, "request_id": request_id}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"www-authenticate", b"Bearer"),
    ]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": body})


# --- logs --------------------------------------------------------------------------------------
# One JSON object a line, on standard error.


logger = logging.getLogger("rankwright.serve")


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
    """Send our lines, and what uvicorn warns of, to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name, level in (("rankwright.serve", logging.INFO), ("uvicorn", logging.WARNING)):
        own = logging.getLogger(name)
        own.handlers, own.propagate = [handler], False
        own.setLevel(level)


# --- metrics -----------------------------------------------------------------------------------


_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class ServerMetrics:
    """Counters of one server; labels are names the operator gave, never a client's."""

    def __init__(self, store: ModelStore) -> None:
        own = self._registry = CollectorRegistry()
        self.requests = Counter(
            "rankwright_requests", "Requests.", ["route", "status"], registry=own
        )
        self.seconds = Histogram(
            "rankwright_request_seconds",
            "Time from a request to its answer.",
            ["route"],
            buckets=_SECONDS,
            registry=own,
        )
        self.under_way = Gauge(
            "rankwright_requests_under_way", "Requests not yet answered.", registry=own
        )
        which = ["model", "version"]
        self.queries = Counter("rankwright_queries", "Queries scored.", which, registry=own)
        self.documents = Counter("rankwright_documents", "Documents scored.", which, registry=own)
        self.reloads = Counter(
            "rankwright_reloads", "Replaced model files.", [*which, "outcome"], registry=own
        )
        self.sound = Gauge(
            "rankwright_model_file_is_sound",
            "1 while the file holds the model that is served, 0 after a bad replacement.",
            which,
            registry=own,
        )
        self.closed = Counter(
            "rankwright_connections_closed",
            "Connections that the server ended: for headers, a request, an answer or an idle "
            "client that took too long, replaced by a new one, or refused.",
            ["reason"],
            registry=own,
        )
        self.impressions = Counter(
            "rankwright_impressions", "Interleaved lists that were shown.", registry=own
        )
        self.clicks = Counter(
            "rankwright_clicks", "Clicks on interleaved lists, each document once.", registry=own
        )
        self.lost_lines = Counter(
            "rankwright_impression_lines_lost",
            "Lines of the log of impressions that the disk did not take, or not fast enough.",
            ["reason"],
            registry=own,
        )
        for loaded in store.models:
            self.sound.labels(loaded.version.name, loaded.version.version).set(1)

    def count_reload(self, loaded: LoadedModel) -> None:
        """Count a replaced file."""
        own = loaded.version
        outcome = "served" if loaded.error is None else "refused"
        self.reloads.labels(own.name, own.version, outcome).inc()
        self.sound.labels(own.name, own.version).set(loaded.error is None)

    def count_closed(self, reason: str) -> None:
        """Count a connection that the server ended."""
        self.closed.labels(reason).inc()

    def count_lost_lines(self, reason: str, lines: int) -> None:
        """Count lines that are not in the log of impressions."""
        self.lost_lines.labels(reason).inc(lines)

    def text(self) -> bytes:
        """Return all figures in Prometheus's format."""
        return generate_latest(self._registry)
