"""The HTTP interface: rankings and scores of models by name, health checks, metrics, OpenAPI."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from functools import partial
from importlib.resources import files
from typing import Any, TypeVar

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import BaseRoute
from starlette.types import Receive, Scope, Send

from rankwright import __version__
from rankwright.core.parallel import thread_count
from rankwright.errors import RankwrightError, quoted
from rankwright.serve.binary_bodies import (
    address_schema,
    arrow_lists,
    npy_lists,
    refuse_fields,
)
from rankwright.serve.handlers import Scored, rank_answers, score_answers, score_queries
from rankwright.serve.interleaving import Experiment
from rankwright.serve.json_bodies import (
    NotPlainError,
    asked_lists,
    parse,
    plain_lists,
    prepare_kernels,
    to_json,
)
from rankwright.serve.middleware import RequestMiddleware, ServerMetrics, log_event
from rankwright.serve.model_store import LoadedModel, ModelStore
from rankwright.serve.schemas import (
    AskedList,
    ClickAnswer,
    ClickRequest,
    InterleavedAnswer,
    RankAnswer,
    RankBatch,
    RankBatchAnswer,
    RankRequest,
    Refusal,
    RequestError,
    ScoreAnswer,
    ScoreBatch,
    ScoreBatchAnswer,
    ScoreRequest,
)
from rankwright.serve.settings import Settings

_REFUSALS = {
    400: "The body is not JSON, npy or Arrow, as its content type says.",
    401: "The API key is wrong or missing.",
    404: "There is no such model.",
    408: "The request took too long to arrive.",
    413: "The request, or a list in it, is too long.",
    415: "The body is of a content type that is not accepted.",
    422: "The request does not match the model.",
    503: "Too many requests, or one that takes too long.",
}
JSON, NPY, ARROW = "application/json", "application/x-npy", "application/vnd.apache.arrow.stream"
ENCODINGS = (JSON, NPY, ARROW)
# The page may run its own script and ask this server, and no other server.
_PAGE_POLICY = (
    "default-src 'none'; connect-src 'self'; img-src data:; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_SCHEMAS = "#/components/schemas/{model}"
Answers = Callable[[Sequence[Scored]], list[dict[str, Any]]]
Respond = Callable[[Request], Awaitable[Response]]


class Service:
    """An application over a store of models; a server runs its ``middleware``."""

    def __init__(self, store: ModelStore, settings: Settings) -> None:
        self.store, self.settings = store, settings
        prepare_kernels()
        self.metrics = ServerMetrics(store)
        self.workers = WorkerPool(settings)
        self.api = FastAPI(
            title="Rankwright",
            version=__version__,
            description="Rank and score documents with trained models.",
            lifespan=self._lifespan,
            docs_url=None,  # FastAPI's pages load their scripts from other servers
            redoc_url=None,
        )
        self._direct: dict[str, tuple[Respond, BaseRoute]] = {}  # by path
        self.middleware = RequestMiddleware(self._dispatch, settings, self.metrics)
        self._add_error_handlers()
        self._add_models()
        self._add_health()
        self._add_page()

    # --- models ------------------------------------------------------------------------------

    def _add_models(self) -> None:
        self._add("rank", RankRequest, RankAnswer, rank_answers)
        self._add("score", ScoreRequest, ScoreAnswer, score_answers)
        self._add("rank/batch", RankBatch, RankBatchAnswer, rank_answers)
        self._add("score/batch", ScoreBatch, ScoreBatchAnswer, score_answers)
        self.experiment: Experiment | None = None
        if self.settings.interleave is not None:
            self.experiment = Experiment(self.store, self.settings, self.metrics)
            self._add_experiment(self.experiment)
        self._document_requests()

        @self.api.get("/v1/models", summary="Models that are served")
        async def models() -> Any:
            return {"models": [loaded.about for loaded in self.store.models]}

        @self.api.get("/v1/models/{name}", summary="The versions of a model", responses=_refusals())
        async def versions(name: str) -> Any:
            return {"models": [loaded.about for loaded in self._named(name)]}

    def _add(self, verb: str, asked: type[Any], answered: type[Any], answers: Answers) -> None:
        """Add ``POST /v1/models/NAME/VERB``; NAME may be NAME@VERSION."""
        kinds = _encodings(asked)
        if "batch" in verb:
            del kinds[NPY]

        async def respond(name: str, request: Request) -> Response:
            self._named(name)

            def answer(lists: Sequence[AskedList]) -> Any:
                scored = score_queries(
                    self.store, name, lists, self.settings, otherwise=request.state.request_id
                )
                self._count(request.state, len(scored), scored)
                found = answers(scored)
                return {"results": found} if "batch" in verb else found[0]

            return await self._respond(asked, request, answer)

        add = self._post(f"/v1/models/{{name}}/{verb}", asked, answered, kinds)
        add(respond)
        for name in self.store.names + [loaded.version.pinned for loaded in self.store.models]:
            path = f"/v1/models/{name}/{verb}"
            self._direct[path] = partial(respond, name), self.api.routes[-1]

    def _add_experiment(self, experiment: Experiment) -> None:
        """Add ``POST /v1/interleave/rank`` and ``/v1/interleave/clicks``."""
        kinds = _encodings(ScoreRequest)
        del kinds[NPY]  # a matrix has no ids

        async def rank(request: Request) -> Response:
            def answer(lists: Sequence[AskedList]) -> Any:
                found, scored = experiment.rank(lists[0])
                self._count(request.state, 1, scored)
                return found

            return await self._respond(ScoreRequest, request, answer)

        async def click(request: Request) -> Response:
            if _encoding(request.scope) != JSON:
                raise RequestError(415, f"send {JSON}.")

            def compute(body: bytes) -> bytes:
                return to_json(experiment.click(parse(ClickRequest, body)))

            return Response(await self.workers.answer(request, compute), media_type=JSON)

        about = "Rank the documents of one query with all models, interleaved"
        add = self._post("/v1/interleave/rank", ScoreRequest, InterleavedAnswer, kinds, about)
        add(rank)
        self._direct["/v1/interleave/rank"] = rank, self.api.routes[-1]
        kinds = {JSON: _encodings(ClickRequest)[JSON]}
        add = self._post("/v1/interleave/clicks", ClickRequest, ClickAnswer, kinds)
        add(click)
        self._direct["/v1/interleave/clicks"] = click, self.api.routes[-1]

    def _post(
        self, path: str, asked: type[Any], answered: type[Any], kinds: Any, about: str | None = None
    ) -> Callable[[Any], Any]:
        """Return what adds a function as the answer to POST requests, documented."""
        fields = [_parameter(*field) for field in address_schema(asked).items()]
        return self.api.post(
            path,
            summary=about or asked.__doc__,
            responses={200: {"model": answered}, **_refusals()},
            openapi_extra={
                "requestBody": {"required": True, "content": kinds},
                "parameters": fields if ARROW in kinds else [],
            },
        )

    async def _respond(
        self, asked: type[Any], request: Request, answer: Callable[[Sequence[AskedList]], Any]
    ) -> Response:
        """Return the answer to the lists in a request's body."""
        encoding, address = _encoding(request.scope), request.scope["query_string"]

        def compute(body: bytes) -> bytes:
            if encoding == NPY:
                return to_json(answer(npy_lists(asked, body, address)))
            if encoding == ARROW:
                return to_json(answer(arrow_lists(asked, body, address)))
            if address:
                refuse_fields(address)
            plain = plain_lists(asked, body)
            if plain is not None:
                with suppress(NotPlainError):
                    return to_json(answer(plain))
            return to_json(answer(asked_lists(asked, body)))

        return Response(await self.workers.answer(request, compute), media_type=JSON)

    async def _dispatch(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer what asks a model that is there, and leave all else to FastAPI.

        FastAPI's routing takes longer than it takes to score a short list.
        """
        found = self._direct.get(scope.get("path", "")) if scope.get("method") == "POST" else None
        if found is None:
            await self.api(scope, receive, send)
            return
        respond, scope["route"] = found
        request = Request(scope, receive, send)
        try:
            response = await respond(request)
        except RankwrightError as error:
            response = await self._refused(request, error)
        except ClientDisconnect:
            raise
        except Exception as error:
            await (await self._broken(request, error))(scope, receive, send)
            raise
        await response(scope, receive, send)

    def _named(self, name: str) -> list[LoadedModel]:
        try:
            return self.store.named(name)
        except RankwrightError as error:
            raise RequestError(404, str(error)) from None

    def _count(self, state: Any, queries: int, scored: Sequence[Scored]) -> None:
        state.queries, state.documents = queries, 0
        for one in scored:
            own, n = one.loaded.version, len(one.scores)
            self.metrics.queries.labels(own.name, own.version).inc()
            self.metrics.documents.labels(own.name, own.version).inc(n)
            state.documents += n

    def _document_requests(self) -> None:
        """Name the models in the OpenAPI document, and keep all its schemas in one place."""
        made = self.api.openapi
        names = self.store.names + [loaded.version.pinned for loaded in self.store.models]

        def openapi() -> dict[str, Any]:
            if self.api.openapi_schema is None:
                document = made()
                held = document.setdefault("components", {}).setdefault("schemas", {})
                for path in document["paths"].values():
                    (asked,) = path.values()
                    for parameter in asked.get("parameters", []):
                        if parameter["in"] == "path":
                            parameter["schema"]["enum"] = names
                    if "requestBody" in asked:
                        body = asked["requestBody"]["content"][JSON]["schema"]
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
            draining = self.middleware.draining
            content = {
                "status": "draining" if draining else "ready",
                "models": [loaded.state for loaded in self.store.models],
            }
            return JSONResponse(content, 503 if draining else 200)

        @self.api.get(
            "/metrics", summary="Metrics for Prometheus", response_class=PlainTextResponse
        )
        async def metrics() -> Response:
            return Response(self.metrics.text(), media_type=CONTENT_TYPE_LATEST)

    # --- the page ----------------------------------------------------------------------------

    def _add_page(self) -> None:
        """Add ``/docs``, a page to try requests on, which loads nothing from elsewhere."""
        page = files("rankwright.serve").joinpath("docs.html").read_text("utf-8")

        @self.api.get("/docs", include_in_schema=False)
        async def docs() -> Response:
            return HTMLResponse(page, headers={"content-security-policy": _PAGE_POLICY})

    # --- errors ------------------------------------------------------------------------------

    def _add_error_handlers(self) -> None:
        async def not_there(request: Request, error: Exception) -> Response:
            assert isinstance(error, HTTPException)
            sentence = f"{request.method} {request.url.path[:200]}: {error.detail}."
            return _refusal(request, error.status_code, sentence, error.headers)

        self.api.add_exception_handler(RankwrightError, self._refused)
        self.api.add_exception_handler(HTTPException, not_there)
        self.api.add_exception_handler(Exception, self._broken)

    async def _refused(self, request: Request, error: Exception) -> Response:
        status = error.status if isinstance(error, RequestError) else 422
        return _refusal(request, status, str(error))

    async def _broken(self, request: Request, _: Exception) -> Response:
        return _refusal(request, 500, "the server failed; its log has the request's id.")

    # --- model files ---------------------------------------------------------------------------

    @asynccontextmanager
    async def _lifespan(self, _: FastAPI) -> AsyncIterator[None]:
        watching = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            watching.cancel()
            self.workers.close()
            if self.experiment is not None:
                self.experiment.close()

    async def _watch(self) -> None:
        """Check the model files at regular intervals."""
        while self.settings.reload_seconds > 0:
            await asyncio.sleep(self.settings.reload_seconds)
            try:
                await asyncio.to_thread(self.store.reload, self._on_reload)
            except Exception as error:  # the next check may succeed; serving goes on either way
                log_event("reload failed", level=logging.ERROR, error=repr(error))

    def _on_reload(self, loaded: LoadedModel) -> None:
        self.metrics.count_reload(loaded)
        own = loaded.version
        which: dict[str, Any] = {"model": own.name, "version": own.version, "file": str(own.path)}
        if loaded.error is None:
            log_event("model replaced", **which)
        else:
            log_event("model kept", level=logging.WARNING, error=loaded.error, **which)


def _refusals() -> dict[int | str, dict[str, Any]]:
    return {status: {"model": Refusal, "description": what} for status, what in _REFUSALS.items()}


def _encodings(asked: type[Any]) -> dict[str, Any]:
    """Return the content types of a request's body, with their schemas, for OpenAPI."""
    body = {"schema": asked.model_json_schema(ref_template=_SCHEMAS)}
    binary = {"schema": {"type": "string", "format": "binary"}}
    return {JSON: body, NPY: binary, ARROW: binary}


def _parameter(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    about = f"{schema.pop('description')} For binary bodies; JSON has it in the body."
    return {"name": name, "in": "query", "required": False, "schema": schema, "description": about}


def _refusal(request: Request, status: int, sentence: str, headers: Any = None) -> Response:
    request.state.error = sentence
    own = {**(headers or {}), **({"retry-after": "1"} if status == 503 else {})}
    if status in (408, 413):
        own["connection"] = "close"  # the rest of the body is not read
    content = {"error": sentence, "request_id": request.state.request_id}
    return JSONResponse(content, status, own)


# --- threads -----------------------------------------------------------------------------------
# Threads compute the answers, so that the event loop is free for health checks and others.


_T = TypeVar("_T")


class WorkerPool:
    """A pool of threads with a limited queue, and bodies that are read within limits."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        threads = thread_count(settings.threads)
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="rankwright-serve")
        self._lock = threading.Lock()
        self._held = 0

    async def answer(self, request: Request, compute: Callable[[bytes], _T]) -> _T:
        """Return what ``compute`` makes of the request's body, all within the time limit."""
        limit, arrived = self._settings.seconds, False
        try:
            async with asyncio.timeout(limit):
                body = await read_body(request, self._settings.max_body)
                arrived = True
                return await asyncio.wrap_future(self._submit(compute, body))
        except TimeoutError:
            if arrived:
                raise RequestError(503, f"there was no answer within {limit:g} s.") from None
            raise RequestError(408, f"the request did not arrive within {limit:g} s.") from None

    def _submit(self, compute: Callable[[bytes], _T], body: bytes) -> Future[_T]:
        with self._lock:
            if self._held >= self._settings.max_waiting:
                raise RequestError(503, f"{self._held} requests are waiting; try again later.")
            self._held += 1
        future = self._pool.submit(compute, body)
        future.add_done_callback(self._let_go)
        return future

    def _let_go(self, _: Future[_T]) -> None:
        with self._lock:
            self._held -= 1

    def close(self) -> None:
        """Let the threads go; requests that have timed out are dropped."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def _encoding(scope: Scope) -> str:
    """Return how the body of a request is encoded: its content type."""
    kind = _header(scope, b"content-type", JSON).partition(";")[0].strip()
    if kind.lower() not in ENCODINGS:
        raise RequestError(
            415, f"send {', '.join(ENCODINGS[:-1])} or {ENCODINGS[-1]}, not {quoted(kind)}."
        )
    return kind.lower()


def _header(scope: Scope, name: bytes, otherwise: str) -> str:
    found = next((value for own, value in scope["headers"] if own == name), None)
    return otherwise if found is None else found.decode("latin-1")


async def read_body(request: Request, most: int) -> bytes:
    """Return the body of a request, of ``most`` bytes at the most."""
    length = _header(request.scope, b"content-length", "0")
    if length.isdecimal() and (len(length) > 18 or int(length) > most):
        raise RequestError(413, f"{length[:18]} bytes are more than the {most} allowed.")
    chunks, size, more = [], 0, True
    while more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunk = message.get("body", b"")
        chunks.append(chunk)
        size += len(chunk)
        if size > most:
            raise RequestError(413, f"the request has more than the {most} bytes allowed.")
        more = message.get("more_body", False)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)
