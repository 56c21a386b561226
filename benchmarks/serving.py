"""The server against a plain one (FastAPI, pydantic, LightGBM's predict), and under failures.

LambdaMART of 500 trees of 31 leaves. *Speed*: requests per second with lists of 100 documents of
136 features, and with 10 documents of 20; `plain_server.py` also runs on uvicorn with httptools.
Eight clients (keep-alive connections of one process) send prepared bytes from the same cores. The
servers take turns, and the best of three turns counts.

*Failures*: while four clients send JSON, the model file is replaced ten times and one request in
fifty is malformed; at the end the server is asked to stop. Unexpected answers count as failures.
"""

from __future__ import annotations

import io
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rankwright import LambdaMART

from .contest import OURS, Results, Row
from .timing import bytes_of, in_new_process

SECONDS, TREES = 20.0, 500
CLIENTS, TURNS, TURN_SECONDS = 8, 3, 1.0
LISTS = {"web": (100, 136), "short": (10, 20)}  # documents and features of a list
MALFORMED = (b"{", b"[" * 5000, b'{"documents": [{"features": [NaN]}]}', b'{"documents": 7}')
SERVE = [sys.executable, "-m", "rankwright", "serve"]
HERE = Path(__file__).resolve().parent


class Server(NamedTuple):
    """A running server."""

    process: subprocess.Popen[str]
    port: int


class Load(NamedTuple):
    """The milliseconds of each good request, the number of unexpected answers, and the seconds."""

    milliseconds: np.ndarray
    failed: int
    seconds: float


def run() -> Results:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        results = Results()
        for shape, (documents, features) in LISTS.items():
            results.add(_speed(folder, shape, documents, features))
        results.add(_failures(folder))
        return results


# --- speed ---------------------------------------------------------------------------------------


def _speed(folder: Path, shape: str, documents: int, features: int) -> Results:
    model, text = folder / f"{shape}.rw", folder / f"{shape}.txt"
    _save_model(model, 0, features)
    text.write_bytes(zipfile.ZipFile(model).read("lightgbm.txt"))
    plain = [sys.executable, str(HERE / "plain_server.py"), str(text)]
    best: dict[str, Load] = {}
    with (
        serving([*SERVE, f"{shape}={model}", "--port", "0"]) as ours,
        serving(plain) as theirs,
    ):
        for turn in range(TURNS + 1):
            for kind, request in _requests(shape, documents, features).items():
                port = theirs.port if kind == "plain" else ours.port
                load = in_new_process(send, port, [request], CLIENTS, TURN_SECONDS)
                if load.failed or not len(load.milliseconds):
                    raise RuntimeError(f"{kind}: {load.failed} requests failed")
                if turn > 0 and (kind not in best or _rate(load) > _rate(best[kind])):
                    best[kind] = load
    results = Results()
    for kind, load in best.items():
        tool = "FastAPI" if kind == "plain" else f"{OURS}, {kind}"
        p50, p99 = np.percentile(load.milliseconds, (50, 99))
        settings = f"p50 {p50:.1f} ms, p99 {p99:.1f} ms, {CLIENTS} clients"
        task = f"Seconds per request, lists of {documents} x {features}"
        results.rows.append(Row(task, tool, settings, 1.0 / _rate(load)))
        if kind != "plain":
            prefix = "" if shape == "web" else f"{shape}_"
            results.ratios[f"{prefix}{kind}_vs_plain"] = _rate(load) / _rate(best["plain"])
    return results


def _rate(load: Load) -> float:
    """Return answers per second."""
    return len(load.milliseconds) / load.seconds


def _requests(model: str, documents: int, features: int) -> dict[str, bytes]:
    """Return the bytes of a request for each encoding: the same list in each."""
    X = np.random.default_rng(0).normal(size=(documents, features)).round(6)
    listed = [{"id": f"d{row}", "features": values} for row, values in enumerate(X.tolist())]
    body = json.dumps({"query": 0, "documents": listed, "top": 10}).encode()
    matrix = io.BytesIO()
    np.save(matrix, X)
    rank = f"/v1/models/{model}/rank"
    return {
        "plain": _request("/rank", body),
        "json": _request(rank, body),
        "npy": _request(f"{rank}?query=0&top=10", matrix.getvalue(), "application/x-npy"),
    }


def _request(path: str, body: bytes, encoding: str = "application/json") -> bytes:
    head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: {encoding}\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


# --- failures ------------------------------------------------------------------------------------


