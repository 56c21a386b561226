"""Find a Dask cluster by what a user says: ``local:4``, a scheduler's address or its file."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rankwright.distributed.cluster import ClusterError, import_distributed
from rankwright.errors import UsageError

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
