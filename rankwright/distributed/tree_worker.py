"""What a Dask worker does for LightGBM's network: a process beside it, and calls passed on to it.

The process is `rankwright.distributed.tree_machine`. `begin`, `call` and `end` are tasks, which
`rankwright.distributed.tree_network` sends to all workers at once.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from multiprocessing.connection import Client as Connection
from secrets import token_bytes
from typing import Any

from rankwright.data.ranking_data import RankingData
from rankwright.distributed.cluster import import_distributed
from rankwright.distributed.tree_machine import as_message


class NetworkBrokenError(Exception):
    """A machine of the network is gone."""


MACHINES: dict[tuple[str, str], Machine] = {}  # by run and worker
_ended: set[str] = set()  # runs, whose machines may be asked for when it is too late
_lock = threading.Lock()  # of both


class Machine:
    """The process beside this worker."""

    def __init__(self) -> None:
        key = token_bytes(32)
        self._calling = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "rankwright.distributed.tree_machine"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(key)
        self._process.stdin.flush()
        port = self._process.stdout.readline()
        if not port:
            self._end_process()
            raise NetworkBrokenError("the process beside a worker did not start")
        self._connection = Connection(("127.0.0.1", int(port)), authkey=key)

    def call(self, name: str, *args: Any) -> Any:
        """Call a method of its `TreeMachine`."""
        message = as_message((name, args))
        try:
            with self._calling:
                self._connection.send_bytes(message)
                well, answer = self._connection.recv()
        except (EOFError, OSError):
            raise NetworkBrokenError("the process beside a worker ended") from None
        if not well:
            raise answer
        return answer

    def end(self) -> None:
        """Kill it, whatever it does; a call that waits for it ends too."""
        self._end_process()
        with self._calling:
            self._connection.close()

    def _end_process(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


def begin(
    run: str, plan: tuple[Any, ...], numbers: list[tuple[int, int]], parts: list[RankingData]
) -> int:
    """Start the process of a worker, give it its parts, and return its port."""
    machine = Machine()
    with _lock:
        late = run in _ended
        if not late:
            MACHINES[run, _here()] = machine
    if late:
        machine.end()
        raise NetworkBrokenError("the network was given up before it began")
    machine.call("begin", *plan)
    for (number, first), part in zip(numbers, parts, strict=True):
        machine.call("add", number, first, part)
    port: int = machine.call("listen")
    return port


def call(run: str, name: str, args: tuple[Any, ...]) -> Any:
    """Call a method of the `TreeMachine` beside this worker."""
    machine = MACHINES.get((run, _here()))
    if machine is None:
        raise NetworkBrokenError(f"the worker {_here()} was started again")
    return machine.call(name, *args)


def end(run: str, dask_worker: Any) -> None:
    """End the process of a run, or the one that is still to come."""
    with _lock:
        _ended.add(run)
        machine = MACHINES.pop((run, dask_worker.address), None)
    if machine is not None:
        machine.end()


def _here() -> str:
    address: str = import_distributed().get_worker().address
    return address
