"""LightGBM's network over the workers of a Dask cluster: who has which parts, and who is there.

Calls go to all machines at once, through a task on each worker. They end with what all answered, or
with `NetworkBrokenError` as soon as a worker is lost, a process has ended or time is over; none is
waited for in vain.
"""

from __future__ import annotations

import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from multiprocessing.connection import Client as Connection
from secrets import token_bytes
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

import numpy as np
from scipy import sparse

from rankwright.core.types import AnyArray, FloatMatrix, Loss
from rankwright.data.content import content_sample
from rankwright.data.ranking_data import RankingData
from rankwright.distributed.cluster import ClusterError, import_distributed
from rankwright.distributed.partitions import Partitions
from rankwright.errors import RankwrightError
from rankwright.models.trees import FittedTrees, Trees

BIN_ROWS = 200_000
"""Rows whose values make the bins, where there are more."""
_RETURN = 5.0  # seconds in which a nanny may bring a lost worker back
_LOOK = 1.0  # seconds from one look at the workers to the next


class NetworkBrokenError(Exception):
    """A machine of the network is gone, or does not answer."""


class Came(NamedTuple):
    """Trees that came back: the loss before each round, how many trees after it, and their text."""

    losses: list[float]
    counts: list[int]
    text: str


class Standing(Protocol):
    """Where the trees stand: how many rounds, their model, and what the losses remember."""

    state: dict[str, AnyArray]

    @property
    def next_round(self) -> int:
        """Number of the next round."""

    def model(self) -> FittedTrees:
        """Return the trees so far."""


