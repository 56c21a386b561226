"""Limits on connections: how many there are, and how long each may keep the server waiting.

A connection waits for its client while the headers of a request or its body arrive, and between
requests; it is busy once a request is whole, until the answer is sent. Each wait has a time limit,
counted from the moment the connection is accepted, so that a TLS handshake is part of it. Where
there are ``max_connections``, a new one takes the place of the one that has waited longest, and is
turned away only where all are busy: clients that open connections and send nothing cannot keep
others out. A reserve of file descriptors is left for model files and logs.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from rankwright.errors import UsageError

try:  # a third of the time for a request, where it is installed
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol as _Protocol
except ModuleNotFoundError:
    from uvicorn.protocols.http.h11_impl import (  # type: ignore[assignment]
        H11Protocol as _Protocol,
    )

_RESERVE = 64  # file descriptors for all but connections
_MOST_CLOSING = _RESERVE // 2  # connections that were ended and still hold a descriptor
_CLOSING_SECONDS = 1.0  # after which one is no longer waited for
_MOST_IN_HEADERS = 1 << 16  # bytes that have arrived and are not a whole request yet
_MOST_PIPELINED = 16  # requests that a client may send ahead of their answers
_BYTES_PER_BODY_BYTE = 8  # bytes that a body in chunks may take to arrive


class Connection:
    """One accepted connection: its socket, whether it is busy, and the timer that ends it."""

    __slots__ = ("busy", "number", "socket", "timer")

    def __init__(self, own: socket.socket) -> None:
        self.socket, self.number, self.busy = own, own.fileno(), False
        self.timer: asyncio.TimerHandle | None = None

    def cancel(self) -> None:
        """Stop the timer."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


class Connections:
    """The connections of a server, in the order in which they began to wait.

    ``on_closed`` is called with the reason when the server ends one: what took too long
    (``headers``, ``request``, ``answer``, ``idle``), ``replaced`` or ``refused``.
    """

    def __init__(
        self, most: int, *, header_seconds: float, on_closed: Callable[[str], None]
    ) -> None:
        self._most, self._header_seconds, self._on_closed = most, header_seconds, on_closed
        self._held: dict[int, Connection] = {}  # by file descriptor
        self._closing: list[tuple[float, socket.socket]] = []

    def accept(self, own: socket.socket) -> Connection | None:
        """Take a connection in, in the place of another where there are too many.

        Return None where all others are busy: the caller closes it.
        """
        if len(self._held) >= self._most:
            self._forget_closed()
        if len(self._held) >= self._most and not self._end_longest_waiting():
            self._on_closed("refused")
            return None
        made = Connection(own)
        if (before := self._held.get(made.number)) is not None:  # closed, as the number was free
            self.forget(before)
        self._held[made.number] = made
        self.await_headers(made)
        return made

    def of(self, own: socket.socket) -> Connection | None:
        """Return the connection of a socket, which is taken in where `accept` did not see it."""
        known = self._held.get(own.fileno())
        return known if known is not None else self.accept(own)

    @property
    def many_are_closing(self) -> bool:
        """Whether to wait for those that were ended before more are accepted."""
        if self._closing:
            since = time.monotonic() - _CLOSING_SECONDS
            self._closing = [
                one for one in self._closing if one[0] > since and one[1].fileno() != -1
            ]
        return len(self._closing) >= _MOST_CLOSING

    # --- what a connection is waiting for ----------------------------------------------------

    def await_headers(self, one: Connection) -> None:
        """Begin the time for the headers of a request."""
        self.wait(one, self._header_seconds, "headers")

    def wait(self, one: Connection, seconds: float, reason: str) -> None:
        """End a connection after so many seconds, unless it does something else before."""
        one.cancel()
        one.busy = False
        if self._held.get(one.number) is one:  # to the end: it has waited least
            self._held[one.number] = self._held.pop(one.number)
            loop = asyncio.get_running_loop()
            one.timer = loop.call_later(seconds, self._end, one, reason)

    def forget(self, one: Connection) -> None:
        """Note that a connection has ended."""
        one.cancel()
        if self._held.get(one.number) is one:
            del self._held[one.number]

    def _end_longest_waiting(self) -> bool:
        found = next((one for one in self._held.values() if not one.busy), None)
        if found is not None:
            self._end(found, "replaced")
        return found is not None

    def _end(self, one: Connection, reason: str) -> None:
        """End a connection whatever it is doing: its transport sees that the client has gone."""
        self.forget(one)
        self._on_closed(reason)
        self._closing.append((time.monotonic(), one.socket))
        with suppress(OSError):  # the client has gone by itself
            one.socket.shutdown(socket.SHUT_RDWR)

    def _forget_closed(self) -> None:
        for one in list(self._held.values()):
            if one.socket.fileno() == -1:  # such as a TLS handshake that failed
                self.forget(one)


