"""A real server in its own process: files replaced under load, and the end of a drain."""

import http.client
import json
import os
import signal
import socket
import ssl
import threading
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays
from served import NPY, documents, npy, save_model
from server_process import certificate, serving
from small_data import small_data
from soak import SECONDS

import rankwright
from rankwright.persist.container import read_parts, write_parts
from rankwright.serve.server import listening_socket
from rankwright.serve.settings import Listening

BODY = json.dumps({"query": "q", "documents": documents(20)[0]}).encode()
HEADERS = {"content-type": "application/json"}


class Client(threading.Thread):
    """Sends requests on one connection after the other until the server takes no more."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port, self.answers, self.errors = port, [], []
        self.leave = threading.Event()
        self.start()

    def run(self):
        while not self.leave.is_set():
            link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
            try:
                link.connect()
            except OSError:
                return  # not accepted
            try:
                while link.sock is not None and not self.leave.is_set():
                    link.request("POST", "/v1/models/web/rank", BODY, HEADERS)
                    answer = link.getresponse()
                    payload = json.loads(answer.read())
                    if answer.status == 200:
                        self.answers.append(payload["ranking"][0]["score"])
                    else:
                        self.errors.append(payload)
            except Exception as error:
                self.errors.append(repr(error))
                return
            finally:
                link.close()


def until(holds, seconds=60):
    """Wait until ``holds()``."""
    ends = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < ends, "waited in vain"
        time.sleep(0.02)


def is_refused(port):
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        link.connect()
    except OSError:
        return True
    link.close()
    return False


@pytest.fixture
def files(tmp_path):
    save_model(tmp_path / "web.rw")
    for seed in range(3):
        save_model(tmp_path / f"{seed}.rw", seed=seed)
    return tmp_path


def test_files_replaced_under_load_fail_no_request(files):
    with serving(f"web={files / 'web.rw'}", "--reload-seconds", 0.05) as server:
        clients = [Client(server.port) for _ in range(4)]
        for turn in range(10):
            fresh = files / "fresh.rw"
            fresh.write_bytes((files / f"{turn % 3}.rw").read_bytes())
            os.replace(fresh, files / "web.rw")
            until(lambda wanted=turn + 1: server.count("model replaced") == wanted)
            seen = [len(client.answers) + 2 for client in clients]
            until(
                lambda seen=seen: all(
                    client.errors or len(client.answers) >= n
                    for client, n in zip(clients, seen, strict=True)
                )
            )
        (files / "web.rw").write_text("not a model")
        server.wait_for("model kept")
        for client in clients:
            client.leave.set()
            client.join(60)
        server.process.send_signal(signal.SIGTERM)
        assert server.end() == 0
    assert [client.errors for client in clients] == [[]] * 4
    assert all(client.answers for client in clients)
    scores = {score for client in clients for score in client.answers}
    assert len(scores) == 3  # each model served some
    assert server.lines[-1]["event"] == "stopped"


@pytest.mark.soak
def test_many_clients_are_answered_while_files_are_replaced_and_memory_does_not_grow(files):
    with serving(f"web={files / 'web.rw'}", "--reload-seconds", 0.2) as server:
        clients = [Client(server.port) for _ in range(200)]
        until(lambda: all(client.answers or client.errors for client in clients))
        before, ends, turn = resident_megabytes(server.process.pid), time.monotonic() + SECONDS, 0
        while time.monotonic() < ends:
            turn += 1
            (files / "fresh.rw").write_bytes((files / f"{turn % 3}.rw").read_bytes())
            os.replace(files / "fresh.rw", files / "web.rw")
            time.sleep(min(1.0, SECONDS / 10))
        after = resident_megabytes(server.process.pid)
        for client in clients:
            client.leave.set()
            client.join(60)
        server.process.send_signal(signal.SIGTERM)
        assert server.end() == 0
    assert [client.errors for client in clients if client.errors] == []
    assert after < 1.5 * before + 50
    assert server.count("model replaced") > turn // 2


def resident_megabytes(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def test_a_hostile_file_neither_stalls_nor_replaces_the_model(files):
    """A million nodes whose children form a cycle: a walk through such a tree never ends."""
    save_model(files / "web.rw", "lambdamart", n_estimators=2)
    receipt, parts = read_parts(files / "web.rw")
    (name,) = [name for name in parts if name.endswith(".safetensors")]
    arrays, n = load_arrays(parts[name]), 1_000_001
    for key in ("feature", "threshold", "left", "right", "value", "rule", "cover", "gain"):
        arrays[key] = np.zeros(n, arrays[key].dtype)
    arrays["left"] += np.roll(np.arange(n, dtype=np.int32), -1)
    arrays["right"] += np.roll(np.arange(n, dtype=np.int32), -2)
    arrays["roots"], arrays["shrinkage"] = np.zeros(1, np.int32), np.ones(1)
    parts[name] = save_arrays(arrays)
    plain = {key: value for key, value in receipt.items() if key not in ("format", "parts")}
    with serving(f"web={files / 'web.rw'}", "--reload-seconds", 0.05) as server:
        write_parts(files / "web.rw", plain, parts)
        link = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
        while not server.count("model kept"):
            link.request("GET", "/healthz")  # each answer must come within the timeout
            assert link.getresponse().read() == b'{"status":"ok"}'
        link.request("POST", "/v1/models/web/rank", BODY, HEADERS)
        assert link.getresponse().status == 200
        link.close()


def test_a_request_under_way_is_answered_after_the_signal(files):
    with serving(f"web={files / 'web.rw'}") as server:
        link = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        link.putrequest("POST", "/v1/models/web/rank")
        link.putheader("content-type", "application/json")
        link.putheader("content-length", str(len(BODY)))
        link.endheaders(BODY[:-10])
        time.sleep(0.3)
        server.process.send_signal(signal.SIGTERM)
        until(lambda: is_refused(server.port))
        link.send(BODY[-10:])
        answer = link.getresponse()
        assert answer.status == 200
        assert len(json.loads(answer.read())["ranking"]) == 20
        link.close()
        assert server.end() == 0


def test_a_client_that_stops_sending_is_given_up(files):
    with serving(f"web={files / 'web.rw'}", "--seconds", 0.3) as server:
        link = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        link.putrequest("POST", "/v1/models/web/rank")
        link.putheader("content-length", "1000")
        link.endheaders(b"{")
        answer = link.getresponse()
        assert answer.status == 408
        assert "did not arrive within 0.3 s" in json.loads(answer.read())["error"]
        link.close()
        server.process.send_signal(signal.SIGINT)
        assert server.end() == 0


def test_https_with_a_certificate(files):
    key, cert = certificate(files)
    with serving(files / "web.rw", "--tls-cert", cert, "--tls-key", key) as server:
        assert server.lines[0]["address"].startswith("https://127.0.0.1:")
        context = ssl.create_default_context(cafile=cert)
        link = http.client.HTTPSConnection("127.0.0.1", server.port, context=context, timeout=30)
        link.request("GET", "/healthz")
        assert json.loads(link.getresponse().read()) == {"status": "ok"}
        link.close()
        server.process.send_signal(signal.SIGTERM)
        assert server.end() == 0


def post(port, content, headers=HEADERS, path="rank"):
    """Send a request on a connection of its own; return the status of its answer."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as link:
        link.request("POST", f"/v1/models/web/{path}", content, headers)
        return link.getresponse().status


