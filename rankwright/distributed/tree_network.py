"""LightGBM's network over the workers of a Dask cluster: who has which parts, and who is there.

Calls go to all machines at once, through a task on each worker. They end with what all answered, or
with `NetworkBrokenError` as soon as a worker is lost or a process has ended; none is waited for in
vain. A fault of another kind, such as one of a loss, would come again and is raised as it is.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

import numpy as np
from scipy import sparse

from rankwright.core.types import AnyArray, FloatMatrix, Loss
from rankwright.data.content import content_sample
from rankwright.data.ranking_data import RankingData
from rankwright.distributed import tree_worker
from rankwright.distributed.cluster import PATIENCE, ClusterError, import_distributed
from rankwright.distributed.partitions import Partitions
from rankwright.distributed.pieces import largest_of
from rankwright.distributed.tree_machine import BIN_ROWS
from rankwright.distributed.tree_worker import NetworkBrokenError
from rankwright.errors import RankwrightError
from rankwright.models.trees import FittedTrees, Trees

_RETURN = 5.0  # seconds in which a nanny may bring a lost worker back
_LOOK = 1.0  # seconds from one look at the workers to the next
_PASSING = ("LightGBMError", "KilledWorker", "CommClosedError")  # what a lost machine looks like


class NoWorkerError(NetworkBrokenError):
    """There is no worker, and none comes back."""


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
        n_jobs: int | None,
        largest: float | None,
    ) -> None:
        self._model, self._loss, self._data, self._seed = model, loss, data, seed
        self._n_jobs, self._largest = n_jobs, largest
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
            self._client.run(tree_worker.end, run, workers=there, on_error="ignore")

    def _begin(self, grown: Standing) -> None:
        threads = self._wait_for_workers()
        parts_of = self._assigned(list(threads))
        self._run, self._workers = uuid.uuid4().hex, list(parts_of)
        model, calls = grown.model(), []
        firsts = self._data.first_queries
        for worker, own in parts_of.items():
            n_jobs = self._n_jobs or threads[worker]
            plan = (self._model, self._loss, model, self._sample, self._seed, n_jobs)
            numbers = [(number, firsts[number]) for number in own]
            parts = [self._data.parts[number] for number in own]
            calls.append(((*plan, self._largest), numbers, parts))
        ports = self._together(tree_worker.begin, calls)
        if grown.state:
            self._ask("go_on", [(grown.state,)] * len(self._workers))
        hosts = [urlsplit(worker).hostname or "127.0.0.1" for worker in self._workers]
        machines = ",".join(f"{host}:{port}" for host, port in zip(hosts, ports, strict=True))
        self._ask("join", [(machines, port) for port in ports])

    def _wait_for_workers(self) -> dict[str, int]:
        """Return the workers and their threads; where some were lost, wait a little for them."""
        began = time.monotonic()
        while True:
            threads = _threads(self._client)
            waited = time.monotonic() - began
            if len(threads) >= max(1, self._most) or waited > (_RETURN if threads else PATIENCE):
                break
            time.sleep(_LOOK / 4)
        if not threads:
            raise NoWorkerError("no worker is left")
        self._most = max(self._most, len(threads))
        return threads

    def _assigned(self, workers: list[str]) -> dict[str, list[int]]:
        """Return the parts of each worker: where they lie, unless one would have far too many."""
        rows = [int(sizes.sum()) for sizes in self._data.sizes]
        self._wait_for_parts(workers)
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

    def _wait_for_parts(self, workers: list[str]) -> None:
        """Wait until all parts are there, as long as all workers are."""
        while True:
            try:
                import_distributed().wait(self._data.parts, timeout=_LOOK)
                return
            except TimeoutError:
                self._check_workers(workers)

    def _check_workers(self, workers: list[str]) -> None:
        lost = set(workers) - _threads(self._client).keys()
        if lost:
            raise NetworkBrokenError(f"the worker {min(lost)} was lost")

    def _ask(self, name: str, args: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call a method of all machines; each has its own arguments."""
        return self._together(tree_worker.call, [(name, own) for own in args])

    def _together(self, function: Callable[..., Any], args: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Run a function on all workers at once; none may be missing."""
        distributed = import_distributed()
        # Two fits at once would wait for each other: each has some of the workers' threads.
        with self._client.as_current(), distributed.Lock("rankwright trees"):
            return self._at_once(distributed, function, args)

    def _at_once(
        self, distributed: Any, function: Callable[..., Any], args: Sequence[tuple[Any, ...]]
    ) -> list[Any]:
        pinned = {"allow_other_workers": False, "pure": False, "retries": 0}
        futures = [
            self._client.submit(function, self._run, *own, workers=[worker], **pinned)
            for worker, own in zip(self._workers, args, strict=True)
        ]
        try:
            while not all(future.done() for future in futures):
                self._check_workers(self._workers)
                if any(future.status == "error" for future in futures):
                    break
                _wait_a_little(distributed, futures)
            faults = [future.exception() for future in futures if future.status == "error"]
            for fault in sorted(faults, key=_is_passing):  # the cause before what it brings about
                raise NetworkBrokenError(f"{fault}") if _is_passing(fault) else fault
            if any(future.status != "finished" for future in futures):
                raise NetworkBrokenError("the scheduler dropped a call")
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


def _is_passing(fault: Exception) -> bool:
    """Whether a fault is that of a network, which another network may not have."""
    if isinstance(fault, RankwrightError) or str(fault).startswith("Check failed"):
        return False  # LightGBM says so of parameters
    return isinstance(fault, NetworkBrokenError | OSError) or type(fault).__name__ in _PASSING


def largest_of_all(data: Partitions, loss: Loss) -> float | None:
    """Return what the loss has to know of all the data, where it asks for it."""
    found = [one for one in data.map(largest_of, loss) if one is not None]
    return max(found, default=None)


def _threads(client: Any) -> dict[str, int]:
    """Return the workers that are there, and the threads of each."""
    try:
        found: dict[str, int] = client.nthreads()
    except OSError as fault:
        raise ClusterError("the scheduler of the cluster does not answer any more.") from fault
    return found


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
