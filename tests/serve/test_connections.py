"""A real server whose clients open connections and send nothing, or send and read slowly."""

import asyncio
import http.client
import json
import re
import socket
import ssl
import time
from contextlib import ExitStack
from types import SimpleNamespace

import pytest
from served import save_model
from server_process import certificate, serving

from rankwright.errors import UsageError
from rankwright.serve.connections import Connections, JoinedWrites, connection_limit
from rankwright.serve.settings import Listening

RANK = b"POST /v1/models/web/rank HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "web.rw"
    save_model(path)
    return path


@pytest.fixture
def opened():
    """Connections on which something was sent; closed at the end of the test."""
    with ExitStack() as stack:

        def open_one(port, *sent, buffer=None):
            link = stack.enter_context(socket.socket())
            link.settimeout(30)
            if buffer is not None:
                link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
            link.connect(("127.0.0.1", port))
            for part in sent:
                link.sendall(part)
            return link

        yield open_one


def is_healthy(port):
    """Return whether /healthz answers on a connection of its own."""
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        link.request("GET", "/healthz")
        return link.getresponse().status == 200
    finally:
        link.close()


def closed_within(link, seconds):
    """Return whether the server ends a connection, having sent nothing."""
    link.settimeout(seconds)
    try:
        return link.recv(1) == b""
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False


def closed_by_reason(port):
    """Return the server's own count of the connections that it ended."""
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    link.request("GET", "/metrics")
    lines = link.getresponse().read().decode().splitlines()
    link.close()
    name = "rankwright_connections_closed_total{reason="
    found = (line.removeprefix(name).split("} ") for line in lines if line.startswith(name))
    return {reason.strip('"'): int(float(count)) for reason, count in found}


def test_waiting_connections_do_not_keep_others_out(model, opened):
    silent, half_headers = (), (b"GET /healthz HTTP/1.1\r\nx",)
    half_body = (RANK, b"content-length: 999\r\n\r\n{")
    with serving(model, descriptors=128) as server:
        most = server.wait_for("fewer connections: few files may be open")["most"]
        for sent in (silent, half_headers, half_body):
            links = [opened(server.port, *sent) for _ in range(200)]
            for _ in range(5):
                assert is_healthy(server.port)
            # Those that waited longest made room.
            assert closed_within(links[0], 5)
            assert not closed_within(links[-1], 0.1)
        assert closed_by_reason(server.port)["replaced"] >= 600 - most


def test_every_wait_for_a_client_has_a_time_limit(model, opened):
    limits = ("--header-seconds", 0.5, "--idle-seconds", 0.5, "--seconds", 0.5)
    with serving(model, *limits) as server:
        silent = opened(server.port)
        slow = opened(server.port, b"GET /healthz HTTP/1.1\r\n")
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            for _ in range(100):  # a byte now and then does not buy time
                slow.sendall(b"x")
                time.sleep(0.05)
        assert closed_within(silent, 5)
        idle = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
        for _ in range(2):
            idle.request("GET", "/healthz")
            assert idle.getresponse().read() == b'{"status":"ok"}'
            time.sleep(0.2)
        assert closed_within(idle.sock, 5)
        idle.close()
        # After an answer, the first byte of the next request begins the time for its headers.
        second = opened(server.port, b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
        answer = b""
        while not answer.endswith(b"}"):
            answer += second.recv(1000)
        second.sendall(b"GET")
        assert closed_within(second, 5)
        assert closed_by_reason(server.port) == {"headers": 3, "idle": 1}


def test_a_client_that_does_not_read_its_answer_is_given_up(model, opened):
    large = json.dumps({"documents": [{"id": "d" * 700, "features": [0] * 6}] * 9_999}).encode()
    head = RANK + b"content-length: %d\r\n\r\n" % len(large)
    with serving(model, "--seconds", 3) as server:
        opened(server.port, head, large, buffer=4096)
        ends = time.monotonic() + 20
        while not (reasons := closed_by_reason(server.port)):
            assert time.monotonic() < ends
            time.sleep(0.2)
        assert reasons in ({"answer": 1}, {"request": 1})


def test_a_new_connection_is_refused_where_all_are_busy():
    async def check():
        pairs = [socket.socketpair() for _ in range(4)]
        reasons = []
        connections = Connections(2, header_seconds=5, on_closed=reasons.append)
        first, second = (connections.accept(own) for own, _ in pairs[:2])
        first.busy = second.busy = True
        assert connections.accept(pairs[2][0]) is None
        first.busy = False
        assert connections.accept(pairs[3][0]) is not None
        assert reasons == ["refused", "replaced"]
        assert pairs[0][1].recv(1) == b""  # ended
        assert connections.of(pairs[1][0]) is second
        for pair in pairs:
            for end in pair:
                end.close()

    asyncio.run(check())


def test_handshakes_that_do_not_end_do_not_keep_others_out(model, opened, tmp_path):
    key, cert = certificate(tmp_path)
    tls = ("--tls-cert", cert, "--tls-key", key, "--header-seconds", 3)
    with serving(model, *tls, descriptors=128) as server:
        links = [opened(server.port) for _ in range(200)]
        context = ssl.create_default_context(cafile=cert)
        link = http.client.HTTPSConnection("127.0.0.1", server.port, context=context, timeout=10)
        link.request("GET", "/healthz")
        assert link.getresponse().status == 200
        link.close()
        assert closed_within(links[-1], 10)


@pytest.mark.parametrize("name", ["max_connections", "header_seconds", "idle_seconds"])
def test_limits_must_be_positive_and_finite(name):
    option = f"--{name.replace('_', '-')}"
    with pytest.raises(UsageError, match=f"{option} must be above 0"):
        Listening(**{name: 0})
    with pytest.raises(UsageError, match=f"{option} must be a finite number"):
        Listening(**{name: float("nan")})


def test_too_few_descriptors_are_refused(monkeypatch):
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(resource, "setrlimit", lambda *_: None)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, 64))
    with pytest.raises(UsageError, match="may open 64 files"):
        connection_limit(1000)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (128, 128))
    assert connection_limit(1000) == 64
    assert connection_limit(10) == 10