@pytest.fixture(scope="module")
def forest(tmp_path_factory):
    """Return a model of 300 trees on 40 features; to explain `LARGE` takes it about a minute."""
    path = tmp_path_factory.mktemp("forest") / "forest.rw"
    data = small_data(queries=30, documents=40, features=40)
    rankwright.LambdaMART(n_estimators=300, num_leaves=63, min_child_samples=2).fit(data).save(path)
    return path


LARGE = npy(np.random.default_rng(0).normal(size=(50_000, 40)).astype(np.float32))
SMALL = npy(np.zeros((3, 40)))


def test_a_request_that_took_too_long_does_not_keep_others_waiting(forest):
    """The time limit ends the work as well, or the request is refused before it begins."""
    limits = ("--seconds", 1, "--threads", 1, "--max-documents", 50_000)
    with serving(f"web={forest}", *limits) as server:
        assert post(server.port, SMALL, NPY) == 200
        assert post(server.port, LARGE, NPY, "rank?explain=1") in (200, 413, 503)
        until(lambda: post(server.port, SMALL, NPY) == 200, 4)


def test_a_signal_ends_the_server_soon_whatever_was_asked(forest):
    limits = ("--seconds", 1, "--max-documents", 50_000)
    with (
        serving(f"web={forest}", *limits) as server,
        closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)) as link,
    ):
        link.request("POST", "/v1/models/web/rank?explain=1", LARGE, NPY)
        time.sleep(0.5)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(20) == 0


def test_a_fifo_in_place_of_a_model_file_stops_neither_reloading_nor_the_end(files):
    models = f"web={files / 'web.rw'}", f"other={files / '0.rw'}"
    with serving(*models, "--reload-seconds", 0.05) as server:
        os.mkfifo(files / "fifo")
        os.replace(files / "fifo", files / "web.rw")
        server.wait_for("model kept", seconds=3)
        os.replace(files / "1.rw", files / "0.rw")
        server.wait_for("model replaced", seconds=3)
        assert post(server.port, BODY) == 200
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(20) == 0


def test_a_ready_server_has_the_kernels_of_every_request(files, monkeypatch):
    save_model(files / "web.rw", "lambdamart", n_estimators=2)
    monkeypatch.setenv("RANKWRIGHT_CACHE", str(files / "empty"))
    with serving(f"web={files / 'web.rw'}", "--seconds", 1) as server:
        assert post(server.port, BODY) == 200
        kernels = set((files / "empty").rglob("*"))
        assert post(server.port, BODY.replace(b"{", b'{"explain": 1, ', 1)) == 200
        assert set((files / "empty").rglob("*")) == kernels


def test_answers_are_sent_at_once():
    """Of sockets whose protocol is not named, asyncio does not turn Nagle's algorithm off."""
    with listening_socket(Listening(port=0)) as bound:
        assert bound.proto == socket.IPPROTO_TCP


def test_health_is_answered_while_600_connections_are_idle(files):
    with serving(files / "web.rw") as server:
        idle = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(600)]
        with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)) as link:
            link.request("GET", "/healthz")
            assert link.getresponse().status == 200
        for connection in idle:
            connection.close()


def test_requests_on_too_many_connections_are_answered_503(files):
    with serving(files / "web.rw", "--max-connections", 3) as server:
        idle = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(5)]
        until(lambda: post(server.port, BODY) == 503)
        for connection in idle:
            connection.close()
        until(lambda: post(server.port, BODY) == 200)
