"""Where parts of the data lie and work is done: on the workers of a Dask cluster, or here.

A `Backend` holds values, runs functions on them and returns results in the order of the calls.
`Cluster` is that of a Dask client: a value is a future, and a value that is lost with its
worker is made again by Dask, from its source. `LocalBackend` is this process, without Dask.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import wait
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol

from rankwright.data.ranking_data import FIELDS, RankingData
from rankwright.errors import MissingExtraError, RankwrightError, UsageError

_LOOK = 2.0  # seconds of waiting after which we look whether there is still a worker
PATIENCE = 30.0
"""Seconds without any worker after which a run ends; a nanny may bring one back until then."""


class ClusterError(RankwrightError, RuntimeError):
    """The cluster cannot go on with the work; says what became of its workers."""


class Backend(Protocol):
    """Holds values and runs functions on them."""

    def call(self, function: Callable[..., Any], *columns: Sequence[Any]) -> list[Any]:
        """Return held values of ``function`` over the columns: values held here, or constants."""

    def results(self, held: Sequence[Any]) -> list[Any]:
        """Return what was held, in this process."""

    def memory_limit(self) -> int | None:
        """Return the bytes that the smallest worker may hold; None: no limit."""


class LocalBackend:
    """The process that we are in."""

    def call(self, function: Callable[..., Any], *columns: Sequence[Any]) -> list[Any]:
        """Return the values themselves."""
        return [function(*row) for row in zip(*columns, strict=True)]

    def results(self, held: Sequence[Any]) -> list[Any]:
        """Return them as they are."""
        return list(held)

    def memory_limit(self) -> int | None:
        """Return None."""
        return None


class Cluster:
    """The workers of a Dask client."""

    def __init__(self, client: Any, *, patience: float = PATIENCE) -> None:
        self.client, self._patience = client, patience

    @property
    def open_client(self) -> Any:
        """The client, unless it was closed: its data are gone with it."""
        return still_open(self.client)

    def call(self, function: Callable[..., Any], *columns: Sequence[Any]) -> list[Any]:
        """Return a future for each row of the columns; they run where their data lie."""
        futures: list[Any] = self.open_client.map(function, *columns, pure=False)
        return futures

    def spread(self, function: Callable[..., Any], *columns: Sequence[Any]) -> list[Any]:
        """As `call`, for values that come from elsewhere: as many to each worker's thread.

        Left to itself, the scheduler gives the most to the worker that is the first to be free,
        and later work goes where the data are.
        """
        threads = self.open_client.nthreads()
        seats = [worker for worker in sorted(threads) for _ in range(threads[worker])]
        futures = []
        for number, row in enumerate(zip(*columns, strict=True)):
            near = [seats[number % len(seats)]] if seats else None
            futures.append(
                self.client.submit(
                    function, *row, pure=False, workers=near, allow_other_workers=bool(seats)
                )
            )
        return futures

    def results(self, held: Sequence[Any]) -> list[Any]:
        """Wait for the futures and return their values, or say why there will be none."""
        wanted, client = list(held), self.open_client

        async def fetch() -> list[Any]:
            values: list[Any] = await client.gather(wanted, asynchronous=True)
            return values

        # Once, however long it takes: what has come is not asked for again.
        fetching = asyncio.run_coroutine_threadsafe(fetch(), client.loop.asyncio_loop)
        try:
            self._while_there_are_workers(fetching)
            return fetching.result()
        except RankwrightError:
            raise
        except Exception as error:
            raise self._explained(error) from error
        finally:
            fetching.cancel()

    def _while_there_are_workers(self, fetching: Any) -> None:
        """Wait for what is fetched; not where no worker has been there for too long."""
        alone_since: float | None = None
        while not wait([fetching], timeout=_LOOK).done:
            if self._workers():
                alone_since = None
                continue
            alone_since = alone_since or time.monotonic()
            if time.monotonic() - alone_since >= self._patience:
                raise ClusterError(
                    "no worker is left on the cluster, so the work cannot go on; start workers "
                    "and begin again."
                )

    def memory_limit(self) -> int | None:
        """Return the memory limit of the worker that has the least."""
        limits = [int(worker.get("memory_limit") or 0) for worker in self._workers().values()]
        return min((limit for limit in limits if limit > 0), default=None)

    def _workers(self) -> dict[str, Any]:
        found: dict[str, Any] = self.open_client.scheduler_info(n_workers=-1)["workers"]
        return found

    @staticmethod
    def _explained(error: Exception) -> Exception:
        """Return the error to raise: a sentence where the cluster is the cause."""
        kind = type(error).__name__
        if kind == "KilledWorker":
            return ClusterError(
                "the workers that took up one piece of the work died, several times over; they may "
                "have too little memory for a part: give more parts (n_parts=...) or more memory."
            )
        if isinstance(error, MemoryError):
            return ClusterError(
                "a piece of the data is larger than the memory limit of every worker; cut its "
                "source into smaller files or blocks, or give workers more memory."
            )
        if kind in ("CancelledError", "FutureCancelledError", "FuturesCancelledError"):
            return ClusterError(
                "parts of the data were lost with their worker and cannot be made again; load the "
                "data from files, and begin again."
            )
        if kind == "CommClosedError":
            return ClusterError("the scheduler of the cluster does not respond any more.")
        return error


def still_open(client: Any) -> Any:
    """Return a Dask client; raise if it was closed, after which its calls fail one by one."""
    if getattr(client, "status", "") in ("closing", "closed"):
        raise ClusterError(
            "the Dask client is closed, and data on its cluster can no longer be used; start one "
            "with distributed.Client(...), keep it open during the work, and load the data again."
        )
    return client


def connected(client: Any = None) -> Any:
    """Return the Dask client that was given, or the last one that was made.

    Raises
    ------
    UsageError
        If there is none.
    """
    distributed = import_distributed()
    if isinstance(client, str):
        raise UsageError(
            f"client is a Dask client, not an address: make it with distributed.Client({client!r})."
        )
    if client is not None:
        return still_open(client)
    try:
        return distributed.default_client()
    except ValueError:
        raise UsageError(
            "there is no Dask client: start one with distributed.Client(...), or pass client=..."
        ) from None


class ClusterExecutor:
    """Runs calls on the workers, as the executors of concurrent.futures do.

    Data that several calls share are sent once; made by `executor`.
    """

    def __init__(self, client: Any) -> None:
        self._place = Cluster(client)
        self._sent: dict[int, tuple[RankingData, Any]] = {}

    def submit(self, function: Callable[..., Any], /, *args: Any) -> ClusterCall:
        """Return the call, whose ``result()`` waits for it."""
        held = [self._held(arg) if isinstance(arg, RankingData) else arg for arg in args]
        return ClusterCall(self._place, self._place.open_client.submit(function, *held, pure=False))

    def _held(self, data: RankingData) -> Any:
        if id(data) not in self._sent:
            with large_graphs():
                future = self._place.open_client.submit(unpacked, packed(data), pure=False)
            self._sent[id(data)] = data, future
        return self._sent[id(data)][1]


@dataclass(frozen=True)
class ClusterCall:
    """A call that runs on a worker."""

    backend: Cluster
    future: Any

    def result(self) -> Any:
        """Wait for the answer; raises `ClusterError` where the cluster cannot give one."""
        return self.backend.results([self.future])[0]


def executor(client: Any = None) -> ClusterExecutor:
    """Return what runs calls on the workers, for `rankwright.comparison.tune.tune`.

    Examples
    --------
    >>> from distributed import Client
    >>> from rankwright import distributed
    >>> with Client(processes=False, n_workers=1, dashboard_address=":0") as client:
    ...     workers = distributed.executor(client)
    ...     print(workers.submit(pow, 2, 10).result())
    1024
    """
    return ClusterExecutor(connected(client))


# --- data that travel ------------------------------------------------------------------------


def packed(part: RankingData) -> dict[str, Any]:
    """Return data as arrays of their own, which travel with the task that unpacks them.

    So the scheduler has them, and can make them again where they were lost with a worker.
    """
    return {name: getattr(part, name) for name in FIELDS if name != "row"}


def unpacked(arrays: dict[str, Any]) -> RankingData:
    """Return the data on a worker."""
    return RankingData(**arrays)


@contextmanager
def large_graphs() -> Iterator[None]:
    """Keep Dask from warning that data travel with tasks: here they are meant to."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sending large graph", category=UserWarning)
        yield


