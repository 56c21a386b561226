"""A server that starts with models that load, and stops when its requests are answered.

On SIGTERM or SIGINT it takes no more connections, answers the requests under way, and ends with
status 0. Limits on slow clients and on connections per address belong to a reverse proxy.
"""

from __future__ import annotations

import ipaddress
import logging
import math
import os
import signal
import socket
import ssl
from collections.abc import Sequence

import uvicorn

from rankwright.errors import UsageError
from rankwright.serve.app import Service
from rankwright.serve.model_store import ModelStore
from rankwright.serve.monitoring import log_event, log_to_standard_error
from rankwright.serve.settings import Listening, Settings, parse_models


def run_server(models: Sequence[str], *, settings: Settings, listening: Listening) -> None:
    """Serve until a signal ends it."""
    log_to_standard_error()
    store = ModelStore(parse_models(models))
    service = Service(store, settings)
    config = _config(service, listening)
    with listening_socket(listening) as bound:
        host, port = bound.getsockname()[:2]
        scheme = "https" if listening.tls_cert else "http"
        shown = f"[{host}]" if ":" in host else host
        log_event("listening", address=f"{scheme}://{shown}:{port}", models=store.names)
        if not settings.keys and not ipaddress.ip_address(host).is_loopback:
            log_event("open to the network without API keys", level=logging.WARNING, host=host)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)  # uvicorn raises them again when it has stopped
        uvicorn.Server(config).run(sockets=[bound])
    log_event("stopped")


def _config(service: Service, listening: Listening) -> uvicorn.Config:
    config = uvicorn.Config(
        service.middleware,
        limit_concurrency=listening.max_connections,
        timeout_keep_alive=math.ceil(listening.idle_seconds),
        timeout_graceful_shutdown=math.ceil(service.settings.seconds) + 1,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        ws="none",
        ssl_certfile=None if listening.tls_cert is None else str(listening.tls_cert),
        ssl_keyfile=None if listening.tls_key is None else str(listening.tls_key),
    )
    try:
        config.load()
    except (ssl.SSLError, OSError) as error:
        raise UsageError(f"the certificate {listening.tls_cert} cannot be used: {error}.") from None
    return config


def listening_socket(listening: Listening) -> socket.socket:
    """Return a socket that listens on the address."""
    family = socket.AF_INET6 if ":" in listening.host else socket.AF_INET
    # The protocol is named, because otherwise asyncio leaves Nagle's algorithm on: 40 ms an answer.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":  # elsewhere it would let two servers share a port
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((listening.host, listening.port))
        bound.listen()
    except (OSError, OverflowError) as error:
        bound.close()
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(
            f"cannot listen on {listening.host}, port {listening.port}: {reason}; choose another "
            "--host or --port (0 takes a free one)."
        ) from None
    return bound
