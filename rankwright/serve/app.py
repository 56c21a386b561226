"""The HTTP interface: rankings and scores of models by name, health, figures, OpenAPI."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.exceptions import HTTPException

from rankwright import __version__
from rankwright.errors import RankwrightError
from rankwright.serve import schema
from rankwright.serve.answers import Scored, rank_answers, score_answers, score_queries
from rankwright.serve.faults import RequestError
from rankwright.serve.gate import Gate
from rankwright.serve.library import Library, Slot
from rankwright.serve.log import tell
from rankwright.serve.measures import Measures
from rankwright.serve.settings import Settings
from rankwright.serve.work import Work

_REFUSALS = {
    400: "The body is not JSON.",
    401: "The API key is wrong or missing.",
    404: "There is no such model.",
    408: "The request took too long to arrive.",
    413: "The request, or a list in it, is too long.",
    415: "The body is not application/json.",
    422: "The request does not match the model.",
    503: "Too many requests, or one that takes too long.",
}
# The page may run its own script and ask this server, and nobody else.
_PAGE_POLICY = (
    "default-src 'none'; connect-src 'self'; img-src data:; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_SCHEMAS = "#/components/schemas/{model}"
Answers = Callable[[Sequence[Scored]], list[dict[str, Any]]]


class Service:
    """An application over a library of models; ``gate`` is what a server runs."""

    def __init__(self, library: Library, settings: Settings) -> None:
        self.library, self.settings = library, settings
        self.measures = Measures(library)
        self.work = Work(settings)
        self.api = FastAPI(
            title="Rankwright",
            version=__version__,
            description="Rank and score documents with trained models.",
            lifespan=self._lifespan,
            docs_url=None,  # FastAPI's pages load their scripts from other servers
            redoc_url=None,
        )
        self.gate = Gate(self.api, settings, self.measures)
        self._add_faults()
        self._add_models()
        self._add_health()
        self._add_page()

    # --- models ------------------------------------------------------------------------------

    def _add_models(self) -> None:
        self._add("rank", schema.RankRequest, schema.RankAnswer, rank_answers)
        self._add("score", schema.ScoreRequest, schema.ScoreAnswer, score_answers)
        self._add("rank/batch", schema.RankBatch, schema.RankBatchAnswer, rank_answers)
        self._add("score/batch", schema.ScoreBatch, schema.ScoreBatchAnswer, score_answers)
        self._document_requests()

        @self.api.get("/v1/models", summary="Models that are served")
        async def models() -> Any:
            return {"models": [slot.about for slot in self.library.slots]}

        @self.api.get("/v1/models/{name}", summary="The versions of a model", responses=_refusals())
        async def versions(name: str) -> Any:
            return {"models": [slot.about for slot in self._named(name)]}

    def _add(self, verb: str, asked: type[Any], told: type[Any], answers: Answers) -> None:
        """Add ``POST /v1/models/NAME/VERB``; NAME may be NAME@VERSION."""
        body = {"schema": asked.model_json_schema(ref_template=_SCHEMAS)}

        @self.api.post(
            f"/v1/models/{{name}}/{verb}",
            summary=asked.__doc__,
            responses={200: {"model": told}, **_refusals()},
            openapi_extra={
                "requestBody": {"required": True, "content": {"application/json": body}}
            },
        )
        async def answer(name: str, request: Request) -> Response:
            self._named(name)
            state = request.state

            def compute(content: bytes) -> bytes:
                batch = "batch" in verb
                parsed = schema.parse(asked, content)
                scored = score_queries(
                    self.library,
                    name,
                    parsed.queries if batch else [parsed],
                    self.settings,
                    otherwise=state.request_id,
                )
                found = answers(scored)
                state.queries, state.documents = len(scored), self._count(scored)
                return json.dumps({"results": found} if batch else found[0]).encode()

            made = await self.work.answer(request, compute)
            return Response(made, media_type="application/json")

    def _named(self, name: str) -> list[Slot]:
        try:
            return self.library.named(name)
        except RankwrightError as fault:
            raise RequestError(404, str(fault)) from None

    def _count(self, scored: Sequence[Scored]) -> int:
        total = 0
        for one in scored:
            own, n = one.slot.version, len(one.scores)
            self.measures.queries.labels(own.name, own.version).inc()
            self.measures.documents.labels(own.name, own.version).inc(n)
            total += n
        return total

    def _document_requests(self) -> None:
        """Name the models in the OpenAPI document, and keep all its schemas in one place."""
        made = self.api.openapi
        names = self.library.names + [slot.version.pinned for slot in self.library.slots]

        def openapi() -> dict[str, Any]:
            if self.api.openapi_schema is None:
                document = made()
                held = document.setdefault("components", {}).setdefault("schemas", {})
                for path in document["paths"].values():
                    (asked,) = path.values()
                    for parameter in asked.get("parameters", []):
                        parameter["schema"]["enum"] = names
                    if "requestBody" in asked:
                        body = asked["requestBody"]["content"]["application/json"]["schema"]
                        held.update(body.pop("$defs", {}))
            assert self.api.openapi_schema is not None
            return self.api.openapi_schema

        self.api.openapi = openapi  # type: ignore[method-assign]

    # --- health ------------------------------------------------------------------------------

    def _add_health(self) -> None:
        @self.api.get("/healthz", summary="Liveness: whether the process answers")
        async def healthz() -> Any:
            return {"status": "ok"}

        @self.api.get("/readyz", summary="Readiness: whether to send requests here")
        async def readyz() -> Response:
            draining = self.gate.draining
            told = {
                "status": "draining" if draining else "ready",
                "models": [slot.state for slot in self.library.slots],
            }
            return JSONResponse(told, 503 if draining else 200)

        @self.api.get(
            "/metrics", summary="Metrics for Prometheus", response_class=PlainTextResponse
        )
        async def metrics() -> Response:
            return Response(self.measures.text(), media_type=CONTENT_TYPE_LATEST)

    # --- the page ----------------------------------------------------------------------------

    def _add_page(self) -> None:
        """Add ``/docs``, a page to try requests on, which loads nothing from elsewhere."""
        page = files("rankwright.serve").joinpath("docs.html").read_text("utf-8")

        @self.api.get("/docs", include_in_schema=False)
        async def docs() -> Response:
            return HTMLResponse(page, headers={"content-security-policy": _PAGE_POLICY})

    # --- faults ------------------------------------------------------------------------------

    def _add_faults(self) -> None:
        async def refused(request: Request, fault: Exception) -> Response:
            status = fault.status if isinstance(fault, RequestError) else 422
            return _fault(request, status, str(fault))

        async def not_there(request: Request, fault: Exception) -> Response:
            assert isinstance(fault, HTTPException)
            sentence = f"{request.method} {request.url.path[:200]}: {fault.detail}."
            return _fault(request, fault.status_code, sentence, fault.headers)

        async def broken(request: Request, _: Exception) -> Response:
            return _fault(request, 500, "the server failed; its log has the request's id.")

        self.api.add_exception_handler(RankwrightError, refused)
        self.api.add_exception_handler(HTTPException, not_there)
        self.api.add_exception_handler(Exception, broken)

    # --- model files ---------------------------------------------------------------------------

    @asynccontextmanager
    async def _lifespan(self, _: FastAPI) -> AsyncIterator[None]:
        watching = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            watching.cancel()
            self.work.close()

    async def _watch(self) -> None:
        """Look at the model files again and again."""
        while self.settings.reload_seconds > 0:
            await asyncio.sleep(self.settings.reload_seconds)
            try:
                await asyncio.to_thread(self.library.reload, self._saw_reload)
            except Exception as fault:  # the next look may go well; serving goes on either way
                tell("reload failed", level=logging.ERROR, error=repr(fault))

    def _saw_reload(self, slot: Slot) -> None:
        self.measures.saw_reload(slot)
        own = slot.version
        which: dict[str, Any] = {"model": own.name, "version": own.version, "file": str(own.path)}
        if slot.fault is None:
            tell("model replaced", **which)
        else:
            tell("model kept", level=logging.WARNING, error=slot.fault, **which)


def _refusals() -> dict[int | str, dict[str, Any]]:
    return {
        status: {"model": schema.Fault, "description": what} for status, what in _REFUSALS.items()
    }


def _fault(request: Request, status: int, sentence: str, headers: Any = None) -> Response:
    request.state.error = sentence
    own = {**(headers or {}), **({"retry-after": "1"} if status == 503 else {})}
    if status in (408, 413):
        own["connection"] = "close"  # the rest of the body is not read
    told = {"error": sentence, "request_id": request.state.request_id}
    return JSONResponse(told, status, own)