# --- Dask ------------------------------------------------------------------------------------


def import_distributed() -> Any:
    """Return Dask's distributed package, or name the extra that brings it."""
    try:
        import distributed
    except ModuleNotFoundError:
        raise MissingExtraError("dask", "dask", "work on many machines") from None
    return distributed


def import_delayed() -> Any:
    """Return Dask's ``delayed``."""
    import_distributed()
    from dask.delayed import delayed

    return delayed


# --- connecting ------------------------------------------------------------------------------
# Find a Dask cluster by what a user says: ``local:4``, a scheduler's address or its file.


_LOCAL = re.compile(r"local:(\d+)")
_ADDRESS = re.compile(r"([a-z]+://)?[^/\s]+:\d+")
_ANSWER = 5.0  # seconds in which a scheduler answers
_WORKERS = 30.0  # seconds in which its first worker comes
_SAME = ("rankwright", "lightgbm")  # of one version everywhere


@contextmanager
def cluster(where: str) -> Iterator[Any]:
    """Connect to a cluster, and yield its client.

    Parameters
    ----------
    where
        ``local:4`` starts four processes of one thread on this machine, and ends them at the end;
        otherwise the address of a scheduler, such as ``tcp://10.0.0.1:8786``, or its file.
    """
    distributed = import_distributed()
    local = _LOCAL.fullmatch(where)
    if local:
        n = int(local[1])
        if n < 1:
            raise UsageError("local:N needs one worker or more, such as local:4.")
        with (
            distributed.LocalCluster(
                n_workers=n,
                threads_per_worker=1,
                dashboard_address=":0",
                silence_logs=logging.CRITICAL,
            ) as started,
            distributed.Client(started) as client,
        ):
            yield client
        return
    with _client(distributed, where) as client:
        _check_workers(client, where)
        yield client