# --- requests that are too long, or too many -------------------------------------------------


def all_of(link):
    """Return all that the server sends before it closes a connection."""
    found = b""
    while chunk := link.recv(1 << 16):
        found += chunk
    return found


def test_long_headers_are_refused_while_they_arrive(model, opened):
    with serving(model) as server:
        for endless in (b"GET /healthz HTTP/1.1\r\nx: ", b"GET /"):
            link = opened(server.port, endless)
            try:
                for _ in range(64):
                    link.sendall(b"a" * 8192)
                answer = all_of(link)
            except ConnectionError:  # closed while we were sending
                continue
            assert answer.startswith(b"HTTP/1.1 400 ")
        assert is_healthy(server.port)


def test_bodies_in_pieces_are_read_whole_on_one_connection(model, opened):
    body = json.dumps({"documents": [{"features": [0.5] * 6}] * 5000}).encode()
    head = RANK + b"content-length: %d\r\n\r\n" % len(body)
    with serving(model) as server:
        link = opened(server.port)
        for _ in range(3):
            link.sendall(head)
            for at in range(0, len(body), 50_000):
                link.sendall(body[at : at + 50_000])
                time.sleep(0.01)
            answer = http.client.HTTPResponse(link)
            answer.begin()
            assert answer.status == 200
            assert len(json.loads(answer.read())["ranking"]) == 5000


def test_an_endless_trailer_or_chunk_is_cut_off(model, opened):
    with serving(model, "--max-body", 1000) as server:
        link = opened(server.port, RANK, b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n")
        try:
            for number in range(300):
                link.sendall(b"x%d: " % number + b"a" * 4000 + b"\r\n")
            answer = all_of(link)
        except ConnectionError:
            answer = b"HTTP/1.1 400 "
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert is_healthy(server.port)


def test_requests_ahead_of_their_answers_are_answered_in_order_up_to_a_limit(model, opened):
    ask = b"GET /nowhere/%d HTTP/1.1\r\nhost: x\r\n\r\n"
    with serving(model) as server:
        last = ask.replace(b"host", b"connection: close\r\nhost")
        link = opened(server.port, *[ask % number for number in range(4)], last % 4)
        assert re.findall(rb"/nowhere/(\d):", all_of(link)) == [b"0", b"1", b"2", b"3", b"4"]
        many = opened(server.port, b"".join(ask % number for number in range(200)))
        assert all_of(many).count(b"HTTP/1.1 ") < 40
        assert is_healthy(server.port)


def test_head_and_body_of_an_answer_are_one_write():
    sent = []
    transport = SimpleNamespace(write=sent.append, close=lambda: sent.append("closed"), other=7)

    async def answers():
        joined = JoinedWrites(transport, asyncio.get_running_loop())
        joined.write(b"head ")
        joined.write(b"body")
        joined.flush()
        assert joined.other == 7
        joined.write(b"left")
        await asyncio.sleep(0)
        joined.write(b"last")
        joined.close()
        await asyncio.sleep(0)

    asyncio.run(answers())
    assert sent == [b"head body", b"left", b"last", "closed"]
