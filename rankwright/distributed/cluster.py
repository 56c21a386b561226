"""Connections to Dask clusters, and calls on their workers.

`Cluster` and `LocalBackend` hold values, call functions on them and return results in the order of
the calls. The values of a `Cluster` are futures; Dask computes them again from their source if a
worker is lost. `LocalBackend` is the current process, without Dask.
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
from typing import Any

from rankwright.data.ranking_data import RankingData
from rankwright.errors import MissingExtraError, RankwrightError, UsageError

_INTERVAL = 2.0  # seconds between two checks that there is still a worker
PATIENCE = 30.0
"""Seconds without any worker after which a run ends; a nanny may restart one until then."""


class ClusterError(RankwrightError, RuntimeError):
    """The cluster cannot continue."""


class LocalBackend:
    """The current process."""

    def call(self, function: Callable[..., Any], *columns: Sequence[Any]) -> list[Any]:
        """Return the value for each row of the columns."""
        return [function(*row) for row in zip(*columns, strict=True)]

    def results(self, values: Sequence[Any]) -> list[Any]:
        """Return the same values."""
        return list(values)

    def memory_limit(self) -> int | None:
        """Return None: there is no limit."""
        return None


class Cluster:
    """The workers of a Dask client."""

    def __init__(self, client: Any, *, patience: float = PATIENCE) -> None:
        self.client, self._patience = client, patience

    @property
    def open_client(self) -> Any:
        """The client; raises if it was closed, because its data are lost then."""
        return still_open(self.client)

    def call(self, function: Callable[..., Any], *columns: Sequence[Any]) -> list[Any]:
        """Return a future for each row of the columns; each runs where its data are."""
        futures: list[Any] = self.open_client.map(function, *columns, pure=False)
        return futures

    def spread(self, function: Callable[..., Any], *columns: Sequence[Any]) -> list[Any]:
        """As `call`, for values without data on a worker: equally many per thread.

        By default, the scheduler assigns most values to the worker that is free first, and later
        work runs where its data are.
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

    def results(self, futures: Sequence[Any]) -> list[Any]:
        """Wait for the futures and return their values."""
        client = self.open_client

        # One request, however long it takes: values that have arrived are not fetched again.
        values = client.gather(list(futures), asynchronous=True)
        fetching = asyncio.run_coroutine_threadsafe(values, client.loop.asyncio_loop)
        try:
            self._wait_with_workers(fetching)
            return list(fetching.result())
        except RankwrightError:
            raise
        except Exception as error:
            raise self._explained(error) from error
        finally:
            fetching.cancel()

    def _wait_with_workers(self, fetching: Any) -> None:
        """Wait for a future; raise if there has been no worker for too long."""
        empty_since: float | None = None
        while not wait([fetching], timeout=_INTERVAL).done:
            if self._workers():
                empty_since = None
                continue
            empty_since = empty_since or time.monotonic()
            if time.monotonic() - empty_since >= self._patience:
                raise ClusterError(
                    "no worker is left on the cluster; start workers and run the command or call "
                    "again."
                )

    def memory_limit(self) -> int | None:
        """Return the memory limit of the smallest worker."""
        limits = [int(worker.get("memory_limit") or 0) for worker in self._workers().values()]
        return min((limit for limit in limits if limit > 0), default=None)

    def _workers(self) -> dict[str, Any]:
        workers: dict[str, Any] = self.open_client.scheduler_info(n_workers=-1)["workers"]
        return workers

    @staticmethod
    def _explained(error: Exception) -> Exception:
        """Return the error to raise: a `ClusterError` for errors of the cluster."""
        for kind in type(error).__mro__:
            if kind.__name__ in _SENTENCES:
                return ClusterError(_SENTENCES[kind.__name__])
        return error


_LOST = (
    "parts of the data were lost with their worker and cannot be made again; load the data from "
    "files, and begin again."
)
_SENTENCES = {
    "KilledWorker": "the workers that took up one piece of the work died, several times over; they "
    "may have too little memory for a part: give more parts (n_parts=...) or more memory.",
    "MemoryError": "a piece of the data is larger than the memory limit of every worker; cut its "
    "source into smaller files or blocks, or give workers more memory.",
    "CancelledError": _LOST,
    "FutureCancelledError": _LOST,
    "FuturesCancelledError": _LOST,
    "CommClosedError": "the scheduler of the cluster does not respond any more.",
}


Backend = LocalBackend | Cluster
"""Place of the partitions."""


