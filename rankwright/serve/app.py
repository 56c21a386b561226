"""The HTTP interface: rankings and scores of models by name, health checks, metrics, OpenAPI."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import msgspec
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from rankwright.core.parallel import thread_count
from rankwright.errors import RankwrightError, quoted
from rankwright.serve.bodies import json_lists, npy_lists, parse
from rankwright.serve.handlers import Scored, rank_answers, score_answers, score_queries
from rankwright.serve.interleaving import Experiment
from rankwright.serve.model_store import LoadedModel, ModelStore
from rankwright.serve.monitoring import RequestMiddleware, ServerMetrics, log_event
from rankwright.serve.openapi import JSON, NPY, Endpoint, openapi
from rankwright.serve.schemas import (
    AskedList,
    ClickAnswer,
    ClickRequest,
    InterleavedAnswer,
    RankAnswer,
    RankBatch,
    RankBatchAnswer,
    RankRequest,
    RequestError,
    ScoreAnswer,
    ScoreBatch,
    ScoreBatchAnswer,
    ScoreRequest,
)
from rankwright.serve.settings import Settings

T = TypeVar("T")
Compute = Callable[[Request, bytes], Any]


class Service:
    """An application over a store of models; a server runs its ``middleware``."""

    def __init__(self, store: ModelStore, settings: Settings) -> None:
        self.store, self.settings = store, settings
        self.metrics = ServerMetrics(store)
        self.experiment: Experiment | None = None
        if settings.interleave is not None:
            self.experiment = Experiment(store, settings, self.metrics)
        self._threads = ThreadPoolExecutor(
            thread_count(settings.threads), thread_name_prefix="rankwright-serve"
        )
        self._waiting, self._lock = 0, threading.Lock()
        endpoints = list(self._endpoints())
        self._openapi = openapi(endpoints, self._model_names())
        self.api = Starlette(
            routes=[
                *(Route(one.path, one.respond, methods=[one.method]) for one in endpoints),
                Route("/openapi.json", self._describe),
            ],
            exception_handlers={
                RankwrightError: _refused,
                HTTPException: _not_found,
                Exception: _failed,
            },
            lifespan=self._lifespan,
        )
        self.middleware = RequestMiddleware(self.api, settings, self.metrics)

    # --- endpoints ---------------------------------------------------------------------------

    def _endpoints(self) -> list[Endpoint]:
        model = "/v1/models/{name}"
        endpoints = [
            self._ranking(f"{model}/rank", RankRequest, RankAnswer),
            self._ranking(f"{model}/score", ScoreRequest, ScoreAnswer),
            self._ranking(f"{model}/rank/batch", RankBatch, RankBatchAnswer),
            self._ranking(f"{model}/score/batch", ScoreBatch, ScoreBatchAnswer),
        ]
        if self.experiment is not None:
            endpoints += [
                self._post(
                    "/v1/interleave/rank",
                    ScoreRequest,
                    InterleavedAnswer,
                    self._interleave,
                    summary="Rank the documents of one query with all models, interleaved.",
                ),
                self._post("/v1/interleave/clicks", ClickRequest, ClickAnswer, self._click),
            ]
        plain = (
            ("/v1/models", "Models that are served.", self._models),
            (model, "Versions of a model.", self._versions),
            ("/healthz", "Liveness: whether the process answers.", self._health),
            ("/readyz", "Readiness: whether to send requests here.", self._readiness),
            ("/metrics", "Metrics for Prometheus.", self._prometheus),
        )
        return [*endpoints, *(_get(*arguments) for arguments in plain)]

    def _ranking(self, path: str, asked: type[Any], answered: type[Any]) -> Endpoint:
        """Return ``POST /v1/models/NAME/VERB``; NAME can be NAME@VERSION."""
        answers = rank_answers if asked in (RankRequest, RankBatch) else score_answers
        is_batch = asked in (RankBatch, ScoreBatch)

        def compute(request: Request, body: bytes) -> Any:
            name = request.path_params["name"]
            self._named(name)
            lists = _lists(request, asked, body, takes_npy=not is_batch)
            scored = score_queries(
                self.store, name, lists, self.settings, default_id=request.state.request_id
            )
            self._count(request, len(scored), scored)
            results = answers(scored)
            return {"results": results} if is_batch else results[0]

        return self._post(path, asked, answered, compute, takes_npy=not is_batch)

    def _interleave(self, request: Request, body: bytes) -> Any:
        assert self.experiment is not None
        lists = _lists(request, ScoreRequest, body, takes_npy=False)  # a matrix has no ids
        answer, scored = self.experiment.rank(lists[0])
        self._count(request, 1, scored)
        return answer

    def _click(self, request: Request, body: bytes) -> Any:
        assert self.experiment is not None
        _content_type(request, (JSON,))
        return self.experiment.click(parse(ClickRequest, body))

    def _post(
        self,
        path: str,
        asked: type[Any],
        answered: type[Any],
        compute: Compute,
        *,
        takes_npy: bool = False,
        summary: str | None = None,
    ) -> Endpoint:
        async def respond(request: Request) -> Response:
            request.state.route = path
            return Response(await self._answer(request, compute), media_type=JSON)

        text = summary or (asked.__doc__ or "")
        return Endpoint("POST", path, text, respond, asked, answered, takes_npy)

    def _model_names(self) -> list[str]:
        return self.store.names + [loaded.version.pinned for loaded in self.store.models]

    def _named(self, name: str) -> list[LoadedModel]:
        try:
            return self.store.named(name)
        except RankwrightError as error:
            raise RequestError(404, str(error)) from None

    def _count(self, request: Request, queries: int, scored: Sequence[Scored]) -> None:
        request.state.queries = queries
        request.state.documents = sum(len(one.scores) for one in scored)
        for one in scored:
            version = one.loaded.version
            self.metrics.queries.labels(version.name, version.version).inc()
            self.metrics.documents.labels(version.name, version.version).inc(len(one.scores))

    async def _models(self, _: Request) -> Response:
        return JSONResponse({"models": [loaded.about for loaded in self.store.models]})

    async def _versions(self, request: Request) -> Response:
        models = self._named(request.path_params["name"])
        return JSONResponse({"models": [loaded.about for loaded in models]})

    async def _health(self, _: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def _readiness(self, _: Request) -> Response:
        models = [loaded.state for loaded in self.store.models]
        return JSONResponse({"status": "ready", "models": models})

    async def _prometheus(self, _: Request) -> Response:
        return Response(self.metrics.text(), media_type=CONTENT_TYPE_LATEST)

    async def _describe(self, _: Request) -> Response:
        return JSONResponse(self._openapi)

    # --- bodies and threads ------------------------------------------------------------------

    async def _answer(self, request: Request, compute: Compute) -> bytes:
        """Return the answer to a request as JSON, within the time limit.

        A thread computes it, so that the event loop is free for health checks.
        """
        seconds = self.settings.seconds
        ends = asyncio.get_running_loop().time() + seconds
        try:
            async with asyncio.timeout_at(ends):
                body = await read_body(request, self.settings.max_body)
        except TimeoutError:
            raise RequestError(408, f"the request did not arrive within {seconds:g} s.") from None
        future = self.submit(lambda: msgspec.json.encode(compute(request, body)))
        try:
            async with asyncio.timeout_at(ends):  # cancels the work if no thread has begun it
                return await asyncio.wrap_future(future)
        except TimeoutError:
            raise RequestError(503, f"there was no answer within {seconds:g} s.") from None

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Let a thread do some work, which counts as waiting until it is done."""
        with self._lock:
            if self._waiting >= self.settings.max_waiting:
                raise RequestError(503, f"{self._waiting} requests are waiting; try again later.")
            self._waiting += 1
        future = self._threads.submit(work)
        future.add_done_callback(self._end_waiting)
        return future

    def _end_waiting(self, _: Future[Any]) -> None:
        with self._lock:
            self._waiting -= 1

    # --- model files -------------------------------------------------------------------------

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        watching = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            watching.cancel()
            self._threads.shutdown(wait=False, cancel_futures=True)
            if self.experiment is not None:
                self.experiment.close()

    async def _watch(self) -> None:
        """Check the model files at regular intervals."""
        while self.settings.reload_seconds > 0:
            await asyncio.sleep(self.settings.reload_seconds)
            try:
                await asyncio.to_thread(self.store.reload, self._on_reload)
            except Exception as error:  # the next check may succeed
                log_event("reload failed", level=logging.ERROR, error=repr(error))

    def _on_reload(self, loaded: LoadedModel) -> None:
        self.metrics.count_reload(loaded)
        version = loaded.version
        which: dict[str, Any] = {
            "model": version.name,
            "version": version.version,
            "file": str(version.path),
        }
        if loaded.error is None:
            log_event("model replaced", **which)
        else:
            log_event("model kept", level=logging.WARNING, error=loaded.error, **which)


