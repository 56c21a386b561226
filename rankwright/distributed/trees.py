"""Boosted trees over data in partitions, on the workers of a Dask cluster.

Each worker starts a process (`rankwright.distributed.tree_machine`) that holds the partitions of
the worker in bins and has the loss bound to them. In each round, every process computes the
gradients of its queries, and LightGBM adds the histograms of all processes over its own network, so
that all of them grow the same tree. LightGBM never gets the labels, and lists may have any length.

The differences from a fit in one process are:

- if there are more than 65,536 rows, bins come from a sample of all partitions, by content;
- gradients are rounded (equation (2) of `rankwright.models.boosting`) for each partition;
- rows, queries and the noise of losses are sampled for each partition; columns as in one process;
- with several workers, LightGBM estimates the number of documents of a leaf from their curvature,
  so that ``min_child_samples`` stops other splits.

The trees therefore depend on the partitions, and on whether there is more than one worker. The
assignment of partitions to workers changes at most the last bits of sums.

The driver gets the trees every `EVERY` rounds, or more often for checkpoints. Then it scores the
validation data tree by tree, and a checkpoint may be written. If a worker is lost, a new network of
the remaining workers continues from the last trees that the driver got; Dask computes the lost
partitions again.
"""

from __future__ import annotations

import math
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit

import numpy as np
from scipy import sparse

from rankwright.core.checks import without_prefix
from rankwright.core.types import AnyArray, FloatMatrix, Loss, Round
from rankwright.data.content import content_sample
from rankwright.data.ranking_data import RankingData
from rankwright.distributed.cluster import PATIENCE, ClusterError, import_distributed
from rankwright.distributed.partitions import Partitions, largest_of_all
from rankwright.distributed.tree_machine import receive, send
from rankwright.errors import RankwrightError, UsageError
from rankwright.models.boosting import Descent
from rankwright.models.forest import Forest
from rankwright.models.lightgbm_engine import BIN_ROWS
from rankwright.models.trees import GrownTrees, Trees, unpack

if TYPE_CHECKING:
    from rankwright.persist.checkpoint import Checkpoint

_LOSS = "loss."  # prefix of the state of the losses
EVERY = 20
"""Number of rounds after which the driver gets the trees."""
_ATTEMPTS = 3  # networks in a row that break before the driver gets any of their trees


