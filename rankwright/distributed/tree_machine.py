"""One machine of LightGBM's network, in a separate process next to a Dask worker.

If a machine of LightGBM's network is lost, the other machines end with an error, loop for ever or
abort. In a separate process this does no harm: the process is killed, the worker keeps its
partitions, and another network continues.

    python -m rankwright.distributed.tree_machine

reads calls from standard input and writes their results to standard output. It ends if that input
is closed, as by the end of its worker, and after 15 minutes without a call.
"""

from __future__ import annotations

import os
import pickle
import signal
import socket
import sys
import threading
from collections.abc import Mapping
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankwright.core.checks import without_prefix
from rankwright.core.rng import stream
from rankwright.core.types import F64, I64, AnyArray, FloatMatrix, Loss
from rankwright.data.ranking_data import RankingData
from rankwright.models.boosting import Descent
from rankwright.models.forest import Forest
from rankwright.models.lightgbm_engine import (
    BIN_ROWS,
    LightGBMEngine,
    lightgbm,
    lightgbm_params,
    lightgbm_threads,
)
from rankwright.models.trees import Trees

_IDLE = 900.0  # seconds without a call
_MINUTES_TO_WAIT = 15  # for a machine with more data to bin


class TreeMachine:
    """Grows trees on some partitions, with the sum of the histograms of all machines.

    Parameters
    ----------
    model, loss, seed
        The same on all machines.
    start : Forest
        The trees to continue from.
    sample : matrix
        Rows that define the bins; the same on all machines.
    largest
        Maximum over all the data, for losses with the trait.
    losses
        State of the losses of a resumed run.
    """

    def __init__(
        self,
        model: Trees,
        loss: Loss,
        start: Forest,
        sample: FloatMatrix,
        seed: int,
        n_jobs: int,
        largest: float | None = None,
        losses: Mapping[str, AnyArray] | None = None,
    ) -> None:
        self._model, self._loss, self._start, self._sample = model, loss, start, sample
        self._seed, self._n_jobs, self._largest = seed, n_jobs, largest
        self._losses = losses
        self._parts: list[tuple[int, int, RankingData]] = []

    def add(self, number: int, first: int, part: RankingData) -> None:
        """Add a partition, with its number and the number of its first query in all the data."""
        self._parts.append((number, first, part))

    def listen(self) -> int:
        """Bind the loss to the data, and return a free port for the network."""
        self._descents = PartDescents(
            self._model,
            self._loss,
            self._parts,
            self._seed,
            largest=self._largest,
            n_jobs=self._n_jobs,
        )
        self._descents.load_state(self._losses or {})
        with socket.socket() as free:
            free.bind(("", 0))
            return int(free.getsockname()[1])

    def join(self, machines: str, port: int) -> None:
        """Connect to all machines, listed as ``host:port,host:port``, and bin the data.

        LightGBM bins over its network: each machine finds the thresholds of some features in the
        sample and sends them to the other machines.
        """
        data = [part for *_, part in self._parts]
        params = self._lightgbm_params(data)
        bins = self._binned(data, params)
        n_machines = machines.count(",") + 1
        if n_machines > 1:
            params |= {
                "tree_learner": "data",
                "pre_partition": True,
                "machines": machines,
                "num_machines": n_machines,
                "local_listen_port": port,
                "time_out": _MINUTES_TO_WAIT,
            }
        self._engine = LightGBMEngine(params, bins)
        scores = [self._start.running_scores(part.X, n_jobs=self._n_jobs) for part in data]
        self._engine.begin(np.concatenate(scores))
        self._parts = []  # only bins and bound losses are needed

    def grow(
        self, first: int, rounds: int, with_trees: bool
    ) -> tuple[list[dict[int, float]], list[Forest | None]]:
        """Grow the trees of rounds ``first`` and on.

        Return the loss of each partition before each round, and the tree of each round, None for
        a round without a split. The trees are the same on all machines, and only returned
        ``with_trees``. There are fewer rounds if no more trees can grow.
        """
        descents = self._descents
        descents.values.clear()
        trees: list[Forest | None] = []
        for t in range(first, first + rounds):
            _, tree = self._engine.grow(partial(descents.step, t), descents.columns(t))
            if tree is None and not descents.samples:
                break
            trees.append(tree)
        return descents.values[: len(trees)], trees if with_trees else []

    def state(self) -> dict[str, AnyArray]:
        """Return the state of the losses after the rounds so far."""
        return self._descents.state()

    def _lightgbm_params(self, data: list[RankingData]) -> dict[str, Any]:
        params = lightgbm_params(self._model, data[0], self._seed, self._n_jobs)
        n = sum(part.n_documents for part in data)
        params["num_threads"] = lightgbm_threads(n, self._n_jobs)
        params["bin_construct_sample_cnt"] = max(BIN_ROWS, self._sample.shape[0])
        return params

    def _binned(self, data: list[RankingData], params: dict[str, Any]) -> Any:
        """Return the rows of all parts in the bins of the sample, to be made by a booster."""
        lgb = lightgbm()
        categorical = params.pop("categorical_feature", "auto")
        bins = None
        for blocks in ([self._sample], [part.X for part in data]):
            bins = lgb.Dataset(
                _as_lightgbm(blocks),
                np.zeros(sum(block.shape[0] for block in blocks), np.float32),
                reference=bins,
                params=dict(params),
                categorical_feature=categorical,
            )
        return bins