class Listener(socket.socket):
    """A listening socket whose connections are counted from the moment they are accepted."""

    connections: Connections | None = None

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept a connection; the event loop asks again where there is none to be had now."""
        if self.connections is None:
            return super().accept()
        if self.connections.many_are_closing:
            raise BlockingIOError
        own, address = super().accept()
        if self.connections.accept(own) is None:
            own.close()
            raise ConnectionAbortedError
        return own, address


class JoinedWrites:
    """A transport that sends the head and the body of an answer together: one call, one packet."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._held: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Hold the bytes until `flush`, or until the event loop goes on."""
        if not self._held:
            self._loop.call_soon(self.flush)
        self._held.append(data)

    def flush(self) -> None:
        """Send what is held."""
        if self._held:
            held, self._held = self._held, []
            self._transport.write(b"".join(held))

    def close(self) -> None:
        """Send what is held, and close."""
        self.flush()
        self._transport.close()


class LimitedProtocol(_Protocol):
    """uvicorn's HTTP, which tells `Connections` what it is waiting for.

    ``seconds`` and ``max_body`` are those of a request. uvicorn over httptools, unlike over h11,
    takes headers of any length, and any number of requests ahead of their answers; not so here.
    """

    def __init__(
        self, *, connections: Connections, seconds: float, max_body: int, **given: Any
    ) -> None:
        super().__init__(**given)
        self._connections, self._seconds, self._max_body = connections, seconds, max_body
        self._own: Connection | None = None
        self._answered: Any = None  # the request that the timer was last set for
        self._in_headers = True
        self._taken = 0  # bytes since a request began to arrive

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, or end at once where there are too many."""
        joined: Any = JoinedWrites(transport, self.loop)
        super().connection_made(joined)
        self._own = self._connections.of(transport.get_extra_info("socket"))
        if self._own is None:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        if self._own is not None:
            self._connections.forget(self._own)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on; the first bytes of a request begin the time for its headers."""
        before = self.cycle
        in_body = before is not None and before.more_body
        super().data_received(data)
        self._follow()
        went_on = self.cycle is before and in_body == (before is not None and before.more_body)
        self._taken = self._taken + len(data) if went_on else 0
        most = _MOST_IN_HEADERS + (_BYTES_PER_BODY_BYTE * self._max_body if in_body else 0)
        if self._taken > most and not self.transport.is_closing():
            self.send_400_response("The request is too long.")

    def on_headers_complete(self) -> None:
        """Begin a request, unless too many wait for their answers on this connection."""
        if len(self.pipeline) >= _MOST_PIPELINED:
            raise ValueError("too many requests at a time")  # the parser answers 400 and closes
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        """Wait for the client to take its answer, and for the next request."""
        self.transport.flush()  # type: ignore[attr-defined]
        if self._own is not None:
            idle = self.config.timeout_keep_alive
            if self.transport.get_write_buffer_size():
                self._connections.wait(self._own, min(self._seconds, idle), "answer")
            else:
                self._connections.wait(self._own, idle, "idle")
        self._in_headers = False
        super().on_response_complete()
        if not self.cycle.response_complete:  # the next request has arrived already
            self._follow()

    def _follow(self) -> None:
        if self._own is None:
            return
        cycle = self.cycle
        if cycle is None or cycle.response_complete:
            if not self._in_headers:
                self._in_headers = True
                self._connections.await_headers(self._own)
            return
        if cycle is not self._answered:
            self._answered, self._in_headers = cycle, False
            # The answer comes within ``seconds``; the client has as long again to take it.
            self._connections.wait(self._own, 2 * self._seconds, "request")
        self._own.busy = not cycle.more_body


def connection_limit(wanted: int) -> int:
    """Return how many connections the file descriptors allow, ``wanted`` at the most.

    The process's own limit is raised as far as the system lets it.
    """
    try:
        import resource
    except ModuleNotFoundError:  # Windows, where a process may open as many as it likes
        return wanted
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return wanted
    needed = wanted + _RESERVE
    if soft < needed:
        most = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if soft <= _RESERVE:
        raise UsageError(
            f"the server may open {soft} files and needs more than {_RESERVE}; raise the limit: "
            "ulimit -n 1024."
        )
    return min(wanted, soft - _RESERVE)
