"""A server that starts with models that load, and stops when every request has its answer.

On SIGTERM or SIGINT ``/readyz`` says 503 and each answer closes its connection, for
``drain_seconds`` in which new connections are still taken. Then the server stops listening, waits
until the connections it has taken are answered, and ends with status 0. A second signal ends it at
once.
"""

from __future__ import annotations

import asyncio
import ctypes
import ipaddress
import logging
import os
import socket
import ssl
import struct
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import Any

import uvicorn

from rankwright.errors import UsageError
from rankwright.serve.app import Service
from rankwright.serve.connections import (
    Connections,
    LimitedProtocol,
    Listener,
    connection_limit,
)
from rankwright.serve.middleware import log_event, log_to_standard_error
from rankwright.serve.model_store import ModelStore
from rankwright.serve.settings import Listening, Settings, parse_models

_SETTLE = 0.5  # for a connection just taken to send its request
_QUEUE = 0.1  # for connections that the kernel has opened to be taken
_ATTACH_FILTER = 26  # Linux's SO_ATTACH_FILTER, which the socket module does not name


def run_server(models: Sequence[str], *, settings: Settings, listening: Listening) -> None:
    """Serve until a signal ends it."""
    log_to_standard_error()
    store = ModelStore(parse_models(models))
    service = Service(store, settings)
    most = connection_limit(listening.max_connections)
    if most < listening.max_connections:
        log_event("fewer connections: few files may be open", level=logging.WARNING, most=most)
    connections = Connections(
        most,
        header_seconds=listening.header_seconds,
        on_closed=service.metrics.count_closed,
    )
    with _bound(listening) as bound:
        bound.connections = connections
        config = _config(service, listening, connections)
        server = DrainingServer(config, service, listening, bound)
        host, port = bound.getsockname()[:2]
        scheme = "https" if listening.tls_cert else "http"
        shown = f"[{host}]" if ":" in host else host
        log_event("listening", address=f"{scheme}://{shown}:{port}", models=store.names)
        if not settings.keys and not ipaddress.ip_address(host).is_loopback:
            log_event("open to the network without API keys", level=logging.WARNING, host=host)
        server.run(sockets=[bound])
    log_event("stopped")


class DrainingServer(uvicorn.Server):
    """uvicorn's server, with a signal that begins a drain."""

    def __init__(
        self, config: uvicorn.Config, service: Service, listening: Listening, bound: socket.socket
    ) -> None:
        super().__init__(config)
        self._service, self._listening, self._bound = service, listening, bound
        self._loop: asyncio.AbstractEventLoop | None = None
        self._drain_task: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and remember the loop for the signal."""
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets=sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """Begin to drain; at the second signal, or before the start, end at once."""
        if self._loop is None or self._service.middleware.draining:
            self.should_exit = self.force_exit = True
            return
        self._service.middleware.draining = True
        self._loop.call_soon_threadsafe(self._begin)

    def _begin(self) -> None:
        assert self._loop is not None
        log_event("draining", connections=len(self.server_state.connections))
        self._drain_task = self._loop.create_task(self._drain())

    async def _drain(self) -> None:
        await asyncio.sleep(self._listening.drain_seconds)
        _open_no_more(self._bound)
        await asyncio.sleep(_QUEUE)
        for server in self.servers:
            server.close()
        clock = asyncio.get_running_loop().time
        settled, most = clock() + _SETTLE, clock() + self._service.settings.seconds + _SETTLE
        while self.server_state.connections and clock() < most:
            if clock() > settled and not any(map(_is_busy, self.server_state.connections)):
                break
            await asyncio.sleep(0.02)
        self.should_exit = True


def _open_no_more(bound: socket.socket) -> None:
    """Let the kernel drop what would open further connections, where it can (Linux).

    It opens connections before a server takes them, and closing the socket would reset those that
    were not taken yet. A client that is dropped tries again, and is then refused.
    """
    if sys.platform == "linux":
        drop = ctypes.create_string_buffer(struct.pack("=HBBI", 6, 0, 0, 0))  # BPF: return 0 bytes
        with suppress(OSError):
            program = struct.pack("@HP", 1, ctypes.addressof(drop))
            bound.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, program)


def _is_busy(connection: Any) -> bool:
    cycle = getattr(connection, "cycle", None)
    return cycle is not None and not cycle.response_complete


def _config(service: Service, listening: Listening, connections: Connections) -> uvicorn.Config:
    seconds = service.settings.seconds
    protocol: Any = partial(
        LimitedProtocol,
        connections=connections,
        seconds=seconds,
        max_body=service.settings.max_body,
    )
    config = uvicorn.Config(
        service.middleware,
        http=protocol,
        loop="asyncio",  # others do not call `Listener.accept`
        timeout_keep_alive=listening.idle_seconds,  # type: ignore[arg-type]  # any number will do
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        ws="none",
        timeout_graceful_shutdown=int(seconds) + 1,
        ssl_certfile=None if listening.tls_cert is None else str(listening.tls_cert),
        ssl_keyfile=None if listening.tls_key is None else str(listening.tls_key),
    )
    try:
        config.load()
    except (ssl.SSLError, OSError) as error:
        raise UsageError(f"the certificate {listening.tls_cert} cannot be used: {error}.") from None
    return config


def _bound(listening: Listening) -> Listener:
    family = socket.AF_INET6 if ":" in listening.host else socket.AF_INET
    # The protocol is named: without it asyncio leaves Nagle's algorithm on, 40 ms an answer.
    bound = Listener(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":  # elsewhere it would let two servers share a port
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((listening.host, listening.port))
        bound.listen()
    except (OSError, OverflowError) as error:
        bound.close()
        why = error.strerror if isinstance(error, OSError) else error
        raise UsageError(
            f"cannot listen on {listening.host}, port {listening.port}: {why}; choose another "
            "--host or --port (0 takes a free one)."
        ) from None
    return bound