def _get(path: str, summary: str, answer: Callable[[Request], Awaitable[Response]]) -> Endpoint:
    async def respond(request: Request) -> Response:
        request.state.route = path
        return await answer(request)

    return Endpoint("GET", path, summary, respond)


# --- bodies ------------------------------------------------------------------------------------


def _lists(request: Request, asked: type[Any], body: bytes, *, takes_npy: bool) -> list[AskedList]:
    """Return the lists in the body of a request."""
    kind = _content_type(request, (JSON, NPY) if takes_npy else (JSON,))
    read = npy_lists if kind == NPY else json_lists
    return read(asked, body, request.scope["query_string"])


def _content_type(request: Request, accepted: tuple[str, ...]) -> str:
    kind = request.headers.get("content-type", JSON).partition(";")[0].strip()
    if kind.lower() not in accepted:
        raise RequestError(415, f"send {' or '.join(accepted)}, not {quoted(kind)}.")
    return kind.lower()


async def read_body(request: Request, limit: int) -> bytes:
    """Return the body of a request of at most ``limit`` bytes."""
    length = request.headers.get("content-length", "0")
    if length.isdecimal() and (len(length) > 18 or int(length) > limit):
        raise RequestError(413, f"{length[:18]} bytes are more than the {limit} allowed.")
    chunks, size = [], 0
    async for chunk in request.stream():
        chunks.append(chunk)
        size += len(chunk)
        if size > limit:
            raise RequestError(413, f"the request has more than the {limit} bytes allowed.")
    return b"".join(chunks)


# --- errors ------------------------------------------------------------------------------------


async def _refused(request: Request, error: Exception) -> Response:
    return _refusal(request, error.status if isinstance(error, RequestError) else 422, str(error))


async def _not_found(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    sentence = f"{request.method} {request.url.path[:200]}: {error.detail}."
    return _refusal(request, error.status_code, sentence, error.headers)


async def _failed(request: Request, error: Exception) -> Response:
    if isinstance(error, ClientDisconnect):
        raise error
    return _refusal(request, 500, "the server failed; its log has the request's id.")


def _refusal(request: Request, status: int, sentence: str, headers: Any = None) -> Response:
    request.state.error = sentence
    headers = dict(headers or {})
    if status == 503:
        headers["retry-after"] = "1"
    if status in (408, 413):
        headers["connection"] = "close"  # the rest of the body is not read
    content = {"error": sentence, "request_id": request.state.request_id}
    return JSONResponse(content, status, headers)