def _client(distributed: Any, where: str) -> Any:
    address = _address_in(Path(where)) if Path(where).is_file() else where
    if not _ADDRESS.fullmatch(address):
        raise UsageError(
            f"'{where}' is not a cluster: give local:4, the address of a scheduler such as "
            "tcp://10.0.0.1:8786, or the file that it wrote (`dask scheduler --scheduler-file`)."
        )
    try:
        return distributed.Client(address, timeout=_ANSWER)
    except (OSError, ValueError):
        raise ClusterError(
            f"no scheduler answers at {where}; start one with `dask scheduler`, and workers with "
            "`dask worker`."
        ) from None


def _address_in(file: Path) -> str:
    """Return the address that a scheduler wrote to its file; nothing where it is another file."""
    try:
        written = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return ""
    return str(written.get("address", "")) if isinstance(written, dict) else ""


def _check_workers(client: Any, where: str) -> None:
    """Refuse a cluster without workers, or with some that cannot do the work."""
    try:
        client.wait_for_workers(1, timeout=_WORKERS)
    except TimeoutError:
        raise ClusterError(
            f"the scheduler at {where} has no worker; start some with `dask worker {where}`."
        ) from None
    for package in _SAME:
        here = version(package)
        for worker, there in client.run(version, package, on_error="return").items():
            if isinstance(there, PackageNotFoundError):
                raise ClusterError(f"the worker {worker} has no {package}; install {here} there.")
            if there != here:
                raise ClusterError(
                    f"the worker {worker} has {package} {there}, this is {here}; install one "
                    "version everywhere."
                )