def still_open(client: Any) -> Any:
    """Return a Dask client; raise if it was closed, after which its calls fail one by one."""
    if getattr(client, "status", "") in ("closing", "closed"):
        raise ClusterError(
            "the Dask client is closed, and data on its cluster can no longer be used; start one "
            "with distributed.Client(...), keep it open during the work, and load the data again."
        )
    return client


def connected(client: Any = None) -> Any:
    """Return ``client``, or the last Dask client that was created.

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
    """Runs calls on the workers, as the executors of concurrent.futures do; made by `executor`.

    Data that several calls share are sent once.
    """

    def __init__(self, client: Any) -> None:
        self._cluster = Cluster(client)
        self._sent: dict[int, tuple[RankingData, Any]] = {}

    def submit(self, function: Callable[..., Any], /, *args: Any) -> ClusterCall:
        """Return the call, whose ``result()`` waits for it."""
        values = [self._future(arg) if isinstance(arg, RankingData) else arg for arg in args]
        future = self._cluster.open_client.submit(function, *values, pure=False)
        return ClusterCall(self._cluster, future)

    def _future(self, data: RankingData) -> Any:
        if id(data) not in self._sent:
            with large_graphs():
                future = self._cluster.open_client.submit(
                    unchanged, data._replace(row=None), pure=False
                )
            self._sent[id(data)] = data, future
        return self._sent[id(data)][1]


@dataclass(frozen=True)
class ClusterCall:
    """A call that runs on a worker."""

    cluster: Cluster
    future: Any

    def result(self) -> Any:
        """Wait for the result; raises `ClusterError` if the cluster cannot compute it."""
        return self.cluster.results([self.future])[0]


def executor(client: Any = None) -> ClusterExecutor:
    """Return an executor on the workers, for `rankwright.comparison.tune.tune`.

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


def unchanged(data: RankingData) -> RankingData:
    """Return the data that were sent to a worker.

    As arguments of a task, the scheduler holds them and sends them again if a worker is lost.
    """
    return data


@contextmanager
def large_graphs() -> Iterator[None]:
    """Silence Dask's warning that data are sent with tasks, which is intended here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sending large graph", category=UserWarning)
        yield


# --- Dask ------------------------------------------------------------------------------------


def import_distributed() -> Any:
    """Return Dask's distributed package; raise with the name of the extra if it is missing."""
    try:
        import distributed
    except ModuleNotFoundError:
        raise MissingExtraError("dask", "dask", "work on many machines") from None
    return distributed


# --- connections by text -----------------------------------------------------------------------


_LOCAL = re.compile(r"local:(\d+)")
_ADDRESS = re.compile(r"([a-z]+://)?[^/\s]+:\d+")
_SCHEDULER_TIMEOUT, _WORKER_TIMEOUT = 5.0, 30.0  # seconds
_SAME_VERSION = ("rankwright", "lightgbm")


@contextmanager
def cluster(where: str) -> Iterator[Any]:
    """Connect to a cluster and yield its client.

    Parameters
    ----------
    where
        ``local:4`` starts four processes of one thread on this machine, which end with the
        context; otherwise the address of a scheduler, such as ``tcp://10.0.0.1:8786``, or its file.
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
        return distributed.Client(address, timeout=_SCHEDULER_TIMEOUT)
    except (OSError, ValueError):
        raise ClusterError(
            f"no scheduler answers at {where}; start one with `dask scheduler`, and workers with "
            "`dask worker`."
        ) from None


def _address_in(file: Path) -> str:
    """Return the address in the file of a scheduler, or "" for another file."""
    try:
        written = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return ""
    return str(written.get("address", "")) if isinstance(written, dict) else ""


def _check_workers(client: Any, where: str) -> None:
    """Raise if there are no workers, or if a worker has other versions of packages."""
    try:
        client.wait_for_workers(1, timeout=_WORKER_TIMEOUT)
    except TimeoutError:
        raise ClusterError(
            f"the scheduler at {where} has no worker; start some with `dask worker {where}`."
        ) from None
    for package in _SAME_VERSION:
        here = version(package)
        for worker, there in client.run(version, package, on_error="return").items():
            if isinstance(there, PackageNotFoundError):
                raise ClusterError(f"the worker {worker} has no {package}; install {here} there.")
            if there != here:
                raise ClusterError(
                    f"the worker {worker} has {package} {there}, this is {here}; install one "
                    "version everywhere."
                )
