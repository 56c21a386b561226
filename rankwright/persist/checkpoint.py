"""Checkpoints: a folder from which a killed fit continues, with a result of the same bytes.

The folder contains ``receipt.json``, which describes the run, and numbered safetensors files. Each
file contains the state of the run after a round; the last two are kept. Its name ends with a digest
of its contents, so that damaged and incomplete files are recognised; a run continues from the last
complete state. A ``lock`` file admits one process at a time.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays
from scipy import sparse

from rankwright import __version__
from rankwright.core.types import AnyArray, FittedModel
from rankwright.data.content import row_codes
from rankwright.data.frames import categories_to_json
from rankwright.data.ranking_data import RankingData
from rankwright.data.streams import atomic_path, make_folder
from rankwright.errors import DataError, UsageError
from rankwright.persist.model_file import kept_parameters

if TYPE_CHECKING:
    from rankwright.rankers.base import Ranker


EVERY = 10
_RECEIPT = "receipt.json"
_LOCK = "lock"
_FILE = re.compile(r"state-(\d{6,})-[0-9a-f]{16}\.safetensors")
_PARTIAL = re.compile(r"\.(state-|receipt\.json).*\.partial")
_ROUND = "checkpoint.round"
_STATES = 2  # number of states in the folder


@dataclass
class Checkpoint:
    """A folder for the checkpoints of a fit: ``ranker.fit(..., checkpoint=Checkpoint("folder"))``.

    Parameters
    ----------
    folder : str or Path
        Created if it does not exist.
    every : int
        Rounds between checkpoints; the first round has one. A round is a tree, a rule, an epoch or
        a generation.
    resume : bool
        Continue from the last checkpoint in the folder, if there is one.

    Examples
    --------
    >>> import rankwright as rw
    >>> data = rw.load("digits/train", queries=8, documents=12)
    >>> checkpoint = rw.Checkpoint("run", every=5, resume=True)
    >>> ranker = rw.GBDT(n_estimators=20).fit(data, checkpoint=checkpoint)
    """

    folder: str | Path
    every: int = EVERY
    resume: bool = False
    _last: int = field(default=0, init=False, repr=False)
    _number: int = field(default=0, init=False, repr=False)
    _paths: list[Path] = field(default_factory=list, init=False, repr=False)
    _unlock: Any = field(default=None, init=False, repr=False, compare=False)

    def check(self) -> None:
        """Raise for a folder that cannot be used."""
        if self.every < 1:
            raise UsageError(f"every must be 1 or more, not {self.every}.")
        folder = Path(self.folder)
        if folder.exists() and not folder.is_dir():
            raise UsageError(f"{folder} is a file; a checkpoint needs a folder.")
        if not self.resume and (folder / _RECEIPT).exists():
            raise UsageError(
                f"{folder} holds the checkpoint of an earlier run: resume it "
                "(--resume, or resume=True), or choose another folder."
            )
        if folder.is_dir() and not (folder / _RECEIPT).exists() and _files(folder):
            raise UsageError(
                f"{folder} holds files of a checkpoint without the {_RECEIPT} that describes the "
                "run; restore it, or choose another folder."
            )

    def begin(self, receipt: Mapping[str, Any]) -> tuple[int, dict[str, AnyArray]] | None:
        """Lock the folder for the run of ``receipt``; return the round and state to resume from."""
        self.check()
        folder = Path(self.folder)
        is_new = not folder.exists()
        make_folder(folder)
        self._take_lock(folder / _LOCK)
        self._last = self._number = 0
        self._paths, state = [], None
        if (folder / _RECEIPT).exists():
            _refuse_other_run(folder / _RECEIPT, receipt)
            state = self._last_complete()
        with _as_data_error(folder):
            for number, path in _files(folder):
                if number > self._number:
                    path.unlink()
                else:
                    self._paths.append(path)
            for path in folder.iterdir():  # of a run that was killed while writing
                if _PARTIAL.fullmatch(path.name):
                    path.unlink()
        if state is None:
            try:
                _write(folder / _RECEIPT, (json.dumps(receipt, indent=1) + "\n").encode())
            except DataError:  # its message promises that the folder contains nothing new
                with suppress(OSError):
                    (folder / _LOCK).unlink()
                    if is_new:
                        folder.rmdir()
                self.end()
                raise
        return state

    @property
    def last_round(self) -> int:
        """Round of the last state that was written or read, or 0."""
        return self._last

    def due(self, t: int) -> bool:
        """Return whether round ``t`` is the first one, or ``every`` rounds after the last."""
        return not self._number or t - self._last >= self.every

    def write(self, t: int, state: Mapping[str, AnyArray]) -> None:
        """Write the state after round ``t`` and delete the oldest one."""
        self._number += 1
        content = save_arrays(
            {name: np.ascontiguousarray(a) for name, a in state.items()} | {_ROUND: np.array([t])}
        )
        path = Path(self.folder) / f"state-{self._number:06d}-{_digest(content)}.safetensors"
        _write(path, content)
        self._paths.append(path)
        with _as_data_error(Path(self.folder)):
            while len(self._paths) > _STATES:
                self._paths.pop(0).unlink(missing_ok=True)
        self._last = t

    def end(self) -> None:
        """Release the lock of the folder."""
        if self._unlock is not None:
            self._unlock()
            self._unlock = None

    def _take_lock(self, path: Path) -> None:
        """Lock the folder until `end`. The system releases the lock of a killed process."""
        self.end()
        try:
            import fcntl
        except ImportError:  # a system without such locks
            return
        with _as_data_error(path.parent):
            lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        self._unlock = weakref.finalize(self, os.close, lock)
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            self.end()
            raise UsageError(
                f"{path.parent} is in use by another run; wait for its end, or choose another "
                "folder."
            ) from None
        except OSError:  # a file system without locks
            self.end()

    def _last_complete(self) -> tuple[int, dict[str, AnyArray]] | None:
        """Return the round and the arrays of the last complete state."""
        for number, path in reversed(_files(Path(self.folder))):
            state = _read_arrays(path)
            at = None if state is None else state.pop(_ROUND, None)
            if state is not None and at is not None and at.dtype == np.int64 and at.shape == (1,):
                self._last, self._number = int(at[0]), number
                return self._last, state
        return None


# --- files -----------------------------------------------------------------------------------


def _files(folder: Path) -> list[tuple[int, Path]]:
    """Return the number and path of each state, in order."""
    try:
        paths = sorted(folder.iterdir())
    except OSError as error:
        raise DataError(f"{folder} cannot be read: {error.strerror or error}.") from None
    matches = ((_FILE.fullmatch(path.name), path) for path in paths)
    return sorted((int(match[1]), path) for match, path in matches if match)


def _read_arrays(path: Path) -> dict[str, AnyArray] | None:
    """Return the arrays of a file, or None if its contents do not match its name."""
    try:
        content = path.read_bytes()
        if f"-{_digest(content)}." not in path.name:
            return None
        arrays: dict[str, AnyArray] = load_arrays(content)
    except (OSError, SafetensorError):
        return None
    return arrays


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _write(path: Path, content: bytes) -> None:
    """Write a file completely or not at all, even if the machine crashes."""
    with atomic_path(path) as partial, partial.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    if os.name != "posix":  # folders cannot be opened there
        return
    with _as_data_error(path):  # the name is on disk before an older file is deleted
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@contextmanager
def _as_data_error(path: Path) -> Iterator[None]:
    """Raise an error of the file system as a `DataError`."""
    try:
        yield
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror or error}.") from None


# --- which run a folder belongs to -------------------------------------------------------------
# Two fits are the same run if ranker, parameters, data and versions are the same, which are in the
# receipt. A parameter that is a function is represented by its name.


_LIBRARIES = ("numpy", "scipy", "numba", "scikit-learn", "lightgbm", "torch")


def run_receipt(
    ranker: Ranker,
    data: RankingData | str,
    valid: RankingData | str | None,
    start: FittedModel | None,
) -> dict[str, Any]:
    """Return ranker, parameters, data and versions, which identify a fit.

    Data of other processes is represented by its digest.
    """
    receipt = {
        "rankwright": __version__,
        "libraries": _versions(),
        "ranker": ranker.name,
        "parameters": kept_parameters(ranker),
        "training data": digest_in_order(data, ranker.n_jobs),
        "validation data": None if valid is None else digest_in_order(valid, ranker.n_jobs),
        "init_model": None if start is None else _digest_of_model(start),
    }
    # as it will be read from the file
    decoded: dict[str, Any] = json.loads(json.dumps(receipt, default=repr))
    return decoded


def _versions() -> dict[str, str]:
    versions = {}
    for name in _LIBRARIES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions


def digest_in_order(data: RankingData | str, n_jobs: int | None) -> str:
    """Return a digest of the data, including the order of rows and the names of queries."""
    if isinstance(data, str):
        return data
    kind = "sparse" if sparse.issparse(data.X) else "dense"  # sums may differ in their last bits
    digest = hashlib.sha256(f"{kind} {data.n_documents} x {data.n_features}".encode())
    group = None if data.group is None else data.group_shares()
    columns = (row_codes(data, n_jobs=n_jobs), data.indptr, group)
    for column in (*columns, data.sample_weight, data.query_weight):
        digest.update(b"-" if column is None else np.ascontiguousarray(column).tobytes())
    names: list[Any] = [data.qid.tolist(), data.feature_names]
    if data.categories:
        names.append(categories_to_json(data.categories))
    digest.update(json.dumps(names, default=str).encode())
    return digest.hexdigest()


def _digest_of_model(model: FittedModel) -> str:
    digest = hashlib.sha256()
    for name, array in sorted(model.arrays().items()):
        digest.update(name.encode() + np.ascontiguousarray(array).tobytes())
    for name, text in sorted(model.texts().items()):
        digest.update(f"{name} {text}".encode())
    return digest.hexdigest()


def _refuse_other_run(path: Path, receipt: Mapping[str, Any]) -> None:
    """Raise if the receipt of a folder is of another run, with the first key that differs."""
    try:
        earlier = json.loads(path.read_bytes())
        before, now = _flat(earlier), _flat(receipt)
    except (OSError, ValueError, AttributeError):  # not a mapping
        raise DataError(
            f"{path} cannot be read; choose another folder for the checkpoint."
        ) from None
    for key in (*now, *before):
        if before.get(key) != now.get(key):
            raise UsageError(
                f"{path.parent} holds the checkpoint of another run: {key} was {before.get(key)!r} "
                f"and is {now.get(key)!r}; run it as before, or choose another folder."
            )


def _flat(receipt: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of a receipt, with versions and parameters one by one."""
    flat: dict[str, Any] = {}
    for key, value in receipt.items():
        if isinstance(value, dict):
            flat |= {f"{key}: {name}": entry for name, entry in value.items()}
        else:
            flat[key] = value
    return flat
