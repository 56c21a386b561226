"""A log of answers: how a run that was killed comes back to where it stood.

A solver that draws nothing is a function of the answers it gets. So the answers are kept, and a run
that is resumed gets them again without a pass over the data, until there are no more; from there
on they come from the data. The solver, SciPy's included, needs no change, and ends with the same
bits. Each answer carries a checksum of what was asked, so that a run that comes another way (from
other data, or on a machine that adds up otherwise) is refused rather than mixed with the first.

What the problem keeps between two calls (where a loss starts from, its noise, bounds
that a problem has found) is its memory: arrays that are kept with the last answer and put back when
the answers are over.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from rankwright.core.checks import ArraySpec, check_arrays
from rankwright.core.types import F64, AnyArray, Callback, CheckpointState
from rankwright.errors import DataError

Answer = tuple[F64, ...]
_SEGMENT = (
    ArraySpec("checks", "int64", ("answers",)),
    ArraySpec("parts", "int64", ("answers",), low=0),
    ArraySpec("sizes", "int64", ("cuts",), low=0),
    ArraySpec("values", "float64", ("numbers",), finite=False),
)


class OracleLog:
    """Answers so far; written whenever the callback finds that a checkpoint is due.

    Parameters
    ----------
    callback : Callback
        Has what an earlier run kept, and keeps what this one adds.
    memory : object
        Whatever has a state beside the answers; see `memory_of`.
    """

    def __init__(self, callback: Callback, memory: Any = None) -> None:
        self._callback, self.memory = callback, memory
        self.writes = callback.wants_state
        kept = callback.load_state()
        self._again = _answers(kept) if kept is not None else iter(())
        self._left = kept.round if kept is not None else 0
        self._found = kept.state if kept is not None else {}
        self._count = 0
        self._fresh: list[tuple[int, Answer]] = []

    @property
    def replays(self) -> bool:
        """Whether the next answer is an old one."""
        return self._left > 0

    def recall(
        self, compute: Callable[[], Any], *asked: AnyArray, sizes: Sequence[int] | None = None
    ) -> Answer:
        """Return the answer to what was ``asked``: the old one, or a new one, which is kept.

        ``sizes`` are those that the parts of an old answer must have, which kernels may read; an
        answer may also have no parts.
        """
        if not self.writes:
            return _as_answer(compute())
        check = _checksum(asked)
        self._count += 1
        if self._left:
            self._left -= 1
            known, answer = next(self._again, (None, ()))
            fits = not answer or sizes is None or [len(part) for part in answer] == [*sizes]
            if known != check or not fits:
                raise DataError(
                    "the checkpoint does not belong to this run: this run asked for "
                    f"something else in step {self._count}. Start again in another folder."
                )
            if not self._left:
                put_back(self.memory, self._found)
            return answer
        answer = _as_answer(compute())
        self._fresh.append((check, tuple(part.copy() for part in answer)))  # callers change theirs
        self._callback.save_state(self._count, lambda: memory_of(self.memory), self._added)
        return answer

    def _added(self) -> dict[str, AnyArray]:
        """Return the answers since the last call, as arrays."""
        fresh, self._fresh = self._fresh, []
        parts = [part for _, answer in fresh for part in answer]
        return {
            "checks": np.array([check for check, _ in fresh], np.int64),
            "parts": np.array([len(answer) for _, answer in fresh], np.int64),
            "sizes": np.array([part.size for part in parts], np.int64),
            "values": np.concatenate([*parts, np.empty(0)]),
        }


class LoggedProblem:
    """A problem whose answers go through a log; everything else is the problem's own."""

    def __init__(self, problem: Any, log: OracleLog) -> None:
        self._problem, self._log = problem, log
        self._at: F64 | None = None  # where old answers last asked for the gradient
        self.size: int = problem.size

    def __getattr__(self, name: str) -> Any:
        return getattr(self._problem, name)

    def value(self, w: F64) -> float:
        """Return the objective at ``w``."""
        (value,) = self._log.recall(lambda: (self._problem.value(w),), w, sizes=[1])
        return float(value[0])

    def grad(self, w: F64, out: F64) -> float:
        """Write the gradient at ``w`` to ``out`` and return the objective."""
        self._at = w.copy() if self._log.replays else None
        value, out[:] = self._log.recall(
            lambda: (self._problem.grad(w, out), out), w, sizes=[1, self.size]
        )
        return float(value[0])

    def hess_vec(self, v: F64, out: F64) -> None:
        """Write the Hessian at the last ``grad`` times ``v`` to ``out``."""

        def compute() -> Answer:
            if self._at is not None:  # the loss has not been there in this run
                self._problem.grad(self._at, np.empty(self.size))
                self._at = None
            self._problem.hess_vec(v, out)
            return (out,)

        (out[:],) = self._log.recall(compute, v, sizes=[self.size])

    def cut(self, w: F64) -> tuple[F64, float, float]:
        """Return the plane that touches the convex part at ``w``, and that part."""
        a, b, value = self._log.recall(lambda: self._problem.cut(w), w, sizes=[self.size, 1, 1])
        return a, float(b[0]), float(value[0])

    def concave_part(self, w: F64) -> tuple[F64, float] | None:
        """Return the plane that touches the other part; None where there is none."""
        found = self._log.recall(
            lambda: self._problem.concave_part(w) or (), w, sizes=[self.size, 1]
        )
        return (found[0], float(found[1][0])) if found else None

    def recall(
        self, compute: Callable[[Any], Any], *asked: AnyArray, sizes: Sequence[int] | None = None
    ) -> Answer:
        """Return what ``compute`` makes of the problem itself, as one answer."""
        return self._log.recall(lambda: compute(self._problem), *asked, sizes=sizes)