def _as_lightgbm(blocks: list[FloatMatrix]) -> Any:
    """Return rows as LightGBM takes them: dense blocks uncopied, or one sparse matrix."""
    if any(sparse.issparse(block) for block in blocks):
        return sparse.csr_matrix(sparse.vstack([sparse.csr_array(block) for block in blocks]))
    dtype = np.result_type(*blocks)
    dense = [np.ascontiguousarray(block, dtype) for block in blocks]
    return dense[0] if len(dense) == 1 else dense


class PartDescents:
    """The gradients of several partitions, with the methods of one `Descent`.

    Each partition binds the loss and samples rows and queries separately, with random streams
    numbered by the partition, so that results do not depend on the partitions of a machine.

    Parameters
    ----------
    parts
        Number of each partition, number of its first query in all the data, and the partition.
    largest
        Maximum over all the data, for losses with the trait.
    """

    def __init__(
        self,
        model: Trees,
        loss: Loss,
        parts: list[tuple[int, int, RankingData]],
        seed: int,
        *,
        largest: float | None = None,
        n_jobs: int,
    ) -> None:
        self.values: list[dict[int, float]] = []
        self._numbers = [number for number, *_ in parts]
        self._runs: list[Descent] = []
        for number, first, part in parts:
            part_seed = int(stream(seed, "part", number).integers(2**62))
            run = Descent(
                model,
                loss,
                part,
                seed=part_seed,
                n_jobs=n_jobs,
                largest=largest,
                first_query=first,
            )
            self._runs.append(run)
        self._ends = np.cumsum([part.n_documents for *_, part in parts])
        one_query = parts[0][2].select([0])  # columns are the same for all partitions
        self._common = Descent(model, loss, one_query, seed=seed, n_jobs=n_jobs)

    def step(self, t: int, scores: F64) -> tuple[float, NDArray[np.float32], NDArray[np.float32]]:
        """Return the loss at ``scores`` and the gradient and curvature of round ``t``."""
        steps = [
            run.step(t, part_scores)
            for run, part_scores in zip(self._runs, np.split(scores, self._ends[:-1]), strict=True)
        ]
        values, gradients, curvatures = zip(*steps, strict=True)
        self.values.append(dict(zip(self._numbers, values, strict=True)))
        return sum(values), np.concatenate(gradients), np.concatenate(curvatures)

    def columns(self, t: int) -> I64 | None:
        """Return the features that round ``t`` may use, or None for all."""
        return self._common.columns(t)

    def state(self) -> dict[str, AnyArray]:
        """Return the state of the losses."""
        return {
            f"{number}.{name}": array
            for number, run in zip(self._numbers, self._runs, strict=True)
            for name, array in run.state().items()
        }

    def load_state(self, state: Mapping[str, AnyArray]) -> None:
        """Restore this `state`."""
        for number, run in zip(self._numbers, self._runs, strict=True):
            run.load_state(without_prefix(f"{number}.", state))

    @property
    def samples(self) -> bool:
        """Whether rounds sample rows or columns."""
        return self._common.samples


# --- the process -------------------------------------------------------------------------------


def main() -> None:
    """Answer calls until standard input is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the driver handles Ctrl-C
    results = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # LightGBM writes there
    calls: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_read_calls, args=(calls,), daemon=True).start()
    _import_lightgbm()  # while the worker does other work
    answer_calls(calls, results)


def answer_calls(calls: SimpleQueue[bytes], results: BinaryIO) -> None:
    """Build a machine and call its methods, until there has been no call for too long."""
    machine: TreeMachine | None = None
    while True:
        try:
            call = calls.get(timeout=_IDLE)
        except Empty:
            return
        try:
            name, args = pickle.loads(call)  # noqa: S301
            if name == "begin":
                machine, result = TreeMachine(*args), None
            else:
                result = getattr(machine, name)(*args)
            send(results, (True, result))
        except Exception as error:
            send(results, (False, error))


def _read_calls(calls: SimpleQueue[bytes]) -> None:
    """Read calls; exit at the end of standard input, even if LightGBM does not return."""
    try:
        while True:
            calls.put(pickle.load(sys.stdin.buffer))  # noqa: S301
    finally:
        os._exit(1)


def send(file: BinaryIO, value: Any) -> None:
    """Send a value; cloudpickle also sends losses that are defined in a user's script."""
    import cloudpickle  # type: ignore[import-untyped]

    # A message is bytes: the next one can be read even if this value cannot be built.
    pickle.dump(cloudpickle.dumps(value, protocol=5), file, protocol=5)
    file.flush()


def receive(file: BinaryIO) -> Any:
    """Return a value that the other side sent."""
    return pickle.loads(pickle.load(file))  # noqa: S301


def _import_lightgbm() -> None:
    """Import LightGBM without optional packages of its other interfaces.

    These take most of the start of a process. The loss may still import them.
    """
    hidden: Any = dict.fromkeys({"sklearn", "pandas", "pyarrow"} - sys.modules.keys())
    sys.modules.update(hidden)
    try:
        lightgbm()
    finally:
        for name in hidden:
            del sys.modules[name]


if __name__ == "__main__":
    main()