def _failures(folder: Path) -> Results:
    documents, features = LISTS["web"]
    models = [_save_model(folder / f"{seed}.rw", seed, features) for seed in (0, 1)]
    served = folder / "served.rw"
    served.write_bytes(models[0])
    good = _requests("web", documents, features)["json"]
    requests = [good] * 49 + [_request("/v1/models/web/rank", body) for body in MALFORMED[:1]]
    for body in MALFORMED[1:]:
        requests += [good] * 49 + [_request("/v1/models/web/rank", body)]
    command = [*SERVE, f"web={served}", "--port", "0", "--reload-seconds", "0.2"]
    with serving(command) as server:
        send(server.port, requests, 4, 2.0)  # kernels, imports and pools take memory once
        before = bytes_of("VmRSS:", server.process.pid)
        loads: list[Load] = []
        sender = threading.Thread(
            target=lambda: loads.append(send(server.port, requests, 4, SECONDS + 1))
        )
        sender.start()
        for turn in range(10):
            time.sleep(SECONDS / 10)
            fresh = folder / "fresh.rw"
            fresh.write_bytes(models[(turn + 1) % 2])
            os.replace(fresh, served)
        after = bytes_of("VmRSS:", server.process.pid)
        server.process.send_signal(signal.SIGTERM)  # the load continues for a second
        sender.join()
        status = server.process.wait(60)
    failed = float(loads[0].failed + (status != 0))
    return Results({"failed_requests": failed, "memory_after_vs_before": after / before})


def _save_model(path: Path, seed: int, features: int) -> bytes:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(6000, features)).astype(np.float32)
    y = np.clip((X[:, :6].sum(1) * 0.5 + 1 + rng.normal(size=len(X))).round(), 0, 4)
    model = LambdaMART(n_estimators=TREES, num_leaves=31, learning_rate=0.05)
    model.fit(X, y, group_sizes=[100] * 60).save(path)
    return path.read_bytes()


@contextmanager
def serving(command: list[str]) -> Iterator[Server]:
    """Run a server, which prints its address or port first."""
    environment = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE"}  # waiting threads must not spin
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    )
    try:
        line = json.loads(process.stdout.readline())
        threading.Thread(target=process.stdout.read, daemon=True).start()
        port = line if isinstance(line, int) else int(line["address"].rpartition(":")[2])
        yield Server(process, port)
    finally:
        process.kill()
        process.wait()


# --- clients -------------------------------------------------------------------------------------


class Client:
    """A connection, the unsent part of the current request, and the received part of its answer."""

    def __init__(self, port: int, selector: selectors.BaseSelector) -> None:
        self.port, self.selector, self.sent = port, selector, 0

    def connect(self) -> None:
        """Connect to the server."""
        self.link = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        self.link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.link.setblocking(False)
        self.selector.register(self.link, selectors.EVENT_READ, self)

    def close(self) -> None:
        """Close the connection."""
        self.selector.unregister(self.link)
        self.link.close()

    def begin(self, requests: list[bytes]) -> None:
        """Begin the next request."""
        self.request = requests[self.sent % len(requests)]
        self.sent += 1
        self.unsent, self.answer, self.size = memoryview(self.request), bytearray(), 0
        self.start = time.perf_counter()
        self.send()
        if self.unsent:
            self.selector.modify(self.link, selectors.EVENT_READ | selectors.EVENT_WRITE, self)

    def send(self) -> None:
        """Send as much as the connection accepts."""
        try:
            while self.unsent:
                self.unsent = self.unsent[self.link.send(self.unsent) :]
        except BlockingIOError:
            return
        except OSError:
            self.unsent = memoryview(b"")  # the server closed the connection: `receive` raises

    def receive(self) -> int:
        """Return the status if the answer is complete, else 0."""
        chunk = self.link.recv(1 << 18)
        if not chunk:
            raise ConnectionError("the server closed the connection")
        self.answer += chunk
        if not self.size:
            head, end, _ = self.answer.partition(b"\r\n\r\n")
            if not end:
                return 0
            length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
            self.size = len(head) + 4 + int(length)
        return int(self.answer[9:12]) if len(self.answer) >= self.size else 0


def send(port: int, requests: list[bytes], clients: int, seconds: float) -> Load:
    """Send requests over some connections until the time is over or the server stops.

    The first request is answered with 200, any other one with 4xx.
    """
    milliseconds: list[float] = []
    failed, start = 0, time.perf_counter()
    with selectors.DefaultSelector() as selector:
        for _ in range(clients):
            client = Client(port, selector)
            client.connect()
            client.begin(requests)
        while selector.get_map():
            for key, event in selector.select():
                client = key.data
                close = False
                try:
                    if event & selectors.EVENT_WRITE:
                        client.send()
                        if not client.unsent:
                            selector.modify(client.link, selectors.EVENT_READ, client)
                    status = client.receive() if event & selectors.EVENT_READ else 0
                except OSError:
                    status, close = -1, True
                if not status:
                    continue
                good = client.request is requests[0]
                failed += status // 100 != (2 if good else 4)
                if good and not close:
                    milliseconds.append(1000 * (time.perf_counter() - client.start))
                if time.perf_counter() - start > seconds:
                    client.close()
                    continue
                if close or b"connection: close" in client.answer[: client.size].lower():
                    client.close()
                    try:
                        client.connect()
                    except OSError:
                        continue  # the server accepts no more connections
                client.begin(requests)
    return Load(np.array(milliseconds), failed, time.perf_counter() - start)
