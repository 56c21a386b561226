"""Threads that compute answers, so that the event loop is free for health checks and others."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from starlette.requests import Request

from rankwright.core.parallel import thread_count
from rankwright.errors import quoted
from rankwright.serve.faults import RequestError
from rankwright.serve.settings import Settings

_T = TypeVar("_T")


class Work:
    """A pool of threads with a limited queue, and bodies that are read within limits."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        threads = thread_count(settings.threads)
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="rankwright-serve")
        self._lock = threading.Lock()
        self._held = 0

    async def answer(self, request: Request, compute: Callable[[bytes], _T]) -> _T:
        """Return what ``compute`` makes of the request's body, all within the time limit."""
        limit = self._settings.seconds
        ends = asyncio.get_running_loop().time() + limit
        try:
            async with asyncio.timeout_at(ends):
                body = await read_body(request, self._settings.max_body)
        except TimeoutError:
            raise RequestError(408, f"the request did not arrive within {limit:g} s.") from None
        future = self._submit(compute, body)
        try:
            async with asyncio.timeout_at(ends):
                return await asyncio.wrap_future(future)
        except TimeoutError:
            raise RequestError(503, f"there was no answer within {limit:g} s.") from None

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
        """Let the threads go; what nobody waits for any more is dropped."""
        self._pool.shutdown(wait=False, cancel_futures=True)


async def read_body(request: Request, most: int) -> bytes:
    """Return the body of a request, of ``most`` bytes at the most."""
    kind = request.headers.get("content-type", "application/json").partition(";")[0].strip()
    if kind.lower() != "application/json":
        raise RequestError(415, f"send application/json, not {quoted(kind)}.")
    told = request.headers.get("content-length", "0")
    if told.isdecimal() and (len(told) > 18 or int(told) > most):
        raise RequestError(413, f"{told[:18]} bytes are more than the {most} allowed.")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            raise RequestError(413, f"the request has more than the {most} bytes allowed.")
    return bytes(body)