@dataclass(frozen=True)
class PartitionedTrees:
    """Boost `Trees` over partitions; the driver gets the trees as often as ``checkpoint`` needs."""

    resumable: ClassVar[bool] = True

    model: Trees
    checkpoint: Checkpoint | None = None

    @property
    def boosts(self) -> bool:
        """`Trees.boosts`."""
        return self.model.boosts

    def restore(
        self, arrays: Mapping[str, AnyArray], texts: Mapping[str, str], n_features: int
    ) -> Forest:
        """Build the fitted model from its arrays and texts."""
        return Forest.restore(arrays, texts, n_features)

    def rounds(
        self,
        loss: Loss,
        data: Partitions,
        valid: RankingData | None = None,
        *,
        start: Forest | None = None,
        resume: Mapping[str, AnyArray] | None = None,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> Iterator[Round]:
        """Yield the rounds after ``start``, as `Trees` does.

        ``n_jobs`` is the number of threads of each worker; by default Dask's.
        """
        self.model.check()
        if self.model.direction != "gradient":
            raise UsageError(
                f"direction='{self.model.direction}' needs the gradients of all documents in one "
                "place; leave it out on a cluster."
            )
        model = self.model.resolve(data.n_documents, data.n_queries)
        every = EVERY if self.checkpoint is None else min(EVERY, self.checkpoint.every)
        largest = largest_of_all(data, loss)
        if start is None:
            start = Forest.empty(data.n_features, offset=_best_constant(loss, data, largest))
        grown, losses = GrownTrees(start.as_sum()), {}
        if resume is not None:
            grown.trees.extend(unpack(resume, Forest.empty(data.n_features)))
            losses = without_prefix(_LOSS, resume)
        yield from grown.earlier_rounds()
        scores: Any = None if valid is None else grown.model()().running_scores(valid.X)
        network = TreeNetwork(model, loss, data, random_state, n_jobs, largest)
        failures = 0
        try:
            while len(grown.trees) < model.n_estimators:
                rounds = min(every, model.n_estimators - len(grown.trees))
                try:
                    values, trees = network.grow(grown, losses, rounds)
                    losses = {} if self.checkpoint is None else network.state()
                except NetworkBrokenError as error:
                    network.close()
                    failures += 1
                    if failures == _ATTEMPTS or isinstance(error, NoWorkerError):
                        raise ClusterError(self._failure(grown, error, failures)) from None
                    continue
                failures = 0
                for number, (value, tree) in enumerate(zip(values, trees, strict=True), 1):
                    grown.trees.append(tree)
                    if tree is not None and valid is not None:
                        scores = scores + tree.scores(valid.X)
                    state = partial(_state, grown, losses) if number == len(trees) else None
                    yield Round(grown.n_rounds, value, scores, grown.model(), state)
                if len(trees) < rounds:  # no tree can grow any more
                    break
        finally:
            network.close()
        if not grown.trees:
            yield Round(grown.n_rounds, math.nan, scores, grown.model())

    def _failure(self, grown: GrownTrees, error: Exception, times: int) -> str:
        """Return the error message at the end of a run."""
        in_a_row = f", {times} times in a row" if times > 1 else ""
        checkpoint = self.checkpoint
        advice = "No checkpoint was written; begin again, with one."
        if checkpoint is not None and checkpoint.last_round:
            advice = (
                f"{checkpoint.folder} has the trees up to round {checkpoint.last_round}; resume it."
            )
        return f"trees cannot grow beyond round {grown.n_rounds}: {error}{in_a_row}. {advice}"


def _state(grown: GrownTrees, losses: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """Return the arrays to resume from."""
    return {**grown.state(), **{f"{_LOSS}{name}": array for name, array in losses.items()}}


# --- before the first tree ---------------------------------------------------------------------


def _best_constant(loss: Loss, data: Partitions, largest: float | None) -> float:
    """Return the initial score, as `Descent.best_constant` does for one data set."""
    if loss.traits.shift_invariant:
        return 0.0
    parts = zip(data.parts, data.first_queries, strict=True)
    sums = data.map_rows(_at_zero, [(*part, loss, largest) for part in parts])
    gradients, curvatures = zip(*sums, strict=True)
    total = sum(curvatures)
    return -sum(gradients) / total if total > 0.0 else 0.0


def _at_zero(
    part: RankingData, first: int, loss: Loss, largest: float | None
) -> tuple[float, float]:
    return Descent(Trees(), loss, part, largest=largest, first_query=first, n_jobs=1).at_zero()


# --- processes of the workers ------------------------------------------------------------------
# `start_machine`, `begin_machine`, `call_machine` and `end_machine` are tasks that `TreeNetwork`
# sends to all workers at once. A worker forwards calls to its process.


class NetworkBrokenError(Exception):
    """A machine of the network is lost."""


MACHINES: dict[tuple[str, str], Machine] = {}  # by run and worker


class Machine:
    """The process of this worker."""

    def __init__(self) -> None:
        self._calling = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "rankwright.distributed.tree_machine"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def call(self, name: str, *args: Any) -> Any:
        """Call a method of its `TreeMachine`."""
        calls: Any = self._process.stdin
        results: Any = self._process.stdout
        try:
            with self._calling:
                send(calls, (name, args))
                has_result, result = receive(results)
        except (EOFError, OSError, ValueError, UnpicklingError):  # ValueError: closed by `end`
            raise NetworkBrokenError("the process beside a worker ended") from None
        if not has_result:
            raise result
        return result

    def end(self) -> None:
        """Kill the process, even during a call, which then raises."""
        self._process.kill()
        with self._calling, suppress(BrokenPipeError), self._process:  # closes the pipes
            pass


def start_machine(run: str) -> None:
    """Start the process of a worker, without waiting for it."""
    MACHINES[run, _worker_address()] = Machine()


def begin_machine(
    run: str, plan: tuple[Any, ...], numbers: list[tuple[int, int]], parts: list[RankingData]
) -> int:
    """Send the partitions of a worker to its process, and return the port of the process."""
    machine = _machine(run)
    machine.call("begin", *plan)
    for (number, first), part in zip(numbers, parts, strict=True):
        machine.call("add", number, first, part)
    port: int = machine.call("listen")
    return port


def call_machine(run: str, name: str, args: tuple[Any, ...]) -> Any:
    """Call a method of the `TreeMachine` of this worker."""
    return _machine(run).call(name, *args)


def end_machine(run: str, dask_worker: Any) -> None:
    """End the process of a run."""
    machine = MACHINES.pop((run, dask_worker.address), None)
    if machine is not None:
        machine.end()


def _machine(run: str) -> Machine:
    machine = MACHINES.get((run, _worker_address()))
    if machine is None:
        raise NetworkBrokenError(f"the worker {_worker_address()} was started again")
    return machine


def _worker_address() -> str:
    address: str = import_distributed().get_worker().address
    return address


# --- the network of all workers ----------------------------------------------------------------
# A call is a task on each worker at the same time. It ends with the results of all workers, or with
# `NetworkBrokenError` as soon as a worker or a process is lost. Other errors, such as an error of
# the loss, would occur again and are raised unchanged.

_RESTART = 5.0  # seconds in which a nanny may restart a lost worker
_INTERVAL = 1.0  # seconds between two checks of the workers
_PASSING = ("LightGBMError", "KilledWorker", "CommClosedError")  # errors of a lost machine


class NoWorkerError(NetworkBrokenError):
    """There has been no worker for too long."""


class TreeNetwork:
    """The processes of the workers, and the partitions of each.

    They start with the first call of `grow`, and again after `close`.
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
        self._sample: Any = None
        self._run: str | None = None
        self._workers: list[str] = []
        self._most = 0  # workers at the same time

    def grow(
        self, grown: GrownTrees, losses: Mapping[str, AnyArray], rounds: int
    ) -> tuple[list[float], list[Forest | None]]:
        """Return the loss before each round after ``grown``, and the tree of each round.

        ``losses`` is the state of the losses of a resumed run.
        """
        if self._run is None:
            self._begin(grown, losses)
        args = [(grown.n_rounds, rounds, number == 0) for number in range(len(self._workers))]
        by_machine, trees = zip(*self._call_all("grow", args), strict=True)
        values = []
        for of_machines in zip(*by_machine, strict=True):
            parts = {number: value for each in of_machines for number, value in each.items()}
            values.append(float(sum(parts[number] for number in sorted(parts))))
        return values, trees[0]

    def state(self) -> dict[str, AnyArray]:
        """Return the state of the losses of all parts."""
        states = self._call_all("state", [()] * len(self._workers))
        return {name: array for state in states for name, array in state.items()}

    def close(self) -> None:
        """End the processes; the workers keep their partitions."""
        run, self._run = self._run, None
        workers = [worker for worker in self._workers if worker in _threads(self._client)]
        if run is not None and workers:
            self._client.run(end_machine, run, workers=workers, on_error="ignore")

    def _begin(self, grown: GrownTrees, losses: Mapping[str, AnyArray]) -> None:
        threads = self._wait_for_workers()
        parts_of = self._assigned(list(threads))
        self._run, self._workers = uuid.uuid4().hex, list(parts_of)
        self._together(start_machine, [()] * len(self._workers))
        if self._sample is None:  # while the processes start
            self._sample = _bin_sample(self._data)
        forest, calls = grown.model()(), []
        firsts = self._data.first_queries
        for worker, indices in parts_of.items():
            n_jobs = self._n_jobs or threads[worker]
            plan = self._model, self._loss, forest, self._sample, self._seed, n_jobs
            numbers = [(number, firsts[number]) for number in indices]
            parts = [self._data.parts[number] for number in indices]
            calls.append(((*plan, self._largest, losses), numbers, parts))
        ports = self._together(begin_machine, calls)
        hosts = [urlsplit(worker).hostname or "127.0.0.1" for worker in self._workers]
        machines = ",".join(f"{host}:{port}" for host, port in zip(hosts, ports, strict=True))
        self._call_all("join", [(machines, port) for port in ports])

    def _wait_for_workers(self) -> dict[str, int]:
        """Return the workers and their threads; wait a little if some were lost."""
        for count, seconds in ((max(1, self._most), _RESTART), (1, PATIENCE)):
            with suppress(TimeoutError):
                self._client.wait_for_workers(count, timeout=seconds)
        threads = _threads(self._client)
        if not threads:
            raise NoWorkerError("no worker is left")
        self._most = max(self._most, len(threads))
        return threads

    def _assigned(self, workers: list[str]) -> dict[str, list[int]]:
        """Assign partitions to the workers that hold them, unless one would get far too many."""
        rows = [int(sizes.sum()) for sizes in self._data.sizes]
        self._wait_for_parts(workers)
        holders = self._client.who_has(self._data.parts)
        most = 1.1 * max(sum(rows) / len(workers), max(rows))
        load = dict.fromkeys(workers, 0)
        parts_of: dict[str, list[int]] = {worker: [] for worker in workers}
        for number, part in enumerate(self._data.parts):
            near = [w for w in holders.get(part.key, ()) if load.get(w, most) + rows[number] < most]
            worker = min(near or workers, key=lambda w: load[w])
            load[worker] += rows[number]
            parts_of[worker].append(number)
        return {worker: numbers for worker, numbers in parts_of.items() if numbers}

    def _wait_for_parts(self, workers: list[str]) -> None:
        """Wait until all partitions are computed; raise if a worker is lost."""
        while True:
            try:
                import_distributed().wait(self._data.parts, timeout=_INTERVAL)
                return
            except TimeoutError:
                self._check_workers(workers)

    def _check_workers(self, workers: list[str]) -> None:
        lost = set(workers) - _threads(self._client).keys()
        if lost:
            raise NetworkBrokenError(f"the worker {min(lost)} was lost")

    def _call_all(self, name: str, args: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call a method of all machines, each with its arguments."""
        return self._together(call_machine, [(name, each) for each in args])

    def _together(self, function: Callable[..., Any], args: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Run a function on all workers at the same time."""
        distributed = import_distributed()
        # Two fits at the same time would wait for each other: each has some of the threads.
        with self._client.as_current(), distributed.Lock("rankwright trees"):
            futures = [
                self._client.submit(
                    function,
                    self._run,
                    *each,
                    workers=[worker],
                    allow_other_workers=False,
                    pure=False,
                    retries=0,
                )
                for worker, each in zip(self._workers, args, strict=True)
            ]
            try:
                self._wait(futures)
                results: list[Any] = self._client.gather(futures)
                return results
            finally:
                self._client.cancel(futures, force=True)

    def _wait(self, futures: list[Any]) -> None:
        """Wait for all futures; raise the error of one, or if a worker is lost."""
        while waiting := [future for future in futures if not future.done()]:
            self._check_workers(self._workers)
            if any(future.status == "error" for future in futures):
                break
            with suppress(TimeoutError):
                import_distributed().wait(waiting, timeout=_INTERVAL, return_when="FIRST_COMPLETED")
        errors = [future.exception() for future in futures if future.status == "error"]
        for error in sorted(errors, key=_is_passing):  # the cause before its consequences
            raise NetworkBrokenError(f"{error}") if _is_passing(error) else error
        if any(future.status != "finished" for future in futures):
            raise NetworkBrokenError("the scheduler dropped a call")


def _is_passing(error: Exception) -> bool:
    """Return whether another network may be without this error."""
    if isinstance(error, RankwrightError) or str(error).startswith("Check failed"):
        return False  # LightGBM's error for wrong parameters
    return isinstance(error, NetworkBrokenError | OSError) or type(error).__name__ in _PASSING


def _threads(client: Any) -> dict[str, int]:
    """Return the current workers and their numbers of threads."""
    try:
        threads: dict[str, int] = client.nthreads()
    except OSError as error:
        raise ClusterError("the scheduler of the cluster does not answer any more.") from error
    return threads


# --- bins -----------------------------------------------------------------------------------


def _bin_sample(data: Partitions) -> Any:
    """Return a future of the rows that define the bins: all rows, or about `BIN_ROWS`."""
    share = min(1.0, BIN_ROWS / data.n_documents)
    return data.client.submit(_joined_rows, data.call(_sampled_rows, share), pure=False)


def _sampled_rows(part: RankingData, share: float) -> FloatMatrix:
    """Return a share of the rows, chosen by content."""
    if share >= 1.0:
        return part.X
    return part.X[content_sample(part, max(1, round(share * part.n_documents)))]


def _joined_rows(blocks: list[FloatMatrix]) -> FloatMatrix:
    if any(sparse.issparse(block) for block in blocks):
        return sparse.csr_array(sparse.vstack([sparse.csr_array(block) for block in blocks]))
    rows: FloatMatrix = np.concatenate([np.asarray(block) for block in blocks])
    return rows