class TreeNetwork:
    """The processes beside the workers, and who of them has which parts.

    They begin when trees are first asked for, and again after `close`.
    """

    def __init__(
        self,
        model: Trees,
        loss: Loss,
        data: Partitions,
        seed: int,
        n_threads: int | None,
        time_limit: float,
    ) -> None:
        self._model, self._loss, self._data, self._seed = model, loss, data, seed
        self._n_threads, self._time_limit = n_threads, time_limit
        self._client = data.client
        self._sample = _bin_sample(data)
        self._run: str | None = None
        self._workers: list[str] = []
        self._most = 0  # workers that there were at best

    def grow(self, grown: Standing, rounds: int) -> Came:
        """Grow trees after those that have grown."""
        if self._run is None:
            self._begin(grown)
        asked = [(grown.next_round, rounds, number == 0) for number in range(len(self._workers))]
        found = self._ask("grow", asked)
        by_machine, counts, texts = zip(*found, strict=True)
        losses = []
        for of_machines in zip(*by_machine, strict=True):
            parts = {number: value for own in of_machines for number, value in own.items()}
            losses.append(float(sum(parts[number] for number in sorted(parts))))
        return Came(losses, counts[0], texts[0])

    def state(self) -> dict[str, AnyArray]:
        """Return what the losses of all parts remember."""
        found = self._ask("state", [()] * len(self._workers))
        return {name: array for own in found for name, array in own.items()}

    def close(self) -> None:
        """End the processes; the workers and their parts stay."""
        run, self._run = self._run, None
        there = [worker for worker in self._workers if worker in _threads(self._client)]
        if run is not None and there:
            self._client.run(_end, run, workers=there, on_error="ignore")

    def _begin(self, grown: Standing) -> None:
        threads = self._wait_for_workers()
        parts_of = self._assigned(list(threads))
        self._run, self._workers = uuid.uuid4().hex, list(parts_of)
        model, calls = grown.model(), []
        for worker, numbers in parts_of.items():
            n_threads = self._n_threads or threads[worker]
            plan = self._model, self._loss, model, self._sample, self._seed, n_threads
            calls.append((plan, numbers, [self._data.parts[number] for number in numbers]))
        ports = self._together(_begin, calls)
        if grown.state:
            self._ask("go_on", [(grown.state,)] * len(self._workers))
        hosts = [urlsplit(worker).hostname or "127.0.0.1" for worker in self._workers]
        machines = ",".join(f"{host}:{port}" for host, port in zip(hosts, ports, strict=True))
        self._ask("join", [(machines, port) for port in ports])

    def _wait_for_workers(self) -> dict[str, int]:
        """Return the workers and their threads; where some were lost, wait a little for them."""
        patience = time.monotonic() + _RETURN
        while True:
            threads = _threads(self._client)
            if len(threads) >= max(1, self._most) or time.monotonic() > patience:
                break
            time.sleep(_LOOK / 4)
        if not threads:
            raise NetworkBrokenError("no worker is left")
        self._most = max(self._most, len(threads))
        return threads

    def _assigned(self, workers: list[str]) -> dict[str, list[int]]:
        """Return the parts of each worker: where they lie, unless one would have far too many."""
        rows = [int(sizes.sum()) for sizes in self._data.sizes]
        try:
            import_distributed().wait(self._data.parts, timeout=self._time_limit)
        except TimeoutError:
            raise NetworkBrokenError("the parts of the data did not come") from None
        lie = self._client.who_has(self._data.parts)
        most = 1.1 * max(sum(rows) / len(workers), max(rows))
        load = dict.fromkeys(workers, 0)
        parts_of: dict[str, list[int]] = {worker: [] for worker in workers}
        for number, part in enumerate(self._data.parts):
            near = [w for w in lie.get(part.key, ()) if w in load and load[w] + rows[number] < most]
            worker = min(near or workers, key=lambda w: load[w])
            load[worker] += rows[number]
            parts_of[worker].append(number)
        return {worker: own for worker, own in parts_of.items() if own}

    def _ask(self, name: str, args: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call a method of all machines; each has its own arguments."""
        return self._together(_call, [(name, own) for own in args])

    def _together(self, function: Callable[..., Any], args: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Run a function on all workers at once; none may be missing, and none be late."""
        distributed = import_distributed()
        # Two fits at once would wait for each other: each has some of the workers' threads.
        with self._client.as_current(), distributed.Lock("rankwright trees"):
            return self._at_once(distributed, function, args)

    def _at_once(
        self, distributed: Any, function: Callable[..., Any], args: Sequence[tuple[Any, ...]]
    ) -> list[Any]:
        until = time.monotonic() + self._time_limit
        pinned = {"allow_other_workers": False, "pure": False, "retries": 0}
        futures = [
            self._client.submit(function, self._run, *own, workers=[worker], **pinned)
            for worker, own in zip(self._workers, args, strict=True)
        ]
        try:
            while not all(future.done() for future in futures):
                lost = set(self._workers) - _threads(self._client).keys()
                if lost:
                    raise NetworkBrokenError(f"the worker {min(lost)} was lost")
                if any(future.status == "error" for future in futures):
                    break
                if time.monotonic() > until:
                    raise NetworkBrokenError(f"no answer within {self._time_limit:g} seconds")
                _wait_a_little(distributed, futures)
            failed = [future.exception() for future in futures if future.status == "error"]
            for fault in failed:
                raise (
                    fault if isinstance(fault, RankwrightError) else NetworkBrokenError(f"{fault}")
                )
            found: list[Any] = self._client.gather(futures)
            return found
        finally:
            self._client.cancel(futures, force=True)


def _wait_a_little(distributed: Any, futures: list[Any]) -> None:
    try:
        distributed.wait(futures, timeout=_LOOK, return_when="FIRST_COMPLETED")
    except TimeoutError:
        return
    time.sleep(_LOOK / 20)  # one is done already: look at the others now and then


def _threads(client: Any) -> dict[str, int]:
    """Return the workers that are there, and the threads of each."""
    try:
        found: dict[str, int] = client.nthreads()
    except OSError as fault:
        raise ClusterError("the scheduler of the cluster does not answer any more.") from fault
    return found


# --- on a worker ------------------------------------------------------------------------------

MACHINES: dict[tuple[str, str], Machine] = {}  # by run and worker


class Machine:
    """The process beside this worker."""

    def __init__(self) -> None:
        key = token_bytes(32)
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
            raise NetworkBrokenError("the process beside a worker did not start")
        self._connection = Connection(("127.0.0.1", int(port)), authkey=key)

    def call(self, name: str, *args: Any) -> Any:
        """Call a method of its `TreeMachine`."""
        try:
            self._connection.send((name, args))
            well, answer = self._connection.recv()
        except (EOFError, OSError):
            raise NetworkBrokenError("the process beside a worker ended") from None
        if not well:
            raise answer
        return answer

    def end(self) -> None:
        """Kill it, whatever it does."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._connection.close()


def _begin(run: str, plan: tuple[Any, ...], numbers: list[int], parts: list[RankingData]) -> int:
    """Start the process of a worker, give it its parts, and return its port."""
    machine = MACHINES[run, _here()] = Machine()
    machine.call("begin", *plan)
    for number, part in zip(numbers, parts, strict=True):
        machine.call("add", number, part)
    port: int = machine.call("listen")
    return port


def _call(run: str, name: str, args: tuple[Any, ...]) -> Any:
    machine = MACHINES.get((run, _here()))
    if machine is None:
        raise NetworkBrokenError(f"the worker {_here()} was started again")
    return machine.call(name, *args)


def _end(run: str, dask_worker: Any) -> None:
    machine = MACHINES.pop((run, dask_worker.address), None)
    if machine is not None:
        machine.end()


def _here() -> str:
    address: str = import_distributed().get_worker().address
    return address


# --- bins -----------------------------------------------------------------------------------


def _bin_sample(data: Partitions) -> Any:
    """Return a future of the rows that make the bins: all of them, or about `BIN_ROWS`."""
    share = min(1.0, BIN_ROWS / data.n_documents)
    return data.client.submit(_joined_rows, data.call(_chosen_rows, share), pure=False)


def _chosen_rows(part: RankingData, share: float) -> FloatMatrix:
    """Return some of the rows, chosen by what they hold."""
    if share >= 1.0:
        return part.X
    return part.X[content_sample(part, max(1, round(share * part.n_documents)))]


def _joined_rows(blocks: list[FloatMatrix]) -> FloatMatrix:
    if any(sparse.issparse(block) for block in blocks):
        return sparse.csr_array(sparse.vstack([sparse.csr_array(block) for block in blocks]))
    rows: FloatMatrix = np.concatenate([np.asarray(block) for block in blocks])
    return rows
