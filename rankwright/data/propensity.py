"""`Propensity`: how much of a document's clicks its position explains.

A document of relevance r that is shown at position k is clicked with probability

    P(click) = examination_k * r + offset_k                                                     (1)

Without ``offset`` this is the position-based model: a click needs a look and relevance. With it,
it is the affine model of trust in the top (`vardasbi2020inverse`). Only products of examination and
relevance are seen in clicks, so that examination is relative: that of the first position is 1.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from rankwright.core.types import F64, AnyArray
from rankwright.data.streams import atomic_text, open_bytes
from rankwright.errors import DataError, UsageError

_FORMAT = "rankwright propensity 1"
_ARRAYS = ("examination", "offset", "low", "high")


@dataclass(frozen=True, slots=True, eq=False)
class Propensity:
    """How often users look at each position, relative to the first.

    Attributes
    ----------
    examination : (K,) float64
        Of positions 1 to K, above 0.
    offset : (K,) float64 or None
        Share of clicks that the position adds, relative to the first: trust bias. Negative where
        positions bring fewer undeserved clicks than the first.
    low, high : (K,) float64 or None
        A 95 % interval of each examination.
    method : str
        How it was estimated.

    Examples
    --------
    >>> from rankwright.data.propensity import Propensity
    >>> Propensity.power(1.0, positions=4).examination
    array([1.        , 0.5       , 0.33333333, 0.25      ])
    """

    examination: F64
    offset: F64 | None = None
    low: F64 | None = None
    high: F64 | None = None
    method: str = "given"

    def __post_init__(self) -> None:
        for name in _ARRAYS:
            if getattr(self, name) is not None:
                object.__setattr__(self, name, np.array(getattr(self, name), np.float64))
        if self.examination.ndim != 1 or not len(self.examination):
            raise DataError("examination must be a list of numbers, one for each position from 1.")
        for name in _ARRAYS:
            values = getattr(self, name)
            if values is None:
                continue
            if values.shape != self.examination.shape:
                raise DataError(
                    f"{name} has the shape {values.shape}; one number for each of the "
                    f"{len(self.examination)} positions is expected."
                )
            least = -np.inf if name == "offset" else 0.0
            bad = ~((values > least) if name == "examination" else (values >= least))
            if name != "high":
                bad |= ~np.isfinite(values)
            if bad.any():
                at = int(np.flatnonzero(bad)[0])
                above = {"examination": " and above 0", "offset": ""}.get(name, " and 0 or more")
                raise DataError(
                    f"{name} must be finite{above}; that of position {at + 1} is {values[at]}."
                )

    @classmethod
    def power(cls, eta: float, *, positions: int) -> Propensity:
        """Return the examination (1/k)^eta of positions k = 1, 2, ..., as many simulations use."""
        return cls((1.0 / np.arange(1, positions + 1)) ** eta, method=f"(1/k)^{eta:g}")

    @property
    def n_positions(self) -> int:
        """Number of positions."""
        return len(self.examination)

    def __repr__(self) -> str:
        shown = ", ".join(f"{value:.3g}" for value in self.examination[:5])
        more = ", ..." if self.n_positions > 5 else ""
        trust = "" if self.offset is None else ", with offsets"
        return f"Propensity([{shown}{more}], {self.n_positions} positions{trust}, {self.method})"

    def at(self, position: AnyArray) -> tuple[F64, F64]:
        """Return examination and offset at each position, from 1; raise beyond the last."""
        places = np.asarray(position)
        if places.dtype.kind not in "iuf" or (places != np.floor(places)).any():
            raise DataError("positions must be whole numbers, 1 for the first.")
        places = places.astype(np.int64)
        if places.size and not 1 <= places.min() <= places.max() <= self.n_positions:
            bad = places.min() if places.min() < 1 else places.max()
            raise DataError(
                f"the data has position {bad}, and the propensity knows 1 to {self.n_positions}; "
                "estimate it on a log with all positions, or leave these documents out."
            )
        examination: F64 = self.examination[places - 1]
        offset = np.zeros(places.shape) if self.offset is None else self.offset[places - 1]
        return examination, offset

    def clipped(self, least: float) -> Propensity:
        """Return it with no examination below ``least``: less variance, and some bias."""
        if not 0.0 < least <= 1.0:
            raise UsageError(f"clip must be above 0 and at most 1; it is {least}.")
        return Propensity(np.maximum(self.examination, least), self.offset, method=self.method)

    def to_dict(self) -> dict[str, Any]:
        """Return it as lists and texts."""
        made: dict[str, Any] = {"format": _FORMAT, "method": self.method}
        for name in _ARRAYS:
            values = getattr(self, name)
            if values is not None:
                made[name] = [None if np.isinf(v) else float(v) for v in values]
        return made

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Propensity:
        """Return what `to_dict` was called on."""
        if given.get("format") != _FORMAT:
            raise DataError(f"this is no propensity: 'format' must be '{_FORMAT}'.")
        names = {one.name for one in fields(cls)}
        arrays = {key: _numbers(v, key) for key, v in given.items() if key in _ARRAYS}
        if "examination" not in arrays:
            raise DataError("this is no propensity: 'examination' is missing.")
        unknown = sorted(set(given) - names - {"format"})
        if unknown:
            raise DataError(f"a propensity has no '{unknown[0]}'.")
        return cls(**arrays, method=str(given.get("method", "given")))

    def save(self, path: str | Path) -> None:
        """Write it to a JSON file; `Propensity.load` reads it."""
        with atomic_text(path) as stream:
            stream.write(json.dumps(self.to_dict(), indent=1) + "\n")

    @classmethod
    def load(cls, path: str | Path) -> Propensity:
        """Return the propensity of a file that `save` wrote."""
        with open_bytes(path) as stream:
            text = stream.read()
        try:
            try:
                given = json.loads(text)
            except (ValueError, RecursionError):
                raise DataError("this is no propensity: the file is not JSON.") from None
            if not isinstance(given, dict):
                raise DataError("this is no propensity: a JSON object is expected.")
            return cls.from_dict(given)
        except (ValueError, TypeError) as error:
            raise DataError(f"{path}: {error}") from error


def _numbers(values: Sequence[float | None], name: str) -> F64:
    if not isinstance(values, list):
        raise DataError(f"'{name}' must be a list of numbers.")
    return np.array([np.inf if value is None else float(value) for value in values])