def logged(problem: Any, log: OracleLog) -> Any:
    """Return the problem with its answers through ``log``, where that is written at all."""
    return LoggedProblem(problem, log) if log.writes else problem


def recall(
    problem: Any,
    compute: Callable[[Any], Any],
    *asked: AnyArray,
    sizes: Sequence[int] | None = None,
) -> Answer:
    """Return what ``compute`` makes of ``problem``: from its log, where it has one.

    For solvers whose single answers would make a long log: a whole pass is one answer.
    """
    if isinstance(problem, LoggedProblem):
        return problem.recall(compute, *asked, sizes=sizes)
    return _as_answer(compute(problem))


def memory_of(owner: Any) -> dict[str, AnyArray]:
    """Return a copy of the state of ``owner``; nothing where it has no ``state``."""
    memory = getattr(owner, "state", None)
    return {} if memory is None else {f"memory.{k}": v.copy() for k, v in memory().items()}


def put_back(owner: Any, kept: Mapping[str, AnyArray]) -> None:
    """Restore the state of ``owner``."""
    found = {k.removeprefix("memory."): v for k, v in kept.items() if k.startswith("memory.")}
    if found:
        owner.load_state(found)


def _as_answer(found: Any) -> Answer:
    return tuple(np.array(part, np.float64, ndmin=1) for part in found)


def _answers(kept: CheckpointState) -> Iterator[tuple[int, Answer]]:
    for segment in kept.added:
        check_arrays(_SEGMENT, segment, "the checkpoint")
        whole = segment["parts"].sum() == len(segment["sizes"])
        if not whole or segment["sizes"].sum() != len(segment["values"]):
            raise DataError("the checkpoint is damaged: its answers are cut wrongly.")
        sizes = iter(np.split(segment["values"], np.cumsum(segment["sizes"])[:-1]))
        for check, count in zip(segment["checks"].tolist(), segment["parts"], strict=True):
            yield check, tuple(next(sizes) for _ in range(count))


def _checksum(asked: Sequence[AnyArray]) -> int:
    check = 0
    for array in asked:
        check = zlib.crc32(np.ascontiguousarray(array).tobytes(), check)
    return check
