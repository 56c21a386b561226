"""What every request passes: its id, the API key, a log line, figures, and the end of a drain."""

from __future__ import annotations

import json
import logging
import re
import time
import uuid
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rankwright.serve.log import logger, tell
from rankwright.serve.measures import Measures
from rankwright.serve.settings import Settings

OPEN_TO_ALL = ("/healthz", "/readyz", "/docs")  # the page says nothing of the models
_OWN_ID = re.compile(r"[\x21-\x7e]{1,128}")
_WENT_AWAY = 499  # what proxies log for a client that did not wait


class Gate:
    """ASGI middleware around the whole application."""

    def __init__(self, app: ASGIApp, settings: Settings, measures: Measures) -> None:
        self.app, self._settings, self._measures = app, settings, measures
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
        self._measures.under_way.inc()
        try:
            if scope["path"] in OPEN_TO_ALL or self._settings.lets_in(_key(headers)):
                await self.app(scope, receive, answer)
            else:
                await _refuse(answer, request_id)
        except ClientDisconnect:
            pass  # nobody is there to answer; the log has the request with its own status
        except Exception:  # a fault of ours: the client has its 500, the log the traceback
            logger.exception("fault", extra={"fields": {"request_id": request_id}})
        finally:
            self._measures.under_way.dec()
            self._tell(scope, state, status, time.perf_counter() - started)

    def _tell(self, scope: Scope, state: dict[str, Any], status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "other")
        self._measures.requests.labels(route, str(status)).inc()
        self._measures.seconds.labels(route).observe(seconds)
        client = scope.get("client")
        tell(
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


async def _refuse(send: Send, request_id: str) -> None:
    sentence = "an API key is required: Authorization: Bearer KEY, or X-API-Key: KEY."
    body = json.dumps({"error": sentence, "request_id": request_id}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"www-authenticate", b"Bearer"),
    ]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": body})
