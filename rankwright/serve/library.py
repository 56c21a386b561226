"""The models being served: which version answers a query, and the change to a replaced file.

A version is drawn by weighted rendezvous hashing (Schindelhauer and Schomaker, 2005): of all
versions of a name, the one with the largest ``-share / log(u)`` answers, u in (0, 1) being a hash
of name, version and query's id. So a query meets the same version each time, on every server with
the same shares, and changes over only to a version whose share grew in proportion to that of its
own. In particular a version that alone grows keeps all its queries.

A file that was replaced is loaded and tried aside; then one assignment puts it in place, and
requests under way end with the model they began with. A file that cannot be used changes nothing
but `Slot.fault`.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rankwright.data.ranking_data import RankingData
from rankwright.errors import RankwrightError, UsageError
from rankwright.persist.runtime import RuntimeModel, load
from rankwright.registry import unknown
from rankwright.serve.settings import Version

Signature = tuple[int, int, int]


@dataclass(eq=False)
class Slot:
    """A place for the model of one file; ``model`` is the one that answers."""

    version: Version
    model: RuntimeModel
    signature: Signature | None
    fault: str | None = None
    reloads: int = 0

    @property
    def state(self) -> dict[str, Any]:
        """Which model this is, and whether its file could be used, as JSON holds it."""
        return {
            "name": self.version.name,
            "version": self.version.version,
            "reloads": self.reloads,
            "reload_fault": self.fault,
        }

    @property
    def about(self) -> dict[str, Any]:
        """What is served here, as JSON holds it."""
        model = self.model
        return {
            **self.state,
            "share": self.version.share,
            "ranker": model.ranker,
            "n_features": model.n_features,
            "feature_names": None if model.feature_names is None else list(model.feature_names),
            "categories": {
                name: list(own.values) for name, own in (model.categories or {}).items()
            },
            "data": model.receipt.get("data"),
        }


class Library:
    """The slots of all names; made once, at the start of the server, from files that load."""

    def __init__(self, versions: Sequence[Version]) -> None:
        self.slots = [_slot(own) for own in versions]
        self.names = list(dict.fromkeys(own.name for own in versions))

    def named(self, name: str) -> list[Slot]:
        """Return the slots that ``NAME`` or ``NAME@VERSION`` stands for."""
        own, _, version = name.partition("@")
        slots = [slot for slot in self.slots if slot.version.name == own]
        if not slots:
            raise UsageError(unknown("model", own, self.names))
        if not version:
            return slots
        pinned = [slot for slot in slots if slot.version.version == version]
        if not pinned:
            known = [slot.version.version for slot in slots]
            raise UsageError(unknown(f"version of {own}", version, known))
        return pinned

    def pick(self, name: str, query: str) -> Slot:
        """Return the slot that answers ``query``: always the same one for the same id."""
        slots = self.named(name)
        return slots[0] if len(slots) == 1 else max(slots, key=lambda slot: _claim(slot, query))

    def reload(self, tell: Callable[[Slot], None]) -> None:
        """Look at every file once, and put those in place that were replaced and are sound."""
        for slot in self.slots:
            path = slot.version.path
            signature = _signature(path)
            if signature == slot.signature:
                continue
            slot.signature = signature
            try:
                slot.model = tried_model(path)
            except RankwrightError as fault:
                slot.fault = str(fault)
            except Exception as fault:  # memory, a disk: the other files are looked at all the same
                slot.fault = f"{path} cannot be loaded: {fault!r}."
            else:
                slot.fault = None
                slot.reloads += 1
            tell(slot)


def _slot(own: Version) -> Slot:
    signature = _signature(own.path)  # before it is read: what replaces it meanwhile is seen later
    return Slot(own, tried_model(own.path), signature)


def _claim(slot: Slot, query: str) -> float:
    """Return how strongly a version claims a query, as the top of this file has it."""
    own = slot.version
    text = f"{own.name}\0{own.version}\0{query}".encode("utf-8", "surrogatepass")
    bits = int.from_bytes(hashlib.sha256(text).digest()[:8]) >> 12
    return -own.share / math.log((bits + 0.5) / 2**52)


def tried_model(path: Path) -> RuntimeModel:
    """Return the model of a file that loads and scores; this also readies its kernels."""
    model = load(path)
    X = np.zeros((2, model.n_features))
    indptr = np.array([0, 2])
    try:
        with np.errstate(all="ignore"):
            model.scores_of(RankingData(X, np.zeros(2), indptr, np.array([None], object)))
            model.rank(X, top=1, group=np.zeros(2), per_group=1)
            model.rank(X)
    except RankwrightError:
        raise
    except Exception as fault:
        raise UsageError(f"the model of {path} cannot score: {fault}") from fault
    return model


def _signature(path: Path) -> Signature | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_ino, stat.st_size
