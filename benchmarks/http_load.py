"""Send one request again and again over many connections, from one process that does little else.

``python benchmarks/http_load.py PORT REQUEST --clients 8 --seconds 2`` sends the bytes of the file
REQUEST, headers included, as soon as the answer before has come, and prints a line of JSON: answers
with status 200, others, seconds, and percentiles of the time to an answer.
"""

from __future__ import annotations

import argparse
import json
import select
import socket
import sys
import time
from pathlib import Path


class Client:
    """One connection: what is still to be sent, and what has come of the answer."""

    def __init__(self, port: int, request: bytes) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.request, self.unsent = request, memoryview(b"")
        self.answer, self.size, self.began = bytearray(), 0, 0.0

    def begin(self) -> None:
        """Begin a request."""
        self.unsent, self.answer, self.size = memoryview(self.request), bytearray(), 0
        self.began = time.perf_counter()

    def send(self) -> bool:
        """Send what the socket takes; return whether all is sent."""
        while self.unsent:
            try:
                self.unsent = self.unsent[self.socket.send(self.unsent) :]
            except BlockingIOError:
                return False
        return True

    def receive(self) -> int:
        """Take in what has come; return the status once the answer is whole, 0 before."""
        try:
            chunk = self.socket.recv(1 << 18)
        except BlockingIOError:
            return 0
        if not chunk:
            raise ConnectionError("the server closed the connection")
        self.answer += chunk
        if not self.size:
            head, mark, _ = self.answer.partition(b"\r\n\r\n")
            if not mark:
                return 0
            length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
            self.size = len(head) + 4 + int(length)
        return int(self.answer[9:12]) if len(self.answer) >= self.size else 0


def load(port: int, request: bytes, clients: int, seconds: float) -> dict[str, float]:
    """Send requests for so many seconds; return what came of them."""
    poll = select.epoll()
    held = {}
    for _ in range(clients):
        client = Client(port, request)
        held[client.socket.fileno()] = client
        poll.register(client.socket, select.EPOLLIN)
    times, failed = [], 0
    began = time.perf_counter()
    ends = began + seconds

    def start(client: Client) -> None:
        client.begin()
        if not client.send():
            poll.modify(client.socket, select.EPOLLIN | select.EPOLLOUT)

    for client in held.values():
        start(client)
    under_way = clients
    while under_way:
        for number, event in poll.poll():
            client = held[number]
            if event & select.EPOLLOUT and client.send():
                poll.modify(client.socket, select.EPOLLIN)
            if event & ~select.EPOLLOUT and (status := client.receive()):
                now = time.perf_counter()
                times.append(now - client.began)
                failed += status != 200
                if now < ends:
                    start(client)
                else:
                    under_way -= 1
    taken = time.perf_counter() - began
    times.sort()
    return {
        "answered": len(times) - failed,
        "failed": failed,
        "seconds": taken,
        "p50": 1000 * times[len(times) // 2],
        "p99": 1000 * times[min(len(times) - 1, len(times) * 99 // 100)],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("request", type=Path)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=2.0)
    given = parser.parse_args()
    print(json.dumps(load(given.port, given.request.read_bytes(), given.clients, given.seconds)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
